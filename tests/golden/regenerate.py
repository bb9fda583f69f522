"""Makes the golden files. `python -m tests.golden.regenerate` rewrites them: review the diff."""

import io
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from sageaudit.domain.advice.comparison import CostSpike
from sageaudit.domain.advice.totals import Month
from sageaudit.domain.alert.alert import AlertDecision, AlertKind, FollowUpReason
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.terminal.render import render
from sageaudit.output.text import plain, slack
from sageaudit.output.text.links import HistoryLocation
from sageaudit.structs import replace
from tests.fakes import documents, sample_documents
from tests.fakes.messages import alert, document_card, open_advice
from tests.golden import fixes
from tests.labelled import confusion, expert_comparison, simulated

STACK = HistoryLocation.for_table("SageAudit-HistoryTable3F9C2A71-1T6QF0XN8KZ4D", "us-east-1")
"""The table of a stack, with a name as CloudFormation gives it."""
HERE = Path(__file__).parent
_DOCUMENTS = {
    "two-findings": documents.document,
    "failed-hostile": sample_documents.lost_document,
    "perhaps-lost": sample_documents.possibly_lost_document,
    "tuning-rollup": sample_documents.rollup_document,
    "partly-judged": sample_documents.partly_judged_document,
    "estimated": sample_documents.estimated_document,
    "idle-capacity": sample_documents.idle_document,
    "unauditable": sample_documents.unauditable_document,
    "not-judged": sample_documents.not_judged_document,
    "still-running": sample_documents.running_document,
    "set-aside": sample_documents.uncounted_document,
}
_WIDTHS = (60, 80, 120)


def _first_alert(
    rule: str = "gpu-underused",
    month: str = "540",
    amount_kind: AmountKind = AmountKind.COUNTED,
    **fields: Any,
) -> AlertDecision:
    """Returns a first message for a recommendation with this monthly amount."""
    usd = Decimal(month)
    runs = fields.pop("runs", 12)
    month_totals = Month(amount_kind, Decimal(fields.pop("total", usd)), usd, runs, occasions=runs)
    recommendation = open_advice(rule, amount_kind)
    return AlertDecision(
        amount_kind=amount_kind,
        month=month_totals,
        saves=month_totals,
        recommendation=recommendation,
        **fields,
    )


def messages() -> dict[str, tuple[AuditDocument, AlertDecision]]:
    """Returns an audit and a decision for each golden message, by name."""
    low_figures = AlertFigures(Severity.LOW, Decimal(6), Decimal(0))
    high_figures = AlertFigures(Severity.HIGH, Decimal(412), Decimal(0))
    low_alert, high_alert = alert(low_figures), alert(high_figures)
    counted_alert = replace(
        low_alert,
        amount_kind=AmountKind.COUNTED,
        recommendation_ids=("abcdefgh",),
        amount=Decimal(6),
    )
    provisional, corrected = documents.document(), documents.document()
    provisional_fields = {"settled": False, "due_at": "2026-05-20T15:00:00Z"}
    provisional["audit"] = {**provisional["audit"], **provisional_fields}  # type: ignore[typeddict-item]
    corrected["bill"] = {**corrected["bill"], "total_usd": Decimal(440)}
    gpu_idle = documents.finding(rule="gpu-idle", saving_usd=Decimal(410))
    corrected["findings"] = [gpu_idle, *corrected["findings"]]
    follow_up = replace(_first_alert(), previous_alert=counted_alert)
    rule = "failed-spend"
    return {
        "two-findings": (documents.document(), _first_alert()),
        "young": (documents.document(), _first_alert(total="61.20", runs=2)),
        "failed-hostile": (sample_documents.lost_document(), _first_alert(rule, "43", runs=44)),
        "perhaps-lost": (
            sample_documents.possibly_lost_document(),
            _first_alert(rule, "9.5", runs=2),
        ),
        "tuning-rollup": (sample_documents.rollup_document(), _first_alert(month="3.80", runs=1)),
        "partly-judged": (
            sample_documents.partly_judged_document(),
            _first_alert("download-dominates", "15"),
        ),
        "estimated": (
            sample_documents.estimated_document(),
            _first_alert(month="1162.4", runs=301),
        ),
        "second-more-severe": (
            sample_documents.lost_document(),
            replace(
                _first_alert(rule, "612"),
                kind=AlertKind.WORSE,
                news_text="it now comes to at least $100 a month",
                previous_alert=counted_alert,
            ),
        ),
        "came-back": (
            documents.document(),
            replace(
                follow_up,
                kind=AlertKind.FOLLOW_UP,
                follow_up_reason=FollowUpReason.CAME_BACK,
                news_text="it is back after a fix, found for the third time; "
                "it cost $1,236.00 so far",
            ),
        ),
        "cost-spike": (
            sample_documents.cost_spike_document(),
            AlertDecision(AlertKind.COST_SPIKE, spike=CostSpike(Decimal(24), Decimal(182))),
        ),
        "trial": (
            sample_documents.trial_document(),
            _first_alert("spot-not-used", "60", AmountKind.POSSIBLE, runs=9),
        ),
        "correction": (
            documents.document(),
            AlertDecision(
                AlertKind.CORRECTION,
                previous_alert=high_alert,
                corrected_audit=MessageAudit.parse(corrected),
            ),
        ),
        "correction-to-nothing": (
            documents.document(findings=[], avoidable_usd=Decimal(0)),
            AlertDecision(AlertKind.CORRECTION, previous_alert=high_alert),
        ),
        "provisional": (provisional, _first_alert()),
        "pipeline-step": (_step_document(), replace(_first_alert(), other_steps=_other_steps())),
    }


def _step_document() -> AuditDocument:
    """Returns the audit of a pipeline's step."""
    return documents.document(job=documents.job(family="pipeline/nightly/train"))


def _other_steps() -> tuple[tuple[str, Month], ...]:
    """Returns the monthly amounts of the pipeline's other steps."""
    months = {"features": 120, "score": 40, "evaluate": 12, "report": 3}
    return tuple(
        (f"pipeline/nightly/{name}", Month(AmountKind.COUNTED, Decimal(usd), Decimal(usd), 9))
        for name, usd in months.items()
    )


def goldens() -> dict[str, Callable[[], str]]:
    """Returns functions that make the golden files' texts, by path below this folder."""
    files: dict[str, Callable[[], str]] = {}
    for name, (document, decision) in messages().items():
        files[f"slack/{name}.json"] = partial(_slack, document, decision)
        files[f"sns/{name}.txt"] = partial(_sns, document, decision)
    for name, make in _DOCUMENTS.items():
        for width in _WIDTHS:
            files[f"terminal/{name}-{width}.txt"] = (
                lambda make=make, width=width: on_terminal(make(), width)  # type: ignore[misc]
            )
    files["terminal/fixes.txt"] = fixes.all_fixes
    files["labelled/confusion.txt"] = confusion.table
    files["labelled/expert-jobs.txt"] = expert_comparison.table
    files["labelled/simulated-jobs.txt"] = simulated.table
    return files


def on_terminal(document: AuditDocument, width: int) -> str:
    """Returns the audit as printed to a file or pipe: without colour and padding at line ends."""
    out = io.StringIO()
    render(document, Console(file=out, width=width))
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _slack(document: AuditDocument, decision: AlertDecision) -> str:
    payload = slack.make_payload(document_card(document, decision, STACK), {"anna": "U0123ABC"})
    return json.dumps(payload, indent=1, ensure_ascii=False) + "\n"


def _sns(document: AuditDocument, decision: AlertDecision) -> str:
    notice = plain.make_payload(document_card(document, decision, STACK))
    attributes = json.dumps(notice["attributes"], indent=1, ensure_ascii=False)
    return f"Subject: {notice['subject']}\n\n{notice['message']}\n{attributes}\n"


def main() -> None:
    """Rewrites every golden file, unless a rule is right less often than required."""
    if failures := confusion.below_the_bar(confusion.judged_stories()):
        sys.exit("No golden file was written:\n" + "\n".join(failures))
    for name, make in goldens().items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
