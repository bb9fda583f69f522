"""Jobs with every word of AWS, and policies with every threshold; every rule is on."""

import math
from collections.abc import Iterator
from decimal import Decimal

from sageaudit.domain.job.job import Parent, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase
from sageaudit.structs import replace
from tests.fakes.bad_series import case, host, measured, other_kinds, with_curves, workers
from tests.fakes.families import earlier_run
from tests.fakes.jobs import phases
from tests.fakes.sound import EVERY_RULE_ON


def altered(**changes: object) -> Iterator[FamilyCase]:
    """Every worker with the same fields changed; its series are those of its hosts at work."""
    for run in (*workers(), *other_kinds()):
        yield case(replace(run, **changes))  # type: ignore[arg-type]


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
    for kind in JobKind:
        yield from altered(parent=Parent(kind.row.rollup, "arn:aws:odd"), pipeline_step="")


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
    earlier = [earlier_run(n, fingerprint="f", reason="unknown") for n in range(1, 20)]
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
