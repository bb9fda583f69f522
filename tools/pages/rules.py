"""Writes docs/rules from the docstrings and cards of the rules: `make docs`."""

from __future__ import annotations

from sageaudit.cli.views.rule_page import rule_page
from sageaudit.rules import catalogue
from sageaudit.rules.card import Rule
from tools.pages import DOCS, track_record

FOLDER = DOCS / "rules"


_INDEX = """\
# Rules

Each page has the rule's reasons and thresholds, a job in which the rule finds something, and a job
in which it finds nothing.

## What the figures mean

**The figures are measured on made-up jobs**, which this project wrote for its own tests, and on a
few [recorded jobs](#other-measurements). They show whether a rule does what its page says. It is
not known yet how often a rule is right in real accounts: no figure here is from a user's account.

The waste of each of these jobs is known. Shares are from 0 to 1:

- *Precision* is the share of the rule's findings that are right.
- *Recall* is the share of the jobs that should have a finding in which the rule has one.
- *Dollars* is the share of the rule's counted dollars that are within the upper bound that experts
  estimated.

An empty cell means that there is no such job, or that the rule counted no dollars.

The pages use these words for savings:

- *Measured*: time that was billed and produced nothing.
- *Derived*: the difference between the bill and a second bill with the fix
  ([decision 0001](../decisions/0001-savings-are-second-bills.md)).
- *Possible*: dollars that a trial has to prove. They are in no total.

## Unknown is not zero

A rule whose metrics are missing answers "unknown". In an audit, `judged` is `yes`, `partly` or
`no`, and `not_judged` says what is missing and what to do. Without metrics of the instances,
*avoidable* is unknown, not $0.00 ([decision 0013](../decisions/0013-not-judged-is-not-zero.md)).

## Other measurements

- On generated jobs whose waste is known, every rule reaches 95% precision and recall
  ([table](../../tests/golden/labelled/confusion.txt)). The table below also includes the simulated
  cases, on which some rules do worse.
- On made-up jobs and families of short runs, experts estimated the least and the most dollars that
  were wasted. The audit counts at least 80% of their lower figure, and on no job more than their
  upper one ([table](../../tests/golden/labelled/expert-jobs.txt)).
- An author who did not know the code
  [simulated 119 cases](../../tests/labelled/simulated_jobs/README.md), and the rules were changed
  accordingly. The audits count 94% of the dollars that these recordings prove
  ([table](../../tests/golden/labelled/simulated-jobs.txt)).
- For rules that judge requests, an expert labelled 107 requests with 72 issues. The first version
  of the rules found 45 of them, with one false alarm. The rules were then changed until they
  agreed with all ([requests](../../tests/labelled/before_run/README.md)).
- The rules were compared with [SageMaker Debugger](../evidence/debugger.md) on 18 real jobs, and
  [22 real jobs that hardly used their GPU](../evidence/recorded-gpu-jobs.md) were audited.

## All rules

| id | rule | finds | jobs | precision | recall | dollars |
|---|---|---|---|--:|--:|--:|
{rows}
"""


def index(rules: tuple[Rule, ...]) -> str:
    """Returns the page with the table of all rules."""
    return _INDEX.format(rows="\n".join(map(_row, rules)))


def _row(rule: Rule) -> str:
    name, record = rule.info.name, track_record.load_records().get(rule.info.name)
    kinds = ", ".join(sorted(kind.value for kind in rule.kinds))
    figures = track_record.figures(record) if record else ("",) * 3
    cells = (rule.info.id, f"[{name}]({name}.md)", rule.title, kinds, *figures)
    return f"| {' | '.join(cells)} |"


def pages() -> dict[str, str]:
    """Returns every file of docs/rules with its text."""
    rules = catalogue.load()
    return {"README.md": index(rules)} | {f"{rule.info.name}.md": _page(rule) for rule in rules}


def _page(rule: Rule) -> str:
    """Returns the rule's own page with how often the rule was right."""
    record = track_record.load_records().get(rule.info.name)
    return rule_page(rule) + ("\n".join([*track_record.section(record), ""]) if record else "")


if __name__ == "__main__":
    for stale in FOLDER.glob("*.md"):
        stale.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
