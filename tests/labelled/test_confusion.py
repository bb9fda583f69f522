"""How often each rule is right on jobs whose truth is known: a table, and a bar to hold."""

from __future__ import annotations

import pytest

from tests.labelled.confusion import generated, recorded, rows, table
from tests.labelled.labelled_jobs import rules

AT_LEAST = 0.95


def test_the_table_is_printed() -> None:
    """`pytest -s tests/labelled` shows it; every wrong answer is named below."""
    print(f"\n{table()}")  # noqa: T201 - what this test is for
    for one in (*generated(), *recorded()):
        if one.truth != one.found:
            wrong = "missed" if one.truth else "false alarm"
            print(f"{wrong}: {one.rule} on {one.recording}")  # noqa: T201
    assert len({one.recording for one in (*generated(), *recorded())}) >= 60


@pytest.mark.parametrize("rule", rules())
def test_a_rule_is_right_nineteen_times_of_twenty(rule: str) -> None:
    """Each has stories in which it is true, and far more in which it is not."""
    judged = [one for one in generated() if one.rule == rule]
    assert any(one.truth for one in judged), "no story has it"
    assert any(not one.truth for one in judged), "no story is without it"
    [row] = rows(tuple(judged))
    false = [one for one in judged if one.found and not one.truth]
    missed = [one for one in judged if one.truth and not one.found]
    assert row.precision >= AT_LEAST, f"wrong, or to be named in the story: {false}"
    assert row.recall >= AT_LEAST, f"not found: {missed}"


def test_real_jobs_are_told_as_their_own_records_tell_them() -> None:
    """Where a real job's record leaves no doubt, the rule has none either."""
    assert [one for one in recorded() if one.truth != one.found] == []
