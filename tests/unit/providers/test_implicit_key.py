"""The key that implicit providers derive from a base path. Goldens: Hudi's own tests, and its releases."""

from __future__ import annotations

import pytest
from hudi_locks_providers._wire.implicit_key import implicit_key

from hudi_locks import ConfigError

GOLDEN = {
    "s3://my-bucket/my_lake/my_table": "C0E15D0CE1AD11CC",
    "hdfs://nn:8020/warehouse/t": "507802E6313004ED",
    "/tmp/hudi/t": "A3306E44E306C932",
}


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("path", GOLDEN)
def test_ordinary_paths_have_one_key(path: str, normalise: bool) -> None:
    assert implicit_key(path, normalise=normalise) == GOLDEN[path]


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("scheme", ["s3a", "S3A", "s3"])
def test_s3a_and_s3_are_one_scheme(scheme: str, normalise: bool) -> None:
    path = f"{scheme}://my-bucket/my_lake/my_table"
    assert implicit_key(path, normalise=normalise) == "C0E15D0CE1AD11CC"


def test_verbatim_keeps_the_slash() -> None:
    assert implicit_key("s3://my-bucket/my_lake/my_table/", normalise=False) == "68C5C8DB07B268FD"


@pytest.mark.parametrize("after", ["/", "///", " ", "/ ", " / "])
def test_normalised_drops_slashes_and_blanks(after: str) -> None:
    path = f" s3a://my-bucket/my_lake/my_table{after}"
    assert implicit_key(path, normalise=True) == "C0E15D0CE1AD11CC"


def test_inner_slashes_stay() -> None:
    assert implicit_key("s3://b//t", normalise=True) == implicit_key("s3://b//t", normalise=False)


@pytest.mark.parametrize("path", ["", " ", "/", "///", "s3://", "s3a:///"])
def test_a_path_that_names_nothing_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.base\.path"):
        implicit_key(path, normalise=True)
