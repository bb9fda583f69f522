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


def found(
    number: int,
    change: Change | None,
    bucket: Bucket = Bucket.AVOIDABLE,
    *,
    best: Change | None = None,
    subsumes: tuple[str, ...] = (),
) -> tuple[RuleInfo, Detection]:
    """Rule `r<number>` with one fix."""
    name = RuleInfo(f"SA{number}", f"r{number}", subsumes=frozenset(subsumes))
    return name, Detection(Confidence.DERIVED, bucket, "because", {}, change=change, best=best)


def allocated(
    of: Job,
    *founds: tuple[RuleInfo, Detection],
    exempt: Mapping[str, Exemption] | None = None,
    on: Market | None = None,
) -> Savings:
    """The savings of some findings."""
    prices = on or market()
    return allocate_savings(of, bill(of, prices), founds, prices, Severities(), exempt or {})


def the(name: str, savings: Savings) -> Finding:
    """One finding by its rule's name."""
    return next(finding for finding in savings.findings if finding.rule.name == name)


def usd(amount: Decimal | None) -> str:
    """To the millionth of a dollar."""
    return f"{not_none(amount):.6f}"


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


TWICE = job(phases=phases(("Downloading", 600), ("Training", 9600), ("Downloading", 600)))
MIXED = (InstanceGroup("ml.g5.2xlarge", 1), InstanceGroup("ml.m5.xlarge", 3))


@pytest.mark.parametrize(
    ("of", "change", "usd_saved"),
    [
        # a third of the seconds is billed on spot: cutting 1200 s saves 400 billed seconds
        (job(purchase=Purchase.SPOT, billable_s=Decimal(3600)), DOWNLOAD, "0.168333"),
        # an hour cannot be cut from a download of 20 minutes
        (job(), CutPhase("Downloading", Decimal(3600)), "0.505000"),
        # two downloads of 10 minutes: 15 minutes are cut from both together, at $1.515 an hour
        (TWICE, CutPhase("Downloading", Decimal(900)), "0.378750"),
        # a dearer or a slower type saves nothing
        (job(), SetType("ml.g4dn.12xlarge"), "0.000000"),
        (job(), SetType("ml.g4dn.2xlarge", Decimal(2)), "0.000000"),
        # 4 x 1 h become 2 x 1.5 h: 4 - 3 instance-hours at $0.23, and 1 h of 30 GB
        (ran(3600, instances=4), SetCount(2, Decimal("1.5")), "0.235645"),
        # nobody knows which group of a mixed cluster would shrink
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
def test_a_change_saves_what_its_bill_is_less(of: Job, change: Change, usd_saved: str) -> None:
    """Alone and together: at least 0."""
    savings = allocated(of, found(101, change))
    assert usd(savings.avoidable_usd) == usd(savings.findings[0].alone_usd) == usd_saved


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
    run, perhaps = job(), found(602, CutPhase("Training", Decimal(0)), Bucket.LOST, best=DropRun())
    total_usd = not_none(bill(run, market()).total_usd)
    alone = allocated(run, perhaps)
    assert (alone.lost_usd, alone.lost_up_to_usd, alone.avoidable_usd) == (0, total_usd, 0)
    assert alone.findings[0].severity is Severity.LOW
    both = allocated(run, perhaps, found(101, DOWNLOAD))
    assert both.avoidable_usd
    assert both.lost_up_to_usd == total_usd - both.avoidable_usd
    assert allocated(run, perhaps, exempt={"r602": EXEMPT}).lost_up_to_usd == 0


TWO_TYPES = (found(202, SetType("ml.m5.2xlarge")), found(205, SetType("ml.m5.xlarge")))
BIG = job("ml.m5.4xlarge")
FOUR = ran(3600, instances=4)
LARGE = found(205, SetType("ml.m5.large"))


@pytest.mark.parametrize(
    ("of", "founds", "exempt", "shares", "instead"),
    [
        # The download still counts at the job's own rate.
        pytest.param(
            job(),
            (found(101, DOWNLOAD), found(202, SetType("ml.g4dn.12xlarge"))),
            (),
            {"r101": "0.505000"},
            {},
            id="what saves nothing is not applied",
        ),
        pytest.param(
            job(),
            (found(303, SetCount(2, Decimal(1), redistributes_work=False)), found(202, SMALLER)),
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
            (found(202, SetType("ml.m5.large"), Bucket.POSSIBLE), TWO_TYPES[1]),
            (),
            {"r205": "2.070000"},
            {"r202": "r205"},
            id="possible never pushes a derived saving out however large it hopes to be",
        ),
        pytest.param(
            job(),
            (found(202, SetType("ml.g4dn.12xlarge")), found(205, SMALLER, Bucket.POSSIBLE)),
            (),
            {"r205": "1.725000"},
            {"r202": "r205"},
            id="what may save nothing hides no possible saving however sure it is",
        ),
        # Spot's 60 % is of the bill after the counted fixes: 0.6 x 3 h x 0.94.
        pytest.param(
            job(),
            (found(202, SMALLER), found(401, SetPurchase(Decimal("0.4")), Bucket.POSSIBLE)),
            (),
            {"r202": "1.725000", "r401": "1.692000"},
            {},
            id="spots 60 percent is of the bill after the counted fixes",
        ),
        pytest.param(
            job(),
            (found(101, DOWNLOAD), found(202, SMALLER, subsumes=("r101",))),
            (),
            {"r202": "1.725000"},
            {"r101": "r202"},
            id="the one that subsumes another tells the same story",
        ),
        pytest.param(
            job(),
            (found(101, DOWNLOAD), found(202, None, Bucket.NONE, subsumes=("r999",))),
            (),
            {"r101": "0.505000"},
            {},
            id="a subsumed finding that was not found changes nothing",
        ),
        # What the type held was recorded on more hosts.
        pytest.param(
            FOUR,
            (found(303, SetCount(1, Decimal(1))), LARGE),
            (),
            {"r303": "0.706935"},
            {"r205": "r303"},
            id="one host less and a smaller type are one contest",
        ),
        pytest.param(
            FOUR,
            (found(303, SetCount(3, Decimal(1), redistributes_work=False)), LARGE),
            (),
            {"r205": "0.345000", "r303": "0.235645"},
            {},
            id="hosts that take over no work and a smaller type are counted both",
        ),
    ],
)
def test_each_dollar_is_counted_once(
    of: Job,
    founds: tuple[tuple[RuleInfo, Detection], ...],
    exempt: tuple[str, ...],
    shares: dict[str, str],
    instead: dict[str, str],
) -> None:
    """Shares by rule, and which rule stands instead of another; `possible` is in no sum."""
    savings = allocated(of, *founds, exempt=dict.fromkeys(exempt, EXEMPT))
    by_rule = {finding.rule.name: finding for finding in savings.findings}
    assert {n: usd(one.saving_usd) for n, one in by_rule.items() if one.saving_usd} == shares
    winners = {name: one.superseded_by or one.subsumed_by for name, one in by_rule.items()}
    assert {name: winner for name, winner in winners.items() if winner} == instead
    assert [name for name, finding in by_rule.items() if finding.exempt] == list(exempt)
    counted = [by_rule[n].saving_usd or 0 for n in shares if by_rule[n].detection.bucket.is_counted]
    assert savings.avoidable_usd == sum(counted)
    assert not_none(savings.possible_usd) + sum(counted) == sum(
        one.saving_usd or 0 for one in by_rule.values()
    )
    assert {part.name.rpartition(" ")[2] for part in savings.waterfall} == {
        "rest",
        *(name for name in shares if by_rule[name].detection.bucket.is_counted),
    }


def test_a_range_shows_both_ends_alone() -> None:
    """The low end is counted: here nothing, at best the whole download."""
    savings = allocated(job(), found(101, CutPhase("Downloading", Decimal(0)), best=DOWNLOAD))
    assert the("r101", savings).range_usd == (0, Decimal("0.505"))
    assert savings.avoidable_usd == 0


def test_what_is_not_known_has_no_dollars() -> None:
    """An advice, a bill without a price, and a changed bill that would miss a line: never 0."""
    recommendation = allocated(job(), found(601, None, Bucket.NONE))
    assert (the("r601", recommendation).saving_usd, the("r601", recommendation).alone_usd) == (
        None,
        None,
    )
    unknown = allocated(ran(3600, region="xx-west-9"), found(205, SetType("ml.m5.large")))
    assert (unknown.avoidable_usd, unknown.lost_usd, unknown.possible_usd) == (None, None, None)
    assert (unknown.findings[0].saving_usd, unknown.waterfall) == (None, ())
    unpriced = allocated(ran(3600), found(205, SetType("ml.unpriced.xlarge")))
    assert (the("r205", unpriced).alone_usd, unpriced.avoidable_usd) == (None, 0)


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
    """Low under $10, medium under $100; a trial is low however dear."""
    run = ran(seconds, "ml.g4dn.12xlarge", 3, status="Failed")
    assert allocated(run, found(602, change, bucket)).findings[0].severity.value == severity


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
    rate = not_none(before.lines[0].rate)
    assert (rate.usd, rate.price_age) == (Decimal("37.688"), "past")
    assert BilledJob(run, before, prices).saving_usd(SetType("ml.g5.48xlarge")) is None


def test_what_cannot_be_compared_has_no_saving() -> None:
    """An upper bound (what was really billed is not known), and an own rate with a list price."""
    spot = replace(ran(3600), purchase=Purchase.SPOT, billable_s=None)
    assert bill(spot, market()).basis == "upper_bound"
    assert BilledJob(spot, bill(spot, market()), market()).saving_usd(DropRun()) is None
    prices = with_own_prices(
        market(), Discounts(rates={"us-east-1": {"ml.m5.xlarge": Decimal("0.2")}})
    )
    run = ran(3600, "ml.m5.xlarge")
    assert BilledJob(run, bill(run, prices), prices).saving_usd(SetType("ml.m5.large")) is None


def test_severities_and_buckets_have_an_order_and_a_sum() -> None:
    """As words severities would sort by letters; possible dollars are never added to the others."""
    ranked = sorted(Severity, key=lambda severity: severity.rank)
    assert (ranked, Severity.INFO.rank) == (["info", "low", "medium", "high"], 0)
    assert [bucket for bucket in Bucket if bucket.is_counted] == ["avoidable", "lost"]
