"""The cases are well formed: words known, files there, paths found, sums in order."""

import json
import re
from typing import Any

import pytest

from tests.labelled.before_run import cases

STEPS = re.compile(r"[^.\[\]]+|\[\d+\]")


def _at(value: Any, path: str) -> Any:
    outer, _, inner = path.partition("|")
    for step in STEPS.findall(outer):
        value = value[int(step[1:-1])] if step.startswith("[") else value[step]
    return _at(json.loads(value), inner) if inner else value


def _reaches(value: Any, path: str) -> bool:
    """Whether the path, or what would hold the missing value, is in the request."""
    parent = path.rpartition(".")[0]
    for place in (path, parent, parent.rpartition(".")[0]):
        try:
            _at(value, place)
        except (KeyError, IndexError, TypeError):
            continue
        return True
    return False


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_a_case_is_well_formed(case: Any) -> None:
    """Its file is there, its words and severities are known, its paths lead into the request."""
    request = json.loads(case.file.read_text(encoding="utf-8"))
    assert case.form in cases.FORMS
    assert case.why
    for issue in (*case.must, *case.may):
        assert issue.word in cases.WORDS
        assert issue.severity in cases.SEVERITIES
        assert all(_reaches(request, path) for path in issue.paths), issue.paths
        assert issue.usd is None or 0 <= issue.usd[0] <= issue.usd[1]
    for ban in case.must_not:
        assert ban.word in cases.WORDS
        assert not ban.path or _reaches(request, ban.path)
    for problem in case.problems:
        assert problem.kind in cases.KINDS
        assert _reaches(request, problem.path)
    assert case.ceiling_usd is None or 0 <= case.ceiling_usd[0] <= case.ceiling_usd[1]


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_what_must_be_told_is_not_forbidden(case: Any) -> None:
    """No case asks for what it calls a false alarm."""
    for issue in case.must:
        for ban in case.must_not:
            forbidden = ban.word == issue.word and ban.path in {"", *issue.paths}
            assert not forbidden, (issue.word, ban.path)


@pytest.mark.parametrize(
    "case", [case for case in cases.CASES if case.history], ids=lambda case: case.name
)
def test_a_prediction_lies_among_the_runs_it_comes_from(case: Any) -> None:
    """The median lies in its range, and advice has a known name."""
    history = case.history
    assert history.words
    assert all(advice.advice in cases.ADVICE for advice in (*history.ignored, *history.taken))
    estimate = history.billable_seconds
    if estimate is None or estimate.low is None:
        return
    assert estimate.low <= estimate.median <= estimate.high
    assert history.usd.low <= history.usd.median <= history.usd.high


def test_every_input_belongs_to_one_case() -> None:
    """No request is left over and no case is without one."""
    names = [case.name for case in cases.CASES]
    assert len(names) == len(set(names))
    assert {path.stem for path in cases.INPUTS.glob("*.json")} == set(names)


def test_there_are_enough_cases_of_each_kind() -> None:
    """Every form and every word is used, and silence is tested often enough."""
    assert {case.form for case in cases.CASES} == set(cases.FORMS)
    assert sum(case.silent for case in cases.CASES) >= 12
    assert sum(case.history is not None for case in cases.CASES) >= 6
    told = {issue.word for case in cases.CASES for issue in (*case.must, *case.may)}
    banned = {ban.word for case in cases.CASES for ban in case.must_not}
    assert set(cases.WORDS) == told | banned
