import java.io.ByteArrayInputStream;
import java.lang.reflect.Constructor;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hudi.client.transaction.lock.StorageBasedLockProvider;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.metrics.HoodieLockMetrics;
import org.apache.hudi.client.transaction.lock.models.HeartbeatManager;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockProviderHeartbeatManager;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.common.util.Functions.Function3;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hudi's storage lock provider itself, over a client of ours for Google's XML API without signatures: its own clients
 * are in modules outside the bundle. Settings: Hudi's keys, and `endpoint`.
 */
final class StorageContender extends Contender {
    private final StorageBasedLockProvider provider;

    private StorageContender(StorageBasedLockProvider provider) {
        this.provider = provider;
    }

    @Override
    boolean acquire() {
        return provider.tryLock(waitMs, TimeUnit.MILLISECONDS);
    }

    @Override
    void release() {
        provider.unlock();
    }

    public static void main(String[] arguments) throws Exception {
        TypedProperties properties = new TypedProperties();
        Map<String, String> given = settings(arguments, 2);
        given.forEach(properties::setProperty);
        Constructor<StorageBasedLockProvider> made = StorageBasedLockProvider.class.getDeclaredConstructor(
                String.class, TypedProperties.class, Function3.class, Function3.class, Logger.class,
                HoodieLockMetrics.class);
        made.setAccessible(true);
        Function3<String, Long, Supplier<Boolean>, HeartbeatManager> heartbeats = LockProviderHeartbeatManager::new;
        Function3<String, String, TypedProperties, StorageLockClient> clients =
                (owner, uri, all) -> new XmlClient(given.get("endpoint"), uri);
        Logger logger = LoggerFactory.getLogger(StorageContender.class);
        String owner = java.util.UUID.randomUUID().toString();
        new StorageContender(made.newInstance(owner, properties, heartbeats, clients, logger, null)).run(arguments);
    }

    /** Reads and conditional writes of one object. */
    private static final class XmlClient implements StorageLockClient {
        private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        private final String endpoint;
        private final URI address;

        XmlClient(String endpoint, String lockFile) {
            this.endpoint = endpoint;
            this.address = locate(lockFile);
        }

        private URI locate(String file) {
            return URI.create(endpoint + "/" + file.substring(file.indexOf("://") + 3));
        }

        @Override
        public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
                StorageLockData data, Option<StorageLockFile> previous) {
            String generation = previous.isPresent() ? previous.get().getVersionId() : "0";
            HttpResponse<byte[]> answer = send(HttpRequest.newBuilder(address)
                    .header("x-goog-if-generation-match", generation)
                    .PUT(HttpRequest.BodyPublishers.ofByteArray(StorageLockFile.toByteArray(data))));
            if (answer.statusCode() == 200) {
                String version = answer.headers().firstValue("x-goog-generation").get();
                return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(data, version)));
            }
            boolean others = answer.statusCode() == 412;
            return Pair.of(others ? LockUpsertResult.ACQUIRED_BY_OTHERS : LockUpsertResult.UNKNOWN_ERROR, Option.empty());
        }

        @Override
        public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
            HttpResponse<byte[]> answer = send(HttpRequest.newBuilder(address).GET());
            if (answer.statusCode() == 404) {
                return Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
            }
            String version = answer.headers().firstValue("x-goog-generation").orElse("");
            StorageLockFile file = StorageLockFile.createFromStream(new ByteArrayInputStream(answer.body()), version);
            return Pair.of(LockGetResult.SUCCESS, Option.of(file));
        }

        @Override
        public Option<String> readObject(String file, boolean checkFirst) {
            HttpResponse<byte[]> answer = send(HttpRequest.newBuilder(locate(file)).GET());
            return answer.statusCode() == 200 ? Option.of(new String(answer.body())) : Option.empty();
        }

        @Override
        public boolean writeObject(String file, String content) {
            return send(HttpRequest.newBuilder(locate(file)).PUT(HttpRequest.BodyPublishers.ofString(content)))
                    .statusCode() == 200;
        }

        private HttpResponse<byte[]> send(HttpRequest.Builder request) {
            try {
                return http.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
        }

        @Override
        public void close() {}
    }
}
