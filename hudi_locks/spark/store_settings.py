"""How Spark's own file systems reach a store, told in our keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from hudi_locks.config import Key, Options
from hudi_locks.config.lock_keys import (
    AWS_ACCESS_KEY,
    AWS_ROLE_ARN,
    AWS_SECRET_KEY,
    AWS_SESSION_TOKEN,
    AZURE_CLIENT_ID,
    AZURE_CLIENT_SECRET,
    AZURE_CLIENT_TENANT_ID,
    AZURE_CONNECTION_STRING,
    AZURE_MANAGED_IDENTITY_CLIENT_ID,
    AZURE_SAS_TOKEN,
    STORAGE_ALLOW_HTTP,
    STORAGE_ENDPOINT_URL,
    STORAGE_PATH_STYLE,
    STORAGE_REGION,
    STORAGE_SERVICE_ACCOUNT_FILE,
)

__all__ = ["add_store_settings"]

_S3A: Final[Mapping[Key[Any], str]] = {
    STORAGE_ENDPOINT_URL: "endpoint",
    STORAGE_REGION: "endpoint.region",
    AWS_ACCESS_KEY: "access.key",
    AWS_SECRET_KEY: "secret.key",
    AWS_SESSION_TOKEN: "session.token",
    AWS_ROLE_ARN: "assumed.role.arn",
    STORAGE_PATH_STYLE: "path.style.access",
}
"""Our keys, and how Spark's file system for S3 calls them."""
_AZURE_KEYS: Final = (
    AZURE_CONNECTION_STRING,
    AZURE_SAS_TOKEN,
    AZURE_MANAGED_IDENTITY_CLIENT_ID,
    AZURE_CLIENT_TENANT_ID,
    AZURE_CLIENT_ID,
    AZURE_CLIENT_SECRET,
)
_OAUTH: Final = "account.oauth2"
_TENANT: Final = re.compile(r"https://[^/]+/([^/]+)/")
"""Where the address that gives tokens names the tenant."""
_USUAL_SUFFIX: Final = "core.windows.net"

Told = dict[Key[Any], str | None]


def add_store_settings(given: Options, path: str, conf: Mapping[str, str]) -> Options:
    """The options of a table, and beside them what the session says of the store that its path leads to.

    Read is `spark.hadoop.fs.s3a.*` (endpoint, region, keys, role, path style, and whether connections are without TLS)
    for S3, where `fs.s3a.bucket.NAME.*` of the path's bucket goes before it; `spark.hadoop.fs.azure.*` (account key,
    signature, service principal, managed identity) for Azure, where names that end in the account go before those that
    do not; and `spark.hadoop.fs.gs.*` (endpoint, file of a service account) for Google Cloud Storage. An option goes
    before it; of Azure's options one goes before them all.
    """
    find = _FINDERS.get(urlsplit(path).scheme.lower())
    told = find(given, path, conf) if find else {}
    if (told.get(STORAGE_ENDPOINT_URL) or "").startswith("http://"):
        told[STORAGE_ALLOW_HTTP] = "true"
    return given | {key.name: value for key, value in told.items() if value and given.name_used(key) is None}


def _find_s3(given: Options, path: str, conf: Mapping[str, str]) -> Told:
    del given
    bucket = urlsplit(path).netloc

    def ask(name: str) -> str | None:
        """What is said of the bucket goes before what is said of all."""
        return conf.get(f"spark.hadoop.fs.s3a.bucket.{bucket}.{name}") or conf.get(f"spark.hadoop.fs.s3a.{name}")

    told: Told = {key: ask(name) for key, name in _S3A.items()}
    endpoint = told[STORAGE_ENDPOINT_URL]
    if endpoint and "://" not in endpoint:
        is_plain = (ask("connection.ssl.enabled") or "true").lower() == "false"
        told[STORAGE_ENDPOINT_URL] = f"{'http' if is_plain else 'https'}://{endpoint}"
    return told


def _find_gcs(given: Options, path: str, conf: Mapping[str, str]) -> Told:
    del given, path
    file = conf.get("spark.hadoop.fs.gs.auth.service.account.json.keyfile")
    return {
        STORAGE_ENDPOINT_URL: (conf.get("spark.hadoop.fs.gs.storage.root.url") or "").rstrip("/"),
        STORAGE_SERVICE_ACCOUNT_FILE: file or conf.get("spark.hadoop.google.cloud.auth.service.account.json.keyfile"),
    }


def _find_azure(given: Options, path: str, conf: Mapping[str, str]) -> Told:
    """One way to say who we are, by the order in which Hudi's own keys are asked."""
    if any(given.name_used(key) for key in _AZURE_KEYS):
        return {}
    container, _, host = urlsplit(path).netloc.partition("@")
    hosts = (host, host.replace(".dfs.", ".blob.", 1), host.replace(".blob.", ".dfs.", 1))

    def ask(name: str) -> str | None:
        names = (*(f"{name}.{one}" for one in hosts), name)
        return next((value for one in names if (value := conf.get(f"spark.hadoop.fs.azure.{one}"))), None)

    if key := ask("account.key"):
        return {AZURE_CONNECTION_STRING: _connect(host, key)}
    if signature := ask("sas.fixed.token") or ask(f"sas.{container}"):
        return {AZURE_SAS_TOKEN: signature}
    return _find_oauth(ask)


def _connect(host: str, key: str) -> str:
    account, _, rest = host.partition(".")
    suffix = rest.partition(".")[2]
    elsewhere = f";EndpointSuffix={suffix}" if suffix not in ("", _USUAL_SUFFIX) else ""
    return f"AccountName={account};AccountKey={key}{elsewhere}"


def _find_oauth(ask: Callable[[str], str | None]) -> Told:
    client, secret = ask(f"{_OAUTH}.client.id"), ask(f"{_OAUTH}.client.secret")
    tenant = _TENANT.match(ask(f"{_OAUTH}.client.endpoint") or "")
    if client and secret and tenant:
        return {AZURE_CLIENT_ID: client, AZURE_CLIENT_SECRET: secret, AZURE_CLIENT_TENANT_ID: tenant[1]}
    is_managed = (ask("account.oauth.provider.type") or "").endswith("MsiTokenProvider")
    return {AZURE_MANAGED_IDENTITY_CLIENT_ID: client} if is_managed else {}


_FINDERS: Final[Mapping[str, Callable[[Options, str, Mapping[str, str]], Told]]] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _find_s3),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), _find_azure),
    "gs": _find_gcs,
}
"""By the scheme of a path."""
