import java.io.File;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A process that contends for one lock: `hold SECONDS` takes it once, `storm N` takes it N times for a moment each.
 *
 * <p>Arguments: the work, its number, then settings as name=value. Each hold is one JSON line on standard output, and
 * `hold` prints one more as soon as it has the lock. With the setting `until`, a
 * hold lasts at least that long, and on until there is a file of that name. Times are System.nanoTime, which is CLOCK_MONOTONIC on Linux, so
 * that they compare with those of other processes. The lock was surely held from held_ns to freeing_ns.
 */
abstract class Contender {
    private static final long PATIENCE_NS = 120_000_000_000L;
    private static final long PAUSE_MS = 5;

    /** How long one attempt may take where the lock waits by itself. Setting: wait_ms. */
    long waitMs = 20_000;

    /** The file whose appearance ends a hold; null where its time alone does. Setting: until. */
    private String until;

    /** Asks once; false means somebody else has it. */
    abstract boolean acquire() throws Exception;

    abstract void release() throws Exception;

    /** Does what the arguments say and ends the process. */
    final void run(String[] arguments) throws Exception {
        waitMs = Long.parseLong(settings(arguments, 2).getOrDefault("wait_ms", "20000"));
        until = settings(arguments, 2).get("until");
        awaitGate(settings(arguments, 2).get("gate"));
        if (arguments[0].equals("hold")) {
            contend(Math.round(1e6 * Double.parseDouble(arguments[1])), true);
        } else {
            for (int left = Integer.parseInt(arguments[1]); left > 0; left--) {
                contend(ThreadLocalRandom.current().nextLong(1_000, 3_000), false);
            }
        }
        System.exit(0);
    }

    /** Tells by a file in the folder that it is ready, and waits for the file there that lets all begin. */
    private static void awaitGate(String folder) throws Exception {
        if (folder != null) {
            new File(folder, ProcessHandle.current().pid() + ".ready").createNewFile();
            awaitFile(new File(folder, "gate"));
        }
    }

    private static void awaitFile(File file) throws Exception {
        long end = System.nanoTime() + PATIENCE_NS;
        while (!file.exists() && System.nanoTime() < end) {
            Thread.sleep(1);
        }
    }

    private void contend(long micros, boolean announced) throws Exception {
        long asked = System.nanoTime();
        int tries = ask(asked + PATIENCE_NS);
        long held = System.nanoTime();
        if (announced) {
            print("{\"held_ns\": %d}", held);
        }
        Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
        if (announced && until != null) {
            awaitFile(new File(until));
        }
        long freeing = System.nanoTime();
        release();
        print("{\"asked_ns\": %d, \"held_ns\": %d, \"freeing_ns\": %d, \"freed_ns\": %d, \"tries\": %d}",
                asked, held, freeing, System.nanoTime(), tries);
    }

    private int ask(long until) throws Exception {
        for (int tries = 1; ; tries++) {
            if (acquire()) {
                return tries;
            }
            if (System.nanoTime() > until) {
                throw new IllegalStateException("no lock after " + tries + " tries");
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    private static void print(String format, Object... values) {
        System.out.println(String.format(format, values));
        System.out.flush();
    }

    /** The settings among the arguments, which begin after `skip` others. */
    static Map<String, String> settings(String[] arguments, int skip) {
        Map<String, String> found = new TreeMap<>();
        for (int i = skip; i < arguments.length; i++) {
            int equals = arguments[i].indexOf('=');
            found.put(arguments[i].substring(0, equals), arguments[i].substring(equals + 1));
        }
        return found;
    }
}
