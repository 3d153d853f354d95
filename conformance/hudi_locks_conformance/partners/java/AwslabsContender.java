import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import java.net.URI;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/** The awslabs lock client with the options that Hudi gives it. Settings: endpoint, table, key, lease_ms, delete. */
final class AwslabsContender extends Contender {
    private static final long REFRESH_MS = 10;

    private final AmazonDynamoDBLockClient client;
    private final AcquireLockOptions.AcquireLockOptionsBuilder wanted;
    private LockItem held;

    private AwslabsContender(AmazonDynamoDBLockClient client, Map<String, String> settings) {
        this.client = client;
        wanted = AcquireLockOptions.builder(settings.get("key"))
                .withTimeUnit(TimeUnit.MILLISECONDS)
                .withRefreshPeriod(REFRESH_MS)
                .withDeleteLockOnRelease(Boolean.parseBoolean(settings.get("delete")));
    }

    @Override
    boolean acquire() throws Exception {
        Optional<LockItem> found = client.tryAcquireLock(wanted.withAdditionalTimeToWaitForLock(waitMs).build());
        held = found.orElse(null);
        return found.isPresent();
    }

    @Override
    void release() {
        client.releaseLock(held);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = settings(arguments, 2);
        DynamoDbClient service = DynamoDbClient.builder()
                .endpointOverride(URI.create(settings.get("endpoint")))
                .region(Region.US_EAST_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("any", "any")))
                .build();
        long leaseMs = Long.parseLong(settings.get("lease_ms"));
        new AwslabsContender(
                        new AmazonDynamoDBLockClient(
                                AmazonDynamoDBLockClientOptions.builder(service, settings.get("table"))
                                        .withTimeUnit(TimeUnit.MILLISECONDS)
                                        .withLeaseDuration(leaseMs)
                                        .withHeartbeatPeriod(leaseMs / 3)
                                        .withCreateHeartbeatBackgroundThread(true)
                                        .build()),
                        settings)
                .run(arguments);
    }
}
