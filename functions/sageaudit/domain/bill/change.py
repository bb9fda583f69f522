"""Fixes as changes of the job: a saving is the difference between two bills, not a formula."""

from __future__ import annotations

import enum
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.job.job import InstanceGroup, Job, Phase, Purchase
from sageaudit.domain.job.parts import WarmPool
from sageaudit.structs import replace


class Stage(enum.IntEnum):
    """The stage of a change; changes are combined in this order."""

    RUN = 1
    TIME = 2
    COUNT = 3
    TYPE = 4
    STORAGE = 5
    WARM_POOL = 6
    PURCHASE = 7


_NO_TIME = datetime(2017, 11, 1, tzinfo=UTC)
"""Stands for the time of a run without any: a run that does not happen costs nothing at any time.
"""


class DropRun(Struct, frozen=True):
    """The run does not happen, because it produced nothing."""

    stage = Stage.RUN

    def apply(self, job: Job) -> Job:
        """Returns the job as if it had never started, without its warm pool.

        A job has never started only if its creation and end are known, so a missing one is filled.
        """
        times = (job.created_at, job.started_at, job.ended_at, job.last_modified_at)
        known_at = next(filter(None, times), _NO_TIME)
        return replace(
            job,
            status="Stopped",
            created_at=known_at,
            ended_at=job.ended_at or known_at,
            started_at=None,
            training_s=None,
            billable_s=None,
            phases=(),
            warm_pool=None,
        )


class CutPhase(Struct, frozen=True):
    """A phase takes `seconds` less, over all its occurrences together, but never less than 0 s."""

    phase: str
    seconds: Decimal
    stage = Stage.TIME

    def apply(self, job: Job) -> Job:
        """Returns the shorter job. A phase that is not billed cannot be cut.

        Cutting s seconds saves s x billable / billed phases' seconds, on Spot too.
        """
        remaining_s = self.seconds
        phases: list[Phase] = []
        for phase in job.phases:
            if phase.name == self.phase and phase.seconds is not None and phase.billed:
                cut_s = min(remaining_s, phase.seconds)
                remaining_s -= cut_s
                phase = replace(phase, seconds=phase.seconds - cut_s)  # noqa: PLW2901
            phases.append(phase)
        return _shorten(replace(job, phases=tuple(phases)), job, self.seconds - remaining_s)


class SetType(Struct, frozen=True):
    """All instances become another type, and the run takes `time_factor` times as long.

    `needs_trial`: the run time is not bounded, so the saving is at most possible.
    """

    instance_type: str
    time_factor: Decimal = Decimal(1)
    needs_trial: bool = False
    stage = Stage.TYPE

    def apply(self, job: Job) -> Job:
        """Returns the job with the same number of instances of the other type."""
        groups = (InstanceGroup(self.instance_type, item.count, item.name) for item in job.groups)
        return _scale_times(job, tuple(groups), self.time_factor)


class SetCount(Struct, frozen=True):
    """The job has one group of `count` instances, and takes `time_factor` times as long.

    `redistributes_work`: the remaining instances do more work than was recorded, so it is unknown
    whether a smaller type fits.
    """

    count: int
    time_factor: Decimal
    redistributes_work: bool = True
    stage = Stage.COUNT

    def apply(self, job: Job) -> Job:
        """Returns the changed job; unchanged if it does not have exactly one group."""
        if len(job.groups) != 1:
            return job
        group = InstanceGroup(job.groups[0].instance_type, self.count)
        return _scale_times(job, (group,), self.time_factor)


class SetTypeCount(Struct, frozen=True):
    """A cluster of several types gets `count` instances of one type; the run time stays the same.

    If `count` is 0, the groups of this type are removed. Otherwise the job must have one such
    group.
    """

    instance_type: str
    count: int
    stage = Stage.COUNT

    def apply(self, job: Job) -> Job:
        """Returns the changed job; unchanged if the job has only this type, or two groups of it."""
        own = [group for group in job.groups if group.instance_type == self.instance_type]
        others = [group for group in job.groups if group.instance_type != self.instance_type]
        if not others or (self.count and len(own) != 1):
            return job
        changed_groups = (
            replace(group, count=self.count) if group in own else group for group in job.groups
        )
        return replace(job, groups=tuple(changed_groups if self.count else others))


class SetPurchase(Struct, frozen=True):
    """The capacity is bought another way.

    `billed_share`: the share (0..1) of the seconds that is billed, at the same rate.
    """

    billed_share: Decimal
    purchase: Purchase = Purchase.SPOT
    stage = Stage.PURCHASE

    def apply(self, job: Job) -> Job:
        """Returns the changed job.

        SageMaker has no spot rate: on Spot, fewer seconds are billable.
        """
        seconds = job.billable_s if job.billable_s is not None else job.elapsed_s
        if seconds is None:
            return job
        billable_s = seconds * self.billed_share
        return replace(job, purchase=self.purchase, billable_s=billable_s, warm_pool=None)


class ShortenPool(Struct, frozen=True):
    """The warm pool is retained for at most `retained_s` seconds."""

    retained_s: Decimal
    stage = Stage.WARM_POOL

    def apply(self, job: Job) -> Job:
        """Returns the changed job; unchanged if the retained seconds are unknown."""
        pool = job.warm_pool
        if pool is None or pool.retained_s is None:
            return job
        kept_s = min(pool.retained_s, self.retained_s)
        return replace(job, warm_pool=replace(pool, retained_s=kept_s))


class RetainPool(Struct, frozen=True):
    """The run starts on the previous run's warm pool, and keeps its own pool.

    `pull_s`: the saved seconds of image pull. `retained_s`: how long the pool is retained, in
    seconds. `keep_alive_s`: the KeepAlivePeriodInSeconds to set.
    """

    pull_s: Decimal
    retained_s: Decimal
    keep_alive_s: int
    stage = Stage.WARM_POOL

    def apply(self, job: Job) -> Job:
        """Returns the changed job. The image pull is part of Downloading."""
        pool = WarmPool("Terminated", self.keep_alive_s, self.retained_s)
        return replace(CutPhase("Downloading", self.pull_s).apply(job), warm_pool=pool)


class SetVolume(Struct, frozen=True):
    """Every instance gets a volume of `volume_gb` GB."""

    volume_gb: int
    stage = Stage.STORAGE

    def apply(self, job: Job) -> Job:
        """Returns the job with the other volume size."""
        return replace(job, volume_gb=self.volume_gb)


class DropTrials(Struct, frozen=True):
    """Some training jobs of a tuning job do not run. Their own bills show the saving."""

    trials: frozenset[str]
    stage = Stage.RUN

    def apply(self, job: Job) -> Job:
        """Returns the job unchanged: a tuning job has no bill of its own."""
        return job


Change = (
    DropRun
    | CutPhase
    | SetType
    | SetCount
    | SetTypeCount
    | SetPurchase
    | ShortenPool
    | RetainPool
    | SetVolume
    | DropTrials
)


def _shorten(changed_job: Job, old_job: Job, cut_s: Decimal) -> Job:
    elapsed_s, billable_s = old_job.elapsed_s, old_job.billable_s
    if not elapsed_s:
        return changed_job
    if billable_s is not None:
        share = cut_s / (old_job.billed_phases_s or elapsed_s)
        billable_s = max(billable_s - billable_s * share, Decimal(0))
    return replace(
        changed_job, training_s=max(elapsed_s - cut_s, Decimal(0)), billable_s=billable_s
    )


def _scale_times(job: Job, groups: tuple[InstanceGroup, ...], factor: Decimal) -> Job:
    if factor == 1:
        return replace(job, groups=groups)
    return replace(
        job,
        groups=groups,
        training_s=None if job.elapsed_s is None else job.elapsed_s * factor,
        billable_s=None if job.billable_s is None else job.billable_s * factor,
        phases=tuple(
            replace(phase, seconds=None if phase.seconds is None else phase.seconds * factor)
            for phase in job.phases
        ),
    )
