from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Mode
from sageaudit.text.notice import Decision, counted_findings, decide, worst
from tests.fakes.documents import (
    TUNING_ARN,
    document,
    finding,
    job,
    not_judged_document,
    rollup_document,
    trial,
    type_finding,
    unauditable_document,
)

ABOVE, FLOOR = Decimal("7.50"), Decimal(5)
EXEMPT = {"by": "policy", "until": "2026-12-31", "reason": "benchmark"}


def decided(audit: AuditDocument, mode: Mode = "tell", family: Decimal = ABOVE) -> Decision:
    """The decision, with a floor of $5."""
    return decide(audit, mode=mode, family_avoidable_30d_usd=family, floor_usd=FLOOR)


def test_worth_a_message() -> None:
    """An audit with a finding that counts, in a family over the floor, is notified."""
    reason = "family's avoidable and lost cost over 30 days, $7.50, reaches the floor of $5.00"
    assert decided(document()) == Decision(notify=True, reason=reason)


@pytest.mark.parametrize(
    ("audit", "mode", "family", "reason"),
    [
        (document(), "observe", ABOVE, "observe mode"),
        (unauditable_document(), "tell", ABOVE, "unauditable"),
        (trial(1, "5.10", "1.70"), "tell", ABOVE, "child of a tuning job"),
        (document(findings=[]), "tell", ABOVE, "no finding worth a message"),
        (
            not_judged_document(),
            "tell",
            ABOVE,
            "no finding worth a message: it could not be judged",
        ),
        (
            document(),
            "tell",
            Decimal("1.2"),
            "family's avoidable and lost cost over 30 days, $1.20, is under the floor of $5.00",
        ),
    ],
)
def test_quiet(audit: AuditDocument, mode: Mode, family: Decimal, reason: str) -> None:
    """Whatever keeps an audit quiet is named."""
    assert decided(audit, mode, family) == Decision(notify=False, reason=reason)


def test_exactly_the_floor_is_enough() -> None:
    """The floor itself is enough."""
    assert decided(document(), family=FLOOR).notify


@pytest.mark.parametrize(
    "overrides",
    [
        {"in_chat": False},
        {"bucket": "possible"},
        {"bucket": "none"},
        {"severity": "info"},
        {"saving_usd": Decimal(0)},
        {"exempt": EXEMPT},
        {"superseded_by": "gpu-count"},
        {"subsumed_by": "failed-spend"},
        {"said_of": "train-vision-1"},
    ],
)
def test_findings_that_do_not_count(overrides: dict[str, Any]) -> None:
    """Guard-rails, trials, notes, exempted and covered findings alone are no news."""
    assert counted_findings(document(findings=[finding(**overrides)])) == ()


def test_children_of_other_parents_are_notified() -> None:
    """Only a tuning job speaks for its training jobs."""
    automl = job(parent=TUNING_ARN.replace("hyper-parameter-tuning-job", "automl-job"))
    assert decided(document(job=automl)).notify
    assert decided(document(job=job(kind="processing", parent=TUNING_ARN))).notify


def test_rollup_is_notified() -> None:
    """A tuning job speaks for its trials: its own findings are their sums."""
    audit = rollup_document()
    assert decided(audit).notify
    assert [one["saving_usd"] for one in counted_findings(audit)] == [Decimal("3.80")]


def test_biggest_saving_first() -> None:
    """The biggest saving leads; unknown dollars come last."""
    audit = document(
        findings=[
            finding(rule="c", saving_usd=None),
            finding(rule="a", saving_usd=Decimal(1)),
            type_finding(rule="b", saving_usd=Decimal(3)),
        ]
    )
    assert [one["rule"] for one in counted_findings(audit)] == ["b", "a", "c"]


def test_severity_is_the_worst() -> None:
    """A message is as severe as its worst finding, whichever leads."""
    assert worst(counted_findings(document())) == "high"
    assert worst(counted_findings(document(findings=[type_finding()]))) == "medium"
