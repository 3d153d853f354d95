"""Every hoodie.* key once, and typed access to them.

The keys themselves stand in `lock_keys`, `write_keys`, `table_keys` and `datasource_keys`.
"""

from hudi_locks.config import datasource_keys, lock_keys, table_keys, write_keys
from hudi_locks.config.checks import check_options, redact, refuse_contradictions
from hudi_locks.config.key import Key
from hudi_locks.config.options import Options
from hudi_locks.config.registry import KEYS, find_key, nearest_key

__all__ = [
    "KEYS",
    "Key",
    "Options",
    "check_options",
    "datasource_keys",
    "find_key",
    "lock_keys",
    "nearest_key",
    "redact",
    "refuse_contradictions",
    "table_keys",
    "write_keys",
]
