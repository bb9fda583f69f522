"""Ways: the calls, arguments, lists and mappings that lead to a parameter in one dialect.

The table is `data/fix_names.json`: for each path its way in the SDK's version 3, then in 2; null
where there is no argument. In a path, `*` stands for a name chosen by the user (a channel, a
variable). A way starts at the call: `ModelTrainer > compute:Compute > instance_type` means
`ModelTrainer(compute=Compute(instance_type=...))`; `[channel_name]` is a list whose elements have
that argument as their name, `{*}` a mapping.

Sources: SageMaker Python SDK, sagemaker 2.257.7 (v2), sagemaker-train 1.27.0 and sagemaker-core
2.27.0 (v3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from msgspec import Struct

from sageaudit.domain.job.kinds import JobKind

TABLE = "fix_names.json"
"""In `sageaudit.data`."""
_NOT_IN_A_DEFINITION = ("Debug", "Profiler", "Tags")
DEFINITION = "TrainingJobDefinition."
ELEMENT_NAMES = {
    "DebugRuleConfigurations": "RuleConfigurationName",
    "ProfilerRuleConfigurations": "RuleConfigurationName",
    "InputDataConfig": "ChannelName",
    "InstanceGroups": "InstanceGroupName",
    "Outputs": "OutputName",
    "ProcessingInputs": "InputName",
    "Tags": "Key",
}
"""The members that identify an element of a request's list."""
TEXT_MAPS = frozenset({"Environment", "HyperParameters", "StaticHyperParameters"})
"""Maps of texts in a request."""
_CRITERIA = "completion_criteria_config:TuningJobCompletionCriteriaConfig"
WRITTEN: dict[str, dict[str | None, object]] = {
    "Estimator > debugger_hook_config": {None: False},
    "Estimator > disable_output_compression": {"NONE": True, "GZIP": False, None: False},
    "ModelTrainer > compute:Compute > volume_size_in_gb": {None: None},
    f"HyperparameterTuner > {_CRITERIA} > complete_on_convergence": {
        "Enabled": True,
        "Disabled": False,
    },
}
"""Values that an argument takes instead; the key None means that the parameter is removed."""
NOTES = {
    "ModelTrainer > input_data_config[channel_name]:Channel > input_mode": (
        "a Channel in place of InputData, which takes no input mode"
    )
}
ALWAYS_SENT = {"Estimator > volume_size", "Processor > volume_size_in_gb"}
"""The SDK sends its default when the argument is absent."""
MAPPING, LIST = "{}", "[]"
_PART = re.compile(r"([\w.]+)(?:\[(\w+)\]|\{(\*|\w+)\})?(?::(\w+|\{\}))?\Z")


class Names(NamedTuple):
    """The way to one parameter in each SDK; None where there is no argument."""

    v3: str | None
    v2: str | None


@cache
def names_of(kind: JobKind) -> Mapping[str, Names]:
    """By path; of a tuning job also the parameters of its trials, which the SDKs' tuners take from
    an estimator or trainer.
    """
    text = resources.files("sageaudit.data").joinpath(TABLE).read_text(encoding="utf-8")
    table = {path: Names(*ways) for path, ways in json.loads(text).get(kind.value, {}).items()}
    if kind is JobKind.TUNING:
        for path, (v3, v2) in names_of(JobKind.TRAINING).items():
            if not path.startswith(_NOT_IN_A_DEFINITION):
                of_trial = path.replace("HyperParameters.", "StaticHyperParameters.")
                of_tuner = v2 and v2.replace("estimator.fit", "tuner.fit")
                table[f"{DEFINITION}{of_trial}"] = Names(v3, of_tuner)
    return table


class WayStep(Struct, frozen=True):
    """One step of a way.

    `opens` is empty for the value itself, MAPPING, LIST, or the name of what to call.
    `label` is the argument that has `name` as its value, for an element of a list.
    """

    name: str
    opens: str = ""
    label: str = ""


class ParameterRow(Struct, frozen=True):
    """A parameter's value and the remaining steps of its way."""

    way: tuple[WayStep, ...]
    value: Any
    removed: bool


class MappedParameter(Struct, frozen=True):
    """A parameter found in the table of names, with the user's names that its stars matched."""

    pattern: str
    user_names: tuple[str, ...]
    names: Names


def mapped_parameter(kind: JobKind, path: str) -> MappedParameter | None:
    """Finds a path in the table. Tuning jobs also accept the paths of training jobs."""
    names = names_of(kind)
    mapped = _match(names, path)
    if mapped is None and kind is JobKind.TUNING:
        words = path.removeprefix("HyperParameters.")
        static = f"StaticHyperParameters.{words}" if words != path else path
        mapped = _match(names, DEFINITION + static)
    return mapped


def way(text: str, user_names: Iterable[str]) -> tuple[WayStep, ...]:
    """Parses a way of the table; the first step is the call. ValueError for another text."""
    names = iter(user_names)
    steps: list[WayStep] = []
    for part in text.split(" > "):
        match = _PART.match(part)
        if match is None:
            raise ValueError(f"{text!r} is not a way")
        name, label, key, call = match.groups()
        if label:
            steps += [WayStep(name, LIST), WayStep(next(names), call or MAPPING, label)]
        elif key:
            steps += [
                WayStep(name, MAPPING),
                WayStep(next(names) if key == "*" else key, call or ""),
            ]
        else:
            steps.append(WayStep(name, call or ("" if steps else name)))
    return tuple(steps)


def request_way(kind: JobKind, mapped: MappedParameter) -> tuple[WayStep, ...]:
    """The way in a boto3 call, which uses the request's own names."""
    parts = mapped.pattern.split(".")
    words = [f"client.create_{kind.row.sdk_noun}"]
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        name = part.removesuffix("[*]")
        if name in TEXT_MAPS:
            words.append(f"{name}{{{after}}}")
            break
        label = f"[{ELEMENT_NAMES[name]}]" if name != part else ""
        words.append(f"{name}{label}{f':{MAPPING}' if after else ''}")
    return way(" > ".join(words), mapped.user_names)


def grouped(rows: Iterable[ParameterRow]) -> Iterator[tuple[WayStep, list[ParameterRow]]]:
    """Groups rows by their first step, in order of appearance, and removes that step."""
    groups: dict[WayStep, list[ParameterRow]] = {}
    for row in rows:
        rest = ParameterRow(row.way[1:], row.value, row.removed)
        groups.setdefault(row.way[0], []).append(rest)
    yield from groups.items()


def _match(table: Mapping[str, Names], path: str) -> MappedParameter | None:
    for pattern, names in table.items():
        if match := _regex(pattern).fullmatch(path):
            return MappedParameter(pattern, match.groups(), names)
    return None


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", "(.+)"), re.DOTALL)
