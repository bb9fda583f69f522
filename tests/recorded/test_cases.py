"""Small made-up jobs, each about one rule of billing that AWS states: their whole documents."""

from decimal import Decimal

from sageaudit.adapters.files.recording import Recording, read
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from tests.fakes.recorded import DATA, Recorded


def document(name: str) -> AuditDocument:
    """The audit of a case."""
    recording = read(DATA / "cases" / f"{name}.json")
    assert isinstance(recording, Recording)
    return Recorded(name, composed=True, recording=recording).document


def finding(audit: AuditDocument, rule: str) -> FindingDocument:
    """The finding of a rule."""
    return next(one for one in audit["findings"] if one["rule"] == rule)


def cents(usd: Decimal | None) -> Decimal:
    """A known amount as people read it."""
    assert usd is not None
    return round(usd, 2)


def test_a_download_that_an_interruption_repeats_is_not_charged() -> None:
    """The bill stays; the first download and both trainings share it."""
    audit = document("spot-interrupted-download")
    shown = [
        (phase["name"], phase["billed"], phase["not_billed_because"], cents(phase["usd"]))
        for phase in audit["phases"]
        if phase["name"] in {"Downloading", "Training"}
    ]
    share = Decimal("0.28")
    assert shown == [
        ("Downloading", True, None, share),
        ("Training", True, None, share),
        ("Downloading", False, "repeated after an interruption", 0),
        ("Training", True, None, share),
    ]
    assert cents(audit["bill"]["total_usd"]) == Decimal("0.84")
    [compute] = [line["usd"] for line in audit["bill"]["lines"] if line["item"] == "compute"]
    assert sum(phase["usd"] or 0 for phase in audit["phases"]) == compute
    summary = finding(audit, "download-dominates")["summary"]
    assert summary.startswith("Downloading took 30 min, billed as 11 min 3 s of 33 min 20 s (33%)")


def test_billed_time_on_spot_is_the_billable_time() -> None:
    """20 of 60 minutes."""
    summary = finding(document("spot-long-download"), "download-dominates")["summary"]
    assert summary.startswith("Downloading took 30 min, billed as 9 min 55 s of 20 min (50%)")


def test_a_volume_that_the_download_cannot_have_filled_is_possible() -> None:
    """2% of 1,000 GB: $0.36 where data is streamed; less the room of a copy in File mode."""
    streamed = finding(document("volume-fastfile-mode"), "volume-oversized")
    copied = finding(document("volume-file-mode"), "volume-oversized")
    assert {one["bucket"] for one in (streamed, copied)} == {"possible"}
    assert cents(streamed["saving_usd"]) == Decimal("0.37")
    assert copied["saving_range_usd"] is not None
    assert [cents(end) for end in copied["saving_range_usd"]] == [Decimal("0.34"), Decimal("0.37")]
    assert (copied["fix"][0]["new"], streamed["fix"][0]["new"]) == (115, 40)


def test_fifty_minutes_with_one_file_system_are_no_image_pull() -> None:
    """Its mount, or what is fetched from it, with a first step of its own."""
    found = finding(document("efs-slow-mount"), "image-pull-heavy")
    assert "it mounted EFS or fetched from there" in found["summary"]
    assert "NFS (port 2049)" in (found["first_step"] or "")
    assert "smaller image" not in str(found)


def test_outputs_that_a_script_writes_to_s3_may_hold_its_work() -> None:
    """`output_dir` in S3: nothing to all of $6.14 is lost, and the address is not kept."""
    audit = document("limit-hit-own-output-dir")
    found = finding(audit, "limit-hit")
    assert (cents(audit["lost_usd"]), cents(audit["lost_up_to_usd"])) == (0, Decimal("6.14"))
    assert "checkpoints or outputs of its script's own may hold" in found["summary"]
    assert "run7" not in str(audit)
