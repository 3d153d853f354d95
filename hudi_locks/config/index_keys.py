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
BUCKET_INDEX_ENGINE = Key(
    "hoodie.index.bucket.engine",
    str,
    "SIMPLE",
    "kind of bucket index",
    since="0.11.0",
    choices=("SIMPLE", "CONSISTENT_HASHING"),
    accepted=("SIMPLE",),
    refusal="buckets are counted once and never split here; use SIMPLE, or write to the table with JVM Hudi",
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
