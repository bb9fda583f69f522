"""The output of `sageaudit check` as Markdown: the summary of a CI job, or a comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from sageaudit.cli.views.check.lines import (
    cost_lines,
    finding_lines,
    findings_summary,
    refusal_text,
)
from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.money import format_rate, format_usd
from sageaudit.output.text.money import format_signed_usd
from sageaudit.output.text.untrusted import for_markdown, for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.check.comparison import (
    FileCheck,
    JobComparison,
    compare_jobs,
    counted_findings,
)

MAX_CHARACTERS = 60_000
"""A comment on GitHub may have 65,536 characters; the rest is for a heading."""
_MAX_ROWS = 100
_MAX_NAME_LENGTH = 100
_MAX_ERRORS = 20
_MAX_ERROR_LENGTH = 300
_NOTE = (
    "<sub>At most: what a job costs if it runs to its limit, at on-demand prices."
    " Usually: the median of its family's completed runs on the same instances.</sub>"
)


def markdown_report(file_checks: Sequence[FileCheck]) -> str:
    """Returns a summary, a table of the jobs with their costs, and the findings of each job.

    The least important end of a long report is left out, and the report says so.
    """
    jobs = [job for file_check in file_checks for job in compare_jobs(file_check)]
    is_compared = any(file_check.is_compared for file_check in file_checks)
    blocks = [
        _summary(file_checks, jobs, is_compared=is_compared),
        *_not_checked(file_checks),
        *_table(jobs, is_compared=is_compared),
    ]
    details = [block for job in jobs for block in _job_details(job)]
    details += _other_sentences(file_checks)
    length = sum(len(block) + 2 for block in blocks) + len(_NOTE)
    for number, block in enumerate(details):
        length += len(block) + 2
        if length > MAX_CHARACTERS:
            blocks.append(
                f"{count_text(len(details) - number, 'more part')} of this report would be too long"
                " here: `sageaudit check` prints all."
            )
            break
        blocks.append(block)
    return "\n\n".join([*blocks, _NOTE])


def _summary(
    file_checks: Sequence[FileCheck], jobs: Sequence[JobComparison], *, is_compared: bool
) -> str:
    launched_jobs = [job for job in jobs if not job.job["trial"]]
    if not launched_jobs:
        if any(file_check.error or file_check.base_error for file_check in file_checks):
            return "No job could be checked."
        return "There is no SageMaker job in these files."
    present = [job.now for job in launched_jobs if job.now]
    subject = count_text(len(present), "job")
    text = findings_summary([row for job in jobs for row in job.new_findings if job.now])
    if is_compared:
        text = text.replace("finding", "new finding", 1)
    counts = {
        "fixed": sum(len(job.fixed_findings) for job in jobs if job.now),
        "unchanged": sum(len(job.unchanged_findings) for job in jobs),
    }
    rest = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    rest_text = f" {rest}." if rest else ""
    total_text = ""
    if len(launched_jobs) > 1:  # a sum of one is in the table
        total_text = f" If each runs once: {_sum_text(present)}"
        if any(file_check.base_error for file_check in file_checks):
            total_text += "; before, not known"
        elif earlier_jobs := [job.before for job in launched_jobs if job.before]:
            total_text += f"; before, {_sum_text(earlier_jobs)}"
        total_text += "."
    refusal = refusal_text([job.now for job in jobs if job.now])
    return f"**{refusal}{text}**{rest_text} {subject} checked.{total_text}"


def _sum_text(jobs: Sequence[dict[str, Any]]) -> str:
    costs = [job["cost"] for job in jobs]
    if unknown_count := sum(not _is_complete(cost) for cost in costs):
        verb = "has" if unknown_count == 1 else "have"
        jobs_text = f"{unknown_count} of {count_text(len(costs), 'job')}"
        return f"not known: {jobs_text} {verb} no known cost"
    total = sum((cost["at_most_usd"] for cost in costs), Decimal(0))
    about_text = "about " if any(cost["estimated"] for cost in costs) else ""
    return f"at most {about_text}{format_usd(total)}"


def _is_complete(cost: dict[str, Any]) -> bool:
    return cost["at_most_usd"] is not None and not cost["missing"]


def _table(jobs: Sequence[JobComparison], *, is_compared: bool) -> Iterator[str]:
    rows: list[tuple[JobComparison, list[dict[str, Any]]]] = []
    for job in jobs:
        findings = counted_findings(job.now)
        if job.job["trial"]:  # it follows its tuning job
            rows[-1][1].extend(findings)
        else:
            rows.append((job, findings))
    if not rows:
        return
    heads = ("job", "before", "now", "findings") if is_compared else ("job", "cost", "findings")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    length = 0
    for job, findings in rows[:_MAX_ROWS]:
        before = [_before_cell(job)] if is_compared else []
        cells = (_job_cell(job), *before, _now_cell(job), _findings_cell(job, findings))
        line = f"| {' | '.join(cells)} |"
        length += len(line)
        if length > MAX_CHARACTERS // 2:
            break
        lines.append(line)
    yield "\n".join(lines)
    if left_out := len(rows) - len(lines) + 2:
        yield f"{count_text(left_out, 'more job')} not in the table."


def _job_cell(job: JobComparison) -> str:
    label = job.job["name"] or job.job["label"]
    instances = f"<br>{for_markdown(job.job['instances'])}" if job.job["instances"] else ""
    texts = (for_markdown(text, _MAX_NAME_LENGTH) for text in (label, job.file))
    return "**{}**<br>{}".format(*texts) + instances


def _before_cell(job: JobComparison) -> str:
    if job.before is None:
        return "could not be checked" if job.is_base_unknown else "no such job"
    name = job.earlier_name
    return f"{for_markdown(name, _MAX_NAME_LENGTH)}<br>" * bool(name) + _cost_cell(job.before)


def _cost_cell(job: dict[str, Any]) -> str:
    cost, history = job["cost"], job["history"]
    if cost["at_most_usd"] is None:
        hourly = cost["hourly_usd"]
        rate_text = f"<br>{format_rate(hourly)} an hour" if hourly is not None else ""
        text = f"not known{rate_text}"
    else:
        about_text = "about " if cost["estimated"] else ""
        missing_text = "<br>not all included" if cost["missing"] else ""
        text = f"at most {about_text}{format_usd(cost['at_most_usd'])}{missing_text}"
    if history and history["usd"]:
        text += f"<br>usually about {format_usd(history['usd']['median'])}"
    return text


def _now_cell(job: JobComparison) -> str:
    if job.now is None:
        return "removed"
    text = _cost_cell(job.now)
    if job.before and _is_complete(job.before["cost"]) and _is_complete(job.now["cost"]):
        change = job.now["cost"]["at_most_usd"] - job.before["cost"]["at_most_usd"]
        is_about = job.now["cost"]["estimated"] or job.before["cost"]["estimated"]
        qualifier = SpendQualifier.ABOUT if is_about else SpendQualifier.EXACT
        if change:
            text += f"<br>**{format_signed_usd(change, qualifier)}**"
    return text


def _findings_cell(job: JobComparison, findings: Sequence[dict[str, Any]]) -> str:
    """Returns the findings by severity: those of a tuning job with those of its training jobs."""
    if job.now is None:
        return ""
    if job.now["unreadable"]:
        return "could not be judged"
    return findings_summary(findings).rstrip(".").partition(": ")[2] or "none"


def _job_details(job: JobComparison) -> Iterator[str]:
    """Yields a job's new findings, then those that it had before and the fixed ones, folded."""
    if job.now is None:
        return
    new_rows, old_rows, fixed_rows = job.new_findings, job.unchanged_findings, job.fixed_findings
    if not (new_rows or old_rows or fixed_rows or job.now["unreadable"]):
        return
    name = job.now["name"] or job.now["label"]
    lines = [for_markdown(job.file)]
    if new_rows or job.now["unreadable"]:
        lines += map(for_markdown, cost_lines(job.now))
    yield "\n\n".join([f"#### {for_markdown(name)}", "<br>\n".join(lines)])
    if new_rows:
        yield "\n".join(map(_finding, new_rows))
    if old_rows:
        yield _folded(f"{count_text(len(old_rows), 'finding')} unchanged", map(_finding, old_rows))
    if fixed_rows:
        titles = (
            f"- {for_markdown(row['rule'])}: {for_markdown(row['summary'])}" for row in fixed_rows
        )
        yield _folded(f"{count_text(len(fixed_rows), 'finding')} fixed", titles)


def _folded(summary: str, lines: Iterator[str]) -> str:
    return "\n".join([f"<details><summary>{summary}</summary>\n", *lines, "\n</details>"])


def _finding(row: dict[str, Any]) -> str:
    title, *details = finding_lines(row)
    lines = [f"**{title.prefix.strip()}** {for_markdown(title.text)}"]
    for line in details:
        text = _code(line.text) if line.role == "fix" else for_markdown(f"{line.prefix}{line.text}")
        lines.append(text)
    return f"- {'<br>'.join(lines)}"


def _not_checked(file_checks: Sequence[FileCheck]) -> Iterator[str]:
    errors = [file_check.error for file_check in file_checks if file_check.error is not None]
    rows = [f"- {for_markdown(error, _MAX_ERROR_LENGTH)}" for error in errors[:_MAX_ERRORS]]
    if len(errors) > _MAX_ERRORS:
        rows.append(f"- and {len(errors) - _MAX_ERRORS:,} more")
    if rows:
        title = f"**{count_text(len(errors), 'file')} could not be checked:**"
        yield "\n".join([title, "", *rows])


def _other_sentences(file_checks: Sequence[FileCheck]) -> Iterator[str]:
    rows = [
        f"- {for_markdown(file_check.name)}: {for_markdown(sentence)}"
        for file_check in file_checks
        for sentence in (
            *(file_check.checked["not_checked"] if file_check.checked else ()),
            *([file_check.base_error] if file_check.base_error else ()),
        )
    ]
    if rows:
        yield _folded(f"{count_text(len(rows), 'note')}", iter(rows))


def _code(text: str) -> str:
    """Returns a code span to copy from, which no backtick in the text can end."""
    return f"`{for_terminal(text).replace('`', chr(39))}`"
