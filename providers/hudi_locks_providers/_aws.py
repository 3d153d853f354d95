"""Sessions of boto3 by Hudi's keys, which are quiet about secrets."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

from hudi_locks.config import Options, lock_keys
from hudi_locks.lock import import_extra
from hudi_locks.redaction import open_log

__all__ = ["drop_user", "hide_in_sdk_logs", "open_session"]

_logger = open_log(__name__)
_USER: Final = re.compile(r"(?<=//)[^/@]*@")


def open_session(options: Options, *, provider: str, region: str | None) -> Any:
    """A session with the credentials and the role of `hoodie.aws.*`; else AWS's default chain decides.

    Args:
        options: Of a writer.
        provider: For whom, as the extra of this package is called that brings boto3.
        region: Of the service; None to let the default chain decide.

    Raises:
        ProviderLoadError: boto3 is not installed.
    """
    boto3 = import_extra("boto3", provider=provider)
    hide_in_sdk_logs(options)
    session = boto3.Session(region_name=region, **_static_credentials(options))
    role_arn = options.find(lock_keys.AWS_ROLE_ARN)
    return _assume_role(session, options, role_arn, provider) if role_arn else session


def hide_in_sdk_logs(options: Options) -> None:
    """Keep the secrets of the options out of what boto3 logs for those who debug it."""
    _VEIL.cover(options)


def drop_user(address: str) -> str:
    """An endpoint without user and password: requests are signed, and botocore's errors repeat the address."""
    return _USER.sub("", address)


_LEAST_SECRET: Final = 8
"""Letters; what is shorter is a placeholder for a service that asks for none, and may be a word of any message."""


class _Veil(logging.Filter):
    """Hides the secrets of our options in botocore's debug log, which shows signed headers with the session token."""

    _LOGGERS: Final = ("botocore.auth", "botocore.endpoint")
    _SECRETS: Final = (lock_keys.AWS_ACCESS_KEY, lock_keys.AWS_SECRET_KEY, lock_keys.AWS_SESSION_TOKEN)

    def __init__(self) -> None:
        super().__init__()
        self._hidden: list[str] = []

    def cover(self, options: Options) -> None:
        found = {value for key in self._SECRETS if len(value := options.find(key) or "") >= _LEAST_SECRET}
        self._hidden = sorted(found.union(self._hidden), key=len, reverse=True)  # one may be a part of another
        for name in self._LOGGERS:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        for secret in self._hidden:
            text = text.replace(secret, "***")
        record.msg, record.args = text, ()
        return True


_VEIL: Final = _Veil()


def _static_credentials(options: Options) -> dict[str, str | None]:
    """The credentials in the options if both halves are there; nothing else, so that the default chain decides."""
    access, secret = options.find(lock_keys.AWS_ACCESS_KEY), options.find(lock_keys.AWS_SECRET_KEY)
    if access and secret:
        token = options.find(lock_keys.AWS_SESSION_TOKEN)
        return {"aws_access_key_id": access, "aws_secret_access_key": secret, "aws_session_token": token}
    if access or secret:
        _logger.warning(
            "only one of %s and %s is given: AWS's default chain decides",
            lock_keys.AWS_ACCESS_KEY.name,
            lock_keys.AWS_SECRET_KEY.name,
        )
    return {}


def _assume_role(base: Any, options: Options, role_arn: str, provider: str) -> Any:
    """A session with the credentials of the role, which are fetched when first needed, and again before they expire."""
    credentials = import_extra("botocore.credentials", provider=provider)
    inner = import_extra("botocore.session", provider=provider).get_session()
    request = {"RoleArn": role_arn, "RoleSessionName": options.get_value(lock_keys.AWS_ROLE_SESSION_NAME)}
    external_id = options.find(lock_keys.AWS_ROLE_EXTERNAL_ID)
    if external_id:
        request["ExternalId"] = external_id

    def fetch() -> dict[str, str]:
        found = base.client("sts").assume_role(**request)["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    inner._credentials = credentials.DeferredRefreshableCredentials(  # noqa: SLF001  # botocore has no public way to set refreshable ones
        refresh_using=fetch, method="sts-assume-role"
    )
    boto3 = import_extra("boto3", provider=provider)
    return boto3.Session(botocore_session=inner, region_name=base.region_name)
