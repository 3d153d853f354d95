"""Keys of clustering: when it is scheduled, what it takes, how it sorts."""

from __future__ import annotations

from hudi_locks.config.key import Key

INLINE = Key(
    "hoodie.clustering.inline",
    bool,
    False,
    "whether a write clusters after its commit, when enough commits came since the last time",
    since="0.7.0",
)
SCHEDULE_INLINE = Key(
    "hoodie.clustering.schedule.inline",
    bool,
    False,
    "whether a write only plans clustering when it is due",
    since="0.12.0",
    accepted=("false",),
    refusal="a write that plans clustering runs it here; plan it by `hudi-locks cluster --schedule`",
)
INLINE_MAX_COMMITS = Key(
    "hoodie.clustering.inline.max.commits",
    int,
    4,
    "how many commits make inline clustering due",
    since="0.7.0",
    minimum=1,
)
ASYNC_ENABLED = Key(
    "hoodie.clustering.async.enabled",
    bool,
    False,
    "whether a thread of its own clusters beside the next write",
    since="0.7.0",
)
ASYNC_MAX_COMMITS = Key(
    "hoodie.clustering.async.max.commits",
    int,
    4,
    "how many commits make asynchronous clustering due",
    since="0.9.0",
    minimum=1,
)
_PACKAGE = "org.apache.hudi.client.clustering."
BY_SIZE = f"{_PACKAGE}plan.strategy.SparkSizeBasedClusteringPlanStrategy"
BY_BUCKET = f"{_PACKAGE}plan.strategy.SparkConsistentBucketClusteringPlanStrategy"
PLAN_STRATEGY_CLASS = Key(
    "hoodie.clustering.plan.strategy.class",
    str,
    None,
    "what a plan takes: small files, or buckets of CONSISTENT_HASHING, which it splits and merges; each is the default"
    " of the tables that it is for, and hoodie.clustering.plan.partition.filter.mode chooses partitions",
    since="0.7.0",
    choices=(BY_SIZE, BY_BUCKET),
)
EXECUTION_STRATEGY_CLASS = Key(
    "hoodie.clustering.execution.strategy.class",
    str,
    None,
    "what runs a plan in JVM Hudi",
    since="0.7.0",
    accepted=(
        f"{_PACKAGE}run.strategy.SparkSortAndSizeExecutionStrategy",
        f"{_PACKAGE}run.strategy.SingleSparkJobExecutionStrategy",
        f"{_PACKAGE}run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
        f"{_PACKAGE}run.strategy.SingleSparkJobConsistentHashingExecutionStrategy",
    ),
    refusal="a plan says what becomes of its file groups, and is run accordingly; leave it out",
)
SMALL_FILE_LIMIT = Key(
    "hoodie.clustering.plan.strategy.small.file.limit",
    int,
    300 * 1024 * 1024,
    "base files below it are clustered, in bytes; without effect on buckets",
    since="0.7.0",
    minimum=0,
)
TARGET_FILE_MAX_BYTES = Key(
    "hoodie.clustering.plan.strategy.target.file.max.bytes",
    int,
    1024 * 1024 * 1024,
    "target size of a file that clustering writes, in bytes; without effect on buckets",
    since="0.7.0",
    minimum=1,
)
MAX_BYTES_PER_GROUP = Key(
    "hoodie.clustering.plan.strategy.max.bytes.per.group",
    int,
    2 * 1024 * 1024 * 1024,
    "how much is sorted together, in bytes; without effect on buckets",
    since="0.7.0",
    minimum=1,
)
MAX_NUM_GROUPS = Key(
    "hoodie.clustering.plan.strategy.max.num.groups",
    int,
    30,
    "how many such groups one plan has",
    since="0.7.0",
    minimum=1,
)
SINGLE_GROUP = Key(
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
    bool,
    True,
    "whether a file that is alone in its group is sorted too; without effect on buckets",
    since="0.14.0",
)
SORT_COLUMNS = Key(
    "hoodie.clustering.plan.strategy.sort.columns",
    str,
    None,
    "columns that clustering sorts by, comma-separated; without them it only joins small files",
    since="0.7.0",
)
PARTITION_FILTER_MODE = Key(
    "hoodie.clustering.plan.partition.filter.mode",
    str,
    "NONE",
    "which partitions are clustered: all, the last ones by name, or those from one to another",
    since="0.11.0",
    choices=("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS"),
)
LOOKBACK_PARTITIONS = Key(
    "hoodie.clustering.plan.strategy.daybased.lookback.partitions",
    int,
    2,
    "how many partitions RECENT_DAYS takes",
    since="0.7.0",
    minimum=1,
)
SKIP_PARTITIONS = Key(
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
    int,
    0,
    "how many of the last partitions RECENT_DAYS leaves out first",
    since="0.9.0",
    minimum=0,
)
BEGIN_PARTITION = Key(
    "hoodie.clustering.plan.strategy.cluster.begin.partition",
    str,
    None,
    "first partition that SELECTED_PARTITIONS takes",
    since="0.11.0",
)
END_PARTITION = Key(
    "hoodie.clustering.plan.strategy.cluster.end.partition",
    str,
    None,
    "last partition that SELECTED_PARTITIONS takes",
    since="0.11.0",
)
PARTITION_SELECTED = Key(
    "hoodie.clustering.plan.strategy.partition.selected",
    str,
    None,
    "partition paths that alone are clustered, comma-separated",
    since="0.11.0",
)
PARTITION_REGEX = Key(
    "hoodie.clustering.plan.strategy.partition.regex.pattern",
    str,
    None,
    "a regular expression; partitions whose whole path it matches alone are clustered",
    since="0.11.0",
)
UPDATES_STRATEGY = Key(
    "hoodie.clustering.updates.strategy",
    str,
    "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy",
    "what gives way where a write changes a file group that waits to be clustered",
    since="0.7.0",
    accepted=("org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy",),
    no_effect=(
        "the write gives way; let the clustering do so by hoodie.write.lock.conflict.resolution.strategy=prefer_writer,"
        " given to writers and clustering"
    ),
)
