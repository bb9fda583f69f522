"""The summary of a run, and the earlier runs of its family that are comparable with it.

`runs` are always a family's runs, newest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby, islice
from statistics import median

from msgspec import Struct

from sageaudit.domain.audit.finding_document import value_text
from sageaudit.domain.audit.record import NO_CREATION_TIME, UNKNOWN_NAME
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.bill.finding import Scalar
from sageaudit.domain.job.describe_parts import MAX_METRICS
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import VOLUME_PATHS, JobKind
from sageaudit.domain.prices.market import Market
from sageaudit.domain.resize.candidate import (
    MAX_STEPS,
    CostlierStep,
    FamilyTypes,
    TriedType,
    find_costlier_steps,
    is_disproved,
)
from sageaudit.domain.usage.judged_use import usage_digest
from sageaudit.domain.usage.measurements import Measurements, Metric

_SHARDING = "InputDataConfig[{}].DataSource.S3DataSource.S3DataDistributionType"
_UPLOAD = "ProcessingOutputConfig.Outputs[{}].S3Output.S3UploadMode"

MIN_LEVEL_RUNS = 3
"""The fewest runs in a row that make a new usual cost, and the fewest for a median: our choice."""
_MAX_LEVEL_RUNS = 10
"""The most runs of a level: older runs say less about the next run. Our choice."""
_RUNS_BEFORE_STEP = 5
"""The number of runs before a possible change of cost, whose median shows the change."""
_MAD_TO_SIGMA = Decimal("1.4826")
"""Scales a median absolute deviation to the standard deviation of a normal distribution."""


def summary_of_run(
    job: Job,
    *,
    reason: str | None = None,
    rules_with_findings: Iterable[str] = (),
    usage: Measurements | None = None,
) -> AuditSummary:
    """Returns the summary of a run without the dollars of its audit."""
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
        account=job.account or UNKNOWN_NAME,
        region=job.region or UNKNOWN_NAME,
        family=family(job),
        ended_at=ended_at,
        rollup=bool(job.kind.spec.rollup),
        purchase=job.purchase,
        instance_type=group.instance_type if group else None,
        instance_count=group.count if group else None,
        elapsed_s=job.elapsed_s,
        billable_s=job.billable_s,
        phase_s={name: value for name, value in seconds.items() if value is not None},
        retained_s=job.warm_pool.retained_s if job.warm_pool else None,
        fingerprint=job.fingerprint,
        is_data_pinned=job.is_data_pinned,
        has_artifact=job.has_artifact,
        reason=reason,
        final_metrics=dict(islice(job.final_metrics.items(), MAX_METRICS)),
        rules_with_findings=tuple(rules_with_findings),
        use_digest=None if usage is None else usage_digest(usage),
        first_point_s=None if usage is None else first_point_s(job, usage),
        disk_gb=None if usage is None else disk_gb(job, usage),
        settings=_settings(job),
    )


def _settings(job: Job) -> dict[str, str]:
    """Returns the run's values of parameters that fixes name, by path.

    A checkpoint's path is only "set", because no fix names a path.
    """
    pool, batch = job.warm_pool, job.batch
    values: dict[str, Scalar] = {
        VOLUME_PATHS.get(job.kind, ""): job.volume_gb,
        "ResourceConfig.KeepAlivePeriodInSeconds": pool.keep_alive_s if pool else None,
        "StoppingCondition.MaxRuntimeInSeconds": job.max_runtime_s,
        "AlgorithmSpecification.TrainingImage": job.image,
        "OutputDataConfig.CompressionType": job.output_compression,
        "BatchStrategy": batch.strategy,
        "MaxConcurrentTransforms": batch.max_concurrent,
        "CheckpointConfig.S3Uri": "set" if job.checkpointed else None,
        **{f"InputDataConfig[{channel.name}].InputMode": channel.mode for channel in job.channels},
        **{_SHARDING.format(channel.name): channel.distribution for channel in job.channels},
        **{_UPLOAD.format(upload.name): upload.mode for upload in job.uploads},
    }
    return {path: value_text(value) for path, value in values.items() if path and value is not None}


def first_point_s(job: Job, usage: Measurements) -> Decimal | None:
    """Returns the seconds from the start to the first metric point.

    None for a training job, or if unknown.
    """
    if job.kind is JobKind.TRAINING or job.started_at is None or usage.begins_at is None:
        return None
    return Decimal(round((usage.begins_at - job.started_at).total_seconds()))


def disk_gb(job: Job, usage: Measurements) -> Decimal | None:
    """Returns the most GB used of a host's volume; None for a training job, or if unknown."""
    lines = usage.series.get(Metric.DISK, {}).values()
    if job.kind is JobKind.TRAINING or not job.volume_gb or not lines:
        return None
    peak = max(max(line.present) for line in lines)
    return Decimal(str(round(peak * job.volume_gb / 100, 1)))


def comparable_runs(
    job: Job, runs: Sequence[AuditSummary], *, except_field: str | None = None
) -> list[AuditSummary]:
    """Returns the completed runs of known cost and duration on the job's instances.

    `except_field`: a property of the instances, such as `instance_type`, that may differ.
    """
    own = _job_instances(job)
    fields = [name for name in own if name != except_field]
    return [
        run
        for run in completed_runs(runs)
        if run.kind == job.kind.value
        and run.elapsed_s
        and len(job.groups) == 1
        and None not in (run.instance_type, run.instance_count)
        and all(getattr(run, name) == own[name] for name in fields)
    ]


def runs_with_same_settings(job: Job, runs: Sequence[AuditSummary]) -> list[AuditSummary]:
    """Returns the runs that are known to have the job's code, hyperparameters and inputs.

    The data in the inputs may differ.
    """
    is_known = job.fingerprint is not None
    return [run for run in runs if is_known and run.fingerprint == job.fingerprint]


def family_types(
    job: Job, total_usd: Decimal | None, runs: Sequence[AuditSummary], market: Market
) -> FamilyTypes:
    """Returns the types that a family tried, and its changes to a smaller type that cost more."""
    tried = tried_types(job, total_usd, runs, market)
    own = _job_instances(job)
    steps = (
        (step, market.types[step.to_type])
        for step in costlier_steps(job, tried, runs)
        if (step.instance_count, step.purchase) == (own["instance_count"], own["purchase"])
        and step.to_type in market.types
    )
    return FamilyTypes(tried, tuple(steps))


def costlier_steps(
    job: Job, tried_types: Sequence[TriedType], runs: Sequence[AuditSummary]
) -> tuple[CostlierStep, ...]:
    """Returns the family's changes to a smaller type that made its runs cost more.

    `tried_types`: the family's types, which show new steps. Older steps are stored with the newest
    of `runs`. A stored step is left out if enough runs in `tried_types` disprove it.
    """
    count = job.groups[0].count if len(job.groups) == 1 else None
    stored = runs[0].costlier_steps or () if runs else ()
    if count is None:
        return stored
    steps = list(find_costlier_steps(tried_types, count, job.purchase))
    keys = {(step.from_type, step.to_type, step.instance_count, step.purchase) for step in steps}
    for step in stored:
        is_same = (step.instance_count, step.purchase) == (count, job.purchase)
        key = (step.from_type, step.to_type, step.instance_count, step.purchase)
        if key not in keys and not (is_same and is_disproved(step, tried_types)):
            steps.append(step)
    return tuple(steps[:MAX_STEPS])


def tried_types(
    job: Job, total_usd: Decimal | None, runs: Sequence[AuditSummary], market: Market
) -> tuple[TriedType, ...]:
    """Returns the types on which the family has comparable runs, including this run.

    If at least two types have enough runs with the same settings, only these runs are used.
    Otherwise all comparable runs are used. `total_usd`: the bill of this run.
    """
    comparable = comparable_runs(job, runs, except_field="instance_type")
    by_settings, by_all = (
        tuple(_by_type(job, total_usd, part, market))
        for part in (runs_with_same_settings(job, comparable), comparable)
    )
    return by_settings if sum(tried.has_enough_runs for tried in by_settings) > 1 else by_all


def _by_type(
    job: Job, total_usd: Decimal | None, comparable: Sequence[AuditSummary], market: Market
) -> Iterator[TriedType]:
    own = job.groups[0].instance_type if job.groups and job.status == "Completed" else None
    samples = [
        (own, job.elapsed_s, total_usd),
        *((run.instance_type, run.elapsed_s, run.total_usd) for run in comparable),
    ]
    by_type: dict[str, list[tuple[Decimal, Decimal]]] = {}
    for name, seconds, usd in samples:
        if name is not None and name in market.types and seconds and usd is not None:
            by_type.setdefault(name, []).append((seconds, usd))
    for name, sample in by_type.items():
        newest = sample[:_MAX_LEVEL_RUNS]
        seconds, usd = (median(values) for values in zip(*newest, strict=True))
        yield TriedType(market.types[name], len(newest), seconds, usd)


def completed_runs(runs: Sequence[AuditSummary]) -> list[AuditSummary]:
    """Returns the completed runs of known cost."""
    return [run for run in runs if run.status == "Completed" and run.total_usd is not None]


class Level(Struct, frozen=True):
    """A family's newest runs at one usual cost, newest first."""

    runs: tuple[AuditSummary, ...]

    @property
    def usual_usd(self) -> Decimal:
        """The median cost of the runs in USD."""
        return median(_costs(self.runs))

    @property
    def spread_usd(self) -> Decimal:
        """The spread of the costs in USD, as a scaled median absolute deviation."""
        usual_usd = self.usual_usd
        return _MAD_TO_SIGMA * median([abs(usd - usual_usd) for usd in _costs(self.runs)])

    def margin_usd(self, spreads: Decimal, percent: Decimal) -> Decimal:
        """Returns by how many USD a cost must differ from the usual cost to count as different.

        The larger amount counts: `spreads` spreads, or `percent` percent of the usual cost.
        """
        return max(spreads * self.spread_usd, self.usual_usd * percent / 100)


def newest_level(
    own_run: AuditSummary, runs: Sequence[AuditSummary], *, spreads: Decimal, percent: Decimal
) -> Level | None:
    """Returns the earlier runs that a run's cost is compared with; None if there are too few.

    The runs follow the last change of type, count or purchase, or the last lasting change of cost.
    After such a change, the runs before it count until there are `MIN_LEVEL_RUNS` new ones. If the
    family uses the run's instances only now and then, the runs on these instances count.

    `spreads` and `percent`: which changes of cost count (see `Level.margin_usd`).
    """
    instances = instances_of(own_run)
    runs = [run for run in runs if run.kind == own_run.kind]
    stretches = [
        (run_instances, tuple(stretch))
        for run_instances, stretch in groupby(completed_runs(runs), key=instances_of)
    ]
    long_stretches = [stretch for stretch in stretches if len(stretch[1]) >= MIN_LEVEL_RUNS]
    same_instances = [
        run for run_instances, stretch in stretches for run in stretch if run_instances == instances
    ]
    returns = [
        run_instances
        for run_instances, stretch in stretches[1:]
        if run_instances == instances and len(stretch) < MIN_LEVEL_RUNS
    ]
    is_current = (
        bool(long_stretches)
        and long_stretches[0] is stretches[0]
        and long_stretches[0][0] == instances
    )
    has_returned = len(returns) >= MIN_LEVEL_RUNS or not long_stretches
    if not is_current and has_returned and len(same_instances) >= MIN_LEVEL_RUNS:
        return Level(tuple(same_instances[:_MAX_LEVEL_RUNS]))
    return _runs_since_step(long_stretches[0][1], spreads, percent) if long_stretches else None


def _runs_since_step(runs: Sequence[AuditSummary], spreads: Decimal, percent: Decimal) -> Level:
    for since in range(MIN_LEVEL_RUNS, min(len(runs) - MIN_LEVEL_RUNS, _MAX_LEVEL_RUNS) + 1):
        before = Level(tuple(runs[since : since + _RUNS_BEFORE_STEP]))
        margin_usd, usual_usd = before.margin_usd(spreads, percent), before.usual_usd
        changes = [usd - usual_usd for usd in _costs(runs[since - MIN_LEVEL_RUNS : since])]
        if min(changes) >= margin_usd > 0 or max(changes) <= -margin_usd < 0:
            return Level(tuple(runs[:since]))
    return Level(tuple(runs[:_MAX_LEVEL_RUNS]))


def instances_of(run: AuditSummary) -> tuple[object, ...]:
    """Returns the type, count and purchase by which runs are compared."""
    return run.instance_type, run.instance_count, run.purchase


def _job_instances(job: Job) -> dict[str, object]:
    group = job.groups[0] if len(job.groups) == 1 else None
    return {
        "instance_type": group.instance_type if group else None,
        "instance_count": group.count if group else None,
        "purchase": job.purchase,
    }


def _costs(runs: Sequence[AuditSummary]) -> list[Decimal]:
    return [run.total_usd for run in runs if run.total_usd is not None]
