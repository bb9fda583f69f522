"""Writes a finding's fix as code to paste, for the SageMaker SDKs and boto3.

A snippet contains only what changes. A comment names each parameter for which the SDK has no
argument. Names may be hostile, so values stay on one line and characters that do not print are
escaped.

`data/fix_names.json` maps each request path to its SDK paths in version 3 and version 2; null means
no argument. `*` in a request path stands for a name chosen by the user, such as a channel.

An SDK path starts at the call: `ModelTrainer > compute:Compute > instance_type` means
`ModelTrainer(compute=Compute(instance_type=...))`. `[channel_name]` is a list whose elements have
that argument as their name, and `{*}` is a mapping.

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
"""The file in `sageaudit.data` that maps request paths to SDK paths."""
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
"""The member that identifies an element, by the name of the request's list."""
_STRING_MAPS = frozenset({"Environment", "HyperParameters", "StaticHyperParameters"})
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
"""The SDKs' values for a request's values, by SDK path. None is the value of a removed parameter.
"""
_NOTES = {
    "ModelTrainer > input_data_config[channel_name]:Channel > input_mode": (
        "use Channel instead of InputData, because InputData has no input mode"
    )
}
_ALWAYS_SENT = {"Estimator > volume_size", "Processor > volume_size_in_gb"}
"""The SDK sends a default for these arguments if the code has no value for them."""
_MAPPING = "{}"
_LIST = "[]"
_BRACKETS = {_MAPPING: ("{", "}"), _LIST: ("[", "]")}
_PART = re.compile(r"([\w.]+)(?:\[(\w+)\]|\{(\*|\w+)\})?(?::(\w+|\{\}))?\Z")
CODE_WIDTH = 88
"""The length from which a call has a line for each argument."""
_INDENT = "    "
_BEYOND_16_BITS = 0xFFFF
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class SdkPaths(NamedTuple):
    """The SDK paths of one parameter. None means that the version has no argument for it."""

    v3: str | None
    v2: str | None


class PathStep(Struct, frozen=True):
    """One step of an SDK path.

    `opener`: the name of a call, `_MAPPING` or `_LIST`; "" for the value itself. `label`: the
    argument that names an element of a list. Its value is `name`.
    """

    name: str
    opener: str = ""
    label: str = ""


class ParameterRow(Struct, frozen=True):
    """A parameter's value, and the steps of its path that are not rendered yet."""

    path: tuple[PathStep, ...]
    value: Any
    is_removed: bool


class MappedParameter(Struct, frozen=True):
    """A parameter's row in `fix_names.json`.

    `user_names`: the names that the stars of `pattern` stand for.
    """

    pattern: str
    user_names: tuple[str, ...]
    names: SdkPaths


def fix_text(
    kind: str, fix: Sequence[FixDocument], dialect: Dialect, *, width: int = CODE_WIDTH
) -> str:
    """Returns the fix as source code, or "" for an empty fix. `kind`: the value of a JobKind.

    A call that is longer than `width` has a line for each argument.
    """
    job_kind = JobKind(kind)
    rows: list[ParameterRow] = []
    comments: list[str] = []
    for parameter in fix:
        row, comment = _row(job_kind, parameter, dialect)
        rows += [row] if row else []
        comments += [f"# {comment}"] if comment else []
    snippets = [
        _render_opened(root, inner, 0, 0, width) for root, inner in _group_by_first_step(rows)
    ]
    return "\n".join([*snippets, *dict.fromkeys(comments)])


def _row(
    kind: JobKind, fix: FixDocument, dialect: Dialect
) -> tuple[ParameterRow | None, str | None]:
    """Returns the parameter's row, or None if the SDK has no argument. Also returns a comment or
    None.
    """
    mapped = mapped_parameter(kind, fix["parameter"])
    new = fix["new"]
    if mapped is None:
        return None, f"no argument is known for it: {_as_comment(fix)}"
    if dialect == "boto3":
        value = _in_request(mapped, new)
        return ParameterRow(_request_path(kind, mapped), value, new is None), None
    text = mapped.names.v3 if dialect == "sdk-v3" else mapped.names.v2
    if text is None:
        return None, f"this SDK has no argument for it: {_as_comment(fix)}"
    if new is None and text in _ALWAYS_SENT:
        path = _one_line(fix["parameter"])
        return None, f"this SDK cannot leave out {path}: it always sends {text.split()[-1]}"
    sdk_path, note = parse_path(text, mapped.user_names), _NOTES.get(text)
    translations = _VALUE_TRANSLATIONS.get(text, {})
    if (new is None or isinstance(new, str)) and new in translations:
        return ParameterRow(sdk_path, translations[new], is_removed=False), note
    value = _in_request(mapped, new) if mapped.pattern.startswith("Environment.") else new
    return ParameterRow(sdk_path, value, new is None), note


def _in_request(mapped: MappedParameter, value: Any) -> Any:
    if value is None or _STRING_MAPS.isdisjoint(mapped.pattern.split(".")[:-1]):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _as_comment(fix: FixDocument) -> str:
    path = _one_line(fix["parameter"])
    if fix["new"] is None:
        return f"remove {path} from the request"
    return f"set {path} = {_python(fix['new'])} in the request"


def _render_opened(
    step: PathStep, rows: list[ParameterRow], depth: int, column: int, width: int
) -> str:
    items = [_prefix(step, PathStep(step.label)) + _python(step.name)] if step.label else []
    for inner_step, inner_rows in _group_by_first_step(rows):
        name = _prefix(step, inner_step)
        if inner_step.opener:
            call = _render_opened(inner_step, inner_rows, depth + 1, len(name), width)
            items.append(name + call)
        elif inner_rows[-1].is_removed:
            items.append(f"# remove {name.rstrip('=: ')}")
        else:
            items.append(name + _python(inner_rows[-1].value))
    opening, closing = _BRACKETS.get(step.opener, (f"{step.opener}(", ")"))
    line = f"{opening}{', '.join(items)}{closing}"
    can_be_one_line = not any(item.startswith("#") or "\n" in item for item in items)
    if can_be_one_line and len(_INDENT) * depth + column + len(line) < width:
        return line
    body = [item if item.startswith("#") else f"{item}," for item in items]
    return "\n".join([opening, textwrap.indent("\n".join(body), _INDENT), closing])


def _prefix(parent: PathStep, step: PathStep) -> str:
    if parent.opener == _LIST:
        return ""
    return f"{_python(step.name)}: " if parent.opener == _MAPPING else f"{step.name}="


def _python(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, int | float) and math.isfinite(value):
        return repr(value)
    chars = (
        f"\\{char}" if char in '"\\' else char if char.isprintable() else _escape(char)
        for char in str(value)
    )
    return f'"{"".join(chars)}"'


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    """Returns a Python escape. Half of a surrogate pair becomes the replacement character."""
    code = ord(_REPLACEMENT if "\ud800" <= char <= "\udfff" else char)
    return f"\\U{code:08x}" if code > _BEYOND_16_BITS else f"\\u{code:04x}"


@cache
def sdk_paths(kind: JobKind) -> Mapping[str, SdkPaths]:
    """Returns the SDK paths of a kind's parameters, by request path.

    A tuning job also has its trials' parameters, which the SDKs take from an estimator or trainer.
    """
    text = resources.files("sageaudit.data").joinpath(NAMES_FILE).read_text(encoding="utf-8")
    rows = json.loads(text).get(kind.value, {})
    table = {path: SdkPaths(*paths) for path, paths in rows.items()}
    if kind is JobKind.TUNING:
        for path, (v3, v2) in sdk_paths(JobKind.TRAINING).items():
            if not path.startswith(_NOT_IN_A_DEFINITION):
                trial_path = path.replace("HyperParameters.", "StaticHyperParameters.")
                tuner_v2 = v2 and v2.replace("estimator.fit", "tuner.fit")
                table[f"{_DEFINITION}{trial_path}"] = SdkPaths(v3, tuner_v2)
    return table


def mapped_parameter(kind: JobKind, path: str) -> MappedParameter | None:
    """Returns the row for a request path; None if `fix_names.json` has none.

    Tuning jobs also accept the paths of training jobs.
    """
    paths = sdk_paths(kind)
    mapped = _match(paths, path)
    if mapped is None and kind is JobKind.TUNING:
        name = path.removeprefix("HyperParameters.")
        static_path = f"StaticHyperParameters.{name}" if name != path else path
        mapped = _match(paths, _DEFINITION + static_path)
    return mapped


def parse_path(text: str, user_names: Iterable[str]) -> tuple[PathStep, ...]:
    """Parses an SDK path. Its first step is the call. Raises ValueError for malformed text."""
    names = iter(user_names)
    steps: list[PathStep] = []
    for part in text.split(" > "):
        match = _PART.match(part)
        if match is None:
            raise ValueError(f"{text!r} is not an SDK path")
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


def _request_path(kind: JobKind, mapped: MappedParameter) -> tuple[PathStep, ...]:
    members = mapped.pattern.split(".")
    steps = [f"client.create_{kind.spec.sdk_noun}"]
    for member, next_member in zip(members, [*members[1:], ""], strict=True):
        name = member.removesuffix("[*]")
        if name in _STRING_MAPS:
            steps.append(f"{name}{{{next_member}}}")
            break
        label = f"[{ELEMENT_NAMES[name]}]" if name != member else ""
        steps.append(f"{name}{label}{f':{_MAPPING}' if next_member else ''}")
    return parse_path(" > ".join(steps), mapped.user_names)


def _group_by_first_step(
    rows: Iterable[ParameterRow],
) -> Iterator[tuple[PathStep, list[ParameterRow]]]:
    groups: dict[PathStep, list[ParameterRow]] = {}
    for row in rows:
        inner_row = ParameterRow(row.path[1:], row.value, row.is_removed)
        groups.setdefault(row.path[0], []).append(inner_row)
    yield from groups.items()


def _match(table: Mapping[str, SdkPaths], path: str) -> MappedParameter | None:
    for pattern, names in table.items():
        if match := _regex(pattern).fullmatch(path):
            return MappedParameter(pattern, match.groups(), names)
    return None


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", "(.+)"), re.DOTALL)
