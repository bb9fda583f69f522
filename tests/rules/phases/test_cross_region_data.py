from __future__ import annotations

from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import UsedBucket
from tests.fakes.batch_jobs import batch_job
from tests.fakes.jobs import job, phases
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "cross-region-data"
OUTPUT = "OutputDataConfig.S3OutputPath"


def reads(*regions: str | None, **changes: Any) -> Job:
    """A job in us-east-1 with a bucket in each of these regions."""
    buckets = tuple(
        UsedBucket(f"data-{number}", (OUTPUT,), region) for number, region in enumerate(regions)
    )
    return job(buckets=buckets, **changes)


def test_a_bucket_in_another_region_is_named_with_its_region() -> None:
    """Without dollars: nobody recorded how much was transferred."""
    what = found(RULE, reads("us-east-1", "eu-west-1"))
    assert what.summary == (
        "The job ran in us-east-1 and uses the bucket data-1 in eu-west-1: data transfer between "
        "regions is billed, and no figure here contains it."
    )
    assert what.evidence["named_by"] == OUTPUT
    assert (what.confidence, what.bucket, what.fix) == (Confidence.MEASURED, Bucket.NONE, ())
    finding = priced(RULE, reads("eu-west-1"))
    assert (finding.severity.value, finding.saving_usd) == ("info", None)


def test_the_sentence_names_three_buckets_and_the_evidence_all() -> None:
    """A processing job may have twenty inputs."""
    what = found(RULE, reads(*["eu-west-1"] * 5))
    assert "data-2 in eu-west-1 and 2 more: data transfer" in what.summary
    assert "data-4 in eu-west-1" in str(what.evidence["buckets_elsewhere"])


@pytest.mark.parametrize("kind", [JobKind.PROCESSING, JobKind.TRANSFORM])
def test_every_kind_that_reads_buckets_is_judged(kind: JobKind) -> None:
    """Training, processing and transform jobs."""
    run = batch_job(kind, 60, buckets=(UsedBucket("far", ("TransformOutput",), "eu-west-1"),))
    assert "far in eu-west-1" in found(RULE, run).summary


def test_buckets_of_the_jobs_own_region_are_clear() -> None:
    """No transfer between regions."""
    assert outcome(RULE, reads("us-east-1", "us-east-1")) == Clear()


def test_a_bucket_of_unknown_region_is_not_taken_for_a_near_one() -> None:
    """One that S3 did not tell of, among near ones too; a far one is said all the same."""
    assert unknown(RULE, reads(None)) == "bucket_region_unread"
    assert unknown(RULE, reads("us-east-1", None)) == "bucket_region_unread"
    assert found(RULE, reads("eu-west-1", None)).evidence["buckets_of_unknown_region"] == 1


def test_a_job_of_unknown_region_is_unknown() -> None:
    """A recording may lack it."""
    assert unknown(RULE, reads("eu-west-1", region=None)) == "region_unknown"


def test_without_a_bucket_or_a_start_nothing_was_transferred() -> None:
    """A job on a file system, and one that never ran."""
    assert "no S3 bucket" in not_applicable(RULE, reads())
    never = {
        "status": "Failed",
        "started_at": None,
        "ended_at": None,
        "training_s": None,
        "billable_s": None,
        "phases": phases(("Starting", -600)),
    }
    assert "never started" in not_applicable(RULE, reads("eu-west-1", **never))
