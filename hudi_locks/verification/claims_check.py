"""The claim log: its chain, and whether the timeline has what it published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from hudi_locks.format import (
    CommitMetadata,
    Instant,
    RestoreMetadata,
    RollbackMetadata,
    State,
    find_writer,
    parse_instant_name,
)
from hudi_locks.format.claim import (
    PRIVATE_FOLDER,
    Claim,
    ClaimKind,
    claim_path,
    decode_claim,
    decode_tickets,
    digest_of,
)
from hudi_locks.storage import map_in_threads
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER
from hudi_locks.verification.report import Notebook
from hudi_locks.verification.survey import Survey

__all__ = ["check_claims"]

_KIND: Final = "claim"
_FOLDER: Final = f"{PRIVATE_FOLDER}/claims"
_HEAD: Final = f"{PRIVATE_FOLDER}/head"
_ENDANGERED: Final = "endangered-"
_NOTICES: Final = f"{PRIVATE_FOLDER}/notices"


def check_claims(survey: Survey) -> None:
    """Look at every claim, and at what each of them promised."""
    claims = _read_all(survey)
    _check_hint(survey, len(claims))
    undone = _find_undone(survey, claims)
    known = {instant.requested for instant in survey.timeline.completed()} | {row.requested for row in survey.archived}
    changed = max((at for at, claim in enumerate(claims) if claim.kind is ClaimKind.VERSION), default=-1)
    for at, claim in enumerate(claims):
        if claim.kind is ClaimKind.PUBLISH and claim.instant not in undone:
            if at >= changed:
                _check_publish(survey, claim, is_last=at == len(claims) - 1)
            elif claim.instant not in known:  # its completed file has another name and form since the version changed
                _check_missing(survey, claim, f"{survey.table.layout.folder}/{claim.instant}", is_last=False)
    for name in survey.storage.list_names(_NOTICES):
        if name.startswith(_ENDANGERED):
            survey.book.damage(
                "notice",
                f"{_NOTICES}/{name}",
                expected="no write that undid another",
                found="a notice of one; every write is refused until somebody has looked",
                advice="compare what the two instants wrote, then call Transactions.notices.acknowledge(instant)",
            )


def _read_all(survey: Survey) -> list[Claim]:
    names = sorted(survey.storage.list_names(_FOLDER))
    read = map_in_threads(survey.storage.read, [f"{_FOLDER}/{name}" for name in names])
    claims: list[Claim] = []
    before = ""
    for number, (name, data) in enumerate(zip(names, read, strict=True), 1):
        path = claim_path(number)
        if name != path.rpartition("/")[2]:
            found = f"{name} in its place"
            survey.book.damage(_KIND, path, expected="entries numbered without a gap", found=found)
            return claims
        survey.book.checked["claims"] += 1
        with survey.book.reading(_KIND, path, "a claim that can be read, with the digest of its content"):
            claim = decode_claim(data or b"", number)
            _check_chain(survey.book, claim, before, path)
            claims.append(claim)
        before = digest_of(data or b"")
    return claims


def _check_chain(book: Notebook, claim: Claim, before: str, path: str) -> None:
    if claim.previous != before:
        found = f"that of other bytes: {claim_path(claim.number - 1)} was changed, or this entry"
        book.damage(_KIND, path, expected="the digest of the entry before", found=found)
    content = claim.content
    if claim.kind is not ClaimKind.PUBLISH or content is None:
        return
    instant = parse_instant_name(content.name)
    wanted = Instant(claim.instant, claim.action, State.INFLIGHT).as_completed(claim.time)
    if instant not in (wanted, replace(wanted, completion=None)):  # names of version 6 tell no completion time
        book.damage(_KIND, path, expected=f"the completed file of {claim.instant}", found=f"{content.name} as content")
    elif content.data is not None:
        commit = CommitMetadata.decode(content.data, path)
        if commit.written_file_groups != frozenset(claim.writes):
            book.damage(_KIND, path, expected="the file groups that its content names", found="others in `writes`")
        if (
            claim.tickets
            and claim.tickets.data
            and not {*commit.paths, *(log.path for log in commit.change_logs)}.issuperset(
                _name_data_files(claim.tickets.data, claim)
            )
        ):
            book.damage(_KIND, path, expected="tickets of the files that its content names", found="tickets of others")


def _check_hint(survey: Survey, last: int) -> None:
    text = (survey.storage.read(_HEAD) or b"0").strip()
    if not text.isdigit() or len(text) > 20:
        advice = "nothing; the next writer writes it anew"
        found = "something else, which costs requests and harms nobody"
        survey.book.note(_KIND, _HEAD, expected=f"a number near {last}", found=found, advice=advice)


def _find_undone(survey: Survey, claims: Sequence[Claim]) -> frozenset[str]:
    """Instants whose publish does not count any more: voided, or undone by a restore or a rollback, also of the JVM."""
    voided = {claim.instant for claim in claims if claim.kind is ClaimKind.VOID}
    return frozenset(voided | set(_list_rolled_back(survey)))


def _list_rolled_back(survey: Survey) -> Iterator[str]:
    active = [(i, survey.contents.get(survey.timeline.paths[i], b"")) for i in survey.timeline.completed()]
    archived = [(Instant(r.requested, r.action, State.COMPLETED, r.completion), r.metadata) for r in survey.archived]
    for instant, data in (*active, *archived):
        with Notebook().reading("", "", ""):
            if instant.action == "rollback" and data:
                yield from (time for time, _ in RollbackMetadata.decode(data, "").rolled_back)
            if instant.action == "restore" and data:
                yield from (time for time, _ in RestoreMetadata.decode(data, "").instants)


def _check_publish(survey: Survey, claim: Claim, *, is_last: bool) -> None:
    content = claim.content
    if content is None:
        return
    path = f"{survey.table.layout.folder}/{content.name}"
    data = survey.contents.get(path)
    if data is None:
        data = next((row.metadata for row in survey.archived if row.requested == claim.instant), None)
        if data is not None and survey.table.layout.is_version_6:
            return  # that archive has it in another form
    if data is None:
        _check_missing(survey, claim, path, is_last=is_last)
    elif digest_of(data) != content.sha256:
        found = f"bytes with another digest than claim {claim.number} says"
        survey.book.damage("timeline", path, expected=f"SHA-256 {content.sha256}", found=found, advice=_advice(claim))


def _check_missing(survey: Survey, claim: Claim, path: str, *, is_last: bool) -> None:
    is_living = survey.storage.exists(f"{HEARTBEAT_FOLDER}/{claim.instant}")
    if survey.timeline.pending(("restore", "rollback")):
        survey.book.leave_out("what a restore or rollback that is under way undoes")
    elif is_last and (is_living or claim.instant in survey.pending):
        found = "a publish that is under way, or whose writer died"
        advice = "nothing; the next writer completes it"
        survey.book.note("timeline", path, expected="the completed file", found=found, advice=advice)
    else:
        expected = f"the completed file of {claim.instant}, which claim {claim.number} published"
        survey.book.damage("timeline", path, expected=expected, found="no such file", advice=_advice(claim))


def _advice(claim: Claim) -> str:
    return f"bring it back: its bytes stand in {claim_path(claim.number)}, in `content`"


def _name_data_files(tickets: bytes, claim: Claim) -> list[str]:
    """Those with tickets; logs of the metadata table have some too."""
    return [path for path in decode_tickets(tickets, claim) if find_writer(path) is not None]
