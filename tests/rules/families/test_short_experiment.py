from __future__ import annotations

from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.job.job import InstanceGroup, Job, Parent, ParentKind, Phase, Purchase
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, market, phases
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "short-experiment"
DEAR = "ml.g4dn.12xlarge"
"""$4.89 an hour; ml.g4dn.xlarge has the same T4 for $0.736."""


def trial_run(work_s: int = 240, instance: str = DEAR, instances: int = 1, **more: Any) -> Job:
    """Two minutes of Downloading and some of Training."""
    seconds = Decimal(120 + work_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", 120), ("Training", work_s)),
        "training_s": seconds,
        "billable_s": seconds,
        "ended_at": START.replace(hour=11),
    }
    return job(instance, instances, **plain | more)


def before(work_s: int = 240, days_ago: int = 1, **changes: Any) -> EarlierRun:
    """An earlier run like it, for $0.50."""
    plain: dict[str, Any] = {
        "instance_type": DEAR,
        "phase_s": {"Downloading": Decimal(120), "Training": Decimal(work_s)},
        "total_usd": Decimal("0.50"),
    }
    return earlier_run(days_ago, **plain | changes)


FOUR = [before()] * 4


test_cases = cases(
    RULE,
    "Minutes of work on a dear type again and again are found.",
    # Five runs of four minutes; 360 s x $4.89 = $0.489 and 4 x $0.50 together.
    row(finds("5 runs in 7 days trained 4 min each (median) on 1 x ml.g4dn.12xlarge, $4.89 an "
        "hour.", fix=[("ResourceConfig.InstanceType", DEAR, "ml.g4dn.xlarge")],
        evidence={"runs_usd": Decimal("2.489")}), trial_run(), earlier=FOUR),
    "It is worth a trial and has no figure.",
    # The small type may take $4.89 / $0.736 = 6.64 times as long for the same dollars.
    row(finds(builder="possible", usd=None, severity="info", caution="…Local mode…",
        evidence={"small_type_break_even": Decimal("6.64")}), trial_run(), earlier=FOUR),
    "Exactly ten minutes are work. 599 s are minutes; so for this run and for the median.",
    row(CLEAR, trial_run(600), earlier=FOUR),
    row(FOUND, trial_run(599), earlier=FOUR),
    row(CLEAR, trial_run(), earlier=[before(600)] * 4),
    row(FOUND, trial_run(), earlier=[before(599)] * 4),
    "Exactly three dollars an hour are dear. Six instances at $0.50; five are $2.50.",
    row(FOUND, trial_run(instance="ml.odd.xlarge", instances=6), earlier=[before(instance_count=6,
        instance_type="ml.odd.xlarge")] * 4),
    row(CLEAR, trial_run(instance="ml.odd.xlarge", instances=5), earlier=[before(instance_count=5,
        instance_type="ml.odd.xlarge")] * 4),
    "Four runs are not again and again.",
    # Three earlier ones; others of the family ran elsewhere, or long ago.
    row(CLEAR, trial_run(), earlier=[*FOUR[:3], before(instance_type="ml.m5.xlarge"),
        before(instance_count=2), before(days_ago=8), before(phase_s={})]),
    row(CLEAR, trial_run(), earlier=[]),
    "A week is seven days to the second. The run ended at 11:00, an hour after START.",
    row(FOUND, trial_run(), earlier=[*FOUR[:3], before(ended_at=START.replace(day=13, hour=11))]),
    row(CLEAR, trial_run(), earlier=[*FOUR[:3], before(ended_at=START.replace(day=13, hour=10,
        minute=59))]),
    "Several instances become one. Local mode and a small type are one machine.",
    row(finds(fix=[("ResourceConfig.InstanceType", "ml.g4dn.xlarge"),
        ("ResourceConfig.InstanceCount", 1)]), trial_run(instances=2),
        earlier=[before(instance_count=2)] * 4),
    "The advised type gets no advice. It is not expensive.",
    row(CLEAR, trial_run(instance="ml.g4dn.xlarge"), earlier=FOUR),
    "Without a small type there is still local mode. No parameter is invented.",
    row(finds(fix=[], evidence={"small_type": None}), trial_run(), earlier=FOUR,
        on=market(hourly_usd={DEAR: "4.89"})),
    "An unknown cost makes the sum unknown. It is never 0.",
    row(finds(evidence={"runs_usd": None}), trial_run(), earlier=[*FOUR, before(total_usd=None)]),
    "Other runs are not its concern.",
    row("not applicable: …complete…", trial_run(status="Failed")),
    row("not applicable: …tuning job starts it…", trial_run(parent=Parent(ParentKind.TUNING,
        "arn:t"))),
    row("not applicable: …by the hour…", trial_run(purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: …by the hour…", trial_run(purchase=Purchase.SERVERLESS)),
    row("not applicable: …several groups…", trial_run(groups=(InstanceGroup(DEAR, 1),
        InstanceGroup("ml.m5.xlarge", 1)))),
    "Without phases price or history it is unknown.",
    # An end before the start has no seconds; a job of no known type has no rate.
    row("unknown: phases_missing", trial_run(phases=(Phase("Running", START, Decimal(360),
        billed=True),))),
    row("unknown: phases_missing", trial_run(phases=(Phase("Training", START, None, billed=True),
        ))),
    row("unknown: price_unknown", trial_run(instance="ml.unpriced.xlarge")),
    row("unknown: price_unknown", trial_run(groups=())),
    row("unknown: history_unread", trial_run()),
    row(CLEAR, trial_run(ended_at=None), earlier=FOUR),
)  # fmt: skip
