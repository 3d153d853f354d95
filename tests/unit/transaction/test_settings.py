"""What a writer's options say to transactions."""

from __future__ import annotations

import pytest

from hudi_locks.transaction.settings import WriterSettings

MODE = "hoodie.write.concurrency.mode"
PROVIDER = "hoodie.write.lock.provider"
SKEW = "hoodie.time.generator.max_expected_clock_skew_ms"
OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
JAVA_IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"


@pytest.mark.parametrize(
    ("options", "skew_ms"),
    [
        ({}, 1),
        ({PROVIDER: "in_process"}, 1),
        ({MODE: OPTIMISTIC, PROVIDER: JAVA_IN_PROCESS}, 1),
        ({MODE: OPTIMISTIC, PROVIDER: "hudi_locks_providers.in_process:InProcessLockProvider"}, 1),
        ({PROVIDER: "zookeeper"}, 200),
        ({MODE: OPTIMISTIC, PROVIDER: "filesystem"}, 200),
        ({MODE: OPTIMISTIC}, 200),
        ({SKEW: 50}, 50),
        ({MODE: OPTIMISTIC, PROVIDER: "in_process", SKEW: 50}, 50),
    ],
)
def test_a_writer_whose_lock_keeps_out_no_other_process_expects_no_skew_as_the_jvm_has_it(
    options: dict[str, object], skew_ms: int
) -> None:
    assert WriterSettings.of(options, {}).skew_ms == skew_ms
