"""The policy as a file: one sentence that names file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from sageaudit.adapters.policy_file import load
from sageaudit.errors import BadPolicy

SHIPPED = Path(__file__).parents[3] / "policy.toml"


def test_the_shipped_policy_is_that_of_a_fresh_install() -> None:
    """It tells, from $5 a family, with every rule on."""
    policy = load(SHIPPED)
    assert (policy.mode, policy.floor_usd, policy.rules_off) == ("tell", 5, frozenset())


def test_the_shipped_examples_hold_when_they_are_taken(tmp_path: Path) -> None:
    """The whole policy with every example's mark removed is valid."""
    lines = SHIPPED.read_text(encoding="utf-8").splitlines()
    taken = [
        line.removeprefix("# ") if line.startswith("# [") or " = " in line else line
        for line in lines
    ]
    path = tmp_path / "policy.toml"
    path.write_text("\n".join(taken), encoding="utf-8")
    policy = load(path)
    assert policy.thresholds
    assert policy.accounts
    assert policy.mentions
    assert policy.exemptions


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'mood = "tell"', "mood"),
        (b"mode =", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        (b"[rules.gpu-underused]\nmean = 5", "mean_below"),
        (b"floor_usd = " + b"9" * 5000, "too long or too deep"),
        (b"floor_usd = " + b"[" * 9000, "too long or too deep"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, content: bytes, said: str) -> None:
    """With the file's name."""
    path = tmp_path / "policy.toml"
    path.write_bytes(content)
    with pytest.raises(BadPolicy) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    """Not a stack trace."""
    with pytest.raises(BadPolicy, match="cannot be read"):
        load(tmp_path / "policy.toml")
