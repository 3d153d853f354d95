"""The archived timeline: version file, manifest, parts, and what their rows hold."""

from __future__ import annotations

from typing import Final

from hudi_locks.format import (
    FIRST_TIME,
    ArchiveRow,
    Instant,
    PartName,
    State,
    decode_rows,
    epoch_ms,
    parse_manifest_name,
)
from hudi_locks.timeline.history import ArchivedHistory
from hudi_locks.timeline.old_archive import read_old_archive
from hudi_locks.verification.survey import Survey
from hudi_locks.verification.timeline_check import decode_content

__all__ = ["check_archive"]

_KIND: Final = "archive"
_VERSION_FILE: Final = "_version_"


def check_archive(survey: Survey) -> None:
    """Look at the history, and give its rows to `survey`."""
    layout, storage, book = survey.table.layout, survey.storage, survey.book
    if layout.is_version_6:
        with book.reading(_KIND, layout.archive, "files of the archive that can be read"):
            found = read_old_archive(storage, layout, archived_after=FIRST_TIME)
            book.checked["archived instants"] += len(found)
            survey.archived = tuple(ArchiveRow(*one) for one in found if one[3])
        return
    names = frozenset(storage.list_names(layout.archive))
    with book.reading(_KIND, layout.archive, "a manifest of the archived timeline that can be read"):
        version, sizes = ArchivedHistory(storage, layout).read_manifest()
        _check_version(survey, version)
        rows = [row for name, size in sorted(sizes.items()) for row in _read_part(survey, name, size)]
        survey.archived = tuple({(row.requested, row.action): row for row in rows}.values())
        for name in sorted(names - sizes.keys()):
            if PartName.parse(name) is not None:
                advice = "nothing; the next archiver drops it, or names it"
                book.note(
                    "stray",
                    f"{layout.archive}/{name}",
                    expected="a manifest that names it",
                    found="none",
                    advice=advice,
                )
    for row in survey.archived:
        _check_row(survey, row)


def _check_version(survey: Survey, version: int) -> None:
    """Archivers at work write a manifest, then its number, and remove old ones: what has changed is looked at again."""
    path, before = f"{survey.table.layout.archive}/{_VERSION_FILE}", None
    while (text := (survey.storage.read(path) or b"").strip()) != before:
        known = {parse_manifest_name(name) for name in survey.storage.list_names(survey.table.layout.archive)}
        if not version or (text.isdigit() and int(text[:20]) in known):
            return
        before = text
    found = repr(text.decode(errors="replace")) if text else "no such file"
    advice = f"write {version} into it: JVM readers follow it"
    survey.book.damage(_KIND, path, expected=f"the number of a manifest, as {version}", found=found, advice=advice)


def _read_part(survey: Survey, name: str, size: int) -> list[ArchiveRow]:
    path = f"{survey.table.layout.archive}/{name}"
    data = survey.storage.read(path)
    survey.book.checked["archive parts"] += 1
    if data is None or len(data) != size:
        found = "no such file" if data is None else f"{len(data)} bytes"
        survey.book.damage(_KIND, path, expected=f"{size} bytes, as the manifest says", found=found)
        return []
    rows: list[ArchiveRow] = []
    with survey.book.reading(_KIND, path, "rows of the archived timeline"):
        rows += decode_rows(data, path)
    return rows


def _check_row(survey: Survey, row: ArchiveRow) -> None:
    survey.book.checked["archived instants"] += 1
    instant = Instant(row.requested, row.action, State.COMPLETED, row.completion)
    path = f"{survey.table.layout.archive} ({row.action} {row.requested})"
    with survey.book.reading(_KIND, path, "times, and the content of its kind"):
        epoch_ms(row.requested)
        epoch_ms(row.completion)
        decode_content(instant, row.metadata, path)
