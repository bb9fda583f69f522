from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import permutations

import pytest

from sageaudit.adapters.prices import sources
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.change import Change, CutPhase, DropRun, SetCount, SetPurchase, SetType
from sageaudit.domain.bill.counterfactual import Savings, Severities, allocate, saving
from sageaudit.domain.bill.finding import (
    Bucket,
    Confidence,
    Exemption,
    Finding,
    Found,
    RuleName,
    Severity,
)
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.domain.policy.discounts import Discounts, own
from sageaudit.domain.prices.market import Market
from tests.fakes.jobs import job, market, phases, ran

EXEMPT = Exemption("ana", date(2027, 1, 31), "release week")
DOWNLOAD = CutPhase("Downloading", Decimal(1200))
SMALLER = SetType("ml.g4dn.2xlarge")


def found(
    number: int,
    change: Change | None,
    bucket: Bucket = Bucket.AVOIDABLE,
    *,
    best: Change | None = None,
    subsumes: tuple[str, ...] = (),
) -> tuple[RuleName, Found]:
    """Rule `r<number>` with one fix."""
    name = RuleName(f"SA{number}", f"r{number}", subsumes=frozenset(subsumes))
    return name, Found(Confidence.DERIVED, bucket, "because", {}, change=change, best=best)


def allocated(
    of: Job,
    *founds: tuple[RuleName, Found],
    exempt: Mapping[str, Exemption] | None = None,
    on: Market | None = None,
) -> Savings:
    """The savings of some findings."""
    prices = on or market()
    return allocate(of, bill(of, prices), founds, prices, Severities(), exempt or {})


def the(name: str, savings: Savings) -> Finding:
    """One finding by its rule's name."""
    return next(finding for finding in savings.findings if finding.rule.name == name)


def usd(amount: Decimal | None) -> str:
    """To the millionth of a dollar."""
    assert amount is not None
    return f"{amount:.6f}"


def test_the_worked_example_holds() -> None:
    """Three hours of ml.g5.2xlarge: $1.73 and $0.51 alone are $2.04 together, never $2.23."""
    savings = allocated(job(), found(101, DOWNLOAD), found(202, SMALLER))
    # alone: 3 h x (1.515 - 0.94) and 1/3 h x 1.515
    assert usd(the("r202", savings).alone_usd) == "1.725000"
    assert usd(the("r101", savings).alone_usd) == "0.505000"
    # together: time first, then 2 h 40 min x (1.515 - 0.94)
    assert usd(the("r101", savings).saving_usd) == "0.505000"
    assert usd(the("r202", savings).saving_usd) == "1.533333"
    assert usd(savings.avoidable_usd) == "2.038333"
    assert [(part.name, usd(part.usd)) for part in savings.waterfall] == [
        ("avoidable: r202", "1.533333"),
        ("avoidable: r101", "0.505000"),
        ("rest", "2.506667"),
    ]


def test_on_spot_a_cut_second_saves_its_billed_part() -> None:
    """A third of the seconds is billed: cutting 1200 s saves 400 billed seconds."""
    spot = job(purchase=Purchase.SPOT, billable_s=Decimal(3600))
    savings = allocated(spot, found(101, DOWNLOAD))
    assert usd(savings.avoidable_usd) == usd(Decimal("1.515") * 400 / 3600)


def test_a_cut_takes_no_more_than_the_phase_has() -> None:
    """An hour cannot be cut from a download of 20 minutes."""
    savings = allocated(job(), found(101, CutPhase("Downloading", Decimal(3600))))
    assert usd(savings.avoidable_usd) == "0.505000"


def test_a_cut_takes_from_every_occurrence() -> None:
    """Two downloads of 10 minutes: 15 minutes are cut from both together."""
    twice = job(phases=phases(("Downloading", 600), ("Training", 9600), ("Downloading", 600)))
    savings = allocated(twice, found(101, CutPhase("Downloading", Decimal(900))))
    # 900 s x $1.515 / h
    assert usd(savings.avoidable_usd) == "0.378750"


def test_a_run_that_gave_nothing_takes_the_whole_bill() -> None:
    """Lost first: what else could have been saved of it is 0 then."""
    kept = ran(3600, warm_pool=WarmPool("Terminated", 1800, Decimal(1800)))
    savings = allocated(
        kept, found(602, DropRun(), Bucket.LOST), found(205, SetType("ml.m5.large"))
    )
    assert savings.lost_usd == bill(kept, market()).total_usd
    assert savings.avoidable_usd == 0
    assert usd(the("r205", savings).alone_usd) > "0.1"
    assert the("r205", savings).saving_usd == 0


def test_a_run_that_may_be_lost_counts_nothing_and_says_up_to_what() -> None:
    """Beside $0.50 that are avoidable, the rest of the bill is the most that can be lost."""
    run = job()
    perhaps = (
        RuleName("SA602", "failed"),
        Found(
            Confidence.DERIVED,
            Bucket.LOST,
            "because",
            {},
            change=CutPhase("Training", Decimal(0)),
            best=DropRun(),
        ),
    )
    total_usd = bill(run, market()).total_usd
    assert total_usd is not None
    alone = allocated(run, perhaps)
    assert (alone.lost_usd, alone.lost_up_to_usd, alone.avoidable_usd) == (0, total_usd, 0)
    assert alone.findings[0].severity is Severity.LOW
    both = allocated(run, perhaps, found(101, CutPhase("Downloading", Decimal(1200))))
    assert both.avoidable_usd
    assert both.lost_up_to_usd == total_usd - both.avoidable_usd
    exempt = {"failed": Exemption("ana", None, "known")}
    accepted = allocate(run, bill(run, market()), [perhaps], market(), Severities(), exempt)
    assert accepted.lost_up_to_usd == 0


def test_a_dearer_or_slower_type_saves_nothing() -> None:
    """A marginal saving at or below 0 is 0, alone and together."""
    dearer = allocated(job(), found(202, SetType("ml.g4dn.12xlarge")))
    slower = allocated(job(), found(202, SetType("ml.g4dn.2xlarge", Decimal(2))))
    assert (dearer.avoidable_usd, the("r202", dearer).alone_usd) == (0, 0)
    assert (slower.avoidable_usd, the("r202", slower).alone_usd) == (0, 0)


def test_a_useless_fix_does_not_make_the_others_worse() -> None:
    """What saves nothing is not applied: the download still counts at the job's own rate."""
    savings = allocated(job(), found(101, DOWNLOAD), found(202, SetType("ml.g4dn.12xlarge")))
    assert usd(savings.avoidable_usd) == "0.505000"


def test_one_type_wins() -> None:
    """Two other types: the one that saves most; the loser has no share and says who won."""
    savings = allocated(
        job("ml.m5.4xlarge"),
        found(202, SetType("ml.m5.2xlarge")),
        found(205, SetType("ml.m5.xlarge")),
    )
    winner, loser = the("r205", savings), the("r202", savings)
    assert (winner.superseded_by, loser.superseded_by) == (None, "r205")
    assert loser.saving_usd == 0
    assert usd(loser.alone_usd) == "1.380000"  # 3 h x (0.92 - 0.46)
    # 3 h x (0.92 - 0.23) of compute, the volume stays
    assert usd(savings.avoidable_usd) == "2.070000"


def test_a_counted_fix_wins_over_a_trial() -> None:
    """`possible` never pushes a derived saving out, however large it hopes to be."""
    savings = allocated(
        job("ml.m5.4xlarge"),
        found(202, SetType("ml.m5.large"), Bucket.POSSIBLE),
        found(205, SetType("ml.m5.xlarge")),
    )
    assert the("r202", savings).superseded_by == "r205"
    assert savings.possible_usd == 0


def test_possible_dollars_are_of_what_is_left() -> None:
    """Spot's 60 % is of the bill after the counted fixes, and in no sum with them."""
    savings = allocated(
        job(), found(202, SMALLER), found(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE)
    )
    assert usd(savings.avoidable_usd) == "1.725000"
    assert usd(savings.possible_usd) == "1.692000"  # 0.6 x 3 h x 0.94
    assert "r401" not in {part.name.rpartition(" ")[2] for part in savings.waterfall}


def test_an_exempt_finding_stays_visible_without_dollars() -> None:
    """It leaves the sums, and its stage is free for another fix."""
    savings = allocated(
        job("ml.m5.4xlarge"),
        found(202, SetType("ml.m5.2xlarge")),
        found(205, SetType("ml.m5.xlarge")),
        exempt={"r205": EXEMPT},
    )
    assert the("r205", savings).exempt is EXEMPT
    assert the("r205", savings).saving_usd == 0
    assert the("r202", savings).superseded_by is None
    assert usd(savings.avoidable_usd) == "1.380000"


def test_a_subsumed_finding_leaves_the_sums() -> None:
    """It tells the same story as the one that subsumes it."""
    savings = allocated(job(), found(101, DOWNLOAD), found(202, SMALLER, subsumes=("r101",)))
    assert the("r101", savings).subsumed_by == "r202"
    assert the("r101", savings).saving_usd == 0
    assert usd(savings.avoidable_usd) == "1.725000"


def test_nothing_is_subsumed_by_what_was_not_found() -> None:
    """The other rule must have found something."""
    name, what = found(202, None, Bucket.NONE, subsumes=("r999",))
    savings = allocated(job(), (name, what), found(101, DOWNLOAD))
    assert the("r101", savings).subsumed_by is None


def test_a_range_shows_both_ends_alone() -> None:
    """The low end is counted: here nothing, at best the whole download."""
    savings = allocated(job(), found(101, CutPhase("Downloading", Decimal(0)), best=DOWNLOAD))
    assert the("r101", savings).range_usd == (0, Decimal("0.505"))
    assert savings.avoidable_usd == 0


def test_a_finding_without_change_has_no_dollars() -> None:
    """Unknown, not 0: it is an advice."""
    savings = allocated(job(), found(601, None, Bucket.NONE))
    assert (the("r601", savings).saving_usd, the("r601", savings).alone_usd) == (None, None)


def test_an_unknown_bill_has_no_savings() -> None:
    """All sums and shares are unknown, and there is no waterfall."""
    savings = allocated(ran(3600, region="xx-west-9"), found(205, SetType("ml.m5.large")))
    assert (savings.avoidable_usd, savings.lost_usd, savings.possible_usd) == (None, None, None)
    assert (savings.findings[0].saving_usd, savings.waterfall) == (None, ())


def test_a_change_to_an_unpriced_type_is_unknown() -> None:
    """A bill that misses a line is smaller for the wrong reason."""
    savings = allocated(ran(3600), found(205, SetType("ml.unpriced.xlarge")))
    assert the("r205", savings).alone_usd is None
    assert savings.avoidable_usd == 0


def test_fewer_instances_take_longer() -> None:
    """4 x 1 h become 2 x 1.5 h: 4 - 3 instance-hours at $0.23, and 1 h of 30 GB."""
    savings = allocated(ran(3600, instances=4), found(303, SetCount(2, Decimal("1.5"))))
    storage = Decimal(30) / 744 * Decimal("0.14")
    assert usd(savings.avoidable_usd) == usd(Decimal("0.23") + storage)


def test_hosts_that_take_over_work_and_a_smaller_type_are_one_contest() -> None:
    """What the type held was recorded on more hosts: the fix that saves more alone stands."""
    fewer, kind = found(303, SetCount(1, Decimal(1))), found(205, SetType("ml.m5.large"))
    savings = allocated(ran(3600, instances=4), fewer, kind)
    assert the("r205", savings).superseded_by == "r303"
    assert (the("r205", savings).saving_usd, the("r303", savings).superseded_by) == (0, None)
    beside = found(303, SetCount(3, Decimal(1), refills=False))
    both = allocated(ran(3600, instances=4), beside, kind)
    assert not any(one.superseded_by for one in both.findings)


def test_the_count_of_a_mixed_cluster_is_left_alone() -> None:
    """Nobody knows which group would shrink."""
    groups = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 3))
    savings = allocated(ran(3600, groups=groups), found(303, SetCount(1, Decimal(1))))
    assert savings.avoidable_usd == 0


def test_the_order_of_findings_does_not_matter() -> None:
    """All orders of five findings are allocated the same."""
    founds = [
        found(101, DOWNLOAD),
        found(202, SMALLER),
        found(205, SetType("ml.g4dn.xlarge")),
        found(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE),
        found(303, SetCount(1, Decimal("1.2"))),
    ]
    first, *others = (allocated(job(), *order) for order in permutations(founds))
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("hours", "severity"),
    # 3 instances of ml.g4dn.12xlarge at $4.89: $14.67 an hour lost
    [(0.25, "low"), (0.75, "medium"), (6, "medium"), (7, "high")],
)
def test_severity_follows_the_dollars_of_one_run(hours: float, severity: str) -> None:
    """Low under $10, medium under $100: $3.67, $11.00, $88.02 and $102.69."""
    lost = ran(int(hours * 3600), "ml.g4dn.12xlarge", 3, status="Failed")
    savings = allocated(lost, found(602, DropRun(), Bucket.LOST))
    assert savings.findings[0].severity.value == severity


@pytest.mark.parametrize(("seconds", "severity"), [(1, "info"), (2, "low")])
def test_less_than_a_cent_is_info(seconds: int, severity: str) -> None:
    """$0.0041 is shown as under one cent, $0.0082 as one."""
    lost = ran(seconds, "ml.g4dn.12xlarge", 3, status="Failed")
    savings = allocated(lost, found(602, DropRun(), Bucket.LOST))
    assert savings.findings[0].severity.value == severity


def test_a_trial_is_low_however_dear() -> None:
    """A heuristic is never shown as the main thing."""
    dear = ran(720_000, "ml.g4dn.12xlarge", 3)
    savings = allocated(dear, found(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE))
    assert savings.findings[0].severity.value == "low"


def test_the_dearest_finding_comes_first() -> None:
    """Counted ones by share, then trials, then the quiet ones."""
    savings = allocated(
        job("ml.m5.4xlarge"),
        found(101, DOWNLOAD),
        found(202, SetType("ml.m5.2xlarge")),
        found(205, SetType("ml.m5.xlarge")),
        found(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE),
    )
    assert [f.rule.name for f in savings.findings] == ["r205", "r101", "r401", "r202"]


def test_rates_of_different_times_are_not_compared() -> None:
    """A type whose price of that year is known, and one whose is not: no saving between them."""
    run = replace(ran(3600, "ml.p4d.24xlarge"), started_at=datetime(2025, 1, 15, tzinfo=UTC))
    prices = sources.offline_markets().market(run, datetime(2026, 11, 1, tzinfo=UTC))
    before = bill(run, prices)
    assert before.lines[0].rate is not None
    assert (before.lines[0].rate.usd, before.lines[0].rate.era) == (Decimal("37.688"), "past")
    assert saving(before, run, SetType("ml.g5.48xlarge"), prices) is None


def test_an_upper_bound_has_no_saving() -> None:
    """Spot without billable seconds: what was really billed is not known, nor what is lost."""
    spot = replace(ran(3600), purchase=Purchase.SPOT, billable_s=None)
    assert bill(spot, market()).basis == "upper_bound"
    assert saving(bill(spot, market()), spot, DropRun(), market()) is None


def test_own_and_list_prices_are_not_compared() -> None:
    """A rate of the policy for one type says nothing of another type's."""
    prices = own(market(), Discounts(rates={"us-east-1": {"ml.m5.xlarge": Decimal("0.2")}}))
    run = ran(3600, "ml.m5.xlarge")
    assert saving(bill(run, prices), run, SetType("ml.m5.large"), prices) is None


def test_possible_fixes_never_take_from_counted_ones() -> None:
    """With or without a trial beside it, a counted fix has the same share."""
    trial = found(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE)
    alone = allocated(job(), found(101, DOWNLOAD))
    beside = allocated(job(), found(101, DOWNLOAD), trial)
    assert the("r101", alone).saving_usd == the("r101", beside).saving_usd
    assert alone.avoidable_usd == beside.avoidable_usd
