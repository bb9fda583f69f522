"""Builds what a summary has of the run itself, from its job and what it used."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import islice

from sageaudit.domain.audit.finding_document import value_text
from sageaudit.domain.audit.record import NO_CREATION_TIME, NOT_NAMED
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.bill.finding import Scalar
from sageaudit.domain.job.describe_parts import MOST_METRICS
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import VOLUME_PATHS, JobKind
from sageaudit.domain.usage.judged_use import use_digest
from sageaudit.domain.usage.measurements import Measurements, Metric

_SHARDING = "InputDataConfig[{}].DataSource.S3DataSource.S3DataDistributionType"
_UPLOAD = "ProcessingOutputConfig.Outputs[{}].S3Output.S3UploadMode"


def summary_of_run(
    job: Job,
    *,
    reason: str | None = None,
    found_rules: Iterable[str] = (),
    usage: Measurements | None = None,
) -> AuditSummary:
    """What is known of a run by its job and its use; its dollars are those of an audit."""
    group = job.groups[0] if len(job.groups) == 1 else None
    seconds = {phase.name: job.phase_s(phase.name) for phase in job.phases}
    created_at = job.created_at or job.started_at or NO_CREATION_TIME
    ended_at = job.ended_at or created_at
    return AuditSummary(
        key=JobKey(job.arn or job.name, created_at),
        settled=False,
        last_modified_at=job.last_modified_at or ended_at,
        job=job.name,
        kind=job.kind.value,
        status=job.status,
        account=job.account or NOT_NAMED,
        region=job.region or NOT_NAMED,
        family=family(job),
        ended_at=ended_at,
        rollup=bool(job.kind.row.rollup),
        purchase=job.purchase,
        instance_type=group.instance_type if group else None,
        instance_count=group.count if group else None,
        elapsed_s=job.elapsed_s,
        billable_s=job.billable_s,
        phase_s={name: value for name, value in seconds.items() if value is not None},
        retained_s=job.warm_pool.retained_s if job.warm_pool else None,
        fingerprint=job.fingerprint,
        data_pinned=job.data_pinned,
        left_artifact=job.left_artifact,
        reason=reason,
        final_metrics=dict(islice(job.final_metrics.items(), MOST_METRICS)),
        found_rules=tuple(found_rules),
        use_digest=None if usage is None else use_digest(usage),
        first_point_s=None if usage is None else first_point_s(job, usage),
        disk_gb=None if usage is None else disk_gb(job, usage),
        settings=_settings(job),
    )


def _settings(job: Job) -> dict[str, str]:
    """What the job knows of parameters that fixes name, beside its instances and purchase.

    Of a checkpoint's path, which is no one's to advise, only that there is one.
    """
    pool, batch = job.warm_pool, job.batch
    known: dict[str, Scalar] = {
        VOLUME_PATHS.get(job.kind, ""): job.volume_gb,
        "ResourceConfig.KeepAlivePeriodInSeconds": pool.keep_alive_s if pool else None,
        "StoppingCondition.MaxRuntimeInSeconds": job.max_runtime_s,
        "AlgorithmSpecification.TrainingImage": job.image,
        "OutputDataConfig.CompressionType": job.output_compression,
        "BatchStrategy": batch.strategy,
        "MaxConcurrentTransforms": batch.max_concurrent,
        "CheckpointConfig.S3Uri": "set" if job.checkpointed else None,
        **{f"InputDataConfig[{one.name}].InputMode": one.mode for one in job.channels},
        **{_SHARDING.format(one.name): one.distribution for one in job.channels},
        **{_UPLOAD.format(one.name): one.mode for one in job.uploads},
    }
    return {path: value_text(value) for path, value in known.items() if path and value is not None}


def first_point_s(job: Job, usage: Measurements) -> Decimal | None:
    """Seconds from its start to its first point; None for a training job, whose download is a phase
    of its own.
    """
    if job.kind is JobKind.TRAINING or job.started_at is None or usage.begins_at is None:
        return None
    return Decimal(round((usage.begins_at - job.started_at).total_seconds()))


def disk_gb(job: Job, usage: Measurements) -> Decimal | None:
    """The most that was used of a host's volume; None for a training job, and where unknown."""
    lines = usage.series.get(Metric.DISK, {}).values()
    if job.kind is JobKind.TRAINING or not job.volume_gb or not lines:
        return None
    peak = max(max(line.present) for line in lines)
    return Decimal(str(round(peak * job.volume_gb / 100, 1)))
