"""On a store nobody looks for a history of columns that commits would have told of."""

from __future__ import annotations

from pathlib import Path

from hudi_locks.format import CommitMetadata
from hudi_locks.format.column_versions import ColumnVersion, encode_versions
from hudi_locks.storage import Entry, LocalStorage
from hudi_locks.table import NEWEST_COLUMNS, SCHEMA_FOLDER, SchemaHistory, find_schema_history
from hudi_locks.timeline import LAYOUT_2, Timeline

VERSION = {"version_id": 3, "fields": [{"id": 0, "name": "a", "optional": True, "type": "int"}]}


class Store(LocalStorage):
    """A disk where each look costs a request."""

    is_remote = True
    looks = 0

    def list(self, path: str) -> list[Entry]:
        self.looks += path == SCHEMA_FOLDER
        return super().list(path)


def commit(store: Store, number: int, **extra: str) -> None:
    time = f"{number:017d}"
    data = CommitMetadata.of((), "UPSERT", schema=None, extra=extra).encode("commit", layout_version=2)
    store.create_if_absent(f"{LAYOUT_2.folder}/{time}_{time}.commit", data)


def find(store: Store) -> SchemaHistory | None:
    return find_schema_history(store, Timeline.load(store, LAYOUT_2))


def test_a_table_without_a_history_is_looked_at_once_until_a_commit_tells_of_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    commit(store, 1)
    assert find(store) is None
    commit(store, 2)
    assert [find(store), find(store), store.looks] == [None, None, 1]
    newest = ColumnVersion.decode(VERSION)
    store.create_if_absent(f"{SCHEMA_FOLDER}/{3:017d}_{3:017d}.schemacommit", encode_versions((newest,)))
    assert find(store) is None  # its commit is not completed
    commit(store, 3, **{NEWEST_COLUMNS: newest.text})
    found = find(store)
    assert found is not None
    assert (found.newest, store.looks) == (newest, 2)


def test_after_many_commits_it_is_looked_for_again(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    assert find(store) is None
    for number in range(1, 5):
        commit(store, number)
    assert find(store) is None
    assert store.looks == 2
