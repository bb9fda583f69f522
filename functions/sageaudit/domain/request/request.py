"""A job as it was asked for and has not run: a Create*Job request, wherever it was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from sageaudit.domain.job.addresses import repository
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.request import (
    NotKnown,
    Path,
    matches,
    path_text,
    text,
    unknown_places,
    value_at,
    without,
)
from sageaudit.structs import replace

CREATE = {kind: f"Create{kind.row.prefix}JobRequest" for kind in JobKind}
"""By kind: the request's shape in AWS's service model."""
TRIAL_SHAPE = "HyperParameterTrainingJobDefinition"
"""The shape of what a tuning job asks for each of its training jobs."""
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/")
_REGISTRY = re.compile(r"\d{12}\.dkr\.ecr\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com")
_REFUSED = NotKnown("AWS refuses it")
_NO_NAME = "job"
"""Stands for the name of a job that its pipeline or stack will name."""


class Origin(Struct, frozen=True):
    """Where in the file a request stands.

    `base`: the path of the request in the file. `inline`: False where its parts have no places of
    their own: inside one string, and in a plan. `terraform`: a plan's, with names in snake case.
    """

    base: Path = ()
    inline: bool = True
    terraform: bool = False

    def in_file(self, place: Path) -> Path:
        """The path in the file of a part of the request, or of the whole request."""
        return (*self.base, *place) if self.inline else self.base


class Request(Struct, frozen=True, dict=True):
    """One request. `body` is as AWS's API takes it; a value that is not known yet is NotKnown.

    `label`: what it is called in its file, such as `step Train`. `named_later`: what will name the
    job where the request does not (its pipeline, or AWS). `region`: as the file says it, or None.
    `step`: pipeline and step, as the history names the family. `trial_of`: the tuning request that
    asks for this training job; `prefix` is then the path inside that request.
    """

    kind: JobKind
    body: Mapping[str, Any]
    label: str
    shape: str
    origin: Origin = Origin()
    named_later: str | None = None
    region: str | None = None
    step: str | None = None
    of_pipeline: bool = False
    note: str | None = None
    trial_of: Request | None = None
    prefix: Path = ()
    parameters: Mapping[Path, str] = field(default_factory=dict)
    """By path: the pipeline parameter whose default value is taken."""
    invalid: frozenset[Path] = frozenset()
    """What AWS refuses, and the right names of what is misspelled: nothing is concluded from it."""

    @property
    def name_key(self) -> str:
        """The key of the job's name."""
        return self.kind.row.name_key

    @property
    def name(self) -> str | None:
        """The job's name, None where it is not known."""
        name = self.body.get(self.name_key)
        return name if isinstance(name, str) and name else None

    @cached_property
    def unknown(self) -> dict[Path, NotKnown]:
        """What is set, and not known before the run, by path."""
        return dict(unknown_places(self.body))

    def value(self, path: str) -> Any:
        """The value under a path; None without one, NotKnown also for what AWS refuses."""
        refused = any(matches(bad, path) for bad in self.invalid)
        return _REFUSED if refused else value_at(self.body, path)

    def is_set(self, path: str) -> bool:
        """Whether there is a value under a path, known and right or not."""
        return self.value(path) not in (None, "", [], {})

    def not_known(self, patterns: tuple[str, ...]) -> str | None:
        """Why one of these paths is not known, or None; `[]` in a pattern is any item of a list."""
        refused = dict.fromkeys(sorted(self.invalid, key=str), _REFUSED)
        for place, value in (self.unknown | refused).items():
            if any(matches(place, pattern) for pattern in patterns):
                if value is _REFUSED:
                    return f"AWS refuses {self.path_text(place)}"
                return f"{self.path_text(place)} is not known yet ({value.why})"
        return None

    def path_text(self, place: Path) -> str:
        """A path in this request, as people read it."""
        return path_text(self.body, place)

    @property
    def account(self) -> str | None:
        """The account of the role that the job takes."""
        found = _ROLE.match(text(self.body.get("RoleArn")))
        return found[1] if found else None

    @property
    def region_of_image(self) -> str | None:
        """The region of the registry that the image comes from, where it is one of ECR."""
        found = _REGISTRY.match(_image(self) or "")
        return found[1] if found else None

    @property
    def tags(self) -> dict[str, str]:
        """The tags that the request sets, as far as they are known."""
        items = self.body.get("Tags")
        pairs = (
            (item.get("Key"), item.get("Value"))
            for item in (items if isinstance(items, list) else [])
            if isinstance(item, Mapping)
        )
        return {k: v for k, v in pairs if isinstance(k, str) and isinstance(v, str)}

    def tag(self, name: str) -> tuple[str | None, str | None]:
        """The value of a tag, None without one; and why it is not known, else None."""
        items = self.body.get("Tags")
        later = items if isinstance(items, NotKnown) else None
        for item in items if isinstance(items, list) else ():
            if isinstance(item, NotKnown):
                later = item
            elif isinstance(item, Mapping):
                key, value = item.get("Key"), item.get("Value")
                if key == name and not isinstance(value, NotKnown):
                    return (text(value).strip() or None), None
                if isinstance(unknown := value if key == name else key, NotKnown):
                    later = unknown
        return None, None if later is None else f"it is not known yet ({later.why})"


class FoundRequests(Struct, frozen=True):
    """The requests in a file, and sentences on what is in it and was not checked."""

    requests: tuple[Request, ...]
    left_out: tuple[str, ...] = ()


def planned(request: Request, region: str | None) -> Callable[[Decimal, datetime], Job]:
    """A function from seconds and start to the job as if it had run and completed so long.

    Its Describe answer would have the request's keys, so the same parser reads it. Raises
    Malformed for a value that no check of the request has found.
    """
    prefix = request.kind.row.prefix
    body = without(request.body, request.invalid)
    if "HyperParameterTuningResourceConfig" in body and "ResourceConfig" not in body:
        body["ResourceConfig"] = body["HyperParameterTuningResourceConfig"]
    if isinstance(body.get("StaticHyperParameters"), Mapping):
        body["HyperParameters"] = body["StaticHyperParameters"]
    if request.is_set("ServerlessJobConfig"):  # its values do not matter, and may be refused
        body["ServerlessJobConfig"] = {"JobType": "FineTuning"}
    _prefer_first(body)
    answer = {**body, request.name_key: request.name or _NO_NAME, f"{prefix}JobStatus": "Completed"}
    job = parse(answer, request.tags, account=request.account, region=region)
    if request.step is not None:
        job = replace(job, pipeline_step=request.step)

    def lasting(seconds: Decimal, start: datetime) -> Job:
        return replace(
            job,
            created_at=start,
            started_at=start,
            ended_at=start + timedelta(seconds=float(seconds)),
            training_s=seconds,
            billable_s=seconds,
        )

    return lasting


def _prefer_first(body: dict[str, Any]) -> None:
    """The first of several preferred types: SageMaker takes it where it has capacity."""
    for listed in ("InstancePreferences", "InstanceConfigs"):
        config = body.get("ResourceConfig")
        if isinstance(config, Mapping) and not config.get("InstanceType"):
            preferred = config.get(listed)
            if isinstance(preferred, list) and preferred and isinstance(preferred[0], Mapping):
                first = preferred[0]
                count = first.get("InstanceCount") or config.get("InstanceCount")
                body["ResourceConfig"] = {
                    **config,
                    "InstanceType": first.get("InstanceType"),
                    **({"InstanceCount": count} if count else {}),
                }


def image_name(request: Request) -> str | None:
    """The repository of its image, for people."""
    image = _image(request)
    return None if image is None else repository(image)


def _image(request: Request) -> str | None:
    """The address of its image, where it is known."""
    path = request.kind.row.image
    image = value_at(request.body, path) if path else None
    return image if isinstance(image, str) else None
