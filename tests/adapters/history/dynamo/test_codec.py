"""Rows of the table: what is written is read back, under the attributes that are documented."""

from decimal import Decimal

import pytest

from sageaudit.adapters.history.codec import from_item, to_item
from sageaudit.adapters.history.dynamo.items import finding_item, head_item, read_finding, read_head
from sageaudit.adapters.history.rows import finding_rows, make_summary
from sageaudit.domain.audit.record import RuleFinding
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.job.job import Purchase
from sageaudit.structs import replace
from tests.fakes.documents import fix
from tests.fakes.entries import entry, finding, key, unsettled_entry

UNDERUSED = finding(
    summary="The GPU was busy 8 % of 50 minutes.",
    saving_usd=Decimal("1.500000"),
    saving_alone_usd=None,
    fix=[fix("ResourceConfig.InstanceType", "a", "b")],
)
HEAD = replace(
    make_summary(
        unsettled_entry(
            due_at="2026-11-20T13:00:00Z",
            bill={"total_usd": Decimal("4.545000")},
            findings=[UNDERUSED],
            lost_usd=None,
        ),
        3,
        "d",
    ),
    purchase=Purchase.SPOT,
    elapsed_s=Decimal("3600.5"),
    final_metrics={"odd": Decimal("1E-300")},
    rules_with_findings=("gpu-idle",),
    sums=Sums(),
    tags={"team": "growth", "project": None},
    storage_usd=Decimal("0.02"),
)
WITHOUT_OWNER = entry(job={"owner": None}, findings=[UNDERUSED])
[FINDING] = finding_rows(WITHOUT_OWNER)
ROW = RuleFinding(FINDING, make_summary(WITHOUT_OWNER, 1, "d"))


def test_a_head_has_the_attributes_of_the_data_model() -> None:
    """Words, times and lists are plain; money is a number; what is not known or empty is absent."""
    assert to_item(HEAD) == {
        "arn": key().arn,
        "created_at": "2026-11-20T10:00:00.000000Z",
        "version": 3,
        "settled": False,
        "due_at": "2026-11-20T13:00:00.000000Z",
        "last_modified_at": "2026-11-20T12:00:00.000000Z",
        "job": "train-1",
        "kind": "training",
        "status": "Completed",
        "account": "111122223333",
        "region": "us-east-1",
        "family": "training/resnet",
        "owner": "ana",
        "ended_at": "2026-11-20T12:00:00.000000Z",
        "rollup": False,
        "total_usd": Decimal("4.545000"),
        "avoidable_usd": Decimal("1.500000"),
        "costliest_rule": "gpu-underused",
        "digest": "d",
        "ruleset": "2026.11",
        "policy": "default",
        "family_version": 1,
        "finding_ids": ["SA-gpu-underused"],
        "purchase": "spot",
        "elapsed_s": "3600.5",
        "final_metrics": {"odd": "1E-300"},
        "rules_with_findings": ["gpu-idle"],
        "judged": "yes",
        "severity": "medium",
        "tags": {"team": "growth", "project": None},
        "duration_s": 6900,
        "waiting_s": 300,
        "storage_usd": Decimal("0.02"),
        "instance": "1 x ml.g5.2xlarge",
        "spend_qualifier": "exact",
        "possible_usd": Decimal("0.000000"),
    }


def test_a_finding_has_the_attributes_of_the_data_model() -> None:
    """Each is plain: a person reads what was found, in which bucket, and what to change."""
    assert finding_item(ROW) == {
        "pk": f"JOB#{key().arn}#1795168800000",
        "sk": "FINDING#SA-gpu-underused",
        "rule_pk": "gpu-underused",
        "ended_sk": f"2026-11-20T12:00:00.000000Z#{key().arn}#1795168800000",
        "arn": key().arn,
        "created_at": "2026-11-20T10:00:00.000000Z",
        "rule_id": "SA-gpu-underused",
        "rule": "gpu-underused",
        "severity": "medium",
        "confidence": "derived",
        "bucket": "avoidable",
        "job": "train-1",
        "family": "training/resnet",
        "ended_at": "2026-11-20T12:00:00.000000Z",
        "saving_usd": Decimal("1.500000"),
        "saving_up_to_usd": Decimal("1.500000"),
        "summary": "The GPU was busy 8 % of 50 minutes.",
        "fix": 'ResourceConfig.InstanceType = "b"',
    }


def test_a_head_item_has_its_fields_and_the_keys_of_its_indexes() -> None:
    """Nothing of it is packed: each list and each person reads the same attributes."""
    item = head_item(HEAD, 7)
    added = {name: value for name, value in item.items() if name not in to_item(HEAD)}
    end = f"#{key().arn}#1795168800000"
    assert added == {
        "pk": f"JOB#{key().arn}#1795168800000",
        "sk": "HEAD",
        "revision": 7,
        "day_pk": "2026-11-20#6",
        "family_pk": "111122223333#us-east-1#training/resnet",
        "owner_pk": "OWNER#ana",
        "name_pk": "NAME#train-1",
        "account_pk": "111122223333",
        "ended_sk": f"2026-11-20T12:00:00.000000Z{end}",
        "due_pk": "DUE#2",
        "due_sk": f"2026-11-20T13:00:00.000000Z{end}",
    }
    assert read_head(item) == HEAD


def test_words_are_written_as_plain_text() -> None:
    """A client of AWS knows no enumeration."""
    assert {type(to_item(FINDING)[name]) for name in ("severity", "confidence", "bucket")} == {str}


def test_rows_come_back_as_they_were() -> None:
    """With their types: words of a list, moments, tuples, numbers of any exponent."""
    numbers = {**to_item(HEAD), "version": Decimal(3), "family_version": Decimal(1)}
    assert from_item(AuditSummary, numbers) == HEAD
    bare = replace(HEAD, purchase=None, due_at=None, owner=None, finding_ids=())
    assert from_item(AuditSummary, to_item(bare)) == bare


def test_a_finding_comes_back_with_what_its_item_tells_of_the_run() -> None:
    """By its ARN and its attributes; all else is not known until the audit's head is read."""
    read = read_finding(finding_item(ROW))
    run, head = read.summary, ROW.summary
    assert read.finding == FINDING
    assert not read.is_loaded
    for name in ("key", "job", "family", "owner", "ended_at", "kind", "account", "region"):
        assert getattr(run, name) == getattr(head, name)
    assert (run.severity, run.estimated) == (FINDING.severity, FINDING.estimated)
    assert (run.version, run.total_usd, run.rollup) == (0, None, False)


def test_a_name_is_cut_where_a_metrics_name_has_no_end() -> None:
    """200 characters tell any two metrics apart."""
    read = from_item(AuditSummary, to_item(replace(HEAD, final_metrics={"m" * 300: Decimal(1)})))
    assert list(read.final_metrics) == ["m" * 200]


def test_an_item_without_what_every_item_has_is_refused() -> None:
    """A head without a digest is no head."""
    item = to_item(HEAD)
    del item["digest"]
    with pytest.raises(KeyError, match="digest"):
        from_item(AuditSummary, item)
