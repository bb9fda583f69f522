"""No input makes a rule fail, and whatever it answers can be read, counted and sent."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.job.failure_words import Failure
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Direction, Objective, TuningSettings
from sageaudit.rules.card import AccountCase, FamilyCase, RollUpCase
from sageaudit.structs import replace
from tests.fakes import bad_input
from tests.fakes.bad_input import case, measured, workers
from tests.fakes.families import earlier_run, run_fields, run_summary, trial
from tests.fakes.jobs import START, job
from tests.fakes.sound import (
    EVERY_RULE_ON,
    check_account_answers,
    check_answers,
    check_tuning_answers,
)

Cases = Callable[[], Iterator[FamilyCase]]


def runs(**facts: Any) -> tuple[AuditSummary, ...]:
    """Nineteen runs of a family, one each day."""
    return tuple(earlier_run(n, **facts) for n in range(1, 20))


UNKNOWN_USD = {"total_usd": None, "avoidable_usd": None, "lost_usd": None}
FAMILIES: dict[str, tuple[AuditSummary, ...] | None] = {
    "never read": None,
    "none": (),
    "nothing known": tuple(
        replace(run, **run_fields(run_summary())) for run in runs(**UNKNOWN_USD)
    ),
    "for nothing": runs(total_usd=Decimal(0)),
    "money back": runs(total_usd=Decimal(-1), lost_usd=Decimal(-1)),
    "in no time": runs(
        **dict.fromkeys(("elapsed_s", "billable_s", "retained_s"), Decimal(0)),
        phase_s={"Training": Decimal(0), "": Decimal(0)},
    ),
    "no instances": runs(instance_type="", instance_count=0, purchase=Purchase.SPOT),
    "fifty": tuple(earlier_run(n, fingerprint=f"{n % 7}", is_data_pinned=True) for n in range(50)),
    "all failed": (earlier_run(0, status="Failed", lost_usd=Decimal(9), reason=""),) * 50,
    "still to come": tuple(earlier_run(-n) for n in range(1, 20)),
    "odd words": runs(fingerprint="", reason="odd", rules_with_findings=("", "odd")),
    "other kinds": runs(kind="odd", status="Odd"),
}


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(cases, id=what)
        for table in (bad_input.SERIES, bad_input.CURVES)
        for what, cases in table.items()
    ],
)
def test_no_bad_series_makes_a_rule_fail(cases: Cases) -> None:
    """Whatever is wrong with what was measured; `test_any_input` has what is wrong with jobs."""
    for bad_case in cases():
        check_answers(bad_case)


@pytest.mark.parametrize(
    "cases",
    [
        bad_input.every_status,
        bad_input.every_kind,
        bad_input.every_purchase,
        bad_input.every_parent,
    ],
)
def test_every_word_of_aws_has_an_answer(cases: Cases) -> None:
    """Those that AWS has today, and those that it may have."""
    for bad_case in cases():
        check_answers(bad_case)


@pytest.mark.parametrize("value", [0, 1, 100, 1e6])
def test_no_threshold_makes_a_rule_fail(value: float) -> None:
    """The policy takes any number from 0 on."""
    for bad_case in bad_input.every_threshold(value):
        check_answers(bad_case)


@pytest.mark.parametrize("what", FAMILIES)
def test_no_family_makes_a_rule_fail(what: str) -> None:
    """Earlier runs come from a table that older versions wrote."""
    for run in workers():
        check_answers(case(run, earlier=FAMILIES[what]))
        unmeasured = measured(run, ())
        for strange in (
            replace(run, fingerprint="1", is_data_pinned=True),
            replace(run, purchase=Purchase.SPOT, checkpointed=True),
            replace(run, created_at=None, started_at=None, ended_at=None, training_s=None),
            replace(run, created_at=START - timedelta(hours=1)),
            replace(run, status="Failed", failure=Failure((), "code error"), has_artifact=None),
        ):
            check_answers(case(strange, unmeasured, earlier=FAMILIES[what]))


def tunings() -> Iterator[TuningSettings | None]:
    """Settings of every strategy, and none."""
    yield None
    yield TuningSettings(None, None, {})
    for objective in (None, Objective("", None), Objective("auc", Direction.MAXIMIZE)):
        for strategy in ("Bayesian", "Random", "Grid", "Hyperband", "Odd", None):
            for early in ("Auto", "Off", None):
                for max_jobs in (None, 0, 4):
                    counters = {"Completed": 0, "": -1}
                    yield TuningSettings(
                        strategy,
                        early,
                        counters,
                        objective,
                        max_jobs=max_jobs,
                        max_parallel=max_jobs,
                    )


def trials(objective: Callable[[int], object], **changes: Any) -> tuple[Trial, ...]:
    """Twenty-nine trials, each with the objective that its number gives."""
    values = ((n, objective(n)) for n in range(1, 30))
    return tuple(trial(n, None if value is None else str(value), **changes) for n, value in values)


TRIALS: dict[str, tuple[Trial, ...]] = {
    "none": (),
    "one": (trial(1, "0.5"),),
    "all failed": trials(lambda _: None, status="Failed"),
    "unpriced": trials(lambda n: n, total_usd=None, counted_usd=None, possible_usd=None),
    "no objective": trials(lambda _: None),
    "all the same": trials(lambda _: "0.5"),
    "all worse": trials(lambda n: -n),
    "enormous": trials(lambda n: "1.7e308" if n % 2 else "-1.7e308"),
    "zero": trials(lambda _: 0),
    "no times": trials(lambda n: n, started_at=None, ended_at=None, elapsed_s=None),
    "in no time": trials(lambda n: n, elapsed_s=Decimal(0)),
    "for nothing": trials(lambda n: n, total_usd=Decimal(0)),
    "claimed whole": trials(lambda _: "0.5", counted_usd=Decimal(1)),
    "the same name": tuple(replace(trial, name="trial") for trial in trials(lambda _: "0.5")),
    "of every status": tuple(
        trial(n, "0.5", status=status)
        for n, status in enumerate(
            ["Completed", "Failed", "Stopped", "InProgress", "Odd"] * 5, start=1
        )
    ),
}


@pytest.mark.parametrize("what", TRIALS)
def test_no_trials_make_a_tuning_rule_fail(what: str) -> None:
    """With and without the tuning job's own answer."""
    check_tuning_answers(RollUpCase(None, TRIALS[what], policy=EVERY_RULE_ON))
    for tuning in tunings():
        run = job(kind=JobKind.TUNING, groups=(), tuning=tuning)
        check_tuning_answers(RollUpCase(run, TRIALS[what], policy=EVERY_RULE_ON))


@pytest.mark.parametrize("days", [0, 1, 30])
@pytest.mark.parametrize("usd_per_hour", [None, "0", "1.5"])
def test_no_account_makes_a_rule_fail(days: int, usd_per_hour: str | None) -> None:
    """One without a run, one of which nothing is known, one of which all is."""
    rate = None if usd_per_hour is None else Decimal(usd_per_hour)
    policy = replace(EVERY_RULE_ON, commitment_usd_per_hour=rate)
    for runs in FAMILIES.values():
        check_account_answers(AccountCase(runs or (), days, policy=policy))
        owned = tuple(replace(run, owner="", ended_at=START) for run in runs or ())
        check_account_answers(AccountCase(owned, days, policy=policy))
