"""The jobs of a SageMaker pipeline definition, with the parameters' default values filled in.

A step's Arguments are the request of its job, without the job's name, which the pipeline gives.
Source: AWS's JSON schema of pipeline definitions, and definitions that the SageMaker SDK writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.request import (
    CREATE,
    FoundRequests,
    NotKnown,
    Origin,
    Path,
    Request,
    text,
)

_JOBS = {
    "Training": JobKind.TRAINING,
    "Processing": JobKind.PROCESSING,
    "QualityCheck": JobKind.PROCESSING,
    "ClarifyCheck": JobKind.PROCESSING,
    "Transform": JobKind.TRANSFORM,
    "Tuning": JobKind.TUNING,
}
"""Steps whose arguments are the request of a job that is audited."""
_BRANCHES = ("IfSteps", "ElseSteps")
_JOIN = "Std:Join"
_PARAMETERS = "Parameters."
_WHOLE_FILE = Origin()
_MOST_JOINED = 1_000_000
"""Characters that all joins of a definition may give: AWS takes definitions of 1 MB."""
_DEEPEST = 32
"""Conditions inside conditions; AWS allows far fewer."""


def of_definition(
    definition: Mapping[str, Any],
    *,
    name: str | None = None,
    region: str | None = None,
    origin: Origin = _WHOLE_FILE,
    label: str = "",
) -> FoundRequests:
    """The requests of all steps, those in branches of conditions included.

    `name` is the pipeline's, which the definition itself does not have. `label` is put before each
    step's own.
    """
    defaults = _defaults(definition.get("Parameters"))
    requests, left_out, room = [], [], [_MOST_JOINED]
    for step, place, branch in _steps(definition.get("Steps"), ("Steps",), None):
        title = f"{label}step {text(step.get('Name')) or '(without a name)'}"
        kind = _JOBS.get(text(step.get("Type")))
        if kind is None:
            if step.get("Type") != "Condition":
                left_out.append(f"{title}: a {text(step.get('Type')) or '?'} step is not checked")
            continue
        arguments = step.get("Arguments")
        given = arguments if isinstance(arguments, Mapping) else {}
        values = _PipelineValues(defaults, room)
        body = values.resolved(given)
        if not isinstance(body, Mapping):
            left_out.append(f"{title}: its Arguments are no object")
            continue
        named = f"pipeline/{name.lower()}/{text(step.get('Name'))}" if name else None
        requests.append(
            Request(
                kind=kind,
                body=body,
                label=title,
                shape=CREATE[kind],
                origin=Origin((*origin.base, *place, "Arguments")) if origin.inline else origin,
                named_later="its pipeline",
                region=region,
                step=named,
                of_pipeline=True,
                note=f"runs only in {branch}" if branch else None,
                parameters=values.used,
            )
        )
    return FoundRequests(tuple(requests), tuple(left_out))


def _defaults(parameters: object) -> dict[str, Any]:
    """The parameters by name: their default value, or why there is none."""
    found: dict[str, Any] = {}
    for item in parameters if isinstance(parameters, list) else []:
        name = item.get("Name") if isinstance(item, Mapping) else None
        if isinstance(name, str):
            missing = NotKnown(f"the pipeline parameter {name} has no default value")
            value = item.get("DefaultValue", missing)
            whole = NotKnown(f"the default of the pipeline parameter {name} is no plain value")
            found[name] = whole if isinstance(value, list | dict) else value
    return found


def _steps(
    steps: object, place: Path, branch: str | None
) -> Iterator[tuple[Mapping[str, Any], Path, str | None]]:
    """Every step with its path, and the branch of a condition that it is in."""
    if len(place) > 3 * _DEEPEST or not isinstance(steps, list):
        return
    for index, step in enumerate(steps):
        if not isinstance(step, Mapping):
            continue
        yield step, (*place, index), branch
        arguments = step.get("Arguments")
        if step.get("Type") != "Condition" or not isinstance(arguments, Mapping):
            continue
        for key in _BRANCHES:
            title = f"{key} of {text(step.get('Name')) or 'a condition'}"
            yield from _steps(arguments.get(key), (*place, index, "Arguments", key), title)


class _PipelineValues(Struct, frozen=True):
    """Replaces functions by what they give; `used` gets the parameter behind each value.

    `room` has the characters that joins may still give.
    """

    defaults: Mapping[str, Any]
    room: list[int]
    used: dict[Path, str] = field(default_factory=dict)

    def resolved(self, value: Any, place: Path = ()) -> Any:
        """The value, which is at this path."""
        if isinstance(value, list):
            return [self.resolved(inside, (*place, n)) for n, inside in enumerate(value)]
        if not isinstance(value, Mapping):
            return value
        [(function, given)] = value.items() if len(value) == 1 else [("", None)]
        if function == "Get" and isinstance(given, str):
            return self._got(given, place)
        if function == _JOIN and isinstance(given, Mapping):
            return self._joined(given)
        if function.startswith("Std:"):
            return NotKnown(f"{function} is worked out when the pipeline runs")
        return {key: self.resolved(inside, (*place, key)) for key, inside in value.items()}

    def _got(self, reference: str, place: Path) -> Any:
        name = reference.removeprefix(_PARAMETERS)
        if name == reference:
            return NotKnown(f"it is {reference} of the running pipeline")
        self.used[place] = name
        return self.defaults.get(name, NotKnown(f"the pipeline has no parameter {name}"))

    def _joined(self, given: Mapping[str, Any]) -> Any:
        separator, values = given.get("On", ""), given.get("Values")
        if not isinstance(values, list) or not isinstance(separator, str):
            return NotKnown("its Std:Join has no list of values")
        inside = _PipelineValues(self.defaults, self.room)
        parts = [inside.resolved(part) for part in values]
        unknown = next((part for part in parts if isinstance(part, NotKnown)), None)
        if unknown is not None:
            return unknown
        texts = [_plain(part) for part in parts]
        self.room[0] -= sum(map(len, texts)) + len(separator) * len(texts)
        if self.room[0] < 0:
            return NotKnown(f"what {_JOIN} gives is longer than any definition")
        return separator.join(texts)


def _plain(part: object) -> str:
    return str(part).lower() if isinstance(part, bool) else str(part)
