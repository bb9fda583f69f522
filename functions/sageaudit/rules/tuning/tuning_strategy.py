"""The tuning job's strategy learns little from its trials.

What it checks: One of these is true. The number of rounds is the number of trials divided by the
    parallel trials.
    - Grid search ran at least 20 trials.
    - Random search ran at least 20 trials in at least 10 rounds, from which another strategy could
      have learned.
    - Bayesian search ran at least 10 trials in fewer than 3 rounds, too few to learn from.
Why it costs: A search that learns needs fewer trials for the same objective.
Saving: Possible, without a figure: it is not known in advance how many fewer trials are enough.
When it is wrong: Grid covers the whole space and can be repeated exactly. Random can run any number
    of trials in parallel, and is a fair baseline. Fewer trials in parallel take longer, which a
    deadline may not allow.
What to do: Use Bayesian with at most a tenth of the trials in parallel. Use Hyperband, with early
    stopping Off, for long trials of an algorithm that reports its objective each epoch.
Sources: AWS guide, "Best practices for hyperparameter tuning": random search runs the most jobs in
    parallel; Bayesian optimisation uses the results of earlier trials and cannot run as many; one
    job at a time gives the best result for the least compute; Hyperband shortens large jobs.
"""

from __future__ import annotations

from sageaudit.domain.job.parts import TuningSettings
from sageaudit.rules import api
from sageaudit.rules.tuning import trials

MIN_TRIALS = api.Threshold("min_trials", 20, "trials", "fewer give little to learn from")
MIN_ROUNDS = api.Threshold("min_rounds", 10, "rounds", "enough to learn from")
FEW_ROUNDS = api.Threshold("few_rounds", 3, "rounds", "two give little to learn from")
MIN_BAYESIAN_TRIALS = api.Threshold("min_bayesian_trials", 10, "trials", "fewer may be a test")
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
    """Judges by the strategy and the number of rounds."""
    tuning = case.tuning
    if tuning is None:
        return trials.TUNING_UNREAD
    if tuning.strategy is None:
        return api.Unknown("strategy_unknown", "the tuning job names no strategy")
    trial_count, verb = (
        _trial_count(case),
        "ran" if case.duration_basis is None else "will run",
    )
    learned_text = "learned" if case.duration_basis is None else "learn"
    if tuning.strategy == "Grid" and trial_count >= case.threshold(MIN_TRIALS):
        summary = f"Grid search {verb} {trial_count} trials and {learned_text} nothing from them."
        return _finding(case, tuning, summary)
    if tuning.strategy not in {"Random", "Bayesian"} or not trial_count:
        return api.Clear()
    if not tuning.max_parallel:
        return api.Unknown("limits_missing", "how many trials it ran in parallel is not known")
    rounds = trial_count / tuning.max_parallel
    if tuning.strategy == "Random":
        if trial_count < case.threshold(MIN_TRIALS) or rounds < case.threshold(MIN_ROUNDS):
            return api.Clear()
        summary = (
            f"Random search {verb} {trial_count} trials in {rounds:.0f} rounds and {learned_text} "
            "nothing from them."
        )
        return _finding(case, tuning, summary)
    if trial_count < case.threshold(MIN_BAYESIAN_TRIALS) or rounds >= case.threshold(FEW_ROUNDS):
        return api.Clear()
    summary = (
        f"Bayesian search {verb} {trial_count} trials, {tuning.max_parallel} in parallel: it "
        f"{'had' if case.duration_basis is None else 'has'} only {rounds:.1f} rounds to learn from."
    )
    return _finding(case, tuning, summary)


def _trial_count(case: api.RollUpCase) -> int:
    """Returns the number of trials; for a request, the most that it allows."""
    if case.duration_basis is None:
        return len(case.trials)
    return (case.tuning.max_jobs if case.tuning else None) or 0


def _finding(case: api.RollUpCase, tuning: TuningSettings, summary: str) -> api.Detection:
    trial_count = _trial_count(case)
    is_bayesian = tuning.strategy == "Bayesian"
    strategy_fix = () if is_bayesian else (api.Parameter(_STRATEGY, tuning.strategy, "Bayesian"),)
    count_fix = (
        (api.Parameter(trials.MAX_TRIALS, None, trial_count),)
        if tuning.strategy == "Grid" and tuning.max_jobs is None
        else ()
    )
    return api.possible_saving(
        summary,
        {
            "strategy": tuning.strategy,
            "trials": trial_count,
            "max_parallel": tuning.max_parallel,
            "max_jobs": tuning.max_jobs,
        },
        fix=(*strategy_fix, *count_fix, *_lower_parallelism_fix(case, tuning)),
        caution="How many fewer trials are enough is not known in advance.",
    )


def _lower_parallelism_fix(
    case: api.RollUpCase, tuning: TuningSettings
) -> tuple[api.Parameter, ...]:
    rounds = max(case.threshold(MIN_ROUNDS), case.threshold(FEW_ROUNDS), 1)
    parallel = max(int(_trial_count(case) / rounds), 1)
    if tuning.max_parallel is not None and tuning.max_parallel <= parallel:
        return ()
    return (api.Parameter(trials.MAX_PARALLEL, tuning.max_parallel, parallel),)
