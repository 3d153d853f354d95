"""Plans of table services, as far as other writers must know them."""

from __future__ import annotations

from typing import Any

from hudi_locks.errors import DamagedTable
from hudi_locks.format.avro import decode_record

__all__ = ["clustered_file_groups"]


def clustered_file_groups(data: bytes, path: str) -> frozenset[tuple[str, str]]:
    """(partition path, file id) of the inputs of a clustering plan, from `.clustering.requested`.

    A `.replacecommit.requested` of version 6 may hold such a plan too; others and empty files hold none.

    Raises:
        DamagedTable: The bytes are no such plan; it names `path`.
    """
    if not data:
        return frozenset()
    try:
        plan: dict[str, Any] = decode_record(data, path).get("clusteringPlan") or {}
        slices = [piece for group in plan.get("inputGroups") or () for piece in group["slices"] or ()]
        return frozenset((piece["partitionPath"] or "", piece["fileId"]) for piece in slices)
    except (LookupError, TypeError, AttributeError) as error:
        raise DamagedTable(f"{path} holds no readable plan: {type(error).__name__}: {error}", path=path) from error
