"""Every hoodie.* key once, and typed access to them.

The keys themselves stand in `lock_keys`, `security_keys`, `write_keys`, `clustering_keys`, `compaction_keys`,
`service_keys`, `table_keys`, `datasource_keys`, `time_partition_keys`, `file_keys`, `index_keys`, `ingest_keys`,
`metrics_keys`, `read_keys` and `catalog_keys`.
"""

from hudi_locks.config import (
    catalog_keys,
    clustering_keys,
    compaction_keys,
    datasource_keys,
    file_keys,
    index_keys,
    ingest_keys,
    lock_keys,
    metrics_keys,
    read_keys,
    security_keys,
    service_keys,
    table_keys,
    time_partition_keys,
    write_keys,
)
from hudi_locks.config.addresses import LOCAL_SCHEME, local_path, split_scheme
from hudi_locks.config.checks import (
    check_options,
    check_writer_options,
    has_buckets,
    is_lock_local,
    list_contradictions,
    redact,
    refuse_contradictions,
    refuse_options,
)
from hudi_locks.config.ingest_classes import SOURCES, SourceKind, check_schema_provider, find_source
from hudi_locks.config.key import Key
from hudi_locks.config.named_class import import_class
from hudi_locks.config.option_files import (
    add_defaults,
    find_defaults_file,
    overlay,
    own_name,
    read_option_file,
    split_option_file,
)
from hudi_locks.config.options import Options
from hudi_locks.config.registry import KEYS, find_key, nearest_key
from hudi_locks.config.unused_keys import UNUSED_KEYS, UnusedKeys, find_unused

__all__ = [
    "KEYS",
    "LOCAL_SCHEME",
    "SOURCES",
    "UNUSED_KEYS",
    "Key",
    "Options",
    "SourceKind",
    "UnusedKeys",
    "add_defaults",
    "catalog_keys",
    "check_options",
    "check_schema_provider",
    "check_writer_options",
    "clustering_keys",
    "compaction_keys",
    "datasource_keys",
    "file_keys",
    "find_defaults_file",
    "find_key",
    "find_source",
    "find_unused",
    "has_buckets",
    "import_class",
    "index_keys",
    "ingest_keys",
    "is_lock_local",
    "list_contradictions",
    "local_path",
    "lock_keys",
    "metrics_keys",
    "nearest_key",
    "overlay",
    "own_name",
    "read_keys",
    "read_option_file",
    "redact",
    "refuse_contradictions",
    "refuse_options",
    "security_keys",
    "service_keys",
    "split_option_file",
    "split_scheme",
    "table_keys",
    "time_partition_keys",
    "write_keys",
]
