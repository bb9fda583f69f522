from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, InstanceGroup, Job, Phase, Purchase
from tests.fakes.jobs import START, job, phases
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "upload-dominates"
TYPE = "ml.g5.2xlarge"


def sends(train_s: int, upload_s: int, **changes: Any) -> Job:
    """A job that trains and then uploads."""
    seconds = Decimal(train_s + upload_s)
    return job(
        phases=phases(("Starting", -60), ("Training", train_s), ("Uploading", upload_s)),
        **{"training_s": seconds, "billable_s": seconds, **changes},
    )


def test_a_long_upload_is_found() -> None:
    """15 of 60 minutes: no packing. Checkpoints are no fix for the upload of one model."""
    what = found(RULE, sends(2700, 900, output_compression="GZIP"))
    assert what.summary == ("Uploading took 15 min of 1 h billed (25%), after the code had ended.")
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == (
        "OutputDataConfig.CompressionType",
        "GZIP",
        "NONE",
    )
    assert what.alternatives == ()
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
    assert what.fix[0].old is None


def test_checkpoints_are_named_only_where_the_job_writes_some() -> None:
    """As the other way, with its condition; not where they go to S3 already."""
    writes = Hints(own_checkpoints=True)
    what = found(RULE, sends(2700, 900, hints=writes))
    [[other]] = what.alternatives
    assert (other.path, other.old) == ("CheckpointConfig.S3Uri", None)
    assert "only where the upload consists of checkpoints" in (what.caution or "")
    assert found(RULE, sends(2700, 900, hints=writes, checkpointed=True)).alternatives == ()


def test_a_dear_upload_is_found_whatever_its_share() -> None:
    """40 minutes of 20 hours on eight hosts: $8.08 is not, on ten hosts $10.10 is."""
    assert outcome(RULE, sends(69600, 2400, groups=(InstanceGroup(TYPE, 8),))) == Clear()
    what = found(RULE, sends(69600, 2400, groups=(InstanceGroup(TYPE, 10),)))
    assert what.summary == (
        "Uploading took 40 min of 20 h billed (3%, $10.10), after the code had ended."
    )


def test_a_dear_upload_of_ten_minutes_is_usual() -> None:
    """On forty hosts at $1.515: $10.10, and one second more is long."""
    many = (InstanceGroup(TYPE, 40),)
    assert outcome(RULE, sends(71400, 600, groups=many)) == Clear()
    assert isinstance(outcome(RULE, sends(71400, 601, groups=many)), Found)


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
