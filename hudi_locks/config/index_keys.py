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
    "keys that the bloom filter of a base file is made for",
    minimum=1,
    no_effect="the filter of a base file excludes no key here, and keys are looked for in all files",
)
BLOOM_FPP = Key(
    "hoodie.index.bloom.fpp",
    str,
    "0.000000001",
    "share of wrong answers of that filter",
    no_effect="the filter of a base file excludes no key here, and keys are looked for in all files",
)
BLOOM_FILTER_TYPE = Key(
    "hoodie.bloom.index.filter.type",
    str,
    "DYNAMIC_V0",
    "kind of that filter",
    choices=("SIMPLE", "DYNAMIC_V0"),
    no_effect="the filter of a base file excludes no key here, and keys are looked for in all files",
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
