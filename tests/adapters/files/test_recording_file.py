"""Recordings that are written: read back they give the audit of the job, and nothing is lost."""

import json
import os
import stat
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.files import recording, recording_file
from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.files.recording import ReadContext, RecordedSet, Recording
from sageaudit.adapters.prices.price_list import ListedPrices, StoredListing
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.price_list import Entry, InvalidPrice, ListedRate, PriceListing
from sageaudit.domain.usage.measurements import MissingMetrics
from sageaudit.errors import BadRecording, BadUsage, MalformedData
from sageaudit.structs import replace
from sageaudit.workflows.recordings import run as recorded_audits
from sageaudit.workflows.recordings.jobs import measure_recording
from tests.fakes import recorded
from tests.fakes.jobs import training_answer
from tests.fakes.price_lists import stored_listing
from tests.labelled.story import ONE, stories_of_kind

AS_OF = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
NO_POINTS = MissingMetrics(
    "metric_missing", "CloudWatch has no points", "Audit it again in some minutes."
)
READ = ReadContext(
    AS_OF, NO_POINTS, ("CloudWatch returned Forbidden for some series",), ("a note",)
)


def written(recorded: Recording | RecordedSet) -> Any:
    """What is read back of a recording that was written."""
    return recording.parse(
        json.loads(recording_file.to_text(recording_file.make_document(recorded)))
    )


def audit(recorded: Recording | RecordedSet) -> Any:
    """Its audit, as it is printed."""
    done = recorded_audits.audit_parsed_recording(recorded, Policy())
    return from_json(to_json(done))


def live(recorded: Recording, as_of: datetime | None = None) -> Recording:
    """The recording as if a live job had been read, two days after its end or at a moment."""
    moment = as_of or measure_recording(recorded).now + timedelta(days=2)
    return replace(recorded, read_context=replace(READ, read_at=moment))


@pytest.mark.parametrize("story", stories_of_kind(ONE), ids=lambda story: story.name)
def test_the_hints_of_a_story_survive_without_its_settings(story: Any) -> None:
    """Hyperparameters, environment and arguments are gone; the job that rules see is the same."""
    live_recording = live(recording.parse_job(story.recordings(1)[0]))
    text = recording_file.to_text(recording_file.make_document(live_recording))
    assert "HyperParameters" not in text
    assert '"Environment"' not in text
    before, after = measure_recording(live_recording), measure_recording(written(live_recording))
    assert (after.job, after.usage, after.now) == (before.job, before.usage, before.now)


@pytest.mark.parametrize("path", recorded.files()[::4], ids=lambda path: path.stem)
def test_the_audit_of_what_was_written_is_the_audit(path: Path) -> None:
    """Of jobs and sets, finished or not, as of any moment after their end."""
    live_recording = recording.read(path)
    if isinstance(live_recording, RecordedSet):
        live_recording = replace(live_recording, children=tuple(map(live, live_recording.children)))
    else:
        live_recording = live(live_recording)
    assert audit(written(live_recording)) == audit(live_recording)


def test_what_was_read_is_read_back() -> None:
    """Moment, prices of every form, notes, gaps, and a reason for metrics without points."""
    entries: dict[str, Entry] = {
        "ml.g4dn.xlarge": ListedRate(Decimal("0.736"), AS_OF.date(), "XX1-Train:ml.g4dn.xlarge"),
        "ml.m5.large": ListedRate(Decimal("0.1150"), None, "XX1-Train:ml.m5.large"),
        "ml.p4d.24xlarge": InvalidPrice("it is priced in CNY, not in USD"),
    }
    listing = PriceListing("us-east-1", Component.TRAINING, entries)
    prices = ListedPrices(
        "us-east-1", Component.TRAINING, StoredListing(listing, AS_OF), "throttled"
    )
    live_recording = recorded.recorded_job("profiled-053").recording
    live_recording = replace(
        live_recording, tags={"owner": "ana"}, read_context=replace(READ, prices=prices)
    )
    again = written(live_recording)
    assert again.read_context == live_recording.read_context
    assert (again.tags, again.series) == (live_recording.tags, live_recording.series)
    assert (again.account, again.region) == (live_recording.account, live_recording.region)


def test_an_audit_is_made_at_the_recorded_prices() -> None:
    """And says the day on which they were read."""
    live_recording = live(recorded.recorded_job("profiled-053").recording, AS_OF)
    stored_prices = stored_listing({"ml.g4dn.xlarge": "7.36"}, AS_OF)
    listing = StoredListing(replace(stored_prices.listing, region="us-east-1"), AS_OF)
    prices = ListedPrices("us-east-1", Component.TRAINING, listing, None)
    assert live_recording.read_context is not None
    dear = replace(live_recording, read_context=replace(live_recording.read_context, prices=prices))
    [line, *_] = audit(written(dear))["bill"]["lines"]
    assert (line["rate_usd"], line["price_source"]) == (Decimal("7.36"), "Price List API")
    assert line["price_as_of"] == "2026-11-22"
    assert audit(written(dear)) == audit(dear)


def test_settings_that_differ_stay_different_without_being_in_the_file() -> None:
    """By a hash under a key; without the key no two runs are taken for the same."""

    def fingerprint(key: bytes | None, **settings: str) -> str | None:
        answer = training_answer(HyperParameters=settings)
        made = Recording(answer, {}, (), "111122223333", "us-east-1")
        document = recording_file.make_document(made, key)
        assert "0.1" not in recording_file.to_text(document)
        read = recording.parse(json.loads(recording_file.to_text(document)))
        assert isinstance(read, Recording)
        return parse(read.describe, {}, key=b"another").fingerprint

    one, other = fingerprint(b"key", lr="0.1"), fingerprint(b"key", lr="0.2")
    raw = parse(training_answer(HyperParameters={"lr": "0.1"}), {}, key=b"key")
    assert one == raw.fingerprint != other
    assert fingerprint(None, lr="0.1") is None


def test_a_set_shares_its_moment_and_prices() -> None:
    """They stand once in the file, and each training job has them."""
    first_child = live(recorded.recorded_job("profiled-053").recording, AS_OF)
    prices = ListedPrices("us-east-1", Component.TRAINING, None, "throttled")
    assert first_child.read_context is not None
    first_child = replace(
        first_child, read_context=replace(first_child.read_context, prices=prices)
    )
    document = recording_file.make_document(RecordedSet((first_child, first_child), None))
    assert (document["as_of"], len(document["children"])) == ("2026-11-22T09:30:00Z", 2)
    assert not [child for child in document["children"] if {"as_of", "prices"} & child.keys()]
    again = recording.parse(document)
    assert isinstance(again, RecordedSet)
    assert [child.read_context for child in again.children] == [
        first_child.read_context,
        first_child.read_context,
    ]


def test_the_text_is_for_people_too() -> None:
    """One key a line, the values of a series on one line."""
    text = recording_file.to_text(
        recording_file.make_document(live(recorded.recorded_job("profiled-053").recording))
    )
    lines = text.splitlines()
    assert sum('"values": [' in line for line in lines) == text.count('"values"') > 1
    assert max(len(line) for line in lines if '"values"' not in line) < 160


PRICED = {"component": "Training", "region": "eu-west-1", "read_at": "2026-01-01"}
RATE = "prices.rates.ml.m5.large"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": 2}, "schema is not 1: use a newer sageaudit to read this file"),
        ({"as_of": "yesterday"}, "as_of is not a time"),
        ({"as_of": "2026-01-01", "notes": "a"}, "notes is not a list of sentences"),
        ({"as_of": "2026-01-01", "prices": {"component": "Cluster"}}, "prices.component"),
        ({"as_of": "2026-01-01", "prices": []}, "prices is not an object"),
        *(
            ({"as_of": "2026-01-01", "prices": PRICED | {"rates": {"ml.m5.large": rate}}}, RATE)
            for rate in ({"usd": "-1"}, {"usd": "NaN"}, {"usd": "1", "effective": "May"}, {})
        ),
    ],
)
def test_a_damaged_recording_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """It names the file and the key."""
    document = (
        recording_file.make_document(recorded.recorded_job("profiled-053").recording) | changes
    )
    path = tmp_path / "job.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BadRecording) as refused:
        recording.read(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_set_of_no_training_jobs_needs_its_tuning_job() -> None:
    """A search that launched nothing is recorded so; a file without both is not one."""
    tuning = recorded.recorded_job("tuning-013").recording
    empty = RecordedSet((), replace(tuning, read_context=READ))
    assert audit(written(empty)) == audit(empty)
    with pytest.raises(MalformedData, match="children is empty"):
        recording.parse({"schema": 1, "children": []})


def test_a_file_is_for_its_owner_only_and_whole(tmp_path: Path) -> None:
    """Whatever the umask; nothing else is left in the folder."""
    before = os.umask(0)
    try:
        recording_file.write(tmp_path / "job.json", "{}", replace=False)
        recording_file.write(tmp_path / "job.json", "[]", replace=True)
    finally:
        os.umask(before)
    [path] = tmp_path.iterdir()
    assert (path.read_text(encoding="utf-8"), stat.S_IMODE(path.stat().st_mode)) == ("[]", 0o600)


@pytest.mark.parametrize("link", [False, True])
def test_another_file_or_link_is_not_replaced_unasked(tmp_path: Path, *, link: bool) -> None:
    """Not through a link either, even one that leads nowhere."""
    path, other = tmp_path / "job.json", tmp_path / "other"
    if link:
        path.symlink_to(other)
    else:
        path.write_text("mine", encoding="utf-8")
    with pytest.raises(BadUsage, match="--force"):
        recording_file.write(path, "{}", replace=False)
    assert (path.is_symlink(), other.exists()) == (link, False)


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    """A pipe, or root's /dev/null, stays one."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadUsage, match="is not a file"):
        recording_file.write(tmp_path / "pipe", "{}", replace=True)
    assert (tmp_path / "pipe").is_fifo()


def test_a_full_disk_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence says why."""
    path = tmp_path / "job.json"
    path.write_text("old", encoding="utf-8")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(BadUsage, match="No space left"):
        recording_file.write(path, "new", replace=True)
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["old"]
