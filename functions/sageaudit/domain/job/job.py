"""One SageMaker job, parsed from its Describe* answer and its tags."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from msgspec import Struct, field

from sageaudit.domain.job.failure_words import Failure
from sageaudit.domain.job.kinds import JobKind, RollUp
from sageaudit.domain.job.parts import (
    InputChannel,
    Objective,
    ProcessingOutput,
    TransformBatching,
    TuningSettings,
    WarmPool,
)
from sageaudit.domain.job.settings import SettingValue


class Purchase(enum.StrEnum):
    """How a job's capacity was bought."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    TRAINING_PLAN = "training_plan"
    SERVERLESS = "serverless"


PARENT_KEYS: Mapping[str, RollUp | None] = {
    **{rollup.child_key: rollup for kind in JobKind if (rollup := kind.spec.rollup)},
    "LabelingJobArn": None,
    "MonitoringScheduleArn": None,
    "TrainingJobArn": None,
}
"""The keys of a Describe answer that may have a parent's ARN, each with the parent's kind of
roll-up; None if the parent is no roll-up.

The first key with a value counts. So a training job of both a tuning and an AutoML job is in the
sum of the tuning job."""


class Parent(Struct, frozen=True):
    """The job or schedule that started a job."""

    rollup: RollUp | None
    """The parent's kind, if its audit sums the audits of its children; None for other parents."""
    arn: str


class Phase(Struct, frozen=True):
    """One occurrence of a phase of a job.

    `seconds` is None while the phase lasts, or if its end is unknown. `is_repeated` means that the
    phase repeats a download after an interruption, so it is not billed.
    """

    name: str
    started_at: datetime | None
    seconds: Decimal | None
    billed: bool
    is_repeated: bool = False

    @property
    def not_billed_because(self) -> str | None:
        """Why the phase is not billed although instances worked in it; None for other phases."""
        return "repeated after an interruption" if self.is_repeated else None


class InstanceGroup(Struct, frozen=True):
    """Instances of one type. SageMaker does not say which hosts are in which group."""

    instance_type: str
    count: int
    name: str | None = None


class Hints(Struct, frozen=True):
    """Signs found in hyperparameters, environment and image, without their values.

    False means that no sign was found, not that the feature is absent. `mixed_precision` covers 16
    bits or less, `fp8` only 8 bits. `own_checkpoints` means that the script itself writes
    checkpoints, or other outputs to S3. `pretrained` means that training starts from a trained
    model.

    `distribution` is a name such as "smddp", "ddp" or "horovod". `schedule` is "cosine" or
    "linear", a learning-rate schedule with which training improves late. Both are None without a
    sign.
    """

    deep_learning: bool = False
    mixed_precision: bool = False
    flash_attention: bool = False
    own_checkpoints: bool = False
    distributed_sampler: bool = False
    distribution: str | None = None
    loader_workers: int | None = None
    schedule: str | None = None
    fp8: bool = False
    pretrained: bool = False
    training_compiler: bool = False

    @property
    def has_gpu_ranks(self) -> bool:
        """Whether each GPU is known to do a part of the work, usually in a process of its own.

        A worker of a parameter server may use one GPU of its host, or all of them.
        """
        return self.distribution not in {None, "parameter_server"}

    @property
    def has_model_replicas(self) -> bool:
        """Whether each GPU is known to have a copy of the whole model, with equal work.

        False for smddp and ddp: sharding, such as FSDP, is launched in the same way.
        """
        return self.distribution in {"horovod", "mirrored"}


_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86_400
_WORK_PHASES = frozenset({"Downloading", "Training", "Uploading"})
_ATTEMPT_END_PHASES = frozenset({"Interrupted", "Restarting"})
FINISHED = frozenset({"Completed", "Failed", "Stopped", "DeleteFailed"})
"""The terminal states of every kind of job."""


class Job(Struct, frozen=True):
    """One job. None means that AWS did not return the value.

    `training_s` and `billable_s` are wall-clock seconds, not multiplied by instances. `groups` is
    empty if no instance type is known. `fingerprint` is a keyed hash of image, data, entry point,
    hyperparameters and environment. Hyperparameters and environment themselves are not kept.
    """

    kind: JobKind
    name: str
    arn: str | None
    account: str | None
    region: str | None
    status: str
    secondary_status: str | None = None
    failure: Failure | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    observed_until: datetime | None = None
    """When a running job was last observed; None for other jobs."""
    last_modified_at: datetime | None = None
    phases: tuple[Phase, ...] = ()
    groups: tuple[InstanceGroup, ...] = ()
    groups_unknown: tuple[str, ...] = ()
    """One sentence for each part of the cluster whose type or count is unknown."""
    purchase: Purchase = Purchase.ON_DEMAND
    training_s: Decimal | None = None
    billable_s: Decimal | None = None
    volume_gb: int | None = None
    channels: tuple[InputChannel, ...] = ()
    image: str | None = None
    entry_point: str | None = None
    max_runtime_s: int | None = None
    max_wait_s: int | None = None
    checkpointed: bool = False
    has_artifact: bool | None = None
    warm_pool: WarmPool | None = None
    parent: Parent | None = None
    pipeline_step: str | None = None
    tuning: TuningSettings | None = None
    custom_rules: tuple[str, ...] = ()
    free: str | None = None
    """Why AWS does not bill the job (such as a built-in Debugger rule); None for a billed job."""
    tags: Mapping[str, str] = field(default_factory=dict)
    tag_presence: Mapping[str, bool] = field(default_factory=dict)
    """Whether each known tag has a value. The value itself may not be stored."""
    settings: Mapping[str, Mapping[str, SettingValue]] = field(default_factory=dict)
    """The values of the settings that a policy may require: by setting, then by path. A tuning job
    has one path for each definition. Settings that the answer does not show are absent."""
    fingerprint: str | None = None
    is_data_pinned: bool | None = None
    """Whether all inputs name a version, so that equal inputs have equal data; None if unknown."""
    hints: Hints = Hints()
    image_pull_in_download: bool | None = None
    """Whether the Downloading phase's message mentions the image; None without messages."""
    output_compression: str | None = None
    metric_names: tuple[str, ...] = ()
    """The names of the algorithm metrics that CloudWatch has under TrainingJobName."""
    final_metrics: Mapping[str, Decimal] = field(default_factory=dict)
    objective: Objective | None = None
    """The objective of a tuning job's trial; a tuning job's own objective is in `tuning`."""
    uploads: tuple[ProcessingOutput, ...] = ()
    batch: TransformBatching = TransformBatching()

    @property
    def is_streaming_data(self) -> bool:
        """Whether the job has channels, and none of them is copied to the volume."""
        return bool(self.channels) and not any(channel.is_copied for channel in self.channels)

    @property
    def finished(self) -> bool:
        """Whether the job's status is terminal."""
        return self.status in FINISHED

    @property
    def has_never_started(self) -> bool:
        """Whether the job failed or was stopped before it started, so that nothing was billed.

        A job that completed, or whose phases show work, did start. If its times are absent, its
        cost is unknown, not 0. So it is if an answer lacks other times too, which AWS always gives.
        """
        times = (self.started_at, self.training_s, self.billable_s)
        has_worked = self.status == "Completed" or any(p.name in _WORK_PHASES for p in self.phases)
        has_end = self.ended_at is not None or self.last_modified_at is not None
        is_partial = not self.phases and (self.created_at is None or not has_end)
        is_over = self.finished and not has_worked and not is_partial
        return is_over and all(value is None for value in times)

    @property
    def instance_count(self) -> int | None:
        """The number of instances in all groups; None if unknown."""
        return sum(group.count for group in self.groups) if self.groups else None

    @property
    def elapsed_s(self) -> Decimal | None:
        """The seconds that the run took, or took so far; None if unknown.

        AWS's training seconds count if there are any, else the time from start to end.
        """
        if self.training_s is not None:
            return self.training_s
        end = self.ended_at or self.observed_until
        if self.started_at is None or end is None:
            return None
        return seconds_between(self.started_at, end)

    @property
    def interruptions(self) -> int:
        """How often AWS took back the job's Spot capacity."""
        return sum(phase.name == "Interrupted" for phase in self.phases)

    def phase_s(self, name: str) -> Decimal | None:
        """Returns the total seconds of a phase, without repeated downloads; None if unknown."""
        occurrences = (phase for phase in self.phases if phase.name == name)
        return sum_if_complete(phase.seconds for phase in occurrences if not phase.is_repeated)

    @property
    def billed_phases_s(self) -> Decimal | None:
        """The clock seconds of all billed phases; None if unknown, or if no phase was billed.

        AWS bills Spot runs for fewer seconds (`billable_s`).
        """
        billed = [phase.seconds for phase in self.phases if phase.billed]
        return sum_if_complete(billed) if billed else None

    @property
    def ran_s(self) -> Decimal | None:
        """The seconds in which the job's instances worked, in all attempts and without waiting.

        These are the billed phases and the repeated downloads. None if unknown, or without such
        phases.
        """
        running = [phase.seconds for phase in self.phases if phase.billed or phase.is_repeated]
        return sum_if_complete(running) if running else None

    @property
    def has_restarted(self) -> bool:
        """Whether the job had several attempts.

        This happens if AWS takes back Spot capacity, or restarts the job.
        """
        return any(phase.name in _ATTEMPT_END_PHASES for phase in self.phases)

    @property
    def instances(self) -> str | None:
        """The instances as text for people, such as "2 x ml.g5.12xlarge"; None if unknown."""
        return " + ".join(f"{g.count} x {g.instance_type}" for g in self.groups) or None


def seconds_between(start: datetime, end: datetime) -> Decimal | None:
    """Returns the exact seconds from `start` to `end`; None if `end` is before `start`."""
    span = end - start
    seconds = Decimal(span.days * 86_400 + span.seconds) + Decimal(span.microseconds) / 1_000_000
    return seconds if seconds >= 0 else None


def sum_if_complete(parts: Iterable[Decimal | None]) -> Decimal | None:
    """Returns the sum of seconds or dollars; None if a part is unknown, 0 without parts."""
    total = Decimal(0)
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def duration_text(seconds: Decimal | None) -> str:
    """Returns seconds as `45 s`, `12 min 4 s`, `3 h 2 min` or `2 d 4 h`; `unknown` for None.

    It rounds to seconds, then to the smaller unit, so that rounded seconds give the same text.
    """
    if seconds is None:
        return "unknown"
    whole_s = round_half_up(seconds)
    if whole_s < 0:
        return f"-{duration_text(-seconds)}"
    if whole_s < _MINUTE_S:
        return f"{whole_s} s"
    if whole_s < _HOUR_S:
        return _two_units(whole_s, 60, "min", "s")
    minutes = round_half_up(Decimal(whole_s) / _MINUTE_S)
    if minutes < _DAY_S // _MINUTE_S:
        return _two_units(minutes, 60, "h", "min")
    return _two_units(round_half_up(Decimal(minutes) / 60), 24, "d", "h")


def _two_units(count: int, per_larger_unit: int, larger_unit: str, unit: str) -> str:
    larger_count, rest = divmod(count, per_larger_unit)
    return f"{larger_count} {larger_unit}" + (f" {rest} {unit}" if rest else "")


def round_half_up(value: Decimal) -> int:
    """Returns the nearest whole number; of two, the one farther from 0."""
    return int(value.to_integral_value(ROUND_HALF_UP))


def minutes_text(minutes: float | Decimal) -> str:
    """Returns minutes as text, rounded to whole minutes, such as `8 h 59 min`."""
    return duration_text(Decimal(round_half_up(Decimal(minutes))) * _MINUTE_S)
