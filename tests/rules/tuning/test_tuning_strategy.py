from functools import partial

import pytest

from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.bill.finding import Finding
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, finds
from tests.fakes.tuning import tuning_answer, tuning_job

RULE = "tuning-strategy"
CONFIG = "HyperParameterTuningJobConfig"


def completed(trials: int) -> list[Trial]:
    """So many completed trials."""
    return [trial(number, "0.9") for number in range(trials)]


verdict = partial(tuning_answer, RULE)


def test_random_search_of_20_trials_in_10_rounds_is_found_and_in_7_rounds_or_of_19_is_not() -> None:
    # 20 / 2 are 10 rounds, enough to learn from; 20 / 3 are 7.
    assert verdict(completed(trials=20), tuning_job(strategy="Random", max_parallel=2)) == FOUND
    assert verdict(completed(trials=20), tuning_job(strategy="Random", max_parallel=3)) == CLEAR
    assert verdict(completed(trials=19), tuning_job(strategy="Random", max_parallel=1)) == CLEAR


def test_bayesian_search_in_3_rounds_is_clear_and_in_fewer_it_is_found() -> None:
    # 15 trials, 5 at a time, are 3 rounds, 6 at a time are fewer. Under 10 trials it is a test.
    assert verdict(completed(trials=15), tuning_job(max_parallel=5)) == CLEAR
    assert verdict(completed(trials=15), tuning_job(max_parallel=6)) == FOUND
    assert verdict(completed(trials=10), tuning_job(max_parallel=10)) == FOUND
    assert verdict(completed(trials=9), tuning_job(max_parallel=9)) == CLEAR


def test_a_policy_of_few_rounds_is_not_turned_back_either() -> None:
    # Random in one round is found then; the advice still leaves Bayesian three.
    result = verdict(
        completed(trials=20),
        tuning_job(strategy="Random", max_parallel=20),
        limits={"min_rounds": 1.0},
    )
    assert result == finds(fix=["Bayesian", 6])
    assert (
        verdict(completed(trials=20), tuning_job(max_parallel=6), limits={"min_rounds": 1.0})
        == CLEAR
    )


def test_hyperband_is_clear() -> None:
    """It learns, and stops early."""
    assert verdict(completed(trials=40), tuning_job(strategy="Hyperband", max_parallel=40)) == CLEAR


def test_what_is_not_known_is_unknown() -> None:
    assert verdict(completed(trials=30), None) == cannot_judge("tuning_unread")
    assert verdict(completed(trials=30), tuning_job(strategy=None)) == cannot_judge(
        "strategy_unknown"
    )
    assert verdict(completed(trials=30), tuning_job(max_parallel=None)) == cannot_judge(
        "limits_missing"
    )


def test_without_trials_there_is_nothing_to_judge() -> None:
    """A tuning job that launched none."""
    assert verdict([], tuning_job(strategy="Grid")) == CLEAR
    assert verdict([], tuning_job(strategy="Random")) == CLEAR
    assert verdict([], tuning_job(strategy="Bayesian")) == CLEAR


def test_a_sequential_random_search_is_found() -> None:
    """30 trials, 2 at a time: 15 rounds."""
    result = verdict(completed(trials=30), tuning_job(strategy="Random", max_parallel=2))
    assert result == finds(
        "Random search ran 30 trials in 15 rounds and learned nothing from them.",
        fix=[(f"{CONFIG}.Strategy", "Random", "Bayesian")],
        ways=[],
    )


def test_it_has_no_dollars() -> None:
    """How many trials fewer is not known in advance."""
    assert verdict(completed(trials=30), tuning_job(strategy="Random")) == finds(
        bucket="possible", usd=None, severity="info", caution="…."
    )


def test_a_wide_bayesian_search_is_found() -> None:
    """20 trials, 10 at a time."""
    assert verdict(completed(trials=20), tuning_job(max_parallel=10)) == finds(
        "Bayesian search ran 20 trials, 10 in parallel: it had only 2.0 rounds to learn from.",
        fix=[(f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs", 10, 2)],
        ways=[],
    )


def test_a_large_grid_is_found() -> None:
    """It had no limit of its own, which another strategy needs."""
    result = verdict(
        completed(trials=20), tuning_job(strategy="Grid", max_jobs=None, max_parallel=10)
    )
    assert result == finds(
        "Grid search ran 20 trials and learned nothing from them.",
        fix=[
            (f"{CONFIG}.Strategy", "Grid", "Bayesian"),
            (f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs", None, 20),
            (f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs", 10, 2),
        ],
    )
    assert (
        verdict(completed(trials=19), tuning_job(strategy="Grid", max_jobs=None, max_parallel=10))
        == CLEAR
    )


@pytest.mark.parametrize(
    ("strategy", "trials", "parallel"),
    [("Random", 40, 4), ("Grid", 40, 40), ("Bayesian", 40, 40), ("Bayesian", 10, 10)],
)
def test_the_advised_tuning_job_gets_no_advice(strategy: str, trials: int, parallel: int) -> None:
    """Bayesian with at most a tenth in parallel."""
    finding = verdict(
        completed(trials=trials), tuning_job(strategy=strategy, max_parallel=parallel)
    )
    assert isinstance(finding, Finding)
    new = {p.path.rpartition(".")[2]: p.new for p in finding.detection.fix}
    advised = tuning_job(
        strategy=new.get("Strategy", strategy),
        max_parallel=new.get("MaxParallelTrainingJobs", parallel),
    )
    assert verdict(completed(trials=trials), advised) == CLEAR
