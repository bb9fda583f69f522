from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job, Phase, Purchase, WarmPool
from sageaudit.domain.job.kinds import JobKind
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


def test_a_pool_that_nobody_took_is_found() -> None:
    """An hour on two hosts is $0.46, less the 2 minutes that the next job downloads again."""
    finding = priced(RULE, pooled())
    assert finding.found.summary == (
        "The warm pool was retained for 1 h on 2 x ml.m5.xlarge and never reused; "
        "the next job downloads again in 2 min."
    )
    # 0.46 x (3600 - 120) / 3600
    assert usd(finding.saving_usd) == "0.444667"
    assert (finding.found.confidence, finding.found.bucket) == (
        Confidence.MEASURED,
        Bucket.AVOIDABLE,
    )
    [fix] = finding.found.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.KeepAlivePeriodInSeconds", 3600, None,
    )  # fmt: skip


def test_the_pools_volumes_are_saved_too() -> None:
    """30 GB on two hosts for 3,480 s of May's 744 hours at $0.14: 58 / 44640 x 60 x 0.14."""
    finding = priced(RULE, pooled(volume_gb=30))
    assert usd(finding.saving_usd) == usd(
        Decimal("0.46") * 3480 / 3600 + Decimal(60) * 58 / 44640 * Decimal("0.14")
    )


def test_a_pool_as_long_as_the_download_is_clear() -> None:
    """Exactly 120 s cost no more than they save; one second more does."""
    assert outcome(RULE, pooled(120)) == Clear()
    assert isinstance(outcome(RULE, pooled(121)), Found)


def test_a_pool_of_no_seconds_is_clear() -> None:
    """Also where nothing was downloaded."""
    run = pooled(0, phases=phases(("Training", 3600)))
    assert outcome(RULE, run) == Clear()


def test_a_reused_pool_is_clear() -> None:
    """Another job took it."""
    assert outcome(RULE, pooled(status="Reused")) == Clear()


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
