"""Trials that need not have run: counted once, after the children's own findings."""

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


def found(bucket: Bucket, *trials: str) -> Detection:
    """A finding that names trials."""
    return Detection(Confidence.HEURISTIC, bucket, "so", {}, change=DropTrials(frozenset(trials)))


def allocated(
    *founds: tuple[str, Detection],
    trials: tuple[Trial, ...],
    exempt: Mapping[str, Exemption] | None = None,
) -> TrialSavings:
    """The findings by rule name with their dollars."""
    named = [(RuleInfo(f"SA90{n}", name), one) for n, (name, one) in enumerate(founds)]
    return allocate_trial_savings(named, trials, Severities(), exempt or {})


def test_a_finding_takes_what_the_childrens_findings_left() -> None:
    """Two trials of $1, one of which already has $0.40 avoidable: $1.60 of $2."""
    trials = (trial(1, "0.9"), trial(2, "0.9", counted_usd=Decimal("0.40")))
    [one] = allocated(("a", found(Bucket.AVOIDABLE, "trial-1", "trial-2")), trials=trials).findings
    assert (one.alone_usd, one.saving_usd) == (Decimal(2), Decimal("1.60"))
    assert one.severity is Severity.LOW


def test_a_trial_is_taken_once() -> None:
    """Lost ones first: the second finding that names the trial gets nothing of it."""
    late, failed = found(Bucket.AVOIDABLE, "trial-1", "trial-2"), found(Bucket.LOST, "trial-2")
    trials = (trial(1, "0.9"), trial(2, None))
    savings = allocated(("late", late), ("failed", failed), trials=trials)
    shares = {one.rule.name: one.saving_usd for one in savings.findings}
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
    """A share is what is left of the trials' bills, or unknown."""
    held = {"a": HELD} if exempt else {}
    [made] = allocated(("a", one), trials=trials, exempt=held).findings
    known = [None if usd is None else Decimal(usd) for usd in (alone_usd, saving_usd)]
    assert [made.alone_usd, made.saving_usd] == known
    assert made.exempt == held.get("a")
    assert (made.severity is Severity.INFO) is (exempt or one is ADVICE)


def test_what_is_possible_on_the_child_itself_is_taken_off() -> None:
    """$1 less $0.30 possible on the child itself."""
    assert_share(
        one=found(Bucket.POSSIBLE, "trial-1"),
        trials=(trial(1, "0.9", possible_usd=Decimal("0.30")),),
        exempt=False,
        alone_usd="1",
        saving_usd="0.70",
    )


def test_an_unpriced_trial_makes_the_figure_unknown_never_the_sum_of_the_others() -> None:
    assert_share(
        one=found(Bucket.AVOIDABLE, "trial-1", "trial-2"),
        trials=(trial(1, "0.9"), trial(2, "0.9", total_usd=None)),
        exempt=False,
        alone_usd=None,
        saving_usd=None,
    )


def test_an_exempt_finding_stays_visible_with_what_it_would_be_alone() -> None:
    assert_share(
        one=found(Bucket.LOST, "trial-1"),
        trials=(trial(1, None),),
        exempt=True,
        alone_usd="1",
        saving_usd="0",
    )


def test_advice_on_the_strategy_alone() -> None:
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
    """An unknown sum beside a known one leaves what the trial's findings took unknown."""
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
    """Whatever the findings name: counted shares and claims together are at most the bills."""
    trials = tuple(
        trial(
            n, None, total_usd=sum(parts, Decimal(0)), counted_usd=parts[0], possible_usd=parts[1]
        )
        for n, parts in enumerate(bills)
    )
    founds = [
        (f"rule-{n}", found(bucket, *(f"trial-{t}" for t in which if t < len(bills))))
        for n, (bucket, which) in enumerate(named)
    ]
    savings = allocated(*founds, trials=trials)
    left = sum((parts[1] + parts[2] for parts in bills), Decimal(0))
    counted = savings.usd(Bucket.LOST) + savings.usd(Bucket.AVOIDABLE)
    assert counted <= left
    assert savings.usd(Bucket.POSSIBLE) <= sum((parts[2] for parts in bills), Decimal(0))
