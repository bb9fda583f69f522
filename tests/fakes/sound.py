"""Invariants of every rule's outcome, for any job."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal

from sageaudit.domain.audit.trials import allocate_trial_savings
from sageaudit.domain.bill.counterfactual import Severities, allocate_savings
from sageaudit.domain.bill.finding import Bucket, Confidence, Detection, RuleInfo, Unknown
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.text import fix_code
from sageaudit.rules import catalogue
from sageaudit.rules.card import AccountCase, FamilyCase, RollUpCase
from sageaudit.rules.judge import RULE_FAILED, Answers, judge
from tests.fakes import request

EVERY_RULE_ON = Policy(enabled_rules=frozenset(rule.info.name for rule in catalogue.load()))
_NO_WORD = re.compile(r"\b(?:None|nan|inf|NaN|Infinity|Decimal)\b|\{\}|\[\]")
_EXACT = Decimal("1e-15")
"""Decimal division has 28 digits, so equal sums may differ in the last ones."""
_CONFIDENCE = {
    Bucket.LOST: {Confidence.MEASURED, Confidence.DERIVED},
    Bucket.AVOIDABLE: {Confidence.MEASURED, Confidence.DERIVED},
    Bucket.POSSIBLE: {Confidence.HEURISTIC},
    Bucket.NONE: set(Confidence),
}


def check_answers(case: FamilyCase) -> Answers:
    """Runs all rules on a job and checks their outcomes and savings; returns the outcomes."""
    answers = judge(case, catalogue.load())
    founds = _checked(answers, case.job.kind)
    savings = allocate_savings(case.job, case.bill, founds, case.market, Severities(), {})
    total = case.bill.total_usd
    if total is not None:
        parts = (savings.avoidable_usd, savings.lost_usd)
        assert all(part is not None and part >= 0 for part in parts)
        assert sum(part or 0 for part in parts) <= total + _EXACT
        most = savings.lost_up_to_usd
        assert most is not None
        assert (savings.lost_usd or 0) <= most <= total - (savings.avoidable_usd or 0) + _EXACT
        assert abs(sum(part.usd for part in savings.waterfall) - total) <= _EXACT
    return answers


def check_tuning_answers(case: RollUpCase) -> Answers:
    """Checks a tuning job likewise: its savings are at most what its trials cost."""
    answers = judge(case, catalogue.load())
    founds = _checked(answers, JobKind.TUNING)
    savings = allocate_trial_savings(founds, case.trials, Severities(), {})
    spent = sum((trial.total_usd or Decimal(0) for trial in case.trials), Decimal(0))
    assert savings.usd(Bucket.LOST) + savings.usd(Bucket.AVOIDABLE) <= spent
    return answers


def check_account_answers(case: AccountCase) -> Answers:
    """Checks an account likewise."""
    answers = judge(case, catalogue.load())
    _checked(answers, None)
    return answers


def _checked(answers: Answers, kind: JobKind | None) -> Sequence[tuple[RuleInfo, Detection]]:
    failed = {
        name.name: outcome.reason
        for name, outcome in answers
        if isinstance(outcome, Unknown) and outcome.code == RULE_FAILED
    }
    assert not failed, failed
    for name, outcome in answers:
        for text in _texts(outcome):
            assert text.strip(), (name, outcome)
            assert not _NO_WORD.search(text), (name, text)
    founds = [(name, detection) for name, detection in answers if isinstance(detection, Detection)]
    for name, detection in founds:
        _check(name.name, detection, kind)
    return founds


def _texts(outcome: object) -> list[str]:
    """Returns the texts of an outcome that people read."""
    words = [getattr(outcome, key, None) for key in ("summary", "caution", "reason")]
    return [text for text in words if text is not None]


def _check(name: str, detection: Detection, kind: JobKind | None) -> None:
    assert detection.confidence in _CONFIDENCE[detection.bucket], name
    if detection.change is None:
        assert detection.caution, f"{name}: no dollars and no reason"
        assert detection.best is None, name
    else:
        assert detection.bucket is not Bucket.NONE, f"{name}: dollars in no sum"
    for key, value in detection.evidence.items():
        assert value is None or isinstance(value, str | int | float | Decimal | list), (name, key)
        if isinstance(value, float | Decimal):
            assert math.isfinite(value), (name, key)
    for parameter in (
        *detection.fix,
        *(parameter for way in detection.alternatives for parameter in way),
    ):
        assert kind is None or request.has_parameter(kind, parameter.path), (name, parameter)
        assert kind is None or fix_code.mapped_parameter(kind, parameter.path), (name, parameter)
        assert parameter.old != parameter.new, (name, parameter)
