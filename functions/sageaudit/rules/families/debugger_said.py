"""SageMaker Debugger's own rules found issues with the run.

## What it checks
A rule evaluation of the job ended with the status IssuesFound.

## Why it costs
Debugger watches each half second, and sees what minute means hide: I/O wait, single GPUs, tensors.

## Saving
None: Debugger prices nothing. Where a finding here tells the same story, it has the dollars.

## When it is wrong
Debugger's thresholds are those of its rules; its patience of some minutes counts a slow start too.

## What to do
Read the report under the job's output path (`rule-output/`), and set it beside the findings here.

## Sources
botocore, DescribeTrainingJob: ProfilerRuleEvaluationStatuses and DebugRuleEvaluationStatuses;
RuleEvaluationStatus is InProgress, NoIssuesFound, IssuesFound, Error, Stopping or Stopped.
"""

from __future__ import annotations

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Unknown
from sageaudit.domain.job.job import RuleEvaluation
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import JobCase, rule

_MOST_CHARACTERS = 300
_ISSUES, _UNSETTLED = "IssuesFound", frozenset({"InProgress", "Stopping"})


def _excuse(case: JobCase) -> str | None:
    return None if case.job.evaluations else "Debugger evaluated no rule of it"


@rule(id="SA708", scope=JobCase, kinds={JobKind.TRAINING}, excuse=_excuse, in_chat=False)
def check(case: JobCase) -> Outcome:
    """Its words are evidence, as they stand."""
    evaluations = case.job.evaluations
    issues = [one for one in evaluations if one.status == _ISSUES]
    if not issues:
        if any(one.status in _UNSETTLED for one in evaluations):
            return Unknown("debugger_not_finished", "Debugger had not ended its evaluation")
        return Clear()
    names = ", ".join(one.rule for one in issues)
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE,
        summary=f"{len(issues)} of {len(evaluations)} Debugger rules found issues: {names}.",
        evidence={"rules_evaluated": len(evaluations), **{one.rule: _words(one) for one in issues}},
        caution="No figure: Debugger prices nothing.",
    )


def _words(issue: RuleEvaluation) -> str:
    details = issue.details or issue.status
    fits = len(details) <= _MOST_CHARACTERS
    return details if fits else f"{details[: _MOST_CHARACTERS - 1]}…"
