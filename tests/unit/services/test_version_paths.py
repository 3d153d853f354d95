"""Upgrade and downgrade of the table at a path, as the command line calls them."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_locks.errors import ConfigError
from hudi_locks.services import downgrade_table, upgrade_table
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig


def test_a_metadata_table_that_cannot_be_made_anew_is_told_and_undoes_nothing(tmp_path: Any) -> None:
    extra = {"hoodie.table.metadata.partitions": "files", "hudi_locks.foreign_writers": "false"}
    storage = open_storage(str(tmp_path / "t"))
    Table.create(storage, TableConfig("t", ("id",), (), version=8, extra=extra))
    storage.create_if_absent(".hoodie/metadata/.hoodie/hoodie.properties", b"hoodie.table.version=8\n")
    done = upgrade_table(storage.base, {"hoodie.write.lock.provider": "filesystem"})
    assert (done.after, done.dropped, done.made) == (9, ("files",), ())
    assert "no metadata table was made: with hudi_locks.foreign_writers=false" in done.warnings[0]


def test_from_a_path_the_direction_is_checked(tmp_path: Any) -> None:
    path = str(tmp_path / "t")
    options = {"hoodie.write.lock.provider": "filesystem"}
    Table.create(open_storage(path), TableConfig("t", ("id",), (), version=8))
    with pytest.raises(ConfigError, match=r"of version 8, and 6 is an earlier one: hudi-locks downgrade .* --to 6"):
        upgrade_table(path, options, to=6)
    with pytest.raises(ConfigError, match=r"of version 8, and 9 is a later one: hudi-locks upgrade .* --to 9"):
        downgrade_table(path, options, to=9)
    with pytest.raises(ConfigError, match="table version 7 is none of 6, 8, 9"):
        upgrade_table(path, options, to=7)
    assert upgrade_table(path, options).after == 9
