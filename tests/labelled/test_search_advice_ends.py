"""No recommendation on a tuning job is reversed by one for the next search."""

import copy

import pytest

from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument
from tests.labelled.audits import audit_in_turn
from tests.labelled.followed import set_parameter
from tests.labelled.machine import Json
from tests.labelled.story import SEARCH, labelled, stories_of_kind, sweep

RISING: list[float | None] = [0.5 + 0.012 * number for number in range(30)]
FLAT: list[float | None] = [0.8] * 30
AT_ONCE = {"MaxNumberOfTrainingJobs": 30, "MaxParallelTrainingJobs": 30}
SWEEPS: dict[str, tuple[list[float | None], Json]] = {
    "every-point-of-a-grid": (RISING, {"Strategy": "Grid"}),
    "all-at-random-at-once": (RISING, {"Strategy": "Random", "ResourceLimits": AT_ONCE}),
    "all-bayesian-at-once": (RISING, {"ResourceLimits": AT_ONCE}),
    "never-cut-short": (FLAT, {"TrainingJobEarlyStoppingType": "Off"}),
}


def search_recordings(name: str) -> list[Json]:
    """Returns the recordings of the trials, then of their tuning job."""
    if name not in SWEEPS:
        return next(story for story in labelled() if story.name == name).recordings(1)
    objectives, config = SWEEPS[name]
    return sweep(1, objectives, {"Completed": len(objectives)}, **config)


def advised_search(
    recordings: list[Json], fix: list[FixDocument]
) -> tuple[list[Json], set[tuple[str, str]]]:
    """Returns the search with the fix applied, cut to the trials it then runs, and old values."""
    *trials, own = copy.deepcopy(recordings)
    most = len(trials)
    for parameter in fix:
        path, new = parameter["parameter"], parameter["new"]
        set_parameter(own["describe"], path, new)
        if path.endswith("MaxNumberOfTrainingJobs"):
            most = int(str(new))
        elif "TuningJobCompletionCriteria" in path:
            most = min(most, 2 + 5)
    counters = {"Completed": most}
    own["describe"]["TrainingJobStatusCounters"] = counters
    return [*trials[:most], own], {
        (parameter["parameter"], str(parameter["old"])) for parameter in fix
    }


@pytest.mark.parametrize("name", [*SWEEPS, *(story.name for story in stories_of_kind(SEARCH))])
def test_advice_on_a_search_is_not_reversed(name: str) -> None:
    """Each fix and alternative of the tuning job's own findings is not reversed."""
    search = search_recordings(name)
    for finding in own_findings(search):
        for fix in filter(None, (finding["fix"], *finding["alternatives"])):
            recordings, undone = advised_search(search, fix)
            for after in own_findings(recordings):
                assert after["rule"] != finding["rule"], (fix, after["summary"])
                parameters = [
                    parameter for way in (after["fix"], *after["alternatives"]) for parameter in way
                ]
                assert (
                    not {
                        (parameter["parameter"], str(parameter["new"])) for parameter in parameters
                    }
                    & undone
                ), fix


def own_findings(recordings: list[Json]) -> list[FindingDocument]:
    """Returns the findings on the tuning job itself, not on its trials."""
    document = audit_in_turn(recordings)[-1]
    return [
        finding for finding in document["findings"] if "training_jobs" not in finding["evidence"]
    ]
