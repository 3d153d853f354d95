"""Faults on purpose: of the network between a client and its server."""

from hudi_locks_conformance.faults.proxy import FaultProxy

__all__ = ["FaultProxy"]
