"""`sageaudit audit --fix-as`: each standing fix below the report, ready to paste."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sageaudit.output.fixes.dialects import DIALECTS, Dialect
from sageaudit.output.terminal.findings import show_code
from tests.fakes.command_line import Run
from tests.fakes.documents import document, finding, fix

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
ON_DEMAND = ("audit", "--recording", DATA / "profiled-046-p3-2xlarge.json")
SPOT = fix("EnableManagedSpotTraining", False, True)


def shown(dialect: Dialect, *findings: Any) -> str:
    """What is printed below the report, on a narrow terminal without colours."""
    out = io.StringIO()
    console = Console(file=out, width=40, no_color=True)
    show_code(document(findings=list(findings)), console, dialect)
    return out.getvalue()


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


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_report_comes_first_and_no_name_moves_a_cursor(run: Run, dialect: Dialect) -> None:
    """In every dialect; a hostile name is no markup of ours either."""
    plain, fixed = run(*ON_DEMAND), run(*ON_DEMAND, "--fix-as", dialect)
    assert (plain.exit_code, fixed.exit_code) == (0, 0)
    assert fixed.stdout.startswith(plain.stdout)
    assert f"\nFixes as {dialect}\n" in fixed.stdout.removeprefix(plain.stdout)
    hostile = fix("InputDataConfig[\x1b[2J[bold]x\n].InputMode", "File", "FastFile")
    text = shown(dialect, finding(fix=[hostile]))
    assert "\x1b" not in text
    assert "[bold]x" in text
