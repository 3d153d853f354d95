"""Jobs that bring files or messages into a table, each batch exactly once, in the spirit of Hudi Streamer."""

from hudi_locks.ingest.job import IngestJob, IngestReport, IngestSettings
from hudi_locks.ingest.schemas import find_schema
from hudi_locks.ingest.sources import SOURCES, open_source

__all__ = ["SOURCES", "IngestJob", "IngestReport", "IngestSettings", "find_schema", "open_source"]
