"""Jobs as they should never be, by what is wrong with them; every rule is on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import islice

from sageaudit.domain.job.failure_words import Failure
from sageaudit.domain.job.job import Hints, InstanceGroup, Parent, ParentKind, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import (
    CustomRule,
    DataSource,
    InputChannel,
    RuleEvaluation,
    TransformBatching,
    Upload,
    WarmPool,
)
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase
from tests.fakes.bad_series import case, host, measured, other_kinds, with_curves, workers
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, phases
from tests.fakes.sound import EVERY_RULE_ON


def altered(**changes: object) -> Iterator[FamilyCase]:
    """Every worker with the same fields changed; its series are those of its hosts at work."""
    for run in (*workers(), *other_kinds()):
        yield case(replace(run, **changes))  # type: ignore[arg-type]


TIMES: Mapping[str, Callable[[], Iterator[FamilyCase]]] = {
    "ends before it starts": lambda: altered(
        ended_at=START - timedelta(hours=1), training_s=None, billable_s=None, phases=()
    ),
    "phases end before they start": lambda: altered(
        phases=tuple(Phase(n, START, None, True) for n in ("Downloading", "Training", "Uploading"))
    ),
    "zero seconds": lambda: altered(
        ended_at=START, training_s=Decimal(0), billable_s=Decimal(0), phases=phases(("Training", 0))
    ),
    "phases of zero seconds": lambda: altered(
        phases=phases(("Starting", 0), ("Downloading", 0), ("Training", 0), ("Uploading", 0))
    ),
    "no phases": lambda: altered(phases=()),
    "phases without a start": lambda: altered(
        phases=tuple(Phase(n, None, Decimal(60), True) for n in ("Downloading", "Training"))
    ),
    "phases nobody knows": lambda: altered(phases=phases(("", 600), ("Dreaming", 6000))),
    "the same phase five times": lambda: altered(phases=phases(*[("Training", 2000)] * 5)),
    "nothing but interruptions": lambda: altered(
        purchase=Purchase.SPOT, phases=phases(*[("Interrupted", 2000)] * 5)
    ),
    "no times": lambda: altered(
        created_at=None,
        started_at=None,
        ended_at=None,
        last_modified_at=None,
        training_s=None,
        billable_s=None,
        phases=(),
    ),
    "no start": lambda: altered(started_at=None, training_s=None),
    "no end": lambda: altered(ended_at=None, training_s=None),
    "asked for after its end": lambda: altered(created_at=START + timedelta(days=9)),
    "nothing billed": lambda: altered(billable_s=Decimal(0)),
    "billed for more than it took": lambda: altered(billable_s=Decimal(99999)),
    "nobody says what is billed": lambda: altered(billable_s=None),
    "a month of minutes": lambda: islice(
        altered(
            ended_at=START + timedelta(days=28),
            training_s=Decimal(28 * 86400),
            billable_s=Decimal(28 * 86400),
            phases=phases(("Training", 28 * 86400)),
        ),
        3,
    ),
    "a fraction of a second": lambda: altered(
        training_s=Decimal("0.001"), billable_s=Decimal("0.001")
    ),
}
"""What is wrong with the times."""

_MIXED = (InstanceGroup("ml.g5.2xlarge", 1, "a"), InstanceGroup("ml.m5.xlarge", 2, "b"))
WHAT: Mapping[str, Callable[[], Iterator[FamilyCase]]] = {
    "no type": lambda: altered(groups=()),
    "a type nobody knows": lambda: altered(groups=(InstanceGroup("ml.next.96xlarge", 2),)),
    "a type without a dot": lambda: altered(groups=(InstanceGroup("local", 1),)),
    "no count": lambda: altered(groups=(InstanceGroup("ml.g5.xlarge", 0),)),
    "ten thousand hosts": lambda: altered(groups=(InstanceGroup("ml.g5.xlarge", 10_000),)),
    "two types": lambda: altered(groups=_MIXED),
    "one type in two groups": lambda: altered(groups=(_MIXED[0], _MIXED[0])),
    "a group nobody understands": lambda: altered(groups=(), groups_unknown=("group a has none",)),
    "no region": lambda: altered(region=None),
    "a region without prices": lambda: altered(region="mars-north-1"),
    "no account, no ARN": lambda: altered(account=None, arn=None),
    "no image": lambda: altered(image=None, entry_point=None),
    "an image that is none": lambda: altered(image=":::///@@", entry_point=""),
    "no volume": lambda: altered(volume_gb=None),
    "a volume of nothing": lambda: altered(volume_gb=0),
    "the largest volume": lambda: altered(volume_gb=16_384),
    "no limit": lambda: altered(max_runtime_s=None, max_wait_s=None),
    "a limit of nothing": lambda: altered(max_runtime_s=0, max_wait_s=0),
    "the longest limit": lambda: altered(max_runtime_s=2_419_200, max_wait_s=2_419_200),
    "channels of nothing": lambda: altered(
        channels=(
            InputChannel("", DataSource.S3, None, None),
            InputChannel("train", DataSource.OTHER, "?", "?"),
        )
    ),
    "the same channel twice": lambda: altered(
        channels=(InputChannel("train", DataSource.S3, "File", "FullyReplicated"),) * 2
    ),
    "no channels": lambda: altered(channels=()),
    "every hint, and odd ones": lambda: altered(
        hints=Hints(True, True, True, True, True, True, "?", -1, "?")
    ),
    "hints of nothing": lambda: altered(hints=Hints(loader_workers=0, schedule="")),
    "workers without number": lambda: altered(hints=Hints(True, loader_workers=10**9)),
    "an odd pool": lambda: altered(warm_pool=WarmPool("Odd", -1, Decimal(0))),
    "a pool of nothing": lambda: altered(warm_pool=WarmPool(None, None, None)),
    "a pool for a year": lambda: altered(
        warm_pool=WarmPool("Terminated", 10**9, Decimal(365 * 86400))
    ),
    "evaluations of nothing": lambda: altered(
        evaluations=(RuleEvaluation("r", "Odd", None), RuleEvaluation("s", "IssuesFound", None)),
        custom_rules=(CustomRule("mine", "?"),) * 2,
    ),
    "uploads of nothing": lambda: altered(uploads=(Upload("", None), Upload("x", "EndOfJob"))),
    "no batch": lambda: altered(batch=None),
    "a batch of nothing": lambda: altered(batch=TransformBatching(None, 0, 0)),
    "an odd batch": lambda: altered(batch=TransformBatching("Odd", -1, -1)),
    "enormous metrics": lambda: altered(
        final_metrics={"loss": Decimal("1.7e308"), "": Decimal(0)}, metric_names=("", "x")
    ),
    "odd tags": lambda: altered(tags={"": "", "sageaudit:ignore": ",,"}),
    "failed without a reason": lambda: altered(status="Failed", failure=None, left_artifact=None),
    "failed with one": lambda: altered(
        status="Failed", failure=Failure((), None), left_artifact=False
    ),
    "stopped by nobody": lambda: altered(status="Stopped", secondary_status=None),
    "ended by a limit": lambda: altered(status="Stopped", secondary_status="MaxRuntimeExceeded"),
    "waited too long": lambda: altered(
        status="Stopped", secondary_status="MaxWaitTimeExceeded", purchase=Purchase.SPOT
    ),
    "never started": lambda: altered(
        status="Failed", started_at=None, training_s=None, billable_s=None, phases=()
    ),
    "free": lambda: altered(free="built-in Debugger rule"),
}
"""What is wrong with what ran."""


def every_status() -> Iterator[FamilyCase]:
    """AWS's own words, and one of none."""
    words = "Completed Failed Stopped InProgress Stopping Pending DeleteFailed Odd"
    for status in words.split():
        for secondary in (None, status, "Odd"):
            yield from altered(status=status, secondary_status=secondary)


def every_kind() -> Iterator[FamilyCase]:
    """A job that says to be another kind than it looks."""
    for kind in JobKind:
        yield from altered(kind=kind)


def every_purchase() -> Iterator[FamilyCase]:
    """On demand, spot, training plan, serverless: with and without instances."""
    for purchase in Purchase:
        yield from altered(purchase=purchase)
        yield from altered(purchase=purchase, groups=(), max_wait_s=10**9, checkpointed=True)


def every_parent() -> Iterator[FamilyCase]:
    """Whatever started it."""
    for kind in ParentKind:
        yield from altered(parent=Parent(kind, "arn:aws:odd"), pipeline_step="")


def every_threshold(value: float) -> Iterator[FamilyCase]:
    """A policy that sets all thresholds to one number, or as near as their units allow."""
    limits = {
        rule.name.name: {
            one.key: min(value, 100.0) if one.unit.startswith("percent of ") else value
            for one in rule.thresholds
        }
        for rule in catalogue.load()
    }
    policy = replace(EVERY_RULE_ON, thresholds=limits)
    earlier = [earlier_run(n, fingerprint="f", reason_class="unknown") for n in range(1, 20)]
    earlier += [earlier_run(n, status="Failed") for n in range(1, 20)]
    for run in (*workers(), *other_kinds()):
        yield case(run, policy=policy, earlier=earlier)
        yield case(run, measured(run, host("train/algo-1")[:2]), policy=policy)
        unmeasured = measured(run, ())
        for changes in (
            {"status": "Failed", "left_artifact": False},
            {"purchase": Purchase.SPOT, "checkpointed": True},
            {"phases": phases(("Starting", -300), ("Training", 60)), "training_s": Decimal(60)},
            {"fingerprint": "f", "data_pinned": True},
        ):
            strange = replace(run, **changes)  # type: ignore[arg-type]
            yield case(strange, unmeasured, policy=policy, earlier=earlier)
    curve = [math.exp(-n) for n in range(150)]
    yield from (replace(one, policy=policy) for one in with_curves(curve))
