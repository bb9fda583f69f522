"""A tuning request that AWS refuses.

What it checks: Hyperband with TrainingJobEarlyStoppingType Auto; no training job definition, or
    both TrainingJobDefinition and TrainingJobDefinitions; more parallel training jobs than the
    search may start at all.
Why it costs: Nothing: the search does not start.
Saving: None.
When it is wrong: Where another tool fills the definition in before it sends the request.
What to do: The fix names the parameter. Hyperband stops trials by itself.
Sources: botocore, HyperParameterTuningJobConfig: "TrainingJobEarlyStoppingType must be OFF to use
    Hyperband". CreateHyperParameterTuningJob: one of the two kinds of definition.
"""

from __future__ import annotations

from sageaudit.domain.bill.compatibility import early_stopping_refused
from sageaudit.rules import api
from sageaudit.rules.tuning.trials import CONFIG, EARLY_STOPPING, MAX_PARALLEL, MAX_TRIALS

_ONE, _SEVERAL = "TrainingJobDefinition", "TrainingJobDefinitions"
_STRATEGY = f"{CONFIG}.Strategy"


@api.rule(
    id="SA906",
    scope=api.RequestCase,
    kinds={api.JobKind.TUNING},
    before_run=api.Severity.HIGH,
    reads=(_STRATEGY, EARLY_STOPPING, MAX_PARALLEL, MAX_TRIALS),
)
def check(case: api.RequestCase) -> api.Outcome:
    """The first of them that holds."""
    request = case.request
    stopping = request.value(EARLY_STOPPING)
    why = early_stopping_refused(request.value(_STRATEGY))
    if why and stopping == "Auto":
        return _refused(f"{why}, and takes no early stopping of the tuning job", EARLY_STOPPING,
                        stopping, "Off")  # fmt: skip
    one, several = request.value(_ONE), request.value(_SEVERAL)
    if not one and not several:
        return _refused("it has no definition of its training jobs", _ONE, None, "<definition>")
    if one and several:
        return _refused(f"it has {_ONE} and {_SEVERAL}", _ONE, "set", None)
    parallel, trials = request.value(MAX_PARALLEL), request.value(MAX_TRIALS)
    if isinstance(parallel, int) and isinstance(trials, int) and parallel > trials:
        sentence = f"{parallel} training jobs in parallel are more than the {trials} of the search"
        return _refused(sentence, MAX_PARALLEL, parallel, trials)
    return api.Clear()


def _refused(why: str, path: str, old: int | str | None, new: int | str | None) -> api.Found:
    return api.fact(
        f"AWS refuses the request: {why}.",
        {"parameter": path},
        fix=(api.Parameter(path, old, new),),
        caution="The search does not start.",
    )
