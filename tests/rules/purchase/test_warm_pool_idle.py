from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun, RunFacts
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from tests.fakes.jobs import START, job, phases
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "warm-pool-idle"


def pooled(retained_s: int | None = 3600, status: str | None = "Terminated", **more: Any) -> Job:
    """Two hosts of $0.23 an hour; 2 minutes of download, 58 of training; no volume."""
    retained = None if retained_s is None else Decimal(retained_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", 120), ("Training", 3480)),
        "training_s": Decimal(3600),
        "billable_s": Decimal(3600),
        "volume_gb": 0,
        "warm_pool": WarmPool(status, 3600, retained),
    }
    return job("ml.m5.xlarge", 2, **plain | more)


def pools(*gaps_s: int) -> tuple[EarlierRun, ...]:
    """Earlier runs of 10 minutes, newest first, each with a pool that the next run took over.

    `gaps_s`: from the end of each to the request of the next one, the newest first.
    """
    begun, runs = START - timedelta(seconds=120), []
    for number, gap_s in enumerate(gaps_s):
        ended = begun - timedelta(seconds=gap_s)
        facts = RunFacts(
            Purchase.ON_DEMAND,
            elapsed_s=Decimal(600),
            retained_s=Decimal(gap_s),
            instance_type="ml.m5.xlarge",
            instance_count=2,
            phase_s={"Starting": Decimal(20), "Downloading": Decimal(30), "Training": Decimal(570)},
        )
        runs.append(
            EarlierRun(
                f"run-{number}",
                "training",
                "Completed",
                "train",
                None,
                ended,
                Decimal(1),
                Decimal(0),
                Decimal(0),
                facts,
            )
        )
        begun = ended - timedelta(seconds=620)
    return tuple(runs)


def test_a_pool_that_nobody_took_is_found() -> None:
    """An hour on two hosts is $0.46: the next job downloads again either way."""
    finding = priced(RULE, pooled())
    assert finding.found.summary == (
        "The warm pool was retained for 1 h on 2 x ml.m5.xlarge and never reused."
    )
    assert usd(finding.saving_usd) == "0.460000"
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.MEASURED,
        Bucket.AVOIDABLE,
    )
    [fix] = finding.found.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.KeepAlivePeriodInSeconds", 3600, None,
    )  # fmt: skip


def test_the_pools_volumes_are_saved_too() -> None:
    """30 GB on two hosts for an hour of May's 744 at $0.14: 60 / 744 x 0.14."""
    finding = priced(RULE, pooled(volume_gb=30))
    assert usd(finding.saving_usd) == usd(Decimal("0.46") + Decimal(60) / 744 * Decimal("0.14"))


def test_a_pool_as_long_as_the_download_is_clear() -> None:
    """Exactly 120 s cost no more than they save; one second more does."""
    assert outcome(RULE, pooled(120)) == Clear()
    assert isinstance(outcome(RULE, pooled(121)), Found)


def test_a_pool_of_no_seconds_is_clear() -> None:
    """Also where nothing was downloaded."""
    run = pooled(0, phases=phases(("Training", 3600)))
    assert outcome(RULE, run) == Clear()


def test_a_pool_that_was_taken_over_soon_is_clear() -> None:
    """Within twice the 10 minutes that a start may take."""
    assert outcome(RULE, pooled(140, "Reused")) == Clear()
    assert outcome(RULE, pooled(1199, "Reused")) == Clear()


def test_a_pool_that_waited_much_longer_than_a_start_takes_is_found() -> None:
    """57 minutes for one start: two hosts at $0.46 an hour, less the 10 minutes of that start."""
    finding = priced(RULE, pooled(3420, "Reused"))
    assert finding.found.summary == (
        "The warm pool waited 57 min on 2 x ml.m5.xlarge until another run took it over, "
        "to save a start of at most 10 min."
    )
    assert usd(finding.saving_usd) == usd(Decimal("0.46") * (3420 - 600) / 3600)
    assert [usd(end) for end in finding.range_usd or ()] == [
        usd(Decimal("0.46") * (3420 - 600) / 3600),
        usd(Decimal("0.46") * 3420 / 3600),
    ]
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.DERIVED,
        Bucket.AVOIDABLE,
    )


def test_without_a_familys_gaps_the_keep_alive_becomes_as_long_as_a_start() -> None:
    """Ten minutes: a pool that ends then never costs more than twice the best choice."""
    [fix] = found(RULE, pooled(3420, "Reused")).fix
    assert (fix.old, fix.new) == (3600, 600)


def test_a_long_start_makes_a_longer_wait_worth_it() -> None:
    """20 minutes of Starting and Downloading: 39 minutes of pool are under twice that."""
    split = phases(("Starting", -600), ("Downloading", 600), ("Training", 3000))
    assert outcome(RULE, pooled(2340, "Reused", phases=split)) == Clear()
    assert isinstance(outcome(RULE, pooled(2400, "Reused", phases=split)), Found)


def test_exactly_two_starts_are_too_long() -> None:
    """1,200 s; the threshold is the policy's."""
    assert isinstance(outcome(RULE, pooled(1200, "Reused")), Found)
    assert outcome(RULE, pooled(1800, "Reused"), limits={"times_the_start": 4}) == Clear()


def test_a_wait_of_many_times_the_work_is_too_long_too() -> None:
    """20 minutes of pool after a run of four: five times the work and more than a start."""
    short = {"training_s": Decimal(240), "billable_s": Decimal(240)}
    assert isinstance(outcome(RULE, pooled(1200, "Reused", **short)), Found)
    assert outcome(RULE, pooled(1199, "Reused", **short)) == Clear()
    shorter = {"training_s": Decimal(60), "billable_s": Decimal(60)}
    assert outcome(RULE, pooled(600, "Reused", **shorter)) == Clear()


def test_the_fix_serves_the_familys_short_gaps() -> None:
    """Gaps of 4 minutes and one of 50: 5 minutes of keep-alive serve the first and end before."""
    what = found(RULE, pooled(3000, "Reused"), earlier=pools(240, 240, 240, 240))
    [fix] = what.fix
    assert (fix.old, fix.new) == (3600, 300)
    assert what.evidence["starts_saved"] == 5
    assert "; the pools of 5 runs cost $" in what.summary
    finding = priced(RULE, pooled(3000, "Reused"), earlier=pools(240, 240, 240, 240))
    assert usd(finding.saving_usd) == usd(Decimal("0.46") * (3000 - 300 - 600) / 3600)


def test_a_family_that_comes_back_late_is_advised_to_keep_none() -> None:
    """Every gap costs five starts: no keep-alive is worth it."""
    [fix] = found(RULE, pooled(3000, "Reused"), earlier=pools(3000, 3000, 3000)).fix
    assert (fix.old, fix.new) == (3600, None)


def test_the_last_pool_of_a_chain_is_shortened_not_removed() -> None:
    """Its own gap never ended; the gaps before it were 4 minutes."""
    what = found(RULE, pooled(3600), earlier=pools(240, 240, 240))
    [fix] = what.fix
    assert (fix.old, fix.new) == (3600, 300)
    finding = priced(RULE, pooled(3600), earlier=pools(240, 240, 240))
    assert usd(finding.saving_usd) == usd(Decimal("0.46") * (3600 - 300) / 3600)


def test_a_keep_alive_that_fits_the_familys_gaps_is_clear() -> None:
    """Five minutes for gaps of four: the last one runs out, as it must."""
    run = pooled(300, warm_pool=WarmPool("Terminated", 300, Decimal(300)))
    assert isinstance(outcome(RULE, run), Found)
    assert outcome(RULE, run, earlier=pools(240, 240, 240)) == Clear()


def test_runs_on_other_instances_say_nothing_of_this_pool() -> None:
    """A job of another type cannot take it over."""
    other = tuple(
        replace(run, facts=replace(run.facts, instance_type="ml.m5.large"))
        for run in pools(240, 240, 240)
    )
    what = found(RULE, pooled(3600), earlier=other)
    assert what.fix[0].new is None
    assert "pools" not in what.evidence


@pytest.mark.parametrize("status", ["Available", "InUse", "SomethingNew"])
def test_a_pool_that_still_grows_is_unknown(status: str) -> None:
    """It is judged once its seconds are final."""
    assert unknown(RULE, pooled(status=status)) == "pool_not_settled"


def test_what_the_answer_does_not_say_is_unknown() -> None:
    """Whether there was a pool, how long it stayed, how long a download takes."""
    assert unknown(RULE, pooled(None, None)) == "pool_status_missing"
    assert unknown(RULE, pooled(None)) == "retained_missing"
    whole = (Phase("Running", START, Decimal(3600), billed=True),)
    assert unknown(RULE, pooled(phases=whole)) == "phases_missing"
    assert unknown(RULE, pooled(phases=())) == "phases_missing"
    open_end = (Phase("Downloading", START, None, billed=True),)
    assert unknown(RULE, pooled(phases=open_end)) == "phases_missing"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"warm_pool": None}, "no warm pool"),
        ({"purchase": Purchase.TRAINING_PLAN}, "prepaid"),
        ({"kind": JobKind.PROCESSING}, "processing"),
    ],
)
def test_without_a_pool_of_its_own_it_says_nothing(changes: dict[str, Any], why: str) -> None:
    """And why."""
    assert why in not_applicable(RULE, pooled(**changes))


def test_the_advised_job_gets_no_advice_back() -> None:
    """Without the parameter there is no pool."""
    run = pooled()
    [fix] = found(RULE, run).fix
    assert fix.new is None
    assert "no warm pool" in not_applicable(RULE, replace(run, warm_pool=None))


def test_a_pool_without_a_known_type_has_no_figure() -> None:
    """It does not raise."""
    finding = priced(RULE, pooled(groups=()))
    assert finding.saving_usd is None
    assert "unknown instances" in finding.found.summary


def test_a_pool_that_nobody_says_was_asked_for_has_no_parameter() -> None:
    """There is nothing known to remove."""
    unsaid = pooled(warm_pool=WarmPool("Terminated", None, Decimal(3600)))
    assert found(RULE, unsaid).fix == ()


@pytest.mark.parametrize("status", ["Reused", "Terminated"])
def test_no_fix_asks_for_a_longer_pool(status: str) -> None:
    """The keep-alive can be changed while the pool waits: what is asked for now may be short."""
    for keep_alive_s in (1, 60, 599, 601):
        pool = WarmPool(status, keep_alive_s, Decimal(90_000))
        for fix in found(RULE, pooled(warm_pool=pool)).fix:
            assert int(str(fix.new or 0)) < keep_alive_s, fix
