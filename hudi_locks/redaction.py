"""Secrets in texts, known by the form in which they stand there; and logs that show none."""

from __future__ import annotations

import logging
import re
from typing import Final

__all__ = ["HIDDEN", "hide_secrets", "open_log", "sounds_secret"]

HIDDEN: Final = "***"

_WORDS: Final = (
    r"passw(?:or)?d|passphrase|pwd|secret|credentials?|(?<!skip_)signature|jaas|connection[._-]?string"
    r"|(?:access|account|api|private|shared|storage)[._-]?key"
    r"|(?:access|auth|bearer|id|refresh|sas|security|session|server)[._-]?token"
)
_WHOLE_WORDS: Final = r"token|auth|sas|sig|user[._-]?info"
"""Secret where they are a whole part of a name, and not a piece of `author` or `disaster`."""
_SECRET_NAME: Final = re.compile(rf"{_WORDS}|(?<![A-Za-z0-9])(?:{_WHOLE_WORDS})(?![A-Za-z0-9])", re.IGNORECASE)

_VALUE: Final = r"""(?!\*\*\*)(?:"[^"]*"|'[^']*'|[^&;\s"']+)"""
_PARAMETER: Final = re.compile(
    rf"""((?:(?:{_WORDS})[\w.-]*|(?<=[?&;])(?:{_WHOLE_WORDS}))(?:["']\s*[:=]|\s*=)\s*){_VALUE}""", re.IGNORECASE
)
"""`password=…` as in JDBC, SASL, Java properties and the strings of Azure; `"password": "…"`; `?token=…`.

It begins at the word that tells, and not at the name which the word is a part of: else each letter of a text would be
looked at once for each letter before it.
"""
_ADDRESS: Final = re.compile(r"""(//[^\s/:@,"']*:)(?:(?!://)[^\s"'])+@""")
"""User and password before a host. A password may hold anything up to the last @ before the next address."""
_BARE_ADDRESS: Final = re.compile(r"""(?<![\w.+/-])([\w.+-]+:)(?!\*\*\*)[^\s:/@,;"'()]+@(?=[\w.-]+:\d)""")
"""The same where no scheme stands before it, and a port behind it, as in a list of ZooKeeper servers."""
_ORACLE: Final = re.compile(r"(jdbc:oracle:\w+:[^\s/@]*/)[^\s@]+(?=@)", re.IGNORECASE)
_DIGEST: Final = re.compile(r"\b(digest:[^\s:]+:)[^\s,]+", re.IGNORECASE)
"""As ZooKeeper's clients authenticate."""
_HEADER: Final = re.compile(r"\b((?:Bearer|Basic)\s+)[\w.~+/-]{8,}=*")
_FORMS: Final = (
    (_ADDRESS, rf"\1{HIDDEN}@"),
    (_BARE_ADDRESS, rf"\1{HIDDEN}@"),
    *((form, rf"\1{HIDDEN}") for form in (_ORACLE, _DIGEST, _HEADER, _PARAMETER)),
)


def hide_secrets(text: str) -> str:
    """The text with `***` in place of what is a secret by its form: in addresses, parameters and headers.

    What a text says in no known form, such as a password alone, stays.
    """
    for form, shown in _FORMS:
        text = form.sub(shown, text)
    return text


def sounds_secret(name: str) -> bool:
    """Whether the name of an option says that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


def open_log(name: str) -> logging.Logger:
    """The logger of a module of ours. What it logs, exceptions of others among it, shows no secret of a known form."""
    log = logging.getLogger(name)
    log.addFilter(_VEIL)
    return log


class _Veil(logging.Filter):
    _formatter: Final = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if (shown := hide_secrets(text)) != text:
            record.msg, record.args = shown, ()
        if record.exc_info:
            record.exc_text = hide_secrets(self._formatter.formatException(record.exc_info))
        return True


_VEIL: Final = _Veil()
