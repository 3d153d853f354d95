import java.lang.reflect.Method;

/**
 * Runs a Hive Metastore on the port that is its argument; a second argument says that its database is new.
 *
 * <p>The metastore makes most tables of a new database by itself, but not those of transactions and locks. The class
 * that makes them for Hive's own tests is asked to; it is called by its name, for its package and its parameters differ
 * between releases. (The switch for tests, hive.in.test, would have the same effect, and another one: requests of
 * clients that leave the kind of operation open, as Hudi does, are refused.)
 */
final class MetastoreWithLocks {
    private static final String TABLES = "org.apache.hadoop.hive.metastore.txn.TxnDbUtil";
    private static final String METASTORE = "org.apache.hadoop.hive.metastore.HiveMetaStore";

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 1) {
            makeLockTables();
        }
        String[] words = {"-p", arguments[0]};
        Class.forName(METASTORE).getMethod("main", String[].class).invoke(null, (Object) words);
    }

    private static void makeLockTables() throws Exception {
        for (Method method : Class.forName(TABLES).getMethods()) {
            if (method.getName().equals("prepDb")) {
                Class<?>[] wanted = method.getParameterTypes();
                Object[] given = new Object[wanted.length];
                for (int i = 0; i < wanted.length; i++) {
                    given[i] = Class.forName("org.apache.hadoop.hive.conf.HiveConf").getConstructor().newInstance();
                }
                method.invoke(null, given);
                return;
            }
        }
        throw new IllegalStateException(TABLES + " has no method prepDb");
    }
}
