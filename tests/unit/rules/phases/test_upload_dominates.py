from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job, Phase, Purchase
from tests.fakes.jobs import START, job, phases
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "upload-dominates"


def sends(train_s: int, upload_s: int, **changes: Any) -> Job:
    """A job that trains and then uploads."""
    seconds = Decimal(train_s + upload_s)
    return job(
        phases=phases(("Starting", -60), ("Training", train_s), ("Uploading", upload_s)),
        **{"training_s": seconds, "billable_s": seconds, **changes},
    )


def test_a_long_upload_is_found() -> None:
    """15 of 60 minutes: checkpoints while it trains; no packing as the other way."""
    what = found(RULE, sends(2700, 900, output_compression="GZIP"))
    assert what.summary == ("Uploading took 15 min of 1 h billed (25%), after the code had ended.")
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == (
        "CheckpointConfig.S3Uri",
        None,
        "s3://<bucket>/<prefix>",
    )
    [[other]] = what.alternatives
    assert (other.path, other.old, other.new) == (
        "OutputDataConfig.CompressionType",
        "GZIP",
        "NONE",
    )
    assert "model registry" in (what.caution or "")
    assert (what.confidence, what.bucket) == (Confidence.DERIVED, Bucket.AVOIDABLE)


def test_nothing_is_counted_until_a_run_shows_it() -> None:
    """Between nothing and a quarter of an hour of $1.515, $0.37875."""
    finding = priced(RULE, sends(2700, 900))
    assert (finding.saving_usd, finding.alone_usd) == (0, 0)
    assert list(finding.range_usd or ()) == [0, Decimal("0.37875")]
    assert finding.severity.value == "low"


def test_on_spot_the_range_is_of_billed_seconds() -> None:
    """A third of the seconds billed: a third of $0.37875."""
    spot = sends(2700, 900, purchase=Purchase.SPOT, billable_s=Decimal(1200))
    span = priced(RULE, spot).range_usd
    assert span is not None
    assert usd(span[1]) == "0.126250"


def test_exactly_a_tenth_of_the_billed_time_is_long() -> None:
    """360 of 3600 s; one second less is not."""
    assert isinstance(outcome(RULE, sends(3240, 360)), Found)
    assert outcome(RULE, sends(3241, 359)) == Clear()


def test_exactly_two_minutes_are_not_long() -> None:
    """One second more is."""
    assert outcome(RULE, sends(300, 120)) == Clear()
    assert isinstance(outcome(RULE, sends(300, 121)), Found)


def test_what_is_done_already_is_not_advised() -> None:
    """Checkpoints and no packing: then only fewer files help."""
    what = found(RULE, sends(2700, 900, checkpointed=True, output_compression="NONE"))
    assert (what.fix, what.alternatives) == ((), ())
    assert "CompressionType" not in (what.caution or "")


def test_packing_is_the_default() -> None:
    """An answer that does not say it is GZIP."""
    what = found(RULE, sends(2700, 900, checkpointed=True))
    assert what.evidence["compression"] == "GZIP (the default)"
    assert what.alternatives[0][0].old is None


@pytest.mark.parametrize(
    "phase",
    [
        Phase("Running", START, Decimal(3600), billed=True),
        Phase("Uploading", START, None, billed=True),
    ],
)
def test_an_answer_without_phases_is_unknown(phase: Phase) -> None:
    """One run from start to end, or a phase without end."""
    assert unknown(RULE, job(phases=(phase,))) == "phases_missing"
    assert unknown(RULE, job(phases=())) == "phases_missing"


def test_a_job_that_never_started_is_clear() -> None:
    """It uploaded nothing; nor did a run of no seconds."""
    never = job(status="Failed", started_at=None, ended_at=None, training_s=None,
                billable_s=None, phases=phases(("Starting", -600)))  # fmt: skip
    assert outcome(RULE, never) == Clear()
    assert outcome(RULE, sends(0, 0)) == Clear()


def test_serverless_jobs_are_not_its_concern() -> None:
    """They have no instance that waits."""
    assert "serverless" in not_applicable(RULE, sends(2700, 900, purchase=Purchase.SERVERLESS))
