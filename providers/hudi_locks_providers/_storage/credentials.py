"""Who we are to an object store: Hudi's keys first, else the cloud's default chain."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from hudi_locks.clock import SystemClock
from hudi_locks.config import Key, Options, lock_keys
from hudi_locks.errors import ConfigError, ProviderLoadError

__all__ = ["azure_credentials", "s3_credential_provider", "s3_credentials", "s3_role"]

_TRUSTED_S: Final = 900.0
_CONNECTION_FIELDS: Final = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "sharedaccesssignature": "sas_key",
    "blobendpoint": "endpoint",
}
_PRINCIPAL: Final = (
    (lock_keys.AZURE_CLIENT_TENANT_ID, "tenant_id"),
    (lock_keys.AZURE_CLIENT_ID, "client_id"),
    (lock_keys.AZURE_CLIENT_SECRET, "client_secret"),
)


def s3_credentials(options: Options) -> dict[str, Any]:
    """The static credentials of Hudi's keys, as obstore names them; empty unless both key and secret are given."""
    access, secret = options.find(lock_keys.AWS_ACCESS_KEY), options.find(lock_keys.AWS_SECRET_KEY)
    if not (access and secret):
        return {}
    token = options.find(lock_keys.AWS_SESSION_TOKEN)
    return {"access_key_id": access, "secret_access_key": secret, **({"session_token": token} if token else {})}


def s3_credential_provider(options: Options) -> Callable[[], dict[str, Any]] | None:
    """What fetches credentials that obstore cannot find by itself: those of a role, or of a profile on this machine.

    Raises:
        ProviderLoadError: A role is named and boto3 is missing.
    """
    if options.find(lock_keys.AWS_ROLE_ARN):
        return s3_role(options)
    if s3_credentials(options) or not _has_profile():
        return None
    try:
        session = importlib.import_module("boto3").Session()
    except ImportError:
        return None
    found = session.get_credentials()
    return None if found is None else lambda: _freeze(found)


def _has_profile() -> bool:
    """Whether the default chain leads to a file of profiles, which obstore does not read."""
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return False
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    return bool(os.environ.get("AWS_PROFILE")) or Path(named).expanduser().exists()


def _freeze(found: Any) -> dict[str, Any]:
    frozen = found.get_frozen_credentials()
    return {
        "access_key_id": frozen.access_key,
        "secret_access_key": frozen.secret_key,
        "token": frozen.token,
        "expires_at": datetime.fromtimestamp(SystemClock().wall_ms() / 1000 + _TRUSTED_S, timezone.utc),
    }


def s3_role(options: Options) -> Callable[[], dict[str, Any]]:
    """What assumes the role of the options, and gives its credentials as obstore names them.

    Raises:
        ProviderLoadError: boto3 is missing.
    """
    try:
        boto3 = importlib.import_module("boto3")
    except ImportError as error:
        raise ProviderLoadError(
            f"{lock_keys.AWS_ROLE_ARN.name} needs boto3: pip install 'hudi-locks[s3]'", provider="storage"
        ) from error
    asked = {
        "RoleArn": options.get_value(lock_keys.AWS_ROLE_ARN),
        "RoleSessionName": options.get_value(lock_keys.AWS_ROLE_SESSION_NAME),
    }
    if external := options.find(lock_keys.AWS_ROLE_EXTERNAL_ID):
        asked["ExternalId"] = external
    static = s3_credentials(options)
    renamed = {"aws_" + name: value for name, value in static.items()}
    sts = boto3.client("sts", region_name=options.find(lock_keys.STORAGE_REGION), **renamed)
    return lambda: _from_sts(sts.assume_role(**asked)["Credentials"])


def _from_sts(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "access_key_id": given["AccessKeyId"],
        "secret_access_key": given["SecretAccessKey"],
        "token": given["SessionToken"],
        "expires_at": given["Expiration"],
    }


def azure_credentials(options: Options) -> dict[str, Any]:
    """Hudi's Azure keys, as obstore names them: connection string, signature, managed identity, service principal.

    Raises:
        ConfigError: A service principal lacks a part.
    """
    if connection := options.find(lock_keys.AZURE_CONNECTION_STRING):
        return _parse_connection(connection)
    if signature := options.find(lock_keys.AZURE_SAS_TOKEN):
        return {"sas_key": signature.lstrip("?")}
    if identity := options.find(lock_keys.AZURE_MANAGED_IDENTITY_CLIENT_ID):
        return {"client_id": identity}
    given = {name: options.find(key) for key, name in _PRINCIPAL}
    missing = [key for key, name in _PRINCIPAL if not given[name]]
    if missing and len(missing) < len(_PRINCIPAL):
        raise _say_missing(missing[0])
    return {} if missing else given


def _say_missing(key: Key[str]) -> ConfigError:
    names = ", ".join(part.name for part, _ in _PRINCIPAL)
    return ConfigError(f"{key.name} is missing: a service principal needs all of {names}", key=key.name)


def _parse_connection(text: str) -> dict[str, Any]:
    parts = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    named = {name.strip().lower(): value.strip() for name, value in parts.items()}
    found = {ours: named[theirs] for theirs, ours in _CONNECTION_FIELDS.items() if named.get(theirs)}
    suffix = named.get("endpointsuffix")
    if "endpoint" not in found and suffix and "account_name" in found:
        scheme = named.get("defaultendpointsprotocol", "https")
        found["endpoint"] = f"{scheme}://{found['account_name']}.blob.{suffix}"
    return found
