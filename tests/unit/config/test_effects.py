"""No key is passed over in silence: each is honoured, refused with the way out, or of no effect for a reason."""

from __future__ import annotations

import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.config import KEYS, Key, Options, check_writer_options, registry
from hudi_locks.errors import ConfigError, NoEffectWarning

ROOT = Path(__file__).parents[3]
CONSTANTS = {
    value.name: f"{module.__name__.rpartition('.')[2]}.{constant}"
    for module in registry._MODULES
    for constant, value in vars(module).items()
    if isinstance(value, Key)
}
CONSTANT = re.compile(r"\b[a-z_]+\.[A-Z][A-Z0-9_]*\b")
HONOURED = [key for key in KEYS.values() if key.effect == "honoured"]
REFUSED = [key for key in KEYS.values() if key.effect == "refused"]
IDLE = [key for key in KEYS.values() if key.effect == "no effect"]


@cache
def find_constants() -> frozenset[str]:
    """Each `module.CONSTANT` that the product names outside the declarations."""
    folders = (ROOT / name for name in ("hudi_locks", "providers", "conformance"))
    files = [path for folder in folders for path in folder.rglob("*.py") if path.parts[-2:-1] != ("config",)]
    return frozenset(name for path in files for name in CONSTANT.findall(path.read_text(encoding="utf-8")))


def other_value(key: Key[Any]) -> str:
    """One that asks for more than happens anyway."""
    taken = {value.lower() for value in key.accepted}
    found = {bool: ("true", "false"), int: ("7",), str: (*key.choices, "x")}[key.kind]
    return next((value for value in found if value.lower() not in taken), "")


@pytest.mark.parametrize("key", HONOURED, ids=lambda key: key.name)
def test_an_honoured_key_is_read(key: Key[Any]) -> None:
    assert CONSTANTS[key.name] in find_constants()
    assert not key.accepted


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: key.name)
def test_a_refused_key_names_the_way_out(key: Key[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for value in key.accepted:
            check_writer_options(Options({key.name: value}))
    if value := other_value(key):
        with pytest.raises(ConfigError, match=re.escape(f"{key.name}={value} is not offered: {key.refusal}")) as caught:
            check_writer_options(Options({key.name: value}))
        assert caught.value.key == key.name


@pytest.mark.parametrize("key", IDLE, ids=lambda key: key.name)
def test_a_key_without_effect_is_warned_about(key: Key[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for value in key.accepted:
            check_writer_options(Options({key.name: value}))
    with pytest.warns(NoEffectWarning, match=re.escape(f"{key.name} has no effect here: {key.no_effect}")):
        check_writer_options(Options({key.name: other_value(key)}))


def test_no_key_is_both() -> None:
    assert not [key.name for key in KEYS.values() if key.refusal and key.no_effect]
