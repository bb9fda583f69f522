"""Applies rules to one case: first the checks that are the same for every rule, then the rule.

Which rules are off, and their thresholds, come from the policy of the case.
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
"""A defect of a rule, which CloudWatch counts; the job is not to blame."""
UNKNOWN_UNTIL_RUN = "not_known_yet"
"""A parameter of a request gets its value only later: from a pipeline's run, or when applied."""
_SCOPES: Mapping[type[Case], AbstractSet[type[Case]]] = {
    FamilyCase: {Case, JobCase, FamilyCase},
    RollUpCase: {Case, RollUpCase},
    AccountCase: {AccountCase},
}
"""By case: the scopes of the rules that judge it."""
_REQUEST_SCOPES = {Case, RequestCase, JobCase, FamilyCase}
_REQUEST_ONLY_SCOPES = {Case, RequestCase}
"""Scopes of rules that ask a request itself, and not the job that it would be."""
_CASES_WITH_JOB = (JobCase, RollUpCase, RequestCase)
_TOO_SHORT = "too_short"
BUSY_GPU_PERCENT = 50
"""Jobstats' target: from here on the GPU, not the CPU, decides what the job costs."""

Answers = list[tuple[RuleInfo, Outcome]]


def judge(case: FamilyCase | RollUpCase | AccountCase, rules: Iterable[Rule]) -> Answers:
    """One outcome for each rule of the case's scope; rules of one job judge a family's run too."""
    scopes = _SCOPES[type(case)]
    return [(rule.info, _judge_rule(rule, case)) for rule in rules if rule.scope in scopes]


def judge_request(
    case: RequestCase, planned_case: FamilyCase | RollUpCase, rules: Iterable[Rule]
) -> Answers:
    """One outcome for each rule that can judge a request before it runs.

    `planned` is the request as the case of a job that ran, for rules that judge both.
    """
    of_search = isinstance(planned_case, RollUpCase)
    scopes = {Case, RequestCase, RollUpCase} if of_search else _REQUEST_SCOPES
    return [
        (rule.info, _judge_request_rule(rule, case, planned_case))
        for rule in rules
        if rule.request_severity is not None and rule.scope in scopes
    ]


def _judge_request_rule(rule: Rule, case: RequestCase, planned: FamilyCase | RollUpCase) -> Outcome:
    if case.request.kind in rule.kinds and (
        why := case.request.unknown_reason(rule.required_parameters)
    ):
        return Unknown(UNKNOWN_UNTIL_RUN, why)
    return _judge_rule(rule, case if rule.scope in _REQUEST_ONLY_SCOPES else planned)


def _judge_rule(rule: Rule, case: Case) -> Outcome:
    name, policy = rule.info.name, case.policy
    if name in policy.disabled_rules:
        return NotApplicable("switched off by the policy")
    if not rule.on and name not in policy.enabled_rules:
        return NotApplicable("off by default: the policy can list it under rules.on")
    if limits := policy.thresholds.get(name):
        case = replace(case, overrides=limits)
    if refused := _kind_gate(rule, case):
        return refused
    try:
        for reason in rule.not_applicable:
            if (sentence := reason(case)) is not None:
                return NotApplicable(sentence)
        if not isinstance(case, FamilyCase):
            return rule.check(case)
        gate = _run_gates(rule, case)
        if case.pool is not None and _should_ask_pool(rule, case.pool, gate):
            return _judge_pool(rule, case, case.pool)
        return gate or rule.check(case)
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
    """Why the rule cannot be asked, as Unknown or NotApplicable; None when it can."""
    if rule.skips_busy_gpu and (busy := _busy_gpu_percent(case.active_usage)) is not None:
        return NotApplicable(f"the GPU is busy ({busy:.0f}% of its active time)")
    if rule.compares_hosts and len(case.job.groups) > 1:
        return unknown_from_missing(TYPES_MIXED) if case.whole_run.by_type else HOSTS_UNMAPPED
    usage = case.whole_run if rule.uses_whole_run else case.active_usage
    return _metrics_gate(rule, usage) or _history_gate(rule, case)


def _busy_gpu_percent(usage: Measurements) -> float | None:
    busy = usage.mean(Metric.GPU) if usage.series.get(Metric.GPU) else 0
    return busy if busy >= BUSY_GPU_PERCENT else None


def _should_ask_pool(rule: Rule, pool: PooledRuns, gate: Outcome | None) -> bool:
    """Whether the run is too short for the rule, and its family's last runs may be long enough.

    A rule that needs no metrics passes its gates, and still sizes types by what was recorded.
    """
    if not rule.can_pool_runs:
        return False
    if gate is None:
        return not rule.required_metrics and pool.has_enough_minutes
    return isinstance(gate, Unknown) and gate.code == _TOO_SHORT


def _judge_pool(rule: Rule, case: FamilyCase, pool: PooledRuns) -> Outcome:
    """The rule's answer on the minutes of the family's last runs, if the run's own say the same.

    So a run that was busy itself is never blamed for others, and an idle one not excused by them.
    Where the run is unlike the others, only the newest of them are asked, since the code may have
    changed after the older ones: each of these few must say the same then.
    """
    outcome = _judge_pooled_runs(pool, rule, case, (pool.own,))
    unlike = isinstance(outcome, Unknown) and outcome.code == DIFFERS_FROM_FAMILY
    if unlike and pool.newest:
        return _judge_pooled_runs(pool.newest, rule, case, pool.newest.usage_by_run)
    return outcome


def _judge_pooled_runs(
    pool: PooledRuns, rule: Rule, case: FamilyCase, alike: tuple[Measurements, ...]
) -> Outcome:
    """The rule's answer on a pool, where it is the same for each of these runs by itself."""
    pooled = replace(case, active_usage=pool.usage, whole_run=pool.usage, pool=pool, is_pooled=True)
    if gate := _metrics_gate(rule, pool.usage):
        if not (pool.names and isinstance(gate, Unknown) and gate.code == _TOO_SHORT):
            return gate
        runs = f"{len(pool.names)} earlier run{'s' if pool.names[1:] else ''} of its family"
        minutes = f"{pool.usage.minutes:.0f} active minutes, with {runs}"
        return Unknown(_TOO_SHORT, f"{minutes}; the rule needs {rule.min_active_minutes:.0f}")
    outcome = rule.check(pooled)
    waived = replace(pooled, overrides=_without_minute_thresholds(rule, case))
    alone = (
        rule.check(
            replace(
                waived, active_usage=part, whole_run=part if rule.uses_whole_run else pool.usage
            )
        )
        for part in alike
    )
    judged = isinstance(outcome, Detection | Clear)
    if judged and any(isinstance(one, Clear) != isinstance(outcome, Clear) for one in alone):
        own = f"{pool.own.minutes:.0f} active minutes"
        return Unknown(DIFFERS_FROM_FAMILY, f"its {own} are unlike those of its family's last runs")
    if isinstance(outcome, Detection):
        of = {"pooled_runs": pool.runs, "own_active_minutes": round(pool.own.minutes)}
        outcome = replace(outcome, evidence={**outcome.evidence, **of})
    return outcome


def _without_minute_thresholds(rule: Rule, case: FamilyCase) -> dict[str, float]:
    """The case's thresholds without those in minutes: the pool has enough of them."""
    least = {limit.key: 0.0 for limit in rule.thresholds if limit.unit == "minutes"}
    return {**case.overrides, **least}


def _metrics_gate(rule: Rule, usage: Measurements) -> Outcome | None:
    if not rule.required_metrics:
        return None
    for metric in rule.required_metrics:
        if missing := usage.missing.get(metric):
            if missing.code == "no_gpu":
                return NotApplicable(missing.reason)
            return Unknown(missing.code, f"{metric.value}: {missing.reason}")
    if (usage.period_s or 0) > rule.max_period_s:
        needed = f"the rule needs one at least every {rule.max_period_s} s"
        reason = f"one point every {usage.period_s} s, {needed}"
        return Unknown("period_too_coarse", reason)
    if usage.minutes < rule.min_active_minutes:
        what = "" if rule.uses_whole_run else "active "
        needed = f"the rule needs {rule.min_active_minutes:.0f}"
        reason = f"{usage.minutes:.0f} {what}minutes, {needed}"
        return Unknown("too_short", reason)
    if usage.points < MIN_POINTS:
        reason = f"{usage.points} points of each host, the rule needs {MIN_POINTS}"
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
        have = len(case.family_history)
        reason = f"{have} earlier runs, the rule needs {rule.min_earlier_runs}"
        return Unknown("too_few_runs", reason)
    return None
