from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sageaudit.domain.job.job import Hints, Job, Parent, Phase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import ProcessingOutput
from sageaudit.structs import replace
from tests.fakes.jobs import START, job, never_started, phases, ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    Measured,
    cannot_judge,
    does_not_apply,
    even_use,
    finds,
    hosts,
    one_host,
)

RULE = "failed-spend"
SEARCH = JobKind.TUNING.spec.rollup


def failed(reason: str | None = None, **changes: Any) -> Job:
    """An hour on ml.m5.xlarge that failed."""
    return ran(3600, status="Failed", secondary_status="Failed", failure=reason, **changes)


def with_checkpoints(**changes: Any) -> Job:
    """Failed after an hour with CheckpointConfig."""
    return failed("InternalServerError: try again", checkpointed=True, **changes)


ONE_T4 = "ml.g4dn.xlarge"
"""$0.736 an hour."""


def busy_cores(*host_points: list[float]) -> Measured:
    """Busy cores of hosts without GPU, minute by minute."""
    return hosts(*({"cores": of_host} for of_host in host_points))


SPINS_FROM_MINUTE_40 = one_host(gpu=[90.0] * 40 + [0.0] * 80, cores=[3.0] * 40 + [1.01] * 80)
WAITS_TWICE = [0.1] * 15 + [3.0] * 10 + [0.1] * 20 + [3.0] * 15


verdict = partial(answer, RULE)


def test_a_run_that_was_idle_for_most_of_its_time_says_so_first() -> None:
    result = verdict(failed("AlgorithmError: exit code 1"), busy_cores([3.0] * 20 + [0.1] * 40))
    assert result == finds(
        "The run was idle from minute 20 on, for 40 min. The run failed after 1 h on "
        "1 x ml.m5.xlarge (code error).",
        usd="0.235645",
        first_step="Read its log after 20 min to see what it waited for, and set a timeout there",
        evidence={"idle_from_s": 1200},
    )
    result = verdict(failed("InternalServerError: try again"), busy_cores([3.0] * 20 + [0.1] * 40))
    assert result == finds(
        "The run was idle from minute 20 on…", first_step="Read its log after 20 min…", fix=[2]
    )
    result = verdict(
        failed("AlgorithmError: MemoryError: Unable to allocate 9 GiB"),
        busy_cores([3.0] * 20 + [0.1] * 40),
    )
    assert result == finds(
        "The run was idle…(host out of memory…", first_step="Read its log…. Use fewer…"
    )
    result = verdict(
        ran(7200, ONE_T4, status="Failed", secondary_status="Failed"), SPINS_FROM_MINUTE_40
    )
    assert result == finds(
        "The run used no GPU, and at most one core of a host, from minute 40 on, for "
        "1 h 20 min. The run failed…",
        evidence={"idle_s": 4800},
    )


def test_several_waits_are_added_up() -> None:
    """No time is given if work came after most of them."""
    assert verdict(failed(), busy_cores(WAITS_TWICE)) == finds(
        "The run was idle for 35 min. The run failed…",
        first_step="Read its log to see what…",
        evidence={"idle_s": 2100},
        lacks="idle_from_s",
    )


def test_a_run_is_idle_while_all_its_hosts_are() -> None:
    """One that works makes it a run at work."""
    result = verdict(
        ran(3600, instances=2, status="Failed", secondary_status="Failed"),
        busy_cores([3.0] * 60, [0.1] * 60),
    )
    assert result == finds("The run failed…", lacks="idle_s")


def test_waits_of_9_minutes_in_each_10_are_no_idle_run() -> None:
    """Any program that polls does so."""
    assert verdict(failed(), busy_cores(([0.1] * 9 + [3.0]) * 6)) == finds(
        "The run failed…", lacks="idle_s"
    )


def test_a_spot_run_of_several_attempts_ran_for_all_of_them_together() -> None:
    result = verdict(
        failed(
            phases=(
                *phases(("Training", 3600)),
                Phase("Interrupted", START, Decimal(1800), billed=False),
                *phases(("Training", 3600)),
            )
        )
    )
    assert result == finds("The run failed after 2 h on…")


def test_a_completed_run_is_clear() -> None:
    """It gave its results."""
    assert verdict(job()) == CLEAR


@pytest.mark.parametrize("status", ["Failed", "Stopped"])
def test_a_job_that_never_started_cost_nothing(status: str) -> None:
    assert verdict(never_started(status)) == CLEAR


def test_a_stopped_run_that_left_nothing_is_lost() -> None:
    """Neither artifact nor checkpoints."""
    result = verdict(ran(3600, status="Stopped", has_artifact=False))
    assert result == finds("…left no artifact…", bucket="lost")


def test_a_stopped_run_that_kept_something_is_not_judged() -> None:
    # An artifact, a run that can be resumed, an early-stopped trial.
    assert verdict(ran(3600, status="Stopped", has_artifact=True)) == does_not_apply("…artifact…")
    result = verdict(ran(3600, status="Stopped", has_artifact=False, checkpointed=True))
    assert result == does_not_apply("…checkpoints…")
    result = verdict(
        ran(3600, status="Stopped", has_artifact=False, parent=Parent(SEARCH, "arn:t"))
    )
    assert result == does_not_apply("…tuning job…")


def test_a_failed_trial_is_lost_all_the_same() -> None:
    """Failed is not early-stopped."""
    assert verdict(failed(parent=Parent(SEARCH, "arn:t"))) == FOUND


def test_whether_a_stopped_job_left_anything_may_not_be_known() -> None:
    # Processing and transform jobs write their outputs themselves.
    result = verdict(ran(3600, status="Stopped", kind=JobKind.PROCESSING, has_artifact=None))
    assert result == cannot_judge("artifact_unknown")


def test_a_free_job_lost_nothing() -> None:
    """A built-in Debugger rule."""
    result = verdict(failed(kind=JobKind.PROCESSING, free="built-in Debugger rule"))
    assert result == does_not_apply("…Debugger…")


def test_the_sentence_says_how_long_on_what_and_why() -> None:
    # One sentence with its numbers; the known words of the failure are evidence.
    result = verdict(failed("AlgorithmError: CUDA out of memory"))
    assert result == finds(
        "The run failed after 1 h on 1 x ml.m5.xlarge (GPU out of memory: its GPU memory "
        "was not recorded).",
        evidence={
            "reason_class": "GPU out of memory",
            "failure_reason": "AlgorithmError: GPU out of memory",
        },
    )


def test_a_time_box_is_not_lost() -> None:
    # MaxRuntimeExceeded with checkpoints; with nothing it is lost, as limit-hit says too.
    result = verdict(
        ran(
            3600,
            checkpointed=True,
            status="Stopped",
            secondary_status="MaxRuntimeExceeded",
            has_artifact=False,
        )
    )
    assert result == does_not_apply("…checkpoints…")
    result = verdict(
        ran(3600, status="Stopped", secondary_status="MaxRuntimeExceeded", has_artifact=False)
    )
    assert result == finds(evidence={"reason_class": "limit reached"})


def test_an_error_of_aws_advises_retries() -> None:
    # RetryStrategy covers InternalServerError only, and training jobs only.
    assert verdict(failed("InternalServerError: try again")) == finds(
        paths=["RetryStrategy.MaximumRetryAttempts"]
    )
    assert verdict(failed("AlgorithmError: exit code 1")) == finds(fix=[])
    result = verdict(failed("InternalServerError: try again", kind=JobKind.PROCESSING))
    assert result == finds(fix=[])


def test_checkpoints_that_cannot_hold_work_change_nothing() -> None:
    # It failed before its training began; or it is a trial, which nobody resumes.
    result = verdict(with_checkpoints(phases=phases(("Starting", -60), ("Downloading", 3600))))
    assert result == finds(confidence="measured", best=None)
    result = verdict(with_checkpoints(parent=Parent(SEARCH, "arn:t")))
    assert result == finds(confidence="measured", best=None)


def test_a_run_of_more_than_an_hour_that_failed_without_checkpoints_gets_them() -> None:
    # The next failure loses less; a sign of checkpoints of its own is enough.
    result = verdict(failed("AlgorithmError: exit code 1", training_s=Decimal(3601)))
    assert result == finds(paths=["CheckpointConfig.S3Uri"])
    result = verdict(
        replace(
            failed("AlgorithmError: exit code 1", training_s=Decimal(3601)),
            hints=Hints(own_checkpoints=True),
        )
    )
    assert result == finds(fix=[])
    result = verdict(
        replace(
            failed("AlgorithmError: exit code 1", training_s=Decimal(3601)), kind=JobKind.PROCESSING
        )
    )
    assert result == finds(fix=[])


def test_several_gpus_have_only_their_mean() -> None:
    """CloudWatch has the sum of a host's GPUs."""
    result = verdict(
        ran(7200, "ml.g4dn.12xlarge", status="Failed", failure="CUDA out of memory"),
        even_use(minutes=120, gpu_memory=60),
    )
    assert result == finds("…60% on average over 4 GPUs…")


def test_a_run_without_known_cost_is_still_said_to_be_lost() -> None:
    """Its dollars are unknown, not 0."""
    assert verdict(failed(region="xx-west-9")) == finds(usd=None, bucket="lost")


def test_of_a_failed_run_all_is_lost_instance_and_volume() -> None:
    """$0.23 for an hour of ml.m5.xlarge + 30 GB x 1 h / 744 h x $0.14."""
    assert verdict(failed("AlgorithmError: exit code 1")) == finds(
        "…failed after 1 h on 1 x ml.m5.xlarge…", usd="0.235645", builder="lost"
    )


def test_with_checkpoints_of_the_scripts_own_or_uploaded_outputs_lost_is_up_to_the_whole_bill() -> (
    None
):
    result = verdict(
        replace(failed("InternalServerError: try again"), hints=Hints(own_checkpoints=True))
    )
    assert result == finds(
        "…(AWS error); checkpoints or outputs of its script's own may hold a part of the…",
        usd="0.000000",
        span=("0.000000", "0.235645"),
        evidence={"checkpointed": True},
    )
    result = verdict(
        replace(ran(3600, status="Stopped", has_artifact=False), hints=Hints(own_checkpoints=True))
    )
    assert result == finds(
        "…was stopped and left no artifact…of its script's own may hold…", usd="0.000000"
    )
    result = verdict(
        failed(
            "AlgorithmError: exit code 1",
            kind=JobKind.PROCESSING,
            uploads=(ProcessingOutput("out", "Continuous"),),
        )
    )
    assert result == finds("…outputs that were uploaded while it ran may hold…", usd="0.000000")


def test_with_checkpoints_lost_is_up_to_the_whole_bill() -> None:
    """A resume keeps the work."""
    assert verdict(with_checkpoints()) == finds(
        "The run failed after 1 h on 1 x ml.m5.xlarge (AWS error); its checkpoints may "
        "hold a part of the work.",
        bucket="lost",
        confidence="derived",
        usd="0.000000",
        span=("0.000000", "0.235645"),
        caution="…If nobody resumes it, all of it is lost…",
    )
