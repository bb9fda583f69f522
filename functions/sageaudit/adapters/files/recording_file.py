"""Writes recordings of what audits read: private ones, or anonymized ones to share.

An anonymized recording has pseudonyms for all names in an answer. The table in `job_fields` says
how. Enumerated fields keep AWS's values. sageaudit's own sentences, numbers and times are kept.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from sageaudit.adapters.files import local_files, recording
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.files.recording import SCHEMA, RecordedSet, Recording
from sageaudit.domain.audit.finding_document import iso
from sageaudit.domain.audit.pseudonyms import Pseudonyms
from sageaudit.domain.job.describe import (
    SAGEAUDIT_TAGS,
    TAG_VALUE_ABSENT,
    TAG_VALUE_PRESENT,
    TagNames,
    sanitize_answer,
    tags_to_store,
)
from sageaudit.domain.job.fields import DERIVED, UNKNOWN, StoredAs, read_fields
from sageaudit.domain.job.job_fields import STORED_FIELDS
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.moments import parse_day
from sageaudit.domain.policy.policy import IGNORE_TAG as EXEMPTION
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import METRIC_DENIED_CODE, RawSeries
from sageaudit.errors import BadUsage
from sageaudit.token_shapes import is_name

_WIDTH = 100
_TAGS = Policy().tag_names
ANONYMIZED = "anonymized"
"""The key that marks an anonymized file."""
REDACTED = "not shared"
"""Replaces every sentence in an anonymized file that sageaudit did not write."""
_PUBLIC = ("region", "component", "read_at", "managed_spot", "rates")
"""The parts of a recorded price list that AWS publishes."""
_KNOWN_TAGS = SAGEAUDIT_TAGS.union(Policy().owner_tags)
"""Tag names that are not replaced, since audits read them by default."""
_CODES = frozenset({"metric_missing", METRIC_DENIED_CODE})
"""The codes that the CloudWatch reader gives for missing metrics."""
_SAFE_SENTENCES = re.compile(
    r"(?:tags: )?[a-z]{1,20}:[A-Za-z]{1,60} (?:is not permitted|is throttled: try again later)"
    r"|CloudWatch has no points|CloudWatch keeps metrics for 455 days"
    r"|the job's own code (?:did not run|has not run yet)"
    r"|series of the extreme hosts alone(?:; no curves)?"
    r"|the series were too large to keep"
)
"""Matches sageaudit's own sentences, which contain no data of the account."""


def make_document(
    recording: Recording | RecordedSet, key: bytes | None = None, tags: TagNames = _TAGS
) -> dict[str, Any]:
    """Returns a recording's JSON: a job as a history stores it, with metrics and prices.

    With the fingerprint `key`, runs with equal settings can be recognized. `tags` names the tags to
    keep. The jobs of a set share one time and price list if these are equal. Raises MalformedData.
    """
    if isinstance(recording, Recording):
        return {"schema": SCHEMA, **_job_document(recording, key, tags)}
    children = [_job_document(child, key, tags) for child in recording.children]
    rollup_document = {} if recording.rollup is None else _job_document(recording.rollup, key, tags)
    for shared_key in ("as_of", "prices"):
        shared_value = next(
            (child[shared_key] for child in children if child.get(shared_key)), None
        )
        if (
            shared_value is not None
            and rollup_document.setdefault(shared_key, shared_value) == shared_value
        ):
            for child in children:
                if child.get(shared_key) == shared_value:
                    del child[shared_key]
    deleted_part = (
        {"deleted": [ref.arn for ref in recording.deleted_jobs]} if recording.deleted_jobs else {}
    )
    return {"schema": SCHEMA, **rollup_document, **deleted_part, "children": children}


def _job_document(job_recording: Recording, key: bytes | None, tags: TagNames) -> dict[str, Any]:
    stored_tags = tags_to_store(job_recording.tags, tags, is_complete=job_recording.has_all_tags)
    read_context = job_recording.read_context
    named_series = [
        raw for raw in job_recording.series if is_name(raw.host) and is_name(raw.metric)
    ]
    metrics: dict[str, Any] = {"series": [_series(raw) for raw in named_series]}
    document: dict[str, Any] = {"account": job_recording.account, "region": job_recording.region}
    if read_context is not None:
        document["as_of"] = iso(read_context.read_at)
        if read_context.notes:
            document["notes"] = list(read_context.notes)
        metrics = {
            "absent": asdict(read_context.no_points_reason),
            **({"notes": list(read_context.metric_notes)} if read_context.metric_notes else {}),
            **metrics,
        }
    document["describe"] = sanitize_answer(job_recording.describe, key)
    document["tags"] = [{"Key": name, "Value": value} for name, value in stored_tags.items()]
    document["metrics"] = metrics
    if read_context is not None and read_context.prices is not None:
        document["prices"] = recording.prices_document(read_context.prices)
    return document


def _series(series: RawSeries) -> dict[str, Any]:
    return {
        "host": series.host,
        "metric": series.metric,
        "start": iso(series.start),
        "period_s": series.period_s,
        "values": list(series.values),
    }


def to_text(document: Mapping[str, Any]) -> str:
    """Returns a recording's JSON text for people. Each list of numbers is on one line."""
    return "".join(_lines(document, "")) + "\n"


def _lines(value: object, indent: str) -> Iterator[str]:
    one_line_text = to_json(value)
    is_flat_list = isinstance(value, list) and not any(
        isinstance(entry, dict | list) for entry in value
    )
    if (
        is_flat_list
        or not isinstance(value, dict | list)
        or len(indent) + len(one_line_text) <= _WIDTH
    ):
        yield one_line_text
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield opening
    inner_indent = f"{indent} "
    pairs = value.items() if isinstance(value, dict) else ((None, entry) for entry in value)
    for position, (key, item) in enumerate(pairs):
        yield f"{',' if position else ''}\n{inner_indent}"
        if key is not None:
            yield f"{json.dumps(str(key), ensure_ascii=False)}: "
        yield from _lines(item, inner_indent)
    yield f"\n{indent}{closing}"


def check_can_write(path: Path, *, replace: bool) -> None:
    """Raises BadUsage if the folder is missing, or if the file exists and `replace` is False."""
    if not path.parent.is_dir():
        raise BadUsage(f"{path}: there is no folder {path.parent}")
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadUsage(
            f"{path}: cannot be written ({error.strerror}): choose another file with -o"
        ) from error
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        raise BadUsage(f"{path} is not a file: choose another one, or -o - for stdout")
    if not replace:
        raise BadUsage(f"{path} exists already: choose another file with -o, or add --force")


def write(path: Path, text: str, *, replace: bool) -> None:
    """Writes a file completely or not at all. Only its owner can read it.

    Raises BadUsage if the file cannot be written, or exists and `replace` is False.
    """
    check_can_write(path, replace=replace)
    local_files.write_text(path, text, mode=0o600)


def anonymize(
    document: Mapping[str, Any], salt: bytes, rules: Collection[str], types: Collection[str]
) -> dict[str, Any]:
    """Returns a recording's JSON for sharing. Raises MalformedData.

    Exemption tags keep the names of `rules`. `types` are the instance types that AWS's API names.
    The same salt gives the same pseudonyms in every file. Times are kept, since prices depend on
    the day.
    """
    anonymizer = _Anonymizer(Pseudonyms(salt, _job_names(document)), rules, types)
    anonymized = {
        "schema": document["schema"],
        ANONYMIZED: True,
        **anonymizer.anonymize_job(document),
    }
    if "children" in document:
        anonymized["children"] = [anonymizer.anonymize_job(child) for child in document["children"]]
    return anonymized


def _job_names(document: Mapping[str, Any]) -> Iterator[str]:
    for job in (document, *document.get("children", ())):
        answer = job.get("describe") or {}
        names = (answer.get(kind.spec.name_key) for kind in JobKind)
        yield from (name for name in names if isinstance(name, str))


class _Anonymizer(Struct, frozen=True):
    names: Pseudonyms
    rules: Collection[str]
    types: Collection[str]

    def anonymize_job(self, document: Mapping[str, Any]) -> dict[str, Any]:
        names, account = self.names, document.get("account")
        share_by_key: Mapping[str, Callable[[Any], Any]] = {
            "account": lambda account_id: account_id and names.account(account_id),
            "region": lambda name: name if name and REGION.fullmatch(name) else None,
            "as_of": lambda moment: moment,
            "notes": lambda texts: [_sentence(text) for text in texts],
            "describe": lambda answer: self._answer(answer, account),
            "deleted": lambda arns: [names.arn(arn) for arn in arns],
            "tags": lambda tags: [
                self._tag(name, value)
                for name, value in {item["Key"]: item["Value"] for item in tags}.items()
            ],
            "metrics": self._metrics,
            "prices": lambda prices: {
                **{key: prices[key] for key in _PUBLIC if key in prices},
                "why": prices["why"] and _sentence(prices["why"]),
            },
        }
        return {key: share(document[key]) for key, share in share_by_key.items() if key in document}

    def _answer(self, answer: Mapping[str, Any], job_account: str | None) -> dict[str, Any]:
        # An image in `job_account` counts as the user's, not as AWS's.
        names = self.names
        pseudonyms: Mapping[StoredAs, Callable[[str], str]] = {
            StoredAs.TYPE: lambda text: text if text in self.types else UNKNOWN,
            StoredAs.JOB: names.job,
            StoredAs.ARN: names.arn,
            StoredAs.IMAGE: lambda text: names.image(text, job_account),
            StoredAs.MODEL: lambda text: names.word("mod", text),
            StoredAs.ADDRESS: names.address,
            StoredAs.CHANNEL: names.channel,
            StoredAs.GROUP: lambda text: names.word("grp", text),
            StoredAs.METRIC: names.metric,
            StoredAs.RULE: names.debugger_rule,
        }

        def share(field: StoredAs, section: Mapping[str, Any], key: str) -> Any:
            text, pseudonym = section[key], pseudonyms.get(field)
            return pseudonym(text) if pseudonym and isinstance(text, str) else text

        sanitized = sanitize_answer(answer)
        derived = dict(sanitized[DERIVED])
        for key, pseudonym in (
            ("EntryPoint", names.script),
            ("TunedFor", names.metric),
            ("Fingerprint", lambda text: names.word("fpr", text)),
        ):
            if key in derived:
                derived[key] = pseudonym(derived[key])
        return {**read_fields(sanitized, STORED_FIELDS, share), DERIVED: derived}

    def _metrics(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if "absent" in metrics:
            absence = metrics["absent"]
            code = absence["code"] if absence["code"] in _CODES else REDACTED
            result["absent"] = {
                "code": code,
                "reason": _sentence(absence["reason"]),
                "remedy": None,
            }
        if "notes" in metrics:
            result["notes"] = [_sentence(text) for text in metrics["notes"]]
        hosts: dict[str, list[str]] = {}
        for series in metrics["series"]:
            hosts.setdefault(series["host"].partition("/")[0], []).append(series["host"])
        result["series"] = [
            {
                **{key: series[key] for key in ("start", "period_s", "values")},
                "host": self.names.host(series["host"], hosts[series["host"].partition("/")[0]]),
                "metric": self.names.metric(series["metric"]),
            }
            for series in metrics["series"]
        ]
        return result

    def _tag(self, name: str, value: str) -> dict[str, str]:
        """Returns a tag with a pseudonym as value. A name that audits do not read is replaced, too.

        An exemption keeps its rules and date, so that it has the same effect.
        """
        names = self.names
        tag_name = name if name in _KNOWN_TAGS else names.word("tag", name)
        if name == EXEMPTION:
            value = " ".join(map(self._exempt, value.split()))
        elif value and value not in {TAG_VALUE_PRESENT, TAG_VALUE_ABSENT}:
            value = names.arn(value) if value.startswith("arn:") else names.word("val", value)
        return {"Key": tag_name, "Value": value}

    def _exempt(self, word: str) -> str:
        key, equals, until = word.partition("=")
        if not equals:
            return word if word in self.rules else self.names.word("val", word)
        try:
            return f"until={parse_day(until)}" if key == "until" else "-=-"
        except ValueError:
            return "until=-"


def _sentence(text: str) -> str:
    text_without_point = text.rstrip(".")
    return text_without_point if _SAFE_SENTENCES.fullmatch(text_without_point) else REDACTED
