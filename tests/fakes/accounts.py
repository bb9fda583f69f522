"""Outcomes of account rules for given runs."""

from collections.abc import Mapping, Sequence

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Detection, Outcome
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules.card import AccountCase
from sageaudit.rules.judge import judge
from sageaudit.structs import replace
from tests.fakes.judging import rule_named


def account_outcome(
    rule: str,
    runs: Sequence[AuditSummary],
    *,
    days: int = 30,
    policy: Policy | None = None,
    limits: Mapping[str, float] | None = None,
) -> Outcome:
    """Returns the rule's outcome for the account; `limits` set the rule's thresholds."""
    set_by = replace(policy or Policy(), thresholds={rule: limits or {}})
    case = AccountCase(tuple(runs), days, policy=set_by)
    [(_, answer)] = judge(case, [rule_named(rule)])
    return answer


def account_detection(rule: str, runs: Sequence[AuditSummary], **more: object) -> Detection:
    """Returns the rule's detection; fails with the outcome if it is not one."""
    answer = account_outcome(rule, runs, **more)  # type: ignore[arg-type]
    assert isinstance(answer, Detection), answer
    return answer
