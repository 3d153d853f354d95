"""Which options are secrets, and how a value is shown."""

from __future__ import annotations

from hudi_locks.config.registry import find_key
from hudi_locks.redaction import HIDDEN, hide_secrets, sounds_secret

__all__ = ["show_value"]


def show_value(name: str, value: str) -> str:
    """The value of an option as it may be shown.

    Nothing is shown of keys that are declared as secrets, and of unknown ones that sound so. Of all others that is
    hidden which is a secret by its form, such as a password in an address.
    """
    key = find_key(name)
    is_secret = key.secret if key else sounds_secret(name)
    return HIDDEN if is_secret else hide_secrets(value)
