"""Bills and savings at estimated rates: marked, never complete, and possible at most."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.bill_facts import PREPAID_ESTIMATE_PREFIX, facts
from sageaudit.domain.bill.billed_job import mark_estimated
from sageaudit.domain.bill.change import CutPhase, SetType
from sageaudit.domain.bill.counterfactual import Savings, Severities, allocate_savings
from sageaudit.domain.bill.finding import Bucket, Confidence, Detection, RuleInfo
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.job.parts import WarmPool
from sageaudit.domain.policy.discounts import Discounts, with_own_prices
from sageaudit.domain.prices.market import Market, Rate, is_comparable
from sageaudit.domain.resize.candidate import Candidate
from sageaudit.domain.resize.resize import Resize, resize
from sageaudit.structs import replace
from tests.fakes.any_input import likely_jobs
from tests.fakes.jobs import (
    HOURLY_USD,
    TYPES,
    FixedPrices,
    estimate_note,
    flat,
    market,
    not_none,
    ran,
)

pytestmark = pytest.mark.money

BIG = "ml.m5.4xlarge"
SMALL = "ml.m5.2xlarge"
TINY = "ml.m5.xlarge"
RUN = ran(3600, BIG, volume_gb=0)
LITTLE = flat(RUN, 60, cpu=10, memory=10)
ALL = frozenset(HOURLY_USD)


class Unlisted(FixedPrices, frozen=True):
    """Prices of a complete price list that lacks the types with estimated rates."""

    def hourly_rate(self, region: str, component: Component, instance_type: str) -> Rate | None:
        rate = FixedPrices.hourly_rate(self, region, component, instance_type)
        if rate is None or not rate.is_estimate:
            return rate
        return rate._replace(unlisted_reason="not in the price list of 2026-11-20")


def at_estimates(*names: str, **changes: object) -> Market:
    """Returns the market in which these types' rates are estimates."""
    return market(estimated=frozenset(names), **changes)


def resized(prices: Market, run: Job = RUN) -> Resize:
    """Returns the run on every other type."""
    return resize(run, LITTLE, prices)


def candidate_named(name: str, result: Resize) -> Candidate:
    """Returns the candidate with this type."""
    return next(candidate for candidate in result.candidates if candidate.type.name == name)


def savings_of(result: Detection, prices: Market, run: Job = RUN) -> Savings:
    """Returns the savings of one detection."""
    rule = RuleInfo("SA1", "r1")
    return allocate_savings(run, bill(run, prices), [(rule, result)], prices, Severities(), {})


def recommendation(change: SetType | CutPhase) -> Detection:
    """Returns a derived detection with this fix."""
    return Detection(Confidence.DERIVED, Bucket.AVOIDABLE, "because", {}, change=change)


def test_a_bill_at_an_estimated_rate_has_dollars_but_is_not_complete() -> None:
    """The bill says how the rate was made, separately from what the total lacks."""
    billed = bill(RUN, at_estimates(BIG))
    assert billed.total_usd == Decimal("0.92")
    assert (billed.complete, billed.missing) == (False, (estimate_note(BIG),))
    assert (billed.estimated, billed.gaps) == ((estimate_note(BIG),), ())
    billed = bill(ran(3600, BIG), at_estimates(BIG, storage_usd=None))
    assert billed.gaps == ("storage: no ML storage price for us-east-1 (Training)",)
    assert set(billed.missing) == {*billed.gaps, estimate_note(BIG)}
    assert billed.total_usd == Decimal("0.92")


def test_each_estimated_type_of_a_cluster_is_named_once() -> None:
    """Its warm pool has the same rate."""
    groups = (InstanceGroup(BIG, 1, "a"), InstanceGroup(SMALL, 2, "b"), InstanceGroup(BIG, 1, "c"))
    run = replace(RUN, groups=groups, warm_pool=WarmPool("Terminated", 60, Decimal(60)))
    for names in ((BIG,), (BIG, SMALL)):
        assert bill(run, at_estimates(*names)).estimated == tuple(map(estimate_note, names))


@given(likely_jobs(), st.frozensets(st.sampled_from(sorted(HOURLY_USD))))
def test_no_bill_with_an_estimated_line_is_complete(run: Job, names: frozenset[str]) -> None:
    """For any job, each estimated rate is named in `missing`, and nothing else changes."""
    billed, plain = bill(run, at_estimates(*names)), bill(run, market())
    estimates = [line for line in billed.lines if line.rate is not None and line.rate.is_estimate]
    assert bool(estimates) == bool(billed.estimated)
    assert set(billed.estimated) <= set(billed.missing)
    assert not (estimates and billed.complete)
    assert (billed.total_usd, billed.gaps) == (plain.total_usd, plain.missing)


def test_one_estimate_makes_the_bill_an_estimate_under_discounts_too() -> None:
    """The storage has a negotiated price, the compute an estimate less the same percentage."""
    prices = with_own_prices(at_estimates(BIG), Discounts(percent={"Training": Decimal(10)}))
    run = ran(3600, BIG)
    billed = bill(run, prices)
    assert [line.rate.kind for line in billed.lines if line.rate] == ["estimate", "own"]
    assert facts(run, billed, prices, savings_plan=False).price_kind == "estimate"
    assert billed.compute_usd == Decimal("0.828")


def test_the_value_of_prepaid_capacity_says_that_it_is_an_estimate() -> None:
    """The bill itself is 0 and complete, without an estimate."""
    run, prices = replace(RUN, purchase=Purchase.TRAINING_PLAN), at_estimates(BIG)
    billed = bill(run, prices)
    assert (billed.total_usd, billed.complete) == (0, True)
    result = facts(run, billed, prices, savings_plan=False)
    assert result.prepaid_value_usd == Decimal("0.92")
    assert f"{PREPAID_ESTIMATE_PREFIX}{estimate_note(BIG)}" in result.notes


@pytest.mark.parametrize(
    ("estimated", "change", "bucket", "usd", "caution"),
    [
        pytest.param(
            BIG,
            CutPhase("Training", Decimal(900)),
            Bucket.AVOIDABLE,
            "0.23",
            None,
            id="the time was paid for whatever the last digit of its price",
        ),
        pytest.param(
            BIG,
            SetType(SMALL),
            Bucket.AVOIDABLE,
            "0.46",
            None,
            id="a type at a known rate saves certainly from an estimated one",
        ),
        pytest.param(
            SMALL,
            SetType(SMALL),
            Bucket.POSSIBLE,
            "0.46",
            f"{estimate_note(SMALL)}: a possible saving, as SageMaker may not sell the type here.",
            id="a type at an estimated rate is possible at most",
        ),
        pytest.param(
            TINY,
            SetType(SMALL),
            Bucket.AVOIDABLE,
            "0.46",
            None,
            id="a type at a known rate saves certainly from another one",
        ),
    ],
)
def test_a_saving_is_counted_if_its_own_type_is_estimated_and_possible_if_the_new_one_is(
    estimated: str, change: SetType | CutPhase, bucket: Bucket, usd: str, caution: str | None
) -> None:
    """At an estimated rate of its own type a saving is counted; of a new type it is possible."""
    savings = savings_of(recommendation(change), at_estimates(estimated))
    [finding] = savings.findings
    assert (finding.detection.bucket, finding.saving_usd) == (bucket, Decimal(usd))
    assert (finding.detection.caution, finding.estimated) == (caution, estimated != TINY)
    counted = bucket is Bucket.AVOIDABLE
    assert finding.detection.confidence is (Confidence.DERIVED if counted else Confidence.HEURISTIC)
    assert (savings.avoidable_usd if counted else savings.possible_usd) == Decimal(usd)


def test_certain_candidates_have_known_rates() -> None:
    """The candidate at an estimated rate is separate. It fits unless a price list lacks its
    type.
    """
    result = resized(at_estimates(SMALL))
    assert SMALL not in [certain_saving.type.name for certain_saving in result.certain_savings]
    assert SMALL in [certain_saving.type.name for certain_saving in result.possible_savings]
    assert (candidate_named(SMALL, result).usd, candidate_named(SMALL, result).price_note) == (
        Decimal("0.46"),
        f"{estimate_note(SMALL)}.",
    )
    lacking = Unlisted(estimated=frozenset({SMALL}))
    refused = not_none(candidate_named(SMALL, resized(Market(TYPES, lacking))).refusal)
    assert refused.constraint.value == "not offered"
    assert refused.reason.endswith("not in the price list of 2026-11-20")


@pytest.mark.parametrize(("usd", "saves"), [("0.9109", False), ("0.9105", True)])
@pytest.mark.parametrize("estimate", [BIG, SMALL])
def test_a_difference_within_the_error_of_an_estimate_is_not_a_saving(
    usd: str, saves: bool, estimate: str
) -> None:
    """1% of $0.92 is $0.0092."""
    prices = market(
        estimated=frozenset({estimate}), hourly_usd=HOURLY_USD | {SMALL: usd, TINY: "9"}
    )
    result = resized(prices)
    names = [item.type.name for item in (*result.certain_savings, *result.possible_savings)]
    assert (SMALL in names) is saves


def test_estimates_compare_with_rates_of_the_same_level_and_time() -> None:
    """An estimate before discounts is not comparable with a negotiated rate."""
    guess = Rate(Decimal(1), "2026-07-20", "EC2", kind="estimate", estimate_basis="how")
    listed, negotiated = Rate(Decimal(1), None, "list"), Rate(Decimal(1), None, "own", kind="own")
    assert is_comparable(guess, listed)
    assert not is_comparable(guess, negotiated)
    assert is_comparable(guess._replace(is_discounted=True), negotiated)
    assert not is_comparable(guess, listed._replace(price_age="past"))


@pytest.mark.parametrize(
    ("summary", "evidence", "expected_text"),
    [
        ("It cost $3.", {}, True),
        ("It was slow.", {"total_usd": 3}, True),
        ("It was slow.", {"usd_per_hour": 3}, True),
        ("It was slow.", {"minutes": 3}, False),
    ],
)
def test_a_finding_that_names_dollars_says_that_they_are_estimates(
    summary: str, evidence: dict[str, int], expected_text: bool
) -> None:
    """The sentence is added to the finding's own caution."""
    result = Detection(Confidence.MEASURED, Bucket.LOST, summary, evidence, caution="Careful.")
    said = "Careful. Its dollars rest on an estimated rate." if expected_text else "Careful."
    assert mark_estimated(result).caution == said
