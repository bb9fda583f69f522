"""Random jobs, and clusters of growing size: every rule answers, in time that grows with them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from types import FrameType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.earlier import EarlierRun
from sageaudit.domain.finding import Clear, Found, Outcome
from sageaudit.domain.job import (
    Batch,
    Channel,
    Hints,
    InstanceGroup,
    Job,
    Purchase,
    Source,
    Upload,
    WarmPool,
)
from sageaudit.domain.measurements import Metric, RawSeries
from sageaudit.domain.ref import JobKind
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase, JobCase, Rule
from sageaudit.rules.judge import judge
from tests.fakes.bad_series import Values, case, measured, raw
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, phases, ran
from tests.fakes.sound import sound

ANY = settings(max_examples=150, deadline=None, derandomize=True, database=None)
TYPES = [
    *("ml.g4dn.xlarge", "ml.g4dn.12xlarge", "ml.g5.xlarge", "ml.g5.12xlarge", "ml.p2.8xlarge"),
    *("ml.p3.2xlarge", "ml.p3.16xlarge", "ml.p4d.24xlarge", "ml.m5.4xlarge", "ml.m4.xlarge"),
    *("ml.c5.18xlarge", "ml.r5.2xlarge", "ml.t3.large", "ml.trn1.2xlarge", "ml.next.large"),
]
PHASES = {
    JobKind.TRAINING: (
        "Starting",
        "Pending",
        "Downloading",
        "Training",
        "Uploading",
        "Interrupted",
    ),
    JobKind.PROCESSING: ("Processing",),
    JobKind.TRANSFORM: ("Transform",),
}
SECONDS = st.sampled_from([0, 1, 59, 60, 400, 1800, 3600, 7200, 20_000])
MAYBE_SECONDS = st.none() | SECONDS
EXACT_S = st.none() | SECONDS.map(Decimal)
FLAG = st.booleans()
USD = st.none() | st.decimals(0, 500, places=2)


@st.composite
def hints(draw: st.DrawFn) -> Hints:
    """Any signs in any combination."""
    deep, half, flash, compiler, checkpoints, sampler = (draw(FLAG) for _ in range(6))
    return Hints(
        deep,
        half,
        flash,
        compiler,
        checkpoints,
        sampler,
        distribution=draw(st.sampled_from([None, "ddp", "smddp", "horovod"])),
        loader_workers=draw(st.sampled_from([None, 0, 1, 64])),
        schedule=draw(st.sampled_from([None, "cosine", "linear"])),
    )


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A job of one of three kinds. Its times need not agree with its phases."""
    kind = draw(st.sampled_from([JobKind.TRAINING, *PHASES]))
    parts = draw(st.lists(st.tuples(st.sampled_from(PHASES[kind]), SECONDS), max_size=6))
    groups = st.builds(InstanceGroup, st.sampled_from(TYPES), st.integers(0, 5))
    seconds = sum(s for _, s in parts)
    channels = st.builds(
        Channel,
        st.sampled_from(["train", "code", "validation"]),
        st.sampled_from(Source),
        st.sampled_from([None, "File", "FastFile", "Pipe"]),
        st.sampled_from([None, "FullyReplicated", "ShardedByS3Key"]),
    )
    pools = st.builds(
        WarmPool,
        st.sampled_from([None, "Available", "InUse", "Reused", "Terminated"]),
        MAYBE_SECONDS,
        EXACT_S,
    )
    return job(
        kind=kind,
        status=draw(st.sampled_from([*["Completed"] * 4, "Failed", "Stopped"])),
        secondary_status=draw(
            st.sampled_from([None, "Completed", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"])
        ),
        failure=draw(st.sampled_from([None, "AlgorithmError: exit 1", "InternalServerError"])),
        created_at=draw(st.sampled_from([None, START, START - timedelta(hours=1)])),
        started_at=draw(st.sampled_from([None, START, START, START])),
        ended_at=draw(
            st.sampled_from([None, START - timedelta(1), START + timedelta(seconds=seconds)])
        ),
        phases=phases(*parts),
        groups=tuple(draw(st.lists(groups, min_size=draw(st.integers(0, 1)), max_size=2))),
        purchase=draw(st.sampled_from(Purchase)),
        training_s=draw(EXACT_S),
        billable_s=draw(EXACT_S),
        volume_gb=draw(st.sampled_from([None, 1, 30, 31, 500])),
        channels=tuple(draw(st.lists(channels, max_size=2))),
        max_runtime_s=draw(MAYBE_SECONDS),
        max_wait_s=draw(MAYBE_SECONDS) if kind is JobKind.TRAINING else None,
        checkpointed=draw(FLAG),
        left_artifact=draw(st.none() | FLAG),
        warm_pool=draw(st.none() | pools),
        custom_rules=draw(st.sampled_from([(), ("mine",)])),
        hints=draw(hints()),
        image_pull_in_download=draw(st.none() | FLAG),
        profiled=draw(st.none() | FLAG),
        uploads=draw(st.sampled_from([(), (Upload("out", "EndOfJob"),)])),
        batch=draw(
            st.none()
            | st.builds(
                Batch,
                st.sampled_from([None, "SingleRecord", "MultiRecord"]),
                st.sampled_from([None, 1, 8]),
                st.sampled_from([None, 0, 6, 100]),
            )
        ),
        fingerprint=draw(st.sampled_from([None, "a", "b"])),
        data_pinned=draw(st.none() | FLAG),
    )


@st.composite
def values(draw: st.DrawFn, most: float) -> Values:
    """Minutes of idleness, of work that may swing, and of idleness again; some not there."""
    head, work, tail = (draw(st.integers(0, longest)) for longest in (20, 90, 20))
    high, low = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    every, gap = draw(st.integers(1, 9)), draw(st.integers(2, 40))
    busy = [most * (low if n % every else high) for n in range(work)]
    line = [0.0] * head + busy + [0.0] * tail
    return [None if n % gap == 1 else value for n, value in enumerate(line)]


@st.composite
def series(draw: st.DrawFn, of: Job) -> list[RawSeries]:
    """Some metrics of some hosts, with curves of its own."""
    period_s = draw(st.sampled_from([60, 60, 60, 300, 3600]))
    lines = [
        raw(metric, draw(values(most)), f"{of.name}/algo-{number}", period_s)
        for metric, most in zip(Metric, (1600, 100, 400, 400, 100), strict=True)
        for number in range(1, 1 + draw(st.integers(0, 2)))
    ]
    told = st.sampled_from(["validation:loss", "accuracy", "odd"])
    curves = draw(st.lists(st.tuples(told, values(1.0)), max_size=2))
    return lines + [RawSeries(of.name, name, START, 60, tuple(line)) for name, line in curves]


@st.composite
def families(draw: st.DrawFn) -> tuple[EarlierRun, ...] | None:
    """Up to a dozen runs, or a history that nobody read."""
    if draw(FLAG):
        return None
    numbers = range(1, 1 + draw(st.integers(0, 12)))
    one = {
        "status": draw(st.sampled_from(["Completed", "Failed", "Stopped"])),
        "total_usd": draw(USD),
        "lost_usd": draw(USD),
        "instance_type": draw(st.none() | st.sampled_from(TYPES)),
        "instance_count": draw(st.none() | st.integers(0, 5)),
        "elapsed_s": draw(EXACT_S),
        "billable_s": draw(EXACT_S),
        "purchase": draw(st.sampled_from(Purchase)),
        "fingerprint": draw(st.sampled_from([None, "a", "b"])),
        "data_pinned": draw(st.none() | FLAG),
        "left_artifact": draw(st.none() | FLAG),
        "reason_class": draw(st.sampled_from([None, "limit reached", "the code's error"])),
    }
    days = draw(st.sampled_from([0, 1, 7]))
    return tuple(earlier_run(n * days, **one) for n in numbers)


@ANY
@given(st.data())
def test_any_job_gets_an_answer_of_every_rule(data: st.DataObject) -> None:
    """None fails, what they find can be read and recomputed, and no dollar is counted twice."""
    of = data.draw(jobs())
    seen = measured(of, data.draw(series(of)))
    sound(case(of, seen, earlier=data.draw(families())))


def clusters(instance: str, kind: JobKind, hosts: int) -> FamilyCase:
    """An hour of hosts of four habits: some work all the time, some less and less."""
    run = ran(
        3600,
        instance,
        hosts,
        kind=kind,
        phases=phases((PHASES[kind][-1] if kind is not JobKind.TRAINING else "Training", 3600)),
        batch=Batch("SingleRecord", 1, 6),
        uploads=(Upload("out", "EndOfJob"),),
        volume_gb=500,
        hints=Hints(deep_learning=True),
    )
    line = [0.0] * 10 + [1.0, 0.2] * 20 + [0.0] * 10
    lines = [
        raw(metric, [most * (1 - (n % 4) / 5) * value for value in line], f"train/algo-{n + 1}")
        for n in range(hosts)
        for metric, most in zip(Metric, (300, 30, 400, 60, 5), strict=True)
    ]
    return case(run, measured(run, lines), earlier=[earlier_run(n) for n in range(1, 12)])


@contextmanager
def counting() -> Iterator[list[int]]:
    """Counts the lines that run inside: unlike seconds, the same on every machine."""
    count, before = [0], sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        count[0] += 1
        return trace

    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def work(rule: Rule, of: FamilyCase) -> tuple[type[Outcome], int]:
    """What a rule answers, and how many lines it ran for it."""
    judge(of, [rule])
    with counting() as count:
        [(_, outcome)] = judge(of, [rule])
    return type(outcome), count[0]


def test_no_rule_compares_each_host_with_each_other() -> None:
    """Eight times the hosts are about eight times the work; pairs of hosts would be 64 times."""
    judged: set[str] = set()
    for instance, kind in (
        ("ml.g5.48xlarge", JobKind.TRAINING),
        ("ml.p3.16xlarge", JobKind.TRAINING),
        ("ml.r5.24xlarge", JobKind.TRAINING),
        ("ml.r5.24xlarge", JobKind.PROCESSING),
        ("ml.r5.24xlarge", JobKind.TRANSFORM),
    ):
        few, many = (clusters(instance, kind, hosts) for hosts in (8, 64))
        for rule in catalogue.load():
            if issubclass(rule.scope, JobCase):
                (answer, lines), (same, more) = work(rule, few), work(rule, many)
                assert same is answer, rule.name
                assert more <= 12 * lines, rule.name
                if rule.needs and answer in {Found, Clear}:
                    judged.add(rule.name.name)
    assert judged >= {rule.name.name for rule in catalogue.load() if rule.needs}
