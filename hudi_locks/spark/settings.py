"""A pipeline's options as far as it reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from hudi_locks.config import (
    Key,
    Options,
    check_options,
    check_writer_options,
    datasource_keys,
    file_keys,
    index_keys,
    read_keys,
    refuse_options,
    table_keys,
    write_keys,
)
from hudi_locks.errors import ConfigError
from hudi_locks.format import BucketCounts, new_file_id
from hudi_locks.format.key_filter import FilterSize
from hudi_locks.services import identify_table
from hudi_locks.spark.index_options import (
    MOVING,
    hashes_consistently,
    read_bucket_counts,
    read_index_type,
    read_key_filter,
    refuse_rings,
    take_index_of,
    warn_of_other_indexes,
)
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.table_options import refuse_other_table
from hudi_locks.table import (
    BaseFile,
    BaseFileFormat,
    DeleteMarker,
    LogFormat,
    MergeRule,
    TableConfig,
    TimePartition,
    read_delete_marker,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FileSizing", "PipelineSettings", "check_pipeline"]

_MERGE_ON_READ: Final = "MERGE_ON_READ"
_TASKS_PER_CORE = 4
_MOST_TASKS = 2000
_LOG_ROWS = 1 << 17
_MOST_SHARES: Final = 100
_FILLING: Final = (datasource_keys.RECONCILE_SCHEMA, datasource_keys.SET_NULL_FOR_MISSING_COLUMNS)
"""Each has columns that are missing from a write filled with nulls."""
_PARALLELISM: Final[Mapping[Operation, Key[int]]] = {
    Operation.UPSERT: datasource_keys.SHUFFLE_PARALLELISM_UPSERT,
    Operation.INSERT: datasource_keys.SHUFFLE_PARALLELISM_INSERT,
    Operation.BULK_INSERT: datasource_keys.SHUFFLE_PARALLELISM_BULKINSERT,
    Operation.DELETE: datasource_keys.SHUFFLE_PARALLELISM_DELETE,
    Operation.INSERT_OVERWRITE: datasource_keys.SHUFFLE_PARALLELISM_INSERT,
    Operation.INSERT_OVERWRITE_TABLE: datasource_keys.SHUFFLE_PARALLELISM_INSERT,
    Operation.DELETE_PARTITION: datasource_keys.SHUFFLE_PARALLELISM_DELETE,
}


@dataclass(frozen=True)
class FileSizing:
    """Sizes that decide how many file groups new rows make.

    Attributes:
        record_bytes: Expected size of a row in a base file.
        max_file_bytes: Target size of a base file.
        small_file_bytes: Base files below this take new rows before new files are made; 0 for never.
    """

    record_bytes: int
    max_file_bytes: int
    small_file_bytes: int

    def share_rows(self, new_rows: Mapping[str, int], base_files: Iterable[BaseFile]) -> dict[str, list[str]]:
        """For each partition path the file ids that share its new rows, an id once for each of its shares."""
        small: dict[str, list[BaseFile]] = {}
        for file in base_files:
            if file.partition in new_rows and self._free_rows(file):
                small.setdefault(file.partition, []).append(file)
        return {path: self._shares(rows, small.get(path, [])) for path, rows in new_rows.items() if rows}

    def _shares(self, rows: int, small: list[BaseFile]) -> list[str]:
        takes: dict[str, int] = {}
        for file in sorted(small, key=lambda file: file.size):
            takes[file.file_id] = min(self._free_rows(file), rows - sum(takes.values()))
        left = rows - sum(takes.values())
        full = max(1, self.max_file_bytes // self.record_bytes)
        files = -(-left // full)
        takes |= {new_file_id(): -(-left // files) for _ in range(files)}
        return [file_id for file_id, taken in takes.items() for _ in range(_count_shares(taken, rows, len(takes)))]

    def _free_rows(self, file: BaseFile) -> int:
        """None in a skeleton, however small: to add a row its whole source would be written anew."""
        if file.is_skeleton or file.size >= self.small_file_bytes:
            return 0
        return max(0, (self.max_file_bytes - file.size) // self.record_bytes)


def _count_shares(taken: int, rows: int, files: int) -> int:
    """Shares in proportion to the rows taken; one each where all files are alike, so that the list stays short."""
    if taken <= 0:
        return 0
    return 1 if files == 1 else max(1, round(_MOST_SHARES * taken / rows))


@dataclass(frozen=True)
class PipelineSettings:
    """How a pipeline writes.

    Attributes:
        codec: Compression of base files.
        max_file_bytes: Target size of a base file.
        small_file_bytes: Base files below take new rows first.
        record_bytes: Size of a row where the table has none to measure.
        memory_bytes: How much input a task keeps in memory.
        conflict_retries: How often a write that met a conflict goes on or begins anew.
        early_wait_s: How long a write that met an earlier one before it wrote waits for that one to end.
        combine_before_insert: Whether an insert merges rows of the input with one key.
        combine_before_upsert: Whether an upsert does.
        drop_duplicates: Whether an insert leaves out rows whose key the table has.
        index_type: As Hudi names it.
        moves_rows: Whether a global index moves a row to the partition that its columns say.
        hashes_consistently: Whether a bucket index goes by the ring of each partition, in place of a fixed number.
        buckets: Buckets of each partition; with rings, nodes of a new one.
        hash_fields: Record key fields that a bucket index hashes.
        tasks: Number of write tasks by operation; 0 to let the input decide.
        log_form: Of rows in log files: parquet or avro; None for parquet where JVM Hudi merges that right.
        log_block_bytes: Most memory that the rows of one block take.
        log_file_bytes: A log file that has reached it is followed by another.
        delete_marker: What makes of a row a delete, where the table does not say it.
        times: How values become folders that are named by times; None if none is.
        writes_times: Whether timestamps in keys are text, and not microseconds.
        fills_columns: Whether columns of the table that the input lacks are null.
        row_group_bytes: Memory of the rows of one row group of a base file.
        page_bytes: Size of a Parquet page.
        bare_keys: Whether a table that does not tell has bare values as keys; None if the options do not say.
        key_filter: Of the bloom filters of base files; None if they have none that rules out a key.
    """

    codec: str
    max_file_bytes: int
    small_file_bytes: int
    record_bytes: int
    memory_bytes: int
    conflict_retries: int
    early_wait_s: float
    combine_before_insert: bool
    combine_before_upsert: bool
    drop_duplicates: bool
    index_type: str
    moves_rows: bool
    hashes_consistently: bool
    buckets: BucketCounts
    hash_fields: tuple[str, ...]
    tasks: Mapping[Operation, int]
    log_form: str | None
    log_block_bytes: int
    log_file_bytes: int
    bare_keys: bool | None
    fills_columns: bool
    row_group_bytes: int
    page_bytes: int
    delete_marker: DeleteMarker | None
    times: TimePartition | None
    writes_times: bool
    key_filter: FilterSize | None

    @classmethod
    def of(cls, options: Options, config: TableConfig) -> PipelineSettings:
        """Read the options; where the table remembers its index, that is taken.

        Raises:
            ConfigError: A value is malformed, the index is not offered, or not the one of the table.
        """
        options = take_index_of(config, options)
        fields = options.find(index_keys.BUCKET_INDEX_HASH_FIELD)
        return cls(
            codec=_read_codec(options),
            max_file_bytes=options.get_value(file_keys.PARQUET_MAX_FILE_SIZE),
            small_file_bytes=options.get_value(file_keys.PARQUET_SMALL_FILE_LIMIT),
            record_bytes=options.get_value(file_keys.RECORD_SIZE_ESTIMATE),
            memory_bytes=options.get_value(datasource_keys.MERGE_MEMORY),
            conflict_retries=options.get_value(write_keys.NUM_RETRIES_ON_CONFLICT_FAILURES),
            early_wait_s=options.get_value(write_keys.EARLY_CONFLICT_MAX_WAIT_MS) / 1000,
            combine_before_insert=options.get_value(datasource_keys.COMBINE_BEFORE_INSERT),
            combine_before_upsert=options.get_value(datasource_keys.COMBINE_BEFORE_UPSERT),
            drop_duplicates=_leaves_out_duplicates(options),
            index_type=(index := read_index_type(options)),
            moves_rows=index in MOVING and options.get_value(MOVING[index]),
            hashes_consistently=hashes_consistently(options),
            buckets=read_bucket_counts(options),
            hash_fields=tuple(fields.split(",")) if fields else config.record_key_fields,
            tasks={operation: options.get_value(key) for operation, key in _PARALLELISM.items()},
            log_form=_find_log_form(options),
            log_block_bytes=options.get_value(file_keys.LOGFILE_BLOCK_MAX_SIZE),
            log_file_bytes=options.get_value(file_keys.LOGFILE_MAX_SIZE),
            bare_keys=options.find(datasource_keys.COMPLEX_KEY_VALUE_ONLY),
            fills_columns=any(options.get_value(key) for key in _FILLING),
            row_group_bytes=options.get_value(file_keys.PARQUET_BLOCK_SIZE),
            page_bytes=options.get_value(file_keys.PARQUET_PAGE_SIZE),
            delete_marker=read_delete_marker(options),
            times=TimePartition.of(options, config),
            writes_times=options.get_value(datasource_keys.CONSISTENT_LOGICAL_TIMESTAMP),
            key_filter=read_key_filter(options, index),
        )

    def count_tasks(self, spark: SparkSession, groups: int, *, operation: Operation) -> int:
        """How many write tasks to make.

        Args:
            spark: Where they run.
            operation: What is done with the rows.
            groups: About how many file groups the rows touch.
        """
        wanted = max(spark.sparkContext.defaultParallelism * _TASKS_PER_CORE, groups)
        return self.tasks[operation] or min(wanted, _MOST_TASKS)

    def count_log_tasks(self, spark: SparkSession, rows: int, *, operation: Operation) -> int:
        """How many tasks log so many rows: a PySpark task costs as much as logging a good many, whatever it does."""
        return self.tasks[operation] or max(spark.sparkContext.defaultParallelism, rows // _LOG_ROWS)

    def base_file_format(self, avro: str, config: TableConfig) -> BaseFileFormat:
        """How base files of a table are encoded whose rows have this Avro schema."""
        keys = config.virtual_keys
        return BaseFileFormat(avro, self.codec, self.row_group_bytes, self.page_bytes, self.key_filter, keys)

    def log_format(self, schema: pa.Schema, avro: str, config: TableConfig) -> LogFormat:
        """How logs of a table are encoded whose rows have this schema; `avro` is the same for Avro."""
        ordering = [field.type for field in schema if field.name in config.merge_ordering]
        form = self.log_form or ("avro" if _has_text_beside(ordering) else "parquet")
        is_empty = not config.has_meta_columns
        return LogFormat(avro, form, self.codec, self.log_block_bytes, self.log_file_bytes, is_empty)

    @property
    def moving_key(self) -> str:
        """Name of the option that says `moves_rows`."""
        return MOVING[self.index_type].name

    def looks_up(self, operation: Operation) -> bool:
        """Whether the keys of the table decide what becomes of a row."""
        if operation in (Operation.UPSERT, Operation.DELETE):
            return True
        return self.drop_duplicates and not operation.replaces

    def combines(self, operation: Operation) -> bool:
        """Whether rows of the input with one key become one row."""
        if operation is Operation.UPSERT:
            return self.combine_before_upsert
        return operation is not Operation.DELETE and (self.combine_before_insert or self.drop_duplicates)

    def merge_rule(self, operation: Operation, config: TableConfig) -> MergeRule:
        """Which row wins, as the table's merge mode says; an insert that drops duplicates leaves present rows alone."""
        keep_present = operation is not Operation.UPSERT and self.drop_duplicates
        marker = (self.delete_marker,) if self.delete_marker else ()
        deletes = tuple(dict.fromkeys((*config.delete_markers, *marker)))
        return replace(config.merge_rule, keep_present=keep_present, deletes=deletes)

    def sizing(self, measured_record_bytes: int | None) -> FileSizing:
        """How new rows are cut into files, given what rows of the table take on disk."""
        return FileSizing(measured_record_bytes or self.record_bytes, self.max_file_bytes, self.small_file_bytes)


def check_pipeline(options: Options, config: TableConfig, base_path: str, *, for_writing: bool = False) -> Options:
    """The options of a pipeline on a table, with its path, after every check that needs no I/O.

    Args:
        options: As the user gave them.
        config: Of the table.
        base_path: Of the table.
        for_writing: Whether they must do for a writer too.

    Raises:
        ConfigError: One cannot be used.
        BadInput: One means another table.
    """
    _refuse_read_options(options)
    given = identify_table(options, name=config.name, base_path=base_path)
    checked = check_options(given, is_writer=for_writing)
    if for_writing:
        check_writer_options(options)
        PipelineSettings.of(checked, config)
        refuse_other_table(options, config, base_path)
        indexed = take_index_of(config, checked)
        _refuse_written_times(checked, config)
        _refuse_unfit(indexed, config)
        warn_of_other_indexes(options, indexed)
    return checked


def _refuse_written_times(options: Options, config: TableConfig) -> None:
    """Keys that are made of columns again are made of timestamps as numbers.

    Raises:
        ConfigError: The options ask for texts there.
    """
    key = datasource_keys.CONSISTENT_LOGICAL_TIMESTAMP
    if config.virtual_keys is not None and options.get_value(key):
        message = f"{key.name}=true is not offered for a table with {table_keys.POPULATE_META_FIELDS.name}=false"
        raise ConfigError(f"{message}; leave the option out", key=key.name)


def _refuse_unfit(options: Options, config: TableConfig) -> None:
    """Whether a writer with these options may write to the table, as far as its settings tell.

    Raises:
        ConfigError: A merge-on-read table is not written by such buckets; non-blocking writers need such a table, and
            an order of rows that all of them know.
    """
    mode = options.get_value(write_keys.CONCURRENCY_MODE).upper()
    if not config.record_key_fields and options.get_value(index_keys.INDEX_TYPE).upper() == "BUCKET":
        key = index_keys.INDEX_TYPE.name
        message = (
            f"{key}=BUCKET computes the file group of a row from its record key, and the table names no key column"
        )
        raise ConfigError(f"{message}; leave the option out", key=key)
    if config.table_type != _MERGE_ON_READ:
        refuse_rings(options)
    if mode != write_keys.NON_BLOCKING:
        return
    key = write_keys.CONCURRENCY_MODE.name
    if config.table_type != _MERGE_ON_READ:
        message = f"{key}={mode} needs a {_MERGE_ON_READ} table, and this one is {config.table_type}: writers that do"
        raise ConfigError(f"{message} not wait for each other cannot rewrite base files", key=key)
    declared = config.payload_meaning.get(table_keys.RECORD_MERGE_MODE.name, config.declared_merge_mode)
    if not config.ordering_fields and declared != "COMMIT_TIME_ORDERING":
        message = f"{key}={mode} needs a column that orders rows of one key, since writers complete in any order; name"
        way_out = f"say {table_keys.RECORD_MERGE_MODE.name}=COMMIT_TIME_ORDERING, if the write begun last is to win"
        raise ConfigError(f"{message} one, or {way_out}", key=key)


def _refuse_read_options(options: Options) -> None:
    """One of a read that was given when the table was opened would be passed over by every read; so is leniency."""
    for key in read_keys.READ_KEYS:
        if options.has(key):
            message = f"{key.name}={options[key.name]} is an option of one read: {key.refusal}"
            raise ConfigError(message, key=key.name, value=options[key.name])
    refuse_options(options, (*read_keys.LENIENT_KEYS, *read_keys.REFUSED_READ_KEYS))


def _read_codec(options: Options) -> str:
    return options.get_value(file_keys.PARQUET_COMPRESSION_CODEC).lower()


def _leaves_out_duplicates(options: Options) -> bool:
    policy = options.get_value(datasource_keys.INSERT_DUP_POLICY).lower()
    return policy == "drop" or options.get_value(datasource_keys.INSERT_DROP_DUPLICATES)


def _find_log_form(options: Options) -> str | None:
    key = file_keys.LOGFILE_BLOCK_FORMAT
    return options.get_value(key).lower() if options.has(key) else None


def _has_text_beside(ordering: Sequence[pa.DataType]) -> bool:
    """Whether texts and other values decide together: of Parquet blocks JVM Hudi 1.2.0 lets the older row win then."""
    texts = [pa.types.is_string(kind) for kind in ordering]
    return any(texts) and not all(texts)
