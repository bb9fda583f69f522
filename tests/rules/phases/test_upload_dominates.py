from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Phase, Purchase
from tests.fakes.jobs import START, job, phases
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "upload-dominates"
TYPE = "ml.g5.2xlarge"


def sends(train_s: int, upload_s: int, **changes: Any) -> Job:
    """A job that trains and then uploads."""
    seconds = Decimal(train_s + upload_s)
    return job(
        phases=phases(("Starting", -60), ("Training", train_s), ("Uploading", upload_s)),
        **{"training_s": seconds, "billable_s": seconds, **changes},
    )


verdict = partial(answer, RULE)


def test_a_long_upload_is_found() -> None:
    # 15 of 60 minutes: no packing. Checkpoints are no fix for the upload of one model.
    result = verdict(sends(2700, 900, output_compression="GZIP"))
    assert result == finds(
        "Uploading took 15 min of 1 h billed (25%), after the code had ended.",
        ways=[],
        caution="…model registry…",
        builder="derived",
        fix=[("OutputDataConfig.CompressionType", "GZIP", "NONE")],
    )


def test_nothing_is_counted_until_a_run_shows_it() -> None:
    # Between nothing and a quarter of an hour of $1.515, $0.37875.
    assert verdict(sends(2700, 900)) == finds(
        usd="0.000000", alone="0.000000", span=("0.000000", "0.378750"), severity="low"
    )


def test_exactly_a_tenth_of_the_billed_time_is_long() -> None:
    """360 of 3600 s; one second less is not."""
    assert verdict(sends(3240, 360)) == FOUND
    assert verdict(sends(3241, 359)) == CLEAR


def test_exactly_two_minutes_are_not_long() -> None:
    """One second more is."""
    assert verdict(sends(300, 120)) == CLEAR
    assert verdict(sends(300, 121)) == FOUND


def test_a_dear_upload_is_found_whatever_its_share() -> None:
    # 40 minutes of 20 hours on eight hosts: $8.08 is not, on ten hosts $10.10 is.
    assert verdict(sends(69600, 2400, groups=(InstanceGroup(TYPE, 8),))) == CLEAR
    result = verdict(sends(69600, 2400, groups=(InstanceGroup(TYPE, 10),)))
    assert result == finds(
        "Uploading took 40 min of 20 h billed (3%, $10.10), after the code had ended."
    )


def test_a_dear_upload_of_ten_minutes_is_usual() -> None:
    # On forty hosts at $1.515: $10.10, and one second more is long.
    assert verdict(sends(71400, 600, groups=(InstanceGroup(TYPE, 40),))) == CLEAR
    assert verdict(sends(71400, 601, groups=(InstanceGroup(TYPE, 40),))) == FOUND


def test_an_answer_without_phases_is_unknown() -> None:
    """One run from start to end, or a phase without end."""
    result = verdict(job(phases=(Phase("Running", START, Decimal(3600), billed=True),)))
    assert result == cannot_judge("phases_missing")
    assert verdict(job(phases=())) == cannot_judge("phases_missing")
    result = verdict(job(phases=(Phase("Uploading", START, None, billed=True),)))
    assert result == cannot_judge("phases_missing")


def test_a_job_that_never_started_is_clear() -> None:
    """It uploaded nothing; nor did a run of no seconds."""
    result = verdict(
        job(
            status="Failed",
            started_at=None,
            ended_at=None,
            training_s=None,
            billable_s=None,
            phases=phases(("Starting", -600)),
        )
    )
    assert result == CLEAR
    assert verdict(sends(0, 0)) == CLEAR


def test_serverless_jobs_are_not_its_concern() -> None:
    """They have no instance that waits."""
    assert verdict(sends(2700, 900, purchase=Purchase.SERVERLESS)) == does_not_apply("…serverless…")


def test_on_spot_the_range_is_of_billed_seconds() -> None:
    """A third of $0.37875."""
    result = verdict(sends(2700, 900, purchase=Purchase.SPOT, billable_s=Decimal(1200)))
    assert result == finds(span=("0.000000", "0.126250"))


def test_what_is_done_already_is_not_advised() -> None:
    """Then only fewer files help."""
    result = verdict(sends(2700, 900, checkpointed=True, output_compression="NONE"))
    assert result == finds(fix=[], ways=[], without="CompressionType")


def test_packing_is_the_default() -> None:
    """An answer that does not say it is GZIP."""
    assert verdict(sends(2700, 900, checkpointed=True)) == finds(
        fix=[("…", None, "NONE")], evidence={"compression": "GZIP (the default)"}
    )


def test_checkpoints_are_named_only_where_the_job_writes_some_and_not_to_s3_already() -> None:
    result = verdict(sends(2700, 900, hints=Hints(own_checkpoints=True)))
    assert result == finds(
        ways=[[("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")]],
        caution="…only where the upload consists of checkpoints…",
    )
    result = verdict(sends(2700, 900, hints=Hints(own_checkpoints=True), checkpointed=True))
    assert result == finds(ways=[])
