"""Every hoodie.* key once, and typed access to them."""

from hudi_locks.config.key import Key
from hudi_locks.config.options import Options

__all__ = ["Key", "Options"]
