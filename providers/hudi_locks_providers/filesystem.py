"""A lock that is a file: Hudi's FileSystemBasedLockProvider, without its ways of losing a lock."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import re
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from hudi_locks.clock import Clock
from hudi_locks.config import lock_keys, table_keys
from hudi_locks.errors import AlreadyHeld, BackendRefused, ConfigError, LockLost, ProviderClosed
from hudi_locks.lock import (
    Capability,
    Finding,
    Holder,
    Lease,
    LockProvider,
    LockScope,
    LossCallback,
    LossReason,
    Owner,
    SetupStep,
    SetupTerms,
)
from hudi_locks.lock.lease import generation
from hudi_locks.redaction import open_log
from hudi_locks_providers._files.hdfs import HdfsLockFolder
from hudi_locks_providers._files.hooks import FileSystemHooks
from hudi_locks_providers._files.local import LocalLockFolder
from hudi_locks_providers._files.lock_file import Found, LockFile, LockFolder, translate_errors
from hudi_locks_providers._files.name_nodes import WEB_SCHEMES, find_name_nodes
from hudi_locks_providers._files.remote import RemoteLockFolder
from hudi_locks_providers._files.truth import FolderTruth
from hudi_locks_providers._files.webhdfs import WebHdfs
from hudi_locks_providers._wire.lock_file import decode_lock_file, encode_constant, encode_lock_file

__all__ = ["FileSystemLockProvider"]

_logger = open_log(__name__)
_HDFS_SCHEMES: Final = frozenset({"hdfs", "viewfs", "dfs", "hopsfs"})
_ATOMIC_SCHEMES: Final = frozenset({"file", *_HDFS_SCHEMES, *WEB_SCHEMES})
_MS_PER_MINUTE: Final = 60_000
_BREAKS: Final = 100
"""So often a hold is looked at before it is removed: a renewal may come in between."""
_GROUPS: Final = ".hudi_locks/file_groups"
_STEP: Final = "lock-folder"
_DIGEST: Final = re.compile("[0-9a-f]{64}")


class _Hold(NamedTuple):  # made by every acquire, in less than half of the time that a dataclass takes
    file: LockFile
    grip: Any
    generation: int


class FileSystemLockProvider(LockProvider):
    """Holds `<folder>/lock`, wire-compatible with JVM Hudi; a file group has a file of its own beside it.

    What it promises beyond the JVM's: the file appears whole; nobody deletes a file that is not theirs; an expired
    file is taken over by one contender only; a living holder renews its file by the modification time, and learns
    when a JVM peer removed or replaced it. Expiry compares wall clocks, so hosts must keep theirs in step; a holder
    of ours tells in the file how long its lease is, and is judged by that.

    What it cannot promise: JVM writers delete the file without asking whose it is (on close, and after a timeout).
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SCOPE_HOSTS,
            Capability.LEASE,
            Capability.RENEWAL,
            Capability.FENCING,
            Capability.OWNER_INFO,
            Capability.LIST,
            Capability.BREAK,
            Capability.NEEDS_CLOCK_SYNC,
            Capability.LINEARIZABLE,
            Capability.CREATES_BACKEND,
            Capability.JVM_COMPATIBLE,
            Capability.FORK_AWARE,
        }
    )
    short_options: ClassVar[dict[str, str]] = {
        "path": lock_keys.FILESYSTEM_PATH.name,
        "expire": lock_keys.FILESYSTEM_EXPIRE.name,
    }

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self._folder_url = self._find_folder()
        self._scheme = urlsplit(self._folder_url).scheme or "file"
        self._check_scheme()
        self._lease_ms = self.options.get_value(lock_keys.FILESYSTEM_EXPIRE) * _MS_PER_MINUTE
        self._nonce = uuid.uuid4().hex
        self._serial = itertools.count(1)
        self._lock = threading.Lock()
        self._holds: dict[LockScope, Lease] = {}
        self._left: list[_Hold] = []
        self._closed = False

    def _find_folder(self) -> str:
        given = self.options.find(lock_keys.FILESYSTEM_PATH)
        base = self.options.find(table_keys.BASE_PATH)
        if not (given or base):
            raise ConfigError(
                f"the filesystem lock provider needs {lock_keys.FILESYSTEM_PATH.name} or {table_keys.BASE_PATH.name}",
                keys=(lock_keys.FILESYSTEM_PATH.name, table_keys.BASE_PATH.name),
            )
        default = self.options.get_value(lock_keys.FILESYSTEM_DEFAULT_FOLDER)
        return (given or f"{(base or '').rstrip('/')}/{default}").rstrip("/")

    def _check_scheme(self) -> None:
        named = self.options.get_value(lock_keys.ATOMIC_CREATION_SUPPORT)
        allowed = _ATOMIC_SCHEMES | {scheme.strip() for scheme in named.split(",")}
        if self._scheme not in allowed:
            raise ConfigError(
                f"{self._shown_url}: {self._scheme} is not known to create files atomically; use the storage or"
                f" zookeeper provider, or name it in {lock_keys.ATOMIC_CREATION_SUPPORT.name} if you know that it does",
                key=lock_keys.ATOMIC_CREATION_SUPPORT.name,
                scheme=self._scheme,
            )

    @functools.cached_property
    def _folder(self) -> LockFolder:
        if addresses := self._name_nodes():
            return HdfsLockFolder(WebHdfs(addresses), urlsplit(self._folder_url).path)
        if self._scheme != "file":
            return self._open_remote()
        has_scheme = self._folder_url.startswith("file:")
        return LocalLockFolder(_local_path(self._folder_url) if has_scheme else self._folder_url)

    def _name_nodes(self) -> tuple[str, ...]:
        """Addresses of WebHDFS, if the folder is to be reached by that."""
        is_hdfs = self._scheme in _HDFS_SCHEMES or self._scheme in WEB_SCHEMES
        return find_name_nodes(self._folder_url, self.options) if is_hdfs else ()

    def _open_remote(self) -> LockFolder:
        with translate_errors(self._shown_url):
            try:
                return RemoteLockFolder(self._folder_url, self._scheme)
            except (ImportError, ValueError, RuntimeError) as error:
                message = f"{self._shown_url}: fsspec cannot open it: {error}"
                raise BackendRefused(message, key=self._shown_url) from error

    @functools.cached_property
    def _truth(self) -> FolderTruth:
        return FolderTruth(self._folder, self.clock, self._shown_url)

    @property
    def _shown_url(self) -> str:
        """The folder's address without the user and password that some carry."""
        return re.sub(r"//[^/@:]*:[^/@]*@", "//", self._folder_url)

    def _file(self, scope: LockScope) -> LockFile:
        return self._table_file if scope.is_table else self._file_group_file(scope)

    @functools.cached_property
    def _table_file(self) -> LockFile:
        return self._folder.lock_file("lock")

    def _file_group_file(self, scope: LockScope) -> LockFile:
        named = f"{len(scope.partition or '')}:{scope.partition}/{scope.file_id}"
        return self._folder.lock_file(f"{_GROUPS}/{hashlib.sha256(named.encode()).hexdigest()}")

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.try_acquire`."""
        file = self._file(scope)
        with file.translated:
            self._check_free(scope, owner)
            if self._scheme not in _ATOMIC_SCHEMES:
                self._truth.prove()
            sent_s, now_ms = self.clock.monotonic(), self.clock.wall_ms()
            data = self._encode(scope, owner, now_ms)
            modified_ms = now_ms if self._lease_ms else None
            grip = file.create(data, modified_ms)
            if grip is None and self._remove_expired(file):
                grip = file.create(data, modified_ms)
            if grip is None:
                return None
            return self._hold(scope, owner, _Hold(file, grip, generation()), sent_s=sent_s, now_ms=now_ms)

    def _check_free(self, scope: LockScope, owner: Owner) -> None:
        if self._closed:
            raise ProviderClosed("the filesystem lock provider is closed", scope=scope)
        held = self._holds.get(scope)
        if held is not None and held.owner == owner and held.state.file.is_ours(held.state.grip):
            raise AlreadyHeld(f"{owner} holds the lock on {scope} already", scope=scope, owner=owner)

    def _encode(self, scope: LockScope, owner: Owner, now_ms: int) -> bytes:
        hold = f"{self._nonce}-{next(self._serial)}"
        constant = _constant_part(owner, scope)
        return encode_lock_file(constant, hold=hold, since_ms=now_ms, lease_ms=self._lease_ms, trace=owner.trace)

    def _hold(self, scope: LockScope, owner: Owner, hold: _Hold, *, sent_s: float, now_ms: int) -> Lease:
        try:
            token = self._folder.next_token(now_ms)
        except BaseException:
            self._remove(hold)
            raise
        deadline_s = sent_s + self._lease_ms / 1000 if self._lease_ms else None
        lease = Lease(scope, owner, token, deadline_s, hold)
        with self._lock:
            lost = self._holds.pop(scope, None)
            self._holds[scope] = lease
        if lost is not None:
            self._remove(lost.state)
        return lease

    def _remove(self, hold: _Hold) -> None:
        """Remove the file of what nobody holds; `close` tries again if that fails."""
        try:
            hold.file.remove_own(hold.grip, contended=False)
        except OSError:
            self._left.append(hold)
            _logger.warning("%s could not be removed, and will be when the provider is closed", hold.file.path)

    def _remove_expired(self, file: LockFile) -> bool:
        found = file.find()
        return found is None or (self._is_expired(found) and file.remove_found(found, self._is_expired))

    def _is_expired(self, found: Found) -> bool:
        left_ms = self._left_ms(found)
        return left_ms is not None and left_ms < 0

    def _left_ms(self, found: Found) -> int | None:
        """How long the file is still good, by its own setting, else, in a file of the JVM, by ours; None for ever."""
        told_ms = decode_lock_file(found.data).lease_ms
        lease_ms = self._lease_ms if told_ms is None else told_ms
        return found.modified_ms + lease_ms - self.clock.wall_ms() if lease_ms else None

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        sent_s = self.clock.monotonic()
        if lease.deadline_s is not None and sent_s >= lease.deadline_s:
            raise self._lost(lease, LossReason.EXPIRED)
        with self._lock, self._file(lease.scope).translated:
            hold = self._own_hold(lease)
            hold.file.touch(hold.grip, self.clock.wall_ms())
            ours = hold.file.is_ours(hold.grip)
        if not ours:
            raise self._lost(lease, LossReason.DELETED if ours is None else LossReason.STOLEN)
        renewed = replace(lease, deadline_s=sent_s + self._lease_ms / 1000 if self._lease_ms else None)
        with self._lock:
            if lease.scope in self._holds:
                self._holds[lease.scope] = renewed
        return renewed

    def _own_hold(self, lease: Lease) -> _Hold:
        own = self._holds.get(lease.scope)
        if own is None or own.state is not lease.state or own.owner != lease.owner:
            raise self._lost(lease, LossReason.DELETED if own is None else LossReason.STOLEN)
        hold: _Hold = own.state
        if hold.generation != generation():
            raise self._lost(lease, LossReason.FORKED)
        return hold

    def _lost(self, lease: Lease, reason: LossReason) -> LockLost:
        return lease.lost(reason, key=self._file(lease.scope).path)

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`; one that failed may be tried again."""
        with self._lock:
            own = self._holds.get(lease.scope)
            if own is None or own.state is not lease.state or own.owner != lease.owner:
                return
            hold: _Hold = own.state
            if hold.generation != generation():
                return
            del self._holds[lease.scope]
        ends = own.deadline_s is not None  # perhaps between a look at the file and its removal
        try:
            with hold.file.translated:
                hold.file.remove_own(hold.grip, contended=ends)
        except BaseException:
            with self._lock:
                self._holds.setdefault(lease.scope, own)
            raise

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        return self._read_holder(self._file(scope))

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`; a file group that a JVM writer locked is not told by name."""
        with self._table_file.translated:
            names = filter(_DIGEST.fullmatch, self._folder.list_names(_GROUPS))
            groups = [self._folder.lock_file(f"{_GROUPS}/{name}") for name in sorted(names)]
        table = self._read_holder(self._table_file)
        found = [replace(table, scope=str(LockScope.table()))] if table else []
        return [*found, *filter(None, map(self._read_holder, groups))]

    def _read_holder(self, file: LockFile) -> Holder | None:
        with file.translated:
            found = file.find()
        if found is None:
            return None
        content = decode_lock_file(found.data)
        return Holder(
            key=file.path,
            owner=content.owner,
            since_ms=content.since_ms,
            age_ms=max(0, self.clock.wall_ms() - found.modified_ms),
            token=_token(found),
            expires_in_ms=self._left_ms(found),
            raw=content.raw,
            scope=content.scope,
        )

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`; a hold that is renewed in between is tried again."""
        file = self._file(scope)
        with file.translated:
            for _ in range(_BREAKS):
                found = file.find()
                if found is None or _token(found) != token:
                    return False
                if file.remove_found(found, lambda seen: _token(seen) == token):
                    return True
        return False

    def probe(self) -> tuple[Finding, ...]:
        """See `LockProvider.probe`: races for scratch files beside the lock, and the clock of the file system."""
        with translate_errors(self._shown_url):
            return self._truth.examine()

    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:
        """See `LockProvider.set_up`: the folder, unless it is the table's own, which comes with the table."""
        with translate_errors(self._shown_url):
            if self._folder.is_there():
                return (SetupStep.there(_STEP, self._shown_url),)
            if self._lies_in_table:
                return (SetupStep.not_needed(_STEP, f"{self._shown_url} comes with the table"),)
            if terms.dry_run:
                return (SetupStep.to_make(_STEP, self._shown_url),)
            self._folder.make()
        return (SetupStep.made(_STEP, self._shown_url),)

    @property
    def _lies_in_table(self) -> bool:
        """Whether the folder is below `.hoodie`, by which JVM writers tell that there is a table."""
        base = (self.options.find(table_keys.BASE_PATH) or "").rstrip("/")
        return bool(base) and f"{self._folder_url}/".startswith(f"{base}/.hoodie/")

    def close(self) -> None:
        """See `LockProvider.close`: releases what this very client holds, and nothing else."""
        self._closed = True
        with contextlib.ExitStack() as stack:
            for lease in list(self._holds.values()):
                stack.callback(self.release, lease)
            left, self._left = self._left, []
            for hold in left:
                if hold.generation == generation():
                    stack.callback(self._remove, hold)

    def holder_path(self, scope: LockScope) -> str:
        """Where the lock file of `scope` lies."""
        return self._file(scope).path

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return FileSystemHooks


@functools.lru_cache(maxsize=256)
def _constant_part(owner: Owner, scope: LockScope) -> str:
    return encode_constant(owner, str(scope))


def _token(found: Found) -> str:
    """Names the hold: by its own word, else, in a file of the JVM, by when the file was last written."""
    return decode_lock_file(found.data).hold or f"modified-{found.modified_ms}"


def _local_path(url: str) -> str:
    """The path of a `file:` address, in which "#" and "?" are letters like others, as Hadoop and Spark have it."""
    path = url.removeprefix("file:")
    return url2pathname("/" + path.removeprefix("//").partition("/")[2] if path.startswith("//") else path)
