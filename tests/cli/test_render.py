from __future__ import annotations

import io
import re
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from rich.cells import cell_len
from rich.console import Console

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.terminal.render import render
from tests.fakes.documents import (
    document,
    finding,
    job,
    lost_document,
    phase,
    rollup_document,
    trial,
)
from tests.fakes.hostile import documents, whole_documents
from tests.golden.regenerate import on_terminal

FIX_LINE = re.compile(r"^ {6}\S")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Only a line to paste may be longer: it is never broken."""
    for audit in (document(), lost_document(), rollup_document()):
        for line in on_terminal(audit, width).splitlines():
            assert cell_len(line) <= width or FIX_LINE.match(line)


def test_fix_can_be_pasted() -> None:
    """A fix is one unbroken line, however narrow the terminal is."""
    line = 'ResourceConfig.InstanceType = "ml.g4dn.xlarge"  # was "ml.g5.2xlarge"'
    assert line in on_terminal(document(), 40)


def test_no_colour_in_a_pipe() -> None:
    """A file or pipe gets text alone; a terminal gets colour; NO_COLOR is obeyed."""
    assert "\x1b" not in on_terminal(document(), 80)
    assert "\x1b[" in _terminal(document(), no_color=False)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", _terminal(document(), no_color=True))


def _terminal(audit: AuditDocument, *, no_color: bool) -> str:
    out = io.StringIO()
    render(audit, Console(file=out, width=80, force_terminal=True, no_color=no_color))
    return out.getvalue()


def test_plain_letters_where_there_are_no_others() -> None:
    """A terminal without UTF-8 gets bars of ASCII."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    render(document(), Console(file=out, width=80))
    out.flush()
    assert b"####" in raw.getvalue()


def test_a_plot_is_whole_on_every_terminal() -> None:
    """Five metrics of 48 points; ASCII where there is nothing else."""
    names = [f"GPUMemoryUtilization{place}" for place in range(5)]
    audit = document(findings=[finding(evidence={"series": [_plotted(name) for name in names]})])
    for width in (60, 80, 120):
        shown = on_terminal(audit, width)
        assert shown.count("▄" * 48) == len(names)
        assert all(cell_len(line) <= width or FIX_LINE.match(line) for line in shown.splitlines())
        assert all(f"{name}  " in shown for name in names)
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    render(audit, Console(file=out, width=60))
    out.flush()
    assert raw.getvalue().count(b"-" * 48) == len(names)


def _plotted(metric: str) -> dict[str, object]:
    values = [Decimal("43.2")] * 48
    return {"metric": metric, "unit": "percent", "hosts": 1, "period_s": 300, "values": values}


def test_free_phases_are_not_priced() -> None:
    """A phase that is not billed says so in place of dollars."""
    lines = on_terminal(document(), 80).splitlines()
    (starting,) = (line for line in lines if "Starting" in line)
    assert "not billed" in starting
    assert "$" not in starting


def test_unknown_is_said() -> None:
    """A bill without a price and a job without times show no figure for it."""
    bare = document(
        job=job(ended_at=None, account=None, region=None),
        bill={
            **document()["bill"],
            "total_usd": None,
            "complete": False,
            "missing": ["no price of ml.x9.large in us-east-1"],
            "lines": [{**document()["bill"]["lines"][0], "rate_usd": None, "usd": None}],
        },
        phases=[phase("Training", None, None)],
        avoidable_usd=None,
        lost_usd=None,
    )
    shown = on_terminal(bare, 80)
    assert "Its cost is not known, and what was avoidable or lost is not known either" in shown
    assert "Bill incomplete: no price of ml.x9.large in us-east-1" in shown
    assert "account unknown, region unknown" in shown
    assert "not ended" in shown


def test_never_started() -> None:
    """A job that never ran says so."""
    shown = on_terminal(document(job=job(started_at=None)), 80)
    assert "ended 2026-05-20 13:00 UTC, never started" in shown
    assert "UTC" not in on_terminal(document(job=job(started_at=None, ended_at=None)), 80)


def test_set_aside_findings_say_why() -> None:
    """What is exempt or covered comes last, with its reason; ways to fix it are all shown."""
    way = [{"parameter": "A.B", "old": 2, "new": 1}]
    exempt = {"by": "policy", "until": "2026-12-31", "reason": "benchmark"}
    audit = document(
        findings=[
            finding(exempt=exempt, saving_usd=Decimal(9)),
            finding(rule="small", superseded_by="gpu-underused", saving_usd=Decimal(0)),
            finding(rule="counted", alternatives=[way]),
        ]
    )
    shown = on_terminal(audit, 100)
    assert "Exempt by policy until 2026-12-31: benchmark" in shown
    assert "Not counted: gpu-underused covers it" in shown
    assert "Or:\n      A.B = 1  # was 2" in shown
    assert shown.index("counted (") < shown.index("Exempt")


def test_children_columns_that_tell_something() -> None:
    """A status or loss is a column only when some job has one, and there is room."""
    failed = trial(9, "1", None)
    failed["job"]["status"] = "Failed"
    audit = {**rollup_document(), "children": [failed, trial(1, "5", "1")]}
    assert "Status" in on_terminal(audit, 80)  # type: ignore[arg-type]
    assert "Status" not in on_terminal(audit, 60)  # type: ignore[arg-type]
    assert "Status" not in on_terminal(rollup_document(), 80)


def test_missing_metrics_share_a_line() -> None:
    """Metrics that lack for one reason are named together."""
    audit = document()
    audit["audit"]["coverage"]["missing"] = ["CPU: none read", "GPU: none read", "late"]
    shown = on_terminal(audit, 80)
    assert "metrics: CPU, GPU: none read\n  metrics: late\n" in shown


def test_many_children_and_phases_are_counted() -> None:
    """Long lists end with how many are not shown."""
    audit = {
        **rollup_document(),
        "children": [trial(n, "1", None) for n in range(30)],
        "phases": [phase("Training", 60, "0.1")] * 30,
    }
    shown = on_terminal(audit, 80)  # type: ignore[arg-type]
    assert "+10 more" in shown
    assert "+6 more" in shown


@whole_documents
@given(documents())
def test_hostile_text_is_inert(audit: AuditDocument) -> None:
    """Whatever the audit holds, nothing but letters and line ends reaches the terminal."""
    for width in (60, 80):
        shown = on_terminal(audit, width)
        categories = {unicodedata.category(char) for char in set(shown) - {"\n"}}
        assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_what_was_said_of_an_earlier_run_is_only_named() -> None:
    """One line with the rules and the run; the other findings are shown as ever."""
    said = finding(
        rule="spot-not-used", bucket="possible", said_of="train-1", summary="Spot is cheaper."
    )
    text = on_terminal(document(findings=[finding(rule="gpu-underused"), said]), 100)
    assert "As for train-1, an earlier run of the family: spot-not-used" in text
    assert "Spot is cheaper." not in text
    assert "gpu-underused (" in text
