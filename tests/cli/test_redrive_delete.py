"""`sageaudit redrive --delete` over queues as moto plays them."""

from __future__ import annotations

import base64
import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from sageaudit.adapters.aws import dead_letters as queue_module
from sageaudit.cli.support.redrive import deleting
from sageaudit.cli.support.scan.interruption import Interruption
from tests.fakes.aws_calls import aws_calls
from tests.fakes.command_line import Result, Run
from tests.fakes.dead_letters import REGION, Stack, event, failed_batch, notice
from tests.fakes.schemas import wrong

STREAM = (
    f"arn:aws:dynamodb:{REGION}:123456789012:table/SageAudit-History/stream/2026-11-20T00:00:00.000"
)
BATCH = failed_batch(
    STREAM,
    "shardId-00000001779282000000-0a1b2c3d",
    "100000000000000000001",
    "100000000000000000003",
)


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stack]:
    """With both channels; the current folder is empty, and an empty queue answers at once."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setattr(queue_module, "LONG_POLL_S", 0)
    monkeypatch.chdir(tmp_path)
    with mock_aws(), aws_calls() as made:
        yield Stack(made)


@pytest.fixture
def delete(run: Run) -> Callable[..., Result]:
    """The command in the stack's region, which deletes."""

    def call(*words: str) -> Result:
        return run("redrive", *words, "--delete", "--region", REGION)

    return call


def kept(path: Path | None = None) -> list[dict[str, Any]]:
    """The lines of the file, by default of the only one in the current folder."""
    if path is None:
        [path] = Path().iterdir()
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def test_what_was_refused_for_good_is_kept_and_deleted(
    stack: Stack, delete: Callable[..., Result]
) -> None:
    """All else stays, and nothing is sent."""
    stack.put("finished", event("forged"), reason="wrong_account", why="of 999999999999")
    stack.put("finished", "{}", reason="gave_up", why="x")
    stack.put("finished", event("good"), reason="gave_up", why="throttled")
    done = delete("finished", "--yes")
    assert done.exit_code == 0, done.stderr
    assert "deleted 2 letters, 1 stay" in done.stderr
    assert stack.bodies("FinishedJobsDeadLettersUrl") == [event("good")]
    assert not stack.calls.of("sqs:SendMessageBatch")
    assert {line["body"] for line in kept()} == {event("forged"), "{}"}


def test_a_letter_is_kept_whole_and_for_its_owner_only(
    stack: Stack, delete: Callable[..., Result], tmp_path: Path
) -> None:
    """Body, attributes with types and bytes, times: enough to send it again with the AWS CLI."""
    body = "\u202e not json \U0001f469"
    stack.put("notices", body, reason="malformed_notice", why=b"\x00\xff")
    path = tmp_path / "kept.jsonl"
    done = delete("notices", "--yes", "--keep", str(path))
    assert f"what was deleted is kept in {path}" in done.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    [line] = kept(path)
    assert (line["schema"], line["body"], line["reason"]) == (1, body, "malformed_notice")
    assert line["queue_url"] == stack.outputs["NoticesDeadLettersUrl"]
    assert line["message_id"]
    assert line["message_attributes"] == {
        "reason": {"DataType": "String", "StringValue": "malformed_notice"},
        "why": {"DataType": "Binary", "BinaryValue": base64.b64encode(b"\x00\xff").decode()},
    }
    assert int(line["system_attributes"]["SentTimestamp"]) > 0


def test_the_default_file_names_queue_and_time(stack: Stack, delete: Callable[..., Result]) -> None:
    """In UTC, in the current folder; what another queue is called becomes no path."""
    stack.put("finished", "{}")
    delete("finished", "--yes")
    [path] = Path().iterdir()
    assert path.match("sageaudit-dead-letters-SageAudit-finished-dead-20??????T??????Z.jsonl")
    now = datetime(2026, 11, 22, 13, tzinfo=UTC)
    assert str(deleting.default_file("../x" + "y" * 99, now)).count("/") == 0


def test_a_reason_deletes_all_of_that_reason_and_warns(
    stack: Stack, delete: Callable[..., Result]
) -> None:
    """The others are counted, and stay; --all changes nothing then."""
    for reason in ("unknown_outcome", "unknown_outcome", "gave_up", "malformed_notice"):
        stack.put("notices", notice(), reason=reason, why="x")
    done = delete("notices", "--reason", "unknown_outcome", "--all", "--yes")
    assert "2 of 2 letters may still succeed if sent again." in done.stdout
    assert "deleted 2 letters" in done.stderr
    assert "2 letters of other reasons: left alone" in done.stderr
    assert stack.left("notices") == 2
    assert len(kept()) == 2


def test_a_limit_deletes_the_oldest(stack: Stack, delete: Callable[..., Result]) -> None:
    """By their first send."""
    for day in (3, 1, 2):
        first = str(int(datetime(2026, 11, day, tzinfo=UTC).timestamp() * 1000))
        stack.put("finished", f'{{"day": {day}}}', first_sent=first)
    assert "deleted 2 letters, 1 stay" in delete("finished", "--limit", "2", "--yes").stderr
    assert stack.bodies("FinishedJobsDeadLettersUrl") == ['{"day": 3}']


@pytest.mark.parametrize("kind", ["finished", "undecided", "notices"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_what_it_prints_is_valid_and_a_dry_run_deletes_nothing(
    stack: Stack, delete: Callable[..., Result], kind: str, *, dry_run: bool
) -> None:
    """Nor does it need an answer, make a file or hide a letter afterwards."""
    for number in range(12):
        stack.put(kind, f"[{number}]", reason="r", why="w")
    done = delete(kind, "--output", "json", "--dry-run" if dry_run else "--yes")
    printed = json.loads(done.stdout)
    assert wrong("redrive", printed) == []
    fate = "deletes" if dry_run else "deleted"
    assert (printed["deleting"], printed["counts"][fate]) == (True, 12)
    assert {letter["fate"] for letter in printed["letters"]} == {fate}
    assert stack.left(kind) == (12 if dry_run else 0)
    assert [str(path) for path in Path().iterdir()] == ([] if dry_run else [printed["kept_in"]])
    said = "--dry-run: 12 letters would be deleted, 0 would stay" if dry_run else "deleted 12"
    assert said in done.stderr


def test_a_list_fits_a_terminal(stack: Stack, delete: Callable[..., Result]) -> None:
    """80 columns, with the word for what becomes of each."""
    stack.put("finished", event("job-" + "x" * 59), reason="wrong_account", why="of 999" * 30)
    stack.put("finished", event("good"), reason="gave_up", why="throttled")
    lines = delete("finished", "--dry-run").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("wrong_account    delete of 999" in line for line in lines)
    assert any("stays  can still succeed" in line for line in lines)


def test_without_a_terminal_it_needs_yes(stack: Stack, delete: Callable[..., Result]) -> None:
    """Exit 2, before anything is asked."""
    stack.put("finished", "{}")
    stack.calls.made.clear()
    done = delete("finished")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot ask without a terminal: give --yes" in done.stderr
    assert not stack.calls.made


@pytest.mark.parametrize("answer", ["y\n", "n\n", ""])
@pytest.mark.parametrize("output", ["table", "json"])
def test_a_person_is_asked(
    stack: Stack,
    delete: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    output: str,
) -> None:
    """Who does not say yes deletes nothing, and no file is made."""
    stack.put("notices", notice(), reason="unknown_outcome", why="x")
    monkeypatch.setattr("sageaudit.cli.commands.redrive.may_ask", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    done = delete("notices", "--reason", "unknown_outcome", "--output", output)
    assert "Delete 1 letter for ever?" in done.stderr
    assert "1 of 1 letter may still succeed" in done.stdout + done.stderr
    yes = answer == "y\n"
    assert done.exit_code == (0 if yes else 130)
    assert ("nothing was deleted" in done.stderr) is not yes
    assert stack.left("notices") == (not yes)
    assert len(list(Path().iterdir())) == yes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--delete", "--all", "--yes"), "leave out --all, or name a --reason"),
        (("--delete", "--all", "--dry-run"), "leave out --all, or name a --reason"),
        (("--keep", "x"), "--keep names the file for what --delete deletes"),
        (("--delete", "--yes", "--to", "x"), "leave out --to"),
        (("--delete", "--yes", "--keep", "there"), "there exists already"),
        (("--delete", "--yes", "--keep", "no/x"), "its folder does not exist"),
        (("--delete", "--yes", "--keep", "."), "is a directory"),
    ],
)
def test_wrong_words_delete_nothing(
    stack: Stack, run: Run, words: tuple[str, ...], said: str
) -> None:
    """Exit 2, and no letter is received."""
    stack.put("finished", "{}")
    Path("there").write_text("mine", encoding="utf-8")
    stack.calls.made.clear()
    done = run("redrive", "finished", *words, "--region", REGION)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert not stack.calls.of("sqs:ReceiveMessage")
    assert Path("there").read_text(encoding="utf-8") == "mine"


def test_a_queue_that_is_named_needs_no_other(stack: Stack, run: Run) -> None:
    """Nothing is sent, so there is no --to."""
    stack.put("notices", "{}")
    url = stack.outputs["NoticesDeadLettersUrl"]
    assert (
        "deleted 1 letter" in run("redrive", "notices", "--delete", "--yes", "--from", url).stderr
    )
    assert stack.left("notices") == 0


@pytest.mark.parametrize("failing", ["open", "write", "fsync"])
def test_what_cannot_be_kept_is_not_deleted(
    stack: Stack, delete: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """A full disk, say: one sentence, and the letters can be received at once."""
    for number in range(3):
        stack.put("finished", f"[{number}]")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        done = delete("finished", "--yes")
    assert done.exit_code == 2
    assert "No space left on device" in done.stderr
    assert "deleted 0 letters, 3 failed" in done.stderr
    assert stack.left("finished") == 3
    assert not stack.calls.of("sqs:DeleteMessageBatch")
    assert [path.read_bytes() for path in Path().iterdir()] in ([], [b""])


def test_a_letter_that_sqs_does_not_delete_is_said(
    stack: Stack, delete: Callable[..., Result]
) -> None:
    """The others are deleted; exit 1."""
    for number in range(3):
        stack.put("finished", f"[{number}]")
    refused = {"Failed": [{"Id": "1", "Code": "InternalError", "SenderFault": False}]}
    stack.calls.answer("sqs:DeleteMessageBatch", lambda *_: refused)
    done = delete("finished", "--yes")
    assert done.exit_code == 1
    assert "deleted 2 letters, 1 failed" in done.stderr
    assert "SQS did not delete it: run the command again" in done.stderr


def test_when_aws_fails_midway_it_says_what_was_deleted(
    stack: Stack, delete: Callable[..., Result]
) -> None:
    """The file has at least what was deleted; the rest can be received at once."""
    for number in range(25):
        stack.put("finished", f"[{number}]")
    stack.calls.refuse(
        "sqs:DeleteMessageBatch",
        "AccessDeniedException",
        when=lambda _: len(stack.calls.of("sqs:DeleteMessageBatch")) > 1,
    )
    done = delete("finished", "--yes")
    assert done.exit_code == 4
    assert "deleted 10 letters, 5 stay, 10 failed" in done.stderr
    left = stack.bodies("FinishedJobsDeadLettersUrl")
    assert len(left) == 15
    assert {line["body"] for line in kept()} | {*left} == {f"[{number}]" for number in range(25)}


def test_ctrl_c_midway_says_what_was_deleted(
    stack: Stack, delete: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 130; the batch that runs ends first."""
    for number in range(25):
        stack.put("finished", f"[{number}]")
    monkeypatch.setattr(
        Interruption, "wished", property(lambda _: bool(stack.calls.of("sqs:DeleteMessageBatch")))
    )
    done = delete("finished", "--yes")
    assert done.exit_code == 130
    assert "interrupted: deleted 10 letters, 15 stay" in done.stderr
    assert stack.left("finished") == 15
    assert len(kept()) == 10


def test_a_process_that_dies_before_it_deletes_loses_nothing(
    stack: Stack, delete: Callable[..., Result]
) -> None:
    """The letter is in the file already, and still in the queue."""

    class Killed(BaseException):
        pass

    def die(*_: Any) -> Mapping[str, Any]:
        raise Killed

    stack.put("finished", "{}")
    stack.calls.answer("sqs:DeleteMessageBatch", die)
    with pytest.raises(Killed):
        delete("finished", "--yes")
    stack.calls.answers.pop("sqs:DeleteMessageBatch")
    assert stack.left("finished") == len(kept()) == 1


def test_a_position_is_deleted_once_the_stream_has_left_it(
    stack: Stack, delete: Callable[..., Result]
) -> None:
    """Before that, it can be sent again; its reason deletes it at any time."""
    stack.put("undecided", BATCH)
    stack.calls.answer("dynamodbstreams:GetShardIterator", lambda *_: {"ShardIterator": "first"})
    last = {"eventName": "REMOVE", "dynamodb": {"SequenceNumber": "100000000000000000003"}}
    stack.calls.answer("dynamodbstreams:GetRecords", lambda *_: {"Records": [last]})
    assert "0 letters would be deleted, 1 would stay" in delete("undecided", "--dry-run").stderr
    named = delete("undecided", "--dry-run", "--reason", "stream_gave_up")
    assert "1 letter would be deleted" in named.stderr
    assert "1 of 1 letter may still succeed" in named.stdout
    stack.calls.refuse("dynamodbstreams:GetShardIterator", "TrimmedDataAccessException")
    assert "deleted 1 letter" in delete("undecided", "--yes").stderr
    assert [line["body"] for line in kept()] == [BATCH]
