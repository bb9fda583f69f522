"""Parses a Describe* answer and the job's tags into a Job, from stored fields only.

Every answer passes `sanitize_answer`, which drops all fields that `job_fields` does not list.
Histories and recordings store the sanitized answer. So sageaudit judges live, recorded and
re-audited jobs alike, and can show nothing else. Flags from settings (`hints`) are stored under the
key `Derived`.

Every field except name and status may be absent: in a job that failed early, an answer of 2018, or
a partial recording. Fields: botocore's sagemaker model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from sageaudit import token_shapes
from sageaudit.domain.job import fields, hints
from sageaudit.domain.job.addresses import bucket_name, is_data_pinned
from sageaudit.domain.job.course import DOWNLOADS
from sageaudit.domain.job.failure_words import parse_failure
from sageaudit.domain.job.family import entry_point, fingerprint, fingerprint_settings, script, stem
from sageaudit.domain.job.fields import DERIVED, UNKNOWN, StoredAs, read_fields
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.job_fields import STORED_FIELDS, job_arguments
from sageaudit.domain.job.kinds import JobKind, kind_from_answer
from sageaudit.domain.job.ref import JOB_NAME, JobRef
from sageaudit.domain.job.settings import mark_unset_settings, read_settings
from sageaudit.errors import MalformedData
from sageaudit.token_shapes import WITHHELD, is_name, is_tag

OBJECTIVE_HYPERPARAMETER = "_tuning_objective_metric"
"""The hyperparameter by which a tuning job tells its trials the objective."""
VERSION_PLACEHOLDER = "?versionId=kept"
"""Replaces the part of an address that names a version of the data."""
_TAGS = """
sageaudit:ignore sageaudit:deadline sagemaker:pipeline-step-name sagemaker:pipeline-execution-arn
"""
SAGEAUDIT_TAGS = frozenset(_TAGS.split())
"""The tags that audits read under every policy."""
TAG_VALUE_PRESENT = "(set)"
"""Replaces the value of a required tag that is not stored. AWS allows no parentheses in a tag."""
TAG_VALUE_ABSENT = "(not set)"
_WORDS = """
Completed InProgress Failed Stopping Stopped Deleting DeleteFailed
Starting LaunchingMLInstances PreparingTrainingStack Downloading DownloadingTrainingImage Training
Uploading MaxRuntimeExceeded Interrupted MaxWaitTimeExceeded Updating Restarting Pending
Pipe File FastFile ManifestFile S3Prefix AugmentedManifestFile Converse FullyReplicated
ShardedByS3Key EFS FSxLustre GZIP NONE Available Terminated Reused InUse
Enabled Disabled EndOfJob Continuous MultiRecord SingleRecord
Bayesian Random Hyperband Grid Off Auto Maximize Minimize
"""
STATES = frozenset(_WORDS.split())
"""The values of AWS's enumerated fields, from botocore's service model."""
_TYPE = re.compile(
    r"ml\.[a-z][a-z0-9-]{0,15}\.(?:nano|micro|small|medium|large|\d{0,3}xlarge|metal)"
)
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}\Z")
_COMMIT = re.compile(r":[0-9a-f]{40}\Z")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}|fpr-[a-z]{10}")
"""A keyed hash, or the pseudonym that replaces it in a recording for sharing."""

_PIPELINE = re.compile(r":pipeline/([^/]+)/execution/")


def sanitize_answer(answer: Mapping[str, Any], key: bytes | None = None) -> dict[str, Any]:
    """Returns the stored form of a Describe* answer. Sanitizing the result again changes nothing.

    A setting that AWS's own answer lacks becomes null. `key` is the secret key of the fingerprint;
    without it, no fingerprint is stored. Raises MalformedData for an impossible value.
    """
    sanitized = read_fields(answer, STORED_FIELDS, _sanitize_field)
    kind = kind_from_answer(answer)
    if kind is not None and DERIVED not in answer:
        mark_unset_settings(kind, answer, sanitized)
    sanitized[DERIVED] = _derive_settings(answer, sanitized)
    if (fingerprint_text := _fingerprint(kind, answer, key)) is not None:
        sanitized[DERIVED]["Fingerprint"] = fingerprint_text
    return sanitized


class TagNames(Struct, frozen=True):
    """The names of the tags that audits read.

    `values` are the tags whose values are stored. `required_names` are the tags that a policy
    requires.
    """

    values: frozenset[str]
    required_names: frozenset[str] = frozenset()


def filter_tags(tags: Mapping[str, str], names: frozenset[str] | None = None) -> dict[str, str]:
    """Returns the tags with these names (None: all tags).

    Invalid tags, and tags that look like a token, are left out.
    """
    return {
        name: value
        for name, value in tags.items()
        if (names is None or name in names) and is_tag(name) and (not value or is_tag(value))
    }


def tags_to_store(tags: Mapping[str, str], names: TagNames, *, is_complete: bool) -> dict[str, str]:
    """Returns the tags to store. A required tag whose value is not stored gets a mark instead.

    `is_complete` means that `tags` has all tags of the job. Then an absent required tag is marked
    as not set.
    """
    stored = filter_tags(tags, names.values)
    for name in sorted(names.required_names - stored.keys()):
        if name in tags:
            stored[name] = _presence_mark(tags[name])
        elif is_complete:
            stored[name] = TAG_VALUE_ABSENT
    return stored


def split_stored_tags(stored_tags: Mapping[str, str]) -> tuple[dict[str, str], dict[str, bool]]:
    """Returns two maps by tag name: the stored values, and whether each tag has a value."""
    values = {
        name: value
        for name, value in stored_tags.items()
        if value not in {TAG_VALUE_PRESENT, TAG_VALUE_ABSENT}
    }
    return values, {
        name: _presence_mark(value) == TAG_VALUE_PRESENT for name, value in stored_tags.items()
    }


def rejected_tags(tags: Mapping[str, str], names: TagNames) -> list[str]:
    """Returns the names of tags whose value is not stored because it looks like a token."""
    accepted_tags = filter_tags(tags, names.values)
    return sorted(name for name in names.values if tags.get(name) and name not in accepted_tags)


def _presence_mark(value: str) -> str:
    return TAG_VALUE_ABSENT if value == TAG_VALUE_ABSENT or not value.strip() else TAG_VALUE_PRESENT


def _sanitize_field(field: StoredAs, section: Mapping[str, Any], key: str) -> Any:
    match field:
        case StoredAs.COUNT:
            return fields.count(section, key)
        case StoredAs.NUMBER:
            return None if fields.number(section, key) is None else section[key]
        case StoredAs.FLAG:
            return fields.optional_flag(section, key)
        case StoredAs.TIME:
            moment = fields.time(section, key)
            return moment and moment.isoformat().replace("+00:00", "Z")
        case StoredAs.PRESENCE:
            return _presence(section[key])
        case StoredAs.IMAGE_PULL if section.get("Status") not in DOWNLOADS:
            return None
    text = fields.text(section, key)
    return text and _TEXTS.get(field, token_shapes.safe_name)(text)


def _presence(value: Any) -> Any:
    if isinstance(value, list):
        return [WITHHELD] if value else []
    return WITHHELD if value else None


def _is_bucket(name: str | None) -> bool:
    return name is not None and bucket_name(f"s3://{name}") == name and is_name(name)


def _address(text: str) -> str:
    bucket = bucket_name(text)
    place = bucket if _is_bucket(bucket) else "-"
    return f"s3://{place}/{VERSION_PLACEHOLDER if is_data_pinned([(None, text)]) else ''}"


def _image(text: str) -> str:
    plain = _DIGEST.sub("", text)
    return plain if is_name(_COMMIT.sub("", plain)) and "@" not in plain else WITHHELD


_TEXTS: Mapping[StoredAs, Callable[[str], str | None]] = {
    StoredAs.STATE: lambda text: text if text in STATES else UNKNOWN,
    StoredAs.TYPE: lambda text: text if _TYPE.fullmatch(text) else UNKNOWN,
    StoredAs.FAILURE: lambda text: str(parse_failure(text) or "") or None,
    StoredAs.IMAGE_PULL: lambda text: f"Downloading {'the image' if 'image' in text else 'data'}",
    StoredAs.JOB: lambda text: text if JOB_NAME.match(text) else WITHHELD,
    StoredAs.IMAGE: _image,
    StoredAs.MODEL: lambda text: token_shapes.safe_name(stem(text)),
    StoredAs.ADDRESS: _address,
}
"""The functions that return the stored form of a text. Any other text is stored as a name."""


def _derive_settings(answer: Mapping[str, Any], sanitized: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values to store under `Derived`, without the fingerprint.

    A stored answer keeps its earlier values, because their sources are no longer in the answer.
    """
    stored = answer.get(DERIVED)
    if isinstance(stored, Mapping):
        flags = hints.from_stored(fields.section(stored, "Hints"))
        script_name, tuned_for = fields.text(stored, "EntryPoint"), fields.text(stored, "TunedFor")
        script_name = script(script_name) if script_name else None
    else:
        flags, script_name = hints.from_answer(answer), entry_point(answer)
        objective = fields.section(answer, "HyperParameters").get(OBJECTIVE_HYPERPARAMETER)
        tuned_for = objective.strip('"') if isinstance(objective, str) else None
    values = {
        "Hints": hints.to_stored(flags),
        "EntryPoint": script_name if script_name and is_name(script_name) else None,
        "TunedFor": tuned_for if tuned_for in _metrics(sanitized) else None,
    }
    return {name: value for name, value in values.items() if value}


def _fingerprint(kind: JobKind | None, answer: Mapping[str, Any], key: bytes | None) -> str | None:
    """Returns the fingerprint in a stored answer, or that of AWS's own answer with `key`."""
    stored = answer.get(DERIVED)
    if isinstance(stored, Mapping):
        text = fields.text(stored, "Fingerprint")
        return text if text and _FINGERPRINT.fullmatch(text) else None
    settings = fingerprint_settings(kind, answer) if key and kind else ()
    return fingerprint(key, settings) if key and settings else None


def _metrics(stored_job: Mapping[str, Any]) -> set[str]:
    defined = (stored_job.get("AlgorithmSpecification") or {}).get("MetricDefinitions") or []
    rows = [*(row.get("Name") for row in defined)]
    rows += [row.get("MetricName") for row in stored_job.get("FinalMetricDataList") or []]
    return {name for name in rows if name} - {WITHHELD}


class ParsedAnswer(Struct, frozen=True):
    """A Describe* answer and its stored form, from which its job is made.

    `arguments` are those of Job that depend neither on tags nor on the key of the fingerprint.
    """

    kind: JobKind
    answer: Mapping[str, Any]
    stored_answer: Mapping[str, Any]
    arguments: Mapping[str, Any]

    def job(
        self,
        tags: Mapping[str, str],
        *,
        account: str | None = None,
        region: str | None = None,
        key: bytes | None = None,
    ) -> Job:
        """Returns the job with these tags.

        `account` and `region` default to those of the ARN. `key` is the secret key of the
        fingerprint; without it, the job gets none. Raises MalformedData.
        """
        arn = self.arguments["arn"]
        ref = JobRef.from_arn(arn) if arn else None
        shown_tags, tags_set = split_stored_tags(filter_tags(tags))
        return Job(
            kind=self.kind,
            account=account or (ref.account if ref else None),
            region=region or (ref.region if ref else None),
            pipeline_step=_pipeline_step(shown_tags),
            tags=shown_tags,
            tag_presence=tags_set,
            fingerprint=_fingerprint(self.kind, self.answer, key) if key else None,
            **self.arguments,
        )


def parse_answer(answer: Mapping[str, Any]) -> ParsedAnswer:
    """Returns a Describe* answer with its stored form.

    Raises MalformedData if the kind is unknown, or a field has an impossible value.
    """
    kind = kind_from_answer(answer)
    if kind is None:
        raise MalformedData("describe", "has no ...JobName with a ...JobStatus of a known kind")
    stored_answer = sanitize_answer(answer)
    arguments, spec = job_arguments(kind, stored_answer), kind.spec
    for field, answer_key in (("name", spec.name_key), ("status", spec.status_key)):
        if arguments[field] is None:
            raise MalformedData(answer_key, "is empty")
    arguments["settings"] = read_settings(kind, stored_answer)
    return ParsedAnswer(kind, answer, stored_answer, arguments)


def parse(
    answer: Mapping[str, Any],
    tags: Mapping[str, str],
    *,
    account: str | None = None,
    region: str | None = None,
    key: bytes | None = None,
) -> Job:
    """Returns the job of a Describe* answer and its tags. Raises MalformedData."""
    return parse_answer(answer).job(tags, account=account, region=region, key=key)


def latest_time(answer: Mapping[str, Any]) -> datetime | None:
    """Returns the latest time in an answer and its lists; None without a time.

    It shows when the job was last observed. Raises MalformedData for an invalid time.
    """
    lists = [value for value in answer.values() if isinstance(value, list)]
    rows = [answer, *(row for rows in lists for row in rows if isinstance(row, Mapping))]
    keys = ((row, key) for row in rows for key in row if key.endswith(("Time", "Timestamp")))
    return max(filter(None, (fields.time(row, key) for row, key in keys)), default=None)


def _pipeline_step(tags: Mapping[str, str]) -> str | None:
    step = tags.get("sagemaker:pipeline-step-name")
    execution = _PIPELINE.search(tags.get("sagemaker:pipeline-execution-arn", ""))
    return f"pipeline/{execution[1]}/{step}" if execution and step else None
