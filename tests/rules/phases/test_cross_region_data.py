from __future__ import annotations

from typing import Any

from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import UsedBucket
from tests.fakes.batch_jobs import batch_job
from tests.fakes.jobs import job, phases
from tests.fakes.judging import found
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "cross-region-data"
OUTPUT = "OutputDataConfig.S3OutputPath"


def reads(*regions: str | None, **changes: Any) -> Job:
    """A job in us-east-1 with a bucket in each of these regions."""
    buckets = tuple(
        UsedBucket(f"data-{number}", (OUTPUT,), region) for number, region in enumerate(regions)
    )
    return job(buckets=buckets, **changes)


test_cases = cases(
    RULE,
    "A bucket in another region is named with its region.",
    # Without dollars: nobody recorded how much was transferred.
    row(finds("The job ran in us-east-1 and uses the bucket data-1 in eu-west-1: data transfer "
        "between regions is billed, and no figure here contains it.", builder="fact", fix=[],
        evidence={"named_by": OUTPUT}), reads("us-east-1", "eu-west-1")),
    row(finds(severity="info", usd=None), reads("eu-west-1")),
    "Every kind that reads buckets is judged. Training, processing and transform jobs.",
    row(finds("…far in eu-west-1…"), batch_job(JobKind.PROCESSING, 60, buckets=(UsedBucket("far",
        ("TransformOutput",), "eu-west-1"),))),
    row(finds("…far in eu-west-1…"), batch_job(JobKind.TRANSFORM, 60, buckets=(UsedBucket("far",
        ("TransformOutput",), "eu-west-1"),))),
    "Buckets of the jobs own region are clear. No transfer between regions.",
    row(CLEAR, reads("us-east-1", "us-east-1")),
    "A bucket of unknown region is not taken for a near one.",
    # One that S3 did not tell of, among near ones too; a far one is said all the same.
    row("unknown: bucket_region_unread", reads(None)),
    row("unknown: bucket_region_unread", reads("us-east-1", None)),
    row(finds(evidence={"buckets_of_unknown_region": 1}), reads("eu-west-1", None)),
    "A job of unknown region is unknown. A recording may lack it.",
    row("unknown: region_unknown", reads("eu-west-1", region=None)),
    "Without a bucket or a start nothing was transferred.",
    # A job on a file system, and one that never ran.
    row("not applicable: …no S3 bucket…", reads()),
    row("not applicable: …never started…", reads("eu-west-1", status="Failed", started_at=None,
        ended_at=None, training_s=None, billable_s=None, phases=phases(("Starting", -600)))),
)  # fmt: skip


def test_the_sentence_names_three_buckets_and_the_evidence_all() -> None:
    """A processing job may have twenty inputs."""
    what = found(RULE, reads(*["eu-west-1"] * 5))
    assert "data-2 in eu-west-1 and 2 more: data transfer" in what.summary
    assert "data-4 in eu-west-1" in str(what.evidence["buckets_elsewhere"])
