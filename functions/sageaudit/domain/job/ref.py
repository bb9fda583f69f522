"""The identity of a job, and the event of a job's end.

Only the job's name, ARN, status, tags and creation time are used from an event. Two runs with the
same name differ in their creation times. All figures that affect a price come from Describe*.
Anyone with write access to the event bus can name any job. So an answer of Describe* is used only
if its kind, name, account and region agree with the event's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from msgspec import Struct

from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind, kind_from_answer
from sageaudit.errors import MalformedData, RejectedEvent

JOB_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}\Z")
"""botocore's pattern of TrainingJobName. Other kinds of jobs use the same letters."""

REGION = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}")
"""A region's code in any partition, such as us-gov-west-1 or eusc-de-east-1."""

_ARN = re.compile(
    rf"arn:(?P<partition>aws[a-z-]*):sagemaker:(?P<region>{REGION.pattern}):"
    r"(?P<account>\d{12}):(?P<word>[a-z-]+)/(?P<name>[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62})\Z"
)
_ACCOUNT_ID = re.compile(r"\d{12}\Z", re.ASCII)
_KIND_BY_ARN_WORD = {kind.spec.arn_word: kind for kind in JobKind}
_PARTITIONS = {
    "cn": "aws-cn",
    "us-gov": "aws-us-gov",
    "us-iso": "aws-iso",
    "us-isob": "aws-iso-b",
    "us-isof": "aws-iso-f",
    "eu-isoe": "aws-iso-e",
    "eusc": "aws-eusc",
}

REPLAY_SOURCE = "sageaudit.replay"
"""The source of events that a person sends again. AWS does not let customers send from `aws.*`."""
SWEEP_SOURCE = "sageaudit.sweep"
"""The source of events that the sweep writes to the queue; the event rule does not match it."""
AWS_SOURCE = "aws.sagemaker"
BUS_SOURCES = (AWS_SOURCE, REPLAY_SOURCE)
"""The sources that the event rule matches."""
SOURCES = (*BUS_SOURCES, SWEEP_SOURCE)
DETAIL_TYPES = {kind.spec.detail_type: kind for kind in JobKind}
TERMINAL = frozenset({"Completed", "Failed", "Stopped"})
_CREATION_TIME_TOLERANCE = timedelta(seconds=1)
"""Two creation times of one run differ by less than this. Events have milliseconds, other sources
whole seconds."""


def is_account_id(text: str) -> bool:
    """Returns whether a text is an AWS account id: 12 digits."""
    return _ACCOUNT_ID.match(text) is not None


def region_partition(region: str) -> str:
    """Returns the partition of a region, such as aws-cn."""
    words = region.split("-")
    return _PARTITIONS.get("-".join(words[:2])) or _PARTITIONS.get(words[0], "aws")


def rollup_from_arn(arn: str | None) -> JobRef | None:
    """Returns the tuning or AutoML job that an ARN names; None for other ARNs."""
    ref = JobRef.from_arn(arn) if arn else None
    return ref if ref is not None and ref.kind.spec.rollup else None


class AccountRegion(Struct, frozen=True, order=True):
    """One account in one region."""

    account: str
    region: str

    def __str__(self) -> str:
        return f"{self.account} in {self.region}"


class JobRef(Struct, frozen=True):
    """The identity of a job. `name` keeps its case; in ARNs the name is in lower case."""

    kind: JobKind
    name: str
    arn: str
    account: str
    region: str

    @property
    def account_region(self) -> AccountRegion:
        """The job's account and region."""
        return AccountRegion(self.account, self.region)

    @classmethod
    def from_arn(cls, arn: str, name: str | None = None) -> JobRef | None:
        """Returns the job that `arn` names, or None if it is not a job's ARN.

        `name` is the job's name in its original case. If it differs from the ARN's name in more
        than case, None is returned.
        """
        match = _ARN.match(arn)
        if match is None or match["word"] not in _KIND_BY_ARN_WORD:
            return None
        if name is not None and name.lower() != match["name"].lower():
            return None
        if match["partition"] != region_partition(match["region"]):
            return None
        return cls(
            kind=_KIND_BY_ARN_WORD[match["word"]],
            name=name or match["name"],
            arn=arn,
            account=match["account"],
            region=match["region"],
        )


class JobEndEvent(Struct, frozen=True):
    """The end of a job, as its event reports it.

    `tags` are the tags in SageMaker's event. `is_replayed` means that a person sent the event: its
    tags are then ignored, and Describe must confirm the job. `is_from_aws` means that SageMaker
    sent it, through EventBridge.
    """

    ref: JobRef
    status: str
    created_at: datetime | None
    ended_at: datetime | None
    tags: Mapping[str, str]
    is_replayed: bool = False
    is_from_aws: bool = False


class AuditedScope(Protocol):
    """Says which accounts and regions are audited."""

    def includes_account(self, account: str) -> bool:
        """Returns whether jobs of the account are audited."""

    def includes(self, account_region: AccountRegion) -> bool:
        """Returns whether jobs of the account in this region are audited."""


def parse_job_end_event(body: str, scope: AuditedScope) -> JobEndEvent:
    """Parses one EventBridge event of a job's end.

    The event's account and region must be those of the job's ARN, and be in `scope`. Raises
    RejectedEvent with a stable code and the reason.
    """
    event, kind, detail = _envelope(body)
    try:
        ref, status = _ref(kind, detail), fields.text(detail, kind.spec.status_key)
        created_at = fields.time(detail, "CreationTime")
        event_time = fields.parsed_time(event.get("time"), "time")
    except MalformedData as error:
        raise RejectedEvent("malformed", f"detail: {error}") from error
    if status is None or (status not in TERMINAL and event["source"] != SWEEP_SOURCE):
        raise RejectedEvent("not_terminal", "the event's status is not final")
    _check_account_and_region(event, ref, scope)
    is_replayed = event["source"] == REPLAY_SOURCE
    tags = {} if is_replayed else _tags(detail.get("Tags"))
    is_from_aws = event["source"] == AWS_SOURCE
    return JobEndEvent(ref, status, created_at, event_time, tags, is_replayed, is_from_aws)


def _check_account_and_region(event: Mapping[str, Any], ref: JobRef, scope: AuditedScope) -> None:
    """Raises RejectedEvent unless account and region of event and ARN agree and are audited.

    Only EventBridge sets the account and region of an event. Other events lack them.
    """
    account, region = event.get("account", ref.account), event.get("region", ref.region)
    for source, name in (("ARN", ref.account), ("event", account)):
        if not isinstance(name, str) or not scope.includes_account(name):
            raise RejectedEvent("wrong_account", f"the {source}'s account is not on the allow-list")
    for source, name in (("ARN", ref.region), ("event", region)):
        if not isinstance(name, str) or not scope.includes(AccountRegion(ref.account, name)):
            raise RejectedEvent("wrong_region", f"the {source}'s region is not one that is audited")
    if account != ref.account:
        raise RejectedEvent("account_disagrees", "the event and the ARN are of different accounts")
    if region != ref.region:
        raise RejectedEvent("region_disagrees", "the event and the ARN are of different regions")


def _envelope(body: str) -> tuple[dict[str, Any], JobKind, dict[str, Any]]:
    try:
        event = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RejectedEvent("not_json", "the body is not JSON") from error
    if not isinstance(event, dict):
        raise RejectedEvent("not_an_event", "the body is not an object")
    if event.get("source") not in SOURCES:
        raise RejectedEvent("wrong_source", f"source is none of {', '.join(SOURCES)}")
    kind = DETAIL_TYPES.get(str(event.get("detail-type")))
    if kind is None:
        raise RejectedEvent("not_a_job", "detail-type is not a job's state change")
    detail = event.get("detail")
    if not isinstance(detail, dict):
        raise RejectedEvent("no_detail", "detail is not an object")
    return event, kind, detail


def _ref(kind: JobKind, detail: Mapping[str, Any]) -> JobRef:
    spec = kind.spec
    name, arn = fields.text(detail, spec.name_key), fields.text(detail, spec.arn_key)
    if name is None or arn is None:
        raise RejectedEvent("malformed", f"detail has no {spec.name_key} and JobArn")
    if not JOB_NAME.match(name):
        raise RejectedEvent("malformed", f"{spec.name_key} is not a job's name")
    ref = JobRef.from_arn(arn, name)
    if ref is None or ref.kind is not kind:
        raise RejectedEvent("arn_disagrees", "ARN and name or kind disagree")
    return ref


def _tags(value: object) -> dict[str, str]:
    """Returns the tags of an event.

    Real events have a map; the schema registry of EventBridge shows Key/Value objects.
    """
    if isinstance(value, dict):
        return {str(key): str(item) for key, item in value.items()}
    if isinstance(value, list):
        return {
            str(item["Key"]): str(item.get("Value", ""))
            for item in value
            if isinstance(item, dict) and "Key" in item
        }
    return {}


class DescribedRun(Struct, frozen=True):
    """The run that a Describe answer is about. A time is None if the answer lacks it."""

    arn: str
    created_at: datetime | None
    modified_at: datetime | None


def parse_described_run(ref: JobRef, answer: Mapping[str, Any]) -> DescribedRun:
    """Returns the run that a Describe answer is about.

    Raises MalformedData, or RejectedEvent if the answer is about another job than `ref`.
    """
    spec, kind = ref.kind.spec, kind_from_answer(answer)
    name, arn = fields.text(answer, spec.name_key), fields.text(answer, spec.arn_key)
    if name is not None and not JOB_NAME.match(name):
        raise RejectedEvent("answer_disagrees", "the name in Describe's answer is not a job's name")
    described_ref = ref if arn in {None, ref.arn} else JobRef.from_arn(arn)
    if described_ref is None:
        raise RejectedEvent("answer_disagrees", "the ARN in Describe's answer is not a job's ARN")
    for field, actual in (
        ("kind", kind or ref.kind),
        ("name", name or ref.name),
        *(
            (value, getattr(described_ref, value))
            for value in ("account", "region", "kind", "name")
        ),
    ):
        expected = getattr(ref, field)
        if expected.lower() != actual.lower():
            text = f"Describe answers with a job of another {field}: {actual} instead of {expected}"
            raise RejectedEvent("answer_disagrees", text)
    return DescribedRun(
        arn or ref.arn, fields.time(answer, "CreationTime"), fields.time(answer, "LastModifiedTime")
    )


def is_same_run(event_created_at: datetime | None, described_created_at: datetime | None) -> bool:
    """Returns whether two creation times are of the same run; True if one is unknown."""
    if event_created_at is None or described_created_at is None:
        return True
    return abs(event_created_at - described_created_at) < _CREATION_TIME_TOLERANCE
