from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import permutations

import pytest

from sageaudit.adapters.prices import sources
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.bill.billed_job import BilledJob
from sageaudit.domain.bill.change import (
    Change,
    CutPhase,
    DropRun,
    SetCount,
    SetPurchase,
    SetType,
    SetTypeCount,
)
from sageaudit.domain.bill.counterfactual import Savings, Severities, allocate_savings
from sageaudit.domain.bill.finding import (
    Bucket,
    Confidence,
    Detection,
    Exemption,
    Finding,
    RuleInfo,
    Severity,
)
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.domain.policy.discounts import Discounts, with_own_prices
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace
from tests.fakes.jobs import job, market, not_none, phases, ran

EXEMPT = Exemption("ana", date(2027, 1, 31), "release week")
DOWNLOAD = CutPhase("Downloading", Decimal(1200))
SMALLER = SetType("ml.g4dn.2xlarge")


def detected(
    number: int,
    change: Change | None,
    bucket: Bucket = Bucket.AVOIDABLE,
    *,
    best: Change | None = None,
    subsumes: tuple[str, ...] = (),
) -> tuple[RuleInfo, Detection]:
    """Returns rule `r<number>` with one fix."""
    rule = RuleInfo(f"SA{number}", f"r{number}", subsumes=frozenset(subsumes))
    return rule, Detection(Confidence.DERIVED, bucket, "because", {}, change=change, best=best)


def allocate(
    job: Job,
    *detections: tuple[RuleInfo, Detection],
    exempt: Mapping[str, Exemption] | None = None,
    market_or_default: Market | None = None,
) -> Savings:
    """Returns the savings of some detections."""
    prices = market_or_default or market()
    return allocate_savings(job, bill(job, prices), detections, prices, Severities(), exempt or {})


def finding_of_rule(name: str, savings: Savings) -> Finding:
    """Returns a rule's finding."""
    return next(finding for finding in savings.findings if finding.rule.name == name)


def usd(amount: Decimal | None) -> str:
    """Returns the amount to the millionth of a dollar."""
    return f"{not_none(amount):.6f}"


def test_the_worked_example_holds() -> None:
    """Three hours of ml.g5.2xlarge: $1.73 and $0.51 alone are $2.04 together, never $2.23."""
    savings = allocate(job(), detected(101, DOWNLOAD), detected(202, SMALLER))
    # alone: 3 h x (1.515 - 0.94) and 1/3 h x 1.515
    assert usd(finding_of_rule("r202", savings).alone_usd) == "1.725000"
    assert usd(finding_of_rule("r101", savings).alone_usd) == "0.505000"
    # together: time first, then 2 h 40 min x (1.515 - 0.94)
    assert usd(finding_of_rule("r101", savings).saving_usd) == "0.505000"
    assert usd(finding_of_rule("r202", savings).saving_usd) == "1.533333"
    assert usd(savings.avoidable_usd) == "2.038333"
    assert [(part.name, usd(part.usd)) for part in savings.waterfall] == [
        ("avoidable: r202", "1.533333"),
        ("avoidable: r101", "0.505000"),
        ("rest", "2.506667"),
    ]


TWICE = job(phases=phases(("Downloading", 600), ("Training", 9600), ("Downloading", 600)))
MIXED = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 3))


@pytest.mark.parametrize(
    ("job", "change", "usd_saved"),
    [
        # a third of the seconds is billed on spot: cutting 1200 s saves 400 billed seconds
        (job(purchase=Purchase.SPOT, billable_s=Decimal(3600)), DOWNLOAD, "0.168333"),
        # an hour cannot be cut from a download of 20 minutes
        (job(), CutPhase("Downloading", Decimal(3600)), "0.505000"),
        # two downloads of 10 minutes: 15 minutes are cut from both together, at $1.515 an hour
        (TWICE, CutPhase("Downloading", Decimal(900)), "0.378750"),
        # a more expensive or slower type saves nothing
        (job(), SetType("ml.g4dn.12xlarge"), "0.000000"),
        (job(), SetType("ml.g4dn.2xlarge", Decimal(2)), "0.000000"),
        # 4 x 1 h become 2 x 1.5 h: 4 - 3 instance-hours at $0.23, and 1 h of 30 GB
        (ran(3600, instances=4), SetCount(2, Decimal("1.5")), "0.235645"),
        # it is unknown which group of a mixed cluster would shrink
        (ran(3600, groups=MIXED), SetCount(1, Decimal(1)), "0.000000"),
        # an hour without the group of three, or with one of them: $0.23 and a volume each
        (ran(3600, groups=MIXED), SetTypeCount("ml.m5.xlarge", 0), "0.706935"),
        (ran(3600, groups=MIXED), SetTypeCount("ml.m5.xlarge", 1), "0.471290"),
        (ran(3600, groups=MIXED), SetTypeCount("ml.g5.2xlarge", 0), "1.515000"),
        # some of two groups of a type are of an unknown one; nothing is left of a job without any
        (ran(3600, groups=(*MIXED, MIXED[1])), SetTypeCount("ml.m5.xlarge", 1), "0.000000"),
        (ran(3600, groups=(*MIXED, MIXED[1])), SetTypeCount("ml.m5.xlarge", 0), "1.413871"),
        (ran(3600), SetTypeCount("ml.m5.xlarge", 0), "0.000000"),
    ],
)
def test_a_change_saves_the_difference_of_both_bills(
    job: Job, change: Change, usd_saved: str
) -> None:
    """Alone and together, the saving is at least 0."""
    savings = allocate(job, detected(101, change))
    assert usd(savings.avoidable_usd) == usd(savings.findings[0].alone_usd) == usd_saved


def test_a_run_without_result_loses_the_whole_bill() -> None:
    """Lost comes first, so any other saving of the run is 0."""
    kept = ran(3600, warm_pool=WarmPool("Terminated", 1800, Decimal(1800)))
    savings = allocate(
        kept, detected(602, DropRun(), Bucket.LOST), detected(205, SetType("ml.m5.large"))
    )
    assert savings.lost_usd == bill(kept, market()).total_usd
    assert savings.avoidable_usd == 0
    assert usd(finding_of_rule("r205", savings).alone_usd) > "0.1"
    assert finding_of_rule("r205", savings).saving_usd == 0


def test_a_run_that_may_be_lost_counts_nothing_but_shows_the_most() -> None:
    """$0.50 is avoidable, so the rest of the bill is the most that can be lost."""
    run, perhaps = (
        job(),
        detected(602, CutPhase("Training", Decimal(0)), Bucket.LOST, best=DropRun()),
    )
    total_usd = not_none(bill(run, market()).total_usd)
    alone = allocate(run, perhaps)
    assert (alone.lost_usd, alone.lost_up_to_usd, alone.avoidable_usd) == (0, total_usd, 0)
    assert alone.findings[0].severity is Severity.LOW
    both = allocate(run, perhaps, detected(101, DOWNLOAD))
    assert both.avoidable_usd
    assert both.lost_up_to_usd == total_usd - both.avoidable_usd
    assert allocate(run, perhaps, exempt={"r602": EXEMPT}).lost_up_to_usd == 0


TWO_TYPES = (detected(202, SetType("ml.m5.2xlarge")), detected(205, SetType("ml.m5.xlarge")))
BIG = job("ml.m5.4xlarge")
FOUR = ran(3600, instances=4)
LARGE = detected(205, SetType("ml.m5.large"))


@pytest.mark.parametrize(
    ("job", "detections", "exempt", "shares", "instead"),
    [
        # The download still counts at the job's own rate.
        pytest.param(
            job(),
            (detected(101, DOWNLOAD), detected(202, SetType("ml.g4dn.12xlarge"))),
            (),
            {"r101": "0.505000"},
            {},
            id="what saves nothing is not applied",
        ),
        pytest.param(
            job(),
            (
                detected(303, SetCount(2, Decimal(1), redistributes_work=False)),
                detected(202, SMALLER),
            ),
            (),
            {"r202": "1.725000"},
            {},
            id="a type that saves takes over hosts that save less",
        ),
        # Of two types the one that saves most, 3 h x (0.92 - 0.23); the loser says who won.
        pytest.param(
            BIG,
            TWO_TYPES,
            (),
            {"r205": "2.070000"},
            {"r202": "r205"},
            id="of two types the one that saves most is counted and the loser says who won",
        ),
        # 3 h x (0.92 - 0.46).
        pytest.param(
            BIG,
            TWO_TYPES,
            ("r205",),
            {"r202": "1.380000"},
            {},
            id="an exempt finding leaves the sums and its stage is free for another",
        ),
        pytest.param(
            BIG,
            (detected(202, SetType("ml.m5.large"), Bucket.POSSIBLE), TWO_TYPES[1]),
            (),
            {"r205": "2.070000"},
            {"r202": "r205"},
            id="possible never pushes a derived saving out however large it hopes to be",
        ),
        pytest.param(
            job(),
            (detected(202, SetType("ml.g4dn.12xlarge")), detected(205, SMALLER, Bucket.POSSIBLE)),
            (),
            {"r205": "1.725000"},
            {"r202": "r205"},
            id="what may save nothing hides no possible saving however sure it is",
        ),
        # Spot's 60 % is of the bill after the counted fixes: 0.6 x 3 h x 0.94.
        pytest.param(
            job(),
            (detected(202, SMALLER), detected(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE)),
            (),
            {"r202": "1.725000", "r401": "1.692000"},
            {},
            id="spots 60 percent is of the bill after the counted fixes",
        ),
        pytest.param(
            job(),
            (detected(101, DOWNLOAD), detected(202, SMALLER, subsumes=("r101",))),
            (),
            {"r202": "1.725000"},
            {"r101": "r202"},
            id="the one that subsumes another tells the same story",
        ),
        pytest.param(
            job(),
            (detected(101, DOWNLOAD), detected(202, None, Bucket.NONE, subsumes=("r999",))),
            (),
            {"r101": "0.505000"},
            {},
            id="a subsumed finding that was not found changes nothing",
        ),
        # What the type held was recorded on more hosts.
        pytest.param(
            FOUR,
            (detected(303, SetCount(1, Decimal(1))), LARGE),
            (),
            {"r303": "0.706935"},
            {"r205": "r303"},
            id="one host less and a smaller type are one contest",
        ),
        pytest.param(
            FOUR,
            (detected(303, SetCount(3, Decimal(1), redistributes_work=False)), LARGE),
            (),
            {"r205": "0.345000", "r303": "0.235645"},
            {},
            id="hosts that take over no work and a smaller type are counted both",
        ),
    ],
)
def test_each_dollar_is_counted_once(
    job: Job,
    detections: tuple[tuple[RuleInfo, Detection], ...],
    exempt: tuple[str, ...],
    shares: dict[str, str],
    instead: dict[str, str],
) -> None:
    """The shares by rule, and which rule replaces another one. `possible` is in no sum."""
    savings = allocate(job, *detections, exempt=dict.fromkeys(exempt, EXEMPT))
    by_rule = {finding.rule.name: finding for finding in savings.findings}
    assert {n: usd(item.saving_usd) for n, item in by_rule.items() if item.saving_usd} == shares
    winners = {name: item.superseded_by or item.subsumed_by for name, item in by_rule.items()}
    assert {name: winner for name, winner in winners.items() if winner} == instead
    assert [name for name, finding in by_rule.items() if finding.exempt] == list(exempt)
    counted = [by_rule[n].saving_usd or 0 for n in shares if by_rule[n].detection.bucket.is_counted]
    assert savings.avoidable_usd == sum(counted)
    assert not_none(savings.possible_usd) + sum(counted) == sum(
        item.saving_usd or 0 for item in by_rule.values()
    )
    assert {part.name.rpartition(" ")[2] for part in savings.waterfall} == {
        "rest",
        *(name for name in shares if by_rule[name].detection.bucket.is_counted),
    }


def test_a_range_shows_both_ends_alone() -> None:
    """The low end is counted: here nothing. At best the whole download is saved."""
    savings = allocate(job(), detected(101, CutPhase("Downloading", Decimal(0)), best=DOWNLOAD))
    assert finding_of_rule("r101", savings).range_usd == (0, Decimal("0.505"))
    assert savings.avoidable_usd == 0


def test_unknown_savings_have_no_dollars() -> None:
    """A finding without a change, a bill without a price, a changed bill that would lack a line:
    never 0.
    """
    recommendation = allocate(job(), detected(601, None, Bucket.NONE))
    assert (
        finding_of_rule("r601", recommendation).saving_usd,
        finding_of_rule("r601", recommendation).alone_usd,
    ) == (
        None,
        None,
    )
    unknown = allocate(ran(3600, region="xx-west-9"), detected(205, SetType("ml.m5.large")))
    assert (unknown.avoidable_usd, unknown.lost_usd, unknown.possible_usd) == (None, None, None)
    assert (unknown.findings[0].saving_usd, unknown.waterfall) == (None, ())
    unpriced = allocate(ran(3600), detected(205, SetType("ml.unpriced.xlarge")))
    assert (finding_of_rule("r205", unpriced).alone_usd, unpriced.avoidable_usd) == (None, 0)


def test_the_order_of_findings_does_not_matter() -> None:
    """All orders of five findings give the same savings."""
    founds = [
        detected(101, DOWNLOAD),
        detected(202, SMALLER),
        detected(205, SetType("ml.g4dn.xlarge")),
        detected(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE),
        detected(303, SetCount(1, Decimal("1.2"))),
    ]
    first, *others = (allocate(job(), *order) for order in permutations(founds))
    assert all(item == first for item in others)


@pytest.mark.parametrize(
    ("seconds", "change", "bucket", "severity"),
    # 3 instances of ml.g4dn.12xlarge at $4.89: $14.67 an hour lost
    [
        (1, DropRun(), Bucket.LOST, "info"),  # $0.0041 is shown as under one cent
        (2, DropRun(), Bucket.LOST, "low"),
        (900, DropRun(), Bucket.LOST, "low"),  # $3.67
        (2700, DropRun(), Bucket.LOST, "medium"),  # $11.00
        (21_600, DropRun(), Bucket.LOST, "medium"),  # $88.02
        (25_200, DropRun(), Bucket.LOST, "high"),  # $102.69
        # a heuristic is never shown as the main thing
        (720_000, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE, "low"),
        (1, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE, "info"),
    ],
)
def test_severity_follows_the_dollars_of_one_occasion(
    seconds: int, change: Change, bucket: Bucket, severity: str
) -> None:
    """Low under $10, medium under $100. A trial is low, however large its amount is."""
    run = ran(seconds, "ml.g4dn.12xlarge", 3, status="Failed")
    assert allocate(run, detected(602, change, bucket)).findings[0].severity.value == severity


def test_the_most_expensive_finding_comes_first() -> None:
    """Counted findings come by their share, then trials, then findings without dollars."""
    savings = allocate(
        job("ml.m5.4xlarge"),
        detected(101, DOWNLOAD),
        detected(202, SetType("ml.m5.2xlarge")),
        detected(205, SetType("ml.m5.xlarge")),
        detected(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE),
    )
    assert [f.rule.name for f in savings.findings] == ["r205", "r101", "r401", "r202"]


def test_rates_of_different_times_are_not_compared() -> None:
    """One type's price of that year is known, the other's is not: no saving is computed."""
    run = replace(ran(3600, "ml.p4d.24xlarge"), started_at=datetime(2025, 1, 15, tzinfo=UTC))
    prices = sources.offline_markets().market(run, datetime(2026, 11, 1, tzinfo=UTC))
    before = bill(run, prices)
    rate = not_none(before.lines[0].rate)
    assert (rate.usd, rate.price_age) == (Decimal("37.688"), "past")
    assert BilledJob(run, before, prices).saving_usd(SetType("ml.g5.48xlarge")) is None


def test_what_cannot_be_compared_has_no_saving() -> None:
    """An upper bound (the real bill is unknown), and an own rate with a list price."""
    spot = replace(ran(3600), purchase=Purchase.SPOT, billable_s=None)
    assert bill(spot, market()).basis == "upper_bound"
    assert BilledJob(spot, bill(spot, market()), market()).saving_usd(DropRun()) is None
    prices = with_own_prices(
        market(), Discounts(rates={"us-east-1": {"ml.m5.xlarge": Decimal("0.2")}})
    )
    run = ran(3600, "ml.m5.xlarge")
    assert BilledJob(run, bill(run, prices), prices).saving_usd(SetType("ml.m5.large")) is None


def test_severities_and_buckets_have_an_order_and_a_sum() -> None:
    """Severities do not sort by letters; possible dollars are never added to the others."""
    ranked = sorted(Severity, key=lambda severity: severity.rank)
    assert (ranked, Severity.INFO.rank) == (["info", "low", "medium", "high"], 0)
    assert [bucket for bucket in Bucket if bucket.is_counted] == ["avoidable", "lost"]
