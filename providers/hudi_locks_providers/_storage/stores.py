"""Opens object stores: one client for all locks of this process that go to the same bucket with the same settings."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from hudi_locks.config import Options, lock_keys, security_keys
from hudi_locks.errors import BackendRefused, ConfigError, ProviderLoadError
from hudi_locks.lock.lease import generation
from hudi_locks_providers._storage.credentials import azure_credentials, s3_credential_provider, s3_credentials
from hudi_locks_providers._storage.location import Location
from hudi_locks_providers._tls import find_pem_file

__all__ = [
    "MISTRUSTED",
    "RequestPolicy",
    "check_settings",
    "find_endpoint",
    "find_lease_ms",
    "find_region",
    "import_obstore",
    "is_mistrusted",
    "open_store",
]

_LONGEST_REQUEST_S: Final = 10.0
_REQUESTS_PER_LEASE: Final = 5
_LEASES_PER_RENEWAL: Final = 10
_IDLE_S: Final = 3.0
"""Servers end idle connections after 5 s or more. A request sent just then is lost, and whether it arrived unknown."""
_CLASSES: Final = {"s3": "S3Store", "gcs": "GCSStore", "azure": "AzureStore"}
_ENDPOINTS: Final = {"s3": "endpoint", "gcs": "base_url", "azure": "endpoint"}
_ENDPOINT_VARIABLES: Final = {"s3": "AWS_ENDPOINT_URL", "gcs": "GOOGLE_BASE_URL", "azure": "AZURE_STORAGE_ENDPOINT"}
_ALLOW_HTTP: Final = "AWS_ALLOW_HTTP"
_UNSIGNED_GCS: Final = {"bearer_token": "unsigned"}
"""obstore asks Google for a token even when told to skip signatures, unless it is given one."""
_OPEN: Final[dict[object, Any]] = {}
_GUARD: Final = threading.Lock()
MISTRUSTED: Final = f"its certificate is not trusted; give its authority by {security_keys.STORAGE_CA_FILE.name}"
_RUNTIME: Final[list[int]] = []
"""The generation of the process that obstore's threads run in, once it was used."""


@dataclass(frozen=True)
class RequestPolicy:
    """How patient a client is.

    Attributes:
        timeout_s: Of one request.
        retries: How often a request is repeated that failed; 0 where a repeated one may be taken for somebody else's.
    """

    timeout_s: float
    retries: int = 0


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
            "object stores need obstore: pip install 'hudi-locks[s3]'", provider="storage"
        ) from error
    if not _RUNTIME:
        _RUNTIME.append(generation())
    if _RUNTIME[0] != generation():
        raise BackendRefused(
            "obstore, by which object stores are reached, cannot be used in a process forked from one that used it;"
            " start processes with the method 'spawn' or 'forkserver'"
        )
    return module


def check_settings(options: Options, location: Location) -> None:
    """Refuse an address without TLS that nobody allowed, and credentials that are not whole.

    Raises:
        ConfigError: With the key.
    """
    endpoint = find_endpoint(options, location)
    if endpoint.startswith("http://") and not _allows_http(options):
        raise ConfigError(
            f"{lock_keys.STORAGE_ENDPOINT_URL.name}={endpoint} is without TLS; set"
            f" {lock_keys.STORAGE_ALLOW_HTTP.name}=true if that is meant, or {_ALLOW_HTTP}=true in the environment",
            key=lock_keys.STORAGE_ALLOW_HTTP.name,
        )
    azure_credentials(options)
    find_pem_file(options, security_keys.STORAGE_CA_FILE)


def is_mistrusted(text: str) -> bool:
    """Whether an error of a client says that it does not trust the service's certificate."""
    return "certificate" in text.lower()


def find_lease_ms(options: Options) -> int:
    """The lease of the lock, in milliseconds.

    Raises:
        ConfigError: It is too short for its renewals.
    """
    lease_s = options.get_value(lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS)
    renewal_s = options.get_value(lock_keys.STORAGE_RENEW_INTERVAL_SECS)
    if lease_s < _LEASES_PER_RENEWAL * renewal_s:
        raise ConfigError(
            f"{lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS.name}={lease_s} is below ten times"
            f" {lock_keys.STORAGE_RENEW_INTERVAL_SECS.name}={renewal_s}; a lease must outlast ten renewals",
            key=lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS.name,
        )
    return lease_s * 1000


def _allows_http(options: Options) -> bool:
    """By our key, else by the environment, where obstore looks too."""
    if options.name_used(lock_keys.STORAGE_ALLOW_HTTP) is None:
        return os.environ.get(_ALLOW_HTTP, "").strip().lower() == "true"
    return options.get_value(lock_keys.STORAGE_ALLOW_HTTP)


def find_endpoint(options: Options, location: Location) -> str:
    """The address of another service than the cloud's own; empty for that.

    From our key, else Azure's connection string, else obstore's environment variable.
    """
    given = options.find(lock_keys.STORAGE_ENDPOINT_URL)
    if location.service == "azure":
        given = given or azure_credentials(options).get("endpoint")
    variable = _ENDPOINT_VARIABLES.get(location.service, "")
    return (given or os.environ.get(variable, "")).rstrip("/")


def open_store(options: Options, location: Location, policy: RequestPolicy | None = None) -> Any:
    """The store of the bucket; opened once for the same settings. Sends nothing.

    Args:
        options: Of the table or the lock.
        location: Where the bucket is.
        policy: How patient it is; None for what a lock needs, whose requests end within a part of its lease.

    Raises:
        BackendRefused: The settings make no store.
        ProviderLoadError: obstore, or what a credential needs, is not installed.
    """
    obstore = import_obstore()
    settings = _settings(options, location)
    if policy is None or location.service == "memory":  # of which every client would have its own objects
        policy = RequestPolicy(_timeout_s(options))
    key = (location.service, location.bucket, *sorted(settings.items()), *_rest(options), policy)
    with _GUARD:
        if key not in _OPEN:
            try:
                _OPEN[key] = _open(options, location, settings, policy)
            except (obstore.exceptions.BaseError, ValueError) as error:
                kind = type(error).__name__  # no more of it, for its text may show a setting
                raise BackendRefused(f"{location.url(location.prefix)}: obstore refuses the settings: {kind}") from None
        return _OPEN[key]


def _rest(options: Options) -> tuple[object, ...]:
    """What else makes it another store."""
    role = [options.find(key) for key in (lock_keys.AWS_ROLE_ARN, lock_keys.AWS_ROLE_EXTERNAL_ID)]
    return (*role, _allows_http(options), find_pem_file(options, security_keys.STORAGE_CA_FILE))


def _open(options: Options, location: Location, settings: Mapping[str, Any], policy: RequestPolicy) -> Any:
    stores = importlib.import_module("obstore.store")
    if location.service == "memory":
        return stores.MemoryStore()
    provider = s3_credential_provider(options) if location.service == "s3" else None
    timeout = timedelta(seconds=policy.timeout_s)
    authorities = find_pem_file(options, security_keys.STORAGE_CA_FILE)
    return getattr(stores, _CLASSES[location.service])(
        location.bucket,
        config=dict(settings),
        client_options={
            "timeout": timeout,
            "allow_http": _allows_http(options),
            "pool_idle_timeout": timedelta(seconds=_IDLE_S),
            **({"root_certificate": Path(authorities).read_bytes()} if authorities else {}),
        },
        retry_config={"max_retries": policy.retries, "retry_timeout": timeout * (policy.retries + 1)},
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
    if location.service == "gcs" and (file := options.find(lock_keys.STORAGE_SERVICE_ACCOUNT_FILE)):
        settings["service_account"] = file
    if location.service == "s3":
        settings |= {**s3_credentials(options), "region": find_region(options), "conditional_put": "etag"}
    return settings


def find_region(options: Options) -> str:
    """The region of an S3 bucket: from our key, else the environment."""
    named = options.find(lock_keys.STORAGE_REGION)
    return named or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _timeout_s(options: Options) -> float:
    lease_s = options.get_value(lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS)
    return min(_LONGEST_REQUEST_S, lease_s / _REQUESTS_PER_LEASE)
