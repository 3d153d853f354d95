"""Keys of data files: sizes and encoding of base files and logs."""

from __future__ import annotations

from hudi_locks.config.key import Key

PARQUET_MAX_FILE_SIZE = Key(
    "hoodie.parquet.max.file.size", int, 120 * 1024 * 1024, "target size of a base file, in bytes", minimum=1
)
PARQUET_SMALL_FILE_LIMIT = Key(
    "hoodie.parquet.small.file.limit",
    int,
    100 * 1024 * 1024,
    "base files below it take up new rows, in bytes; 0 turns that off",
    minimum=0,
)
PARQUET_BLOCK_SIZE = Key(
    "hoodie.parquet.block.size",
    int,
    64 * 1024 * 1024,
    "rows of one row group of a base file, in bytes of memory (the JVM's default is 120 MB)",
    minimum=1,
)
PARQUET_PAGE_SIZE = Key("hoodie.parquet.page.size", int, 1024 * 1024, "size of a Parquet page, in bytes", minimum=1)
PARQUET_COMPRESSION_CODEC = Key(
    "hoodie.parquet.compression.codec",
    str,
    "zstd",
    "compression of base files; the JVM's default is gzip, which takes many times as long for the same size",
    choices=("gzip", "snappy", "zstd", "lz4", "brotli", "uncompressed"),
)
PARQUET_COMPRESSION_RATIO = Key(
    "hoodie.parquet.compression.ratio",
    str,
    "0.1",
    "expected ratio of compressed to plain size",
    no_effect="the size of rows on disk is measured from the last commits",
)
LOGFILE_MAX_SIZE = Key(
    "hoodie.logfile.max.size",
    int,
    1 << 30,
    "a log file that has reached it is followed by a second one of the same write, in bytes",
    since="0.4.0",
    minimum=1,
)
LOGFILE_BLOCK_MAX_SIZE = Key(
    "hoodie.logfile.data.block.max.size",
    int,
    256 << 20,
    "rows of one block of a log file, in bytes of memory",
    since="0.4.0",
    minimum=1,
)
LOGFILE_BLOCK_FORMAT = Key(
    "hoodie.logfile.data.block.format",
    str,
    "parquet",
    "form of rows in log files; avro, the default of JVM writers, is ten times slower to write and read here. Without"
    " this option it is avro where a text and another column decide between rows together: JVM Hudi 1.2.0 shows the"
    " older row of Parquet blocks then",
    since="0.9.0",
    choices=("parquet", "avro"),
)
RECORD_SIZE_ESTIMATE = Key(
    "hoodie.copyonwrite.record.size.estimate",
    int,
    1024,
    "bytes of a row while no commit tells better",
    minimum=1,
)
INSERT_SPLIT_SIZE = Key(
    "hoodie.copyonwrite.insert.split.size",
    int,
    500_000,
    "rows of a new file group without statistics",
    minimum=1,
    no_effect="new file groups are cut by hoodie.parquet.max.file.size and the size of a row",
)
