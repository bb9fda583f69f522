"""Builders of tuning jobs, and outcomes of one rule for them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sageaudit.domain.audit.trials import Trial, allocate_trial_savings
from sageaudit.domain.bill.counterfactual import Severities
from sageaudit.domain.bill.finding import Detection, Finding, Outcome
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Direction, Objective, TuningSettings
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules.card import RollUpCase
from sageaudit.rules.judge import judge
from sageaudit.structs import replace
from tests.fakes.jobs import job
from tests.fakes.judging import rule_named

AUC = Objective("validation:auc", Direction.MAXIMIZE)


def tuning_job(status: str = "Completed", **changes: Any) -> Job:
    """Returns a Bayesian tuning job on AUC without early stopping, with changed settings."""
    plain = TuningSettings(
        strategy="Bayesian",
        early_stopping="Off",
        counters={},
        objective=AUC,
        max_jobs=20,
        max_parallel=1,
    )
    tuning = replace(plain, **changes)
    return job(kind=JobKind.TUNING, name="tune", status=status, groups=(), tuning=tuning)


def tuning_outcome(
    rule: str,
    trials: Sequence[Trial],
    tuning: Job | None,
    *,
    limits: Mapping[str, float] | None = None,
    policy: Policy | None = None,
) -> Outcome:
    """Returns the rule's outcome for a tuning job and its trials, in the order of their ends."""
    set_by = replace(policy or Policy(), thresholds={rule: limits or {}})
    [(_, answer)] = judge(RollUpCase(tuning, tuple(trials), policy=set_by), [rule_named(rule)])
    return answer


def tuning_answer(
    rule: str, trials: Sequence[Trial], tuning: Job | None, **more: Any
) -> Finding | Outcome:
    """Returns the rule's outcome; a detection as a finding with its dollars."""
    answer = tuning_outcome(rule, trials, tuning, **more)
    if not isinstance(answer, Detection):
        return answer
    named = [(rule_named(rule).info, answer)]
    return allocate_trial_savings(named, trials, Severities(), {}).findings[0]
