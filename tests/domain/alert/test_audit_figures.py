"""Which parts of an audit a message may be about, and its figures."""

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.alert.audit_figures import (
    AlertFigures,
    MessageAudit,
    counted_findings,
    permanent_suppression_reason,
    read_recommendations,
    worst_severity,
)
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import BILLED_KINDS, JobKind
from tests.fakes.documents import document, finding, job
from tests.fakes.sample_documents import (
    EXEMPT,
    TUNING_ARN,
    idle_document,
    not_judged_document,
    possibly_lost_document,
    rollup_document,
    trial,
    unauditable_document,
)

parse = MessageAudit.parse


@pytest.mark.parametrize(
    ("audit", "reason"),
    [
        (document(), None),
        (not_judged_document(), None),
        (unauditable_document(), "unauditable"),
        (trial(1, "5.10", "1.70"), "child of a tuning job"),
    ],
)
def test_no_message_is_ever_about_a_trial_or_a_job_that_could_not_be_audited(
    audit: AuditDocument, reason: str | None
) -> None:
    """The figures of the audit do not matter."""
    assert permanent_suppression_reason(parse(audit)) == reason


def test_figures_are_as_they_are_shown() -> None:
    """Figures are rounded to the cent. A job with idle hours only has no dollars."""
    assert parse(document()).figures == AlertFigures(
        Severity.HIGH, Decimal("2.04"), Decimal("0.00")
    )
    perhaps = parse(possibly_lost_document()).figures
    assert (perhaps.usd, perhaps.possible_loss_usd, perhaps.at_stake_usd) == (
        0,
        *[Decimal("4.55")] * 2,
    )
    idle = parse(idle_document()).figures
    assert (idle.has_dollars, idle.usd) == (False, 0)
    assert read_recommendations(idle_document()) == ()


def test_unknown_dollars_are_not_zero() -> None:
    """If one of the two amounts is known, it is the figure; if neither is, there is no figure."""
    assert parse(not_judged_document()).figures.usd == 0
    neither = document(avoidable_usd=None, lost_usd=None, lost_up_to_usd=None)
    assert parse(neither).figures.usd is None
    assert parse(neither).figures.is_standing


def test_what_is_accepted_is_what_exempt_findings_would_save() -> None:
    """Possible savings are in no figure."""
    exempt = finding(exempt=EXEMPT, saving_usd=Decimal(0), saving_alone_usd=Decimal("1.50"))
    trial_of_spot = {**exempt, "bucket": "possible"}
    accepted = parse(document(findings=[exempt, trial_of_spot, finding()])).figures.accepted_usd
    assert accepted == Decimal("1.50")


@pytest.mark.parametrize(
    "overrides",
    [
        {"sent_to_channels": False},
        {"bucket": "possible"},
        {"bucket": "none"},
        {"severity": "info"},
        {"saving_usd": Decimal(0)},
        {"exempt": EXEMPT},
        {"superseded_by": "gpu-count"},
        {"subsumed_by": "failed-spend"},
        {"reported_for_run": "train-vision-1"},
    ],
)
def test_findings_that_do_not_count(overrides: dict[str, Any]) -> None:
    """Guard-rails, trials, notes, and exempt or covered findings do not count on their own."""
    assert counted_findings([finding(**overrides)]) == ()


def test_children_of_other_parents_have_messages() -> None:
    """Labeling jobs and monitoring schedules are not audited, so their jobs get messages of their
    own.
    """
    for word in ("labeling-job", "monitoring-schedule", "training-job"):
        child = job(parent=TUNING_ARN.replace("hyper-parameter-tuning-job", word))
        assert permanent_suppression_reason(parse(document(job=child))) is None


@pytest.mark.parametrize("kind", [kind for kind in JobKind if kind.spec.rollup])
def test_the_jobs_of_a_roll_up_have_no_message(kind: JobKind) -> None:
    """The message of the roll-up has their dollars, whatever kind of job it launched."""
    parent = TUNING_ARN.replace("hyper-parameter-tuning-job", kind.spec.arn_word)
    for launched in BILLED_KINDS:
        child = document(job=job(kind=launched.value, parent=parent))
        assert (
            permanent_suppression_reason(parse(child)) == f"child of {kind.spec.label_with_article}"
        )


def test_a_rollup_has_a_message() -> None:
    """The findings of a tuning job sum those of its trials."""
    audit = rollup_document()
    assert permanent_suppression_reason(parse(audit)) is None
    assert [counted_finding["saving_usd"] for counted_finding in parse(audit).counted_findings] == [
        Decimal("3.80")
    ]


def test_the_largest_saving_comes_first() -> None:
    """Unknown dollars come last."""
    audit = document(
        findings=[
            finding(rule="c", saving_usd=None),
            finding(rule="a", saving_usd=Decimal(1)),
            finding("b", saving_usd=Decimal(3)),
        ]
    )
    assert [counted_finding["rule"] for counted_finding in parse(audit).counted_findings] == [
        "b",
        "a",
        "c",
    ]


def test_the_severity_is_that_of_the_most_severe_finding() -> None:
    """A message is as severe as its most severe finding, whichever comes first."""
    assert worst_severity(parse(document()).counted_findings) == "high"
    assert worst_severity(counted_findings([finding("gpu-underused")])) == "medium"
