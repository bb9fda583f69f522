"""Strategies for random jobs, series and families, odd and plausible, to run every rule on."""

from datetime import timedelta
from decimal import Decimal

from hypothesis import strategies as st

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.failure_words import parse_failure
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Parent, Purchase
from sageaudit.domain.job.kinds import BILLED_KINDS, JobKind
from sageaudit.domain.job.parts import (
    DataSource,
    Direction,
    InputChannel,
    Objective,
    ProcessingOutput,
    TransformBatching,
    WarmPool,
)
from sageaudit.domain.usage.measurements import Metric, RawSeries
from sageaudit.structs import replace
from tests.fakes import jobs
from tests.fakes.bad_input import market
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, Points, job, phases

TYPES = [
    *("ml.g4dn.xlarge", "ml.g4dn.12xlarge", "ml.g5.xlarge", "ml.g5.12xlarge", "ml.p2.8xlarge"),
    *("ml.p3.2xlarge", "ml.p3.16xlarge", "ml.p4d.24xlarge", "ml.m5.4xlarge", "ml.m4.xlarge"),
    *("ml.c5.18xlarge", "ml.r5.2xlarge", "ml.t3.large", "ml.trn1.2xlarge", "ml.next.large"),
]
STEPS = ("Training", "Starting", "Downloading", "Uploading", "Interrupted")
PHASES = {
    kind: STEPS
    if kind.spec.has_transitions
    else tuple(filter(None, (kind.spec.single_phase_name,)))
    for kind in BILLED_KINDS
}
SECONDS = st.sampled_from([0, 1, 59, 60, 400, 1800, 3600, 7200, 20_000])
MAYBE_SECONDS = st.none() | SECONDS
EXACT_S = st.none() | SECONDS.map(Decimal)
FLAG = st.booleans()
USD = st.none() | st.decimals(0, 500, places=2)


HINTS = st.builds(
    Hints,
    *[FLAG] * 5,
    distribution=st.sampled_from([None, "ddp", "smddp", "horovod"]),
    loader_workers=st.sampled_from([None, 0, 1, 64]),
    schedule=st.sampled_from([None, "cosine", "linear"]),
)
CHANNELS = st.builds(
    InputChannel,
    st.sampled_from(["train", "train", "code"]),
    st.sampled_from([DataSource.S3, DataSource.S3, DataSource.FSX]),
    st.sampled_from(["File", "File", "FastFile", None]),
    st.sampled_from(["FullyReplicated", "FullyReplicated", "ShardedByS3Key", None]),
)
STATES = st.sampled_from([None, "Available", "InUse", "Reused", "Terminated"])
POOLS = st.builds(WarmPool, STATES, MAYBE_SECONDS, EXACT_S)
BATCHES = st.builds(
    TransformBatching,
    st.sampled_from([None, "SingleRecord", "MultiRecord"]),
    st.sampled_from([None, 1, 8]),
    st.sampled_from([None, 0, 6, 100]),
)
ROLLUPS = [kind.spec.rollup for kind in JobKind if kind.spec.rollup]
PARENTS = st.sampled_from(
    [*[None] * 12, *(Parent(rollup, "arn:parent") for rollup in (None, *ROLLUPS))]
)
OBJECTIVES = st.builds(
    Objective, st.sampled_from(["validation:loss", "odd"]), st.none() | st.sampled_from(Direction)
)
GROUPS = st.builds(InstanceGroup, st.sampled_from(TYPES), st.integers(0, 5))


@st.composite
def odd_jobs(draw: st.DrawFn) -> Job:
    """Draws a job of a kind that is billed; its times may contradict its phases."""
    kind = draw(st.sampled_from([JobKind.TRAINING, *PHASES]))
    names = st.sampled_from((*PHASES[kind], "Dreaming"))
    parts = draw(st.lists(st.tuples(names, SECONDS), max_size=6))
    seconds = sum(s for _, s in parts)
    ways = [*Purchase] if kind is JobKind.TRAINING else [Purchase.ON_DEMAND, Purchase.SERVERLESS]
    purchase = draw(st.sampled_from(ways))
    return job(
        kind=kind,
        status=draw(st.sampled_from([*["Completed"] * 4, "Failed", "Stopped", "Odd"])),
        secondary_status=draw(
            st.sampled_from([None, "Completed", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"])
        ),
        failure=parse_failure(draw(st.sampled_from(["", "AlgorithmError", "InternalServerError"]))),
        created_at=draw(st.sampled_from([None, START, START - timedelta(hours=1)])),
        started_at=draw(st.sampled_from([None, START, START, START])),
        ended_at=draw(
            st.sampled_from([None, START - timedelta(1), START + timedelta(seconds=seconds)])
        ),
        last_modified_at=draw(st.sampled_from([None, START])),
        phases=phases(*parts),
        groups=tuple(draw(st.lists(GROUPS, min_size=draw(st.integers(0, 1)), max_size=2))),
        purchase=purchase,
        training_s=draw(EXACT_S),
        billable_s=draw(EXACT_S),
        volume_gb=draw(st.sampled_from([None, 1, 30, 31, 500])),
        channels=tuple(draw(st.lists(CHANNELS, max_size=2))),
        max_runtime_s=draw(MAYBE_SECONDS),
        max_wait_s=draw(MAYBE_SECONDS) if purchase is Purchase.SPOT else None,
        checkpointed=draw(FLAG),
        has_artifact=draw(st.none() | FLAG),
        warm_pool=draw(st.none() | POOLS),
        custom_rules=draw(st.sampled_from([(), ("mine",)])),
        region=draw(st.sampled_from(["us-east-1", "us-east-1", "mars-north-1", None])),
        image=draw(st.sampled_from(["", ":::///@@", None, job().image, job().image])),
        groups_unknown=draw(st.sampled_from([(), (), ("group a has none",)])),
        free=draw(st.sampled_from([None, None, None, "built-in Debugger rule"])),
        final_metrics=draw(st.sampled_from([{}, {"loss": Decimal("1.7e308"), "": Decimal(0)}])),
        tags={"": "", "sageaudit:ignore": ",,"},
        hints=draw(HINTS),
        image_pull_in_download=draw(st.none() | FLAG),
        uploads=draw(st.sampled_from([(), (ProcessingOutput("out", "EndOfJob"),)])),
        batch=draw(BATCHES),
        fingerprint=draw(st.sampled_from([None, "a", "b"])),
        is_data_pinned=draw(st.none() | FLAG),
        parent=draw(PARENTS),
        entry_point=draw(st.sampled_from([None, "train.py"])),
        output_compression=draw(st.sampled_from([None, "GZIP", "NONE"])),
        metric_names=draw(st.sampled_from([(), ("validation:loss", "accuracy")])),
        objective=draw(st.none() | OBJECTIVES),
    )


@st.composite
def likely_jobs(draw: st.DrawFn) -> Job:
    """Draws a plausible job: completed, on one instance type, with consistent times."""
    odd = draw(odd_jobs())
    kind, work_s = odd.kind, draw(st.sampled_from([5, 30, 70, 150, 260])) * 60
    before = draw(st.sampled_from([30, 90, 1500])) if kind is JobKind.TRAINING else 0
    after = draw(st.sampled_from([10, 900])) if kind is JobKind.TRAINING else 0
    ran_s = before + work_s + after
    parts = (("Starting", -90), ("Downloading", before), (PHASES[kind][0], work_s))
    spot = kind is JobKind.TRAINING and draw(FLAG)
    billed = Decimal(ran_s) * (draw(st.sampled_from([1, 2, 4])) if spot else 4) / 4
    return replace(
        odd,
        status="Completed",
        secondary_status="Completed",
        failure=None,
        created_at=START - timedelta(seconds=90),
        started_at=START,
        ended_at=START + timedelta(seconds=ran_s),
        phases=phases(*parts, ("Uploading", after)),
        groups=(InstanceGroup(draw(st.sampled_from(TYPES[:-1])), draw(st.integers(1, 3))),),
        groups_unknown=(),
        region="us-east-1",
        free=None,
        purchase=Purchase.SPOT if spot else Purchase.ON_DEMAND,
        max_wait_s=172_800 if spot else None,
        training_s=Decimal(ran_s),
        billable_s=billed,
        max_runtime_s=draw(st.sampled_from([86_400, 2_419_200])),
    )


@st.composite
def values(draw: st.DrawFn, most: float) -> Points:
    """Draws minutes of idleness, then of work that may swing, then of idleness; with gaps."""
    head, tail = draw(st.sampled_from([0, 3, 20])), draw(st.sampled_from([0, 3, 20]))
    work, every = draw(st.sampled_from([0, 70, 260])), draw(st.sampled_from([1, 1, 2, 9]))
    high = draw(st.sampled_from([0.0, 0.001, 0.0625, 0.13, 0.25, 0.6, 0.97]))
    low = draw(st.sampled_from([0.0, 0.05, 0.3, 0.95]))
    gap = draw(st.sampled_from([3, 40, 999, 999]))
    busy = [most * (low if n % every else high) for n in range(work)]
    line = [0.0] * head + busy + [0.0] * tail
    return [None if n % gap == 1 else value for n, value in enumerate(line)]


@st.composite
def series(draw: st.DrawFn, job: Job) -> list[RawSeries]:
    """Draws series of most metrics for all hosts or one, and sometimes curves of the job."""
    period_s = draw(st.sampled_from([60, 60, 60, 300, 3600]))
    kind = market().types.get(job.groups[0].instance_type) if job.groups else None
    vcpu, gpus = (kind.vcpu, kind.gpus) if kind else (4, 1)
    all_hosts = range(1, 1 + min(job.instance_count or 1, 3))
    hosts = list(all_hosts) if draw(st.integers(0, 3)) else [1]
    alike = draw(FLAG)
    lines = []
    for metric, most in zip(Metric, (vcpu, 1, gpus, gpus, 1), strict=True):
        if draw(st.integers(0, 9)):
            same_line = draw(values(100.0 * most))
            for n in hosts:
                line = same_line if alike else draw(values(100.0 * most))
                name = f"{job.name}/algo-{n}"
                lines.append(jobs.series(metric, line, host=name, period_s=period_s))
    metric_names = st.sampled_from(["validation:loss", "accuracy", "odd"])
    curves = draw(st.lists(st.tuples(metric_names, values(1.0)), max_size=2))
    return lines + [RawSeries(job.name, name, START, 60, tuple(line)) for name, line in curves]


@st.composite
def families(draw: st.DrawFn, job: Job) -> tuple[AuditSummary, ...] | None:
    """Draws up to 12 earlier runs, similar or not; None for a history that was not read."""
    if not draw(st.integers(0, 3)):
        return None
    group = job.groups[0] if job.groups else InstanceGroup("ml.m5.xlarge", 1)
    same = draw(FLAG)
    shared = {
        "status": draw(st.sampled_from(["Completed", "Completed", "Failed", "Stopped"])),
        "total_usd": draw(USD),
        "lost_usd": draw(USD),
        "instance_type": group.instance_type if same else draw(st.none() | st.sampled_from(TYPES)),
        "instance_count": group.count if same else draw(st.none() | st.integers(0, 5)),
        "elapsed_s": job.elapsed_s if same else draw(EXACT_S),
        "billable_s": draw(EXACT_S),
        "purchase": job.purchase if same else draw(st.sampled_from(Purchase)),
        "fingerprint": draw(st.sampled_from([None, "a", "b"])),
        "is_data_pinned": draw(st.none() | FLAG),
        "has_artifact": draw(st.none() | FLAG),
        "reason": draw(st.sampled_from([None, "limit reached", "the code's error"])),
        "kind": job.kind.value,
    }
    days = draw(st.sampled_from([0, 1, 7]))
    return tuple(earlier_run(n * days, **shared) for n in range(1, 1 + draw(st.integers(0, 12))))
