"""SF, SC and SR: files as they are read, listed, made once and renewed."""

from __future__ import annotations

from functools import partial
from threading import Event
from typing import Final

from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage import Entry
from hudi_locks_conformance.check import Violation
from hudi_locks_conformance.storages.check import StorageBench, race, require, storage_check

_RACERS: Final = 8
_TURNS: Final = 8
_MANY: Final = 1_050
"""More than object stores list on one page."""
_MOST_APART_MS: Final = 60_000
_NAMES: Final = ("a b", "ü", "x=1", "%20", "a+b", "c:d", "q?", "h#", ".hidden")
"""Partition paths have such names."""


@storage_check("SF1", "what-is-not-there", why="Writers and readers ask for files that may not be there, all the time.")
def nothing_is_there(bench: StorageBench) -> None:
    """What was never made is read as None, listed as nothing, deleted as False, and opened as NoSuchFile."""
    storage, path = bench.storage, bench.path("none")
    require(storage.read(path) is None, "read() of a file that is not there returned something")
    require(storage.stat(path) is None, "stat() of what is not there returned an entry")
    require(not storage.exists(path), "exists() of what is not there is true")
    require(storage.list(path) == [] and list(storage.walk(path)) == [], "a folder that is not there has children")
    require(storage.delete(path) is False, "delete() of a file that is not there did not return False")
    storage.delete_folder(path)
    try:
        storage.open_input(path)
    except NoSuchFile:
        return
    except StorageError as error:
        require(kept=False, message=f"open_input() of what is not there raised {type(error).__name__}, not NoSuchFile")
    require(kept=False, message="open_input() of what is not there opened it")


@storage_check("SF2", "read-what-was-written", why="An instant, a claim or a plan that is read in part is damage.")
def bytes_come_back(bench: StorageBench) -> None:
    """A file holds exactly the bytes that it was made or replaced with, the empty file too."""
    storage = bench.storage
    for name, data in {
        "none": b"",
        "one": b"x",
        "all": bytes(range(256)) * 3,
        "large": b"0123456789" * 150_000,
    }.items():
        storage.create_if_absent(bench.path(name), data)
        require(storage.read(bench.path(name)) == data, f"a file of {len(data)} bytes came back with other bytes")
        storage.replace(bench.path(name), data[::-1])
        require(
            storage.read(bench.path(name)) == data[::-1], f"{len(data)} bytes that replaced others came back as others"
        )


@storage_check("SF3", "seen-at-once", why="Who lists after a claim must see what was there when the claim was made.")
def seen_at_once(bench: StorageBench) -> None:
    """What was made is listed, walked, found and read at once, by another client too; what was deleted is not."""
    storage = bench.storage
    for turn in range(_TURNS):
        path, name = bench.path(f"d/{turn}"), str(turn)
        storage.create_if_absent(path, b"data")
        require(storage.read(path) == b"data", "a file that was just made cannot be read")
        require(name in storage.list_names(bench.path("d")), "list_names() lacks a file that was just made")
        require(name in _listed(bench, "d"), "list() lacks a file that was just made")
        require(f"d/{turn}" in bench.names(), "walk() lacks a file that was just made")
        storage.replace(path, b"other")
        require(storage.read(path) == b"other", "a file that was just replaced has its old bytes")
        require(storage.delete(path), "delete() of a file that was there did not return True")
        require(storage.read(path) is None, "a file that was just deleted can be read")
        require(name not in _listed(bench, "d"), "list() has a file that was just deleted")
        require(f"d/{turn}" not in bench.names(), "walk() has a file that was just deleted")


def _listed(bench: StorageBench, folder: str) -> list[str]:
    return [entry.name for entry in bench.storage.list(bench.path(folder))]


@storage_check("SF4", "children-by-name", why="File slices and the timeline are made from listings.")
def children_by_name(bench: StorageBench) -> None:
    """A folder lists its direct children by name, with size and kind; folders whose names begin alike are apart."""
    storage = bench.storage
    for path in ("x/b", "x/a/deep/file", "x/a/file", "xy/z", "x-1"):
        storage.create_if_absent(bench.path(path), b"123")
    found = [(entry.name, entry.size, entry.is_folder) for entry in storage.list(bench.path("x"))]
    require(found == [("a", 0, True), ("b", 3, False)], f"list() shows {found}")
    require(sorted(storage.list_names(bench.path("x"))) == ["a", "b"], "list_names() is not what list() names")
    walked = sorted(path for path, _ in storage.walk(bench.path("x")))
    wanted = [bench.path(name) for name in ("x/a/deep/file", "x/a/file", "x/b")]
    require(walked == wanted, f"walk() shows {walked}")
    storage.delete_folder(bench.path("x"))
    require(list(bench.names()) == ["x-1", "xy/z"], f"after delete_folder('x') there is {bench.names()}")


@storage_check("SF5", "entries-tell-facts", why="Sizes find damaged files; versions spare a second read.")
def entries_tell_facts(bench: StorageBench) -> None:
    """stat() and list() say the same of a file; its version changes with its bytes, and its time lies near now_ms()."""
    storage, path = bench.storage, bench.path("f")
    before_ms = storage.now_ms()
    storage.create_if_absent(path, b"12")
    entry = _stat(bench, path)
    require([entry] == storage.list(bench.folder), f"list() says {storage.list(bench.folder)}, stat() says {entry}")
    require((entry.name, entry.size, entry.is_folder) == ("f", 2, False), f"stat() says {entry}")
    apart_ms = abs(entry.modified_ms - before_ms)
    require(apart_ms < _MOST_APART_MS, f"a new file has a time {apart_ms} ms away from now_ms()")
    storage.replace(path, b"1234")
    after = _stat(bench, path)
    require(after.size == 4, "stat() has the size of bytes that were replaced")
    require(after.version == "" or after.version != entry.version, "the version of a file did not change with it")


def _stat(bench: StorageBench, path: str) -> Entry:
    entry = bench.storage.stat(path)
    if entry is None:
        raise Violation("stat() does not see a file")
    return entry


@storage_check("SF6", "long-listings", why="Partitions and timelines have more files than one page of a listing.")
def long_listings(bench: StorageBench) -> None:
    """More files than a page are listed and walked in full."""
    names = [f"{number:05}" for number in range(_MANY)]
    made = bench.storage.create_empty([bench.path(f"many/{name}") for name in names])
    require(len(made) == _MANY, f"create_empty() made {len(made)} of {_MANY} files")
    require(_listed(bench, "many") == names, f"list() has {len(_listed(bench, 'many'))} of {_MANY} files")
    require(len(bench.names()) == _MANY, f"walk() has {len(bench.names())} of {_MANY} files")
    bench.storage.delete_folder(bench.path("many"))
    require(not bench.names(), f"delete_folder() left {len(bench.names())} of {_MANY} files")


@storage_check(
    "SF7", "names-of-partitions", why="Partition values come from data; a name that is changed is another one."
)
def names_of_partitions(bench: StorageBench) -> None:
    """Names with signs and letters of every kind are kept as they are and apart, or refused when they are made."""
    kept = [name for name in _NAMES if _is_taken_up(bench, name)]
    for name in kept:
        require(bench.storage.read(bench.path(f"{name}/f")) == name.encode(), f"{name!r} has the bytes of another name")
    found = sorted(entry.name for entry in bench.storage.list(bench.folder))
    require(found == sorted(kept), f"list() shows {found}, of {sorted(kept)}")


def _is_taken_up(bench: StorageBench, name: str) -> bool:
    try:
        made = bench.storage.create_if_absent(bench.path(f"{name}/f"), name.encode())
    except StorageError:
        return False  # as HDFS refuses colons
    require(made, f"the free name {name!r} was taken")
    return True


@storage_check("SF8", "reads-at-any-place", why="Parquet files are read from their end.")
def reads_at_any_place(bench: StorageBench) -> None:
    """open_input() tells the size, and reads any part of a file."""
    data = bytes(range(256)) * 400
    bench.storage.create_if_absent(bench.path("f"), data)
    with bench.storage.open_input(bench.path("f")) as file:
        require(file.size() == len(data), f"open_input() says {file.size()} of {len(data)} bytes")
        for start, size in ((len(data) - 8, 8), (0, 4), (5_000, 70_000), (len(data) - 1, 1)):
            file.seek(start)
            require(file.read(size) == data[start : start + size], f"the {size} bytes from {start} are others")


@storage_check("SF9", "copies-see-the-same", why="Executors get a pickled copy, and write and read by it.")
def copies_see_the_same(bench: StorageBench) -> None:
    """A pickled copy reads what the storage made, and the storage what the copy made; both exclude each other."""
    copy = bench.copy()
    require(bench.storage.create_if_absent(bench.path("a"), b"a"), "a free name was taken")
    require(copy.read(bench.path("a")) == b"a", "a pickled copy does not see a file of the storage")
    require(not copy.create_if_absent(bench.path("a"), b"b"), "a pickled copy made a file that was there")
    require(copy.create_if_absent(bench.path("b"), b"b"), "a free name was taken for a pickled copy")
    require(bench.storage.read(bench.path("b")) == b"b", "the storage does not see a file of its pickled copy")


@storage_check(
    "SC1", "made-once", needs="conditional_create", why="Two writers would own one claim, and one update would be lost."
)
def made_once(bench: StorageBench) -> None:
    """A file that is there is neither made again nor changed, whatever it holds."""
    storage = bench.storage
    for name, data in {"some": b"first", "empty": b""}.items():
        path = bench.path(name)
        require(storage.create_if_absent(path, data), "a free name was taken")
        for again in (b"second", b"", data):
            require(not storage.create_if_absent(path, again), f"create_if_absent() over {data!r} returned True")
            require(storage.read(path) == data, f"create_if_absent() changed a file of {data!r}")
        require(not storage.create_transient(path, b"beat"), "create_transient() over a file returned True")
        require(storage.create_empty([path]) == set(), "create_empty() says that it made a file that was there")
        require(storage.read(path) == data, f"create_transient() or create_empty() changed a file of {data!r}")


@storage_check(
    "SC2",
    "one-winner",
    needs="conditional_create",
    why="Two writers would own one claim, and one update would be lost.",
)
def one_winner(bench: StorageBench) -> None:
    """Of many that make one file at the same time one is told that it did, and the file has its bytes."""
    for turn in range(_TURNS):
        path = bench.path(str(turn))
        made = race(*[partial(bench.storage.create_if_absent, path, b"%d" % number) for number in range(_RACERS)])
        require(made.count(True) == 1, f"{made.count(True)} of {_RACERS} were told that they made one file")
        found = bench.storage.read(path)
        require(
            found == b"%d" % made.index(True), f"{made.index(True)} was told that it made the file; it has {found!r}"
        )


@storage_check(
    "SC3", "whole-or-not-at-all", needs="conditional_create", why="A reader would take half a claim for damage."
)
def whole_or_not_at_all(bench: StorageBench) -> None:
    """Who reads a file while it is made or replaced sees all of some bytes, and nothing else."""
    storage, path = bench.storage, bench.path("f")
    texts = [b"a" * 300_000, b"b" * 200_000]

    written = Event()

    def look() -> set[bytes | None]:
        seen = {storage.read(path)}
        while not written.is_set():
            seen.add(storage.read(path))
        return seen

    def write() -> set[bytes | None]:
        try:
            storage.create_if_absent(path, texts[0])
            for turn in range(6):
                storage.replace(path, texts[(turn + 1) % 2])
        finally:
            written.set()
        return set()

    seen = set[bytes | None]().union(*race(write, look, look))
    odd = [len(data) for data in seen if data is not None and data not in texts]
    require(not odd, f"a reader saw {odd} bytes, of files that have 300,000 and 200,000")


@storage_check(
    "SC4", "free-again", needs="conditional_create", why="A heartbeat or a marker is made anew after it was removed."
)
def free_again(bench: StorageBench) -> None:
    """A name is free once its file was deleted, and of many that delete one file one is told that it was there."""
    storage, path = bench.storage, bench.path("f")
    storage.create_if_absent(path, b"first")
    gone = race(*[partial(storage.delete, path)] * 4)
    require(gone.count(True) >= 1, "nobody was told that a file was deleted")
    require(storage.create_if_absent(path, b"second"), "the name of a deleted file is not free")
    require(storage.read(path) == b"second", "a file made after a deletion has other bytes")


@storage_check(
    "SR1",
    "renewed-in-place",
    needs="renewal_in_place",
    why="A writer that lives would be taken for dead, and rolled back.",
)
def renewed_in_place(bench: StorageBench) -> None:
    """touch() gives a file a later time of modification, and leaves its bytes."""
    storage, path = bench.storage, bench.path("beat")
    storage.create_if_absent(path, b"who")
    before = _stat(bench, path)
    bench.clock.sleep(1.1)  # stores count whole seconds
    require(storage.touch(path), "touch() of a file that is there returned False")
    require(_stat(bench, path).modified_ms > before.modified_ms, "touch() left the time as it was")
    require(storage.read(path) == b"who", "touch() changed the bytes of a file")


@storage_check(
    "SR2", "never-back", needs="renewal_in_place", why="The heartbeat of a dead writer would keep its instant for ever."
)
def never_back(bench: StorageBench) -> None:
    """touch() of what is not there makes nothing, also where the file is removed at the same time."""
    storage = bench.storage
    require(not storage.touch(bench.path("none")), "touch() of what is not there returned True")
    require(not storage.exists(bench.path("none")), "touch() made a file")
    for turn in range(_TURNS * 2):
        path = bench.path(f"beat{turn}")
        storage.create_if_absent(path, b"who")
        race(partial(storage.touch, path), partial(storage.delete, path), partial(storage.touch, path))
        require(not storage.exists(path), "a file that was removed while it was renewed is back")


@storage_check("SR3", "time-goes-on", why="Heartbeats and clocks of writers are judged by the store's clock.")
def time_goes_on(bench: StorageBench) -> None:
    """now_ms() never goes back, and goes on with real time."""
    first_ms = bench.storage.now_ms()
    bench.clock.sleep(1.5)
    second_ms = bench.storage.now_ms()
    require(second_ms - first_ms >= 500, f"now_ms() went on by {second_ms - first_ms} ms in 1,500")
    require(second_ms - first_ms < _MOST_APART_MS, f"now_ms() went on by {second_ms - first_ms} ms in 1,500")
