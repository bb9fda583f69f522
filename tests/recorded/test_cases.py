"""Small made-up jobs, each about one billing rule that AWS states."""

from decimal import Decimal

from sageaudit.adapters.files.recording import Recording, read
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from tests.fakes.recorded import DATA, Recorded


def document(name: str) -> AuditDocument:
    """Returns the audit of a case."""
    recording = read(DATA / "cases" / f"{name}.json")
    assert isinstance(recording, Recording)
    return Recorded(name, composed=True, recording=recording).document


def finding(audit: AuditDocument, rule: str) -> FindingDocument:
    """Returns the finding of a rule."""
    return next(candidate for candidate in audit["findings"] if candidate["rule"] == rule)


def cents(usd: Decimal | None) -> Decimal:
    """Rounds a known amount to cents."""
    assert usd is not None
    return round(usd, 2)


def test_a_download_that_an_interruption_repeats_is_not_charged() -> None:
    """The bill stays the same; the first download and both trainings share it."""
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
    """On Spot 20 of 60 minutes are billed."""
    summary = finding(document("spot-long-download"), "download-dominates")["summary"]
    assert summary.startswith("Downloading took 30 min, billed as 9 min 55 s of 20 min (50%)")


def test_a_volume_that_the_download_cannot_have_filled_is_possible() -> None:
    """Of 1,000 GB 2% are used: $0.37 possible if data is streamed, less in File mode."""
    streamed = finding(document("volume-fastfile-mode"), "volume-oversized")
    copied = finding(document("volume-file-mode"), "volume-oversized")
    assert {volume["bucket"] for volume in (streamed, copied)} == {"possible"}
    assert cents(streamed["saving_usd"]) == Decimal("0.37")
    assert copied["saving_range_usd"] is not None
    assert [cents(end) for end in copied["saving_range_usd"]] == [Decimal("0.34"), Decimal("0.37")]
    assert (copied["fix"][0]["new"], streamed["fix"][0]["new"]) == (115, 40)


def test_fifty_minutes_with_one_file_system_are_no_image_pull() -> None:
    """They are the file system's mount or reads, with a first step of its own."""
    reported = finding(document("efs-slow-mount"), "image-pull-heavy")
    assert "mounting EFS or fetching from there" in reported["summary"]
    assert "NFS (port 2049)" in (reported["first_step"] or "")
    assert "smaller image" not in str(reported)


def test_outputs_that_a_script_writes_to_s3_may_hold_its_work() -> None:
    """With `output_dir` in S3, $0 to $6.14 are lost, and the address is not stored."""
    audit = document("limit-hit-own-output-dir")
    reported = finding(audit, "limit-hit")
    assert (cents(audit["lost_usd"]), cents(audit["lost_up_to_usd"])) == (0, Decimal("6.14"))
    assert "checkpoints or outputs of its script's own may hold" in reported["summary"]
    assert "run7" not in str(audit)
