"""`sageaudit audit --fix-as`: each standing fix below the report, ready to paste."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from sageaudit.cli.main import commands
from sageaudit.output.fixes.dialects import DIALECTS, Dialect
from sageaudit.output.terminal.findings import show_code
from tests.fakes.documents import document, finding, fix

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
ON_DEMAND = DATA / "profiled-046-p3-2xlarge.json"
SPOT = fix("EnableManagedSpotTraining", False, True)


def shown(dialect: Dialect, *findings: Any) -> str:
    """What is printed below the report, on a narrow terminal without colours."""
    out = io.StringIO()
    audit = {**document(), "findings": list(findings)}
    show_code(audit, Console(file=out, width=40, no_color=True), dialect)  # type: ignore[arg-type]
    return out.getvalue()


def run(*words: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(commands, ["audit", "--recording", str(ON_DEMAND), *words])


def test_a_fix_is_printed_unbroken_at_the_left_margin() -> None:
    """Python that is pasted has its own indentation, however narrow the terminal."""
    wait = fix("StoppingCondition.MaxWaitTimeInSeconds", None, 172800)
    assert shown("sdk-v3", finding(rule="spot-not-used", id="SA401", fix=[SPOT, wait])) == (
        "\nFixes as sdk-v3\n\nspot-not-used (SA401)\n"
        "ModelTrainer(\n"
        "    compute=Compute(enable_managed_spot_training=True),\n"
        "    stopping_condition=StoppingCondition(max_wait_time_in_seconds=172800),\n"
        ")\n"
    )


@pytest.mark.parametrize(
    "aside",
    [
        {"superseded_by": "gpu-underused"},
        {"subsumed_by": "gpu-idle"},
        {"exempt": {"by": "ana", "until": None, "reason": "release"}},
        {"fix": []},
    ],
)
def test_only_standing_findings_are_written(aside: dict[str, Any]) -> None:
    """What another finding covers, or somebody accepted, is not to be pasted as well."""
    assert shown("sdk-v2", finding(**{"fix": [SPOT], **aside})) == "\nNo fix to print\n"


def test_a_hostile_name_moves_no_cursor() -> None:
    """And is no markup of ours."""
    hostile = fix("InputDataConfig[\x1b[2J[bold]x\n].InputMode", "File", "FastFile")
    for dialect in DIALECTS:
        text = shown(dialect, finding(fix=[hostile]))
        assert "\x1b" not in text
        assert "[bold]x" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_report_comes_first(dialect: Dialect) -> None:
    """In every dialect, of a recorded job."""
    plain, fixed = run(), run("--fix-as", dialect)
    assert (plain.exit_code, fixed.exit_code) == (0, 0)
    assert fixed.stdout.startswith(plain.stdout)
    assert f"\nFixes as {dialect}\n" in fixed.stdout.removeprefix(plain.stdout)


def test_json_has_every_fix_already() -> None:
    """One line for each job stays one line of JSON: the two together are refused."""
    done = run("--fix-as", "api", "--output", "json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--fix-as cannot be used with --output json" in done.stderr


def test_an_unknown_dialect_is_refused() -> None:
    """With those that there are."""
    done = run("--fix-as", "cloudformation")
    assert done.exit_code == 2
    assert "'sdk-v3'" in done.stderr
