"""The requests in a Step Functions state machine.

A Task state of `arn:aws:states:::sagemaker:createTrainingJob` or `...:aws-sdk:sagemaker:...`, with
or without `.sync`, has the request in Parameters (JSONPath) or Arguments (JSONata). Source: Step
Functions' guide, SageMaker integration, and the Amazon States Language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.definitions import render_text
from sageaudit.domain.request.request import (
    REQUEST_SHAPES,
    Origin,
    ParsedRequests,
    Path,
    Request,
)

_RESOURCE = re.compile(r":states:::(?:aws-sdk:)?sagemaker:create(\w+)Job(?:\.|\Z)")
_KIND_BY_NAME = {
    kind.spec.prefix: kind
    for kind in (JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM, JobKind.TUNING)
}
_MAX_DEPTH = 32
"""The most nested Map and Parallel states that are read."""


def is_job_state(state: object) -> bool:
    """Returns whether a state creates a SageMaker job."""
    return isinstance(state, Mapping) and _created_job(state) is not None


def requests_in_state_machine(
    definition: Mapping[str, Any],
    *,
    region: str | None = None,
    origin: Origin | None = None,
    label: str = "",
) -> ParsedRequests:
    """Returns the requests of all states that create a job, also inside Map and Parallel states.

    `origin`: where the definition is in its file. `label`: a prefix of each state's label.
    """
    origin = origin or Origin()
    requests: list[Request] = []
    unchecked: list[str] = []
    for name, state, place, note in _states(definition, (), None):
        if (job := _created_job(state)) is None:
            continue
        title, kind = f"{label}state {name}", _KIND_BY_NAME.get(job)
        key = "Arguments" if "Arguments" in state else "Parameters"
        body = state.get(key)
        if kind is None:
            unchecked.append(f"{title}: create{job}Job is not checked")
        elif not isinstance(body, Mapping):
            unchecked.append(f"{title}: its request is not known before the state machine runs")
        else:
            requests.append(
                Request(
                    kind=kind,
                    body=body,
                    label=title,
                    shape=REQUEST_SHAPES[kind],
                    origin=origin.of_part((*place, key)),
                    region=region,
                    note=note,
                )
            )
    return ParsedRequests(tuple(requests), tuple(unchecked))


def _created_job(state: Mapping[str, Any]) -> str | None:
    """Returns what is between `create` and `Job` in a state's resource; None if it creates none."""
    match = _RESOURCE.search(render_text(state.get("Resource")) or "")
    return match[1] if match else None


def _states(
    machine: object, place: Path, note: str | None
) -> Iterator[tuple[str, Mapping[str, Any], Path, str | None]]:
    """Yields each state with its name, its path, and a note if a Map state repeats it."""
    states = machine.get("States") if isinstance(machine, Mapping) else None
    if not isinstance(states, Mapping) or len(place) > 3 * _MAX_DEPTH:
        return
    for name, state in states.items():
        if not isinstance(state, Mapping):
            continue
        state_place = (*place, "States", name)
        yield str(name), state, state_place, note
        for key in ("ItemProcessor", "Iterator"):
            map_note = f"runs once for each item of {name}"
            yield from _states(state.get(key), (*state_place, key), map_note)
        branches = state.get("Branches")
        for index, branch in enumerate(branches if isinstance(branches, list) else []):
            yield from _states(branch, (*state_place, "Branches", index), note)
