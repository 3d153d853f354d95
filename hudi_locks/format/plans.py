"""Plans of table services: what a service will do with which file groups, for itself and for other writers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_locks.format.avro import REQUESTED_REPLACE_METADATA
from hudi_locks.format.records import decode_record, encode_record, interpreting
from hudi_locks.format.ring_change import RING_STRATEGY, RingChange

__all__ = ["ClusteringGroup", "ClusteringPlan", "ClusteringSlice", "clustered_file_groups"]

_SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"
_STRATEGY: Final = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
_MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True)
class ClusteringSlice:
    """The newest files of a file group that clustering reads.

    Attributes:
        partition: Partition path.
        file_id: File group.
        path: Full path of its base file, as the JVM opens it; "" for a group of logs alone.
        log_paths: Full paths of its log files, that of the newest write first, as in JVM Hudi.
        source: Address of the file with the other columns of a skeleton; "" if its base file is none. Without it a JVM
            would write null in their place.
    """

    partition: str
    file_id: str
    path: str
    log_paths: tuple[str, ...] = ()
    source: str = ""

    @property
    def relative_path(self) -> str:
        """Its base file, relative to the base path."""
        return self._relative_to_base(self.path)

    @property
    def relative_paths(self) -> frozenset[str]:
        """All its files, relative to the base path."""
        return frozenset(self._relative_to_base(path) for path in (self.path, *self.log_paths) if path)

    def _relative_to_base(self, path: str) -> str:
        name = path.rpartition("/")[2]
        return f"{self.partition}/{name}" if self.partition else name


@dataclass(frozen=True)
class ClusteringGroup:
    """File groups of one partition whose rows become new file groups together.

    Attributes:
        slices: What is read.
        output_groups: How many file groups are to be written.
        input_bytes: Size of the base files; for a person.
        log_bytes: Size of the logs; for a person.
        ring_change: What it does to the buckets of its partition; None if the file groups are no nodes of a ring.
    """

    slices: tuple[ClusteringSlice, ...]
    output_groups: int = 1
    input_bytes: int = 0
    log_bytes: int = 0
    ring_change: RingChange | None = None


@dataclass(frozen=True)
class ClusteringPlan:
    """Content of `.clustering.requested` (Hudi's HoodieRequestedReplaceMetadata with a HoodieClusteringPlan).

    Attributes:
        groups: What is rewritten.
        sort_columns: Columns that order the rows of a group; none to only join small files.
    """

    groups: tuple[ClusteringGroup, ...]
    sort_columns: tuple[str, ...] = ()

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of every input."""
        return frozenset((piece.partition, piece.file_id) for group in self.groups for piece in group.slices)

    @property
    def has_logs(self) -> bool:
        """Whether some of the rows are in logs."""
        return any(piece.log_paths for group in self.groups for piece in group.slices)

    @property
    def ring_changes(self) -> Mapping[str, tuple[RingChange, ...]]:
        """What it does to the ring of each partition, by its path; empty if the table has no rings."""
        found: dict[str, tuple[RingChange, ...]] = {}
        for change in (group.ring_change for group in self.groups if group.ring_change is not None):
            found[change.partition] = (*found.get(change.partition, ()), change)
        return found

    def without(self, taken: Collection[tuple[str, str]]) -> ClusteringPlan:
        """The plan without the groups that have one of these (partition path, file id) among their inputs."""
        left = (g for g in self.groups if not any((piece.partition, piece.file_id) in taken for piece in g.slices))
        return replace(self, groups=tuple(left))

    def encode(self) -> bytes:
        """Its bytes, from which a JVM can run the plan too: Avro in every layout."""
        sorting = {_SORT_COLUMNS: ",".join(self.sort_columns)} if self.sort_columns else {}
        strategy = RING_STRATEGY if self.ring_changes else _STRATEGY
        plan = {
            "inputGroups": [_encode_group(group) for group in self.groups],
            "strategy": {"strategyClassName": strategy, "strategyParams": sorting, "version": 1},
            "extraMetadata": {},
            "version": 1,
            "preserveHoodieMetadata": True,
            "missingSchedulePartitions": [],
        }
        record = {"operationType": "CLUSTER", "clusteringPlan": plan, "extraMetadata": {}, "version": 1}
        return encode_record(REQUESTED_REPLACE_METADATA, record)

    @classmethod
    def decode(cls, data: bytes, path: str) -> ClusteringPlan | None:
        """Read `.clustering.requested`; None where it holds no plan, as that of another replacing write.

        Raises:
            DamagedTable: The bytes are no such record; it names `path`.
        """
        if not data:
            return None
        with interpreting("readable plan", path):
            plan: dict[str, Any] | None = decode_record(data, path).get("clusteringPlan")
            if plan is None:
                return None
            groups = tuple(_decode_group(group) for group in plan.get("inputGroups") or ())
            return cls(groups, _decode_sorting(plan.get("strategy") or {}))


def clustered_file_groups(data: bytes, path: str) -> frozenset[tuple[str, str]]:
    """(partition path, file id) of the inputs of a clustering plan, from `.clustering.requested`.

    A `.replacecommit.requested` of version 6 may hold such a plan too; others and empty files hold none.

    Raises:
        DamagedTable: The bytes are no such plan; it names `path`.
    """
    plan = ClusteringPlan.decode(data, path)
    return frozenset() if plan is None else plan.file_groups


def _encode_group(group: ClusteringGroup) -> dict[str, Any]:
    read, written = (float(size // _MEGABYTE) for size in (group.input_bytes + group.log_bytes, group.input_bytes))
    return {
        "slices": [_encode_slice(piece) for piece in group.slices],
        "metrics": {
            "TOTAL_LOG_FILES": float(sum(len(piece.log_paths) for piece in group.slices)),
            "TOTAL_IO_MB": read + written,
            "TOTAL_IO_READ_MB": read,
            "TOTAL_LOG_FILES_SIZE": float(group.log_bytes),
            "TOTAL_IO_WRITE_MB": written,
        },
        "numOutputFileGroups": group.output_groups,
        "extraMetadata": None if group.ring_change is None else group.ring_change.encode(),
        "version": 1,
    }


def _encode_slice(piece: ClusteringSlice) -> dict[str, Any]:
    return {
        "dataFilePath": piece.path,
        "deltaFilePaths": list(piece.log_paths),
        "fileId": piece.file_id,
        "partitionPath": piece.partition,
        "bootstrapFilePath": piece.source,
        "version": 1,
    }


def _decode_group(record: Mapping[str, Any]) -> ClusteringGroup:
    slices = tuple(_decode_slice(piece) for piece in record["slices"] or ())
    metrics = record.get("metrics") or {}
    written, log_bytes = (int(metrics.get(name) or 0) for name in ("TOTAL_IO_WRITE_MB", "TOTAL_LOG_FILES_SIZE"))
    change = RingChange.decode(record.get("extraMetadata") or {})
    return ClusteringGroup(slices, record.get("numOutputFileGroups") or 1, written * _MEGABYTE, log_bytes, change)


def _decode_slice(record: Mapping[str, Any]) -> ClusteringSlice:
    logs = tuple(record.get("deltaFilePaths") or ())
    path, source = record.get("dataFilePath") or "", record.get("bootstrapFilePath") or ""
    return ClusteringSlice(record["partitionPath"] or "", record["fileId"], path, logs, source)


def _decode_sorting(strategy: Mapping[str, Any]) -> tuple[str, ...]:
    names = (strategy.get("strategyParams") or {}).get(_SORT_COLUMNS) or ""
    return tuple(name.strip() for name in names.split(",") if name.strip())
