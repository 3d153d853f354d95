"""The metadata table that JVM Hudi keeps beside a table."""

from hudi_locks.metadata_table.metadata_table import METADATA_FOLDER, MetadataPartition, MetadataTable, MetadataView

__all__ = ["METADATA_FOLDER", "MetadataPartition", "MetadataTable", "MetadataView"]
