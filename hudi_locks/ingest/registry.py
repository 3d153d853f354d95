"""A schema registry: which schema a subject has now, and which one each writer of it had. Runs on the driver."""

from __future__ import annotations

import json
import re
import urllib.request
from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from hudi_locks.config import Options, ingest_keys
from hudi_locks.errors import ConfigError

__all__ = ["REGISTRY_CLIENT_URL", "Registry", "ask_schema"]

REGISTRY_CLIENT_URL: Final = "schema.registry.url"
"""The key of Kafka's Avro clients for the address of the registry; several may be given, with commas."""
_TIMEOUT_S: Final = 30.0
_SCHEMES: Final = ("http://", "https://")
_SUBJECT: Final = re.compile(r"(https?://.+?)/subjects/([^/?]+)(?:/.*)?")
_USER: Final = re.compile(r"(https?://)([^/@]*)@(.*)", re.DOTALL)


def ask_schema(url: str, key: str) -> str:
    """The schema that an address gives.

    Args:
        url: Of a version of a subject; may hold `user:password@`.
        key: That the address was given by, for errors.

    Raises:
        ConfigError: It is no address, or gives none.
    """
    return str(_pick(_ask(url, key), url, key)["schema"])


@dataclass(frozen=True)
class Registry:
    """The schemas of one subject.

    Attributes:
        url: Of the subject, `…/subjects/NAME`.
        key: That the address was given by.
    """

    url: str
    key: str

    @classmethod
    def of_topic(cls, options: Options, topic: str) -> Registry:
        """The subject of the values of a topic: as the address of the schema names it, else `TOPIC-value`.

        Raises:
            ConfigError: No registry is given, or its address is no subject's.
        """
        address, client = options.find(ingest_keys.SCHEMA_REGISTRY_URL), options.get(REGISTRY_CLIENT_URL, "")
        base, key, subject = client.partition(",")[0].strip().rstrip("/"), REGISTRY_CLIENT_URL, quote(f"{topic}-value")
        if address:
            key = ingest_keys.SCHEMA_REGISTRY_URL.name
            match = _SUBJECT.fullmatch(address)
            if match is None:
                message = f"{key}={_hide(address)} is not of the form http://HOST/subjects/SUBJECT/versions/latest"
                raise ConfigError(message, key=key)
            base, subject = base or match[1], match[2]
        if not base:
            raise ConfigError(
                f"Avro messages need the registry of their schemas: set {REGISTRY_CLIENT_URL} to its address, or"
                f" {ingest_keys.SCHEMA_REGISTRY_URL.name} to that of the schema",
                key=REGISTRY_CLIENT_URL,
            )
        return cls(f"{base}/subjects/{subject}", key)

    def list_schemas(self) -> dict[int, str]:
        """All schemas that the subject has had, by the ids that messages carry; the newest is the last.

        Raises:
            ConfigError: The registry does not answer, or a schema is no Avro schema of its own.
        """
        versions = _ask(f"{self.url}/versions", self.key)
        if not isinstance(versions, list) or not versions:
            raise ConfigError(f"{_hide(self.url)} has no versions, but {versions}; check the subject", key=self.key)
        found = [self._ask_version(version) for version in sorted(versions)]
        return {int(answer["id"]): str(answer["schema"]) for answer in found}

    @property
    def shown(self) -> str:
        """Its address without user and password."""
        return _hide(self.url)

    def _ask_version(self, version: int) -> dict[str, Any]:
        url = f"{self.url}/versions/{version}"
        return _pick(_ask(url, self.key), url, self.key, needed=("id", "schema"))


def _pick(answer: Any, url: str, key: str, *, needed: tuple[str, ...] = ("schema",)) -> dict[str, Any]:
    if not isinstance(answer, dict) or any(name not in answer for name in needed):
        raise ConfigError(f"the schema registry at {_hide(url)} does not give a schema with its id", key=key)
    kind = answer.get("schemaType") or "AVRO"
    if kind != "AVRO" or answer.get("references"):
        what = f"of type {kind}" if kind != "AVRO" else "made of other subjects' schemas"
        message = f"the schema at {_hide(url)} is {what}, which is not offered: register one Avro schema that is whole"
        raise ConfigError(message, key=key, url=_hide(url))
    return answer


def _ask(url: str, key: str) -> Any:
    if not url.startswith(_SCHEMES):
        raise ConfigError(f"{key}={_hide(url)} is no address: it begins with http:// or https://", key=key)
    try:
        with urllib.request.urlopen(_request(url), timeout=_TIMEOUT_S) as answer:  # noqa: S310  # see _SCHEMES
            return json.load(answer)
    except (OSError, ValueError) as error:
        shown = _hide(url)
        message = f"the schema registry at {shown} does not give a schema: {type(error).__name__}: {error}"
        raise ConfigError(message, key=key, url=shown) from error


def _request(url: str) -> urllib.request.Request:
    match = _USER.fullmatch(url)
    if match is None:
        return urllib.request.Request(url)  # noqa: S310  # see _SCHEMES
    word = b64encode(unquote(match[2]).encode()).decode()
    return urllib.request.Request(match[1] + match[3], headers={"Authorization": f"Basic {word}"})  # noqa: S310


def _hide(url: str) -> str:
    """The address without user and password."""
    return _USER.sub(r"\1\3", url)
