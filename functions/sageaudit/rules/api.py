"""The one import of a rule file: `from sageaudit.rules import api`.

A rule is a docstring (its page), thresholds, a card and a function:

    OVER = api.Threshold("over_s", 120, "seconds", "why this number", "where it comes from")

    @api.rule(
        id="SA103", scope=api.JobCase, kinds={api.JobKind.TRAINING}, thresholds=(OVER,),
        not_applicable=(api.serverless,),
    )
    def check(case: api.JobCase) -> api.Outcome:
        if short(case, case.limit(OVER)):
            return api.Clear()
        return api.derived("One sentence.", {"uploading_s": seconds}, fix=…, change=…, caution=…)

The scopes and the card stand in `card`, the reasons why a rule does not apply in `reasons`. Below
are the builders of findings: each sets the confidence and bucket that belong together. `summary` is
one sentence with its numbers, `evidence` the numbers themselves; the other arguments are those of
`FoundDetails`.
"""

# ruff: noqa: F401 - the names that rule files use

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TypedDict, Unpack

from sageaudit.domain.audit.judgement import Judged
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
    Found,
    FoundDetails,
    NotApplicable,
    Outcome,
    Parameter,
    Scalar,
    Severity,
    Unknown,
)
from sageaudit.domain.job.job import Job, Purchase, duration, duration_min, whole_sum
from sageaudit.domain.job.kinds import COUNT_PATHS, IMAGE_PATHS, TYPE_PATHS, VOLUME_PATHS, JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.job.settings import RUN_LIMIT, path_of
from sageaudit.domain.request.forecast import Basis
from sageaudit.domain.request.values import NotKnown
from sageaudit.domain.usage.measurements import Measurements, Metric, Missing, TypeUse
from sageaudit.domain.usage.series import mean, pairs, percentile
from sageaudit.rules.api import (
    BILL_UNKNOWN,
    HISTORY_UNREAD,
    HOSTS_UNMAPPED,
    PHASES_MISSING,
    TIMES_MISSING,
    accelerated,
    free,
    has_local_storage,
    mixed_types,
    never_started,
    not_completed,
    on_demand,
    on_ebs,
    one_instance,
    one_type,
    prepaid,
    search_trial,
    serverless,
    unknown,
)
from sageaudit.rules.card import (
    HEADROOM,
    NO_GAIN,
    AccountCase,
    Case,
    FamilyCase,
    JobCase,
    RequestCase,
    Threshold,
    TuningCase,
    rule,
)

_GROUP_TYPE = "ResourceConfig.InstanceGroups[{}].InstanceType"
CHECKPOINTS = Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")
"""Checkpoints for a training job that has none."""
ON_INSTANCES = set(TYPE_PATHS)
"""The kinds of jobs that choose an instance type: all but those that launch other jobs."""
WITH_LIMIT = {kind for kind in ON_INSTANCES if path_of(kind, RUN_LIMIT)}
"""Of these, the kinds of jobs whose run time has a limit."""


TYPE_READS = (
    *TYPE_PATHS.values(),
    "ResourceConfig.InstanceGroups[].InstanceType",
    "ResourceConfig.InstancePreferences[].InstanceType",
)
"""Where a request names the types of its instances."""


class Range(TypedDict):
    """The two ends of a range of dollars."""

    change: Change
    best: Change


Numbers = Mapping[str, Scalar]


lost = partial(Found, Confidence.MEASURED, Bucket.LOST)
"""Paid for a run that gave nothing."""
measured = partial(Found, Confidence.MEASURED, Bucket.AVOIDABLE)
"""Was billed and produced nothing: the change takes exactly that away."""
possible = partial(Found, Confidence.HEURISTIC, Bucket.POSSIBLE)
"""Worth a trial: its dollars are shown and are in no total."""
possible_by_runs = partial(Found, Confidence.DERIVED, Bucket.POSSIBLE)
"""The same by what the family's own runs cost: such dollars go before those of a guess."""
advice = partial(Found, Confidence.HEURISTIC, Bucket.NONE)
"""Advice with a reason and without dollars."""
fact = partial(Found, Confidence.MEASURED, Bucket.NONE)
"""Measured, and without dollars: `caution` says why it has none."""


def lost_up_to(summary: str, evidence: Numbers, **details: Unpack[FoundDetails]) -> Found:
    """Lost between nothing, which is counted, and `change`: what is left of it is not known."""
    details["best"] = details.get("change")
    details["change"] = CutPhase("Training", Decimal(0))
    return Found(Confidence.DERIVED, Bucket.LOST, summary, evidence, **details)


def derived(summary: str, evidence: Numbers, **details: Unpack[FoundDetails]) -> Found:
    """Between `change` (counted) and `best` under an assumption that `caution` states.

    Without a change it is advice without dollars, and `caution` says why there are none.
    """
    if details.get("change") is None:
        return advice(summary, evidence, **details)
    return Found(Confidence.DERIVED, Bucket.AVOIDABLE, summary, evidence, **details)


def cut_up_to(phase: str, seconds: Decimal) -> Range:
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


def shard(job: Job, channels: Sequence[InputChannel] | None = None) -> tuple[Parameter, ...]:
    """For channels that give all data to every host, unless a sampler splits them; of all, or of
    these.
    """
    inputs = job.kind.row.inputs
    path = inputs.distribution if inputs else None
    if path is None or job.hints.distributed_sampler:
        return ()
    return tuple(
        Parameter(path.format(channel.name), channel.distribution, "ShardedByS3Key")
        for channel in (job.channels if channels is None else channels)
        if channel.source is DataSource.S3 and channel.distribution == "FullyReplicated"
    )


def first_channel(job: Job) -> tuple[Parameter, ...]:
    """A training job without any channel fetches its data itself."""
    if job.channels or job.kind is not JobKind.TRAINING:
        return ()
    source = "InputDataConfig[train].DataSource.S3DataSource"
    return (
        Parameter(f"{source}.S3DataType", None, "S3Prefix"),
        Parameter(f"{source}.S3Uri", None, "s3://<bucket>/<prefix>"),
        Parameter("InputDataConfig[train].InputMode", None, "FastFile"),
    )
