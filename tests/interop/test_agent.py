"""The process in which JVM Hudi runs for these tests: one that dies fails the test that it died in, and no other."""

from __future__ import annotations

import pytest
from other_readers import DEADLINE_S, Jvm, JvmError

pytestmark = [pytest.mark.interop, pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])]


def test_one_that_answers_too_late_shows_what_it_did(jvm: Jvm) -> None:
    sleep = "select java_method('java.lang.Thread', 'sleep', {}L)"
    jvm.sql(sleep.format(0))  # a JVM that just began would load Spark's classes for longer than that
    asked = jvm.ask("sql", statement=sleep.format(20_000))
    with pytest.raises(JvmError, match=r"no answer within 15 s[\s\S]*java\.lang\.Thread\.sleep"):
        asked.result(15)
    assert asked.result(DEADLINE_S) == [["null"]]


def test_what_waits_for_one_that_dies_fails_at_once_and_the_next_question_starts_it_anew(jvm: Jvm) -> None:
    asked = jvm.ask("sql", statement="select java_method('java.lang.Thread', 'sleep', 3600000L)")
    jvm.kill()
    with pytest.raises(JvmError, match=r"the JVM of bundle 1\.2\.0 ended"):
        asked.result(DEADLINE_S)
    with pytest.warns(UserWarning, match=r"server JVM Hudi 1\.2\.0 died and is started anew"):
        assert jvm.sql("select 1") == [[1]]
