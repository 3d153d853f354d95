"""Keys of locks and of the services behind them: hoodie.write.lock.*, hoodie.aws.*, hoodie.base.path."""

from __future__ import annotations

from typing import Final

from hudi_locks.config.key import Key

PROVIDER = Key(
    "hoodie.write.lock.provider",
    str,
    None,
    "lock provider: a short name, an entry point, package.module:Class, or Hudi's Java class name; there is no default",
    since="0.8.0",
)
WAIT_TIME_MS = Key(
    "hoodie.write.lock.wait_time_ms",
    int,
    60_000,
    "longest wait of one attempt to acquire the lock, in ms; also the lease of the DynamoDB provider",
    since="0.8.0",
    minimum=0,
)
NUM_RETRIES = Key(
    "hoodie.write.lock.num_retries",
    int,
    15,
    "how often one attempt asks the lock service again after its first time",
    since="0.8.0",
    minimum=0,
)
WAIT_TIME_MS_BETWEEN_RETRY = Key(
    "hoodie.write.lock.wait_time_ms_between_retry",
    int,
    1_000,
    "first pause between two requests of one attempt, in ms; doubles each time",
    since="0.8.0",
    minimum=0,
)
MAX_WAIT_TIME_MS_BETWEEN_RETRY = Key(
    "hoodie.write.lock.max_wait_time_ms_between_retry",
    int,
    16_000,
    "longest pause between two requests of one attempt, in ms",
    since="0.8.0",
    minimum=0,
)
CLIENT_NUM_RETRIES = Key(
    "hoodie.write.lock.client.num_retries",
    int,
    50,
    "how many attempts to acquire the lock may follow the first one",
    since="0.8.0",
    minimum=0,
)
CLIENT_WAIT_TIME_MS_BETWEEN_RETRY = Key(
    "hoodie.write.lock.client.wait_time_ms_between_retry",
    int,
    5_000,
    "pause between two attempts to acquire the lock, in ms",
    aliases=("hoodie.write.lock.client.wait_time_ms",),
    since="0.8.0",
    minimum=0,
)
HEARTBEAT_INTERVAL_MS = Key(
    "hoodie.write.lock.heartbeat_interval_ms",
    int,
    60_000,
    "time between two renewals of a held lock, in ms",
    since="0.15.0",
    minimum=1,
)
APP_ID = Key(
    "hoodie.write.lock.app_id", str, None, "what a person would call the job that holds the lock", since="1.2.0"
)
CONFLICT_RESOLUTION_STRATEGY = Key(
    "hoodie.write.lock.conflict.resolution.strategy",
    str,
    "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy",
    "how overlapping commits are judged: simple, bucket, prefer_writer, Hudi's Java names of these, or"
    " package.module:Class; buckets are compared wherever there is a bucket index",
    since="0.8.0",
)

ZOOKEEPER_URL = Key(
    "hoodie.write.lock.zookeeper.url", str, None, "ZooKeeper servers as host:port,host:port[/chroot]", since="0.8.0"
)
ZOOKEEPER_PORT = Key(
    "hoodie.write.lock.zookeeper.port", str, None, "ZooKeeper port for hosts of the url that name none", since="0.8.0"
)
ZOOKEEPER_BASE_PATH = Key(
    "hoodie.write.lock.zookeeper.base_path",
    str,
    None,
    "node under which the lock's node is made; the same for all writers of the table",
    since="0.8.0",
)
ZOOKEEPER_LOCK_KEY = Key(
    "hoodie.write.lock.zookeeper.lock_key",
    str,
    None,
    "node of the lock below base_path; the table's name when absent",
    since="0.8.0",
)
ZOOKEEPER_SESSION_TIMEOUT_MS = Key(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    int,
    60_000,
    "after this silence ZooKeeper ends the session and frees the lock, in ms",
    since="0.8.0",
    minimum=1,
)
ZOOKEEPER_CONNECTION_TIMEOUT_MS = Key(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    int,
    15_000,
    "longest wait for a connection to ZooKeeper, in ms",
    since="0.8.0",
    minimum=1,
)
IMPLICIT_KEY_NORMALISE = Key(
    "hudi_locks.implicit_key.normalise",
    bool,
    True,
    "whether implicit lock keys ignore blanks around the base path and slashes at its end, as Hudi after 1.2 does; for"
    " paths without them, either value joins Hudi 1.0 and later",
)

HIVE_DATABASE = Key(
    "hoodie.write.lock.hivemetastore.database", str, None, "Hive database of the locked table", since="0.8.0"
)
HIVE_TABLE = Key("hoodie.write.lock.hivemetastore.table", str, None, "Hive table to lock", since="0.8.0")
HIVE_URIS = Key(
    "hoodie.write.lock.hivemetastore.uris",
    str,
    None,
    "metastores as thrift://host:port,...; from hive-site.xml when absent",
    since="0.8.0",
)

FILESYSTEM_PATH = Key(
    "hoodie.write.lock.filesystem.path",
    str,
    None,
    "folder of the lock file; <base>/.hoodie when absent",
    since="0.8.0",
)
FILESYSTEM_EXPIRE = Key(
    "hoodie.write.lock.filesystem.expire",
    int,
    0,
    "minutes without a sign of life after which others may take the lock file over; 0 for never",
    since="0.12.0",
    minimum=0,
)
FILESYSTEM_DEFAULT_FOLDER = Key(
    "hudi_locks.filesystem.default_folder",
    str,
    ".hoodie",
    "where the lock file lies when hoodie.write.lock.filesystem.path is absent: .hoodie as Hudi 0.12 to 1.1 has it,"
    " .hoodie/.aux as later ones",
    choices=(".hoodie", ".hoodie/.aux"),
)
FILESYSTEM_WEBHDFS_URL = Key(
    "hudi_locks.filesystem.webhdfs_url",
    str,
    None,
    "WebHDFS of the name nodes of an hdfs path, as http://host:9870,http://host:9870; without it the Hadoop"
    " configuration of the running Spark or of HADOOP_CONF_DIR is asked; where that says nothing a lock needs"
    " hdfs-native or libhdfs, and a table hdfs-native, or it asks port 9870 of the host in its path",
)
HDFS_CLIENT = Key(
    "hudi_locks.hdfs.client",
    str,
    "auto",
    "by what a table on hdfs:// is reached: webhdfs; native, which is Hadoop's own protocol, with Kerberos, by the"
    " package hdfs-native; or auto: webhdfs where its address is known, else native where that is installed",
    choices=("auto", "webhdfs", "native"),
)
ATOMIC_CREATION_SUPPORT = Key(
    "hoodie.fs.atomic_creation.support",
    str,
    "",
    "comma-separated schemes, beyond file and HDFS, whose exclusive create is atomic",
    since="0.14.0",
)

DYNAMODB_TABLE = Key(
    "hoodie.write.lock.dynamodb.table", str, "hudi_locks", "DynamoDB table that holds the locks", since="0.10.0"
)
DYNAMODB_PARTITION_KEY = Key(
    "hoodie.write.lock.dynamodb.partition_key",
    str,
    None,
    "value of the item's attribute 'key'; the table's name when absent",
    since="0.10.0",
)
DYNAMODB_REGION = Key(
    "hoodie.write.lock.dynamodb.region",
    str,
    None,
    "AWS region; the environment's AWS_REGION, else us-east-1, when absent",
    since="0.10.0",
)
DYNAMODB_ENDPOINT_URL = Key(
    "hoodie.write.lock.dynamodb.endpoint_url", str, None, "address of another DynamoDB service", since="0.10.1"
)
DYNAMODB_BILLING_MODE = Key(
    "hoodie.write.lock.dynamodb.billing_mode",
    str,
    "PAY_PER_REQUEST",
    "billing of the lock table when it is made",
    since="0.10.0",
    choices=("PAY_PER_REQUEST", "PROVISIONED"),
)
DYNAMODB_READ_CAPACITY = Key(
    "hoodie.write.lock.dynamodb.read_capacity", int, 20, "read units, PROVISIONED only", since="0.10.0", minimum=1
)
DYNAMODB_WRITE_CAPACITY = Key(
    "hoodie.write.lock.dynamodb.write_capacity", int, 10, "write units, PROVISIONED only", since="0.10.0", minimum=1
)
DYNAMODB_TABLE_CREATION_TIMEOUT = Key(
    "hoodie.write.lock.dynamodb.table_creation_timeout",
    int,
    120_000,
    "longest wait for a table just made, in ms",
    since="0.10.0",
    minimum=1,
)

STORAGE_VALIDITY_TIMEOUT_SECS = Key(
    "hoodie.write.lock.storage.validity.timeout.secs",
    int,
    300,
    "lease of the storage lock, in seconds; at least ten renewals long",
    since="1.0.2",
    minimum=10,
)
STORAGE_RENEW_INTERVAL_SECS = Key(
    "hoodie.write.lock.storage.renew.interval.secs",
    int,
    30,
    "time between two renewals of the storage lock, in seconds",
    aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
    since="1.0.2",
    minimum=1,
)
STORAGE_ENDPOINT_URL = Key(
    "hudi_locks.storage.endpoint_url",
    str,
    None,
    "address of another object store that speaks S3, Google Cloud Storage or Azure; the cloud's own when absent",
)
STORAGE_REGION = Key(
    "hudi_locks.storage.region",
    str,
    None,
    "region of the S3 bucket; AWS_REGION, else us-east-1, when absent",
)
STORAGE_PATH_STYLE = Key(
    "hudi_locks.storage.path_style",
    bool,
    True,
    "whether an S3 bucket's name stands in the path of an address, or before its host; AWS takes both when absent",
)
STORAGE_ALLOW_HTTP = Key(
    "hudi_locks.storage.allow_http", bool, False, "whether the object store may be spoken to without TLS"
)
STORAGE_SKIP_SIGNATURE = Key(
    "hudi_locks.storage.skip_signature", bool, False, "whether requests go out unsigned, as emulators want it"
)
STORAGE_SERVICE_ACCOUNT_FILE = Key(
    "hudi_locks.storage.service_account_file",
    str,
    None,
    "file with the key of a Google service account, on every machine; GOOGLE_APPLICATION_CREDENTIALS when absent",
)
AZURE_CONNECTION_STRING = Key(
    "hoodie.write.lock.azure.connection.string", str, None, "Azure connection string", since="1.2.0", secret=True
)
AZURE_SAS_TOKEN = Key(
    "hoodie.write.lock.azure.sas.token", str, None, "Azure shared access signature", since="1.2.0", secret=True
)
AZURE_MANAGED_IDENTITY_CLIENT_ID = Key(
    "hoodie.write.lock.azure.managed.identity.client.id", str, None, "client id of a managed identity", since="1.2.0"
)
AZURE_CLIENT_TENANT_ID = Key("hoodie.write.lock.azure.client.tenant.id", str, None, "Entra tenant", since="1.2.0")
AZURE_CLIENT_ID = Key("hoodie.write.lock.azure.client.id", str, None, "Entra client id", since="1.2.0")
AZURE_CLIENT_SECRET = Key(
    "hoodie.write.lock.azure.client.secret", str, None, "Entra client secret", since="1.2.0", secret=True
)

AWS_ACCESS_KEY = Key(
    "hoodie.aws.access.key", str, None, "AWS access key; the default chain when absent", since="0.10.0", secret=True
)
AWS_SECRET_KEY = Key("hoodie.aws.secret.key", str, None, "AWS secret key", since="0.10.0", secret=True)
AWS_SESSION_TOKEN = Key("hoodie.aws.session.token", str, None, "AWS session token", since="0.10.0", secret=True)
AWS_ROLE_ARN = Key("hoodie.aws.role.arn", str, None, "AWS role to assume", since="0.15.0")
AWS_ROLE_SESSION_NAME = Key(
    "hoodie.aws.role.session.name", str, "hoodie", "session name of the assumed role", since="0.15.0"
)
AWS_ROLE_EXTERNAL_ID = Key(
    "hoodie.aws.role.external.id", str, None, "external id of the assumed role", since="0.15.0", secret=True
)

CHAIN_PROVIDERS = Key(
    "hudi_locks.chain.providers",
    str,
    None,
    "the old and the new lock provider of a migration, as zookeeper,dynamodb: both are held, in this order",
)
CHAIN_TOKEN = Key(
    "hudi_locks.chain.token",
    str,
    "first",
    "whose fencing token a hold of both carries: first while writers with the old lock alone are about, second while"
    " writers with the new one alone are",
    choices=("first", "second"),
)
CHAIN_FIRST: Final = "hudi_locks.chain.first."
CHAIN_SECOND: Final = "hudi_locks.chain.second."
"""Before any other key: it is for that one of the two providers alone."""

METRICS_LOCK_ENABLE = Key(
    "hoodie.metrics.lock.enable",
    bool,
    False,
    "whether lock metrics are kept",
    since="0.13.0",
    no_effect="lock metrics are always kept; hudi_locks.observe hands them on",
)
AUTO_ADJUST_LOCK_CONFIGS = Key(
    "hoodie.auto.adjust.lock.configs",
    bool,
    False,
    "JVM writers only: may replace the provider by the in-process one",
    since="0.11.0",
    accepted=("false",),
    no_effect="the lock provider is always the one that is named",
)
WAIT_KEYS: Final[tuple[Key[int], ...]] = (
    WAIT_TIME_MS,
    NUM_RETRIES,
    WAIT_TIME_MS_BETWEEN_RETRY,
    MAX_WAIT_TIME_MS_BETWEEN_RETRY,
    CLIENT_NUM_RETRIES,
    CLIENT_WAIT_TIME_MS_BETWEEN_RETRY,
)
"""Those that say how long a writer waits for a lock."""
