import pytest

from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.bill.finding import Clear
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row
from tests.fakes.tuning import asked, found_in, judged, tuning_job

RULE = "tuning-strategy"
CONFIG = "HyperParameterTuningJobConfig"


def ran(count: int) -> list[Trial]:
    """So many completed trials."""
    return [trial(number, "0.9") for number in range(count)]


test_cases = cases(
    RULE,
    "Random search in few rounds is what it is for.",
    # Ten rounds are enough to learn from, nine are not; nor are 19 trials.
    row(FOUND, ran(20), tuning_job(strategy="Random", max_parallel=2)),
    row(CLEAR, ran(20), tuning_job(strategy="Random", max_parallel=3)),
    row(CLEAR, ran(19), tuning_job(strategy="Random", max_parallel=1)),
    "Three rounds are enough for Bayesian.",
    # 15 trials by 5 are clear, by 6 are not; under 10 trials it is a test.
    row(CLEAR, ran(15), tuning_job(max_parallel=5)),
    row(FOUND, ran(15), tuning_job(max_parallel=6)),
    row(FOUND, ran(10), tuning_job(max_parallel=10)),
    row(CLEAR, ran(9), tuning_job(max_parallel=9)),
    "A policy of few rounds is not turned back either.",
    # Random in one round is found then; the advice still leaves Bayesian three.
    row(finds(fix=["Bayesian", 6]), ran(20), tuning_job(strategy="Random", max_parallel=20),
        limits={"rounds_from": 1.0}),
    row(CLEAR, ran(20), tuning_job(max_parallel=6), limits={"rounds_from": 1.0}),
    "Hyperband is clear. It learns, and stops early.",
    row(CLEAR, ran(40), tuning_job(strategy="Hyperband", max_parallel=40)),
    "What is not known is unknown.",
    row("unknown: tuning_unread", ran(30), None),
    row("unknown: strategy_unknown", ran(30), tuning_job(strategy=None)),
    row("unknown: limits_missing", ran(30), tuning_job(max_parallel=None)),
    "Without trials there is nothing to judge. A tuning job that launched none.",
    row(CLEAR, [], tuning_job(strategy="Grid")),
    row(CLEAR, [], tuning_job(strategy="Random")),
    row(CLEAR, [], tuning_job(strategy="Bayesian")),
    "A sequential random search is found. 30 trials, 2 at a time: 15 rounds.",
    row(finds("Random search ran 30 trials in 15 rounds and learnt from none.",
        fix=[(f"{CONFIG}.Strategy", "Random", "Bayesian")], ways=[]), ran(30),
        tuning_job(strategy="Random", max_parallel=2)),
    "It has no dollars. How many trials fewer is not known in advance.",
    row(finds(bucket="possible", usd=None, severity="info", caution="…."), ran(30),
        tuning_job(strategy="Random")),
    "A wide Bayesian search is found. 20 trials, 10 at a time.",
    row(finds("Bayesian search ran 20 trials, 10 in parallel: it had only 2.0 rounds to learn "
        "from.", fix=[(f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs", 10, 2)], ways=[]),
        ran(20), tuning_job(max_parallel=10)),
    "A large grid is found. It had no limit of its own, which another strategy needs.",
    row(finds("Grid search ran 20 trials and learnt from none.", fix=[(f"{CONFIG}.Strategy", "Grid",
        "Bayesian"), (f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs", None, 20),
        (f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs", 10, 2)]), ran(20),
        tuning_job(strategy="Grid", max_jobs=None, max_parallel=10)),
    row(CLEAR, ran(19), tuning_job(strategy="Grid", max_jobs=None, max_parallel=10)),
    ask=asked,
)  # fmt: skip


@pytest.mark.parametrize(
    ("strategy", "trials", "parallel"),
    [("Random", 40, 4), ("Grid", 40, 40), ("Bayesian", 40, 40), ("Bayesian", 10, 10)],
)
def test_the_advised_tuning_job_gets_no_advice(strategy: str, trials: int, parallel: int) -> None:
    """Bayesian with at most a tenth in parallel."""
    what = found_in(RULE, ran(trials), tuning_job(strategy=strategy, max_parallel=parallel))
    new = {p.path.rpartition(".")[2]: p.new for p in what.fix}
    advised = tuning_job(
        strategy=new.get("Strategy", strategy),
        max_parallel=new.get("MaxParallelTrainingJobs", parallel),
    )
    assert judged(RULE, ran(trials), advised) == Clear()
