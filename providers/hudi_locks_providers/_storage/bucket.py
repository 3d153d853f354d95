"""The bucket that a storage lock needs: looked for, on S3 made where that is asked for, and what its rules remove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from hudi_locks.config import Options
from hudi_locks.errors import BackendRefused, LockError, ProviderLoadError
from hudi_locks.lock import SetupStep, SetupTerms
from hudi_locks_providers._s3.client import S3Client, open_client
from hudi_locks_providers._storage.lifecycle import (
    ABORT_DAYS,
    find_abort_days,
    find_harmful,
    make_abort_rule,
    say_abort_rule,
)
from hudi_locks_providers._storage.objects import Objects
from hudi_locks_providers._storage.stores import find_region

__all__ = ["BucketMaker"]

_BUCKET: Final = "bucket"
_RULES: Final = "lifecycle-rule"
_KEPT: Final = "objects-kept"
_WITHOUT_PLACE: Final = "us-east-1"
"""The region whose buckets are made without naming it."""
_NO_RULES: Final = "NoSuchLifecycleConfiguration"
_OWN_ALREADY: Final = "BucketAlreadyOwnedByYou"
_UNKNOWN: Final = frozenset({"NotImplemented", "MethodNotAllowed", "501", "405"})
_BY_HAND: Final = {
    "gcs": "make it by `gcloud storage buckets create gs://{bucket}`",
    "azure": "make it by `az storage container create --name {bucket} --account-name {account}`",
}
_BUCKET_ADVICE: Final = "give --make-bucket, make it by `aws s3 mb s3://{bucket}`, or mend hoodie.base.path"
_ELSEWHERE: Final = {
    "gcs": (
        f"a rule with AbortIncompleteMultipartUpload after {ABORT_DAYS} days ends what dead tasks left of large files",
        "`gcloud storage buckets update --lifecycle-file` sets it; this command changes buckets of S3 alone",
    ),
}


class BucketMaker:
    """Sees to the bucket of one table.

    Args:
        options: For the credentials.
        objects: Of the bucket.
        kept: Keys that must never be removed by a rule.
    """

    def __init__(self, options: Options, objects: Objects, *, kept: Sequence[str]) -> None:
        self._options = options
        self._objects = objects
        self._location = objects.location
        self._kept = kept

    def set_up(self, terms: SetupTerms) -> Iterator[SetupStep]:
        """The bucket, then its rules; they are looked at only where there is one."""
        step = self._find_or_make(terms)
        yield step
        if step.is_to_make:
            yield SetupStep.to_make(_RULES, say_abort_rule(ABORT_DAYS))
        elif step.has_failed:
            return
        elif self._location.service == "s3":
            yield from self._see_to_rules(terms, may_change=step.was_made or terms.set_lifecycle)
        elif self._location.service in _ELSEWHERE:
            yield SetupStep.advised(_RULES, *_ELSEWHERE[self._location.service])

    @property
    def _place(self) -> str:
        at = f" at {self._objects.endpoint}" if self._objects.endpoint else ""
        return f"{self._location.url('')}{at}"

    def _find_or_make(self, terms: SetupTerms) -> SetupStep:
        try:
            if self._objects.has_bucket():
                return SetupStep.there(_BUCKET, self._place)
        except LockError as error:
            return SetupStep.failed(_BUCKET, error)
        if self._location.service != "s3" or not terms.make_bucket:
            advice = _BY_HAND.get(self._location.service, _BUCKET_ADVICE)
            names = {"bucket": self._location.bucket, "account": self._location.account}
            return SetupStep.failed(_BUCKET, f"{self._place}: there is no such bucket", advice.format(**names))
        place = f"{self._place}, in {find_region(self._options)}"
        return SetupStep.to_make(_BUCKET, place) if terms.dry_run else self._make(place)

    @cached_property
    def _client(self) -> S3Client:
        return open_client(self._options, self._location)

    def _make(self, place: str) -> SetupStep:
        region = find_region(self._options)
        where = {} if region == _WITHOUT_PLACE else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        try:
            self._client.api.create_bucket(Bucket=self._location.bucket, **where)
        except self._client.errors.ClientError as error:
            code = _code(error)
            if code == _OWN_ALREADY:
                return SetupStep.there(_BUCKET, place)
            return SetupStep.failed(_BUCKET, f"{place}: the service refuses to make it ({code})", _advise_refused(code))
        except self._client.errors.BotoCoreError as error:
            return SetupStep.failed(_BUCKET, f"{place}: no answer to the request to make it ({type(error).__name__})")
        return SetupStep.made(_BUCKET, place)

    def _see_to_rules(self, terms: SetupTerms, *, may_change: bool) -> Iterator[SetupStep]:
        try:
            rules = self._read_rules()
        except (BackendRefused, ProviderLoadError) as error:
            yield SetupStep.advised(_RULES, str(error), self._say_wanted())
            return
        if harmful := find_harmful(rules, self._kept):
            found = f"the rule {harmful} removes objects by age, {self._kept[0]} among them"
            yield SetupStep.failed(
                _KEPT, found, "limit the rule to other prefixes: a lock, or a table, would be removed"
            )
        yield self._see_to_uploads(rules, terms, may_change=may_change)

    def _see_to_uploads(self, rules: Sequence[Mapping[str, Any]], terms: SetupTerms, *, may_change: bool) -> SetupStep:
        """The rule that ends what attempts uploaded whose rows others wrote."""
        if (days := find_abort_days(rules, self._location.prefix)) is not None:
            return SetupStep.there(_RULES, say_abort_rule(days))
        if not may_change:
            return SetupStep.advised(_RULES, "uploads that nobody completed stay, and are paid for", self._say_wanted())
        if terms.dry_run:
            return SetupStep.to_make(_RULES, say_abort_rule(ABORT_DAYS))
        wanted = [*rules, make_abort_rule(self._location.prefix)]
        try:
            self._client.api.put_bucket_lifecycle_configuration(
                Bucket=self._location.bucket, LifecycleConfiguration={"Rules": wanted}
            )
        except (self._client.errors.ClientError, self._client.errors.BotoCoreError) as error:
            return SetupStep.advised(_RULES, f"the service refuses to take it ({_code(error)})", self._say_wanted())
        return SetupStep.made(_RULES, say_abort_rule(ABORT_DAYS))

    def _say_wanted(self) -> str:
        return f"have {say_abort_rule(ABORT_DAYS)}: --set-lifecycle adds that rule to those that are there"

    def _read_rules(self) -> list[dict[str, Any]]:
        """The rules of the bucket.

        Raises:
            BackendRefused: They cannot be looked at.
        """
        errors = self._client.errors
        try:
            told = self._client.api.get_bucket_lifecycle_configuration(Bucket=self._location.bucket)
        except (errors.ClientError, errors.BotoCoreError) as error:
            if (code := _code(error)) == _NO_RULES:
                return []
            said = "the service knows no lifecycle rules" if code in _UNKNOWN else "its rules cannot be looked at"
            raise BackendRefused(f"{self._place}: {said} ({code})", code=code) from error
        return list(told.get("Rules") or ())


def _code(error: Any) -> str:
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code") or type(error).__name__)


def _advise_refused(code: str) -> str:
    if code == "BucketAlreadyExists":
        return "somebody else has a bucket of that name: choose another, in hoodie.base.path"
    return "grant s3:CreateBucket, or let somebody make it who has that right"
