"""The attempts of an interrupted spot run: what was done again, and what it was billed."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.job.job import Job, Phase, whole_sum

LONG_S = 3600
"""The longest wait that AWS allows built-in algorithms without checkpoints: a shorter run loses
little when it starts again."""
_ZERO = Decimal(0)


def lacks_checkpoints(job: Job) -> bool:
    """Whether a run is too long to start again from nothing, and shows no sign of checkpoints."""
    return starts_again(job) and (job.elapsed_s or _ZERO) > LONG_S


def starts_again(job: Job) -> bool:
    """Whether an interruption sends it back to its beginning: no sign of checkpoints."""
    return not (job.checkpointed or job.hints.own_checkpoints)


class Attempts(Struct, frozen=True):
    """Seconds of Training in all attempts and in those before the last, which did all the work.

    Shares (0..1) of the billed seconds: `at_most_repeated` is that of the earlier attempts'
    Training, without downloads and the upload; `surely_repeated` what was billed above the last
    attempt's seconds, and no more than that.
    """

    training_s: Decimal
    repeated_s: Decimal
    surely_repeated: Decimal
    at_most_repeated: Decimal


def attempts(job: Job) -> Attempts | None:
    """None where no training was interrupted, or where the seconds are not known."""
    last_s, training_s = last_attempt_s(job), job.phase_s("Training")
    phases_s = job.billed_phases_s
    if last_s is None or not training_s or not phases_s or not job.billable_s:
        return None
    last_training_s = sum((p.seconds or _ZERO for p in _last(job) if p.name == "Training"), _ZERO)
    repeated_s = training_s - last_training_s
    if repeated_s <= 0:
        return None
    above = max(job.billable_s - last_s, _ZERO) / job.billable_s
    at_most = repeated_s / phases_s
    return Attempts(training_s, repeated_s, min(above, at_most), at_most)


def last_attempt_s(job: Job) -> Decimal | None:
    """The seconds in which instances worked after the last interruption, its download included, as
    a run alone needs them; None without an interruption, or where one of them is unknown.
    """
    seconds = [phase.seconds for phase in _last(job) if phase.billed or phase.repeated]
    return whole_sum(seconds) if seconds else None


def _last(job: Job) -> tuple[Phase, ...]:
    cuts = [number for number, phase in enumerate(job.phases) if phase.name == "Interrupted"]
    return job.phases[cuts[-1] :] if cuts else ()
