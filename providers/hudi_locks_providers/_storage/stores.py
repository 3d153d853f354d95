"""Opens object stores: one client for all locks of this process that go to the same bucket with the same settings."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from hudi_locks.config import Options, lock_keys
from hudi_locks.errors import BackendRefused, ConfigError, ProviderLoadError
from hudi_locks.lock.lease import generation
from hudi_locks_providers._storage.credentials import azure_credentials, s3_credential_provider, s3_credentials
from hudi_locks_providers._storage.location import Location

__all__ = ["check_settings", "find_endpoint", "import_obstore", "open_store"]

_LONGEST_REQUEST_S: Final = 10.0
_REQUESTS_PER_LEASE: Final = 5
_IDLE_S: Final = 3.0
"""Servers end idle connections after 5 s or more. A request sent just then is lost, and whether it arrived unknown."""
_CLASSES: Final = {"s3": "S3Store", "gcs": "GCSStore", "azure": "AzureStore"}
_ENDPOINTS: Final = {"s3": "endpoint", "gcs": "base_url", "azure": "endpoint"}
_ENDPOINT_VARIABLES: Final = {"s3": "AWS_ENDPOINT_URL", "gcs": "GOOGLE_BASE_URL", "azure": "AZURE_STORAGE_ENDPOINT"}
_UNSIGNED_GCS: Final = {"bearer_token": "unsigned"}
"""obstore asks Google for a token even when told to skip signatures, unless it is given one."""
_OPEN: Final[dict[object, Any]] = {}
_GUARD: Final = threading.Lock()
_RUNTIME: Final[list[int]] = []
"""The generation of the process that obstore's threads run in, once it was used."""


def import_obstore() -> Any:
    """The module obstore.

    Raises:
        ProviderLoadError: It is not installed; with the command that installs it.
        BackendRefused: This process was forked from one that used it: its threads did not come along.
    """
    try:
        module = importlib.import_module("obstore")
        importlib.import_module("obstore.store")
    except ImportError as error:
        raise ProviderLoadError(
            "lock provider 'storage' needs obstore: pip install 'hudi-locks[s3]'", provider="storage"
        ) from error
    if not _RUNTIME:
        _RUNTIME.append(generation())
    if _RUNTIME[0] != generation():
        raise BackendRefused(
            "the storage lock provider cannot be used in a process forked from one that used it;"
            " start processes with the method 'spawn' or 'forkserver'"
        )
    return module


def check_settings(options: Options, location: Location) -> None:
    """Refuse an address without TLS that nobody allowed, and credentials that are not whole.

    Raises:
        ConfigError: With the key.
    """
    endpoint = find_endpoint(options, location)
    if endpoint.startswith("http://") and not options.get_value(lock_keys.STORAGE_ALLOW_HTTP):
        raise ConfigError(
            f"{lock_keys.STORAGE_ENDPOINT_URL.name}={endpoint} is without TLS; set"
            f" {lock_keys.STORAGE_ALLOW_HTTP.name}=true if that is meant",
            key=lock_keys.STORAGE_ALLOW_HTTP.name,
        )
    azure_credentials(options)


def find_endpoint(options: Options, location: Location) -> str:
    """The address of another service than the cloud's own; empty for that.

    From our key, else Azure's connection string, else obstore's environment variable.
    """
    given = options.find(lock_keys.STORAGE_ENDPOINT_URL)
    if location.service == "azure":
        given = given or azure_credentials(options).get("endpoint")
    variable = _ENDPOINT_VARIABLES.get(location.service, "")
    return (given or os.environ.get(variable, "")).rstrip("/")


def open_store(options: Options, location: Location) -> Any:
    """The store of the bucket; opened once for the same settings. Sends nothing.

    Raises:
        BackendRefused: The settings make no store.
        ProviderLoadError: obstore, or what a credential needs, is not installed.
    """
    obstore = import_obstore()
    settings = _settings(options, location)
    key = (location.service, location.bucket, *sorted(settings.items()), *_rest(options))
    with _GUARD:
        if key not in _OPEN:
            try:
                _OPEN[key] = _open(options, location, settings)
            except (obstore.exceptions.BaseError, ValueError) as error:
                kind = type(error).__name__  # no more of it, for its text may show a setting
                raise BackendRefused(f"{location.url(location.prefix)}: obstore refuses the settings: {kind}") from None
        return _OPEN[key]


def _rest(options: Options) -> tuple[object, ...]:
    """What else makes it another store."""
    role = [options.find(key) for key in (lock_keys.AWS_ROLE_ARN, lock_keys.AWS_ROLE_EXTERNAL_ID)]
    return (*role, options.get_value(lock_keys.STORAGE_ALLOW_HTTP), _timeout_s(options))


def _open(options: Options, location: Location, settings: Mapping[str, Any]) -> Any:
    stores = importlib.import_module("obstore.store")
    if location.service == "memory":
        return stores.MemoryStore()
    provider = s3_credential_provider(options) if location.service == "s3" else None
    timeout = timedelta(seconds=_timeout_s(options))
    return getattr(stores, _CLASSES[location.service])(
        location.bucket,
        config=dict(settings),
        client_options={
            "timeout": timeout,
            "allow_http": options.get_value(lock_keys.STORAGE_ALLOW_HTTP),
            "pool_idle_timeout": timedelta(seconds=_IDLE_S),
        },
        retry_config={"max_retries": 0, "retry_timeout": timeout},
        **({"credential_provider": provider} if provider else {}),
    )


def _settings(options: Options, location: Location) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if location.service == "azure":
        settings |= {"account_name": location.account, **azure_credentials(options)}
    if endpoint := find_endpoint(options, location):
        settings[_ENDPOINTS[location.service]] = endpoint
    if options.get_value(lock_keys.STORAGE_SKIP_SIGNATURE):
        settings |= _UNSIGNED_GCS if location.service == "gcs" else {"skip_signature": True}
    if location.service == "s3":
        settings |= {**s3_credentials(options), "region": _find_region(options), "conditional_put": "etag"}
    return settings


def _find_region(options: Options) -> str:
    named = options.find(lock_keys.STORAGE_REGION)
    return named or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _timeout_s(options: Options) -> float:
    lease_s = options.get_value(lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS)
    return min(_LONGEST_REQUEST_S, lease_s / _REQUESTS_PER_LEASE)
