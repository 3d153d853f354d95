"""Programs of others that tests talk to, fetched when they are asked for."""

from hudi_locks_conformance.servers.jvm_bundle import BundleUnavailable, fetch_bundle

__all__ = ["BundleUnavailable", "fetch_bundle"]
