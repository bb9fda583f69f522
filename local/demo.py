"""`make demo`: recorded jobs end on the local AWS, and the results are printed.

The results are read where a user would read them: from the history's table, from a subscriber of
the topic, and from the posts to Slack. For what needs weeks of jobs, the history of the example
company is written, as by `sageaudit demo`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from local import ACCOUNT, slack_view
from local.aws import LocalAws, local_aws
from local.recorded import RECORDINGS, RecordedJob, jobs_in_file, recorded_jobs
from local.slack import FakeSlack, slack_stand_in
from sageaudit import __version__
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.prices import packaged
from sageaudit.cli.main import cli
from sageaudit.domain.audit.record import RuleFinding, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import Period
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.page import page
from sageaudit.output.text.amounts import summary_amounts
from sageaudit.output.text.finding import saving_figure
from sageaudit.output.text.headline import account_headline
from sageaudit.output.text.money import format_usd
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.workflows import report as report_contents

ROOT = Path(__file__).parents[1]
POLICY = Path(__file__).parent / "policy.toml"
REPORT = ROOT / "build" / "demo-report.html"
EXAMPLE = ROOT / "build" / "example-company.db"
COMPOSED = RECORDINGS / "composed-g4dn-12xlarge.json"
"""A made-up run: no public recording has several GPUs and every metric that its fix needs."""
RULE = "gpu-underused"
_MIN_NAME_WIDTH, _MAX_NAME_WIDTH, _GAP = 18, 48, 2
"""Widths: shortest and longest column of text, space between columns."""
_COLUMNS, _TOP = {"Cost": 13, "Avoidable": 10, "Lost": 6}, "Top finding"
"""Columns of dollars with their widths, and the last one."""
_POSSIBLE = "An amount after a rule's name is a possible saving; it is not in the totals."
_ABOUT = 'About: the rate is estimated from that of EC2; "sageaudit audit" says how.'
_UNKNOWN = "Unknown: the job's metrics were missing or too few to judge what was avoidable."


def main() -> int:
    """Runs the demo; returns 1 if a job was not audited."""
    jobs, policy = recorded_jobs(), load_policy(POLICY)
    with (
        slack_stand_in() as slack,
        local_aws(jobs[0].ended_at, policy=policy, transport=slack.transport) as aws,
    ):
        code = run_demo(jobs, policy, aws, slack)
    if not code:
        show_example()
    return code


def show_example() -> None:
    """Writes the example company's history, and prints what to ask it."""
    console = Console()
    console.print(Text("\nWeeks of jobs, which advice, savings and changes need", "bold"))
    print("The commands below are in .venv/bin.")
    cli.main(["demo", "--history", os.path.relpath(EXAMPLE)], standalone_mode=False)


def run_demo(jobs: Sequence[RecordedJob], policy: Policy, aws: LocalAws, slack: FakeSlack) -> int:
    """Ends the jobs on this local AWS and prints the results; 1 if a job was not audited."""
    with Console(stderr=True).status(f"{len(jobs)} recorded jobs end on the local AWS ..."):
        unaudited = _run(aws, jobs)
    console, history = Console(), aws.history()
    heads = sorted(history.runs(RunQuery.for_account(ACCOUNT)), key=_waste_order)
    _show_result(console, heads, policy)
    _show_jobs(console, history, heads)
    _show_message(console, slack.posts, len(aws.mails), len(slack.taken))
    _show_rule(console, reversed([*history.runs(RunQuery.for_rule(RULE))]))
    _show_report(console, history, heads)
    for job in unaudited:
        _explain_missing_audit(job, history, aws)
    return 1 if unaudited else 0


def _run(aws: LocalAws, jobs: Sequence[RecordedJob]) -> list[RecordedJob]:
    """Ends the jobs one after the other; returns those without an audit."""
    for job in jobs:
        aws.advance(job.ended_at)
        aws.end_job(job)
    aws.advance()
    history = aws.history()
    audits = [(job, history.summary(job.key)) for job in jobs]
    return [job for job, head in audits if head is None or head.unauditable is not None]


def _waste_order(head: AuditSummary) -> tuple[Decimal, Decimal, str]:
    """Returns a sort key: the waste, then the cost."""
    wasted = (head.avoidable_usd or Decimal(0)) + (head.lost_usd or Decimal(0))
    return -wasted, -(head.total_usd or Decimal(0)), head.job


def _show_result(console: Console, heads: Sequence[AuditSummary], policy: Policy) -> None:
    """Prints one sentence with the result, and one on how much of it is real."""
    jobs = [head for head in heads if not head.rollup]
    real = [head for head in jobs if head.job != _composed_recording().name]
    blind = sum(head.avoidable_usd is None for head in jobs)
    console.print(f"{account_headline(_sums(jobs))}.", style="bold", highlight=False)
    console.print(
        f"{len(real)} of them really ran, one is made up; without it, "
        f"{account_headline(_sums(real))}. For {blind} of the jobs nobody can tell what was "
        "avoidable: their metrics are missing or too few.\n",
        highlight=False,
    )
    console.print(
        "They ended on a local AWS; nothing left this machine. Public recordings are of small "
        f"jobs, so local/policy.toml sends messages from {format_usd(policy.floor_usd)} on.",
        style="dim",
        highlight=False,
    )


def _sums(heads: Iterable[AuditSummary]) -> Sums:
    return sum((head.sums or Sums() for head in heads), Sums())


def _show_jobs(console: Console, history: DynamoHistory, heads: Sequence[AuditSummary]) -> None:
    tops = [_top(history, head) for head in heads]
    used_width = sum(_COLUMNS.values()) + (len(_COLUMNS) + 1) * _GAP + max(map(len, (_TOP, *tops)))
    name_width = min(max(console.width - used_width, _MIN_NAME_WIDTH), _MAX_NAME_WIDTH)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    table.add_column("Job", width=name_width, no_wrap=True)
    for word, width in _COLUMNS.items():
        table.add_column(word, justify="right", width=width, no_wrap=True)
    table.add_column(_TOP, overflow="ellipsis")
    for head, top in zip(heads, tops, strict=True):
        name = Text(cut_middle(for_terminal(head.job), name_width), "italic" if head.rollup else "")
        table.add_row(name, *map(str, summary_amounts(head)[:3]), Text(top))
    console.print(Text("\nAudited jobs, the most wasteful first", "bold"))
    console.print(table)
    possible = [_POSSIBLE] if any("$" in top for top in tops) else []
    guessed = [_ABOUT] if any(head.estimated for head in heads) else []
    notes = [*possible, *guessed, _UNKNOWN, f"{_composed_recording().name} is made up."]
    console.print(Text("\n".join(notes), "dim"))


def _top(history: DynamoHistory, head: AuditSummary) -> str:
    document = history.audit(head.key) if head.costliest_rule else None
    if document is None or head.costliest_rule is None:
        return "-"
    finding = next(row for row in document["findings"] if row["rule"] == head.costliest_rule)
    possible = finding["bucket"] == "possible" and finding["saving_usd"]
    return f"{head.costliest_rule} {saving_figure(finding)}" if possible else head.costliest_rule


def _composed_recording() -> RecordedJob:
    [job] = jobs_in_file(COMPOSED)
    return job


def _show_message(
    console: Console, posts: Sequence[dict[str, object]], mails: int, taken: int
) -> None:
    on_teams = f"{taken - len(posts)} on Teams"
    console.print(
        f"\nMessages: {len(posts)} on Slack, {on_teams}, {mails} on SNS. The newest on Slack, as on"
        " a phone:"
    )
    if posts:
        console.print(slack_view.render(posts[-1]))


def _show_rule(console: Console, rows: Iterable[RuleFinding]) -> None:
    table = Table.grid(padding=(0, _GAP, 0, 0))
    name_width = min(max(console.width // 3, _MIN_NAME_WIDTH), _MAX_NAME_WIDTH)
    for row in rows:
        name = cut_middle(for_terminal(row.summary.job), name_width)
        table.add_row(
            f"{row.ended_at:%Y-%m-%d}", Text(name), Text(for_terminal(row.finding.summary))
        )
    console.print(Text(f"\nA query of the history: what did {RULE} find?", "bold"))
    console.print(table)


def _show_report(console: Console, history: DynamoHistory, heads: Sequence[AuditSummary]) -> None:
    """Writes the page of `sageaudit report`, and prints its path."""
    days = {head.ended_at.date() for head in heads}
    period = Period(min(days), max(days))
    source = report_contents.ReportSource(history, packaged.instance_types())
    summaries = report_contents.read_report_summaries(source, period, ACCOUNT)
    contents = report_contents.assemble_account_report(
        source, period, ACCOUNT, *summaries, period.until
    )
    text = page(
        account_title(contents),
        account_body(contents),
        generated_at=datetime.now(UTC),
        version=__version__,
    )
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("".join(text), encoding="utf-8")
    console.print(Text("\nThe same as a page, with charts and each job's fixes", "bold"))
    print(f"{REPORT.relative_to(ROOT)}: open it in a browser; it loads nothing and sends nothing")


def _explain_missing_audit(job: RecordedJob, history: DynamoHistory, aws: LocalAws) -> None:
    head = history.summary(job.key)
    failures = aws.functions["audit"].failures
    code = (head and head.unauditable) or (
        failures[-1] if failures else "see the dead-letter queue"
    )
    print(f"{job.name} was not audited: {for_terminal(str(code))}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
