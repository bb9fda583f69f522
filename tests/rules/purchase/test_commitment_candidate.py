from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.policy.discounts import Discounts
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace
from tests.fakes.accounts import account_found, account_outcome
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "commitment-candidate"
ASKED = Policy(commitment_usd_per_hour=Decimal(2))


def day(number: int, usd: object = 48, hours: int = 24, **changes: Any) -> AuditSummary:
    """A run of `hours` hours that ended so many days before START; $48 a day are $2 an hour."""
    seconds = Decimal(hours * 3600)
    plain: dict[str, Any] = {
        "ended_at": START - timedelta(days=number),
        "total_usd": None if usd is None else Decimal(str(usd)),
        "elapsed_s": seconds,
        "billable_s": seconds,
    }
    return earlier_run(**plain | changes)


def month(**changes: Any) -> list[AuditSummary]:
    """Thirty days in which something ran all the time, the newest first."""
    return [day(number, **changes) for number in range(30)]


def steady(runs: list[AuditSummary]) -> Decimal:
    """USD an hour, by the finding's evidence, to the cent."""
    low = replace(ASKED, commitment_usd_per_hour=Decimal("0.01"))
    usd = account_found(RULE, runs, policy=low).evidence["steady_usd_per_hour"]
    assert isinstance(usd, Decimal)
    return round(usd, 2)


test_cases = cases(
    RULE,
    "Hours as steady as the plan are found.",
    # 30 days at $72 a day are $3 an hour; the plan asks for $2.
    row(finds("In 80% of the hours of 30 days on-demand jobs cost at least $3.00 after all "
        "other fixes: compare a Savings Plan of $2.00 an hour.", builder="possible", change=None,
        fix=[], caution="…discount depends on…", evidence={"runs_counted": 30}), month(usd=72),
        policy=ASKED),
    "Exactly the plans rate is enough. $48 a day; a cent a day less is not.",
    row(FOUND, month(usd=48), policy=ASKED),
    row(CLEAR, month(usd="47.99"), policy=ASKED),
    "Four of five hours are enough and less is not.",
    # 576 of 720 hours are 24 days; 23 days are 552.
    row(FOUND, month()[:24], policy=ASKED),
    row(CLEAR, month()[:23], policy=ASKED),
    row(FOUND, month()[:23], policy=ASKED, limits={"hours_percent": 70}),
    "A peak is not steady. Eight hours a day at any price leave sixteen empty.",
    row(CLEAR, month(usd=4800, hours=8), policy=ASKED),
    "Only on demand hours count. Spot has its own discount, a training plan is paid already.",
    row(CLEAR, month(purchase=Purchase.SPOT), policy=ASKED),
    row(CLEAR, month(purchase=Purchase.TRAINING_PLAN), policy=ASKED),
    row(CLEAR, month(purchase=Purchase.SERVERLESS), policy=ASKED),
    "The evidence counts what is unknown. On demand only.",
    row(finds(evidence={"runs_of_unknown_cost": 1}), [*month(), day(3, None), day(3, None,
        purchase=Purchase.SPOT)], policy=ASKED),
    "Fewer than thirty days are unknown. Exactly thirty are enough.",
    row("unknown: too_short", month(), policy=ASKED, days=29),
    row(FOUND, month(), policy=ASKED, days=30),
    "Without a plans rate or with a plan it says nothing.",
    # What a plan covers already is not known here.
    row("not applicable: …[commitment] usd_per_hour…", month(), policy=Policy()),
    row("not applicable: …Savings Plan…", month(), policy=replace(ASKED,
        discounts=Discounts(savings_plan=True))),
    "Spot advice is to be decided first. Of $3 an hour $2 may move to spot.",
    row(finds(caution="Without the runs that managed spot may suit, $1.00 an hour are steady: "
        "decide on spot…",
        evidence={"steady_without_spot_candidates_usd_per_hour": Decimal("1.0000")}),
        [*month(usd=48, found_rules=("spot-not-used",)), *month(usd=24)], policy=ASKED),
    row(finds(without="spot"), month(), policy=ASKED),
    "Runs that nothing could judge are neither steady nor clear.",
    # What they would cost without their waste may be as much as they did, or nothing.
    row("unknown: runs_not_judged", month(judged=Judged.NO, avoidable_usd=None), policy=ASKED),
    row(CLEAR, month(usd=24, judged=Judged.NO, avoidable_usd=None), policy=ASKED),
    ask=account_outcome,
)  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [{"avoidable_usd": Decimal(24)}, {"lost_usd": Decimal(24)},
     {"avoidable_usd": Decimal(14), "lost_usd": Decimal(10)}],
)  # fmt: skip
def test_what_other_findings_save_is_taken_off_first(changes: dict[str, Any]) -> None:
    """$24 of $72 a day: $2 of $3 an hour are left."""
    assert steady(month(usd=72, **changes)) == Decimal("2.00")


def test_a_retained_warm_pool_is_taken_off() -> None:
    """Six hours retained beside 24 that ran: a fifth of $60 a day, $2 an hour are left."""
    pooled = month(usd=60, retained_s=Decimal(6 * 3600))
    assert steady(pooled) == Decimal("2.00")


def test_training_processing_and_transform_add_up() -> None:
    """$1 + $0.5 + $0.5 an hour; another kind of job is not covered."""
    mixed = [
        *month(usd=24),
        *month(usd=12, kind="processing"),
        *month(usd=12, kind="transform"),
        *month(usd=99, kind="tuning"),
    ]
    assert steady(mixed) == Decimal("2.00")


@pytest.mark.parametrize(
    "unknown",
    [{"usd": None}, {"avoidable_usd": None}, {"lost_usd": None}, {"elapsed_s": None},
     {"elapsed_s": Decimal(0)}],
)  # fmt: skip
def test_runs_of_unknown_cost_or_time_are_left_out(unknown: dict[str, Any]) -> None:
    """Never 0, never guessed: beside $2 an hour they add nothing; a time of 0 s has no hours."""
    assert steady([*month(), *month(**unknown)]) == Decimal("2.00")
