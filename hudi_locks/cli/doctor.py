"""`doctor`: whether a lock service keeps what locks need, tried on scratch keys; and the permissions it asks for."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from hudi_locks.cli.options import ConfigFile, Json, Key, Provider, Settings, gather, make_provider
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.cli.tables import find_storage, find_table_name, refuse_no_table
from hudi_locks.clock import SystemClock
from hudi_locks.config import Options, lock_keys, table_keys
from hudi_locks.errors import HudiLocksError, Unsupported
from hudi_locks.lock import Capability, Finding, Lease, LockProvider, LockScope, Owner, load_provider_class
from hudi_locks.storage import Storage, probe_storage

__all__ = ["doctor", "examine"]

_ILL = 1
_COMPARED = 100
"""So many of the newest entries of the claim log."""
_PARTITION = "hudi_locks_doctor"


@prints(list[Finding])
def doctor(
    key: Key = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    iam: Annotated[bool, typer.Option("--iam", help="Print the AWS policy that the provider needs.")] = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Try whether the lock service, and the store of a table at KEY, keep what writers need. Locks are left alone.

    Of a table it also tells if others lately wrote to it under another lock provider.

    Exit status: 0 all is well; 1 something is not, or the service cannot be asked.

    Example: hudi-locks doctor -p zookeeper -o url=zk-1:2181 -o hoodie.base.path=/data/trips
    """
    if iam:
        given = gather(key, provider, settings=option, config=config)
        typer.echo(json.dumps(_find_policy(given.provider, given.options), indent=2))
        return
    if key:
        refuse_no_table(key, advice=f"to try a service without a table, give -o {table_keys.BASE_PATH.name}=PATH")
    with make_provider(key, provider, settings=option, config=config) as asked:
        findings = [*examine(asked), *_examine_table(asked.options)]
    _print(findings, as_json=as_json)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(_ILL)


def _find_policy(name: str, options: Mapping[str, object]) -> Mapping[str, Any]:
    policy = load_provider_class(name).iam_policy(options)
    if policy is None:
        raise Unsupported(f"the lock provider {name!r} is reached without AWS permissions: --iam has nothing to print")
    return policy


def examine(provider: LockProvider) -> Iterator[Finding]:
    """All findings about a provider's lock service; an error of the service becomes one, and ends the examination."""
    try:
        yield _look(provider)
        yield from provider.probe()
        yield from _cycle(provider)
    except HudiLocksError as error:
        yield Finding("service", ok=False, found=f"{type(error).__name__}: {error}", advice="mend this, and ask again")


def _examine_table(options: Options) -> Iterator[Finding]:
    """Of the table's own store, and of its other writers, if there is a table."""
    path = options.find(table_keys.BASE_PATH)
    storage = find_storage(path, options) if path and find_table_name(path, options) else None
    if storage is not None:
        yield from probe_storage(storage, SystemClock())
        yield _compare_locks(storage, options.get_value(lock_keys.PROVIDER))


def _compare_locks(storage: Storage, provider: str) -> Finding:
    """Whether others wrote to the table under another lock."""
    from hudi_locks.verification import find_other_lock  # brings Arrow along, which commands without a path do without

    other = find_other_lock(storage, provider, last=_COMPARED)
    if other is None:
        return Finding("one-lock", ok=True, found="no write was lately made under another lock provider")
    found = f"{other.instant} was written under {other.provider} by {other.owner}; these options take {provider}"
    advice = "give all writers of a table one provider, or they do not keep each other out; a chain moves them over"
    return Finding("one-lock", ok=False, found=found, advice=advice)


def _look(provider: LockProvider) -> Finding:
    began_s = provider.clock.monotonic()
    holder = provider.holder(LockScope.table())
    took_ms = (provider.clock.monotonic() - began_s) * 1000
    said = "nobody holds the table's lock" if holder is None else f"the table's lock is held by {holder.owner}"
    return Finding("answers", ok=True, found=f"{said}; asked in {took_ms:.1f} ms")


def _cycle(provider: LockProvider) -> Iterator[Finding]:
    """One life of a scratch lock: granted, refused to another, released."""
    scope = LockScope.file_group(_PARTITION, socket.gethostname())  # one for each host: some services keep its record
    began_s = provider.clock.monotonic()
    lease = provider.try_acquire(scope, _owner("first"), 0.0)
    if lease is None:
        holder = provider.holder(scope)
        said = f"is held by {holder.owner}" if holder else "was refused although nobody holds it"
        advice = "if another doctor is at work on this host, ask again"
        yield Finding("grants", ok=False, found=f"the scratch lock {scope} {said}", advice=advice)
        return
    try:
        yield from _judge_lease(provider, lease)
    finally:
        provider.release(lease)
    took_ms = (provider.clock.monotonic() - began_s) * 1000
    freed = provider.holder(scope) is None
    found = f"granted and {'released' if freed else 'NOT released'} in {took_ms:.1f} ms"
    yield Finding("releases", ok=freed, found=found)


def _judge_lease(provider: LockProvider, lease: Lease) -> Iterator[Finding]:
    second = provider.try_acquire(lease.scope, _owner("second"), 0.0)
    if second is not None:
        provider.release(second)
    excludes = second is None
    found = "a second owner was refused" if excludes else "TWO owners hold one lock"
    advice = "" if excludes else "do not write with this lock service: updates would be lost"
    yield Finding("excludes", ok=excludes, found=found, advice=advice)
    if Capability.FENCING in provider.capabilities:
        yield Finding("fencing-token", ok=lease.token is not None, found=f"token {lease.token}")


def _owner(name: str) -> Owner:
    return Owner(f"doctor-{name}-{uuid.uuid4()}", socket.gethostname(), os.getpid(), name, "hudi-locks doctor")


def _print(findings: list[Finding], *, as_json: bool) -> None:
    if as_json:
        print_json(findings)
        return
    table = Table("", "tried", "found", box=None)
    for finding in findings:
        advice = f"\n→ {finding.advice}" if finding.advice else ""
        table.add_row("ok" if finding.ok else "ILL", finding.name, finding.found + advice)
    open_console().print(table)
