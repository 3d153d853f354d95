import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hudi.common.config.LockConfiguration;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.lock.LockProvider;
import org.apache.hudi.exception.HoodieLockException;
import org.apache.hudi.storage.StorageConfiguration;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;

/** A lock provider of Hudi's, made as Hudi makes it. Settings: Hudi's own keys, hoodie.write.lock.provider among them. */
final class HudiContender extends Contender {
    private final LockProvider<?> provider;

    private HudiContender(LockProvider<?> provider) {
        this.provider = provider;
    }

    @Override
    boolean acquire() throws InterruptedException {
        try {
            return provider.tryLock(waitMs, TimeUnit.MILLISECONDS);
        } catch (HoodieLockException refused) {
            return false;
        }
    }

    @Override
    void release() {
        provider.unlock();
    }

    public static void main(String[] arguments) throws Exception {
        TypedProperties properties = new TypedProperties();
        settings(arguments, 2).forEach(properties::setProperty);
        Object made = Class.forName(properties.getProperty("hoodie.write.lock.provider"))
                .getConstructor(LockConfiguration.class, StorageConfiguration.class)
                .newInstance(
                        new LockConfiguration(properties), new HadoopStorageConfiguration(new Configuration()));
        new HudiContender((LockProvider<?>) made).run(arguments);
    }
}
