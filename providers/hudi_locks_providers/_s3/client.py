"""Opens boto3's clients of S3: one for all storages of this process with the same settings."""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.config import Options, lock_keys, security_keys
from hudi_locks.errors import ProviderLoadError
from hudi_locks.lock.lease import generation
from hudi_locks_providers._aws import drop_user, hide_in_sdk_logs
from hudi_locks_providers._s3.completions import Completions
from hudi_locks_providers._storage.credentials import s3_credentials, s3_role
from hudi_locks_providers._storage.location import Location
from hudi_locks_providers._storage.stores import find_endpoint, find_region
from hudi_locks_providers._tls import find_pem_file
from hudi_locks_providers._wire.service_time import ServiceTime

__all__ = ["S3Client", "open_client"]

_CONNECT_S: Final = 10.0
_READ_S: Final = 30.0
_CONNECTIONS: Final = 64
_OPEN: Final[dict[object, S3Client]] = {}
_GUARD: Final = threading.Lock()


class S3Client:
    """A client that sends each request once.

    Attributes:
        api: Of boto3.
        errors: The module of what it raises.
        time: By the answers that it got.
        completions: Of uploads.
    """

    def __init__(self, api: Any, clock: Clock) -> None:
        self.api = api
        self.errors = importlib.import_module("botocore.exceptions")
        self.time = ServiceTime(clock)
        self.completions = Completions(api)
        api.meta.events.register("after-call.s3", self._note)

    def _note(self, parsed: Mapping[str, Any], **_: object) -> None:
        date = parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            self.time.note(date)


def open_client(options: Options, location: Location) -> S3Client:
    """The client for these settings, opened once in a process. Sends nothing.

    Raises:
        ProviderLoadError: boto3 is missing.
    """
    key = (generation(), _describe(options, location))
    with _GUARD:
        if key not in _OPEN:
            _OPEN[key] = S3Client(_open(options, location), SystemClock())
        return _OPEN[key]


def _describe(options: Options, location: Location) -> tuple[object, ...]:
    role = tuple(options.find(key) for key in (lock_keys.AWS_ROLE_ARN, lock_keys.AWS_ROLE_EXTERNAL_ID))
    static = tuple(sorted(s3_credentials(options).items()))
    unsigned = options.get_value(lock_keys.STORAGE_SKIP_SIGNATURE)
    around = tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))
    place = (find_endpoint(options, location), find_region(options), _style(options, location))
    return (*place, role, static, unsigned, around, find_pem_file(options, security_keys.STORAGE_CA_FILE))


def _open(options: Options, location: Location) -> Any:
    try:
        importlib.import_module("boto3")
    except ImportError as error:
        raise ProviderLoadError("tables on S3 need boto3: pip install 'hudi-locks[s3]'", scheme="s3") from error
    endpoint, static = find_endpoint(options, location), s3_credentials(options)
    authorities = find_pem_file(options, security_keys.STORAGE_CA_FILE)
    return _open_session(options).client(
        "s3",
        region_name=find_region(options),
        config=_configure(options, location),
        **({"verify": authorities} if authorities else {}),
        **({"endpoint_url": drop_user(endpoint)} if endpoint else {}),
        **({} if options.find(lock_keys.AWS_ROLE_ARN) else {"aws_" + name: value for name, value in static.items()}),
    )


def _configure(options: Options, location: Location) -> Any:
    """Each request is sent once: whoever asks knows which may be repeated."""
    botocore = importlib.import_module("botocore")
    unsigned = {"signature_version": botocore.UNSIGNED} if options.get_value(lock_keys.STORAGE_SKIP_SIGNATURE) else {}
    return importlib.import_module("botocore.config").Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        max_pool_connections=_CONNECTIONS,
        tcp_keepalive=True,
        retries={"total_max_attempts": 1, "mode": "standard"},
        s3={"addressing_style": _style(options, location)},
        request_checksum_calculation="when_required",  # other services than AWS know no others
        response_checksum_validation="when_required",
        **unsigned,
    )


def _style(options: Options, location: Location) -> str:
    """Where the bucket's name stands in an address: other services than AWS mostly want it in the path."""
    if options.name_used(lock_keys.STORAGE_PATH_STYLE) is not None:
        return "path" if options.get_value(lock_keys.STORAGE_PATH_STYLE) else "virtual"
    return "path" if find_endpoint(options, location) else "auto"


def _open_session(options: Options) -> Any:
    """A session of its own, whose credentials are those of a role where one is named."""
    hide_in_sdk_logs(options)
    session = importlib.import_module("botocore.session").Session()
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_read_time)
    if options.find(lock_keys.AWS_ROLE_ARN):
        credentials = importlib.import_module("botocore.credentials")
        provider = _RoleProvider(credentials.DeferredRefreshableCredentials, s3_role(options))
        session.register_component("credential_provider", credentials.CredentialResolver([provider]))
    return importlib.import_module("boto3").Session(botocore_session=session)


def _read_time(told: Any) -> datetime:
    """A time in an answer; in a listing, which has one for each object, botocore's parser takes half of the time."""
    if isinstance(told, str) and told.endswith("Z"):
        with contextlib.suppress(ValueError):  # Python 3.10 reads no other number of digits than 0, 3 and 6
            return datetime.fromisoformat(f"{told[:-1]}+00:00")
    parsed: datetime = importlib.import_module("botocore.utils").parse_timestamp(told)
    return parsed


class _RoleProvider:
    """What botocore asks for credentials; it fetches them when they are used first, and again before they end."""

    METHOD: Final = "assume-role"
    CANONICAL_NAME: Final = "hudi-locks"

    def __init__(self, refreshable: Callable[..., Any], assume: Callable[[], Mapping[str, Any]]) -> None:
        self._refreshable = refreshable
        self._assume = assume

    def load(self) -> Any:
        """The credentials, not fetched yet."""
        return self._refreshable(self._fetch, self.METHOD)

    def _fetch(self) -> dict[str, str]:
        given = self._assume()
        return {
            "access_key": given["access_key_id"],
            "secret_key": given["secret_access_key"],
            "token": given["token"],
            "expiry_time": given["expires_at"].isoformat(),
        }
