"""What a scan keeps on the machine of a person: private, and never a reason to fail."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sageaudit.adapters.aws.pace import ScanStopped
from sageaudit.adapters.files.local_files import fingerprint_key
from sageaudit.cli.interruption import Interruption


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a user's data."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    fingerprint_key.cache_clear()
    yield tmp_path
    fingerprint_key.cache_clear()


def test_the_key_of_fingerprints_is_made_once_and_private(home: Path) -> None:
    """The same for every scan of this user."""
    key = fingerprint_key()
    assert key is not None
    assert len(key) == 32
    fingerprint_key.cache_clear()
    assert fingerprint_key() == key
    [file] = home.rglob("fingerprint.key")
    assert file.stat().st_mode & 0o077 == 0


def test_a_key_that_is_cut_off_is_not_used(home: Path) -> None:
    """Runs are then audited without a fingerprint."""
    fingerprint_key()
    [file] = home.rglob("fingerprint.key")
    file.write_bytes(b"short")
    fingerprint_key.cache_clear()
    assert fingerprint_key() is None


def test_a_home_that_cannot_be_written_leaves_no_key(home: Path) -> None:
    """Such as one that is a file."""
    (home / "sageaudit").write_text("a file")
    assert fingerprint_key() is None


def test_the_first_interruption_is_a_wish_and_the_second_ends_at_once() -> None:
    """What waits then stops; afterwards Ctrl-C is what it was."""
    said: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with Interruption(said.append) as interruption:
        interruption.sleep(0)
        wished = [interruption.is_requested]
        signal.raise_signal(signal.SIGINT)
        wished.append(interruption.is_requested)
        assert (wished, len(said)) == ([False, True], 1)
        with pytest.raises(ScanStopped):
            interruption.sleep(60)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_question_is_ended_by_the_first_interruption() -> None:
    """Nobody has to answer it first."""
    with Interruption(lambda _: None) as interruption:
        with pytest.raises(KeyboardInterrupt), interruption.during_question():
            signal.raise_signal(signal.SIGINT)
        assert not interruption.is_requested
