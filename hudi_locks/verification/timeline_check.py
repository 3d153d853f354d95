"""The active timeline: names, states, their order, and whether each file says what its kind says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from hudi_locks.format import (
    LAYOUT_1,
    WRITE_ACTIONS,
    CleanMetadata,
    CleanPlan,
    ClusteringPlan,
    CommitMetadata,
    CompactionPlan,
    Instant,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
    State,
    arrow_schema,
    comparable_action,
    epoch_ms,
    parse_instant_name,
)
from hudi_locks.format.records import decode_record
from hudi_locks.verification.survey import Survey

__all__ = ["check_timeline", "decode_content"]

_KIND: Final = "timeline"
_UNREAD: Final = ("indexing", "schemacommit")
_WITHOUT_REQUEST: Final = ("savepoint",)
_WRITE_AGAIN: Final = "write its rows once more by a job that is started anew, then remove the files of that instant"
_Decode = Callable[[bytes, str], Any]
_DECODERS: Final[Mapping[tuple[str, State], _Decode]] = {
    ("commit", State.COMPLETED): CommitMetadata.decode,
    ("deltacommit", State.COMPLETED): CommitMetadata.decode,
    ("replacecommit", State.COMPLETED): CommitMetadata.decode,
    ("clean", State.REQUESTED): CleanPlan.decode,
    ("clean", State.INFLIGHT): CleanPlan.decode,
    ("clean", State.COMPLETED): CleanMetadata.decode,
    ("rollback", State.REQUESTED): RollbackPlan.decode,
    ("rollback", State.COMPLETED): RollbackMetadata.decode,
    ("restore", State.REQUESTED): RestorePlan.decode,
    ("restore", State.COMPLETED): RestoreMetadata.decode,
    ("savepoint", State.COMPLETED): SavepointMetadata.decode,
    ("compaction", State.REQUESTED): CompactionPlan.decode,
    ("logcompaction", State.REQUESTED): CompactionPlan.decode,
    ("clustering", State.REQUESTED): ClusteringPlan.decode,
    ("replacecommit", State.REQUESTED): decode_record,
}
_NEVER_EMPTY: Final = frozenset(
    {
        *((action, State.COMPLETED) for action in ("commit", "deltacommit", "replacecommit", "restore", "savepoint")),
        *((action, State.REQUESTED) for action in ("compaction", "logcompaction", "clustering")),
    }
)


def check_timeline(survey: Survey) -> None:
    """Look at every file of the active timeline that `survey` has read."""
    states: dict[tuple[str, str], dict[State, tuple[Instant, str]]] = {}
    for path, data in sorted(survey.contents.items()):
        folder, _, name = path.rpartition("/")
        with survey.book.reading(_KIND, path, "a name of an instant with real times, and content of its kind"):
            instant = parse_instant_name(name, folder)
            if instant is not None:
                states.setdefault(_key(instant), {})[instant.state] = (instant, path)
                _check_file(survey, instant, data, path)
    archived = {row.requested for row in survey.archived}
    for (requested, _), found in states.items():
        if requested not in archived:
            _check_order(survey, found)
    _look_for_strays(survey, frozenset(requested for requested, _ in states) | archived)


def _look_for_strays(survey: Survey, known: Collection[str]) -> None:
    """Writes in the timeline of version 6 of a table that has it elsewhere, as after an upgrade."""
    if survey.table.layout.is_version_6:
        return
    for name in survey.storage.list_names(LAYOUT_1.folder):
        path = f"{LAYOUT_1.folder}/{name}"
        with survey.book.reading(_KIND, path, "a name of an instant"):
            instant = parse_instant_name(name, LAYOUT_1.folder)
            if instant is None or not instant.is_completed or instant.action not in WRITE_ACTIONS:
                continue
            if instant.requested not in known:
                expected = f"every completed write in {survey.table.layout.folder}"
                found = "one where only readers of version 6 look: its writer had opened the table before the upgrade"
                survey.book.damage(_KIND, path, expected=expected, found=found, advice=_WRITE_AGAIN)


def decode_content(instant: Instant, data: bytes, path: str) -> None:
    """Read what a file of the timeline holds, as far as its kind is one that is read here.

    Raises:
        DamagedTable: It holds something else.
    """
    kind = (instant.action, instant.state)
    decode = _DECODERS.get(kind)
    if decode is None or (not data and kind not in _NEVER_EMPTY):
        return
    found = decode(data, path)
    if isinstance(found, CommitMetadata) and found.schema:
        arrow_schema(found.schema, path)


def _key(instant: Instant) -> tuple[str, str]:
    return instant.requested, comparable_action(instant.action)


def _check_file(survey: Survey, instant: Instant, data: bytes, path: str) -> None:
    survey.book.checked["instant files"] += 1
    for time in filter(None, (instant.requested, instant.completion)):
        epoch_ms(time)
    if instant.completion is not None and instant.completion <= instant.requested:
        found = f"it was begun at {instant.requested} and completed at {instant.completion}"
        survey.book.damage(_KIND, path, expected="a completion after the begin", found=found)
    if instant.action in _UNREAD and instant.is_completed:
        survey.book.leave_out(f"the content of {instant.action} instants, which no reader of this package needs")
    decode_content(instant, data, path)


def _check_order(survey: Survey, found: Mapping[State, tuple[Instant, str]]) -> None:
    """Each state leaves a file, and the earlier ones stay: whoever rolls back or archives goes by them."""
    instant, path = found[max(found)]
    if instant.action in _UNREAD:
        return
    before = [State.INFLIGHT] if instant.action in _WITHOUT_REQUEST else [State.REQUESTED, State.INFLIGHT]
    lacking = [state.name.lower() for state in before if state < max(found) and state not in found]
    if lacking:
        survey.book.damage(
            _KIND,
            path,
            expected="the files of its earlier states beside it",
            found=f"no {' and no '.join(lacking)} file of {instant.action} {instant.requested}",
        )
