"""Every history of two writers of one file group, by a model of the protocol."""

from __future__ import annotations

import pytest
from two_writers_model import RULES, Model


@pytest.mark.histories
def test_no_history_of_two_writers_goes_wrong() -> None:
    states, wrong, history = Model().explore()
    assert not wrong, "\n".join([wrong, *history])
    assert states > 500_000


@pytest.mark.histories
@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_some_history_goes_wrong(rule: str) -> None:
    _, wrong, history = Model(rule).explore(100_000)
    assert history, wrong
