"""A tuning job's strategy learns little from its own trials.

What it checks: At least 20 trials by Grid; or by Random in at least 10 rounds (trials divided by
    parallel trials), which a strategy that learns could have used; or by Bayesian in fewer than 3
    rounds, at 10 trials or more, so that it had hardly anything to learn from.
Why it costs: A search that learns needs fewer trials for the same objective.
Saving: Possible, without a figure: how many trials fewer is not known in advance.
When it is wrong: Grid shows the whole space and repeats exactly; Random runs any number in
    parallel, and is a fair baseline. Fewer trials in parallel take longer, which a deadline may not
    allow.
What to do: Bayesian with at most a tenth of the trials in parallel; Hyperband, with early stopping
    Off, for long trials of an algorithm that reports its objective each epoch.
Sources: AWS guide, "Best practices for hyperparameter tuning": random search runs the most jobs in
    parallel; Bayesian optimisation uses the results of earlier trials and cannot run as many; one
    job at a time gives the best result for the least compute; Hyperband shortens large jobs.
"""

from __future__ import annotations

from sageaudit.domain.job.parts import TuningSettings
from sageaudit.rules import api
from sageaudit.rules.tuning import trials

MIN_TRIALS = api.Threshold("min_trials", 20, "trials", "fewer teach little")
MIN_ROUNDS = api.Threshold("min_rounds", 10, "rounds", "enough to learn from")
FEW_ROUNDS = api.Threshold("few_rounds", 3, "rounds", "two teach nothing much")
MIN_BAYESIAN_TRIALS = api.Threshold("min_bayesian_trials", 10, "trials", "fewer are a test")
_STRATEGY = f"{trials.CONFIG}.Strategy"


@api.rule(
    id="SA904",
    scope=api.RollUpCase,
    kinds={api.JobKind.TUNING},
    thresholds=(MIN_TRIALS, MIN_ROUNDS, FEW_ROUNDS, MIN_BAYESIAN_TRIALS),
    request_severity=api.Severity.LOW,
    required_parameters=(_STRATEGY, trials.MAX_TRIALS, trials.MAX_PARALLEL),
)
def check(case: api.RollUpCase) -> api.Outcome:
    """By strategy and rounds alone; the job that it advises is not found again."""
    tuning = case.tuning
    if tuning is None:
        return trials.TUNING_UNREAD
    if tuning.strategy is None:
        return api.Unknown("strategy_unknown", "the tuning job names no strategy")
    ran, ran_it = _trials(case), "ran" if case.duration_basis is None else "will run"
    learnt = "learnt" if case.duration_basis is None else "learn"
    if tuning.strategy == "Grid" and ran >= case.threshold(MIN_TRIALS):
        return _finding(case, tuning, f"Grid search {ran_it} {ran} trials and {learnt} from none.")
    if tuning.strategy not in {"Random", "Bayesian"} or not ran:
        return api.Clear()
    if not tuning.max_parallel:
        return api.Unknown("limits_missing", "how many trials it ran in parallel is not known")
    rounds = ran / tuning.max_parallel
    if tuning.strategy == "Random":
        if ran < case.threshold(MIN_TRIALS) or rounds < case.threshold(MIN_ROUNDS):
            return api.Clear()
        text = f"Random search {ran_it} {ran} trials in {rounds:.0f} rounds and {learnt} from none."
        return _finding(case, tuning, text)
    if ran < case.threshold(MIN_BAYESIAN_TRIALS) or rounds >= case.threshold(FEW_ROUNDS):
        return api.Clear()
    text = (
        f"Bayesian search {ran_it} {ran} trials, {tuning.max_parallel} in parallel: it "
        f"{'had' if case.duration_basis is None else 'has'} only {rounds:.1f} rounds to learn from."
    )
    return _finding(case, tuning, text)


def _trials(case: api.RollUpCase) -> int:
    """How many there were; of a request, how many there may be."""
    if case.duration_basis is None:
        return len(case.trials)
    return (case.tuning.max_jobs if case.tuning else None) or 0


def _finding(case: api.RollUpCase, tuning: TuningSettings, summary: str) -> api.Detection:
    ran = _trials(case)
    learns = tuning.strategy == "Bayesian"
    strategy = () if learns else (api.Parameter(_STRATEGY, tuning.strategy, "Bayesian"),)
    count = (
        (api.Parameter(trials.MAX_TRIALS, None, ran),)
        if tuning.strategy == "Grid" and tuning.max_jobs is None
        else ()
    )
    return api.possible_saving(
        summary,
        {
            "strategy": tuning.strategy,
            "trials": ran,
            "max_parallel": tuning.max_parallel,
            "max_jobs": tuning.max_jobs,
        },
        fix=(*strategy, *count, *_lower_parallelism_fix(case, tuning)),
        caution="How many trials fewer give the same is not known in advance.",
    )


def _lower_parallelism_fix(
    case: api.RollUpCase, tuning: TuningSettings
) -> tuple[api.Parameter, ...]:
    """So few that the next job has the rounds that this rule asks for."""
    rounds = max(case.threshold(MIN_ROUNDS), case.threshold(FEW_ROUNDS), 1)
    parallel = max(int(_trials(case) / rounds), 1)
    if tuning.max_parallel is not None and tuning.max_parallel <= parallel:
        return ()
    return (api.Parameter(trials.MAX_PARALLEL, tuning.max_parallel, parallel),)
