"""`sageaudit redrive` over queues as moto plays them."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from sageaudit.adapters.aws import dead_letters as queue_module
from sageaudit.adapters.aws.dead_letters import DeadLetterQueue, Received
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.cli.support.doctor import permissions
from sageaudit.cli.support.redrive import redriving
from sageaudit.cli.support.redrive.dead_letters import HOPELESS, Kind, read_letter
from sageaudit.cli.support.scan import view as scan_view
from sageaudit.cli.support.scan.interruption import Interruption
from tests.fakes.aws_calls import AwsCalls, aws_calls
from tests.fakes.command_line import Result, Run
from tests.fakes.dead_letters import (
    DEAD,
    REGION,
    Stack,
    arn,
    decision,
    event,
    failed_batch,
    notice,
)
from tests.fakes.schemas import wrong

WORK = {
    "finished": "FinishedJobsQueueUrl",
    "undecided": "DecisionsQueueUrl",
    "notices": "NoticesQueueUrlSlack",
}
BODIES: Mapping[str, Callable[..., str]] = {
    "finished": event,
    "undecided": decision,
    "notices": notice,
}
NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsCalls]:
    """An account; an empty queue answers at once."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setattr(queue_module, "LONG_POLL_S", 0)
    with mock_aws(), aws_calls() as made:
        yield made


@pytest.fixture
def stack(calls: AwsCalls) -> Stack:
    """With both channels."""
    return Stack(calls)


@pytest.fixture
def redrive(run: Run) -> Callable[..., Result]:
    """The command in the stack's region."""

    def call(*words: str) -> Result:
        return run("redrive", *words, "--region", REGION)

    return call


def ms(moment: datetime) -> str:
    """As the attribute `first-sent` has it."""
    return str(int(moment.timestamp() * 1000))


@pytest.mark.parametrize("kind", list(WORK))
def test_a_letter_is_sent_anew_and_then_deleted(
    stack: Stack, redrive: Callable[..., Result], kind: str
) -> None:
    """The body is the same, byte for byte; no counter, no age and no reason goes along."""
    body = BODIES[kind]() + " "
    stack.put(
        kind, body, reason="gave_up", why="x", first_sent=ms(NOW), waited_tags="3", attempt="9"
    )
    done = redrive(kind)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "sageaudit: moved 1 letter"
    [sent] = stack.waiting(WORK[kind])
    assert sent["Body"] == body
    assert "MessageAttributes" not in sent
    assert stack.left(kind) == 0


@pytest.mark.parametrize("kind", list(WORK))
def test_a_dry_run_moves_nothing_and_hides_nothing(
    stack: Stack, redrive: Callable[..., Result], kind: str
) -> None:
    """25 letters are shown once each, and all of them can be received at once afterwards."""
    for number in range(25):
        stack.put(kind, BODIES[kind](f"job-{number:02d}"), reason="gave_up", why="throttled")
    done = redrive(kind, "--dry-run")
    assert done.exit_code == 0
    assert (
        done.stderr.splitlines()[-1] == "sageaudit: --dry-run: 25 letters would move, 0 would stay"
    )
    assert all(done.stdout.count(f"job-{number:02d} ") == 1 for number in range(25))
    assert stack.left(kind) == 25
    assert stack.waiting(WORK[kind]) == []


def test_many_letters_are_moved_once_each(stack: Stack, redrive: Callable[..., Result]) -> None:
    """In requests of ten."""
    for number in range(57):
        stack.put("notices", notice(f"job-{number}", "sns" if number % 3 else "slack"))
    assert redrive("notices").exit_code == 0
    sent = stack.bodies("NoticesQueueUrlSns") + stack.bodies("NoticesQueueUrlSlack")
    assert len(sent) == len({*sent}) == 57
    assert {json.loads(one)["channel"] for one in stack.bodies("NoticesQueueUrlSns")} == {"sns"}
    assert {json.loads(one)["channel"] for one in stack.bodies("NoticesQueueUrlSlack")} == {"slack"}
    assert stack.left("notices") == 0
    assert len(stack.calls.of("sqs:SendMessageBatch")) <= 7


def test_letters_are_shown_by_reason_with_counts_and_times(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """The most first; first and last time of the first send; the time left of 14 days."""
    for days in (9, 2, 5):
        sent = ms(datetime(2026, 11, 20, 10, tzinfo=UTC) - timedelta(days=days))
        stack.put("finished", event(), reason="gave_up", why="Describe throttled", first_sent=sent)
    stack.put("finished", event("other"), reason="channel", why="y")
    lines = redrive("finished", "--dry-run").stdout.splitlines()
    assert lines[0] == "4 dead letters: jobs that were not audited, us-east-1"
    assert lines[2].split()[:6] == ["3", "gave_up", "2026-11-11", "10:00", "2026-11-18", "10:00"]
    assert lines[2].split()[6:9] == ["13", "d", "23"]
    assert lines[3].split()[:2] == ["1", "channel"]
    assert "gave_up: Describe throttled" in lines


def test_how_many_posts_moving_makes_is_shown_before(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """By channel; a notice that is there twice is posted once."""
    for name in ("a", "b", "b", "b"):
        stack.put("notices", notice(name))
    stack.put("notices", notice("a", "sns"))
    done = redrive("notices", "--dry-run")
    assert "This posts at most 3 messages: 2 on slack, 1 on sns." in done.stdout
    printed = json.loads(redrive("notices", "--dry-run", "--output", "json").stdout)
    assert printed["posts_at_most"] == {"slack": 2, "sns": 1}


@pytest.mark.parametrize("answer", ["y\n", "n\n", ""])
def test_a_person_is_asked_and_sees_the_posts_first(
    stack: Stack,
    redrive: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
) -> None:
    """Who does not say yes moves nothing, and the letters can be received at once."""
    stack.put("notices", notice())
    monkeypatch.setattr("sageaudit.cli.commands.redrive.may_ask", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    done = redrive("notices")
    assert "Send 1 letter again?" in done.stderr
    yes = answer == "y\n"
    assert done.exit_code == (0 if yes else 130)
    assert ("nothing was moved" in done.stderr) is not yes
    assert len(stack.waiting("NoticesQueueUrlSlack")) == yes
    assert stack.left("notices") == (not yes)


def test_yes_and_a_script_are_not_asked(
    stack: Stack, redrive: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script has nobody to answer."""
    assert scan_view.may_ask() is False
    stack.put("notices", notice())
    assert redrive("notices").exit_code == 0
    monkeypatch.setattr("sageaudit.cli.commands.redrive.may_ask", lambda: True)
    stack.put("notices", notice())
    assert redrive("notices", "--yes").exit_code == 0
    assert len(stack.waiting("NoticesQueueUrlSlack")) == 2


@pytest.mark.parametrize("reason", sorted(HOPELESS))
def test_what_was_refused_stays_unless_all_is_given(
    stack: Stack, redrive: Callable[..., Result], reason: str
) -> None:
    """Sent again, it would be refused again."""
    stack.put("finished", event(), reason=reason, why="no")
    assert "moved 0 letters, 1 stay" in redrive("finished").stderr
    assert stack.left("finished") == 1
    assert "moved 1 letter" in redrive("finished", "--all").stderr
    assert len(stack.waiting("FinishedJobsQueueUrl")) == 1


NONSENSE = ("{}", "null", "[]", "not json", "[" * 2_000, '"' + "x" * 100_000 + '"', "\ufffd", "7")


@pytest.mark.parametrize("body", NONSENSE, ids=range(len(NONSENSE)))
@pytest.mark.parametrize("kind", list(WORK))
def test_nonsense_stays_whatever_its_reason_says(
    stack: Stack, redrive: Callable[..., Result], kind: str, body: str
) -> None:
    """--all sends it on, where its queue is known: a notice that names no channel stays."""
    stack.put(kind, body, reason="gave_up", why="it says")
    done = redrive(kind, "--output", "json")
    [letter] = json.loads(done.stdout)["letters"]
    assert (done.exit_code, letter["fate"], letter["job"]) == (0, "stays", None)
    assert letter["refusal"]
    assert wrong("redrive", json.loads(done.stdout)) == []
    moved = json.loads(redrive(kind, "--all", "--output", "json").stdout)["counts"]["moved"]
    assert moved == (kind != "notices")
    assert stack.left(kind) == (kind == "notices")


def test_only_letters_of_the_reason_that_is_asked_for(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """The others are counted, and stay."""
    for reason in ("a", "b", "b", "malformed"):
        stack.put("finished", event(), reason=reason, why="x")
    done = redrive("finished", "--reason", "b")
    assert "moved 2 letters" in done.stderr
    assert "2 letters of other reasons: left alone" in done.stderr
    assert stack.left("finished") == 2
    done = redrive("finished", "--reason", "nobody")
    assert (done.exit_code, done.stdout.splitlines()[0][:14]) == (0, "0 dead letters")
    assert "2 letters of other reasons" in done.stderr


def test_a_limit_moves_the_oldest(stack: Stack, redrive: Callable[..., Result]) -> None:
    """Letters that stay anyway do not count."""
    for day in (3, 1, 2):
        first = ms(datetime(2026, 11, day, tzinfo=UTC))
        stack.put("finished", event(f"day-{day}"), reason="gave_up", why="x", first_sent=first)
    stack.put("finished", "{}", first_sent=ms(datetime(2026, 10, 1, tzinfo=UTC)))
    assert "moved 2 letters, 2 stay" in redrive("finished", "--limit", "2").stderr
    assert stack.bodies("FinishedJobsQueueUrl") == [event("day-1"), event("day-2")]


def test_a_channel_that_is_not_set_up_keeps_its_notices(
    calls: AwsCalls, redrive: Callable[..., Result]
) -> None:
    """And says so; --all has no queue for them either."""
    stack = Stack(calls, without=("NoticesQueueUrlSlack",))
    stack.put("notices", notice("a", "sns"), reason="no_channel", why="x")
    stack.put("notices", notice("b", "slack"), reason="no_channel", why="x")
    for more in ((), ("--all",)):
        done = redrive("notices", "--dry-run", *more)
        assert "stays slack is not set up" in done.stdout
    assert "moved 1 letter, 1 stay" in redrive("notices").stderr
    assert stack.bodies("NoticesQueueUrlSns") == [notice("a", "sns")]
    assert stack.left("notices") == 1


def test_letters_of_eventbridge_and_of_sqs_say_why(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """EventBridge has attributes of its own; SQS gives no reason, but a count."""
    stack.put(
        "finished",
        event("from-eventbridge"),
        RULE_ARN="arn:aws:events:us-east-1:123456789012:rule/x",
        TARGET_ARN="arn:aws:sqs:us-east-1:123456789012:x",
        ERROR_CODE="NO_PERMISSIONS",
        ERROR_MESSAGE="No permissions to send",
        EXHAUSTED_RETRY_CONDITION="MaximumAge",
    )
    stack.put("finished", event("from-sqs"))
    found = json.loads(redrive("finished", "--output", "json").stdout)["letters"]
    said = {one["job"].rpartition("/")[2]: (one["reason"], one["why"]) for one in found}
    assert said == {
        "from-eventbridge": (
            "NO_PERMISSIONS",
            "EventBridge could not send: No permissions to send; its retries ended: MaximumAge",
        ),
        "from-sqs": ("no_reason", "received 1 time: the function never answered"),
    }
    assert len(stack.waiting("FinishedJobsQueueUrl")) == 2


def test_a_message_that_sqs_moved_names_its_queue_and_count() -> None:
    """SQS keeps SentTimestamp when it moves one: the days left count from the first send."""
    system = {
        "SentTimestamp": ms(NOW - timedelta(days=4)),
        "ApproximateReceiveCount": "121",
        "DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:SageAudit-finished",
    }
    message = Received("m", "r", event(), {}, system)
    letter = read_letter(message, Kind.FINISHED, timedelta(days=14), NOW)
    assert letter.why == "received 121 times from SageAudit-finished: the function never answered"
    assert letter.deleted_at - NOW == timedelta(days=10)
    assert letter.first_sent_at == NOW - timedelta(days=4)


def test_hostile_text_and_binary_attributes_are_one_harmless_line_each(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """Nothing that a terminal obeys, nothing wider than 80 columns."""
    evil = "\x9b31mred\u202e\u2028\n\tnext <!channel>" + "w" * 900
    safe = evil.replace("\x9b", "\u009b")
    stack.put("notices", notice(), reason=safe[:200], why=safe)
    stack.put(
        "notices", notice("名前" * 9), reason="\u202eabc", why="\U0001f469\u200d\U0001f4bb" * 90
    )
    stack.put("notices", event(), reason="r", why=b"\x00\xff" * 40)
    stack.put("notices", "\u202e" + safe, first_sent="9" * 38)
    for output in ("table", "json"):
        done = redrive("notices", "--dry-run", "--output", output)
        assert done.exit_code == 0, done.stderr
        shown = done.stdout.replace("\n", "")
        assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cf", "Zl"}]
    lines = redrive("notices", "--dry-run").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "(80 bytes of binary data)" in done.stdout


def test_a_body_of_256_kb_moves_whole(stack: Stack, redrive: Callable[..., Result]) -> None:
    """Alone in its request, beside small ones."""
    large = event("large", filler="x" * (262_144 - len(event("large", filler=""))))
    assert len(large) == 262_144
    for body in (event("a"), large, event("b"), large):
        stack.put("finished", body)
    assert "moved 4 letters" in redrive("finished").stderr
    assert stack.bodies("FinishedJobsQueueUrl") == sorted([event("a"), event("b"), large, large])
    assert len(stack.calls.of("sqs:SendMessageBatch")) == 4


def test_a_letter_that_comes_twice_is_one_letter_with_its_newest_handle(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """SQS may deliver a hidden message again; only the newest receipt handle surely deletes it."""
    answers = [["old"], ["new"], [], []]

    def receive(*_: Any) -> Mapping[str, Any]:
        handles = answers.pop(0) if answers else []
        message = {"MessageId": "one", "Body": event(), "Attributes": {}}
        return {"Messages": [{**message, "ReceiptHandle": handle} for handle in handles]}

    stack.calls.answer("sqs:ReceiveMessage", receive)
    stack.calls.answer("sqs:DeleteMessageBatch", lambda *_: {})
    assert "moved 1 letter\n" in redrive("finished").stderr
    [deleted] = stack.calls.of("sqs:DeleteMessageBatch")
    assert [one["ReceiptHandle"] for one in deleted.params["Entries"]] == ["new"]
    stack.calls.answers.pop("sqs:ReceiveMessage")
    assert len(stack.waiting("FinishedJobsQueueUrl")) == 1


def test_it_ends_when_only_known_letters_come(stack: Stack, redrive: Callable[..., Result]) -> None:
    """Also where SQS delivers a hidden message for ever, and where its count is wrong."""
    message = {"MessageId": "one", "ReceiptHandle": "h", "Body": event(), "Attributes": {}}
    stack.calls.answer("sqs:ReceiveMessage", lambda *_: {"Messages": [message]})
    assert "1 letter would move" in redrive("finished", "--dry-run").stderr
    stack.calls.answer("sqs:ReceiveMessage", lambda *_: {})
    stack.put("finished", event())
    assert "0 letters would move" in redrive("finished", "--dry-run").stderr


@pytest.mark.parametrize(
    ("operation", "moved", "twice"),
    [
        ("cloudformation:DescribeStacks", 0, 0),
        ("sqs:GetQueueAttributes", 0, 0),
        ("sqs:ReceiveMessage", 0, 0),
        ("sqs:SendMessageBatch", 0, 0),
        ("sqs:DeleteMessageBatch", 1, 1),
    ],
)
@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("AccessDeniedException", 4), ("RequestThrottled", 5), ("ExpiredToken", 4)],
)
def test_what_aws_refuses_is_said_and_no_letter_is_lost(
    stack: Stack,
    redrive: Callable[..., Result],
    operation: str,
    moved: int,
    twice: int,
    code: str,
    exit_code: int,
) -> None:
    """A letter that could not be deleted has a copy, which does no harm."""
    stack.put("finished", event())
    stack.calls.refuse(operation, code)
    done = redrive("finished", "--output", "json")
    assert done.exit_code == exit_code
    assert "Traceback" not in done.stderr
    stack.calls.answers.pop(operation)
    Stack.__post_init__(stack)
    assert stack.left("finished") == 1
    assert len(stack.waiting("FinishedJobsQueueUrl")) == moved
    if operation.endswith("Batch"):
        printed = json.loads(done.stdout)
        assert printed["error"]
        assert printed["counts"]["moved_but_not_deleted"] == twice
        assert wrong("redrive", printed) == []


def test_a_dry_run_says_when_letters_stay_hidden_no_longer_than_needed(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """Without sqs:ChangeMessageVisibility the list is shown all the same."""
    stack.put("finished", event())
    stack.calls.refuse("sqs:ChangeMessageVisibilityBatch", "AccessDeniedException")
    done = redrive("finished", "--dry-run")
    assert done.exit_code == 0
    assert "1 letter would move" in done.stderr
    assert "received again in 15 minutes" in done.stderr


def test_a_stack_that_is_not_there_is_not_found(
    calls: AwsCalls, redrive: Callable[..., Result]
) -> None:
    """The sentence says what to check; exit 3."""
    done = redrive("notices", "--stack", "Nobody")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "There is no stack Nobody in us-east-1" in done.stderr
    assert "--from and --to" in done.stderr


def test_another_stack_is_wrong_usage(calls: AwsCalls, redrive: Callable[..., Result]) -> None:
    """It has other outputs; exit 2."""
    calls.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": []}]})
    for kind, output in DEAD.items():
        done = redrive(kind)
        assert (done.exit_code, output in done.stderr) == (2, True)


def test_a_deleted_queue_is_not_found(stack: Stack, redrive: Callable[..., Result]) -> None:
    """Exit 3, both for the letters' queue and for the one they go to; the letters stay."""
    stack.put("finished", event())
    stack.sqs.delete_queue(QueueUrl=stack.outputs["FinishedJobsQueueUrl"])
    done = redrive("finished")
    assert (done.exit_code, "There is no queue SageAudit-finished:" in done.stderr) == (3, True)
    assert stack.left("finished") == 1
    stack.sqs.delete_queue(QueueUrl=stack.outputs["NoticesDeadLettersUrl"])
    assert redrive("notices").exit_code == 3


def test_no_region_is_wrong_usage(
    calls: AwsCalls, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2, before AWS is asked."""
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    done = run("redrive", "notices")
    assert (done.exit_code, "give --region" in done.stderr) == (2, True)
    assert not calls.made


def test_queues_can_be_named_in_two_regions(stack: Stack, run: Run) -> None:
    """Each is asked in the region of its URL, whatever the settings say."""
    there = Stack(stack.calls, "eu-west-1")
    stack.put("finished", event())
    source, target = stack.outputs["FinishedJobsDeadLettersUrl"], there.outputs["DecisionsQueueUrl"]
    done = run("redrive", "finished", "--from", source, "--to", target, "--region", "ap-south-1")
    assert "moved 1 letter" in done.stderr, done.stderr
    assert there.bodies("DecisionsQueueUrl") == [event()]
    assert stack.left("finished") == 0
    assert not stack.calls.of("cloudformation:DescribeStacks")


def test_named_queues_of_notices_name_their_channel(stack: Stack, run: Run) -> None:
    """A notice of a channel without a queue stays."""
    source, slack = stack.outputs["NoticesDeadLettersUrl"], stack.outputs["NoticesQueueUrlSlack"]
    stack.put("notices", notice("a", "slack"))
    stack.put("notices", notice("b", "sns"))
    done = run("redrive", "notices", "--from", source, "--to", f"slack={slack}")
    assert "moved 1 letter, 1 stay" in done.stderr
    assert stack.bodies("NoticesQueueUrlSlack") == [notice("a", "slack")]


URL = f"https://sqs.{REGION}.amazonaws.com/123456789012/x"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("finished", "--from", URL), "--from and --to belong together"),
        (("finished", "--to", URL), "--from and --to belong together"),
        (("finished", "--from", URL, "--to", URL), "the same queue"),
        (("finished", "--from", "x", "--to", URL), "--from x is not a queue's URL"),
        (("finished", "--from", URL, "--to", "x"), "--to x is not a queue's URL"),
        (("finished", "--from", URL, "--to", URL + "y", "--stack", "S"), "either --stack"),
        (("finished", "--from", URL, "--to", URL + "y", "--to", URL + "z"), "one --to"),
        (("notices", "--from", URL, "--to", URL + "y"), "--to sns=URL"),
        (("notices", "--from", URL, "--to", f"teams={URL}y"), "--to sns=URL"),
        (("finished", "--from", URL.replace(REGION, "xx-1"), "--to", URL), "xx-1 is not a region"),
        (("jobs",), "is not one of"),
        (("finished", "--limit", "0"), "--limit"),
        (("finished", "--reason", ""), "--reason"),
    ],
)
def test_wrong_words_are_wrong_usage(
    calls: AwsCalls, redrive: Callable[..., Result], words: tuple[str, ...], said: str
) -> None:
    """Exit 2, and nothing is asked."""
    done = redrive(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert not calls.made


def test_a_letter_that_sqs_refuses_to_send_stays(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """The others of its request move; exit 1."""
    for number in range(3):
        stack.put("finished", event(f"job-{number}"))

    def refuse_second(_: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"Failed": [{"Id": "1", "Code": "InternalError", "SenderFault": False}]}

    stack.calls.answer("sqs:SendMessageBatch", refuse_second)
    done = redrive("finished", "--output", "json")
    counts = json.loads(done.stdout)["counts"]
    assert (done.exit_code, counts["moved"], counts["failed"]) == (1, 2, 1)
    assert "failed (1): SQS refused it: InternalError" in done.stderr
    assert stack.left("finished") == 1


def test_a_letter_that_sqs_refuses_to_delete_is_said(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """It was sent: the second copy does no harm."""
    stack.put("finished", event())
    refused = {"Failed": [{"Id": "0", "Code": "ReceiptHandleIsInvalid", "SenderFault": True}]}
    stack.calls.answer("sqs:DeleteMessageBatch", lambda *_: refused)
    done = redrive("finished")
    assert "1 of them could not be deleted here" in done.stderr
    assert stack.left("finished") == len(stack.waiting("FinishedJobsQueueUrl")) == 1


def test_when_aws_fails_midway_it_says_what_was_moved(
    stack: Stack, redrive: Callable[..., Result]
) -> None:
    """The rest can be received at once, and another run moves it."""
    for number in range(25):
        stack.put("finished", event(f"job-{number:02d}"))
    stack.calls.refuse(
        "sqs:SendMessageBatch",
        "AccessDeniedException",
        when=lambda _: len(stack.calls.of("sqs:SendMessageBatch")) > 1,
    )
    done = redrive("finished")
    assert done.exit_code == 4
    assert "moved 10 letters, 5 stay, 10 failed" in done.stderr
    assert "sqs:SendMessage" in done.stderr
    assert stack.left("finished") == 15
    stack.calls.answers.pop("sqs:SendMessageBatch")
    assert "moved 15 letters" in redrive("finished").stderr
    assert len(stack.waiting("FinishedJobsQueueUrl")) == 25


def test_ctrl_c_midway_says_what_was_moved(
    stack: Stack, redrive: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 130; the batch that runs ends first, the rest can be received at once."""
    for number in range(25):
        stack.put("finished", event(f"job-{number:02d}"))
    monkeypatch.setattr(
        Interruption, "wished", property(lambda _: bool(stack.calls.of("sqs:SendMessageBatch")))
    )
    done = redrive("finished")
    assert done.exit_code == 130
    assert "interrupted: moved 10 letters, 15 stay" in done.stderr
    assert stack.left("finished") == 15
    assert len(stack.waiting("FinishedJobsQueueUrl")) == 10


def test_ctrl_c_while_reading_moves_nothing(
    stack: Stack, redrive: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 130, and all letters can be received at once."""
    for number in range(25):
        stack.put("finished", event(f"job-{number:02d}"))
    monkeypatch.setattr(
        Interruption, "wished", property(lambda _: bool(stack.calls.of("sqs:ReceiveMessage")))
    )
    done = redrive("finished")
    assert done.exit_code == 130
    assert "interrupted: moved 0 letters" in done.stderr
    assert stack.left("finished") == 25
    assert stack.waiting("FinishedJobsQueueUrl") == []


@pytest.mark.parametrize("step", ["sqs:SendMessageBatch", "sqs:DeleteMessageBatch"])
def test_a_process_that_dies_midway_loses_nothing(
    stack: Stack, redrive: Callable[..., Result], step: str
) -> None:
    """Between send and delete, a letter and its copy are there."""

    class Killed(BaseException):
        pass

    def die(*_: Any) -> Mapping[str, Any]:
        raise Killed

    stack.put("finished", event())
    stack.calls.answer(step, die)
    with pytest.raises(Killed):
        redrive("finished")
    stack.calls.answers.clear()
    assert stack.left("finished") == 1
    assert len(stack.waiting("FinishedJobsQueueUrl")) == (step == "sqs:DeleteMessageBatch")


class Clock:
    """Seconds that a test moves."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Goes(redriving.Watch):
    """Nobody stops it."""

    def stops(self, done: int, letters: int) -> bool:
        return False


def test_letters_that_were_hidden_too_long_are_hidden_again_or_left(stack: Stack) -> None:
    """One that meanwhile went to somebody else is not sent a second time."""
    clock = Clock()
    held = redriving.Held(
        DeadLetterQueue(stack.sqs, stack.outputs["FinishedJobsDeadLettersUrl"]),
        Kind.FINISHED,
        clock,
    )
    work = SqsQueue(stack.sqs, stack.outputs["FinishedJobsQueueUrl"])
    stack.put("finished", event("a"))
    stack.put("finished", event("b"))
    held.read(NOW, wished=lambda: False)
    plans = redriving.planned(
        held.letters.values(), {""}, redriving.Rules(None, None, False), lambda _: []
    )
    clock.now_s = redriving.HOLD_S - 1
    refused = {"Failed": [{"Id": "0", "Code": "MessageNotInflight", "SenderFault": True}]}
    stack.calls.answer("sqs:ChangeMessageVisibilityBatch", lambda *_: refused)
    assert redriving.move(plans, held, {"": work}, Goes()) is None
    assert [plan.fate for plan in plans] == [redriving.Fate.FAILED, redriving.Fate.MOVED]
    assert "run the command again" in plans[0].note


def test_letters_beyond_the_memory_are_for_the_next_run(
    stack: Stack, redrive: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so; the next run moves the rest."""
    monkeypatch.setattr(redriving, "MOST_BYTES", 1_000)
    for number in range(25):
        stack.put("finished", event(f"job-{number:02d}"))
    done = redrive("finished")
    assert "moved 10 letters" in done.stderr
    assert "there are more letters: run the same command again" in done.stderr
    assert stack.left("finished") == 15


STREAM = (
    f"arn:aws:dynamodb:{REGION}:123456789012:table/SageAudit-History/stream/2026-11-20T00:00:00.000"
)
SHARD = "shardId-00000001779282000000-0a1b2c3d"
FIRST, LAST, AFTER = ("100000000000000000001", "100000000000000000003", "100000000000000000009")


def change(number: str, sk: str, event_name: str = "INSERT") -> dict[str, Any]:
    """A record of the table's stream, as GetRecords answers it."""
    image = {"pk": {"S": f"JOB#{arn('a')}#1779282000000"}, "sk": {"S": sk}}
    written = datetime(2026, 11, 20, 12, tzinfo=UTC)
    return {
        "eventName": event_name,
        "dynamodb": {
            "SequenceNumber": number,
            "NewImage": image,
            "ApproximateCreationDateTime": written,
        },
    }


@pytest.fixture
def stream(stack: Stack) -> Stack:
    """A stream that still has the records, on two pages."""
    pages: list[dict[str, Any]] = [
        {"Records": [], "NextShardIterator": "second"},
        {
            "Records": [
                change(FIRST, "AUDIT#00001"),
                change("100000000000000000002", "HEAD"),
                change(LAST, "AUDIT#00002"),
                change(AFTER, "AUDIT#00003"),
            ],
            "NextShardIterator": "third",
        },
    ]
    stack.calls.answer("dynamodbstreams:GetShardIterator", lambda *_: {"ShardIterator": "first"})
    stack.calls.answer("dynamodbstreams:GetRecords", lambda *_: pages.pop(0))
    return stack


def test_a_position_in_the_stream_becomes_its_audits(
    stream: Stack, redrive: Callable[..., Result]
) -> None:
    """Lambda's own letters name places only; each new audit between them is decided about."""
    stream.put("undecided", failed_batch(STREAM, SHARD, FIRST, LAST))
    done = redrive("undecided", "--output", "json")
    [letter] = json.loads(done.stdout)["letters"]
    assert (done.exit_code, letter["reason"], letter["fate"]) == (0, "stream_gave_up", "moved")
    assert "notify failed 21 times (RetryAttemptsExhausted)" in letter["why"]
    bodies = [json.loads(body) for body in stream.bodies("DecisionsQueueUrl")]
    assert [body["sk"] for body in bodies] == ["AUDIT#00001", "AUDIT#00002"]
    assert {body["written_at"] for body in bodies} == {1795176000.0}
    assert stream.left("undecided") == 0
    asked = stream.calls.of("dynamodbstreams:GetShardIterator")[0].params
    assert asked["ShardIteratorType"] == "AT_SEQUENCE_NUMBER"
    assert asked["SequenceNumber"] == FIRST


@pytest.mark.parametrize(
    "code", ["TrimmedDataAccessException", "ResourceNotFoundException", "ExpiredIteratorException"]
)
def test_a_position_that_left_the_stream_stays_and_says_what_can_be_done(
    stream: Stack, redrive: Callable[..., Result], code: str
) -> None:
    """A stream keeps 24 hours."""
    stream.put("undecided", failed_batch(STREAM, SHARD, FIRST, LAST))
    stream.put("undecided", decision())
    stream.calls.refuse("dynamodbstreams:GetShardIterator", code)
    done = redrive("undecided", "--all", "--output", "json")
    assert done.exit_code == 0
    letters = json.loads(done.stdout)["letters"]
    assert sorted(letter["fate"] for letter in letters) == ["moved", "stays"]
    [note] = [letter["note"] for letter in letters if letter["note"]]
    assert "24 h" in note
    assert "sageaudit history --table SageAudit-History" in note
    assert stream.left("undecided") == 1


def test_a_stream_that_answers_only_empty_pages_leaves_the_letter(
    stream: Stack, redrive: Callable[..., Result]
) -> None:
    """Its records may stand on a later page: the command can be repeated."""
    stream.put("undecided", failed_batch(STREAM, SHARD, FIRST, LAST))
    empty = {"Records": [], "NextShardIterator": "next"}
    stream.calls.answer("dynamodbstreams:GetRecords", lambda *_: empty)
    done = redrive("undecided")
    assert (done.exit_code, "try again later" in done.stderr) == (5, True)
    assert not stream.bodies("DecisionsQueueUrl")
    assert stream.left("undecided") == 1


@pytest.mark.parametrize("records", [[], [change(FIRST, "AUDIT#00001")]])
def test_a_shard_that_ends_before_the_last_record_leaves_the_letter(
    stream: Stack, redrive: Callable[..., Result], records: list[dict[str, Any]]
) -> None:
    """What it no longer has cannot be decided about."""
    stream.put("undecided", failed_batch(STREAM, SHARD, FIRST, LAST))
    stream.calls.answer("dynamodbstreams:GetRecords", lambda *_: {"Records": records})
    [letter] = json.loads(redrive("undecided", "--output", "json").stdout)["letters"]
    assert letter["fate"] == "stays"
    assert "the stream no longer has them" in letter["note"]
    assert stream.left("undecided") == 1


@pytest.mark.parametrize(
    ("letter", "said"),
    [
        (failed_batch(STREAM.replace("History", "Other"), SHARD, FIRST, LAST), "another table"),
        (failed_batch(STREAM.replace(REGION, "eu-west-1"), SHARD, FIRST, LAST), "another region"),
        (failed_batch("arn:aws:s3:::x", SHARD, FIRST, LAST), "streamArn"),
        (failed_batch(STREAM, "x", FIRST, LAST), "shardId"),
        (failed_batch(STREAM, SHARD, "one", LAST), "startSequenceNumber"),
        (failed_batch(STREAM, SHARD, FIRST, ""), "endSequenceNumber"),
        (json.dumps({"DDBStreamBatchInfo": []}), "pk"),
        (json.dumps({"DDBStreamBatchInfo": {}, "requestContext": 7}), "streamArn"),
    ],
)
def test_a_forged_position_is_not_read(
    stream: Stack, redrive: Callable[..., Result], letter: str, said: str
) -> None:
    """Only this stack's stream is."""
    stream.put("undecided", letter)
    [shown] = json.loads(redrive("undecided", "--output", "json").stdout)["letters"]
    assert shown["fate"] == "stays"
    assert said in f"{shown['note']} {shown['refusal']}"
    assert not stream.calls.of("dynamodbstreams:GetShardIterator")


def test_a_stream_that_refuses_ends_the_command(
    stream: Stack, redrive: Callable[..., Result]
) -> None:
    """Exit 4, and the letters can be received at once."""
    stream.put("undecided", failed_batch(STREAM, SHARD, FIRST, LAST))
    stream.calls.refuse("dynamodbstreams:GetRecords", "AccessDeniedException")
    done = redrive("undecided")
    assert (done.exit_code, "dynamodb:GetRecords" in done.stderr) == (4, True)
    assert stream.left("undecided") == 1


def test_it_calls_what_it_declares(stream: Stack, redrive: Callable[..., Result]) -> None:
    """IAM knows no action for a batch: it is that of one message."""
    stream.put("undecided", failed_batch(STREAM, SHARD, FIRST, LAST))
    stream.put("undecided", "{}")
    stream.calls.made.clear()
    redrive("undecided")
    called = {
        call.name.removesuffix("Batch").replace("dynamodbstreams:", "dynamodb:")
        for call in stream.calls.made
    }
    assert called == permissions.CHANGING["redrive"].actions(())


@pytest.mark.parametrize("kind", list(WORK))
def test_what_it_prints_is_valid(stack: Stack, redrive: Callable[..., Result], kind: str) -> None:
    """By its JSON Schema, empty or not."""
    for _ in range(2):
        printed = json.loads(redrive(kind, "--dry-run", "--output", "json").stdout)
        assert wrong("redrive", printed) == []
        assert wrong("redrive", {k: v for k, v in printed.items() if k != "schema"})
        stack.put(kind, BODIES[kind](), reason="r", why="w")
        stack.put(kind, "x")


TEXT = st.text(max_size=40)


@given(
    body=st.one_of(TEXT, st.sampled_from([event(), notice(), decision(), "{}"])),
    kind=st.sampled_from(Kind),
    attributes=st.dictionaries(
        st.sampled_from(
            ["reason", "why", "first-sent", "ERROR_CODE", "ERROR_MESSAGE", "RULE_ARN", "x"]
        ),
        st.one_of(TEXT, st.integers().map(str)),
    ),
    system=st.dictionaries(
        st.sampled_from(
            ["SentTimestamp", "ApproximateReceiveCount", "DeadLetterQueueSourceArn", "SenderId"]
        ),
        st.one_of(TEXT, st.integers().map(str)),
    ),
)
def test_any_message_can_be_read(
    body: str, kind: Kind, attributes: dict[str, str], system: dict[str, str]
) -> None:
    """Whoever wrote it: it has a reason, times and a subject."""
    letter = read_letter(
        Received("m", "r", body, attributes, system), kind, timedelta(days=14), NOW
    )
    assert letter.reason
    assert letter.first_sent_at.tzinfo is not None
    assert letter.received >= 0
    assert letter.subject.words
