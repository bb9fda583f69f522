"""The findings of `sageaudit check` in a file, as lines for every output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Literal

from msgspec import Struct

from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.guides import GuideDocument
from sageaudit.output.terminal.layout import SEVERITY_STYLES
from sageaudit.output.text.check_text import cost_text, fix_text, history_text, saving_text
from sageaudit.output.text.untrusted import cut_middle
from sageaudit.output.text.words import GUIDES_TITLE, NO_GUIDES_TEXT, count_text
from sageaudit.workflows.check.comparison import counted_findings
from sageaudit.workflows.check.document import CheckedFile

_MAX_NAME_WIDTH = 60
_MAX_UNKNOWN = 5
_REFUSED_TEXT = "AWS refuses the request"
LineRole = Literal["file", "job", "text", "finding", "detail", "fix", "address"]


class CheckLine(Struct, frozen=True):
    """A line of the output. `prefix` is its first words, which have their own style.

    A line with the role `detail` or `fix` belongs to the finding before it.
    """

    role: LineRole
    text: str
    style: str = ""
    prefix: str = ""
    prefix_style: str = ""


def line_groups(
    document: CheckedFile, earlier_jobs: Sequence[dict[str, Any] | None] = ()
) -> Iterator[list[CheckLine]]:
    """Yields the lines about the file, then about each job, its findings and what is unknown.

    `earlier_jobs`: each job's earlier version, if the file is compared.
    """
    jobs = count_text(sum(not job["trial"] for job in document["jobs"]), "job")
    yield [
        CheckLine("file", cut_middle(document["file"], _MAX_NAME_WIDTH), "bold"),
        CheckLine("text", _summary(document), "bold"),
        CheckLine("text", f"{document['form_text']}, {jobs}"),
    ]
    for job, earlier_job in zip_longest(document["jobs"], earlier_jobs[: len(document["jobs"])]):
        yield [*_job(job), *(_before(job, earlier_job) if earlier_jobs else ())]
        for row in job["findings"]:
            yield [*finding_lines(row)]
        if unknown := [*_unknown(job)]:
            yield unknown
        if "guides" in job:
            yield from _guides(job["guides"])
    if document["not_checked"]:
        yield [CheckLine("text", sentence, "dim") for sentence in document["not_checked"]]


def _job(job: dict[str, Any]) -> Iterator[CheckLine]:
    yield CheckLine("job", cut_middle(job["name"] or job["label"], _MAX_NAME_WIDTH), "bold")
    kind = "training jobs" if job["trial"] else f"{job['kind']} job"
    parts = (kind, job["instances"], job["region"] or "region unknown")
    yield CheckLine("text", ", ".join(part for part in parts if part))
    if job["name"] and job["label"] != f"{job['kind']} job":
        yield CheckLine("text", job["label"], "dim")
    if job["note"]:
        yield CheckLine("text", job["note"], "dim")
    style = "yellow" if job["unreadable"] else ""
    for text in cost_lines(job):
        yield CheckLine("text", text, style)
    for note in job["notes"]:
        yield CheckLine("text", note, "yellow")


def _before(job: dict[str, Any], earlier_job: dict[str, Any] | None) -> Iterator[CheckLine]:
    texts = list(cost_lines(earlier_job)) if earlier_job else ["There was no such job."]
    for text in ["The same cost."] if texts == list(cost_lines(job)) else texts:
        yield CheckLine("text", text, "cyan", prefix="Before: ", prefix_style="cyan")


def cost_lines(job: dict[str, Any]) -> Iterator[str]:
    """Yields what a job may cost, and what it cost before if its history was read."""
    if job["unreadable"]:
        yield f"Only compared with AWS's API: {job['unreadable']}"
        return
    yield cost_text(job["cost"], job["kind"])
    if job["history"]:
        yield history_text(job["history"])


def _guides(guides: list[GuideDocument]) -> Iterator[list[CheckLine]]:
    empty = [] if guides else [CheckLine("detail", NO_GUIDES_TEXT, "dim")]
    yield [CheckLine("text", GUIDES_TITLE, "bold"), *empty]
    for guide in guides:
        yield [
            CheckLine("text", guide["name"], "cyan"),
            CheckLine("detail", guide["says"]),
            CheckLine("address", guide["source"], "dim"),
        ]


def _unknown(job: dict[str, Any]) -> Iterator[CheckLine]:
    # Unknown values are listed only if they prevent a cost or a rule's result. The list may be cut;
    # --output json has all of them.
    reasons = [row["reason"] for row in job["unknown"]] + [job["cost"]["why_not_known"] or ""]
    rows = [
        row for row in job["not_known"] if any(f"{row['path']} " in reason for reason in reasons)
    ]
    for row in rows[:_MAX_UNKNOWN]:
        yield CheckLine("text", f"Not known yet: {row['path']} ({row['why']})", "dim")
    if len(rows) > _MAX_UNKNOWN:
        rest_text = f"Not known yet: {len(rows) - _MAX_UNKNOWN} more values"
        yield CheckLine("text", rest_text, "dim")


def finding_lines(row: dict[str, Any]) -> Iterator[CheckLine]:
    """Yields a finding's rule with its dollars or AWS's refusal, its sentence, and each parameter
    to change.
    """
    not_counted_reason, severity = row["not_counted"], row["severity"]
    rule_id = row["id"] or "AWS's API"
    line_text = f", line {row['line']}" if row["line"] else ""
    news = _REFUSED_TEXT if row["refused"] else saving_text(row)
    news_text = f"  {news}" if news else ""
    yield CheckLine(
        "finding",
        f"{row['rule']} ({rule_id}{line_text}){news_text}",
        prefix=f"{severity.upper()}  ",
        prefix_style="dim" if not_counted_reason else SEVERITY_STYLES[Severity(severity).rank],
    )
    yield CheckLine("detail", row["summary"])
    if not_counted_reason:
        yield CheckLine("detail", f"Not counted: {not_counted_reason}", "dim")
        return
    if row["caution"]:
        yield CheckLine("detail", row["caution"], prefix="Caveat: ", prefix_style="yellow")
    if row["source"] == "rules" and row["reported_for_run"]:
        repeat_text = (
            f"{row['reported_for_run']}, an earlier run of the family, had the same finding."
        )
        yield CheckLine("detail", repeat_text, "dim")
    for fix in row["fix"]:
        yield CheckLine("fix", fix_text(fix, row["source"]), "green")


def _summary(document: CheckedFile) -> str:
    if not document["jobs"]:
        return "Nothing to check: there is no SageMaker job in it."
    rows = [row for job in document["jobs"] for row in counted_findings(job)]
    return f"{refusal_text(document['jobs'])}{findings_summary(rows)}"


def refusal_text(jobs: Sequence[dict[str, Any]]) -> str:
    """Returns `AWS refuses this request (1 reason). `; "" if it refuses none.

    A tuning job in `jobs` is followed by its training jobs, which are part of its request.
    """
    reasons_by_request: list[int] = []
    for job in jobs:
        if not (job["trial"] and reasons_by_request):
            reasons_by_request.append(0)
        reasons_by_request[-1] += sum(row["refused"] for row in counted_findings(job))
    refused_count = sum(reasons > 0 for reasons in reasons_by_request)
    if not refused_count:
        return ""
    count = len(reasons_by_request)
    subject = "this request" if count == 1 else f"{refused_count:,} of {count:,} requests"
    return f"AWS refuses {subject} ({count_text(sum(reasons_by_request), 'reason')}). "


def findings_summary(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the number of findings by severity: `3 findings: 1 high, 2 low.`"""
    if not rows:
        return "No findings."
    counts = Counter(row["severity"] for row in rows)
    parts = [f"{counts[word]} {word}" for word in map(str, Severity) if counts[word]]
    return f"{count_text(counts.total(), 'finding')}: {', '.join(parts)}."
