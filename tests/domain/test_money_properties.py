"""Properties of the savings and of the idle capacity of any run."""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.audit.document import document
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
    Stage,
)
from sageaudit.domain.bill.counterfactual import Savings, Severities, allocate_savings
from sageaudit.domain.bill.finding import Bucket, Confidence, Detection, Exemption, RuleInfo
from sageaudit.domain.bill.idle_capacity import IdleCapacity, idle_capacity
from sageaudit.domain.job.job import InstanceGroup, Job, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.rules.card import Ruleset
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.jobs import HOURLY_USD, START, job, market, not_none, phases, series, usage

pytestmark = pytest.mark.money

FAST = settings(max_examples=120, deadline=None, derandomize=True, database=None)
ALMOST_NOTHING = Decimal("1e-18")
"""Division has 28 digits: two ways to one sum may differ in the last ones."""
MARKET = market()
PRICED = sorted(HOURLY_USD)
WITH_KNOWN_VOLUMES = [
    name for name in PRICED if name in MARKET.types and MARKET.types[name].is_ebs_billed is not None
]
"""Of a cluster with another type the cost of its volumes is not known, so that no parts add up."""
SECONDS = st.integers(0, 90_000)
SHARES = st.decimals("0.05", 1, places=3)
SLOWER = st.decimals(1, 4, places=2)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A finished training job with three phases, perhaps on spot, perhaps with a warm pool."""
    download_s, train, upload_s = draw(SECONDS), draw(st.integers(1, 90_000)), draw(SECONDS)
    total = download_s + train + upload_s
    share = draw(st.none() | SHARES)
    retained = draw(st.none() | SECONDS)
    pool = None if retained is None else WarmPool("Terminated", 3600, Decimal(retained))
    return job(
        draw(st.sampled_from(PRICED)),
        draw(st.integers(1, 9)),
        phases=phases(("Downloading", download_s), ("Training", train), ("Uploading", upload_s)),
        training_s=Decimal(total),
        billable_s=Decimal(total) * (share or 1),
        purchase=Purchase.SPOT if share else Purchase.ON_DEMAND,
        volume_gb=draw(st.integers(1, 4000)),
        warm_pool=pool,
        started_at=START.replace(day=draw(st.integers(1, 31))),
    )


def changes() -> st.SearchStrategy[tuple[Bucket, Change | None]]:
    """Returns every kind of fix, in a bucket that it may have."""
    names = st.sampled_from(["Downloading", "Training", "Uploading", "Other"])
    avoidable = st.one_of(
        st.builds(CutPhase, names, SECONDS.map(Decimal)),
        st.builds(SetType, st.sampled_from([*PRICED, "ml.unpriced.xlarge"]), SLOWER),
        st.builds(SetCount, st.integers(1, 9), SLOWER),
        st.builds(SetPurchase, SHARES),
    )
    return st.one_of(
        st.tuples(st.just(Bucket.AVOIDABLE), avoidable),
        st.tuples(st.just(Bucket.LOST), st.just(DropRun())),
        st.tuples(st.just(Bucket.LOST), st.just(CutPhase("Training", Decimal(0)))),
        st.tuples(st.just(Bucket.POSSIBLE), avoidable),
        st.just((Bucket.NONE, None)),
    )


@st.composite
def findings(draw: st.DrawFn) -> list[tuple[RuleInfo, Detection]]:
    """Up to seven findings of different rules, some of which subsume others."""
    made = []
    for number in draw(st.lists(st.integers(0, 9), unique=True, max_size=7)):
        bucket, change = draw(changes())
        inner = draw(st.frozensets(st.integers(number + 1, 10), max_size=2))
        name = RuleInfo(f"SA{number}", f"r{number}", subsumes=frozenset(f"r{n}" for n in inner))
        best = DropRun() if bucket is Bucket.LOST and isinstance(change, CutPhase) else None
        result = Detection(Confidence.DERIVED, bucket, "because", {}, change=change, best=best)
        made.append((name, result))
    return made


exempted = st.frozensets(st.integers(0, 9).map("r{}".format), max_size=3)


def allocate(
    job: Job, detections: Sequence[tuple[RuleInfo, Detection]], names: frozenset[str] = frozenset()
) -> Savings:
    """Returns the savings of these findings."""
    exempt = {name: Exemption("ana", None, "accepted") for name in names}
    return allocate_savings(job, bill(job, MARKET), detections, MARKET, Severities(), exempt)


@FAST
@given(jobs(), findings(), exempted)
def test_avoidable_and_lost_never_exceed_the_bill(
    job: Job, founds: list[tuple[RuleInfo, Detection]], names: frozenset[str]
) -> None:
    """No more is saved than was paid, nothing is negative, and slices sum to the bill."""
    total, savings = not_none(bill(job, MARKET).total_usd), allocate(job, founds, names)
    avoidable, lost, most = (
        not_none(usd) for usd in (savings.avoidable_usd, savings.lost_usd, savings.lost_up_to_usd)
    )
    assert avoidable + lost <= avoidable + most <= total + ALMOST_NOTHING
    assert all((f.saving_usd or 0) >= 0 for f in savings.findings)
    assert all((f.alone_usd or 0) <= total for f in savings.findings)
    *counted, rest = savings.waterfall
    counted_usd = sum((part.usd for part in counted), Decimal(0))
    assert abs(counted_usd + rest.usd - total) < ALMOST_NOTHING
    assert abs(counted_usd - avoidable - lost) < ALMOST_NOTHING
    assert rest.usd >= -ALMOST_NOTHING


@FAST
@given(jobs(), findings().flatmap(lambda f: st.tuples(st.just(f), st.permutations(f))), exempted)
def test_each_dollar_is_counted_once_and_in_its_own_bucket(
    job: Job,
    orders: tuple[list[tuple[RuleInfo, Detection]], list[tuple[RuleInfo, Detection]]],
    names: frozenset[str],
) -> None:
    """In any order of the catalogue. A superseded finding has no share, and one fix wins a
    stage.
    """
    savings = allocate(job, orders[0], names)
    assert savings == allocate(job, orders[1], names)
    assert len(savings.findings) == len(orders[0])
    assert not any(f.saving_usd for f in savings.findings if not f.is_standing)
    for bucket, total in (
        (Bucket.AVOIDABLE, savings.avoidable_usd),
        (Bucket.LOST, savings.lost_usd),
        (Bucket.POSSIBLE, savings.possible_usd),
    ):
        parts = [f.saving_usd or 0 for f in savings.findings if f.detection.bucket is bucket]
        assert sum(parts, Decimal(0)) == total
    # One of several purchases wins, and one of types and fewer hosts; the others name it.
    for stages in ((Stage.COUNT, Stage.TYPE), (Stage.PURCHASE,)):
        rivals = [
            f
            for f in savings.findings
            if f.detection.change is not None
            and f.detection.change.stage in stages
            and not (f.exempt or f.subsumed_by)
        ]
        winners = {finding.rule.name for finding in rivals if not finding.superseded_by}
        assert len(winners) == (1 if rivals else 0)
        assert {f.superseded_by for f in rivals if f.superseded_by} <= winners


@FAST
@given(jobs(), st.integers(1, 50))
def test_the_bill_scales_with_the_instances(job: Job, times: int) -> None:
    """N times the instances cost n times as much, to the last digits."""
    [group] = job.groups
    more = replace(job, groups=(InstanceGroup(group.instance_type, group.count * times),))
    one, many = (not_none(bill(run, MARKET).total_usd) for run in (job, more))
    assert abs(one * times - many) < ALMOST_NOTHING


@FAST
@given(jobs(), st.lists(st.sampled_from(WITH_KNOWN_VOLUMES), min_size=2, max_size=2, unique=True))
def test_the_types_of_a_cluster_split_its_bill(job: Job, names: list[str]) -> None:
    """The bill without one type is the saving of removing the other one."""
    both = replace(job, groups=tuple(InstanceGroup(name, 2) for name in names))
    whole, *parts = (
        not_none(bill(run, MARKET).total_usd)
        for run in (both, *(SetTypeCount(name, 0).apply(both) for name in names))
    )
    assert abs(sum(parts, Decimal(0)) - whole) < ALMOST_NOTHING


@FAST
@given(jobs(), st.integers(0, 90_000))
def test_more_seconds_never_cost_less(job: Job, extra: int) -> None:
    """Seconds of training, of retention or of both. Billed phases sum to compute."""
    longer = replace(
        job,
        training_s=(job.training_s or 0) + Decimal(extra),
        billable_s=(job.billable_s or 0) + Decimal(extra),
        warm_pool=job.warm_pool
        and replace(job.warm_pool, retained_s=(job.warm_pool.retained_s or 0) + Decimal(extra)),
    )
    billed = bill(job, MARKET)
    assert not_none(bill(longer, MARKET).total_usd) >= not_none(billed.total_usd) - ALMOST_NOTHING
    assert sum((not_none(cost.usd) for cost in billed.phases), Decimal(0)) == billed.compute_usd


@st.composite
def interrupted(draw: st.DrawFn) -> Job:
    """A spot run of two to four attempts, each with a download; only the first one is charged."""
    parts = [("Starting", -60)]
    for _ in range(draw(st.integers(1, 3))):
        parts += [("Downloading", draw(SECONDS)), ("Training", draw(st.integers(1, 90_000)))]
        parts += [("Interrupted", -draw(st.integers(1, 9000)))]
    all_phases = phases(
        *parts, ("Downloading", draw(SECONDS)), ("Training", draw(st.integers(1, 9000)))
    )
    first = next(phase for phase in all_phases if phase.name == "Downloading")
    charged = tuple(
        replace(phase, billed=False, is_repeated=True)
        if phase.name == "Downloading" and phase is not first
        else phase
        for phase in all_phases
    )
    run = job(
        draw(st.sampled_from(PRICED)),
        draw(st.integers(1, 9)),
        phases=charged,
        purchase=Purchase.SPOT,
        volume_gb=draw(st.integers(1, 4000)),
    )
    ran_s = not_none(run.ran_s)
    return replace(run, training_s=ran_s, billable_s=ran_s * draw(SHARES))


@FAST
@given(interrupted())
def test_a_repeated_download_costs_nothing_and_its_cut_saves_nothing(job: Job) -> None:
    """The other phases sum exactly to compute. Cutting a phase saves at most what it costs."""
    billed = bill(job, MARKET)
    assert sum((not_none(cost.usd) for cost in billed.phases), Decimal(0)) == billed.compute_usd
    assert all(cost.usd == 0 for cost in billed.phases if not cost.phase.billed)
    billed_job = BilledJob(job, billed, MARKET)
    first = next(cost for cost in billed.phases if cost.phase.name == "Downloading")
    longer = CutPhase("Downloading", not_none(first.phase.seconds) + 90_000)
    cut_usd = not_none(billed.compute_usd) - not_none(billed_job.compute_usd(longer))
    assert abs(cut_usd - not_none(first.usd)) <= len(job.phases) * Decimal("0.000001")
    only_repeated = replace(job, phases=tuple(p for p in job.phases if p is not first.phase))
    billed_job = BilledJob(only_repeated, bill(only_repeated, MARKET), MARKET)
    assert billed_job.saving_usd(CutPhase("Downloading", Decimal(90_000))) == 0


GPUS = {"ml.g4dn.xlarge": 1, "ml.g5.2xlarge": 1, "ml.g4dn.12xlarge": 4}
VCPUS = {"ml.m5.large": 2, "ml.m5.4xlarge": 16, "ml.unpriced.xlarge": 4}
MINUTES = 10
POINTS = st.lists(st.floats(0, 100), min_size=MINUTES, max_size=MINUTES)
GAPS = st.frozensets(st.integers(0, MINUTES - 1), max_size=3)
"""As many missing points as a judgement allows."""
Hosts = list[list[float | None]]
"""The points of each host, 0..100 of all its devices."""


@st.composite
def runs(draw: st.DrawFn) -> tuple[Job, Hosts]:
    """A run of ten minutes of Training on one to three hosts, with enough points on each."""
    instance, count = draw(st.sampled_from([*GPUS, *VCPUS])), draw(st.integers(1, 3))
    download_s, upload_s = draw(st.integers(0, 4000)), draw(st.integers(0, 4000))
    total = download_s + 60 * MINUTES + upload_s
    spot, plan = draw(st.none() | st.integers(0, total)), draw(st.booleans())
    purchase = Purchase.TRAINING_PLAN if plan else Purchase.ON_DEMAND
    run = job(
        instance,
        count,
        phases=phases(
            ("Training", 60 * MINUTES), ("Downloading", download_s), ("Uploading", upload_s)
        ),
        training_s=Decimal(total),
        billable_s=Decimal(total if spot is None else spot),
        purchase=purchase if spot is None else Purchase.SPOT,
    )
    hosts: Hosts = [list(draw(POINTS)) for _ in range(count)]
    for line in hosts:
        for gap in draw(GAPS):
            line[gap] = None
    return run, hosts


def measurements_of(job: Job, hosts: Hosts) -> Measurements:
    """Returns GPU points of a GPU job, CPU points of any other."""
    instance = job.groups[0].instance_type
    metric = Metric.GPU if instance in GPUS else Metric.CPU
    each = (GPUS | VCPUS)[instance]
    return usage(
        job,
        *(
            series(metric, [None if v is None else v * each for v in line], host=f"train/algo-{n}")
            for n, line in enumerate(hosts, 1)
        ),
    )


def idle_of(
    job: Job, hosts: Hosts, result: Sequence[tuple[RuleInfo, Detection]] = ()
) -> IdleCapacity:
    """Returns the idle capacity; these runs have enough points."""
    savings = allocate(job, result)
    figure = idle_capacity(job, measurements_of(job, hosts), bill(job, MARKET), MARKET, savings)
    assert isinstance(figure, IdleCapacity)
    return figure


@FAST
@given(runs(), findings())
def test_what_was_paid_was_worked_or_idle(
    run: tuple[Job, Hosts], result: list[tuple[RuleInfo, Detection]]
) -> None:
    """Nothing is negative. The value is at most the compute lines, and at most that much is
    counted.
    """
    figure = idle_of(*run, result)
    assert abs(figure.idle + figure.worked - figure.paid) < ALMOST_NOTHING
    assert 0 <= figure.worked <= figure.paid
    assert figure.unit == ("gpu_hours" if run[0].groups[0].instance_type in GPUS else "vcpu_hours")
    if figure.list_usd is None or figure.counted_usd is None:
        assert figure.list_usd is figure.counted_usd is None
        return
    assert 0 <= figure.counted_usd <= figure.list_usd
    compute = bill(replace(run[0], purchase=Purchase.ON_DEMAND), MARKET).compute_usd
    assert figure.list_usd <= not_none(compute) + ALMOST_NOTHING
    savings = allocate(run[0], result)
    if savings.avoidable_usd is not None and savings.lost_usd is not None:
        in_sums = savings.avoidable_usd + savings.lost_usd
        assert figure.counted_usd <= in_sums + ALMOST_NOTHING


@FAST
@given(runs(), st.integers(1, 90_000))
def test_an_idle_end_that_is_longer_finds_more_idle_hours(
    run: tuple[Job, Hosts], more_s: int
) -> None:
    """An upload is longer by these seconds, all of them billed."""
    shorter_job, hosts = run
    total_s = (shorter_job.training_s or Decimal(0)) + more_s
    longer = replace(
        shorter_job,
        phases=(*shorter_job.phases, replace(shorter_job.phases[-1], seconds=Decimal(more_s))),
        training_s=total_s,
        billable_s=total_s,
        purchase=Purchase.ON_DEMAND,
    )
    before = replace(shorter_job, billable_s=shorter_job.training_s, purchase=Purchase.ON_DEMAND)
    after = idle_of(longer, hosts)
    assert after.idle > idle_of(before, hosts).idle
    assert abs(after.worked - idle_of(before, hosts).worked) < ALMOST_NOTHING


@FAST
@given(runs())
def test_the_figures_of_the_document_add_up(run: tuple[Job, Hosts]) -> None:
    """Rounded to 6 decimals, worked and idle are still exactly what was paid."""
    finished_job, hosts = run
    audit = audit_job(
        finished_job,
        measurements_of(finished_job, hosts),
        MARKET,
        Policy(),
        Ruleset((), "none"),
        now=START,
    )
    written = not_none(document(audit)["idle_capacity"])
    assert written["worked"] + written["idle"] == written["paid"]
    assert min(written["worked"], written["idle"]) >= 0
