from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import InstanceGroup, Job, Parent, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel, WarmPool
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, phases
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, cannot_judge, does_not_apply, finds

RULE = "warm-pool-candidate"
WAITED_S, PULLED_S, WORKED_S = 200, 300, 900
KEEP = "ResourceConfig.KeepAlivePeriodInSeconds"
STREAMED = (InputChannel("train", DataSource.S3, "FastFile", "FullyReplicated"),)
COPIED = (InputChannel("train", DataSource.S3, "File", "FullyReplicated"),)
MOUNTED = (InputChannel("train", DataSource.EFS, "File", None),)


def run(worked_s: int = WORKED_S, pulled_s: int = PULLED_S, **facts: Any) -> Job:
    """Two hosts of $0.23 an hour: 200 s of waiting, 300 s of image pull, 15 minutes of work."""
    seconds = Decimal(pulled_s + worked_s)
    plain: dict[str, Any] = {
        "created_at": START - timedelta(seconds=WAITED_S),
        "ended_at": START + timedelta(seconds=float(seconds)),
        "phases": phases(
            ("Starting", -WAITED_S), ("Downloading", pulled_s), ("Training", worked_s)
        ),
        "training_s": seconds,
        "billable_s": seconds,
        "volume_gb": 0,
        "channels": STREAMED,
    }
    return job("ml.m5.xlarge", 2, **plain | facts)


def before(*gaps_s: int, worked_s: int = WORKED_S, **facts: Any) -> tuple[AuditSummary, ...]:
    """The same runs, newest first; `gaps_s`: from the end of each to the request of the next."""
    requested, runs = START - timedelta(seconds=WAITED_S), []
    phase_s = {"Starting": WAITED_S, "Downloading": PULLED_S, "Training": worked_s}
    elapsed_s = PULLED_S + worked_s
    for gap_s in gaps_s:
        ended_at = requested - timedelta(seconds=gap_s)
        took: dict[str, Any] = {
            "instance_count": 2,
            "elapsed_s": Decimal(elapsed_s),
            "phase_s": {name: Decimal(seconds) for name, seconds in phase_s.items()},
        }
        runs.append(earlier_run(ended_at=ended_at, **took | facts))
        requested = ended_at - timedelta(seconds=WAITED_S + elapsed_s)
    return tuple(runs)


verdict = partial(answer, RULE)


def test_a_pool_that_costs_less_than_the_pulls_that_it_spares_is_worth_a_trial() -> None:
    # Four runs, a minute apart. Two minutes of keep-alive serve each gap: 3 x 60 s of pool, and
    # 120 s of the last one. Spared are 3 x 200 s of waiting and 3 x 300 s of pulls on two hosts:
    # 900 s x 2 x $0.23 / 3600 = $0.115, less 300 s of pool, $0.0383. A run in the mean: 150 s.
    assert verdict(run(), earlier=before(60, 60, 60)) == finds(
        "A warm pool kept for 2 min would have avoided 3 of the family's last 4 starts: "
        "10 min of waiting and 15 min of billed image pulls ($0.12), for 5 min of pool ($0.04).",
        builder="possible",
        usd="0.019167",
        fix=[(KEEP, None, 120)],
        evidence={
            "runs": 4,
            "spared_starts": 3,
            "spared_waiting_s": 600,
            "spared_pulls_s": 900,
            "pool_s": 300,
        },
        caution="…mean of these runs…quota…",
    )


def test_a_spared_pull_also_spares_the_volumes_of_its_time() -> None:
    # 150 s less at $0.46 and, for 60 GB at $0.14 in May, 60 x 0.14 / 744 = $0.0113 an hour.
    assert verdict(run(volume_gb=30), earlier=before(60, 60, 60)) == finds(usd="0.019637")


def test_a_pool_that_costs_more_than_the_pulls_buys_less_waiting_and_has_no_dollars() -> None:
    # Gaps of 5 minutes: 3 x 300 s and 360 s of pool, 21 min ($0.16), for 15 min of pulls ($0.12).
    assert verdict(run(), earlier=before(300, 300, 300)) == finds(
        "A warm pool kept for 6 min would have avoided 3 of the family's last 4 starts: "
        "10 min of waiting and 15 min of billed image pulls ($0.12), for 21 min of pool ($0.16).",
        builder="advice",
        usd=None,
        fix=[(KEEP, None, 360)],
        caution="The pool costs $0.05 more than the pulls that it avoids: it saves waiting, not "
        "dollars…",
    )


def test_where_runs_come_later_than_a_start_takes_no_pool_is_better_than_one() -> None:
    assert verdict(run(), earlier=before(600, 600, 600)) == CLEAR
    assert verdict(run(), earlier=before(86_400, 86_400, 86_400)) == CLEAR


def test_a_long_break_between_two_bursts_costs_one_keep_alive() -> None:
    # 60, a day, 60, 60: 3 x 60 s, and 120 s for the break and for the last pool.
    assert verdict(run(), earlier=before(60, 86_400, 60, 60)) == finds(
        "…3 of the family's last 5 starts…for 7 min of pool…", usd="0.012267"
    )


def test_runs_side_by_side_take_no_pool_over() -> None:
    assert verdict(run(), earlier=before(-600, -600, -600)) == CLEAR


def test_600_s_of_waiting_in_all_are_worth_a_pool_and_less_is_not() -> None:
    # 3 starts of 200 s, and no pull.
    result = verdict(
        run(pulled_s=0), earlier=before(20, 20, 20, phase_s={"Starting": Decimal(200)})
    )
    assert result == finds("…10 min of waiting, for…", without="pulls (")
    result = verdict(
        run(pulled_s=0),
        limits={"min_saved_start_s": 601},
        earlier=before(20, 20, 20, phase_s={"Starting": Decimal(200)}),
    )
    assert result == CLEAR


def test_spared_starts_of_a_tenth_of_the_work_are_found_and_of_less_are_not() -> None:
    # 3 starts of 200 + 300 s are 1,500 s, a tenth of 4 runs of 3,750 s.
    result = verdict(run(3750), earlier=before(60, 60, 60, worked_s=3750))
    assert result == finds("…3 of the family's last 4 starts…")
    assert verdict(run(3760), earlier=before(60, 60, 60, worked_s=3750)) == CLEAR


def test_a_pull_that_cannot_be_told_from_data_is_left_out() -> None:
    # Copied, mounted, longer than any pull, or before 2024 inside Training.
    for channels in (COPIED, MOUNTED):
        result = verdict(run(channels=channels), earlier=before(60, 60, 60))
        assert result == finds(
            "…10 min of waiting, for 5 min of pool…",
            builder="advice",
            evidence={"spared_pulls_s": 0},
        )
    result = verdict(run(pulled_s=1801), earlier=before(60, 60, 60))
    assert result == finds(evidence={"spared_pulls_s": 600})


def test_only_the_last_10_runs_are_looked_at_as_older_ones_had_another_rhythm() -> None:
    assert verdict(run(), earlier=before(*[60] * 30)) == finds("…9 of the family's last 10 starts…")


def test_runs_on_other_instances_on_spot_or_with_a_pool_of_their_own_are_left_out() -> None:
    for facts in (
        {"purchase": Purchase.SPOT},
        {"instance_count": 1},
        {"retained_s": Decimal(60)},
    ):
        result = verdict(run(), earlier=before(60, 60, 60, **facts))
        assert result == cannot_judge("too_few_runs: 1 runs…")


def test_2_earlier_runs_show_no_habit() -> None:
    assert verdict(run(), earlier=before(60, 60)) == cannot_judge("too_few_runs: 2 earlier runs…")
    assert verdict(run()) == cannot_judge("history_unread")


def test_a_pool_is_not_to_be_had_or_is_there_already() -> None:
    result = verdict(run(warm_pool=WarmPool("Reused", 600, Decimal(9))), earlier=before(60, 60, 60))
    assert result == does_not_apply("it keeps a warm pool…")
    result = verdict(run(purchase=Purchase.SPOT), earlier=before(60, 60, 60))
    assert result == does_not_apply("managed spot…")
    assert verdict(run(purchase=Purchase.TRAINING_PLAN)) == does_not_apply("…prepaid")
    assert verdict(run(purchase=Purchase.SERVERLESS)) == does_not_apply("it is serverless")
    result = verdict(
        run(groups=(InstanceGroup("ml.m5.xlarge", 1, "a"), InstanceGroup("ml.m5.2xlarge", 1, "b")))
    )
    assert result == does_not_apply("…several groups")
    result = verdict(run(parent=Parent(JobKind.TUNING.spec.rollup, "arn:t")))
    assert result == does_not_apply("…one search…")
    assert verdict(run(kind=JobKind.PROCESSING)) == does_not_apply("…processing…")


def test_without_a_rate_there_are_minutes_and_dollars_are_unknown() -> None:
    result = verdict(
        run(groups=(InstanceGroup("ml.unpriced.xlarge", 2),)),
        earlier=before(60, 60, 60, instance_type="ml.unpriced.xlarge"),
    )
    assert result == finds(
        "…15 min of billed image pulls, for 5 min of pool.", usd=None, builder="possible"
    )


def test_a_run_whose_times_are_not_known_is_left_out() -> None:
    result = verdict(
        replace(run(), phases=(), training_s=None, started_at=None, ended_at=None),
        earlier=before(60, 60, 60),
    )
    assert result == cannot_judge("too_few_runs…")
