import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's mutex. Settings: url, path, session_ms. */
final class CuratorContender extends Contender {
    private final InterProcessMutex mutex;

    private CuratorContender(InterProcessMutex mutex) {
        this.mutex = mutex;
    }

    @Override
    boolean acquire() throws Exception {
        return mutex.acquire(waitMs, TimeUnit.MILLISECONDS);
    }

    @Override
    void release() throws Exception {
        mutex.release();
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = settings(arguments, 2);
        int sessionMs = Integer.parseInt(settings.getOrDefault("session_ms", "10000"));
        CuratorFramework client = CuratorFrameworkFactory.newClient(
                settings.get("url"), sessionMs, 15_000, new ExponentialBackoffRetry(500, 5));
        client.start();
        new CuratorContender(new InterProcessMutex(client, settings.get("path"))).run(arguments);
    }
}
