"""Trials that were not necessary: counted once, after the children's own findings."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.audit.trials import (
    Trial,
    TrialSavings,
    allocate_trial_savings,
    trial_from_document,
)
from sageaudit.domain.bill.change import DropTrials
from sageaudit.domain.bill.counterfactual import Severities
from sageaudit.domain.bill.finding import (
    Bucket,
    Confidence,
    Detection,
    Exemption,
    RuleInfo,
    Severity,
)
from tests.fakes.documents import document
from tests.fakes.families import trial


def trial_detection(bucket: Bucket, *trials: str) -> Detection:
    """Returns a detection that names trials."""
    return Detection(Confidence.HEURISTIC, bucket, "so", {}, change=DropTrials(frozenset(trials)))


def allocate(
    *named_detections: tuple[str, Detection],
    trials: tuple[Trial, ...],
    exempt: Mapping[str, Exemption] | None = None,
) -> TrialSavings:
    """Returns the findings with their dollars, by rule name."""
    detections = [
        (RuleInfo(f"SA90{n}", name), detection)
        for n, (name, detection) in enumerate(named_detections)
    ]
    return allocate_trial_savings(detections, trials, Severities(), exempt or {})


def test_a_finding_takes_what_the_childrens_findings_left() -> None:
    """Two trials of $1, one of which already has $0.40 avoidable: $1.60 of $2 remain."""
    trials = (trial(1, "0.9"), trial(2, "0.9", counted_usd=Decimal("0.40")))
    [result] = allocate(
        ("a", trial_detection(Bucket.AVOIDABLE, "trial-1", "trial-2")), trials=trials
    ).findings
    assert (result.alone_usd, result.saving_usd) == (Decimal(2), Decimal("1.60"))
    assert result.severity is Severity.LOW


def test_a_trial_is_claimed_once() -> None:
    """Lost findings come first, so the second finding that names the trial gets nothing of it."""
    late, failed = (
        trial_detection(Bucket.AVOIDABLE, "trial-1", "trial-2"),
        trial_detection(Bucket.LOST, "trial-2"),
    )
    trials = (trial(1, "0.9"), trial(2, None))
    savings = allocate(("late", late), ("failed", failed), trials=trials)
    shares = {finding.rule.name: finding.saving_usd for finding in savings.findings}
    assert shares == {"failed": Decimal(1), "late": Decimal(1)}
    assert savings.usd(Bucket.LOST) + savings.usd(Bucket.AVOIDABLE) == Decimal(2)


HELD = Exemption("ana", date(2027, 1, 31), "release")
ADVICE = Detection(Confidence.HEURISTIC, Bucket.NONE, "so", {})


def assert_share(
    *,
    one: Detection,
    trials: tuple[Trial, ...],
    exempt: bool,
    alone_usd: str | None,
    saving_usd: str | None,
) -> None:
    """The share is the rest of the trials' bills, or unknown."""
    held = {"a": HELD} if exempt else {}
    [made] = allocate(("a", one), trials=trials, exempt=held).findings
    known = [None if usd is None else Decimal(usd) for usd in (alone_usd, saving_usd)]
    assert [made.alone_usd, made.saving_usd] == known
    assert made.exempt == held.get("a")
    assert (made.severity is Severity.INFO) is (exempt or one is ADVICE)


def test_possible_savings_of_the_child_itself_are_subtracted() -> None:
    """$1 less $0.30 that is possible on the child itself."""
    assert_share(
        one=trial_detection(Bucket.POSSIBLE, "trial-1"),
        trials=(trial(1, "0.9", possible_usd=Decimal("0.30")),),
        exempt=False,
        alone_usd="1",
        saving_usd="0.70",
    )


def test_an_unpriced_trial_makes_the_figure_unknown() -> None:
    assert_share(
        one=trial_detection(Bucket.AVOIDABLE, "trial-1", "trial-2"),
        trials=(trial(1, "0.9"), trial(2, "0.9", total_usd=None)),
        exempt=False,
        alone_usd=None,
        saving_usd=None,
    )


def test_an_exempt_finding_stays_visible_with_what_it_would_be_alone() -> None:
    assert_share(
        one=trial_detection(Bucket.LOST, "trial-1"),
        trials=(trial(1, None),),
        exempt=True,
        alone_usd="1",
        saving_usd="0",
    )


def test_a_recommendation_on_the_strategy_has_no_dollars() -> None:
    assert_share(
        one=ADVICE,
        trials=(trial(1, "0.9"),),
        exempt=False,
        alone_usd=None,
        saving_usd=None,
    )


@pytest.mark.parametrize(
    ("changes", "counted_usd"),
    [
        ({"avoidable_usd": Decimal("0.5"), "lost_usd": Decimal(2)}, "2.5"),
        ({"avoidable_usd": None, "lost_usd": Decimal(2)}, None),
        ({"avoidable_usd": Decimal("0.5"), "lost_usd": None}, None),
        ({"avoidable_usd": None, "lost_usd": None}, None),
        # nothing of a trial that was not judged was found avoidable: the rest may be taken
        ({"judged": "no", "avoidable_usd": None, "lost_usd": Decimal(2)}, "2"),
    ],
)
def test_a_trials_claims_are_known_when_both_sums_are(
    changes: dict[str, Any], counted_usd: str | None
) -> None:
    """If one of both sums is unknown, it is unknown what the trial's findings took."""
    claimed = trial_from_document(document(**changes), {}, None).counted_usd
    assert claimed == (None if counted_usd is None else Decimal(counted_usd))


CENTS = st.integers(0, 10_000).map(lambda cents: Decimal(cents) / 100)


@given(
    st.lists(st.tuples(CENTS, CENTS, CENTS), min_size=1, max_size=8),
    st.lists(
        st.tuples(
            st.sampled_from([Bucket.LOST, Bucket.AVOIDABLE, Bucket.POSSIBLE]),
            st.sets(st.integers(0, 7)),
        ),
        max_size=4,
    ),
)
def test_shares_never_exceed_what_is_left_of_the_bills(
    bills: list[tuple[Decimal, Decimal, Decimal]], named: list[tuple[Bucket, set[int]]]
) -> None:
    """For any findings, counted shares and claims together are at most the bills."""
    trials = tuple(
        trial(
            n, None, total_usd=sum(parts, Decimal(0)), counted_usd=parts[0], possible_usd=parts[1]
        )
        for n, parts in enumerate(bills)
    )
    founds = [
        (f"rule-{n}", trial_detection(bucket, *(f"trial-{t}" for t in which if t < len(bills))))
        for n, (bucket, which) in enumerate(named)
    ]
    savings = allocate(*founds, trials=trials)
    left = sum((parts[1] + parts[2] for parts in bills), Decimal(0))
    counted = savings.usd(Bucket.LOST) + savings.usd(Bucket.AVOIDABLE)
    assert counted <= left
    assert savings.usd(Bucket.POSSIBLE) <= sum((parts[2] for parts in bills), Decimal(0))
