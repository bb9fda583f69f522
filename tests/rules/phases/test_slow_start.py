from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Clear
from sageaudit.domain.job.job import InstanceGroup, Job, Parent, ParentKind, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, market, phases
from tests.fakes.judging import found, outcome
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "slow-start"


def short(waits_s: int = 150, works_s: int = 300, **changes: Any) -> Job:
    """Requested `waits_s` before START, on one ml.m5.xlarge at $0.23 with 30 GB."""
    plain: dict[str, Any] = {
        "created_at": START - timedelta(seconds=waits_s),
        "ended_at": START + timedelta(seconds=works_s),
        "phases": phases(("Starting", -waits_s), ("Training", works_s)),
        "training_s": Decimal(works_s),
        "billable_s": Decimal(works_s),
        "channels": (),
    }
    return job("ml.m5.xlarge", **plain | changes)


def series_of(
    number: int = 4, gap_s: int = 600, waits_s: int = 150, works_s: int = 300, **facts: Any
) -> list[EarlierRun]:
    """Runs like it, each ended `gap_s` before the next one was requested; newest first."""
    runs, requested_at = [], short().created_at
    assert requested_at is not None
    for _ in range(number):
        ended_at = requested_at - timedelta(seconds=gap_s)
        requested_at = ended_at - timedelta(seconds=waits_s + works_s)
        plain: dict[str, Any] = {
            "ended_at": ended_at,
            "elapsed_s": Decimal(works_s),
            "phase_s": {"Starting": Decimal(waits_s), "Training": Decimal(works_s)},
        }
        runs.append(earlier_run(**plain | facts))
    return runs


test_cases = cases(
    RULE,
    "Short runs that wait long are found.",
    # 2.5 minutes for 5, every 10 minutes: minutes saved and dollars retained.
    row(finds("5 runs each waited 2 min 30 s (median) for 5 min of billed time: a warm pool "
        "saves at most that wait and costs about $0.04 a run.", builder="advice",
        fix=[("ResourceConfig.KeepAlivePeriodInSeconds", None, 660)]), short(),
        earlier=series_of()),
    "An unknown rate is said. Never 0.",
    row(finds("…costs an unknown sum a run…", evidence={"retained_usd_a_run": None}), short(),
        earlier=series_of(), on=market(hourly_usd={})),
    "Exactly half of the billed time is long.",
    # 150 of 300 s; one second less is not, here or in the family.
    row(FOUND, short(150), earlier=series_of(waits_s=150)),
    row(CLEAR, short(149), earlier=series_of(waits_s=150)),
    row(CLEAR, short(150), earlier=series_of(waits_s=149)),
    "Exactly a minute is not long. One second more is.",
    row(CLEAR, short(60, 100), earlier=series_of(waits_s=60, works_s=100)),
    row(FOUND, short(61, 100), earlier=series_of(waits_s=61, works_s=100)),
    "Waiting for capacity is waiting. Pending counts with Starting.",
    row(finds(evidence={"waited_s": 150}), short(phases=phases(("Starting", -30), ("Pending", -120),
        ("Training", 300))), earlier=series_of()),
    "Exactly half an hour is no short run.",
    # From there managed spot is advised, which keeps no pool.
    row("not applicable: …30 minutes or longer…", short(1800, 1800)),
    row(FOUND, short(1799, 1799), earlier=series_of(waits_s=1799, works_s=1799, gap_s=60)),
    "A gap of an hour is bridged and more is not.",
    # The longest keep-alive; a family of one run a day gets no such advice.
    row(finds(fix=[3600]), short(), earlier=series_of(gap_s=3600)),
    row(CLEAR, short(), earlier=series_of(gap_s=3601)),
    "The keep alive is in whole minutes.",
    # Just above the gap; runs that follow at once need one minute.
    row(finds(fix=[660]), short(), earlier=series_of(gap_s=659)),
    row(finds(fix=[720]), short(), earlier=series_of(gap_s=660)),
    row(finds(fix=[60]), short(), earlier=series_of(gap_s=0)),
    "Runs side by side cannot take over. Each was requested while the one before still ran.",
    row(CLEAR, short(), earlier=series_of(gap_s=-100)),
    "Four earlier runs are enough and three are not. And without a history nothing is known.",
    row(FOUND, short(), earlier=series_of(4)),
    row("unknown: too_few_runs", short(), earlier=series_of(3)),
    row("unknown: history_unread", short(), earlier=None),
    "Only runs like it count.",
    # Other instances match no pool; failed runs and those without times do not count.
    row("unknown: too_few_runs", short(), earlier=series_of(instance_type="ml.m5.large")),
    row("unknown: too_few_runs", short(), earlier=series_of(instance_count=2)),
    row("unknown: too_few_runs", short(), earlier=series_of(instance_type=None)),
    row("unknown: too_few_runs", short(), earlier=series_of(status="Failed")),
    row("unknown: too_few_runs", short(), earlier=series_of(elapsed_s=None)),
    row("unknown: too_few_runs", short(), earlier=series_of(phase_s={})),
    "Jobs without a pool to have are not its concern.",
    # SageMaker refuses it, or it is there already: the advised job among them.
    row("not applicable: …spot…", short(purchase=Purchase.SPOT)),
    row("not applicable: …training plan…", short(purchase=Purchase.TRAINING_PLAN)),
    row("not applicable: …serverless…", short(purchase=Purchase.SERVERLESS)),
    row("not applicable: …instance groups…", short(groups=(InstanceGroup("ml.m5.xlarge", 1),
        InstanceGroup("ml.m5.large", 1)))),
    row("not applicable: …keeps a warm pool…", short(warm_pool=WarmPool("InUse", 600, None))),
    row("not applicable: …did not complete…", short(status="Failed")),
    row("not applicable: …tuning job starts it…", short(parent=Parent(ParentKind.TUNING, "arn"))),
    row("not applicable: …processing…", short(kind=JobKind.PROCESSING)),
    "Unknown times are unknown. Never clear, and 0 billed seconds do not raise.",
    row("unknown: times_missing", short(created_at=None), earlier=series_of()),
    row("unknown: times_missing", short(ended_at=None), earlier=series_of()),
    row("unknown: times_missing", short(training_s=Decimal(0)), earlier=series_of()),
    row("unknown: times_missing", short(phases=(replace(short().phases[0], seconds=None),
        short().phases[1])), earlier=series_of()),
    "It never has positive dollars. Ten minutes retained, and 30 GB for them:",
    # 600 s x $0.23 / h, and 30 GB x 600 s of a month of 744 h x $0.14.
    row(finds(change=None, caution="…buys time, not money…",
        evidence={"retained_usd_a_run": Decimal("0.0393"), "minutes_saved_a_run": Decimal("2.5")}),
        short(), earlier=series_of()),
    "A family that kept a pool once gets no advice back to keep one.",
    row("not applicable: an earlier run of its family kept a warm pool", short(),
        earlier=[*series_of(4), earlier_run(5, retained_s=Decimal(600))]),
)  # fmt: skip


def test_half_of_the_runs_must_follow_in_time() -> None:
    """Two gaps of four; then the pool waits its 660 s in vain for the others."""
    first = series_of(2)
    later = series_of(4)[2:]
    apart = [replace(run, ended_at=run.ended_at - timedelta(days=1)) for run in later]
    apart[1] = replace(apart[1], ended_at=apart[1].ended_at - timedelta(days=1))
    what = found(RULE, short(), earlier=[*first, *apart])
    assert (what.evidence["served_percent"], what.evidence["retained_s_a_run"]) == (50, 630)
    lone = [replace(first[1], ended_at=first[1].ended_at - timedelta(hours=12)), *apart]
    assert outcome(RULE, short(), earlier=[first[0], *lone]) == Clear()
