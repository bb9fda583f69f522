"""Why a message is sent, as text on every channel and within its limits."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.advice.comparison import CostSpike
from sageaudit.domain.advice.totals import Month
from sageaudit.domain.alert.alert import (
    FIRST_ALERT,
    Alert,
    AlertDecision,
    AlertKind,
    FollowUpReason,
)
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text import plain, reason, slack
from sageaudit.output.text.reason import change_clauses, last_alert_lines
from sageaudit.structs import replace
from tests.fakes.documents import document, finding
from tests.fakes.hostile import documents, dollars, whole_documents
from tests.fakes.messages import alert, document_card
from tests.fakes.sample_documents import not_judged_document
from tests.output.text.test_slack import assert_within_limits

parse = MessageAudit.parse
LOW = alert(AlertFigures(Severity.LOW, Decimal(6), Decimal(0)))
HIGH = alert(AlertFigures(Severity.HIGH, Decimal(412), Decimal(0)))
UNKNOWN = AlertFigures(Severity.HIGH, None, None)


SEVERE, TEN_TIMES = "this run is more severe", "it is at least 10 times as much"


def later_decision(
    headline: FollowUpReason | None,
    why: str,
    after: Alert = LOW,
    *,
    is_single_occurrence: bool = False,
) -> AlertDecision:
    """Returns the decision to send a later message: worse, or a follow-up for `news`."""
    last = replace(
        after,
        amount_kind=AmountKind.COUNTED,
        amount=Decimal(6),
        is_single_occurrence=is_single_occurrence,
    )
    kind = AlertKind.FOLLOW_UP if headline else AlertKind.WORSE
    return AlertDecision(
        kind, headline, why, last, month=Month(AmountKind.COUNTED, Decimal(60), Decimal(60), 12)
    )


@pytest.mark.parametrize(
    ("decision", "headline", "why"),
    [
        (
            later_decision(None, TEN_TIMES),
            "now wastes about $60 a month, up from $6.00 (12 runs)",
            TEN_TIMES,
        ),
        (
            later_decision(FollowUpReason.GREW, "it", is_single_occurrence=True),
            "now wastes about $60 a month (12 runs)",
            "it",
        ),
        (
            later_decision(FollowUpReason.GREW, "it grew"),
            "now wastes about $60 a month, up from $6.00 (12 runs)",
            "it grew",
        ),
        (
            later_decision(FollowUpReason.OTHER_ADVICE, "another"),
            "wastes about $60 a month (12 runs)",
            "another",
        ),
        (
            later_decision(FollowUpReason.CAME_BACK, "it came back"),
            "again wastes about $60 a month (12 runs)",
            "it came back",
        ),
    ],
)
def test_a_later_message_has_its_reason_and_the_last_date(
    decision: AlertDecision, headline: str, why: str
) -> None:
    """The headline and a line have them; a first message does not."""
    assert (
        reason.message_headline("train-bert", parse(document()), decision)
        == f"train-bert {headline}"
    )
    lines = [("New", f"{why} (last message on 2026-05-20)")]
    assert [*last_alert_lines(parse(document()), decision)] == lines
    assert not [*last_alert_lines(parse(document()), FIRST_ALERT)]


def test_a_correction_says_what_it_corrects_and_why() -> None:
    """The changes are left out if the earlier version cannot be read."""
    previous = document(
        findings=[*document()["findings"], finding(rule="gpu-idle", saving_usd=Decimal(410))]
    )
    assert [
        *last_alert_lines(
            parse(document()),
            AlertDecision(
                AlertKind.CORRECTION, previous_alert=HIGH, corrected_audit=parse(previous)
            ),
        )
    ] == [
        ("", "The message of 2026-05-20 said $412.00."),
        ("What changed", "gpu-idle ($410.00) is no longer a finding."),
    ]
    nothing = document(findings=[], avoidable_usd=Decimal(0), possible_usd=Decimal(0))
    assert [
        *last_alert_lines(parse(nothing), AlertDecision(AlertKind.CORRECTION, previous_alert=HIGH))
    ] == [("", "The message of 2026-05-20 said $412.00. Do not act on that message.")]


@pytest.mark.parametrize(
    ("current", "previous", "expected"),
    [
        (
            document(avoidable_usd=None, lost_usd=None, lost_up_to_usd=None),
            HIGH,
            "an unknown amount, although $412.00 was reported",
        ),
        (
            document(lost_usd=Decimal(3), lost_up_to_usd=Decimal(3)),
            HIGH,
            "$5.04, not $412.00 as reported",
        ),
        (
            document(),
            alert(AlertFigures(Severity.LOW, Decimal("2.04"), Decimal(0))),
            "$2.04 (severity high), not $2.04 (low) as reported",
        ),
        (not_judged_document(), HIGH, "an unknown amount, although $412.00 was reported"),
    ],
)
def test_a_corrections_headline_has_the_new_amount_first(
    current: AuditDocument, previous: Alert, expected: str
) -> None:
    """The reported amount follows; severities are shown only if the amounts are equal."""
    decision = AlertDecision(AlertKind.CORRECTION, previous_alert=previous)
    assert (
        reason.message_headline("bert", parse(current), decision)
        == f"Correction: bert wasted {expected}"
    )


@pytest.mark.parametrize(
    ("previous", "current", "expected"),
    [
        (document(), document(), ()),
        (
            document(bill={"total_usd": Decimal(9)}),
            document(),
            ("the run cost $4.55, not $9.00",),
        ),
        (
            document(findings=[finding()]),
            document(findings=[finding("gpu-underused")]),
            (
                "gpu-underused ($1.53) is a new finding",
                "download-dominates ($0.51) is no longer a finding",
            ),
        ),
        (
            document(findings=[finding()]),
            document(findings=[finding(saving_usd=None)]),
            ("download-dominates is unknown, not $0.51",),
        ),
        (
            document(),
            document(audit={"ruleset": "2", "policy": "2"}),
            ("the rules changed", "the policy changed"),
        ),
    ],
)
def test_changes_are_those_that_two_versions_show(
    previous: AuditDocument, current: AuditDocument, expected: tuple[str, ...]
) -> None:
    """Causes come before amounts."""
    assert change_clauses(parse(previous), parse(current)) == expected


def figures() -> st.SearchStrategy[AlertFigures]:
    """Generates any figures."""
    usd = st.none() | dollars()
    severities = st.sampled_from(Severity)
    return st.builds(AlertFigures, severities, usd, usd, dollars())


def decisions() -> st.SearchStrategy[AlertDecision]:
    """Generates any decision to send a later message."""
    worths = st.sampled_from([None, *AmountKind])
    alerts = st.builds(alert, figures(), amount_kind=worths, amount=dollars())
    whys = st.sampled_from(
        [
            SEVERE,
            TEN_TIMES,
            "it is back after a fix, found for the third time; it has cost $9 so far",
        ]
    )
    months = st.builds(
        Month, st.sampled_from(AmountKind), dollars(), dollars(), st.integers(1, 10**6)
    )
    later_alerts = st.builds(
        AlertDecision,
        st.sampled_from(AlertKind),
        st.none() | st.sampled_from(FollowUpReason),
        whys,
        alerts,
        st.sampled_from(AmountKind),
        month=months,
    )
    spikes = st.builds(CostSpike, dollars(), dollars())
    spike_alerts = st.builds(AlertDecision, st.just(AlertKind.COST_SPIKE), spike=spikes)
    previous = st.none() | documents().map(parse)
    kind = st.just(AlertKind.CORRECTION)
    corrections = st.builds(AlertDecision, kind, previous_alert=alerts, corrected_audit=previous)
    return later_alerts | spike_alerts | corrections


@whole_documents
@given(documents(), decisions())
def test_any_message_keeps_the_limits_of_each_channel(
    audit: AuditDocument, decision: AlertDecision
) -> None:
    """This holds for repeats too; the subject has less than 100 printable ASCII characters."""
    mail: dict[str, Any] = dict(plain.make_payload(document_card(audit, decision)))
    for payload in (mail, plain.mark_as_repeat(mail)):
        assert 0 < len(payload["subject"]) < 100
        assert payload["subject"].isascii()
        assert payload["subject"].isprintable()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", mail["message"])
    post = slack.make_payload(document_card(audit, decision))
    assert_within_limits(post)
    assert_within_limits(slack.mark_as_repeat(post))
