"""A table becomes one of another version: decided by a claim, carried out by whoever reads the end of the claim log.

The claim comes first. From then on nobody of this package changes the table before it is carried out, and whoever
opened it before is refused after. So all who carry it out make the same files, and a crash anywhere harms nobody: the
table is of the version before until its properties say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hudi_locks.format import LAYOUT_1, LAYOUT_2, METADATA_FOLDER, decode_properties
from hudi_locks.format.claim import Claim, ClaimKind, Content, digest_of
from hudi_locks.storage import Storage
from hudi_locks.table import PROPERTIES_PATH, TableConfig, describe_properties, replace_properties_file
from hudi_locks.table.hash_rings import remove_ring_marks
from hudi_locks.timeline import Timeline, TimelineLayout
from hudi_locks.timeline.conversion import ConvertedTimeline, convert_timeline, remove_timeline
from hudi_locks.transaction.context import TableContext
from hudi_locks.transaction.hooks import StopPoint

__all__ = ["carry_out_change", "convert_for", "promise_change"]

_NAME: Final = PROPERTIES_PATH.rpartition("/")[2]
_ACTION: Final = re.compile(r"version (\d+) to (\d+)")
_SINCE: Final = 8
"""Table version from which the timeline has its second layout."""


def promise_change(
    context: TableContext, known: bytes, wanted: Mapping[str, str], *, time: str, fencing_token: int | None = None
) -> Claim:
    """The claim that gives a table other properties, those of another version.

    Args:
        context: Of whoever claims.
        known: The properties file as it is.
        wanted: What it is to say.
        time: Of the claim.
        fencing_token: Of the lock that is held meanwhile, if it has one.
    """
    before = TableConfig.from_properties(decode_properties(known, PROPERTIES_PATH)).version
    after = TableConfig.from_properties(wanted).version
    return Claim(
        kind=ClaimKind.VERSION,
        instant=time,
        action=f"version {before} to {after}",
        time=time,
        content=Content.of(_NAME, describe_properties(wanted)),
        before=digest_of(known),
        owner=context.owner,
        lock_key=context.settings.lock_provider,
        fencing_token=fencing_token,
    )


def convert_for(storage: Storage, source: TimelineLayout, after: TableConfig) -> ConvertedTimeline | None:
    """The timeline of a table as its other version has it; None if both have one layout.

    Raises:
        DamagedTable: A file of it, or of its archive, cannot be read.
        StorageError: The store failed.
    """
    target = replace(after.layout, zone=source.zone)
    if source.version == target.version:
        return None
    return convert_timeline(storage, Timeline.load(storage, source), target)


def carry_out_change(context: TableContext, claim: Claim) -> None:
    """Do what the last claim says, as far as it is not done; every step may be repeated, by anybody.

    Who sleeps on the way makes nothing once a later claim is there, before which others have carried this one out.

    Raises:
        DamagedTable: A file cannot be read.
        StorageError: The store failed; another call goes on.
    """
    content = context.log.read_content(claim)
    if content is None:
        return
    after = TableConfig.from_properties(decode_properties(content, PROPERTIES_PATH))
    found = context.storage.read(PROPERTIES_PATH)
    if digest_of(found or b"") == claim.before:
        if not _replace(context, claim, after, content):
            return
    elif found != content:
        return  # carried out, and changed since
    _remove_old(context, claim, after)


def _replace(context: TableContext, claim: Claim, after: TableConfig, content: bytes) -> bool:
    """Make the timeline of the other layout, then let the properties say so; False if others have done it.

    The metadata table, of which they say nothing any more, goes with that.
    """
    storage = context.storage
    converted = convert_for(storage, context.layout, after)
    if converted is not None and not converted.create(storage, is_wanted=lambda: _is_last(context, claim)):
        return False
    context.trace(StopPoint.VERSION_CONVERTED)
    if not _is_last(context, claim):
        return False
    replace_properties_file(storage, content)
    context.trace(StopPoint.VERSION_SAID)
    if storage.stat(METADATA_FOLDER) is not None:  # now, and never later: somebody may be making the next one
        storage.delete_folder(METADATA_FOLDER)
    return True


def _remove_old(context: TableContext, claim: Claim, after: TableConfig) -> None:
    """The timeline of the layout before, and marks that are not made in version 6."""
    source = _find_source(context, claim, after)
    if source is not None and after.layout.version == LAYOUT_1.version and _is_last(context, claim):
        target = replace(after.layout, zone=source.zone)
        remove_ring_marks(context.storage, Timeline.load(context.storage, target))
    if source is not None:
        remove_timeline(context.storage, source, is_wanted=lambda: _is_last(context, claim))


def _find_source(context: TableContext, claim: Claim, after: TableConfig) -> TimelineLayout | None:
    """Where instants were before, if that was elsewhere; who opened the table since knows the usual places."""
    versions = _ACTION.fullmatch(claim.action)
    if versions is None or len({int(version) < _SINCE for version in versions.groups()}) == 1:
        return None
    if context.layout.version != after.layout.version:
        return context.layout
    return LAYOUT_1 if after.layout.version == LAYOUT_2.version else LAYOUT_2


def _is_last(context: TableContext, claim: Claim) -> bool:
    return context.log.read(claim.number + 1) is None
