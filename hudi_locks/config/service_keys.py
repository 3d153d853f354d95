"""Keys of table services: clean, archival of the timeline, and what is swept before a write."""

from __future__ import annotations

from hudi_locks.config.key import Key

KEEP_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_HOURS = "KEEP_LATEST_BY_HOURS"
KEEP_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"

TABLE_SERVICES = Key(
    "hoodie.table.services.enabled",
    bool,
    True,
    "false has a writer run and plan no table service at all after its writes, whatever else is asked for",
    since="0.11.0",
)
CLEAN_AUTOMATIC = Key(
    "hoodie.clean.automatic",
    bool,
    True,
    "whether old versions of files are removed after each write",
    since="0.4.1",
)
CLEAN_ASYNC = Key(
    "hoodie.clean.async.enabled",
    bool,
    False,
    "whether that is done on a thread of its own, beside the next write",
    aliases=("hoodie.clean.async",),
    since="0.7.0",
)
CLEAN_POLICY = Key(
    "hoodie.clean.policy",
    str,
    KEEP_COMMITS,
    "which old versions are kept: what the last commits, or the last hours, show, or a number of versions of each file"
    " group",
    aliases=("hoodie.cleaner.policy",),
    since="0.4.0",
    choices=(KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS),
)
CLEAN_COMMITS_RETAINED = Key(
    "hoodie.clean.commits.retained",
    int,
    10,
    "how many commits can still be read as of their time",
    aliases=("hoodie.cleaner.commits.retained",),
    since="0.4.0",
    minimum=1,
)
CLEAN_HOURS_RETAINED = Key(
    "hoodie.clean.hours.retained",
    int,
    24,
    "for how many hours back the table can still be read",
    aliases=("hoodie.cleaner.hours.retained",),
    since="0.11.0",
    minimum=0,
)
CLEAN_FILE_VERSIONS_RETAINED = Key(
    "hoodie.clean.fileversions.retained",
    int,
    3,
    "how many versions of each file group are kept",
    aliases=("hoodie.cleaner.fileversions.retained",),
    since="0.4.0",
    minimum=1,
)
CLEAN_TRIGGER_MAX_COMMITS = Key(
    "hoodie.clean.trigger.max.commits",
    int,
    1,
    "how many commits there must be since the last clean before the next one",
    aliases=("hoodie.clean.max.commits",),
    since="0.7.0",
    minimum=1,
)
CLEAN_INCREMENTAL = Key(
    "hoodie.clean.incremental.enabled",
    bool,
    True,
    "whether a clean looks only into partitions that changed since the last one",
    aliases=("hoodie.cleaner.incremental.mode",),
    since="0.4.0",
)
CLEAN_BOOTSTRAP_SOURCES = Key(
    "hoodie.cleaner.delete.bootstrap.base.file",
    bool,
    False,
    "whether a clean takes the file of which a table was made, with the skeleton that it belongs to",
    aliases=("hoodie.clean.delete.bootstrap.base.file",),
    since="0.6.0",
    accepted=("false",),
    refusal="files outside of a table are never removed here; let JVM Hudi clean such a table",
)
_CLEANS_EVERYWHERE = (
    "a clean here looks into every partition, and would remove what the option keeps; set hoodie.clean.automatic=false"
    " and let JVM Hudi clean the table, or leave the option out"
)
CLEAN_PARTITIONS = Key(
    "hoodie.clean.partition.filter.selected",
    str,
    "",
    "partitions that are cleaned, and no other",
    aliases=("hoodie.cleaner.partition.filter.selected",),
    accepted=("",),
    refusal=_CLEANS_EVERYWHERE,
)
CLEAN_PARTITION_PATTERN = Key(
    "hoodie.clean.partition.filter.regex",
    str,
    "",
    "pattern of partitions that are cleaned, and no other",
    aliases=("hoodie.cleaner.partition.filter.regex",),
    accepted=("",),
    refusal=_CLEANS_EVERYWHERE,
)
CLEAN_TRIGGER_STRATEGY = Key(
    "hoodie.clean.trigger.strategy",
    str,
    "NUM_COMMITS",
    "what makes a clean due",
    since="0.8.0",
    accepted=("NUM_COMMITS",),
    no_effect="a clean is due by the number of commits: hoodie.clean.trigger.max.commits",
)
SERVICE_MANAGER = Key(
    "hoodie.table.service.manager.enabled",
    bool,
    False,
    "whether table services are handed to a service of their own",
    since="0.13.0",
    accepted=("false",),
    refusal="no such service is asked here; set hoodie.table.services.enabled=false and let JVM writers hand them over",
)
CLEAN_PARALLELISM = Key(
    "hoodie.clean.parallelism",
    int,
    200,
    "how many files are removed side by side",
    aliases=("hoodie.cleaner.parallelism",),
    since="0.4.0",
    minimum=1,
)

ARCHIVE_AUTOMATIC = Key(
    "hoodie.archive.automatic",
    bool,
    True,
    "whether old instants are archived after each write, once they were cleaned",
    since="0.11.0",
)
ARCHIVE_ASYNC = Key(
    "hoodie.archive.async",
    bool,
    False,
    "whether that is done on a thread of its own, beside the next write",
    since="0.11.0",
)
KEEP_MIN_COMMITS = Key(
    "hoodie.keep.min.commits",
    int,
    20,
    "how many commits stay on the active timeline; more than hoodie.clean.commits.retained",
    since="0.4.0",
    minimum=1,
)
KEEP_MAX_COMMITS = Key(
    "hoodie.keep.max.commits",
    int,
    30,
    "with more commits than this on the active timeline, the oldest are archived",
    since="0.4.0",
    minimum=1,
)
TIMELINE_COMPACTION_BATCH = Key(
    "hoodie.timeline.compaction.batch.size",
    int,
    10,
    "how many parts of the archived timeline are merged into one",
    since="1.0.0",
    minimum=2,
)
MANIFEST_RETAINED_VERSIONS = Key(
    "hoodie.timeline.manifest.retained.versions",
    int,
    3,
    "how many versions of the archived timeline stay readable",
    since="1.2.0",
    minimum=1,
)
SWEEP_BEFORE_WRITE = Key(
    "hudi_locks.sweep_before_write",
    bool,
    False,
    "whether markers, heartbeats and staged files of writes that are done, and data files that a marker of a rolled"
    " back write tells of, are removed before each write",
)
COLUMN_STATS_ENABLE = Key(
    "hoodie.metadata.index.column.stats.enable",
    bool,
    True,
    "whether a metadata table that is made here has ranges of columns, by which readers pass over files; those of one"
    " that is there are kept up to date in any case",
    since="0.11.0",
)
COLUMN_STATS_COLUMNS = Key(
    "hoodie.metadata.index.column.stats.column.list",
    str,
    "",
    "the columns of which it has ranges, comma-separated, besides Hudi's own; the first of the table if empty",
    since="0.11.0",
)
COLUMN_STATS_MOST = Key(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    int,
    32,
    "of how many columns it has ranges, if none is named",
    since="1.0.0",
    minimum=0,
)
RECORD_INDEX_ENABLE = Key(
    "hoodie.metadata.record.index.enable",
    bool,
    False,
    "whether a metadata table that is made here tells where the row of each key is, for hoodie.index.type=RECORD_INDEX",
    aliases=("hoodie.metadata.global.record.level.index.enable",),
    since="0.14.0",
)
RECORD_INDEX_LEAST_GROUPS = Key(
    "hoodie.metadata.record.index.min.filegroup.count",
    int,
    10,
    "over how many file groups such an index is spread at least",
    minimum=1,
    aliases=("hoodie.metadata.global.record.level.index.min.filegroup.count",),
    since="0.14.0",
)
RECORD_INDEX_MOST_GROUPS = Key(
    "hoodie.metadata.record.index.max.filegroup.count",
    int,
    10_000,
    "over how many file groups such an index is spread at most",
    minimum=1,
    aliases=("hoodie.metadata.global.record.level.index.max.filegroup.count",),
    since="0.14.0",
)
PARTITION_INDEX_ENABLE = Key(
    "hoodie.metadata.record.level.index.enable",
    bool,
    False,
    "whether it tells it by partition, for hoodie.index.type=RECORD_LEVEL_INDEX: a key may be in several partitions",
    since="1.1.0",
)
PARTITION_INDEX_LEAST_GROUPS = Key(
    "hoodie.metadata.record.level.index.min.filegroup.count",
    int,
    1,
    "over how many file groups of such an index the keys of a partition are spread at least; the same for all writers",
    minimum=1,
    aliases=("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
    since="1.1.0",
)
PARTITION_INDEX_MOST_GROUPS = Key(
    "hoodie.metadata.record.level.index.max.filegroup.count",
    int,
    10,
    "over how many file groups of such an index the keys of a partition are spread at most",
    minimum=1,
    aliases=("hoodie.metadata.partitioned.record.index.max.filegroup.count",),
    since="1.1.0",
)
METADATA_COMPACT_COMMITS = Key(
    "hoodie.metadata.compact.max.delta.commits",
    int,
    10,
    "how many commits there must be since the last compaction of the metadata table before the next one",
    since="0.7.0",
    minimum=1,
)
