from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Job, Phase, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from sageaudit.structs import replace
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, phases
from tests.fakes.judging import answer, expect_detection, usd
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "warm-pool-idle"


def pooled(retained_s: int | None = 3600, status: str | None = "Terminated", **facts: Any) -> Job:
    """Two hosts of $0.23 an hour; 2 minutes of download, 58 of training; no volume."""
    retained = None if retained_s is None else Decimal(retained_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", 120), ("Training", 3480)),
        "training_s": Decimal(3600),
        "billable_s": Decimal(3600),
        "volume_gb": 0,
        "warm_pool": WarmPool(status, 3600, retained),
    }
    return job("ml.m5.xlarge", 2, **plain | facts)


def pools(*gaps_s: int) -> tuple[AuditSummary, ...]:
    """Earlier runs of 10 minutes, newest first, each with a pool that the next run took over.

    `gaps_s`: from the end of each to the request of the next one, the newest first.
    """
    begun, runs = START - timedelta(seconds=120), []
    phase_s = {"Starting": Decimal(20), "Downloading": Decimal(30), "Training": Decimal(570)}
    for gap_s in gaps_s:
        ended_at, retained_s = begun - timedelta(seconds=gap_s), Decimal(gap_s)
        took: dict[str, Any] = {"elapsed_s": Decimal(600), "phase_s": phase_s}
        runs.append(earlier_run(ended_at=ended_at, retained_s=retained_s, instance_count=2, **took))
        begun = ended_at - timedelta(seconds=620)
    return tuple(runs)


verdict = partial(answer, RULE)


def test_a_pool_that_nobody_took_is_found() -> None:
    # An hour on two hosts is $0.46: the next job downloads again either way.
    assert verdict(pooled()) == finds(
        "The warm pool was retained for 1 h on 2 x ml.m5.xlarge and never reused.",
        usd="0.460000",
        builder="measured",
        fix=[("ResourceConfig.KeepAlivePeriodInSeconds", 3600, None)],
    )


def test_the_pools_volumes_are_saved_too() -> None:
    # 30 GB on two hosts for an hour of May's 744 at $0.14: 60 / 744 x 0.14.
    assert verdict(pooled(volume_gb=30)) == finds(
        usd=usd(Decimal("0.46") + Decimal(60) / 744 * Decimal("0.14"))
    )


def test_a_pool_of_120_s_is_as_long_as_the_download_and_clear_and_one_of_121_s_is_found() -> None:
    assert verdict(pooled(retained_s=120)) == CLEAR
    assert verdict(pooled(retained_s=121)) == FOUND


def test_a_pool_of_no_seconds_is_clear() -> None:
    """Also if nothing was downloaded."""
    assert verdict(pooled(retained_s=0, phases=phases(("Training", 3600)))) == CLEAR


def test_a_pool_that_was_reused_within_1199_s_is_clear() -> None:
    """Less than twice the 10 minutes that a start may take."""
    assert verdict(pooled(retained_s=140, status="Reused")) == CLEAR
    assert verdict(pooled(retained_s=1199, status="Reused")) == CLEAR


def test_a_pool_that_waited_much_longer_than_a_start_takes_is_found() -> None:
    # 57 minutes for one start: two hosts at $0.46 an hour, less the 10 minutes of that start.
    assert verdict(pooled(retained_s=3420, status="Reused")) == finds(
        "The warm pool waited 57 min on 2 x ml.m5.xlarge until another run reused it, to save a "
        "start of at most 10 min.",
        usd=usd(Decimal("0.46") * (3420 - 600) / 3600),
        span=(usd(Decimal("0.46") * (3420 - 600) / 3600), usd(Decimal("0.46") * 3420 / 3600)),
        builder="derived",
    )


def test_without_a_familys_gaps_the_keep_alive_becomes_as_long_as_a_start() -> None:
    # Ten minutes: a pool that ends then never costs more than twice the best choice.
    assert verdict(pooled(retained_s=3420, status="Reused")) == finds(fix=[("…", 3600, 600)])


def test_a_long_start_makes_a_longer_wait_worth_it() -> None:
    # 20 minutes of Starting and Downloading: 2,340 s of pool are under twice that, 2,400 s are not.
    slow = phases(("Starting", -600), ("Downloading", 600), ("Training", 3000))
    assert verdict(pooled(retained_s=2340, status="Reused", phases=slow)) == CLEAR
    assert verdict(pooled(retained_s=2400, status="Reused", phases=slow)) == FOUND


def test_a_pool_of_1200_s_is_two_starts_and_too_long_unless_the_policy_allows_four() -> None:
    assert verdict(pooled(retained_s=1200, status="Reused")) == FOUND
    assert verdict(pooled(retained_s=1800, status="Reused"), limits={"min_start_ratio": 4}) == CLEAR


def test_a_wait_of_many_times_the_work_is_too_long_too() -> None:
    # After a run of 4 minutes 1,200 s of pool are five times the work and more than a start.
    def after_work_of(work_s: int, retained_s: int) -> object:
        work = Decimal(work_s)
        return verdict(
            pooled(retained_s=retained_s, status="Reused", training_s=work, billable_s=work)
        )

    assert after_work_of(240, retained_s=1200) == FOUND
    assert after_work_of(240, retained_s=1199) == CLEAR
    assert after_work_of(60, retained_s=600) == CLEAR


def test_the_fix_serves_the_familys_short_gaps() -> None:
    # Gaps of 4 minutes and one of 50: 5 minutes of keep-alive serve the first and end before.
    result = verdict(pooled(retained_s=3000, status="Reused"), earlier=pools(240, 240, 240, 240))
    assert result == finds(
        usd=usd(Decimal("0.46") * (3000 - 300 - 600) / 3600), fix=[("…", 3600, 300)]
    )


def test_a_family_that_comes_back_late_is_advised_to_keep_none() -> None:
    # Every gap costs five starts: no keep-alive is worth it.
    result = verdict(pooled(retained_s=3000, status="Reused"), earlier=pools(3000, 3000, 3000))
    assert result == finds(fix=[("…", 3600, None)])


def test_the_last_pool_of_a_chain_is_shortened_not_removed() -> None:
    # Its own gap never ended; the gaps before it were 4 minutes.
    result = verdict(pooled(retained_s=3600), earlier=pools(240, 240, 240))
    assert result == finds(usd=usd(Decimal("0.46") * (3600 - 300) / 3600), fix=[("…", 3600, 300)])


def test_a_keep_alive_that_fits_the_familys_gaps_is_clear() -> None:
    # Five minutes for gaps of four: the last one runs out, as it must.
    assert (
        verdict(pooled(retained_s=300, warm_pool=WarmPool("Terminated", 300, Decimal(300))))
        == FOUND
    )
    result = verdict(
        pooled(retained_s=300, warm_pool=WarmPool("Terminated", 300, Decimal(300))),
        earlier=pools(240, 240, 240),
    )
    assert result == CLEAR


def test_a_pool_that_still_grows_is_unknown() -> None:
    """It is judged once its seconds are final."""
    assert verdict(pooled(status="Available")) == cannot_judge("pool_not_settled")
    assert verdict(pooled(status="InUse")) == cannot_judge("pool_not_settled")
    assert verdict(pooled(status="SomethingNew")) == cannot_judge("pool_not_settled")


def test_what_the_answer_does_not_say_is_unknown() -> None:
    # Whether there was a pool, how long it stayed, how long a download takes.
    assert verdict(pooled(retained_s=None, status=None)) == cannot_judge("pool_status_missing")
    assert verdict(pooled(retained_s=None)) == cannot_judge("retained_missing")
    result = verdict(pooled(phases=(Phase("Running", START, Decimal(3600), billed=True),)))
    assert result == cannot_judge("phases_missing")
    assert verdict(pooled(phases=())) == cannot_judge("phases_missing")
    result = verdict(pooled(phases=(Phase("Downloading", START, None, billed=True),)))
    assert result == cannot_judge("phases_missing")


def test_without_a_pool_of_its_own_it_says_nothing() -> None:
    assert verdict(pooled(warm_pool=None)) == does_not_apply("…no warm pool…")
    assert verdict(pooled(purchase=Purchase.TRAINING_PLAN)) == does_not_apply("…prepaid…")
    assert verdict(pooled(kind=JobKind.PROCESSING)) == does_not_apply("…processing…")


def test_the_advised_job_gets_no_advice_back() -> None:
    """Without the parameter there is no pool."""
    assert verdict(pooled()) == finds(fix=[None])
    assert verdict(replace(pooled(), warm_pool=None)) == does_not_apply("…no warm pool…")


def test_a_pool_without_a_known_type_has_no_figure() -> None:
    """It does not raise."""
    assert verdict(pooled(groups=())) == finds("…unknown instances…", usd=None)


def test_a_pool_that_nobody_says_was_asked_for_has_no_parameter() -> None:
    """There is nothing known to remove."""
    assert verdict(pooled(warm_pool=WarmPool("Terminated", None, Decimal(3600)))) == finds(fix=[])


def test_runs_on_other_instances_say_nothing_of_this_pool() -> None:
    """They cannot reuse it."""
    result = verdict(
        pooled(retained_s=3600),
        earlier=[replace(run, instance_type="ml.m5.large") for run in pools(240, 240, 240)],
    )
    assert result == finds(fix=[None])


@pytest.mark.parametrize("status", ["Reused", "Terminated"])
def test_no_fix_asks_for_a_longer_pool(status: str) -> None:
    """The keep-alive can be changed while the pool waits: what is asked for now may be short."""
    for keep_alive_s in (1, 60, 599, 601):
        pool = WarmPool(status, keep_alive_s, Decimal(90_000))
        for fix in expect_detection(RULE, pooled(warm_pool=pool)).fix:
            assert int(str(fix.new or 0)) < keep_alive_s, fix
