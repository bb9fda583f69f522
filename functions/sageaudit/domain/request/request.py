"""A requested job that has not run: a Create*Job request in any file.

The values of a request have paths: tuples of keys and list indexes. In text for people, a path is
written as in AWS's documentation, with the name of a list item:
`InputDataConfig[train].DataSource`. Some values are unknown before the request is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, cast

from msgspec import Struct, field

from sageaudit.domain.job.addresses import repository
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace

Path = tuple[str | int, ...]
"""The keys and list indexes that lead from the top of a request or file to a value."""
_NAMES = ("ChannelName", "InputName", "OutputName", "RuleConfigurationName", "InstanceGroupName",
          "DefinitionName", "Key", "Name")  # fmt: skip
"""The keys that name an item of a list."""
_EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})
"""Values that AWS takes as if the parameter were left out."""
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")

MAX_REQUESTS = 500
"""The most requests of a file that are checked, in a few seconds. A template has at most 500
resources, and a pipeline fewer steps."""
REQUEST_SHAPES = {kind: f"Create{kind.spec.prefix}JobRequest" for kind in JobKind}
"""The name of the request's shape in AWS's service model, by kind of job."""
TRIAL_SHAPE = "HyperParameterTrainingJobDefinition"
"""The shape of a tuning job's definition of its training jobs."""
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/")
_REGISTRY = re.compile(r"\d{12}\.dkr\.ecr\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com")


class UnknownValue(Struct, frozen=True):
    """Stands for a value that is known only later, and may then be absent.

    `reason` is part of a sentence.
    """

    reason: str


def text(value: object) -> str:
    """Returns the value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def value_at(body: object, path: str) -> Any:
    """Returns the value at a path such as `InputDataConfig[train].InputMode`; None if absent.

    If the value or an object around it is unknown, the UnknownValue is returned.
    """
    return _walk(body, path)[0]


def resolve_path(body: object, path: str) -> Path:
    """Returns the part of a path that exists in `body`, as keys and indexes."""
    return _walk(body, path)[1]


def split_path(body: object, path: str) -> Path | None:
    """Returns a path as keys and indexes, also of parts that `body` lacks.

    None if it leads through a list's item that does not exist.
    """
    existing = resolve_path(body, path)
    steps = _STEP.findall(path)[len(existing) :]
    return None if any(not key for key, _ in steps) else (*existing, *(key for key, _ in steps))


def _walk(body: object, path: str) -> tuple[Any, Path]:
    value: Any = body
    place: Path = ()
    for key, item in _STEP.findall(path):
        if isinstance(value, UnknownValue):
            break
        step = key if key and isinstance(value, Mapping) and key in value else None
        if not key and isinstance(value, list):
            step = _index(value, item)
        if step is None:
            return _unknown_item(value), place
        value, place = value[step], (*place, step)
    return value, place


def path_text(body: object, path: Path) -> str:
    """Returns a path as text for people, such as `InputDataConfig[train].DataSource`."""
    text, value = "", cast(Any, body)
    for step in path:
        try:
            value = value[step]
        except (IndexError, KeyError, TypeError):
            value = None
        text += f"[{_item_label(value, step)}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def find_unknown_values(value: object, path: Path = ()) -> Iterator[tuple[Path, UnknownValue]]:
    """Yields each unknown value inside `value`, with its path."""
    if isinstance(value, UnknownValue):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from find_unknown_values(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from find_unknown_values(item, (*path, index))


def without_paths(value: object, left_out: frozenset[Path], place: Path = ()) -> Any:
    """Returns the value without its unknown values and without the paths in `left_out`.

    `place` is the path of `value`.
    """
    if isinstance(value, Mapping):
        return {
            key: without_paths(item, left_out, (*place, key))
            for key, item in value.items()
            if (*place, key) not in left_out and not isinstance(item, UnknownValue)
        }
    if isinstance(value, list):
        return [
            without_paths(item, left_out, (*place, index))
            for index, item in enumerate(value)
            if (*place, index) not in left_out and not isinstance(item, UnknownValue)
        ]
    return value


def matches(place: Path, pattern: str) -> bool:
    """Returns whether `place` is the path of the pattern, or of an object around it.

    In a pattern, `[]` stands for any list index.
    """
    pattern_steps = tuple(key or "[]" for key, _ in _STEP.findall(pattern))
    path_steps = tuple("[]" if isinstance(step, int) else step for step in place)
    return pattern_steps[: len(path_steps)] == path_steps


def _item_label(item: object, index: int) -> str:
    if isinstance(item, Mapping):
        names = (item.get(key) for key in _NAMES)
        if name := next((name for name in names if isinstance(name, str) and name), None):
            return name
    return str(index)


def _index(items: list[Any], item: str) -> int | None:
    for index, candidate in enumerate(items):
        if _item_label(candidate, index) == item:
            return index
    return int(item) if item.isdecimal() and int(item) < len(items) else None


def _unknown_item(items: object) -> UnknownValue | None:
    """Returns an unknown item of a list, which may be any item that was not found."""
    candidates = items if isinstance(items, list) else []
    return next((item for item in candidates if isinstance(item, UnknownValue)), None)


_REFUSED_BY_AWS = UnknownValue("AWS refuses it")
_PLACEHOLDER_NAME = "job"
"""Stands for the name of a job that its pipeline or stack will set."""
_UNKNOWN_PLAN = "plan"
"""Stands for a training plan that is known later: whichever it is, the job is prepaid."""


class Origin(Struct, frozen=True):
    """Where a request is in its file.

    `base_path` is the path of the request. `is_inline` is True if the parts of the request have
    paths in the file. They have none if the request is a string or comes from a plan.
    `is_terraform` means that the request comes from a Terraform plan, which has snake-case names.
    """

    base_path: Path = ()
    is_inline: bool = True
    is_terraform: bool = False

    def path_in_file(self, place: Path) -> Path:
        """Returns the path in the file of a part of the request. `()` is the whole request."""
        return (*self.base_path, *place) if self.is_inline else self.base_path

    def of_part(self, place: Path) -> Origin:
        """Returns the origin of a part, such as of a step's request in a pipeline definition."""
        return replace(self, base_path=self.path_in_file(place))


class Request(Struct, frozen=True, dict=True):
    """A Create*Job request, or one definition of a tuning job's training jobs.

    `body` has the parameters as AWS's API takes them, with an UnknownValue for each unknown value.
    `label` names the request in its file, such as `step Train`. `name_source` says what names the
    job if the request does not: its pipeline, or AWS. `region` is the region in the file, or None.
    `step` is the family's name in the history, made of the names of pipeline and step.

    `tuning_request` is the tuning request that asks for this training job; None for other jobs.
    `prefix` is the path of this definition in `tuning_request`.
    """

    kind: JobKind
    body: Mapping[str, Any]
    label: str
    shape: str
    origin: Origin = Origin()
    name_source: str | None = None
    region: str | None = None
    step: str | None = None
    is_pipeline_step: bool = False
    attempts: int | None = 1
    """How many attempts of a pipeline's step may be billed; None if nothing limits them."""
    note: str | None = None
    tuning_request: Request | None = None
    prefix: Path = ()
    parameters: Mapping[Path, str] = field(default_factory=dict)
    """The pipeline parameters whose default values are used, by path of the value."""
    invalid_paths: frozenset[Path] = frozenset()
    """Paths that AWS refuses. A misspelled parameter adds the path of the right name, too. Rules
    judge none of these paths."""

    @property
    def name_key(self) -> str:
        """The key of the job's name."""
        return self.kind.spec.name_key

    @property
    def name(self) -> str | None:
        """The job's name; None if it is unknown."""
        name = self.body.get(self.name_key)
        return name if isinstance(name, str) and name else None

    @cached_property
    def unknown_values(self) -> dict[Path, UnknownValue]:
        """The values that are set but unknown before the run, by path."""
        return dict(find_unknown_values(self.body))

    def value(self, path: str) -> Any:
        """Returns the value at a path; None if absent.

        An UnknownValue is returned if the value is unknown, or if AWS refuses it.
        """
        refused = any(matches(bad, path) for bad in self.invalid_paths)
        return _REFUSED_BY_AWS if refused else value_at(self.body, path)

    def is_set(self, path: str) -> bool:
        """Returns whether a path has a known value. Not the opposite of `is_missing`: an unknown
        value is neither.
        """
        value = self.value(path)
        return not isinstance(value, UnknownValue) and value not in _EMPTY_VALUES

    def is_missing(self, path: str) -> bool:
        """Returns whether a path certainly has no value."""
        return self.value(path) in _EMPTY_VALUES

    def unknown_reason(self, path_patterns: tuple[str, ...]) -> str | None:
        """Returns why a value at one of these paths is unknown or refused; None for known values.

        In a pattern, `[]` stands for any list index.
        """
        refused = dict.fromkeys(sorted(self.invalid_paths, key=str), _REFUSED_BY_AWS)
        for place, value in (self.unknown_values | refused).items():
            if any(matches(place, pattern) for pattern in path_patterns):
                if value is _REFUSED_BY_AWS:
                    return f"AWS refuses {self.path_text(place)}"
                return f"{self.path_text(place)} is not known yet ({value.reason})"
        return None

    def path_text(self, place: Path) -> str:
        """Returns a path in this request as text for people."""
        return path_text(self.body, place)

    @property
    def account(self) -> str | None:
        """The account in the ARN of the job's role; None if unknown."""
        match = _ROLE.match(text(self.body.get("RoleArn")))
        return match[1] if match else None

    @property
    def image_region(self) -> str | None:
        """The region of the image's registry; None if it is not an ECR registry."""
        match = _REGISTRY.match(_image(self) or "")
        return match[1] if match else None

    @property
    def tags(self) -> dict[str, str]:
        """The tags that the request sets, without those with an unknown key or value."""
        items = self.body.get("Tags")
        pairs = (
            (item.get("Key"), item.get("Value"))
            for item in (items if isinstance(items, list) else [])
            if isinstance(item, Mapping)
        )
        return {k: v for k, v in pairs if isinstance(k, str) and isinstance(v, str)}

    def tag(self, name: str) -> tuple[str | None, str | None]:
        """Returns a tag's value, and why the value is unknown.

        The value is None if absent. The reason is None if the value is known.
        """
        items = self.body.get("Tags")
        unknown_value = items if isinstance(items, UnknownValue) else None
        for item in items if isinstance(items, list) else ():
            if isinstance(item, UnknownValue):
                unknown_value = item
            elif isinstance(item, Mapping):
                key, value = item.get("Key"), item.get("Value")
                if key == name and not isinstance(value, UnknownValue):
                    return (text(value).strip() or None), None
                if isinstance(unknown := value if key == name else key, UnknownValue):
                    unknown_value = unknown
        return (
            None,
            None if unknown_value is None else f"it is not known yet ({unknown_value.reason})",
        )


class ParsedRequests(Struct, frozen=True):
    """The requests in a file, and sentences on the parts of the file that were not checked."""

    requests: tuple[Request, ...]
    unchecked_sentences: tuple[str, ...] = ()


def make_job_planner(request: Request, region: str | None) -> Callable[[Decimal, datetime], Job]:
    """Returns a function that makes the requested job as it would be after a run.

    The function takes the run's seconds and the start time. `region` is the job's region. Raises
    MalformedData for an impossible value that no check of the request found.
    """
    prefix = request.kind.spec.prefix
    body = without_paths(request.body, request.invalid_paths)
    if "HyperParameterTuningResourceConfig" in body and "ResourceConfig" not in body:
        body["ResourceConfig"] = body["HyperParameterTuningResourceConfig"]
    if isinstance(body.get("StaticHyperParameters"), Mapping):
        body["HyperParameters"] = body["StaticHyperParameters"]
    if request.is_set("ServerlessJobConfig"):  # its values do not matter, and may be refused
        body["ServerlessJobConfig"] = {"JobType": "FineTuning"}
    config = body.get("ResourceConfig")
    if config and isinstance(request.value("ResourceConfig.TrainingPlanArn"), UnknownValue):
        body["ResourceConfig"] = config | {"TrainingPlanArn": _UNKNOWN_PLAN}
    _take_first_preference(body)
    answer = {
        **body,
        request.name_key: request.name or _PLACEHOLDER_NAME,
        f"{prefix}JobStatus": "Completed",
    }
    job = parse(answer, request.tags, account=request.account, region=region)
    if request.step is not None:
        job = replace(job, pipeline_step=request.step)

    def job_after(seconds: Decimal, start: datetime) -> Job:
        return replace(
            job,
            created_at=start,
            started_at=start,
            ended_at=start + timedelta(seconds=float(seconds)),
            training_s=seconds,
            billable_s=seconds,
        )

    return job_after


def _take_first_preference(body: dict[str, Any]) -> None:
    """Sets the first preferred type, which SageMaker uses if it has the capacity."""
    for key in ("InstancePreferences", "InstanceConfigs"):
        config = body.get("ResourceConfig")
        if isinstance(config, Mapping) and not config.get("InstanceType"):
            preferred = config.get(key)
            if isinstance(preferred, list) and preferred and isinstance(preferred[0], Mapping):
                first = preferred[0]
                keys = ("InstanceType", "InstanceCount", "VolumeSizeInGB")
                given = {key: first[key] for key in keys if first.get(key)}
                body["ResourceConfig"] = {**config, **given}


def image_name(request: Request) -> str | None:
    """Returns the repository of the request's image, for people; None if unknown."""
    image = _image(request)
    return None if image is None else repository(image)


def _image(request: Request) -> str | None:
    path = request.kind.spec.image_path
    image = value_at(request.body, path) if path else None
    return image if isinstance(image, str) else None
