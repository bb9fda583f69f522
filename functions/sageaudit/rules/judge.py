"""Applies rules to one case: first the gates that all rules share, then the rule itself.

The case's policy disables rules and overrides thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from sageaudit.domain.audit.audit import DIFFERS_FROM_FAMILY, JOB_NOT_FINISHED
from sageaudit.domain.bill.finding import (
    Clear,
    Detection,
    NotApplicable,
    Outcome,
    RuleInfo,
    Unknown,
)
from sageaudit.domain.usage.judged_use import PooledRuns
from sageaudit.domain.usage.measurements import (
    GAP_LONG_CODE,
    MIN_POINTS,
    TYPES_MIXED,
    Measurements,
    Metric,
)
from sageaudit.rules.api import HISTORY_UNREAD, HOSTS_UNMAPPED, unknown_from_missing
from sageaudit.rules.card import (
    AccountCase,
    Case,
    FamilyCase,
    JobCase,
    RequestCase,
    RollUpCase,
    Rule,
)
from sageaudit.structs import replace

RULE_FAILED = "rule_failed"
"""The code for a rule that raised an error. CloudWatch counts these answers."""
UNKNOWN_UNTIL_RUN = "not_known_yet"
"""The code for a value that is known only when a pipeline runs or a Terraform plan is applied."""
_SCOPES: Mapping[type[Case], AbstractSet[type[Case]]] = {
    FamilyCase: {Case, JobCase, FamilyCase},
    RollUpCase: {Case, RollUpCase},
    AccountCase: {AccountCase},
}
"""The scopes of the rules that judge a case, by the class of the case."""
_REQUEST_SCOPES = {Case, RequestCase, JobCase, FamilyCase}
_REQUEST_ONLY_SCOPES = {Case, RequestCase}
"""Rules of these scopes judge the request itself, not the job that it would start."""
_CASES_WITH_JOB = (JobCase, RollUpCase, RequestCase)
_TOO_SHORT = "too_short"
BUSY_GPU_PERCENT = 50
"""From this percent on, the GPU decides what the job costs, not the CPU (Jobstats' target)."""

Answers = list[tuple[RuleInfo, Outcome]]


def judge(case: FamilyCase | RollUpCase | AccountCase, rules: Iterable[Rule]) -> Answers:
    """Returns one outcome for each rule that judges this class of case.

    Rules for one job also judge a run of a family.
    """
    scopes = _SCOPES[type(case)]
    return [(rule.info, _judge_rule(rule, case)) for rule in rules if rule.scope in scopes]


def judge_request(
    case: RequestCase, planned_case: FamilyCase | RollUpCase, rules: Iterable[Rule]
) -> Answers:
    """Returns one outcome for each rule that can judge a request before it runs.

    `planned_case`: the request as if it had run.
    """
    is_search = isinstance(planned_case, RollUpCase)
    scopes = {Case, RequestCase, RollUpCase} if is_search else _REQUEST_SCOPES
    return [
        (rule.info, _judge_request_rule(rule, case, planned_case))
        for rule in rules
        if rule.request_severity is not None and rule.scope in scopes
    ]


def _judge_request_rule(
    rule: Rule, case: RequestCase, planned_case: FamilyCase | RollUpCase
) -> Outcome:
    if case.request.kind in rule.kinds and (
        reason := case.request.unknown_reason(rule.required_parameters)
    ):
        return Unknown(UNKNOWN_UNTIL_RUN, reason)
    return _judge_rule(rule, case if rule.scope in _REQUEST_ONLY_SCOPES else planned_case)


def _judge_rule(rule: Rule, case: Case) -> Outcome:
    name, policy = rule.info.name, case.policy
    if name in policy.disabled_rules:
        return NotApplicable("the policy disables it")
    if not rule.is_on_by_default and name not in policy.enabled_rules:
        return NotApplicable("it is off by default; the policy can list it under rules.on")
    if overrides := policy.thresholds.get(name):
        case = replace(case, overrides=overrides)
    if gate_outcome := _kind_gate(rule, case):
        return gate_outcome
    try:
        for reason in rule.not_applicable:
            if (clause := reason(case)) is not None:
                return NotApplicable(clause)
        if not isinstance(case, FamilyCase):
            return rule.check(case)
        outcome = _run_gates(rule, case)
        if case.pool is not None and _should_ask_pool(rule, case.pool, outcome):
            return _judge_pool(rule, case, case.pool)
        return outcome or rule.check(case)
    except Exception as error:  # noqa: BLE001 - one rule's defect must not silence the others
        return Unknown(RULE_FAILED, f"the rule failed with {type(error).__name__}")


def _kind_gate(rule: Rule, case: Case) -> Outcome | None:
    job = case.job if isinstance(case, _CASES_WITH_JOB) else None
    kind = job.kind if job is not None else None
    if isinstance(case, RollUpCase):
        kind = case.kind
    if job is not None and not job.finished:
        return Unknown(JOB_NOT_FINISHED, f"the job has not ended (status {job.status})")
    if kind is None or kind in rule.kinds:
        return None
    return NotApplicable(f"not for {kind.spec.label}s")


def _run_gates(rule: Rule, case: FamilyCase) -> Outcome | None:
    if rule.skips_busy_gpu and (busy_percent := _busy_gpu_percent(case.active_usage)) is not None:
        return NotApplicable(f"the GPU is busy ({busy_percent:.0f}% of its active time)")
    if rule.compares_hosts and len(case.job.groups) > 1:
        return unknown_from_missing(TYPES_MIXED) if case.whole_run.by_type else HOSTS_UNMAPPED
    usage = case.whole_run if rule.uses_whole_run else case.active_usage
    return _metrics_gate(rule, usage) or _history_gate(rule, case)


def _busy_gpu_percent(usage: Measurements) -> float | None:
    busy = usage.mean(Metric.GPU) if usage.series.get(Metric.GPU) else 0
    return busy if busy >= BUSY_GPU_PERCENT else None


def _should_ask_pool(rule: Rule, pool: PooledRuns, gate: Outcome | None) -> bool:
    """True if the rule should judge the family's last runs together with this run.

    `gate`: why the rule cannot judge the run alone; None if it can. The pool is judged if the run
    is too short. A rule without required metrics is never stopped by a gate, but chooses types by
    the recorded use. So it judges every pool with enough minutes.
    """
    if not rule.can_pool_runs:
        return False
    if gate is None:
        return not rule.required_metrics and pool.has_enough_minutes
    return isinstance(gate, Unknown) and gate.code == _TOO_SHORT


def _judge_pool(rule: Rule, case: FamilyCase, pool: PooledRuns) -> Outcome:
    """Returns the outcome of the family's last runs together.

    The run's own minutes must give the same answer. So a busy run is not blamed for other runs, and
    an idle run is not excused by them. If the answers differ, the code may have changed. Then only
    the newest runs are judged, and each of them must give the same answer.
    """
    outcome = _judge_pooled_runs(pool, rule, case, (pool.own_usage,))
    differs = isinstance(outcome, Unknown) and outcome.code == DIFFERS_FROM_FAMILY
    if differs and pool.newest_pool:
        return _judge_pooled_runs(pool.newest_pool, rule, case, pool.newest_pool.usage_by_run)
    return outcome


def _judge_pooled_runs(
    pool: PooledRuns, rule: Rule, case: FamilyCase, usages: tuple[Measurements, ...]
) -> Outcome:
    """Returns the outcome of the pool, or Unknown if one of `usages` alone gives another answer."""
    pooled = replace(case, active_usage=pool.usage, whole_run=pool.usage, pool=pool, is_pooled=True)
    if gate := _metrics_gate(rule, pool.usage):
        if not (pool.names and isinstance(gate, Unknown) and gate.code == _TOO_SHORT):
            return gate
        runs_text = f"{len(pool.names)} earlier run{'s' if pool.names[1:] else ''} of its family"
        minutes_text = f"{pool.usage.minutes:.0f} active minutes, with {runs_text}"
        return Unknown(_TOO_SHORT, f"{minutes_text}; the rule needs {rule.min_active_minutes:.0f}")
    outcome = rule.check(pooled)
    single = replace(pooled, overrides=_without_minute_thresholds(rule, case))
    outcomes = (
        rule.check(
            replace(
                single, active_usage=usage, whole_run=usage if rule.uses_whole_run else pool.usage
            )
        )
        for usage in usages
    )
    is_judged = isinstance(outcome, Detection | Clear)
    if is_judged and any(
        isinstance(single_outcome, Clear) != isinstance(outcome, Clear)
        for single_outcome in outcomes
    ):
        minutes_text = f"{pool.own_usage.minutes:.0f} active minutes"
        return Unknown(
            DIFFERS_FROM_FAMILY, f"its {minutes_text} differ from those of its family's last runs"
        )
    if isinstance(outcome, Detection):
        pool_evidence = {
            "pooled_runs": pool.runs,
            "own_active_minutes": round(pool.own_usage.minutes),
        }
        outcome = replace(outcome, evidence={**outcome.evidence, **pool_evidence})
    return outcome


def _without_minute_thresholds(rule: Rule, case: FamilyCase) -> dict[str, float]:
    """Returns the overrides with 0 for thresholds in minutes: the pool has enough minutes."""
    no_minutes = {
        threshold.key: 0.0 for threshold in rule.thresholds if threshold.unit == "minutes"
    }
    return {**case.overrides, **no_minutes}


def _metrics_gate(rule: Rule, usage: Measurements) -> Outcome | None:
    if not rule.required_metrics:
        return None
    for metric in rule.required_metrics:
        if missing := usage.missing.get(metric):
            if missing.code == "no_gpu":
                return NotApplicable(missing.reason)
            return Unknown(missing.code, f"{metric.value}: {missing.reason}")
    if (usage.period_s or 0) > rule.max_period_s:
        needed_text = f"the rule needs at least one every {rule.max_period_s} s"
        reason = f"one point every {usage.period_s} s, {needed_text}"
        return Unknown("period_too_coarse", reason)
    if usage.minutes < rule.min_active_minutes:
        active_text = "" if rule.uses_whole_run else "active "
        needed_text = f"the rule needs {rule.min_active_minutes:.0f}"
        reason = f"{usage.minutes:.0f} {active_text}minutes, {needed_text}"
        return Unknown("too_short", reason)
    if usage.points < MIN_POINTS:
        reason = f"{usage.points} points for each host, the rule needs {MIN_POINTS}"
        return Unknown("too_few_points", reason)
    gaps = (usage.find_gap(metric, rule.min_coverage) for metric in rule.required_metrics)
    gap = next(
        (gap for gap in gaps if gap and not (rule.tolerates_gaps and gap.code == GAP_LONG_CODE)),
        None,
    )
    return unknown_from_missing(gap) if gap else None


def _history_gate(rule: Rule, case: FamilyCase) -> Outcome | None:
    if not rule.min_earlier_runs:
        return None
    if case.family_history is None:
        return HISTORY_UNREAD
    if len(case.family_history) < rule.min_earlier_runs:
        count = len(case.family_history)
        reason = f"{count} earlier runs, the rule needs {rule.min_earlier_runs}"
        return Unknown("too_few_runs", reason)
    return None
