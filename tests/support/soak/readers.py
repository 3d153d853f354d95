"""Who reads the table of a soak at its end, wherever it lies."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from other_readers import Jvm, open_jvm_on_s3, read_rust, read_rust_on_s3
from real_servers import copy_table

from hudi_locks.storage import open_storage
from soak.deeds import Row
from soak.judgement import Readers, read_ours
from soak.stores import Store

__all__ = ["ON_DISK", "OURS", "open_readers"]

OURS: Final = "this package"
ON_DISK: Final[Readers] = {OURS: read_ours, "hudi-rs": read_rust}


@contextmanager
def open_readers(name: str, store: Store, bundle: str) -> Iterator[Readers]:
    """This package, hudi-rs, and JVM Hudi unless its version `bundle` is empty, until the end of the block.

    On S3 each of them opens the bucket. hudi-rs knows no HDFS, and reads a copy on the disk.

    Args:
        name: One of `soak.stores.STORES`.
        store: Where the table lies.
        bundle: Version of the JVM bundle.
    """
    ours = partial(read_ours, options=store.sound)
    rust: Readers = {
        "disk": read_rust,
        "s3": partial(read_rust_on_s3, options=store.sound),
        "hdfs": partial(_read_copy, store),
        "hdfs-native": partial(_read_copy, store),
    }
    readers: Readers = {OURS: ours, "hudi-rs": rust[name]}
    if not bundle:
        yield readers
        return
    with closing(open_jvm_on_s3(store.sound, bundle) if name == "s3" else Jvm(bundle, 9)) as jvm:
        yield {**readers, f"JVM {bundle}": lambda _: jvm.read_path(store.address)}


def _read_copy(store: Store, path: str) -> Sequence[Row]:
    """What hudi-rs reads of a copy of all files."""
    del path
    folder = Path(tempfile.mkdtemp(prefix="hudi-locks-soak-copy-"))
    try:
        copy_table(store.open(), open_storage(str(folder)))
        return read_rust(str(folder))
    finally:
        shutil.rmtree(folder)
