"""Keys of indexes: how the file group of a record key is found."""

from __future__ import annotations

from hudi_locks.config.key import Key

INDEX_TYPE = Key(
    "hoodie.index.type",
    str,
    "SIMPLE",
    "how the file group of a key is found",
    choices=(
        "SIMPLE",
        "GLOBAL_SIMPLE",
        "BUCKET",
        "BLOOM",
        "GLOBAL_BLOOM",
        "HBASE",
        "INMEMORY",
        "FLINK_STATE",
        "RECORD_INDEX",
        "GLOBAL_RECORD_LEVEL_INDEX",
        "RECORD_LEVEL_INDEX",
    ),
)
INDEX_CLASS = Key(
    "hoodie.index.class",
    str,
    "",
    "Java class that finds the file group of a key",
    since="0.5.1",
    accepted=("",),
    refusal="Java code is not run here; name an index by hoodie.index.type",
)
BUCKET_INDEX_ENGINE = Key(
    "hoodie.index.bucket.engine",
    str,
    "SIMPLE",
    "kind of bucket index; CONSISTENT_HASHING, whose buckets clustering splits and merges, on merge-on-read tables",
    since="0.11.0",
    choices=("SIMPLE", "CONSISTENT_HASHING"),
)
BUCKET_INDEX_NUM_BUCKETS = Key(
    "hoodie.bucket.index.num.buckets", int, 256, "buckets of each partition", since="0.10.0", minimum=1
)
BUCKET_INDEX_HASH_FIELD = Key(
    "hoodie.bucket.index.hash.field",
    str,
    None,
    "record key columns that choose the bucket, comma-separated; all when absent",
    since="0.10.0",
)
BUCKET_INDEX_MAX_NUM_BUCKETS = Key(
    "hoodie.bucket.index.max.num.buckets",
    int,
    None,
    "up to how many buckets of CONSISTENT_HASHING a partition is split; at least"
    " hoodie.bucket.index.num.buckets, which is the default",
    since="0.13.0",
    minimum=1,
)
BUCKET_INDEX_MIN_NUM_BUCKETS = Key(
    "hoodie.bucket.index.min.num.buckets",
    int,
    None,
    "down to how many buckets of CONSISTENT_HASHING a partition is merged; at most"
    " hoodie.bucket.index.num.buckets, which is the default",
    since="0.13.0",
    minimum=1,
)
BUCKET_INDEX_SPLIT_THRESHOLD = Key(
    "hoodie.bucket.index.split.threshold",
    str,
    "2.0",
    "clustering splits a bucket of CONSISTENT_HASHING whose file group is larger than so many times"
    " hoodie.parquet.max.file.size",
    since="0.13.0",
)
BUCKET_INDEX_MERGE_THRESHOLD = Key(
    "hoodie.bucket.index.merge.threshold",
    str,
    "0.2",
    "clustering merges neighbouring buckets of CONSISTENT_HASHING whose file groups are up to so many times"
    " hoodie.parquet.max.file.size",
    since="0.13.0",
)
BUCKET_INDEX_PARTITION_EXPRESSIONS = Key(
    "hoodie.bucket.index.partition.expressions",
    str,
    None,
    "other numbers of buckets for some partitions: regex,number;...",
    since="1.1.0",
)
BUCKET_INDEX_PARTITION_RULE_TYPE = Key(
    "hoodie.bucket.index.partition.rule.type",
    str,
    "regex",
    "how partition expressions are matched",
    since="1.1.0",
    choices=("regex",),
    accepted=("regex",),
    refusal="it is the only one; leave it out",
)
BLOOM_NUM_ENTRIES = Key(
    "hoodie.index.bloom.num_entries",
    int,
    60_000,
    "most keys that the bloom filter of a base file is made for, if its kind is SIMPLE; with more it errs more often",
    minimum=1,
)
BLOOM_FPP = Key(
    "hoodie.index.bloom.fpp",
    str,
    "0.000000001",
    "share of other keys that seem to be in that filter, above 0 and below 1",
)
BLOOM_FILTER_TYPE = Key(
    "hoodie.bloom.index.filter.type",
    str,
    "DYNAMIC_V0",
    "which limit that filter has: SIMPLE hoodie.index.bloom.num_entries, DYNAMIC_V0 the one that is named after it",
    choices=("SIMPLE", "DYNAMIC_V0"),
)
BLOOM_DYNAMIC_MAX_ENTRIES = Key(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    int,
    100_000,
    "the same limit for a filter of the kind DYNAMIC_V0",
    minimum=1,
)
BLOOM_FILTER_ENABLED = Key(
    "hoodie.parquet.bloom.filter.enabled",
    bool,
    None,
    "whether base files have a bloom filter of their keys, else one that rules out none; by default with a bloom index",
    since="0.10.0",
)
SIMPLE_INDEX_UPDATE_PARTITION_PATH = Key(
    "hoodie.simple.index.update.partition.path",
    bool,
    True,
    "whether the global simple index moves a row whose partition changed",
)
BLOOM_INDEX_UPDATE_PARTITION_PATH = Key(
    "hoodie.bloom.index.update.partition.path",
    bool,
    True,
    "whether the global bloom index moves a row whose partition changed",
)
RECORD_INDEX_UPDATE_PARTITION_PATH = Key(
    "hoodie.record.index.update.partition.path",
    bool,
    False,
    "whether the record index moves a row whose partition changed",
    since="0.14.0",
)

_SPREAD = "it is how JVM Hudi spreads its lookup over tasks; here the files do, which are searched for the keys"
_PERSISTED = "the rows of a write are kept in memory and on disk until it ends"
BLOOM_INDEX_PARALLELISM = Key(
    "hoodie.bloom.index.parallelism", int, 0, "tasks of a lookup by the bloom index", no_effect=_SPREAD
)
SIMPLE_INDEX_PARALLELISM = Key(
    "hoodie.simple.index.parallelism", int, 0, "tasks of a lookup by the simple index", no_effect=_SPREAD
)
GLOBAL_SIMPLE_INDEX_PARALLELISM = Key(
    "hoodie.global.simple.index.parallelism", int, 0, "tasks of a lookup by the global simple index", no_effect=_SPREAD
)
BLOOM_INDEX_PRUNE_BY_RANGES = Key(
    "hoodie.bloom.index.prune.by.ranges",
    bool,
    True,
    "whether files are left out by the ranges of their keys",
    accepted=("true",),
    no_effect="files and row groups that cannot have a key are never read for it",
)
BLOOM_INDEX_USE_CACHING = Key(
    "hoodie.bloom.index.use.caching",
    bool,
    True,
    "whether the rows of a write are kept while the bloom index looks keys up",
    accepted=("true",),
    no_effect=_PERSISTED,
)
SIMPLE_INDEX_USE_CACHING = Key(
    "hoodie.simple.index.use.caching",
    bool,
    True,
    "the same for the simple index",
    accepted=("true",),
    no_effect=_PERSISTED,
)
BLOOM_INDEX_STORAGE_LEVEL = Key(
    "hoodie.bloom.index.input.storage.level",
    str,
    "MEMORY_AND_DISK_SER",
    "where the rows of a write are kept while the bloom index looks keys up",
    accepted=("MEMORY_AND_DISK_SER", "MEMORY_AND_DISK"),
    no_effect=_PERSISTED,
)
SIMPLE_INDEX_STORAGE_LEVEL = Key(
    "hoodie.simple.index.input.storage.level",
    str,
    "MEMORY_AND_DISK_SER",
    "the same for the simple index",
    accepted=("MEMORY_AND_DISK_SER", "MEMORY_AND_DISK"),
    no_effect=_PERSISTED,
)
BLOOM_INDEX_TREE_FILTER = Key(
    "hoodie.bloom.index.use.treebased.filter",
    bool,
    True,
    "whether the bloom index finds files for a key by a tree of their ranges",
    accepted=("true",),
    no_effect=_SPREAD,
)
BLOOM_INDEX_BUCKETIZED_CHECKING = Key(
    "hoodie.bloom.index.bucketized.checking",
    bool,
    True,
    "whether the bloom index cuts the keys of a file into pieces",
    accepted=("true",),
    no_effect=_SPREAD,
)
BLOOM_INDEX_KEYS_PER_BUCKET = Key(
    "hoodie.bloom.index.keys.per.bucket", int, 10_000_000, "keys in such a piece", no_effect=_SPREAD
)
BLOOM_INDEX_SORTING = Key(
    "hoodie.bloom.index.fileid.key.sorting.enable",
    bool,
    False,
    "whether the bloom index sorts pairs of file and key before it looks",
    since="1.1.0",
    accepted=("false",),
    no_effect=_SPREAD,
)
BLOOM_INDEX_USE_METADATA = Key(
    "hoodie.bloom.index.use.metadata",
    bool,
    False,
    "whether the bloom index takes filters from the metadata table",
    since="0.11.0",
    accepted=("false",),
    no_effect="filters are read from the footers of base files, which have the same",
)
