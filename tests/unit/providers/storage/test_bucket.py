"""The bucket of a storage lock: looked for, made where that is asked for, and what its rules do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore import exceptions
from hudi_locks_providers._storage.bucket import BucketMaker
from hudi_locks_providers._storage.lifecycle import find_abort_days, find_harmful, make_abort_rule
from hudi_locks_providers._storage.location import parse_location
from hudi_locks_providers._storage.objects import Objects

from hudi_locks.config import Options
from hudi_locks.lock import SetupStep, SetupTerms

LOCK = "lake/t/.hoodie/.locks/table_lock.json"
Rules = list[dict[str, Any]]


def refusal(code: str, operation: str) -> exceptions.ClientError:
    return exceptions.ClientError({"Error": {"Code": code, "Message": code}}, operation)


class Service:
    """Buckets and their rules, as boto3's client gives them; `fails` has the code by which a call is refused."""

    def __init__(self, *buckets: str) -> None:
        self.rules: dict[str, Rules] = {name: [] for name in buckets}
        self.places: list[Any] = []
        self.fails: dict[str, str] = {}

    def _check(self, name: str) -> None:
        if name in self.fails:
            raise refusal(self.fails[name], name)

    def create_bucket(self, **request: Any) -> None:
        self._check("create")
        self.rules[request["Bucket"]] = []
        self.places.append(request.get("CreateBucketConfiguration"))

    def get_bucket_lifecycle_configuration(self, **request: Any) -> dict[str, Any]:
        self._check("get")
        if not self.rules[request["Bucket"]]:
            raise refusal("NoSuchLifecycleConfiguration", "get")
        return {"Rules": self.rules[request["Bucket"]]}

    def put_bucket_lifecycle_configuration(self, **request: Any) -> None:
        self._check("put")
        self.rules[request["Bucket"]] = request["LifecycleConfiguration"]["Rules"]


def make_maker(service: Service, base: str = "s3://b/lake/t", **options: str) -> BucketMaker:
    given, location = Options({"hoodie.base.path": base, **options}), parse_location(base)
    objects = Objects(given, location)
    objects.has_bucket = lambda: location.bucket in service.rules  # type: ignore[method-assign]
    maker = BucketMaker(given, objects, kept=[LOCK])
    maker.__dict__["_client"] = SimpleNamespace(api=service, errors=exceptions)
    return maker


def run(maker: BucketMaker, **terms: bool) -> list[SetupStep]:
    return list(maker.set_up(SetupTerms(**terms)))


def outcomes(steps: list[SetupStep]) -> dict[str, str]:
    return {step.name: step.outcome for step in steps}


def test_a_missing_bucket_is_made_only_where_that_is_asked_for() -> None:
    service = Service()
    maker = make_maker(service)
    [step] = run(maker)
    assert step.has_failed
    assert "give --make-bucket, make it by `aws s3 mb s3://b`" in step.advice
    wanted = {"bucket": "to make", "lifecycle-rule": "to make"}
    assert outcomes(run(maker, make_bucket=True, dry_run=True)) == wanted
    assert not service.rules
    assert outcomes(run(maker, make_bucket=True)) == {"bucket": "made", "lifecycle-rule": "made"}
    [rule] = service.rules["b"]
    assert (rule["Filter"], rule["AbortIncompleteMultipartUpload"]) == (
        {"Prefix": "lake/t/"},
        {"DaysAfterInitiation": 7},
    )
    assert outcomes(run(maker, make_bucket=True)) == {"bucket": "there", "lifecycle-rule": "there"}


@pytest.mark.parametrize(("region", "place"), [("us-east-1", None), ("eu-west-1", {"LocationConstraint": "eu-west-1"})])
def test_a_bucket_is_made_in_its_region(region: str, place: Any) -> None:
    service = Service()
    run(make_maker(service, **{"hudi_locks.storage.region": region}), make_bucket=True)
    assert service.places == [place]


@pytest.mark.parametrize(
    ("code", "outcome", "said"),
    [
        ("BucketAlreadyOwnedByYou", "there", ""),
        ("BucketAlreadyExists", "failed", "choose another"),
        ("AccessDenied", "failed", "s3:CreateBucket"),
    ],
)
def test_a_bucket_that_is_refused_is_told_why(code: str, outcome: str, said: str) -> None:
    service = Service()
    service.fails = {"create": code, "get": "AccessDenied"}
    step = run(make_maker(service), make_bucket=True)[0]
    assert step.outcome == outcome
    assert said in step.advice


def test_a_bucket_that_was_there_gets_a_rule_only_where_that_is_asked_for() -> None:
    service = Service("b")
    theirs = {"ID": "theirs", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 1}}
    service.rules["b"] = [theirs]
    maker = make_maker(service)
    steps = run(maker)
    assert outcomes(steps) == {"bucket": "there", "lifecycle-rule": "advised"}
    assert "--set-lifecycle adds that rule" in steps[-1].advice
    assert service.rules["b"] == [theirs]
    assert outcomes(run(maker, set_lifecycle=True, dry_run=True))["lifecycle-rule"] == "to make"
    assert outcomes(run(maker, set_lifecycle=True))["lifecycle-rule"] == "made"
    assert service.rules["b"][0] == theirs
    assert outcomes(run(maker)) == {"bucket": "there", "lifecycle-rule": "there"}


@pytest.mark.parametrize(("code", "said"), [("AccessDenied", "cannot be looked at"), ("NotImplemented", "knows no")])
def test_rules_that_cannot_be_looked_at_keep_nobody(code: str, said: str) -> None:
    service = Service("b")
    service.fails = {"get": code}
    steps = run(make_maker(service), set_lifecycle=True)
    assert outcomes(steps) == {"bucket": "there", "lifecycle-rule": "advised"}
    assert said in steps[-1].found


def test_a_rule_that_is_refused_is_advice() -> None:
    service = Service("b")
    service.fails = {"put": "AccessDenied"}
    assert run(make_maker(service), set_lifecycle=True)[-1].outcome == "advised"


def test_a_rule_that_removes_locks_fails() -> None:
    service = Service("b")
    service.rules["b"] = [{"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "lake/"}, "Expiration": {"Days": 90}}]
    steps = run(make_maker(service))
    [step] = [one for one in steps if one.has_failed]
    assert step.name == "objects-kept"
    assert "the rule old removes objects by age" in step.found


@pytest.mark.parametrize(
    ("rule", "is_harmful"),
    [
        ({"Expiration": {"Days": 1}}, True),
        ({"Expiration": {"Days": 1}, "Prefix": "lake"}, True),
        ({"Expiration": {"Date": "2030-01-01"}, "Filter": {"And": {"Prefix": "lake/t/.hoodie/"}}}, True),
        ({"Expiration": {"Days": 1}, "Filter": {"Prefix": "lake/t/.hoodie/.locks/.hudi_locks/file_groups/"}}, False),
        ({"Expiration": {"Days": 1}, "Filter": {"Tag": {"Key": "k", "Value": "v"}}}, False),
        ({"Expiration": {"Days": 1}, "Filter": {"And": {"Prefix": "", "Tags": [{"Key": "k"}]}}}, False),
        ({"Expiration": {"Days": 1}, "Status": "Disabled"}, False),
        ({"Expiration": {"ExpiredObjectDeleteMarker": True}}, False),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 1}}, False),
    ],
)
def test_what_removes_a_lock(rule: dict[str, Any], *, is_harmful: bool) -> None:
    assert bool(find_harmful([{"Status": "Enabled", **rule}], [LOCK])) is is_harmful


def test_the_soonest_rule_for_uploads_counts() -> None:
    ours, all_of_it = make_abort_rule("lake/t"), make_abort_rule("")
    all_of_it["AbortIncompleteMultipartUpload"] = {"DaysAfterInitiation": 3}
    other = make_abort_rule("lake/tt")
    assert find_abort_days([other], "lake/t") is None
    assert find_abort_days([ours], "lake/t") == 7
    assert find_abort_days([ours, all_of_it, other], "lake/t") == 3


@pytest.mark.parametrize(
    ("base", "said"),
    [("gs://b/t", "gcloud storage buckets create gs://b"), ("abfss://b@a.dfs.core.windows.net/t", "--account-name a")],
)
def test_buckets_of_other_clouds_are_made_by_their_own_tools(base: str, said: str) -> None:
    [step] = run(make_maker(Service(), base), make_bucket=True)
    assert step.has_failed
    assert said in step.advice


def test_a_bucket_of_google_is_left_as_it_is() -> None:
    steps = run(make_maker(Service("b"), "gs://b/t"), set_lifecycle=True)
    assert outcomes(steps) == {"bucket": "there", "lifecycle-rule": "advised"}
    assert outcomes(run(make_maker(Service("b"), "abfss://b@a.dfs.core.windows.net/t"))) == {"bucket": "there"}
