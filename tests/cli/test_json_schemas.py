"""What commands print with --output json is what docs/schema says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.fakes.command_line import Run
from tests.fakes.schemas import wrong

ROOT = Path(__file__).parents[2]
JOB = str(ROOT / "tests" / "recorded" / "data" / "jobs" / "profiled-053-g4dn-xlarge.json")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("audit", ("audit", "--recording", JOB)),
        ("account", ("account", "111122223333", "--recording", JOB)),
        ("prices", ("prices", "show", "ml.m5.xlarge", "--region", "eu-west-1")),
        ("prices-coverage", ("prices", "coverage")),
        ("replay", ("replay", "--policy", str(ROOT / "policy.toml"), "--recording", JOB)),
        ("rules", ("rules",)),
        ("rules", ("rules", "gpu-idle")),
        ("what-if", ("what-if", "--recording", JOB)),
    ],
)
def test_what_a_command_prints_is_valid(run: Run, name: str, words: tuple[str, ...]) -> None:
    """And without its `schema` it is not."""
    printed = run(*words, "--output", "json").document(parse_float=Decimal)
    assert wrong(name, printed) == []
    assert wrong(name, {key: value for key, value in printed.items() if key != "schema"})
