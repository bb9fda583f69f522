"""SageMaker Debugger's own rules found issues with the run.

What it checks: A rule evaluation of the job ended with the status IssuesFound. Rules that say
    nothing about cost do not count: those on initial weights and input data, and the reports.
Why it costs: Debugger samples each half second, and finds what minute means hide: I/O wait, single
    GPUs, tensors.
Saving: None: Debugger gives no prices. If another rule here finds the same cause, it has the
    dollars.
When it is wrong: Debugger uses its own thresholds, and may count a slow start as an issue.
What to do: Read the report under the job's output path (`rule-output/`), and compare it with the
    findings here.
Sources: botocore, DescribeTrainingJob: ProfilerRuleEvaluationStatuses and
    DebugRuleEvaluationStatuses; RuleEvaluationStatus is InProgress, NoIssuesFound, IssuesFound,
    Error, Stopping or Stopped.
"""

from __future__ import annotations

from sageaudit.domain.job.parts import RuleEvaluation
from sageaudit.rules import api

_MOST_CHARACTERS = 300
_NOT_FINISHED = frozenset({"InProgress", "Stopping"})
_ANSWERS = frozenset({"IssuesFound", "NoIssuesFound"})
_NOT_OF_COST = frozenset(
    {
        "CheckInputImages",
        "ClassImbalance",
        "CreateXgboostReport",
        "FeatureImportanceOverweight",
        "PoorWeightInitialization",
        "ProfilerReport",
    }
)
"""Built-in rules by their usual names, which the SDK may end with `-` and digits."""


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
    # a rule with a name of its own may be about anything, and is told
    if all(issue.rule.rstrip("-0123456789") in _NOT_OF_COST for issue in issues):
        if any(evaluation.status in _NOT_FINISHED for evaluation in evaluations):
            return api.Unknown("debugger_not_finished", "Debugger had not ended its evaluation")
        return api.Clear()
    names = ", ".join(issue.rule for issue in issues)
    silent = sum(evaluation.status not in _ANSWERS for evaluation in evaluations)
    no_answer = f"; {silent} gave no answer" if silent else ""
    return api.fact(
        f"{len(issues)} of {len(evaluations)} Debugger rules found issues: {names}{no_answer}.",
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
