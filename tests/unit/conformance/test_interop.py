"""Which JVM class a provider is judged beside, and what is said where there is none."""

from __future__ import annotations

import pytest
from hudi_locks_conformance import Harness, Level, Status, run_check, select_checks
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Violation
from hudi_locks_conformance.checks.interop import _judge_overlaps
from hudi_locks_conformance.history import Hold, Overlap
from hudi_locks_conformance.partners import HUDI_JVM, NoPartner, find_partners
from hudi_locks_conformance.partners.matching import find_java_class

PACKAGE = "org.apache.hudi.client.transaction.lock"
URL = "hoodie.write.lock.dynamodb.endpoint_url"


def test_without_a_partner_every_check_of_the_group_says_what_to_type() -> None:
    checks = select_checks(only=["M"])
    assert [check.id for check in checks] == [f"M{number}" for number in range(1, 7)]
    assert {check.level for check in checks} == {Level.INTEROP}
    outcomes = [run_check(check, Harness("zookeeper", {})) for check in checks]
    assert {outcome.status for outcome in outcomes} == {Status.NOT_RUN}
    assert all("--partner hudi-jvm" in outcome.message for outcome in outcomes)


def test_what_does_not_claim_it_is_not_asked() -> None:
    outcome = run_check(select_checks(only=["M5"])[0], Harness("in_process", {"hoodie.base.path": "/lake"}))
    assert (outcome.status, outcome.message) == (Status.UNSUPPORTED, "JVM_COMPATIBLE is not claimed")


@pytest.mark.parametrize(
    ("provider", "java_class"),
    [
        ("zookeeper", f"{PACKAGE}.ZookeeperBasedLockProvider"),
        (f"{PACKAGE}.ZookeeperBasedLockProvider", f"{PACKAGE}.ZookeeperBasedLockProvider"),
        (
            "hudi_locks_providers.zookeeper:ZooKeeperImplicitLockProvider",
            f"{PACKAGE}.ZookeeperBasedImplicitBasePathLockProvider",
        ),
        ("hive_metastore", "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"),
        ("filesystem", f"{PACKAGE}.FileSystemBasedLockProvider"),
    ],
)
def test_each_provider_meets_the_class_that_its_alias_stands_for(provider: str, java_class: str) -> None:
    harness = Harness(provider, {"hoodie.base.path": "/lake"}, partner=HUDI_JVM)
    partners = find_partners(harness)
    assert [partner.name.split("-")[1] for partner in partners] == ["1.2.0", "1.0.2"]
    assert {partner.settings["hoodie.write.lock.provider"] for partner in partners} == {java_class}
    assert find_java_class(harness) == java_class


def test_the_awslabs_client_stands_for_hudis_dynamodb_class_with_the_same_lease() -> None:
    options = {
        URL: "http://127.0.0.1:1",
        "hoodie.write.lock.dynamodb.partition_key": "trips",
        "hoodie.write.lock.wait_time_ms": "4000",
    }
    (partner,) = find_partners(Harness("dynamodb", options, partner=HUDI_JVM))
    assert (partner.name, partner.settings["lease_ms"]) == ("awslabs", "4000")
    with pytest.raises(NoPartner, match="endpoint_url"):
        find_partners(Harness("dynamodb", {}, partner=HUDI_JVM))


def test_hudis_storage_lock_is_run_where_its_client_can_be_replaced() -> None:
    options = {"hoodie.base.path": "gs://locks/trips", "hudi_locks.storage.endpoint_url": "http://127.0.0.1:1"}
    (partner,) = find_partners(Harness("storage", options, partner=HUDI_JVM))
    assert partner.main == "StorageContender"
    with pytest.raises(NoPartner, match="fake-gcs-server"):
        find_partners(Harness("storage", {**options, "hoodie.base.path": "s3://locks/trips"}, partner=HUDI_JVM))


def test_a_provider_of_ones_own_meets_the_class_that_is_named() -> None:
    own = "hudi_locks_conformance.sample:SampleLockProvider"
    partners = find_partners(Harness(own, {}, partner="com.example.MyJavaLock"))
    assert {partner.settings["hoodie.write.lock.provider"] for partner in partners} == {"com.example.MyJavaLock"}
    with pytest.raises(NoPartner, match="--partner CLASS"):
        find_partners(Harness(own, {}, partner=HUDI_JVM))


def test_two_jvms_that_meet_are_a_note_and_one_of_ours_a_violation() -> None:
    bench = Bench(Harness("hudi_locks_conformance.sample:SampleLockProvider", {}), "M5")
    jvm, other, ours = (Hold(name, 1, 0, 5) for name in ("hudi-1.2.0-X-17", "hudi-1.2.0-X-18", "python-1"))
    _judge_overlaps(bench, [Overlap(jvm, other)], {"hudi-1.2.0-X"})
    assert bench.notes[0].startswith("the Java class does not exclude itself: two holders")
    for pair in (Overlap(jvm, ours), Overlap(ours, jvm)):
        with pytest.raises(Violation, match="python-1"):
            _judge_overlaps(bench, [pair], {"hudi-1.2.0-X"})
