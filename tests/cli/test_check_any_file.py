"""`sageaudit check` on requests in which anything stands anywhere: it says what is wrong."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.cli.support.check import views
from sageaudit.cli.support.check.planned_jobs import Checks
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import SageauditError
from tests.labelled.before_run.cases import CASES

CHECKS = Checks(
    policy=Policy(),
    now=datetime(2026, 5, 20, tzinfo=UTC),
    form=None,
    pipeline=None,
    region="us-east-1",
    account=None,
    settings_region=lambda: None,
    read_family=None,
)
ANYTHING: list[Any] = [
    None, True, 0, -1, 3.5, 10**30, 1e308, "", "x", "\x1b[0m", "\ud800", "ml.p3.2xlarge",
    "s3://b/x", [], [1], [[]], [{}], {}, {"a": 1}, {"Get": "Parameters.X"},
    {"Std:Join": {"Values": [1, None]}},
]  # fmt: skip


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a document but the top."""
    if place:
        yield place
    pairs: Any = ()
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inside in pairs:
        yield from places(inside, (*place, key))


def spoilt(seed: int) -> Any:
    """One of the expert's requests, with up to four values replaced or removed."""
    chance = random.Random(seed)
    made = json.loads(chance.choice(CASES).file.read_text("utf-8"))
    for _ in range(chance.randint(1, 4)):
        found = list(places(made))
        if not found:
            break
        *around, last = chance.choice(found)
        inside = made
        for step in around:
            inside = inside[step]
        if chance.random() < 0.2:
            del inside[last]
        else:
            inside[last] = copy.deepcopy(chance.choice(ANYTHING))
    return made


@pytest.mark.parametrize("seed", range(60))
def test_any_file_gets_an_answer(seed: int, tmp_path: Path) -> None:
    """In every format, and no rule fails on it."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps(spoilt(seed)), encoding="utf-8")
    try:
        written = CHECKS.file(str(path))
    except SageauditError:
        return
    json.loads(to_json(written))
    assert "\x1b" not in views.github(written) + views.markdown(written)
    views.show(written, Console(file=io.StringIO(), width=80))
    codes = {row["code"] for job in written["jobs"] for row in job["unknown"]}
    assert "rule_failed" not in codes
