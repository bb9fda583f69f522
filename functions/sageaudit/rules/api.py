"""The one import of a rule file: `from sageaudit.rules import api`.

A rule is a docstring (its page), thresholds, a card and a function:

    MIN_DURATION = api.Threshold("min_duration_s", 120, "seconds", "why this number", "where it
    comes from")

    @api.rule(
        id="SA103", scope=api.JobCase, kinds={api.JobKind.TRAINING}, thresholds=(MIN_DURATION,),
        not_applicable=(api.serverless,),
    )
    def check(case: api.JobCase) -> api.Outcome:
        if short(case, case.threshold(MIN_DURATION)):
            return api.Clear()
        return api.derived_saving("One sentence.", {"uploading_s": seconds}, fix=…, change=…)

The scopes and the card stand in `card`. Below are the reasons why a rule does not apply, the
builders of findings, and fixes that several rules name.

A rule lists its reasons on its card, the most informative first: the first one that returns a
sentence is the answer, and the rule is not called. Each takes a case and returns a sentence, or
None. A builder sets the confidence and bucket that belong together. `summary` is one sentence with
its numbers, `evidence` the numbers themselves; the other arguments are those of `DetectionDetails`.
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
from sageaudit.domain.request.forecast import DurationBasis
from sageaudit.domain.request.request import UnknownValue
from sageaudit.domain.usage import measurements
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing
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
"""Checkpoints for a training job that has none."""
INSTANCE_KINDS = set(TYPE_PATHS)
"""The kinds of jobs that choose an instance type: all but those that launch other jobs."""
LIMITED_KINDS = {kind for kind in INSTANCE_KINDS if setting_path(kind, RUN_LIMIT)}
"""Of these, the kinds of jobs whose run time has a limit."""


TYPE_PARAMETERS = (
    *TYPE_PATHS.values(),
    "ResourceConfig.InstanceGroups[].InstanceType",
    "ResourceConfig.InstancePreferences[].InstanceType",
)
"""Where a request names the types of its instances."""


def unknown_from_missing(missing: Missing) -> Unknown:
    """A rule's answer where a measurement that it needs is missing."""
    return Unknown(missing.code, missing.reason)


def serverless(case: JobCase | RequestCase) -> str | None:
    """Serverless training has no instance to choose, to fill or to leave idle."""
    return "it is serverless" if case.job.purchase is Purchase.SERVERLESS else None


def prepaid(case: JobCase) -> str | None:
    """Capacity of a training plan is paid in advance."""
    prepaid = case.job.purchase is Purchase.TRAINING_PLAN
    return "its training plan is prepaid" if prepaid else None


def not_on_spot(case: JobCase) -> str | None:
    """For rules about managed spot: the job did not use it."""
    spot = case.job.purchase is Purchase.SPOT
    return None if spot else "it did not run on managed spot"


def accelerated(case: JobCase) -> str | None:
    """For rules on CPU types: the CPUs of other types have another purpose."""
    if any(found is not None and found.accelerator for found in case.instance_types):
        return "it runs on GPUs or Trainium, and its CPUs are there to feed them"
    return None


def free(case: JobCase) -> str | None:
    """AWS does not bill it: the sentence says why."""
    return case.job.free


def never_started(case: JobCase) -> str | None:
    """Nothing was billed."""
    return "it never started" if case.job.has_never_started else None


def not_completed(case: JobCase) -> str | None:
    """A run that failed or was stopped says nothing of one that completes."""
    return None if case.job.status == "Completed" else "the run did not complete"


def search_trial(case: JobCase) -> str | None:
    """For rules that compare the runs of a family."""
    parent = case.job.parent
    trial = parent is not None and parent.rollup is not None
    return "the trials of one search are meant to differ" if trial else None


def one_instance(case: JobCase) -> str | None:
    """For rules that compare hosts or advise on their number."""
    return "it ran on one instance" if case.job.instance_count == 1 else None


def mixed_types(case: JobCase) -> str | None:
    """For rules that need one type: instance groups mostly have several."""
    return "its instances are in several groups" if len(case.job.groups) > 1 else None


def same_type(case: JobCase) -> str | None:
    """For rules on clusters of several types."""
    names = {group.instance_type for group in case.job.groups}
    return None if len(names) > 1 else "its instances are of one type"


def is_on_ebs(case: JobCase) -> bool | None:
    """Do all instances get an EBS volume (True), or none of them? None: unknown, or some do."""
    if case.job.groups_unknown:
        return None
    answers = {None if found is None else found.is_ebs_billed for found in case.instance_types}
    return answers.pop() if len(answers) == 1 else None


def local_storage(case: JobCase) -> str | None:
    """For rules about volumes."""
    local = is_on_ebs(case) is False
    return "its instances have local NVMe storage: no volume is provisioned" if local else None


class ChangeRange(TypedDict):
    """The two ends of a range of dollars."""

    change: Change
    best: Change


Numbers = Mapping[str, Scalar]
lost_spend = partial(Detection, Confidence.MEASURED, Bucket.LOST)
"""Paid for a run that gave nothing."""
measured_saving = partial(Detection, Confidence.MEASURED, Bucket.AVOIDABLE)
"""Was billed and produced nothing: the change takes exactly that away."""
possible_saving = partial(Detection, Confidence.HEURISTIC, Bucket.POSSIBLE)
"""Worth a trial: its dollars are shown and are in no total."""
possible_saving_by_runs = partial(Detection, Confidence.DERIVED, Bucket.POSSIBLE)
"""The same by what the family's own runs cost: such dollars go before those of a guess."""
recommendation = partial(Detection, Confidence.HEURISTIC, Bucket.NONE)
"""Advice with a reason and without dollars."""
measured_fact = partial(Detection, Confidence.MEASURED, Bucket.NONE)
"""Measured, and without dollars: `caution` says why it has none."""


def possible_loss(
    summary: str, evidence: Numbers, **details: Unpack[DetectionDetails]
) -> Detection:
    """Lost between nothing, which is counted, and `change`: what is left of it is not known."""
    details["best"] = details.get("change")
    details["change"] = CutPhase("Training", Decimal(0))
    return Detection(Confidence.DERIVED, Bucket.LOST, summary, evidence, **details)


def derived_saving(
    summary: str, evidence: Numbers, **details: Unpack[DetectionDetails]
) -> Detection:
    """Between `change` (counted) and `best` under an assumption that `caution` states.

    Without a change it is advice without dollars, and `caution` says why there are none.
    """
    if details.get("change") is None:
        return recommendation(summary, evidence, **details)
    return Detection(Confidence.DERIVED, Bucket.AVOIDABLE, summary, evidence, **details)


def phase_cut_range(phase: str, seconds: Decimal) -> ChangeRange:
    """A range from nothing, which is counted, to these seconds of a phase."""
    return {"change": CutPhase(phase, Decimal(0)), "best": CutPhase(phase, seconds)}


def type_fix(job: Job, instance_type: str | None) -> tuple[Parameter, ...]:
    """The parameters that move a job to another type; none without a type."""
    if instance_type is None:
        return ()
    if job.kind is JobKind.TRAINING and any(group.name for group in job.groups):
        return tuple(
            Parameter(_GROUP_TYPE.format(group.name), group.instance_type, instance_type)
            for group in job.groups
        )
    return (Parameter(TYPE_PATHS[job.kind], job.groups[0].instance_type, instance_type),)


def sharding_fix(job: Job, channels: Sequence[InputChannel] | None = None) -> tuple[Parameter, ...]:
    """For channels that give all data to every host, unless a sampler splits them; of all, or of
    these.
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
    """A training job without any channel fetches its data itself."""
    if job.channels or job.kind is not JobKind.TRAINING:
        return ()
    source = "InputDataConfig[train].DataSource.S3DataSource"
    return (
        Parameter(f"{source}.S3DataType", None, "S3Prefix"),
        Parameter(f"{source}.S3Uri", None, "s3://<bucket>/<prefix>"),
        Parameter("InputDataConfig[train].InputMode", None, "FastFile"),
    )
