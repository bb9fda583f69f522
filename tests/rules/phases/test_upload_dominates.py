from decimal import Decimal
from functools import partial
from typing import Any

from sageaudit.domain.job.job import Hints, Job, Phase, Purchase
from tests.fakes.jobs import START, job, never_started, phased_job
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "upload-dominates"


def sends(train_s: int, upload_s: int, **changes: Any) -> Job:
    """A job on ml.g5.2xlarge at $1.515 an hour that trains and then uploads."""
    return phased_job(("Training", train_s), ("Uploading", upload_s), **changes)


verdict = partial(answer, RULE)


def test_a_long_upload_is_found() -> None:
    # 15 of 60 minutes: no packing. Checkpoints are no fix for the upload of one model.
    result = verdict(sends(train_s=2700, upload_s=900, output_compression="GZIP"))
    assert result == finds(
        "Uploading took 15 min of the 1 h billed (25%), after the code had ended.",
        ways=[],
        caution="…model registry…",
        builder="derived",
        fix=[("OutputDataConfig.CompressionType", "GZIP", "NONE")],
    )


def test_nothing_is_counted_until_a_run_shows_it() -> None:
    # Between nothing and a quarter of an hour of $1.515, $0.37875.
    assert verdict(sends(train_s=2700, upload_s=900)) == finds(
        usd="0.000000", alone="0.000000", span=("0.000000", "0.378750"), severity="low"
    )


def test_360_of_3600_billed_seconds_a_tenth_are_long_and_one_second_less_is_not() -> None:
    assert verdict(sends(train_s=3240, upload_s=360)) == FOUND
    assert verdict(sends(train_s=3241, upload_s=359)) == CLEAR


def test_an_upload_of_120_s_is_not_long_and_of_121_s_it_is() -> None:
    assert verdict(sends(train_s=300, upload_s=120)) == CLEAR
    assert verdict(sends(train_s=300, upload_s=121)) == FOUND


def test_an_upload_of_10_dollars_is_found_whatever_its_share() -> None:
    # 40 minutes of 20 hours at $1.515 an hour are $8.08 on 8 hosts and $10.10 on 10.
    assert verdict(sends(train_s=69600, upload_s=2400, instances=8)) == CLEAR
    result = verdict(sends(train_s=69600, upload_s=2400, instances=10))
    assert result == finds(
        "Uploading took 40 min of the 20 h billed (3%, or $10.10), after the code had ended."
    )


def test_an_upload_of_10_dollars_in_600_s_is_usual_and_in_601_s_it_is_found() -> None:
    # On 40 hosts at $1.515 an hour 600 s cost $10.10.
    assert verdict(sends(train_s=71400, upload_s=600, instances=40)) == CLEAR
    assert verdict(sends(train_s=71400, upload_s=601, instances=40)) == FOUND


def test_an_answer_without_phases_is_unknown() -> None:
    """One run from start to end, or a phase without end."""
    result = verdict(job(phases=(Phase("Running", START, Decimal(3600), billed=True),)))
    assert result == cannot_judge("phases_missing")
    assert verdict(job(phases=())) == cannot_judge("phases_missing")
    result = verdict(job(phases=(Phase("Uploading", START, None, billed=True),)))
    assert result == cannot_judge("phases_missing")


def test_a_job_that_never_started_is_clear() -> None:
    """It uploaded nothing; nor did a run of no seconds."""
    result = verdict(never_started())
    assert result == CLEAR
    assert verdict(sends(train_s=0, upload_s=0)) == CLEAR


def test_serverless_jobs_are_not_judged() -> None:
    """They have no instance that waits."""
    assert verdict(
        sends(train_s=2700, upload_s=900, purchase=Purchase.SERVERLESS)
    ) == does_not_apply("…serverless…")


def test_on_spot_the_range_is_of_billed_seconds() -> None:
    """A third of $0.37875."""
    result = verdict(
        sends(train_s=2700, upload_s=900, purchase=Purchase.SPOT, billable_s=Decimal(1200))
    )
    assert result == finds(span=("0.000000", "0.126250"))


def test_what_is_done_already_is_not_advised() -> None:
    """Then only fewer files help."""
    result = verdict(
        sends(train_s=2700, upload_s=900, checkpointed=True, output_compression="NONE")
    )
    assert result == finds(fix=[], ways=[], without="CompressionType")


def test_packing_is_the_default() -> None:
    """An answer that does not say it is GZIP."""
    assert verdict(sends(train_s=2700, upload_s=900, checkpointed=True)) == finds(
        fix=[("…", None, "NONE")], evidence={"compression": "GZIP (the default)"}
    )


def test_checkpoints_are_named_only_where_the_job_writes_some_and_not_to_s3_already() -> None:
    result = verdict(sends(train_s=2700, upload_s=900, hints=Hints(own_checkpoints=True)))
    assert result == finds(
        ways=[[("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")]],
        caution="…only if the upload consists of checkpoints…",
    )
    result = verdict(
        sends(train_s=2700, upload_s=900, hints=Hints(own_checkpoints=True), checkpointed=True)
    )
    assert result == finds(ways=[])
