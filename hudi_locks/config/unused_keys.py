"""Keys of Hudi's configuration classes that change nothing here, each with the reason that a person is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["UNUSED_KEYS", "UnusedKeys", "find_unused"]


@dataclass(frozen=True)
class UnusedKeys:
    """Keys that have no effect for one reason.

    Attributes:
        topic: What they are about, for a person.
        reason: Why they change nothing, and what to do instead.
        prefixes: What such keys begin with, each with the dot at its end.
        names: Further keys, by all their names.
    """

    topic: str
    reason: str
    prefixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def find_unused(name: str) -> UnusedKeys | None:
    """Those to which a key of Hudi belongs that changes nothing here; None for one that does, or is none."""
    return next((keys for keys in UNUSED_KEYS if name in keys.names or name.startswith(keys.prefixes)), None)


def _under(prefix: str, *names: str) -> Iterator[str]:
    return (f"{prefix}{name}" for name in names)


UNUSED_KEYS: Final = (
    UnusedKeys(
        "memory of the JVM",
        "it divides the memory of a JVM writer; here hoodie.memory.merge.max.size bounds what a task keeps",
        prefixes=("hoodie.memory.", "hoodie.common.", "hoodie.lance."),
        names=(
            "hoodie.file.index.cache.spillable.mem",
            "hoodie.file.index.cache.use.spillable.map",
            "hoodie.cdc.file.group.iterator.memory.spill.bytes",
            "hoodie.write.status.storage.level",
            "hoodie.write.tagged.record.storage.level",
            "hoodie.record.index.input.storage.level",
            "hoodie.record.index.use.caching",
            "hoodie.release.resource.on.completion.enable",
            "hoodie.schema.cache.enable",
        ),
    ),
    UnusedKeys(
        "how a JVM writer spreads its work",
        "Spark decides how the work is spread; the shuffle parallelism of each operation is read",
        prefixes=("hoodie.write.executor.", "hoodie.write.buffer."),
        names=(
            *_under("hoodie.", "file.listing.parallelism", "finalize.write.parallelism", "rollback.parallelism"),
            *_under("hoodie.", "archive.delete.parallelism", "bootstrap.parallelism"),
            "hoodie.global.index.reconcile.parallelism",
            "hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism",
            "hoodie.bucket.index.remote.partitioner.enable",
            *_under("hoodie.clustering.", "group.read.parallelism", "max.parallelism"),
            *_under("hoodie.", "clean.optimize.using.local.engine.context"),
            "hoodie.clustering.plan.generation.use.local.engine.context",
            "hoodie.copyonwrite.insert.auto.split",
            "hoodie.merge.small.file.group.candidates.limit",
            *_under("hoodie.bulkinsert.", "are.partitioner.records.sorted", "sort.suffix.record_key"),
            "hoodie.sensitive.config.keys",
            "hoodie.block.writes.on.speculative.execution",
        ),
    ),
    UnusedKeys(
        "the timeline server and file system views of the JVM",
        "what a file group holds is found here from the timeline and the table's folders",
        prefixes=(
            "hoodie.filesystem.view.",
            "hoodie.filesystem.remote.",
            "hoodie.embed.timeline.server.",
            "hoodie.instant_state.",
        ),
        names=("hoodie.table.services.incremental.enabled",),
    ),
    UnusedKeys(
        "retries and consistency of file systems",
        "the store's own client decides how a request is tried again, and every file is looked for before it is named",
        prefixes=("hoodie.filesystem.operation.", "hoodie.consistency.check.", "hoodie.optimistic.consistency."),
        names=("hoodie.io.factory.class", "hoodie.storage.class"),
    ),
    UnusedKeys(
        "layout of files in formats other than Parquet",
        "base files are of Parquet here, and HFiles are written as JVM Hudi reads them",
        prefixes=("hoodie.orc.", "hoodie.hfile."),
    ),
    UnusedKeys(
        "details of Parquet and Avro files",
        "files are written as Arrow and Hudi's readers take them",
        prefixes=("hoodie.avro.schema.",),
        names=(
            *_under("hoodie.parquet.", "dictionary.enabled", "field_id.write.enabled", "outputtimestamptype"),
            *_under("hoodie.parquet.", "spark.row.write.support.class", "write.config.injector.class"),
            *_under("hoodie.parquet.", "write.utc-timezone.enabled", "writelegacyformat.enabled"),
            "hoodie.avro.write.support.class",
            "hoodie.avro.schema",
            "hoodie.logfile.to.parquet.compression.ratio",
        ),
    ),
    UnusedKeys(
        "sizes that a JVM writer estimates",
        "rows are measured by the files that the table has; hoodie.copyonwrite.record.size.estimate is where none is",
        prefixes=("hoodie.record.size.estimator.",),
        names=("hoodie.record.size.estimation.threshold",),
    ),
    UnusedKeys(
        "how JVM Hudi reads and compacts logs",
        "logs are read once, block by block",
        names=(
            *_under("hoodie.compaction.", "lazy.block.read", "reverse.log.read"),
            "hoodie.optimized.log.blocks.scan.enable",
            *_under("hoodie.", "file.group.reader.enabled", "merge.use.record.positions", "write.record.positions"),
            *_under("hoodie.", "merge.data.validation.enabled", "is.update.record.for.mor"),
            *_under("hoodie.write.", "concat.handle.class", "merge.handle.class", "merge.handle.fallback"),
            "hoodie.compact.merge.handle.class",
            "hoodie.log.compaction.enable",
        ),
    ),
    UnusedKeys(
        "which file groups JVM Hudi compacts",
        "a compaction takes every file group that has logs",
        names=(
            *_under("hoodie.compaction.", "strategy", "plan.generator", "target.io", "partition.path.regex"),
            *_under("hoodie.compaction.", "daybased.target.partitions"),
            *_under("hoodie.compaction.logfile.", "num.threshold", "size.threshold"),
        ),
    ),
    UnusedKeys(
        "details of JVM Hudi's cleaning, archival and rollback",
        "failed writes, old file slices and old instants are found by the claim log and the timeline",
        names=(
            *_under("hoodie.clean.", "allow.multiple", "multiple.enabled", "max.commits.to.clean"),
            "hoodie.prewrite.cleaner.policy",
            "hoodie.write.empty.clean.interval.hours",
            *_under("hoodie.archive.", "beyond.savepoint", "block.on.latest.clean.ectr"),
            *_under("hoodie.archive.merge.", "enable", "files.batch.size", "small.file.limit.bytes"),
            *_under("hoodie.", "commits.archival.batch", "timeline.compaction.target.file.max.bytes"),
            *_under("hoodie.rollback.", "avoid.duplicate.plan", "instant.backup.dir", "instant.backup.enabled"),
            "hoodie.auto.commit",
        ),
    ),
    UnusedKeys(
        "table services that fail",
        "a table service that fails is a warning of the write, which is committed, and a later one goes on",
        names=(
            "hoodie.fail.on.timeline.archiving",
            "hoodie.fail.writes.on.inline.table.service.exception",
            "hoodie.post.commit.failures.ignored",
            "hoodie.write.can.ignore.post.commit.failures",
        ),
    ),
    UnusedKeys(
        "details of JVM Hudi's clustering",
        "a clustering sorts by its columns one after another, and gives way to writes as"
        " hoodie.clustering.updates.strategy says",
        prefixes=("hoodie.layout.optimize.",),
        names=(
            *_under("hoodie.clustering.", "enable.expirations", "expiration.threshold.mins"),
            "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
            "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
            "hoodie.clustering.plan.strategy.binary.copy.schema.evolution.enable",
            *_under("hoodie.clustering.plan.strategy.", "earliest.commit.to.cluster", "file.slices.sort.by"),
        ),
    ),
    UnusedKeys(
        "names that JVM Hudi itself no longer reads",
        "JVM Hudi clusters by hoodie.clustering.inline and hoodie.clustering.async.enabled, and so does this package",
        names=(*_under("hoodie.datasource.clustering.", "async.enable", "inline.enable"),),
    ),
    UnusedKeys(
        "partitions that expire",
        "no partition expires here: call delete_partitions, or let a JVM job expire them",
        prefixes=("hoodie.partition.ttl.",),
    ),
    UnusedKeys(
        "details of JVM Hudi's metadata table",
        "a metadata table is kept as it is, and made by hoodie.metadata.enable=true or hudi-locks metadata init",
        prefixes=(
            "hoodie.metadata.bloom.",
            "hoodie.metadata.index.bloom.filter.",
            "hoodie.metadata.index.secondary.",
            "hoodie.metadata.index.expression.",
            "hoodie.metadata.index.partition.stats.",
            "hoodie.metadata.table.service.manager.",
            "hoodie.metadata.streaming.",
            "hoodie.metadata.range.repartition.",
            "hoodie.metadata.repartition.",
            "hoodie.expression.index.",
        ),
        names=(
            *_under(
                "hoodie.metadata.", "auto.delete.partitions", "auto.initialize", "derive.from.datatable.clean.policy"
            ),
            *_under("hoodie.metadata.", "compact.max.delta.seconds", "compact.trigger.strategy", "dir.filter.regex"),
            *_under("hoodie.metadata.", "fallback.enable", "file.cache.max.size.mb"),
            *_under("hoodie.metadata.index.", "async", "check.timeout.seconds", "drop"),
            *_under("hoodie.metadata.index.column.stats.", "file.group.count", "inMemory.projection.threshold"),
            *_under("hoodie.metadata.index.column.stats.", "parallelism", "processing.mode.override"),
            *_under("hoodie.metadata.log.compaction.", "blocks.threshold", "enable"),
            *_under("hoodie.metadata.max.", "deltacommits.when_pending", "init.parallelism", "logfile.size"),
            *_under("hoodie.metadata.max.", "reader.buffer.size", "reader.memory"),
            *_under("hoodie.metadata.", "metrics.enable", "optimized.log.blocks.scan.enable", "spillable.map.path"),
            *_under("hoodie.metadata.", "record.preparation.parallelism", "write.concurrency.mode"),
            *_under("hoodie.metadata.record.index.", "enable.validation.on.initialization", "growth.factor"),
            *_under("hoodie.metadata.", "record.index.max.filegroup.size", "record.level.index.defer.init"),
            "hoodie.metadata.write.fail.on.table.service.failures",
            "hoodie.index.name",
            "hoodie.datasource.write.secondarykey.column",
            "hoodie.table.secondary.indexes.metadata",
        ),
    ),
    UnusedKeys(
        "how JVM Hudi lists and opens files for a query",
        "a read finds its files by the timeline, and filters as its arguments say",
        names=(
            *_under("hoodie.datasource.read.", "create.filesystem.relation", "extract.partition.values.from.path"),
            *_under("hoodie.datasource.read.file.index.", "list.partitions.from.catalog", "listing.mode"),
            "hoodie.datasource.read.file.index.listing.partition-path-prefix.analysis.enabled",
            "hoodie.datasource.read.file.index.optimize.listing.using.path.filter",
            "hoodie.datasource.read.use.new.parquet.file.format",
            *_under("hoodie.datasource.read.incr.", "skip_cluster", "skip_compact", "table.version"),
            *_under("hoodie.datasource.read.", "partition.value.extractor.enabled", "streaming.table.version"),
            *_under("hoodie.datasource.read.table.valued.function.", "filesystem.relation.subpath"),
            *_under("hoodie.datasource.read.table.valued.function.", "timeline.relation", "timeline.relation.archived"),
            *_under("hoodie.", "file.index.enable", "bucket.index.query.pruning"),
            *_under("hoodie.", "bootstrap.data.queries.only", "read.blob.inline.mode", "assume.date.partitioning"),
        ),
    ),
    UnusedKeys(
        "Spark SQL of JVM Hudi",
        "it is for statements of Spark SQL; here hoodie.datasource.write.operation says what a write does, and"
        " table.merge what MERGE INTO would",
        prefixes=("hoodie.sql.", "hoodie.spark.sql."),
        names=(
            *_under("hoodie.", "datasource.overwrite.mode", "static.overwrite.partition.paths"),
            *_under("hoodie.bulkinsert.", "overwrite.operation.type", "schema.ddl"),
            *_under("hoodie.", "spark.polaris.catalog.class", "write.partial.update.schema"),
            "hoodie.metaserver",
            "hoodie.metadata",
            "hoodie.properties",
            "hoodie.properties.backup",
            "hoodie.table.service.manager",
            "hoodie.internal.schema",
        ),
    ),
    UnusedKeys(
        "how rows of a bulk insert are laid out by a class of the owner's",
        "rows are written as they come; sort the DataFrame instead",
        names=(
            *_under("hoodie.bulkinsert.user.defined.partitioner.", "class", "sort.columns"),
            *_under("hoodie.storage.layout.", "partitioner.class", "type"),
            "hoodie.fileid.prefix.provider.class",
        ),
    ),
    UnusedKeys(
        "who is told of a commit",
        "nobody is called after a commit; follow the table with hudi-locks timeline --follow, or read its metrics",
        prefixes=("hoodie.write.commit.callback.",),
        names=(
            *_under("hoodie.", "client.init.callback.classes", "writestatus.class", "write.application.id"),
            *_under("hoodie.write.", "rolling.metadata.keys", "rolling.metadata.timeline.lookback.commits"),
            *_under("hoodie.", "write.track.event.time.watermark", "payload.event.time.field"),
        ),
    ),
    UnusedKeys(
        "metrics of other systems",
        "metrics go to Prometheus, its Pushgateway or the console: hoodie.metrics.reporter.type",
        prefixes=tuple(f"hoodie.metrics.{kind}." for kind in ("cloudwatch", "datadog", "graphite", "jmx", "m3")),
        names=(
            "hoodie.metrics",
            *_under("hoodie.metrics.", "cloudwatch", "datadog", "graphite", "jmx", "m3", "prometheus", "pushgateway"),
            *_under("hoodie.metrics.", "configs.properties", "executor.enable", "reporter.class"),
            *_under("hoodie.", "metrics.pushgateway.report.labels", "metricscompaction.log.blocks.on"),
        ),
    ),
    UnusedKeys(
        "catalog sync by other ways than the metastore's own",
        "catalogs are kept in step through the metastore's own protocol, or AWS Glue",
        names=(
            *_under("hoodie.datasource.hive_sync.", "jdbcurl", "use_jdbc", "username", "password"),
            *_under("hoodie.datasource.hive_sync.", "base_file_format", "bucket_sync_spec", "use_spark_catalog"),
            *_under("hoodie.datasource.hive_sync.", "filter_pushdown_enabled", "filter_pushdown_max_size"),
            *_under("hoodie.datasource.hive_sync.", "recreate_table_on_error", "assume_date_partitioning"),
            *_under("hoodie.datasource.hive_sync.", "use_pre_apache_input_format"),
            *_under("hoodie.datasource.", "meta.sync.base.path", "partition_extractor_class"),
            *_under("hoodie.meta.sync.", "decode_partition", "metadata_file_listing", "no_partition_metadata"),
            *_under("hoodie.", "meta.sync.touch.partitions.enabled", "meta_sync.spark.version"),
            "hoodie.meta_sync.global.replicate.timestamp",
        ),
    ),
    UnusedKeys(
        "the HBase index",
        "hoodie.index.type=HBASE is not offered, and nothing else reads it",
        prefixes=("hoodie.index.hbase.", "hoodie.hbase."),
    ),
    UnusedKeys(
        "checks of a JVM writer",
        "what they check is right here, or refused by name",
        names=(
            "hoodie.skip.default.partition.validation",
            "hoodie.write.complex.keygen.validation.enable",
        ),
    ),
    UnusedKeys(
        "how JVM Hudi bootstraps a table",
        "no table is made of files that are there: let JVM Hudi bootstrap it, and write to it then",
        prefixes=("hoodie.bootstrap.mode.", "hoodie.bootstrap.full.", "hoodie.bootstrap.partitionpath."),
    ),
    UnusedKeys(
        "details of what is refused by another key",
        "it says how something is done that is not done here",
        prefixes=(
            "hoodie.errortable.",
            "hoodie.metaserver.",
            "hoodie.precommit.validators.",
            "hoodie.table.service.manager.",
        ),
        names=("hoodie.streamer.schemaprovider.class",),
    ),
    UnusedKeys("jobs of Flink", "it is for jobs of Flink", names=("hoodie.parquet.flink.rowdata.write.support.class",)),
)
