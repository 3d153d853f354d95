"""All kinds of servers, by name, each with the settings that tests use."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hudi_locks_conformance.servers.azurite import Azurite
from hudi_locks_conformance.servers.dynamodb_local import DynamoDBLocal
from hudi_locks_conformance.servers.fake_gcs import FakeGcs
from hudi_locks_conformance.servers.hive_metastore import HiveMetastore
from hudi_locks_conformance.servers.kind import ServerKind
from hudi_locks_conformance.servers.mini_dfs import MiniDfs
from hudi_locks_conformance.servers.versitygw import VersityGw
from hudi_locks_conformance.servers.zookeeper import ZooKeeper

__all__ = ["KINDS"]

_ALL: Final[tuple[ServerKind, ...]] = (
    Azurite(),
    DynamoDBLocal(),
    HiveMetastore(),
    FakeGcs(),
    MiniDfs(),
    VersityGw(),
    ZooKeeper(),
)
KINDS: Final[Mapping[str, ServerKind]] = MappingProxyType({kind.name: kind for kind in _ALL})
"""What `--server` may name."""
