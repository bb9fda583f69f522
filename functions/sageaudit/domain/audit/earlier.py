"""An earlier run of a family, as stored in the history's lists: without series."""

from __future__ import annotations

import enum
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice

from sageaudit.domain.audit.finding_document import FindingDocument, stands
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.finding import Bucket, Scalar, Severity
from sageaudit.domain.bill.tried_types import DearerStep
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.job_outputs import MOST_METRICS
from sageaudit.domain.job.kinds import VOLUME_PATHS, JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric
from sageaudit.domain.usage.pooled_runs import use_digest

MOST_ADVISED = 6
"""Of a run, the dearest: what is stored of it stays small."""
_LONGEST_VALUE, _LONGEST_REASON = 100, 200
_SHARDING = "InputDataConfig[{}].DataSource.S3DataSource.S3DataDistributionType"
_UPLOAD = "ProcessingOutputConfig.Outputs[{}].S3Output.S3UploadMode"


class Worth(enum.StrEnum):
    """What the dollars of an advice are; those of the two kinds are never added."""

    COUNTED = "counted"
    """Avoidable or lost USD."""
    TRIAL = "trial"
    """USD that are worth a trial."""


@dataclass(frozen=True, slots=True)
class Advised:
    """What a standing finding of a run advises; one that the policy or a tag accepts has `exempt`,
    who and why.

    `parameter` and `new` as in its fix, empty without one. `also`: the paths that change with it.
    `amount` in USD; None is unknown.
    """

    rule: str
    parameter: str
    new: str
    severity: Severity
    worth: Worth = Worth.COUNTED
    amount: Decimal | None = None
    also: tuple[str, ...] = ()
    exempt: str | None = None

    @property
    def line(self) -> tuple[str, str, Worth]:
        """The same for any value of its parameter."""
        return self.rule, self.parameter or self.new, self.worth


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the history's lists store of a run besides its dollars. None means unknown.

    `phase_s`: seconds by phase name, billed or not, but without repeated downloads.
    `retained_s`: of its warm pool, per instance.
    `final_metrics`: the last value of each algorithm metric. `found`: rules with a standing
    finding that later runs are judged by. `data_pinned`: its data cannot have changed under the
    same fingerprint. `advised_type`: the type that a standing finding advised. `smallest_types`:
    those that held the run and save, with how many times as long it takes there. `dearer_steps`:
    the steps to a smaller type that made the family's runs dearer until then.
    `first_point_s`: of a processing or transform job, from its start to its first point, which
    comes after its download. `disk_gb`: of the same jobs, the most used of a host's volume.
    `use_digest`: of the minutes that a short run adds to the pools of later ones
    (`domain/usage/pooled_runs`); None for a run that adds none.
    `advised`: the dearest first. `settings`: by their paths, what else it ran with of the
    parameters that fixes name.
    """

    purchase: Purchase
    elapsed_s: Decimal | None = None
    billable_s: Decimal | None = None
    retained_s: Decimal | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    fingerprint: str | None = None
    data_pinned: bool | None = None
    left_artifact: bool | None = None
    reason_class: str | None = None
    phase_s: Mapping[str, Decimal] = field(default_factory=dict)
    final_metrics: Mapping[str, Decimal] = field(default_factory=dict)
    found: tuple[str, ...] = ()
    use_digest: str | None = None
    advised_type: str | None = None
    smallest_types: Mapping[str, Decimal] | None = None
    dearer_steps: tuple[DearerStep, ...] | None = None
    first_point_s: Decimal | None = None
    disk_gb: Decimal | None = None
    advised: tuple[Advised, ...] | None = None
    settings: Mapping[str, str] | None = None


_NOT_JUDGED_BY = frozenset({"advised", "settings"})
"""Facts that no later run is judged by."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """One earlier run with its cost. Unknown dollars are None, and so are avoidable ones of a run
    that was not judged.
    """

    name: str
    kind: str
    status: str
    family: str
    owner: str | None
    ended_at: datetime
    total_usd: Decimal | None
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    facts: RunFacts
    judged: Judged | None = None
    estimated: bool = False
    """Its dollars rest on an estimated rate."""


def facts_of(
    job: Job,
    *,
    reason_class: str | None = None,
    found: Iterable[str] = (),
    usage: Measurements | None = None,
) -> RunFacts:
    """What is stored of this run for comparison with later runs of its family."""
    group = job.groups[0] if len(job.groups) == 1 else None
    seconds = {phase.name: job.phase_s(phase.name) for phase in job.phases}
    return RunFacts(
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
        reason_class=reason_class,
        final_metrics=dict(islice(job.final_metrics.items(), MOST_METRICS)),
        found=tuple(found),
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


def advised_by(finding: FindingDocument) -> Advised | None:
    """What one finding advises; None where it has no dollars, is another's part, or never posted.

    What may be lost is at stake, too: the upper end of its range.
    """
    bucket, amount, exempt = Bucket(finding["bucket"]), finding["saving_usd"], finding["exempt"]
    fix, accepted = finding["fix"], None
    if exempt:
        amount = finding["saving_alone_usd"]
        until = f" until {exempt['until']}" if exempt["until"] else ""
        accepted = f"{exempt['by']}{until}: {exempt['reason']}"[:_LONGEST_REASON]
    if bucket is Bucket.LOST:
        ends = finding["saving_range_usd"] or []
        amount = max([*ends, *([] if amount is None else [amount])], default=None)
    whole = stands({**finding, "exempt": None}) and finding["in_chat"]
    none = bucket.counted and (finding["severity"] == Severity.INFO or finding["said_of"])
    if bucket is Bucket.NONE or none or amount == 0 or not whole:
        return None
    return Advised(
        rule=finding["rule"],
        parameter=fix[0]["parameter"] if fix else "",
        new=value_text(fix[0]["new"]) if fix else "",
        severity=Severity(finding["severity"]),
        worth=Worth.COUNTED if bucket.counted else Worth.TRIAL,
        amount=amount,
        also=tuple(one["parameter"] for one in fix[1:]),
        exempt=accepted,
    )


def dearest(advised: Iterable[Advised]) -> tuple[Advised, ...]:
    """The most of each line, what is worth most first: what a run stores of it stays small."""
    worths = list(Worth)
    found = sorted(
        advised, key=lambda one: (worths.index(one.worth), -(one.amount or Decimal(0)), one.new)
    )
    return tuple({one.line: one for one in reversed(found)}.values())[::-1][:MOST_ADVISED]


def advised_of(facts: RunFacts | None, like: Advised) -> Advised | None:
    """What a run was advised of the same line as `like`; None where it was not."""
    advised = facts.advised if facts else None
    return next((one for one in advised if one.line == like.line), None) if advised else None


def own_value(facts: RunFacts | None, path: str) -> str | None:
    """The value of a request's parameter that the run ran with, as text; None where unknown."""
    if facts is None:
        return None
    if path.endswith(".InstanceType"):
        return facts.instance_type
    if path.endswith(".InstanceCount"):
        return None if facts.instance_count is None else str(facts.instance_count)
    if path == "EnableManagedSpotTraining":
        return value_text(facts.purchase is Purchase.SPOT)
    return (facts.settings or {}).get(path)


def value_text(value: Scalar) -> str:
    """The text of a parameter's value, by which values are compared; empty for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    number = isinstance(value, int | float | Decimal)
    text = f"{Decimal(str(value)).normalize():f}" if number else str(value)
    return text[:_LONGEST_VALUE]


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


def run_stamp(run: EarlierRun) -> str:
    """Changes with anything that a later run of the family may be judged by.

    Not with the dollars that were found in the run itself, which say nothing of a later one, except
    for those of a short run, which its family sums.
    """
    names = {field.name for field in fields(run.facts)} - _NOT_JUDGED_BY
    facts = {name: getattr(run.facts, name) for name in names}
    facts["found"] = sorted(run.facts.found)
    summed_usd = run.avoidable_usd if run.facts.use_digest else None
    ended_at = run.ended_at.astimezone(UTC).isoformat()
    own = (run.name, run.kind, run.status, ended_at, run.total_usd, summed_usd, run.estimated)
    parts = [*map(_exact, own), *((name, _exact(facts[name])) for name in sorted(facts))]
    return f"{zlib.crc32(repr(parts).encode()):08x}"


def _exact(value: object) -> str:
    """Equal numbers have one text: 4.50 and 4.5."""
    if isinstance(value, Decimal):
        return str(value.normalize())
    if isinstance(value, Mapping):
        return repr([(name, _exact(value[name])) for name in sorted(value)])
    return str(value)


def failures_in_a_row(
    runs: Iterable[EarlierRun], reason_class: str, *, ended_at: datetime, within: timedelta
) -> list[EarlierRun]:
    """The failures before `ended_at` without a success, or another reason, between them.

    Runs are newest first; those that somebody stopped are skipped.
    """
    row: list[EarlierRun] = []
    for run in runs:
        same = run.status == "Failed" and run.facts.reason_class == reason_class
        if ended_at - run.ended_at > within or not (same or run.status == "Stopped"):
            break
        if same:
            row.append(run)
    return row
