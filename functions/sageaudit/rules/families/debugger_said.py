"""SageMaker Debugger's own rules found issues with the run.

What it checks: A rule evaluation of the job ended with the status IssuesFound.
Why it costs: Debugger samples each half second, and finds what minute means hide: I/O wait, single
    GPUs, tensors.
Saving: None: Debugger gives no prices. A finding here about the same cause has the dollars.
When it is wrong: Debugger's thresholds are those of its rules; its patience of some minutes
    includes a slow start.
What to do: Read the report under the job's output path (`rule-output/`), and compare it with the
    findings here.
Sources: botocore, DescribeTrainingJob: ProfilerRuleEvaluationStatuses and
    DebugRuleEvaluationStatuses; RuleEvaluationStatus is InProgress, NoIssuesFound, IssuesFound,
    Error, Stopping or Stopped.
"""

from __future__ import annotations

from sageaudit.domain.job.job import RuleEvaluation
from sageaudit.rules import api

_MOST_CHARACTERS = 300
_NOT_FINISHED = frozenset({"InProgress", "Stopping"})


def _not_evaluated(case: api.JobCase) -> str | None:
    return None if case.job.evaluations else "Debugger evaluated no rule of it"


@api.rule(
    id="SA708",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    not_applicable=(_not_evaluated,),
    in_chat=False,
)
def check(case: api.JobCase) -> api.Outcome:
    """Debugger's own words are the evidence."""
    evaluations = case.job.evaluations
    issues = [evaluation for evaluation in evaluations if evaluation.status == "IssuesFound"]
    if not issues:
        if any(evaluation.status in _NOT_FINISHED for evaluation in evaluations):
            return api.Unknown("debugger_not_finished", "Debugger had not ended its evaluation")
        return api.Clear()
    names = ", ".join(issue.rule for issue in issues)
    return api.fact(
        f"{len(issues)} of {len(evaluations)} Debugger rules found issues: {names}.",
        {
            "rules_evaluated": len(evaluations),
            **{issue.rule: _shortened(issue) for issue in issues},
        },
        caution="Debugger gives no prices, so nothing is counted.",
    )


def _shortened(issue: RuleEvaluation) -> str:
    details = issue.details or issue.status
    fits = len(details) <= _MOST_CHARACTERS
    return details if fits else f"{details[: _MOST_CHARACTERS - 1]}…"
