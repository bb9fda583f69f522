"""Values at both sides of each threshold of the rule about messages."""

from decimal import Decimal

import pytest

from sageaudit.domain.alert.alert import AlertCase, AlertKind
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.alert.rule import NO_FINDING_REASON, audit_suppression_reason, decide
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from tests.fakes.documents import bill, document
from tests.fakes.messages import NINE, alert
from tests.fakes.story_lines import YEAR_BACK, Story

WASTED = AlertFigures(Severity.HIGH, Decimal(412), Decimal(0))


@pytest.mark.parametrize(
    ("cost_usd", "floor_usd", "may_be_spike"),
    [
        ("20", "20", True),
        ("19.99", "20", False),
        ("0.01", "0", True),  # without a floor every run that cost something
        ("0.009", "0", False),
    ],
)
def test_a_run_below_the_floor_of_a_cost_spike_needs_no_family(
    cost_usd: str, floor_usd: str, may_be_spike: bool
) -> None:
    """The run has no recommendation, so only its cost could be a reason for a message."""
    audit = document(findings=[], bill=bill(total_usd=Decimal(cost_usd)))
    policy = Policy(cost_spike_min_usd=Decimal(floor_usd))
    reason = audit_suppression_reason(1, MessageAudit.parse(audit), policy)
    assert reason == (None if may_be_spike else NO_FINDING_REASON)


@pytest.mark.parametrize(("accepted_usd", "is_corrected"), [("411.00", False), ("410.99", True)])
def test_a_correction_is_due_if_an_exemption_leaves_a_dollar_unexplained(
    accepted_usd: str, is_corrected: bool
) -> None:
    """The run wasted $412. An exemption explains all of it except for a dollar, or for a cent
    more.
    """
    figures = AlertFigures(
        Severity.INFO, Decimal(0), Decimal(0), accepted_usd=Decimal(accepted_usd)
    )
    case = AlertCase(
        family="f",
        figures=figures,
        recommendation_ids=(),
        recommendations={},
        spike=None,
        alerts=(),
        policy=Policy(),
        now=NINE,
        history_since=NINE - YEAR_BACK,
    )
    decision = decide(case, alert(WASTED))
    assert (decision.kind is AlertKind.CORRECTION) is is_corrected


@pytest.mark.parametrize(
    ("runs", "sent"),
    [
        # ten times the $158 of the last message, and a cent less
        ("03-01..03-05 cost $24; 03-06 cost $182; 03-07 cost $1604", "cost-spike 03-07"),
        ("03-01..03-05 cost $24; 03-06 cost $182; 03-07 cost $1603.99", "cost-spike 03-06"),
        # 24 hours after the pipeline's last message, and 23
        ("03-01 $12 ~a; 03-02 $12 ~b", "follow-up: other advice 03-02"),
        ("02-28 $12 ~a late 03-01; 03-02 $12 ~b", "first 03-01"),
    ],
)
def test_the_last_message_of_a_story_at_a_threshold(runs: str, sent: str) -> None:
    """The two rows of a pair differ just enough for another message."""
    policy = Policy(floor_usd=Decimal(10), cost_spike_min_usd=Decimal(20))
    assert Story(runs, policy).sent[-1] == sent
