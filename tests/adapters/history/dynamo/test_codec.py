"""Rows of the table: what is written is read back, under the attributes that are documented."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from sageaudit.adapters.history.codec import from_item, to_item
from sageaudit.adapters.history.dynamo.items import finding_item, read_finding
from sageaudit.domain.audit.earlier import RunFacts
from sageaudit.domain.audit.record import FindingRow, Head, JobKey
from sageaudit.domain.bill.finding import Bucket, Confidence, Severity
from sageaudit.domain.job.job import Purchase

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HEAD = Head(
    key=JobKey("arn:job", NOON),
    version=3,
    settled=False,
    due_at=NOON,
    last_modified_at=NOON,
    name="train-1",
    kind="training",
    status="Completed",
    account="111122223333",
    region="us-east-1",
    family="f",
    owner="ana",
    ended_at=NOON,
    rollup=False,
    total_usd=Decimal("4.545000"),
    avoidable_usd=Decimal(0),
    lost_usd=None,
    top_rule=None,
    unauditable=None,
    digest="d",
    ruleset="r",
    policy="p",
    family_version=1,
    fingerprint=None,
    finding_ids=("SA101", "SA202"),
    facts=RunFacts(Purchase.SPOT, final_metrics={"odd": Decimal("1E-300")}, found=("gpu-idle",)),
)
ROW = FindingRow(
    key=JobKey("arn:job", NOON),
    rule_id="SA202",
    rule="gpu-underused",
    severity=Severity.HIGH,
    confidence=Confidence.DERIVED,
    bucket=Bucket.AVOIDABLE,
    name="train-1",
    family="f",
    owner=None,
    ended_at=NOON,
    saving_usd=Decimal(100),
    saving_alone_usd=None,
    summary="so",
)


def test_a_head_has_the_attributes_of_the_data_model() -> None:
    """Words, times and lists are plain; money is a number; what is not known is absent."""
    assert to_item(HEAD) == {
        "arn": "arn:job",
        "created_at": "2026-11-20T12:00:00.000000Z",
        "version": 3,
        "settled": False,
        "due_at": "2026-11-20T12:00:00.000000Z",
        "last_modified_at": "2026-11-20T12:00:00.000000Z",
        "name": "train-1",
        "kind": "training",
        "status": "Completed",
        "account": "111122223333",
        "region": "us-east-1",
        "family": "f",
        "owner": "ana",
        "ended_at": "2026-11-20T12:00:00.000000Z",
        "rollup": False,
        "total_usd": Decimal("4.545000"),
        "avoidable_usd": Decimal(0),
        "digest": "d",
        "ruleset": "r",
        "policy": "p",
        "family_version": 1,
        "finding_ids": ["SA101", "SA202"],
        "facts": '{"purchase":"spot","phase_s":{},"final_metrics":{"odd":"1E-300"},'
        '"found":["gpu-idle"]}',
        "sums": "{}",
    }


def test_a_finding_has_the_attributes_of_the_data_model() -> None:
    """The rule's id is in its sort key alone."""
    assert finding_item(ROW) == {
        "pk": "JOB#arn:job#1795176000000",
        "sk": "FINDING#SA202",
        "arn": "arn:job",
        "created_at": "2026-11-20T12:00:00.000000Z",
        "rule": "gpu-underused",
        "severity": "high",
        "confidence": "derived",
        "bucket": "avoidable",
        "name": "train-1",
        "family": "f",
        "ended_at": "2026-11-20T12:00:00.000000Z",
        "saving_usd": Decimal(100),
        "summary": "so",
        "rule_pk": "gpu-underused#2026-11",
        "ended_sk": "2026-11-20T12:00:00.000000Z#arn:job#1795176000000",
    }


def test_words_are_written_as_plain_text() -> None:
    """A client of AWS knows no enumeration."""
    assert {type(finding_item(ROW)[name]) for name in ("severity", "confidence", "bucket")} == {str}


def test_rows_come_back_as_they_were() -> None:
    """With their types: words of a list, moments, tuples, numbers of any exponent."""
    numbers = {**to_item(HEAD), "version": Decimal(3), "family_version": Decimal(1)}
    assert from_item(Head, numbers) == HEAD
    bare = replace(HEAD, facts=None, due_at=None, owner=None, finding_ids=())
    assert from_item(Head, to_item(bare)) == bare
    assert read_finding(finding_item(ROW)) == ROW


def test_a_name_is_cut_where_a_metrics_name_has_no_end() -> None:
    """200 characters tell any two metrics apart."""
    facts = RunFacts(Purchase.SPOT, final_metrics={"m" * 300: Decimal(1)})
    read = from_item(Head, to_item(replace(HEAD, facts=facts))).facts
    assert read is not None
    assert list(read.final_metrics) == ["m" * 200]


def test_an_item_without_what_every_item_has_is_refused() -> None:
    """A head without a digest is no head."""
    item = to_item(HEAD)
    del item["digest"]
    with pytest.raises(KeyError, match="digest"):
        from_item(Head, item)
