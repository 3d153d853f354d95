"""Which keys JVM Hudi has: those of which a test looks whether each is honoured, refused or explained here."""

from __future__ import annotations

import pytest
from hudi_keys import read_golden_keys, read_keys
from hudi_locks_conformance.servers import fetch_bundle

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("release", ["0.15.0", "1.0.2", "1.1.1", "1.2.0"])
def test_the_list_has_each_key_of_a_bundle(release: str) -> None:
    listed = {name for name, releases in read_golden_keys().items() if release in releases}
    assert len(listed) > 500
    assert read_keys(fetch_bundle(release)) == listed
