from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Clear, Found, Unknown
from sageaudit.domain.job.job import Job, Parent, ParentKind, Purchase
from tests.fakes.families import earlier_run
from tests.fakes.jobs import market, ran
from tests.fakes.judging import outcome, priced
from tests.fakes.rule_cases import cases, finds, row

RULE = "cost-regression"
NO_STORAGE: dict[str, Any] = {"volume_gb": None}
HOUR = ran(3600, **NO_STORAGE)
"""An hour of ml.m5.xlarge; without storage it costs $0.23."""


def family(*costs: str | None, **facts: Any) -> list[EarlierRun]:
    """Completed runs at these dollars, the newest first."""
    return [
        earlier_run(day, total_usd=None if cost is None else Decimal(cost), **facts)
        for day, cost in enumerate(costs, 1)
    ]


STEADY = family(*["0.23"] * 5)


def judged(job: Job, earlier: list[EarlierRun] | None, **more: Any) -> object:
    """With storage at no price, so that compute is the bill."""
    return outcome(RULE, job, earlier=earlier, on=market(storage_usd="0"), **more)


test_cases = cases(
    RULE,
    "A run at four times the median is found with what changed.",
    # Another type for another time, on spot, with other settings.
    row(finds("It cost $0.92; the median of 5 earlier runs is $0.23. Changed: type "
        "ml.m5.xlarge to "
        "ml.m5.2xlarge; purchase on_demand to spot; image, data or hyperparameters; "
        "Training +1 h 1 min.", confidence="measured", bucket="none",
        evidence={"above_median_usd": Decimal("0.69"),
        "changed_type": "type ml.m5.xlarge to ml.m5.2xlarge"}), ran(7200, "ml.m5.2xlarge",
        purchase=Purchase.SPOT, fingerprint="f2"), earlier=family(*["0.23"] * 5, fingerprint="f1"),
        on=market(storage_usd="0")),
    "More instances are named. One became three; and nothing else is known to have changed.",
    row(finds("…Changed: count 1 to 3; Training +1 min."), ran(3600, instances=3), earlier=STEADY),
    "An unknown change is stated. A price, say.",
    row(finds("…Changed: nothing known."), HOUR, earlier=family(*["0.10"] * 5,
        phase_s={"Training": Decimal(3600)})),
    "Runs that are meant to differ are not compared.",
    # Trials of a tuning job; nor is a failed run, or a free one.
    row("not applicable: the trials of one search are meant to differ",
        replace(HOUR, parent=Parent(ParentKind.TUNING, "arn:tuning"))),
    row("not applicable: …did not complete…", replace(HOUR, status="Failed")),
    row("not applicable: built-in Debugger rule", replace(HOUR, free="built-in Debugger rule")),
    "A phase that is not billed is no reason. An hour more in Starting costs nothing.",
    row(finds("…Changed: nothing known."), HOUR, earlier=family(*["0.05"] * 5,
        phase_s={"Starting": Decimal(1), "Training": Decimal(3590)})),
)  # fmt: skip


def test_it_is_an_alarm_without_dollars() -> None:
    """The findings on what grew carry them."""
    finding = priced(RULE, ran(14400), earlier=STEADY)
    assert (finding.saving_usd, finding.severity.value) == (None, "info")
    assert finding.found.caution is not None
    assert finding.found.fix == ()


def test_exactly_a_quarter_above_a_steady_median_is_found() -> None:
    """4500 s of $0.23 are $0.2875; a second less is not."""
    assert isinstance(judged(ran(4500), STEADY), Found)
    assert judged(ran(4499), STEADY) == Clear()


def test_a_family_that_scatters_is_given_its_spread() -> None:
    """Median $0.23, MAD $0.05: the fence is 0.23 + 3 x 1.4826 x 0.05 = $0.45239."""
    wide = family("0.18", "0.18", "0.23", "0.28", "0.28")
    assert judged(ran(7080), wide) == Clear()
    assert isinstance(judged(ran(7081), wide), Found)
    assert isinstance(judged(ran(5400), wide, limits={"spreads_from": 1}), Found)


def test_a_cheaper_run_is_clear() -> None:
    """A family at no cost too, such as one on a training plan."""
    assert judged(ran(1800), STEADY) == Clear()
    never = ran(0, **NO_STORAGE)
    assert judged(never, family(*["0"] * 5)) == Clear()


@pytest.mark.parametrize(
    ("earlier", "code"),
    [
        (None, "history_unread"),
        (STEADY[:4], "too_few_runs"),
        ([*STEADY[:4], earlier_run(9, status="Failed")], "too_few_runs"),
        (family("0.2", "0.2", "0.2", "0.2", None), "too_few_runs"),
    ],
)
def test_fewer_than_five_known_runs_are_too_few(
    earlier: list[EarlierRun] | None, code: str
) -> None:
    """Failed and unpriced ones do not count."""
    answer = judged(HOUR, earlier)
    assert isinstance(answer, Unknown)
    assert answer.code == code


def test_a_run_of_unknown_cost_is_unknown() -> None:
    """Its type has no price."""
    answer = judged(ran(3600, "ml.unpriced.xlarge"), STEADY)
    assert isinstance(answer, Unknown)
    assert answer.code == "bill_unknown"
