"""Items of the table to and from rows. Money is a number attribute; what is not known is absent."""

from __future__ import annotations

import zlib
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from sageaudit.adapters.dynamo import keys
from sageaudit.adapters.dynamo.facts_text import facts_text, read_facts
from sageaudit.adapters.dynamo.rows import Filed
from sageaudit.adapters.dynamo.stored_document import read_text, stored_text
from sageaudit.adapters.dynamo.table import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.dynamo.versions import Standing
from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.domain.audit.document import AuditDocument, Severity
from sageaudit.domain.audit.record import Detail, Entry, FindingRow, Head, JobKey

Item = dict[str, Any]
LARGEST_DETAIL_BYTES = 350_000
"""Of the packed description and series together; above it the series stay out."""


def head_item(entry: Entry, head: Head, digest: str, filed: tuple[Filed, ...]) -> Item:
    """HEAD: the newest version as lists show it, and what the next delivery is compared with."""
    audit = entry.document["audit"]
    return _known(
        {
            PARTITION_KEY: keys.job_pk(head.key),
            SORT_KEY: keys.HEAD_SK,
            **_run(head.key),
            "version": head.version,
            "settled": head.settled,
            "due_at": _moment(head.due_at),
            "last_modified_at": keys.moment_text(head.last_modified_at),
            "name": head.name,
            "kind": head.kind,
            "status": head.status,
            "account": head.account,
            "region": head.region,
            "family": head.family,
            "family_version": entry.family_version,
            "owner": head.owner,
            "ended_at": keys.moment_text(head.ended_at),
            "rollup": head.rollup,
            "total_usd": head.total_usd,
            "avoidable_usd": head.avoidable_usd,
            "lost_usd": head.lost_usd,
            "top_rule": head.top_rule,
            "unauditable": head.unauditable,
            "digest": digest,
            "ruleset": audit["ruleset"],
            "policy": audit["policy"],
            "fingerprint": entry.fingerprint,
            "finding_ids": [one.rule_id for one in filed],
            "facts": None if head.facts is None else facts_text(head.facts),
            **_head_index_keys(head),
        }
    )


def _head_index_keys(head: Head) -> Item:
    """`due_*` only while a second look is planned: that index holds nothing else."""
    return {
        "day_pk": keys.day_pk(head.ended_at, head.key),
        "family_pk": keys.family_pk(head.account, head.region, head.family),
        "owner_pk": None if head.owner is None else keys.owner_pk(head.owner),
        "account_pk": keys.account_pk(head.account, keys.month_of(head.ended_at)),
        "ended_sk": keys.ended_sk(head.ended_at, head.key),
        "due_pk": None if head.due_at is None else keys.due_pk(head.key),
        "due_sk": None if head.due_at is None else keys.due_sk(head.due_at, head.key),
    }


def read_head(item: Item) -> Head:
    """The head of a HEAD item."""
    return Head(
        key=_read_run(item),
        version=int(item["version"]),
        settled=item["settled"],
        due_at=_read_moment(item.get("due_at")),
        last_modified_at=keys.read_moment(item["last_modified_at"]),
        name=item["name"],
        kind=item["kind"],
        status=item["status"],
        account=item["account"],
        region=item["region"],
        family=item["family"],
        owner=item.get("owner"),
        ended_at=keys.read_moment(item["ended_at"]),
        rollup=item["rollup"],
        total_usd=_usd(item, "total_usd"),
        avoidable_usd=_usd(item, "avoidable_usd"),
        lost_usd=_usd(item, "lost_usd"),
        top_rule=item.get("top_rule"),
        unauditable=item.get("unauditable"),
        facts=read_facts(item["facts"]) if "facts" in item else None,
    )


def read_standing(item: Item) -> Standing:
    """What the next delivery is compared with."""
    return Standing(
        version=int(item["version"]),
        last_modified_at=keys.read_moment(item["last_modified_at"]),
        settled=item["settled"],
        digest=item["digest"],
        finding_ids=tuple(item["finding_ids"]),
    )


def audit_item(entry: Entry, version: int) -> Item:
    """AUDIT#<version>: the document, never changed again."""
    audit = entry.document["audit"]
    return _known(
        {
            PARTITION_KEY: keys.job_pk(entry.key),
            SORT_KEY: keys.audit_sk(version),
            "version": version,
            "settled": audit["settled"],
            "ruleset": audit["ruleset"],
            "policy": audit["policy"],
            "fingerprint": entry.fingerprint,
            "document": stored_text(entry.document, version),
        }
    )


def read_audit(item: Item) -> AuditDocument:
    """The document of an AUDIT# item."""
    return read_text(item["document"])


def finding_item(filed: Filed) -> Item:
    """FINDING#<rule id>: one finding of the newest version, listed by rule and month."""
    row = filed.row
    return _known(
        {
            PARTITION_KEY: keys.job_pk(row.key),
            SORT_KEY: keys.finding_sk(filed.rule_id),
            **_run(row.key),
            "rule": row.rule,
            "severity": row.severity,
            "confidence": filed.confidence,
            "bucket": row.bucket,
            "name": row.name,
            "family": row.family,
            "owner": row.owner,
            "ended_at": keys.moment_text(row.ended_at),
            "saving_usd": row.saving_usd,
            "saving_alone_usd": filed.saving_alone_usd,
            "summary": row.summary,
            "rule_pk": keys.rule_pk(row.rule, keys.month_of(row.ended_at)),
            "ended_sk": keys.ended_sk(row.ended_at, row.key),
        }
    )


def read_finding(item: Item) -> FindingRow:
    """The row of a FINDING# item."""
    return FindingRow(
        key=_read_run(item),
        rule=item["rule"],
        severity=cast("Severity", item["severity"]),
        bucket=item["bucket"],
        name=item["name"],
        family=item["family"],
        owner=item.get("owner"),
        ended_at=keys.read_moment(item["ended_at"]),
        saving_usd=_usd(item, "saving_usd"),
        summary=item["summary"],
    )


def detail_item(key: JobKey, detail: Detail, expires_at: datetime) -> Item:
    """DETAIL: what is needed to judge the job again, until it expires."""
    return {PARTITION_KEY: keys.job_pk(key), SORT_KEY: keys.DETAIL_SK} | _known(
        {TTL_ATTRIBUTE: keys.epoch_s(expires_at), **packed_detail(detail)}
    )


def packed_detail(detail: Detail) -> Item:
    """The detail as attributes: description and tags as compressed JSON, the series as they are."""
    job = zlib.compress(to_json({"describe": detail.describe, "tags": detail.tags}).encode())
    fits = len(job) + len(detail.series) <= LARGEST_DETAIL_BYTES
    dropped = None if fits else "The series were too large to keep."
    notes = [note for note in (detail.note, dropped) if note]
    return {"job": job, "series": detail.series if fits else b"", "note": " ".join(notes) or None}


def read_detail(item: Item) -> Detail:
    """The detail of a DETAIL item."""
    job = from_json(zlib.decompress(item["job"]).decode())
    return Detail(job["describe"], job["tags"], item["series"], item.get("note"))


def _run(key: JobKey) -> Item:
    return {"arn": key.arn, "created_at": keys.moment_text(key.created_at)}


def _read_run(item: Item) -> JobKey:
    return JobKey(item["arn"], keys.read_moment(item["created_at"]))


def _known(item: Item) -> Item:
    return {name: value for name, value in item.items() if value is not None}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else keys.moment_text(moment)


def _read_moment(text: str | None) -> datetime | None:
    return None if text is None else keys.read_moment(text)


def _usd(item: Item, name: str) -> Decimal | None:
    value = item.get(name)
    return value if isinstance(value, Decimal) else None
