"""The one import of a rule file: `from sageaudit.rules import api`.

A rule is a docstring (its page), thresholds, a card and a function:

    MIN_DURATION = api.Threshold("min_duration_s", 120, "seconds", "why this number", "its source")

    @api.rule(
        id="SA103", scope=api.JobCase, kinds={api.JobKind.TRAINING}, thresholds=(MIN_DURATION,),
        not_applicable=(api.serverless_reason,),
    )
    def check(case: api.JobCase) -> api.Outcome:
        if short(case, case.threshold(MIN_DURATION)):
            return api.Clear()
        return api.derived_saving("One sentence.", {"uploading_s": seconds}, fix=…, change=…)

The scopes and the card are in `card`. This module has the reasons why a rule does not apply, the
builders of findings, and the fixes that several rules share.

A reason takes a case and returns a clause, or None. A rule lists its reasons on its card, the most
informative first. The first clause is the answer, and the rule's function is not called. A builder
sets the confidence and bucket that belong together. `summary` is one sentence with its numbers,
`evidence` has the numbers themselves. The other arguments are those of `DetectionDetails`.
"""

# ruff: noqa: F401 - the names that rule files use

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TypedDict, Unpack

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.change import (
    Change,
    CutPhase,
    DropRun,
    DropTrials,
    RetainPool,
    SetCount,
    SetPurchase,
    SetTypeCount,
    SetVolume,
    ShortenPool,
)
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Detection,
    DetectionDetails,
    NotApplicable,
    Outcome,
    Parameter,
    Scalar,
    Severity,
    Unknown,
)
from sageaudit.domain.job.job import Job, Purchase, duration_text, minutes_text, sum_if_complete
from sageaudit.domain.job.kinds import COUNT_PATHS, IMAGE_PATHS, TYPE_PATHS, VOLUME_PATHS, JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.job.settings import RUN_LIMIT, setting_path
from sageaudit.domain.money import format_rate, format_usd
from sageaudit.domain.request.forecast import DurationBasis
from sageaudit.domain.request.request import UnknownValue
from sageaudit.domain.usage import measurements
from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics
from sageaudit.domain.usage.series import mean, pairs, percentile
from sageaudit.rules.card import (
    HEADROOM,
    NO_GAIN,
    AccountCase,
    Case,
    FamilyCase,
    JobCase,
    RequestCase,
    RollUpCase,
    Threshold,
    rule,
)

TIMES_MISSING = Unknown("times_missing", "how long the run took is not known")
HISTORY_UNREAD = Unknown("history_unread", "the earlier runs of its family were not read")
PHASES_MISSING = Unknown("phases_missing", "the answer does not split the run into phases")
BILL_UNKNOWN = Unknown("bill_unknown", "the cost of this run is not known")
HOSTS_UNMAPPED = Unknown(measurements.HOSTS_UNMAPPED.code, measurements.HOSTS_UNMAPPED.reason)
_GROUP_TYPE = "ResourceConfig.InstanceGroups[{}].InstanceType"
CHECKPOINTS = Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")
"""The fix for a training job without checkpoints."""
INSTANCE_KINDS = set(TYPE_PATHS)
"""The kinds of jobs that have an instance type."""
LIMITED_KINDS = {kind for kind in INSTANCE_KINDS if setting_path(kind, RUN_LIMIT)}
"""The kinds of jobs whose run time has a limit."""


TYPE_PARAMETERS = (
    *TYPE_PATHS.values(),
    "ResourceConfig.InstanceGroups[].InstanceType",
    "ResourceConfig.InstancePreferences[].InstanceType",
)
"""The parameters of a request that name instance types."""


def unknown_from_missing(missing_metrics: MissingMetrics) -> Unknown:
    """Returns the outcome for a missing measurement that a rule needs."""
    return Unknown(missing_metrics.code, missing_metrics.reason)


def serverless_reason(case: JobCase | RequestCase) -> str | None:
    """Returns why rules about instances do not apply if the job is serverless, else None."""
    return "it is serverless" if case.job.purchase is Purchase.SERVERLESS else None


def prepaid_reason(case: JobCase) -> str | None:
    """Returns why rules about rates do not apply if a training plan prepaid the job, else None."""
    is_prepaid = case.job.purchase is Purchase.TRAINING_PLAN
    return "its training plan is prepaid" if is_prepaid else None


def not_on_spot_reason(case: JobCase) -> str | None:
    """Returns why rules about managed spot do not apply if the job did not use it, else None."""
    is_spot = case.job.purchase is Purchase.SPOT
    return None if is_spot else "it did not run on managed spot"


def accelerated_reason(case: JobCase) -> str | None:
    """Returns why rules about CPU types do not apply if the job has accelerators, else None."""
    if any(
        instance_type is not None and instance_type.accelerator
        for instance_type in case.instance_types
    ):
        return "it runs on GPUs or Trainium, and its CPUs are there to feed them"
    return None


def free_reason(case: JobCase) -> str | None:
    """Returns why AWS does not bill the job, or None if AWS bills it."""
    return case.job.free


def never_started_reason(case: JobCase) -> str | None:
    """Returns why nothing was billed if the job never started, else None."""
    return "it never started" if case.job.has_never_started else None


def not_completed_reason(case: JobCase) -> str | None:
    """Returns why rules about complete runs do not apply if the run did not complete, else None."""
    return None if case.job.status == "Completed" else "the run did not complete"


def search_trial_reason(case: JobCase) -> str | None:
    """Returns why rules that compare runs do not apply to a search's trial; None for other jobs."""
    parent = case.job.parent
    is_trial = parent is not None and parent.rollup is not None
    return "the trials of one search are meant to differ" if is_trial else None


def one_instance_reason(case: JobCase) -> str | None:
    """Returns why rules about several hosts do not apply if there is one instance, else None."""
    return "it ran on one instance" if case.job.instance_count == 1 else None


def mixed_types_reason(case: JobCase) -> str | None:
    """Returns why rules about a single type do not apply if there are several groups, else None."""
    return "its instances are in several groups" if len(case.job.groups) > 1 else None


def same_type_reason(case: JobCase) -> str | None:
    """Returns why rules about mixed clusters do not apply if there is one type, else None."""
    names = {group.instance_type for group in case.job.groups}
    return None if len(names) > 1 else "its instances are of one type"


def is_on_ebs(case: JobCase) -> bool | None:
    """Returns True if all instances get an EBS volume, False if none does.

    Returns None if that is not known, or differs between the instances.
    """
    if case.job.groups_unknown:
        return None
    answers = {
        None if instance_type is None else instance_type.is_ebs_billed
        for instance_type in case.instance_types
    }
    return answers.pop() if len(answers) == 1 else None


def local_storage_reason(case: JobCase) -> str | None:
    """Returns why rules about volumes do not apply if the storage is local, else None."""
    is_local = is_on_ebs(case) is False
    return "its instances have local NVMe storage: no volume is provisioned" if is_local else None


class ChangeRange(TypedDict):
    """A range of dollars. `change` is the end that is counted, `best` the end that saves most."""

    change: Change
    best: Change


Numbers = Mapping[str, Scalar]
lost_spend = partial(Detection, Confidence.MEASURED, Bucket.LOST)
"""Makes a finding of lost dollars: the bill of a run that left no result."""
measured_saving = partial(Detection, Confidence.MEASURED, Bucket.AVOIDABLE)
"""Makes a finding of avoidable dollars: billed time without a result, which the fix removes."""
possible_saving = partial(Detection, Confidence.HEURISTIC, Bucket.POSSIBLE)
"""Makes a finding of possible dollars. They are in no total until a trial proves them."""
possible_saving_by_runs = partial(Detection, Confidence.DERIVED, Bucket.POSSIBLE)
"""Makes a finding of possible dollars from the cost of the family's runs. The finding ranks above
estimates."""
recommendation = partial(Detection, Confidence.HEURISTIC, Bucket.NONE)
"""Makes a finding that has a reason but no dollars."""
measured_fact = partial(Detection, Confidence.MEASURED, Bucket.NONE)
"""Makes a finding about a measured fact, without dollars. `caution` says why it has none."""


def possible_loss(
    summary: str, evidence: Numbers, **details: Unpack[DetectionDetails]
) -> Detection:
    """Returns a finding of lost dollars for a run that may have left a result.

    The range goes from $0, which is counted, to the dollars of `change`.
    """
    details["best"] = details.get("change")
    details["change"] = CutPhase("Training", Decimal(0))
    return Detection(Confidence.DERIVED, Bucket.LOST, summary, evidence, **details)


def derived_saving(
    summary: str, evidence: Numbers, **details: Unpack[DetectionDetails]
) -> Detection:
    """Returns a finding that counts the saving of `change`. `caution` says what this assumes.

    `best`: the change that may save most. Without `change` the finding has no dollars, and
    `caution` says why.
    """
    if details.get("change") is None:
        return recommendation(summary, evidence, **details)
    return Detection(Confidence.DERIVED, Bucket.AVOIDABLE, summary, evidence, **details)


def phase_cut_range(phase: str, seconds: Decimal) -> ChangeRange:
    """Returns a range between $0, which is counted, and the cost of `seconds` of a phase."""
    return {"change": CutPhase(phase, Decimal(0)), "best": CutPhase(phase, seconds)}


def type_fix(job: Job, instance_type: str | None) -> tuple[Parameter, ...]:
    """Returns the parameters that move a job to `instance_type`; empty if it is None."""
    if instance_type is None:
        return ()
    if job.kind is JobKind.TRAINING and any(group.name for group in job.groups):
        return tuple(
            Parameter(_GROUP_TYPE.format(group.name), group.instance_type, instance_type)
            for group in job.groups
        )
    return (Parameter(TYPE_PATHS[job.kind], job.groups[0].instance_type, instance_type),)


def sharding_fix(job: Job, channels: Sequence[InputChannel] | None = None) -> tuple[Parameter, ...]:
    """Returns the parameters that shard the FullyReplicated channels of a job.

    `channels`: the channels to look at; None means all. Empty if a sampler splits the data, or if
    this kind of job has no such parameter.
    """
    inputs = job.kind.spec.inputs
    path = inputs.distribution if inputs else None
    if path is None or job.hints.distributed_sampler:
        return ()
    return tuple(
        Parameter(path.format(channel.name), channel.distribution, "ShardedByS3Key")
        for channel in (job.channels if channels is None else channels)
        if channel.source is DataSource.S3 and channel.distribution == "FullyReplicated"
    )


def first_channel_fix(job: Job) -> tuple[Parameter, ...]:
    """Returns the parameters of a first channel for a training job without channels.

    The code of such a job fetches the data itself.
    """
    if job.channels or job.kind is not JobKind.TRAINING:
        return ()
    source = "InputDataConfig[train].DataSource.S3DataSource"
    return (
        Parameter(f"{source}.S3DataType", None, "S3Prefix"),
        Parameter(f"{source}.S3Uri", None, "s3://<bucket>/<prefix>"),
        Parameter("InputDataConfig[train].InputMode", None, "FastFile"),
    )
