"""The sums of an audit stay within its bill, for any status and warm pool."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.judged import findings_line, judged, property_settings
from tests.properties.programs import GPU_TYPES, Run, runs

ZERO = Decimal(0)
ROUNDED = Decimal("0.00001")
SECONDS = st.sampled_from([0, 1, 600, 3600, 86_400, 10**9])


@property_settings(25)
@given(
    runs(GPU_TYPES),
    st.sampled_from(["Completed", "Failed", "Stopped"]),
    st.booleans(),
    SECONDS,
    SECONDS,
    st.sampled_from(["Reused", "Terminated", "InUse", "Available", "Another"]),
)
def test_what_is_counted_and_what_may_be_lost_are_no_more_than_the_bill(
    run: Run, status: str, checkpoints: bool, retained_s: int, keep_s: int, pool: str
) -> None:
    """Counted and possibly lost dollars stay within the bill, even if a pool was kept for years."""
    job_recording = run.recording()
    answer = job_recording["describe"]
    answer["TrainingJobStatus"] = answer["SecondaryStatus"] = status
    if status == "Failed":
        answer["FailureReason"] = "AlgorithmError: CUDA out of memory"
    if checkpoints:
        answer["CheckpointConfig"] = {"S3Uri": "s3://checkpoints/here"}
    answer["ResourceConfig"]["KeepAlivePeriodInSeconds"] = keep_s
    answer["WarmPoolStatus"] = {"Status": pool, "ResourceRetainedBillableTimeInSeconds": retained_s}
    audit = judged(job_recording)
    assert not [row for row in audit["unknown"] if row["code"] == "rule_failed"]
    total, lost = audit["bill"]["total_usd"], audit["lost_usd"] or ZERO
    assert total is not None, audit["bill"]["missing"]
    avoidable, most = audit["avoidable_usd"] or ZERO, audit["lost_up_to_usd"] or ZERO
    assert ZERO <= lost <= most
    assert avoidable + most <= total + ROUNDED, findings_line(audit)
    assert all(part["usd"] >= -ROUNDED for part in audit["waterfall"])
