"""A bucket that the job reads or writes lies in another region.

What it checks: S3's own answer on the region of each bucket of inputs, outputs and checkpoints,
    asked once the job has ended, against the job's region.
Why it costs: AWS bills data transfer between regions by GB; for reads, the bucket's owner pays. No
    figure of an audit contains it. The distance also makes downloads and uploads slower, which all
    instances wait for.
Saving: None: how much was transferred is not recorded.
When it is wrong: The data must stay in its region by law, or the bucket holds some KB of code or
    settings. A manifest may name objects of other buckets, which are not asked for.
What to do: Run the job in the region of its data, or keep a copy of the data in the job's region:
    S3 Replication pays the transfer once. Give outputs a bucket in the job's region. SageMaker
    requires channels of training jobs to be in the job's region; outputs, checkpoints and
    processing inputs may lie elsewhere.
Sources: API reference, HeadBucket, header x-amz-bucket-region. botocore, S3DataSource.S3Uri: "Your
    input bucket must be located in same Amazon Web Services region as your training job."
"""

from __future__ import annotations

from sageaudit.rules import api

_NAMED = 3
"""Buckets that the sentence names; the evidence has all."""


def _no_bucket(case: api.JobCase) -> str | None:
    return None if case.job.buckets else "it names no S3 bucket"


@api.rule(
    id="SA106",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    not_applicable=(_no_bucket, api.never_started),
    in_chat=False,
    once_a_family=True,
)
def check(case: api.JobCase) -> api.Outcome:
    """Compares regions; needs no metrics."""
    job = case.job
    if job.region is None:
        return api.Unknown("region_unknown", "in which region the job ran is not known")
    away = [bucket for bucket in job.buckets if bucket.region not in {None, job.region}]
    unread = sum(bucket.region is None for bucket in job.buckets)
    if not away and unread:
        of = f"{unread} of {len(job.buckets)} buckets" if len(job.buckets) > 1 else "its bucket"
        return api.Unknown("bucket_region_unread", f"the region of {of} is not known")
    if not away:
        return api.Clear()
    places = [f"{bucket.name} in {bucket.region}" for bucket in away]
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    what = "bucket" if len(away) == 1 else "buckets"
    return api.fact(
        f"The job ran in {job.region} and uses the {what} {', '.join(places[:_NAMED])}{more}: data "
        "transfer between regions is billed, and no figure here contains it.",
        {
            "job_region": job.region,
            "buckets_elsewhere": ", ".join(places),
            "named_by": ", ".join(path for bucket in away for path in bucket.parameters),
            "buckets_of_unknown_region": unread,
        },
        caution="How much was transferred is not recorded, so there is no amount.",
    )
