"""Trials that need not have run: counted once, after the children's own findings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.audit.trials import Trial, TrialSavings, allocate_trials
from sageaudit.domain.bill.change import DropTrials
from sageaudit.domain.bill.counterfactual import Severities
from sageaudit.domain.bill.finding import Bucket, Confidence, Exemption, Found, RuleName, Severity
from tests.fakes.families import trial


def found(bucket: Bucket, *trials: str) -> Found:
    """A finding that names trials."""
    return Found(Confidence.HEURISTIC, bucket, "so", {}, change=DropTrials(frozenset(trials)))


def allocated(
    *founds: tuple[str, Found],
    trials: tuple[Trial, ...],
    exempt: Mapping[str, Exemption] | None = None,
) -> TrialSavings:
    """The findings by rule name with their dollars."""
    named = [(RuleName(f"SA90{n}", name), one) for n, (name, one) in enumerate(founds)]
    return allocate_trials(named, trials, Severities(), exempt or {})


def test_a_finding_takes_what_the_childrens_findings_left() -> None:
    """Two trials of $1, one of which already has $0.40 avoidable: $1.60 of $2."""
    trials = (trial(1, "0.9"), trial(2, "0.9", claimed_usd=Decimal("0.40")))
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


def test_a_possible_finding_leaves_what_the_child_may_save_elsewhere() -> None:
    """$1 less $0.30 possible on the child itself."""
    one = trial(1, "0.9", possible_usd=Decimal("0.30"))
    [late] = allocated(("late", found(Bucket.POSSIBLE, "trial-1")), trials=(one,)).findings
    assert late.saving_usd == Decimal("0.70")


def test_an_unpriced_trial_makes_the_figure_unknown() -> None:
    """Never the sum of the others."""
    trials = (trial(1, "0.9"), trial(2, "0.9", total_usd=None))
    [one] = allocated(("a", found(Bucket.AVOIDABLE, "trial-1", "trial-2")), trials=trials).findings
    assert (one.alone_usd, one.saving_usd) == (None, None)


def test_an_exempt_finding_has_no_share() -> None:
    """It stays visible with what it would be alone."""
    held = {"a": Exemption("ana", date(2027, 1, 31), "release")}
    of = allocated(("a", found(Bucket.LOST, "trial-1")), trials=(trial(1, None),), exempt=held)
    [one] = of.findings
    assert (one.alone_usd, one.saving_usd) == (Decimal(1), Decimal(0))
    assert one.exempt == held["a"]


def test_a_finding_without_trials_has_no_dollars() -> None:
    """Advice on the strategy alone."""
    advice = Found(Confidence.HEURISTIC, Bucket.NONE, "so", {})
    [one] = allocated(("a", advice), trials=(trial(1, "0.9"),)).findings
    assert (one.alone_usd, one.saving_usd, one.severity) == (None, None, Severity.INFO)


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
            n, None, total_usd=sum(parts, Decimal(0)), claimed_usd=parts[0], possible_usd=parts[1]
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
