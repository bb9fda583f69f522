"""What the golden files hold. `python -m tests.golden.regenerate` rewrites them: see the diff."""

import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
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
_SHOWN = {
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
_NINE = datetime(2026, 5, 20, 9, 2, tzinfo=UTC)
_WIDTHS = (60, 80, 120)


def _due(
    rule: str = "gpu-underused",
    month: str = "540",
    of: AmountKind = AmountKind.COUNTED,
    **more: Any,
) -> AlertDecision:
    """A message that is due for an advice, by what its family came to in a month."""
    usd = Decimal(month)
    runs = more.pop("runs", 12)
    whole = Month(of, Decimal(more.pop("total", usd)), usd, runs, occasions=runs)
    recommendation = open_advice(rule, of)
    return AlertDecision(
        amount_kind=of, month=whole, saves=whole, recommendation=recommendation, **more
    )


def messages() -> dict[str, tuple[AuditDocument, AlertDecision]]:
    """Messages of every kind."""
    low = AlertFigures(Severity.LOW, Decimal(6), Decimal(0))
    high = AlertFigures(Severity.HIGH, Decimal(412), Decimal(0))
    before_it, last = alert(low), alert(high)
    after = replace(
        before_it,
        amount_kind=AmountKind.COUNTED,
        recommendation_ids=("abcdefgh",),
        amount=Decimal(6),
    )
    provisional, before = documents.document(), documents.document()
    due = {"settled": False, "due_at": "2026-05-20T15:00:00Z"}
    provisional["audit"] = {**provisional["audit"], **due}  # type: ignore[typeddict-item]
    before["bill"] = {**before["bill"], "total_usd": Decimal(440)}
    gpu_idle = documents.finding(rule="gpu-idle", saving_usd=Decimal(410))
    before["findings"] = [gpu_idle, *before["findings"]]
    again = replace(_due(), previous_alert=after)
    failed = "failed-spend"
    return {
        "two-findings": (documents.document(), _due()),
        "young": (documents.document(), _due(total="61.20", runs=2)),
        "failed-hostile": (sample_documents.lost_document(), _due(failed, "43", runs=44)),
        "perhaps-lost": (sample_documents.possibly_lost_document(), _due(failed, "9.5", runs=2)),
        "tuning-rollup": (sample_documents.rollup_document(), _due(month="3.80", runs=1)),
        "partly-judged": (
            sample_documents.partly_judged_document(),
            _due("download-dominates", "15"),
        ),
        "estimated": (sample_documents.estimated_document(), _due(month="1162.4", runs=301)),
        "second-more-severe": (
            sample_documents.lost_document(),
            replace(
                _due(failed, "612"),
                kind=AlertKind.WORSE,
                why="its month is high now",
                previous_alert=after,
            ),
        ),
        "came-back": (
            documents.document(),
            replace(
                again,
                kind=AlertKind.FOLLOW_UP,
                follow_up_reason=FollowUpReason.CAME_BACK,
                why="what was fixed came back: third time, $1,236.00 so far",
            ),
        ),
        "cost-spike": (
            sample_documents.cost_spike_document(),
            AlertDecision(AlertKind.COST_SPIKE, spike=CostSpike(Decimal(24), Decimal(182))),
        ),
        "trial": (
            sample_documents.trial_document(),
            _due("spot-not-used", "60", AmountKind.POSSIBLE, runs=9),
        ),
        "correction": (
            documents.document(),
            AlertDecision(
                AlertKind.CORRECTION,
                previous_alert=last,
                corrected_audit=MessageAudit.parse(before),
            ),
        ),
        "correction-to-nothing": (
            documents.document(findings=[], avoidable_usd=Decimal(0)),
            AlertDecision(AlertKind.CORRECTION, previous_alert=last),
        ),
        "provisional": (provisional, _due()),
        "pipeline-step": (_step(), replace(_due(), other_steps=_other_steps())),
    }


def _step() -> AuditDocument:
    """The audit of a pipeline's step."""
    return documents.document(job=documents.job(family="pipeline/nightly/train"))


def _other_steps() -> tuple[tuple[str, Month], ...]:
    """What the other steps of the same pipeline come to."""
    months = {"features": 120, "score": 40, "evaluate": 12, "report": 3}
    return tuple(
        (f"pipeline/nightly/{name}", Month(AmountKind.COUNTED, Decimal(usd), Decimal(usd), 9))
        for name, usd in months.items()
    )


def goldens() -> dict[str, Callable[[], str]]:
    """Each golden file's path below this folder and how its text is made."""
    files: dict[str, Callable[[], str]] = {}
    for name, (whole, notify) in messages().items():
        files[f"slack/{name}.json"] = lambda whole=whole, on=notify: _slack(whole, on)  # type: ignore[misc]
        files[f"sns/{name}.txt"] = lambda whole=whole, on=notify: _sns(whole, on)  # type: ignore[misc]
    for name, make in _SHOWN.items():
        for width in _WIDTHS:
            files[f"terminal/{name}-{width}.txt"] = (
                lambda make=make, width=width: on_terminal(make(), width)  # type: ignore[misc]
            )
    files["terminal/fixes.txt"] = fixes.text
    files["labelled/confusion.txt"] = confusion.table
    files["labelled/expert-jobs.txt"] = expert_comparison.table
    files["labelled/simulated-jobs.txt"] = simulated.table
    return files


def on_terminal(document: AuditDocument, width: int) -> str:
    """The audit as a file or pipe gets it: no colour; the padding at line ends is left out."""
    out = io.StringIO()
    render(document, Console(file=out, width=width))
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _slack(document: AuditDocument, notify: AlertDecision) -> str:
    payload = slack.make_payload(document_card(document, notify, STACK), {"anna": "U0123ABC"})
    return json.dumps(payload, indent=1, ensure_ascii=False) + "\n"


def _sns(document: AuditDocument, notify: AlertDecision) -> str:
    notice = plain.make_payload(document_card(document, notify, STACK))
    attributes = json.dumps(notice["attributes"], indent=1, ensure_ascii=False)
    return f"Subject: {notice['subject']}\n\n{notice['message']}\n{attributes}\n"


def main() -> None:
    """Rewrites every golden file; none while a rule is right less often than it must be."""
    if below := confusion.below_the_bar(confusion.judged_stories()):
        sys.exit("No golden file was written:\n" + "\n".join(below))
    for name, make in goldens().items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
