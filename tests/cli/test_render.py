"""The terminal view of an audit, and its fixes as code."""

import io
import re
import unicodedata
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from rich.cells import cell_len
from rich.console import Console

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.terminal.findings import show_code
from sageaudit.output.terminal.render import render
from sageaudit.output.text.fix_code import DIALECTS, Dialect
from tests.fakes.command_line import Run
from tests.fakes.documents import document, finding, fix, job, phase
from tests.fakes.hostile import documents, whole_documents
from tests.fakes.sample_documents import lost_document, rollup_document, trial
from tests.golden.regenerate import on_terminal

FIX_LINE = re.compile(r"^ {6}\S")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Only a line to paste may be longer: it is never broken."""
    for audit in (document(), lost_document(), rollup_document()):
        for line in on_terminal(audit, width).splitlines():
            assert cell_len(line) <= width or FIX_LINE.match(line)


def test_fix_can_be_pasted() -> None:
    """A fix is one unbroken line on any terminal."""
    line = 'ResourceConfig.InstanceType = "ml.g4dn.xlarge"  # was "ml.g5.2xlarge"'
    assert line in on_terminal(document(), 40)


def test_colours_and_characters_fit_the_output() -> None:
    """A file or pipe gets plain text, NO_COLOR is obeyed, and without UTF-8 bars are ASCII."""
    assert "\x1b" not in on_terminal(document(), 80)
    assert "\x1b[" in _terminal(no_color=False)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", _terminal(no_color=True))
    assert b"####" in _ascii(document(), 80)


def _terminal(*, no_color: bool) -> str:
    out = io.StringIO()
    render(document(), Console(file=out, width=80, force_terminal=True, no_color=no_color))
    return out.getvalue()


def _ascii(audit: AuditDocument, width: int) -> bytes:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    render(audit, Console(file=out, width=width))
    out.flush()
    return raw.getvalue()


def test_the_fix_is_below_the_headline_and_the_bill_after_the_findings() -> None:
    """A finding that has no amount of its own keeps its fix beside its evidence."""
    uncounted = finding("other", bucket="none", saving_usd=None, saving_alone_usd=None)
    text = on_terminal(document(findings=[*document()["findings"], uncounted]), 80)
    headline = document()["findings"][0]
    assert re.search(r"was avoidable\n(  .*\n)*\nWhat to change\n", text)
    parts = ("What to change", "Fix (saves", "\nFindings", headline["summary"][:40], "\nBill")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("\n    Fix") == len(document()["findings"]) + 1
    assert text.rindex("\n    Fix") > text.index("\nFindings")


def test_without_a_fix_nothing_is_to_be_changed() -> None:
    """A finding without dollars is not a fix."""
    assert "What to change" not in on_terminal(document(findings=[]), 80)


def test_unknown_amounts_have_no_figure() -> None:
    """The bill has no price, and the job has no times."""
    bill = document()["bill"]
    bare = document(
        job=job(status="InProgress", ended_at=None, account=None, region=None),
        bill={
            **bill,
            "total_usd": None,
            "complete": False,
            "missing": ["no price of ml.x9.large in us-east-1"],
            "lines": [{**bill["lines"][0], "rate_usd": None, "usd": None}],
        },
        phases=[phase("Training", None, None), phase("Starting", 60, "0", billed=False)],
        avoidable_usd=None,
        lost_usd=None,
    )
    code_text = on_terminal(bare, 80)
    for message in (
        "Its cost is not known, and what was avoidable or lost is not known either",
        "Bill incomplete: no price of ml.x9.large in us-east-1",
        "account unknown, region unknown",
        "not ended",
    ):
        assert message in code_text
    [starting] = (line for line in code_text.splitlines() if "Starting" in line)
    assert starting.endswith("not billed")


def test_a_repeated_download_is_shown_with_its_reason() -> None:
    """Its row says that it is not charged; the reason is once below the phases."""
    reason = "repeated after an interruption"
    again = phase("Downloading", 1500, "0", billed=False, why=reason)
    parts = [phase("Downloading", 1500, "0.63"), again, again]
    code_text = on_terminal(document(phases=parts), 80).splitlines()
    rows = [line.split() for line in code_text if line.strip().startswith("Downloading  ")]
    assert [row[-1] for row in rows] == ["$0.63", "charged", "charged"]
    assert sum(f"Downloading not charged: {reason}" in line for line in code_text) == 1


def test_never_started() -> None:
    """The view says that the job never started."""
    free = {**document()["bill"], "total_usd": Decimal(0)}
    code_text = on_terminal(document(job=job(status="Failed", started_at=None), bill=free), 80)
    assert "ended 2026-05-20 13:00 UTC, never started" in code_text


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ({"started_at": None, "ended_at": None}, "its answer has neither start nor end"),
        ({"started_at": None}, "ended 2026-05-20 13:00 UTC, its answer has no start"),
        ({"ended_at": None}, "started 2026-05-20 10:00 UTC, its answer has no end"),
        (
            {"ended_at": "2026-05-20T09:00:00Z"},
            "started 2026-05-20 10:00 UTC, ended before that (2026-05-20 09:00 UTC)",
        ),
    ],
)
def test_a_time_that_the_answer_lacks_is_named(times: dict[str, Any], sentence: str) -> None:
    assert sentence in on_terminal(document(job=job(**times)), 80).splitlines()


def test_a_narrow_terminal_shows_the_dollars_of_children_first() -> None:
    """It shows their status and lost dollars only if there is room."""
    assert "Status" in on_terminal(rollup_document(), 80)
    assert "Status" not in on_terminal(rollup_document(), 60)


def test_missing_metrics_share_a_line() -> None:
    """Metrics that are missing for the same reason are named together."""
    audit = document()
    audit["audit"]["coverage"]["missing"] = ["CPU: none read", "GPU: none read", "late"]
    code_text = on_terminal(audit, 80)
    assert "metrics: CPU, GPU: none read\n  metrics: late\n" in code_text


def test_many_children_and_phases_are_counted() -> None:
    """Long lists end with the number of hidden rows."""
    audit = {
        **rollup_document(),
        "children": [trial(n, "1", None) for n in range(30)],
        "phases": [phase("Training", 60, "0.1")] * 30,
    }
    code_text = on_terminal(audit, 80)  # type: ignore[arg-type]
    assert "+10 more" in code_text
    assert "+6 more" in code_text


@whole_documents
@given(documents())
def test_hostile_text_is_inert(audit: AuditDocument) -> None:
    """Only printable characters and line ends reach the terminal."""
    for width in (60, 80):
        code_text = on_terminal(audit, width)
        categories = {unicodedata.category(char) for char in set(code_text) - {"\n"}}
        assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}


DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
ON_DEMAND = ("audit", "--recording", DATA / "profiled-046-p3-2xlarge.json")
SPOT = fix("EnableManagedSpotTraining", False, True)


def code_text(dialect: Dialect, *findings: Any) -> str:
    """Returns what is printed below the report, on a narrow terminal without colours."""
    out = io.StringIO()
    console = Console(file=out, width=40, no_color=True)
    show_code(document(findings=list(findings)), console, dialect)
    return out.getvalue()


def test_a_fix_is_printed_unbroken_at_the_left_margin() -> None:
    """Pasted Python has its own indentation, on any terminal."""
    wait = fix("StoppingCondition.MaxWaitTimeInSeconds", None, 172800)
    assert code_text(
        "sdk-v3", finding("spot-not-used", bucket="avoidable", fix=[SPOT, wait], caution=None)
    ) == (
        "\nFixes as sdk-v3\n\nspot-not-used (SA401)\n"
        "ModelTrainer(\n"
        "    compute=Compute(enable_managed_spot_training=True),\n"
        "    stopping_condition=StoppingCondition(max_wait_time_in_seconds=172800),\n"
        ")\n"
    )


@pytest.mark.parametrize(
    "not_counted",
    [
        {"superseded_by": "gpu-underused"},
        {"subsumed_by": "gpu-idle"},
        {"exempt": {"by": "ana", "until": None, "reason": "release"}},
        {"fix": []},
    ],
)
def test_only_standing_findings_are_written(not_counted: dict[str, Any]) -> None:
    """Findings that are covered by another or exempt are not printed as code."""
    assert code_text("sdk-v2", finding(**{"fix": [SPOT], **not_counted})) == "\nNo fix to print\n"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_report_comes_first_and_no_name_moves_a_cursor(run: Run, dialect: Dialect) -> None:
    """This holds in every dialect; a hostile name is not read as our markup."""
    plain, fixed = run(*ON_DEMAND), run(*ON_DEMAND, "--fix-as", dialect)
    assert (plain.exit_code, fixed.exit_code) == (0, 0)
    assert fixed.stdout.startswith(plain.stdout)
    assert f"\nFixes as {dialect}\n" in fixed.stdout.removeprefix(plain.stdout)
    hostile = fix("InputDataConfig[\x1b[2J[bold]x\n].InputMode", "File", "FastFile")
    text = code_text(dialect, finding(fix=[hostile]))
    assert "\x1b" not in text
    assert "[bold]x" in text
