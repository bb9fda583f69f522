"""Running the catalogue over one job: the gates that hold for all rules, then each rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sageaudit.domain.finding import NotApplicable, Outcome, RuleName, Unknown
from sageaudit.domain.measurements import Measurements, Metric
from sageaudit.rules.card import JobCase, Rule

RULE_FAILED = "rule_failed"
"""A mistake of this project, counted as a metric: the job is not to blame."""


def judge(
    case: JobCase,
    rules: Iterable[Rule],
    *,
    off: frozenset[str] = frozenset(),
    overrides: Mapping[str, Mapping[str, float]] | None = None,
) -> list[tuple[RuleName, Outcome]]:
    """One outcome for each rule. `off` and `overrides` are the policy's, by rule name."""
    active = replace(case, seen=case.seen.active())
    return [
        (
            rule.name,
            _judge_one(
                rule,
                replace(active, overrides=(overrides or {}).get(rule.name.name, {})),
                rule.name.name in off,
            ),
        )
        for rule in rules
    ]


def _judge_one(rule: Rule, case: JobCase, off: bool) -> Outcome:
    if off:
        return NotApplicable("switched off by the policy")
    if not case.job.finished:
        return Unknown("job_not_finished", f"the job has not ended (status {case.job.status})")
    if case.job.kind not in rule.kinds:
        return NotApplicable(f"not for {case.job.kind.value} jobs")
    try:
        return _answer(rule, case)
    except Exception as error:  # noqa: BLE001 - one rule's defect must not silence the others
        return Unknown(RULE_FAILED, f"the rule failed with {type(error).__name__}")


def _answer(rule: Rule, case: JobCase) -> Outcome:
    excuse = rule.excuse(case) if rule.excuse else None
    if excuse is not None:
        return NotApplicable(excuse)
    return _gate(rule, case.seen) or rule.check(case)


def _gate(rule: Rule, seen: Measurements) -> Outcome | None:
    """Missing metrics give Unknown: never a finding, never Clear."""
    for metric in rule.needs:
        if missing := seen.missing.get(metric):
            if missing.code == "no_gpu":
                return NotApplicable(missing.reason)
            return Unknown(missing.code, f"{metric.value}: {missing.reason}")
    if not rule.needs:
        return None
    if (seen.period_s or 0) > rule.coarsest_period_s:
        reason = f"points every {seen.period_s} s, at most {rule.coarsest_period_s} s needed"
        return Unknown("period_too_coarse", reason)
    if seen.minutes < rule.min_active_minutes:
        reason = f"{seen.minutes:.0f} active minutes, {rule.min_active_minutes:.0f} needed"
        return Unknown("too_short", reason)
    return _coverage_gate(rule, seen, rule.needs)


def _coverage_gate(rule: Rule, seen: Measurements, needs: tuple[Metric, ...]) -> Outcome | None:
    for metric in needs:
        share = seen.share(metric) or 0.0
        if share < rule.min_coverage:
            return Unknown(
                "coverage_low",
                f"{metric.value}: {share:.0%} of the points, {rule.min_coverage:.0%} needed",
            )
    return None
