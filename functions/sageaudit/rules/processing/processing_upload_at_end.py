"""A processing job ends with a long idle stretch while its results are uploaded.

## What it checks
An output is uploaded in mode EndOfJob, and from the last busy minute to the end of a completed job
CPU and GPU of all hosts were idle for over 5 minutes and at least 10% of the run.

## Why it costs
All instances are billed until the upload has ended.

## Saving
Between 0 and the whole idle stretch: Continuous uploads move into the run, which may grow. The low
end, 0, is counted; it is measured by the next run. The stretch is that of idle-tail, whose dollars
are not counted beside it.

## When it is wrong
Processing jobs have no phases and SageMaker publishes no network metric: code that hangs at its end
looks the same. Continuous uploads a file that is written again once more, and leaves partial
results in S3 when the job fails.

## What to do
S3UploadMode Continuous; fewer, compressed files (Parquet). Several small ones upload in parallel.

## Sources
botocore, ProcessingS3Output.S3UploadMode: "continuously or after the job completes".
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.job import Job, Purchase, Upload
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.edges import idle_tail, unseen
from sageaudit.domain.usage.measurements import Metric
from sageaudit.rules.card import JobCase, Threshold, rule

OVER = Threshold("over_s", 300, "seconds", "minutes of winding down are usual", "our choice")
SHARE_FROM = Threshold(
    "share_from_percent", 10, "percent of the run", "a tenth of the bill", "our choice"
)
_AT_END = "EndOfJob"


def _at_end(job: Job) -> list[Upload]:
    return [upload for upload in job.uploads if upload.mode == _AT_END]


def _excuse(case: JobCase) -> str | None:
    job = case.job
    if job.free or job.purchase is Purchase.SERVERLESS:
        return job.free or "it is serverless"
    if job.status != "Completed":
        return "the run did not complete"
    return None if _at_end(job) else "no output is uploaded at the end of the job"


@rule(
    id="SA803",
    scope=JobCase,
    kinds={JobKind.PROCESSING},
    thresholds=(OVER, SHARE_FROM),
    needs=(Metric.CPU,),
    coarsest_period_s=300,
    whole_run=True,
    excuse=_excuse,
    subsumes={"idle-tail"},
)
def check(case: JobCase) -> Outcome:
    """Counts the idle minutes at the end of the whole run."""
    whole, outputs = case.whole, _at_end(case.job)
    if missing := unseen(whole):
        return Unknown(missing.code, missing.reason)
    tail = len(idle_tail(whole))
    tail_s = Decimal(tail * (whole.period_s or 0))
    percent = Decimal(100 * tail) / whole.points
    short = tail_s <= case.limit(OVER) or percent < case.limit(SHARE_FROM)
    if short or tail == whole.points:
        return Clear()
    if len(whole.hosts) < (whole.hosts_expected or 0):
        have, want = len(whole.hosts), whole.hosts_expected
        return Unknown("hosts_missing", f"{have} of {want} hosts have points: one may have worked")
    return Found(
        confidence=Confidence.DERIVED,
        bucket=Bucket.AVOIDABLE,
        summary=(
            f"All hosts were idle for the last {tail_s / 60:.0f} of {whole.minutes:.0f} minutes: "
            f"outputs in mode EndOfJob are uploaded then."
        ),
        evidence={
            "idle_tail_s": tail_s,
            "idle_tail_percent": round(percent, 1),
            "minutes": round(whole.minutes),
            "end_of_job_outputs": len(outputs),
        },
        fix=tuple(
            Parameter(
                f"ProcessingOutputConfig.Outputs[{upload.name}].S3Output.S3UploadMode",
                _AT_END,
                "Continuous",
            )
            for upload in outputs
        ),
        change=CutPhase("Processing", Decimal(0)),
        best=CutPhase("Processing", tail_s),
        caution=(
            "Continuous uploads move into the run, so the saving is between nothing and the whole "
            "stretch. Code that hangs at its end looks the same: see when the results were written."
        ),
    )
