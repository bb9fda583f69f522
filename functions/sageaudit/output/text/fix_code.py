"""A finding's fix as text to paste, for the SageMaker SDKs and boto3.

Each snippet contains only what changes. A comment names a parameter without an argument there.
Values are always on one line, since names may be hostile: characters that do not print (control
characters, marks that reverse a line) are escaped; all others stay readable.

`data/fix_names.json` has for each path of a request its way in the SDK's version 3, then in 2: the
calls, arguments, lists and mappings that lead to it; null if there is no argument. In a path, `*`
stands for a name chosen by the user (a channel, a variable). A way starts at the call:
`ModelTrainer > compute:Compute > instance_type` means
`ModelTrainer(compute=Compute(instance_type=...))`; `[channel_name]` is a list whose elements have
that argument as their name, `{*}` a mapping.

Sources: SageMaker Python SDK, sagemaker 2.257.7 (v2), sagemaker-train 1.27.0 and sagemaker-core
2.27.0 (v3).
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.job.kinds import JobKind

Dialect = Literal["sdk-v3", "sdk-v2", "boto3"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
NAMES_FILE = "fix_names.json"
"""In `sageaudit.data`."""
_NOT_IN_A_DEFINITION = ("Debug", "Profiler", "Tags")
_DEFINITION = "TrainingJobDefinition."
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
_TEXT_MAPS = frozenset({"Environment", "HyperParameters", "StaticHyperParameters"})
"""Maps of texts in a request."""
_CRITERIA = "completion_criteria_config:TuningJobCompletionCriteriaConfig"
_VALUE_TRANSLATIONS: dict[str, dict[str | None, object]] = {
    "Estimator > debugger_hook_config": {None: False},
    "Estimator > disable_output_compression": {"NONE": True, "GZIP": False, None: False},
    "ModelTrainer > compute:Compute > volume_size_in_gb": {None: None},
    f"HyperparameterTuner > {_CRITERIA} > complete_on_convergence": {
        "Enabled": True,
        "Disabled": False,
    },
}
"""Values that an argument takes instead; the key None means that the parameter is removed."""
_NOTES = {
    "ModelTrainer > input_data_config[channel_name]:Channel > input_mode": (
        "a Channel in place of InputData, which takes no input mode"
    )
}
_ALWAYS_SENT = {"Estimator > volume_size", "Processor > volume_size_in_gb"}
"""The SDK sends its default when the argument is absent."""
_MAPPING = "{}"
_LIST = "[]"
_BRACKETS = {_MAPPING: ("{", "}"), _LIST: ("[", "]")}
_PART = re.compile(r"([\w.]+)(?:\[(\w+)\]|\{(\*|\w+)\})?(?::(\w+|\{\}))?\Z")
_WIDTH = 88
_INDENT = "    "
_BEYOND_16_BITS = 0xFFFF
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class SdkPaths(NamedTuple):
    """The way to one parameter in each SDK; None where there is no argument."""

    v3: str | None
    v2: str | None


class PathStep(Struct, frozen=True):
    """One step of a way.

    `opens` is empty for the value itself, _MAPPING, _LIST, or the name of what to call.
    `label` is the argument that has `name` as its value, for an element of a list.
    """

    name: str
    opener: str = ""
    label: str = ""


class ParameterRow(Struct, frozen=True):
    """A parameter's value and the remaining steps of its way."""

    path: tuple[PathStep, ...]
    value: Any
    is_removed: bool


class MappedParameter(Struct, frozen=True):
    """A parameter found in the table of names, with the user's names that its stars matched."""

    pattern: str
    user_names: tuple[str, ...]
    names: SdkPaths


def fix_text(kind: str, fix: Sequence[FixDocument], dialect: Dialect) -> str:
    """The fix as source code that parses on its own; empty when there is none.

    `kind` is a JobKind's value.
    """
    job_kind = JobKind(kind)
    rows: list[ParameterRow] = []
    comments: list[str] = []
    for parameter in fix:
        row, comment = _row(job_kind, parameter, dialect)
        rows += [row] if row else []
        comments += [f"# {comment}"] if comment else []
    snippets = [_render_opened(root, inner, 0, 0) for root, inner in _group_by_first_step(rows)]
    return "\n".join([*snippets, *dict.fromkeys(comments)])


def _row(
    kind: JobKind, fix: FixDocument, dialect: Dialect
) -> tuple[ParameterRow | None, str | None]:
    """The parameter's row, or None with a comment that says why; a row may have a comment too."""
    mapped = mapped_parameter(kind, fix["parameter"])
    new = fix["new"]
    if mapped is None:
        return None, f"no argument: {_as_comment(fix)}"
    if dialect == "boto3":
        value = _in_request(mapped, new)
        return ParameterRow(_request_way(kind, mapped), value, new is None), None
    text = mapped.names.v3 if dialect == "sdk-v3" else mapped.names.v2
    if text is None:
        return None, f"no argument: {_as_comment(fix)}"
    if new is None and text in _ALWAYS_SENT:
        return None, f"no argument: {_as_comment(fix)} (the SDK always sends {text.split()[-1]})"
    sdk_way, note = parse_path(text, mapped.user_names), _NOTES.get(text)
    instead = _VALUE_TRANSLATIONS.get(text, {})
    if (new is None or isinstance(new, str)) and new in instead:
        return ParameterRow(sdk_way, instead[new], is_removed=False), note
    value = _in_request(mapped, new) if mapped.pattern.startswith("Environment.") else new
    return ParameterRow(sdk_way, value, new is None), note


def _in_request(mapped: MappedParameter, value: Any) -> Any:
    """The value as the request takes it: maps of the request contain strings only."""
    if value is None or _TEXT_MAPS.isdisjoint(mapped.pattern.split(".")[:-1]):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _as_comment(fix: FixDocument) -> str:
    path = _one_line(fix["parameter"])
    return f"remove {path}" if fix["new"] is None else f"{path} = {_python(fix['new'])}"


def _render_opened(step: PathStep, rows: list[ParameterRow], depth: int, begins: int) -> str:
    """The call, list or mapping of a step; `begins` is its column on the line."""
    items = [_prefix(step, PathStep(step.label)) + _python(step.name)] if step.label else []
    for inner, rest in _group_by_first_step(rows):
        name = _prefix(step, inner)
        if inner.opener:
            items.append(name + _render_opened(inner, rest, depth + 1, len(name)))
        elif rest[-1].is_removed:
            items.append(f"# remove {name.rstrip('=: ')}")
        else:
            items.append(name + _python(rest[-1].value))
    opening, closing = _BRACKETS.get(step.opener, (f"{step.opener}(", ")"))
    line = f"{opening}{', '.join(items)}{closing}"
    plain = not any(item.startswith("#") or "\n" in item for item in items)
    if plain and len(_INDENT) * depth + begins + len(line) < _WIDTH:
        return line
    body = [item if item.startswith("#") else f"{item}," for item in items]
    return "\n".join([opening, textwrap.indent("\n".join(body), _INDENT), closing])


def _prefix(parent: PathStep, step: PathStep) -> str:
    """The text before a value: its key, its argument's name, or nothing in a list."""
    if parent.opener == _LIST:
        return ""
    return f"{_python(step.name)}: " if parent.opener == _MAPPING else f"{step.name}="


def _python(value: Any) -> str:
    """The value as a Python literal."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, int | float) and math.isfinite(value):
        return repr(value)
    written = (
        f"\\{char}" if char in '"\\' else char if char.isprintable() else _escape(char)
        for char in str(value)
    )
    return f'"{"".join(written)}"'


def _one_line(text: str) -> str:
    """The text for a comment: characters that do not print are escaped."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    """Half of a surrogate pair, which is no character, is replaced."""
    code = ord(_REPLACEMENT if "\ud800" <= char <= "\udfff" else char)
    return f"\\U{code:08x}" if code > _BEYOND_16_BITS else f"\\u{code:04x}"


@cache
def sdk_paths(kind: JobKind) -> Mapping[str, SdkPaths]:
    """By path; of a tuning job also the parameters of its trials, which the SDKs' tuners take from
    an estimator or trainer.
    """
    text = resources.files("sageaudit.data").joinpath(NAMES_FILE).read_text(encoding="utf-8")
    table = {path: SdkPaths(*ways) for path, ways in json.loads(text).get(kind.value, {}).items()}
    if kind is JobKind.TUNING:
        for path, (v3, v2) in sdk_paths(JobKind.TRAINING).items():
            if not path.startswith(_NOT_IN_A_DEFINITION):
                of_trial = path.replace("HyperParameters.", "StaticHyperParameters.")
                of_tuner = v2 and v2.replace("estimator.fit", "tuner.fit")
                table[f"{_DEFINITION}{of_trial}"] = SdkPaths(v3, of_tuner)
    return table


def mapped_parameter(kind: JobKind, path: str) -> MappedParameter | None:
    """Finds a path in the table. Tuning jobs also accept the paths of training jobs."""
    names = sdk_paths(kind)
    mapped = _match(names, path)
    if mapped is None and kind is JobKind.TUNING:
        words = path.removeprefix("HyperParameters.")
        static = f"StaticHyperParameters.{words}" if words != path else path
        mapped = _match(names, _DEFINITION + static)
    return mapped


def parse_path(text: str, user_names: Iterable[str]) -> tuple[PathStep, ...]:
    """Parses a way of the table; the first step is the call. ValueError for another text."""
    names = iter(user_names)
    steps: list[PathStep] = []
    for part in text.split(" > "):
        match = _PART.match(part)
        if match is None:
            raise ValueError(f"{text!r} is not a way")
        name, label, key, call = match.groups()
        if label:
            steps += [PathStep(name, _LIST), PathStep(next(names), call or _MAPPING, label)]
        elif key:
            steps += [
                PathStep(name, _MAPPING),
                PathStep(next(names) if key == "*" else key, call or ""),
            ]
        else:
            steps.append(PathStep(name, call or ("" if steps else name)))
    return tuple(steps)


def _request_way(kind: JobKind, mapped: MappedParameter) -> tuple[PathStep, ...]:
    """The way in a boto3 call, which uses the request's own names."""
    parts = mapped.pattern.split(".")
    words = [f"client.create_{kind.spec.sdk_noun}"]
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        name = part.removesuffix("[*]")
        if name in _TEXT_MAPS:
            words.append(f"{name}{{{after}}}")
            break
        label = f"[{ELEMENT_NAMES[name]}]" if name != part else ""
        words.append(f"{name}{label}{f':{_MAPPING}' if after else ''}")
    return parse_path(" > ".join(words), mapped.user_names)


def _group_by_first_step(
    rows: Iterable[ParameterRow],
) -> Iterator[tuple[PathStep, list[ParameterRow]]]:
    """Groups rows by their first step, in order of appearance, and removes that step."""
    groups: dict[PathStep, list[ParameterRow]] = {}
    for row in rows:
        rest = ParameterRow(row.path[1:], row.value, row.is_removed)
        groups.setdefault(row.path[0], []).append(rest)
    yield from groups.items()


def _match(table: Mapping[str, SdkPaths], path: str) -> MappedParameter | None:
    for pattern, names in table.items():
        if match := _regex(pattern).fullmatch(path):
            return MappedParameter(pattern, match.groups(), names)
    return None


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", "(.+)"), re.DOTALL)
