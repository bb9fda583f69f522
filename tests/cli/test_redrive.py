"""`sageaudit redrive` over queues as moto plays them."""

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

from sageaudit.adapters.aws import sqs as queue_module
from sageaudit.adapters.aws.sqs import ReceivedMessage
from sageaudit.workflows import redrive as redriving
from sageaudit.workflows.doctor import permissions
from sageaudit.workflows.redrive import NOT_RETRYABLE, LetterKind, LetterStatus, parse_letter
from tests.fakes.aws_calls import AwsCalls, aws_calls
from tests.fakes.command_line import Result, Run
from tests.fakes.dead_letters import REGION, Stack, decision, event, failed_batch, notice
from tests.fakes.schemas import schema_errors

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
KINDS = list(WORK)
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


Redrive = Callable[..., Result]


@pytest.fixture
def redrive(run: Run) -> Redrive:
    """The command in the stack's region."""
    return lambda *words: run("redrive", *words, "--region", REGION)


def printed(done: Result) -> Any:
    """What it prints as JSON, which is valid by its schema."""
    document = json.loads(done.stdout)
    assert schema_errors("redrive", document) == []
    return document


def ms(moment: datetime) -> str:
    """As the attribute `first-sent` has it."""
    return str(int(moment.timestamp() * 1000))


@pytest.mark.parametrize("kind", KINDS)
def test_a_letter_is_sent_anew_and_then_deleted(stack: Stack, redrive: Redrive, kind: str) -> None:
    """The body is the same, byte for byte; no counter, no age and no reason goes along."""
    body = BODIES[kind]() + " "
    stack.put(kind, body, reason="gave_up", why="x", first_sent=ms(NOW), waited_tags="3")
    done = redrive(kind)
    assert done.exit_code == 0, done.stderr
    queue = {"finished": "finished", "undecided": "decisions", "notices": "slack"}[kind]
    assert done.stderr.splitlines()[-1] == f"sageaudit: moved 1 letter to SageAudit-{queue}"
    [sent] = stack.waiting(WORK[kind])
    assert sent["Body"] == body
    assert "MessageAttributes" not in sent
    assert stack.count_dead_letters(kind) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_dry_run_moves_nothing_and_hides_nothing(
    stack: Stack, redrive: Redrive, kind: str
) -> None:
    """25 letters are shown once each, and all of them can be received at once afterwards."""
    for number in range(25):
        stack.put(kind, BODIES[kind](f"job-{number:02d}"), reason="gave_up", why="throttled")
    done = redrive(kind, "--dry-run")
    assert done.exit_code == 0
    last = done.stderr.splitlines()[-1]
    assert last == "sageaudit: --dry-run: 25 letters would move, 0 would stay"
    assert all(done.stdout.count(f"job-{number:02d}") == 1 for number in range(25))
    assert printed(redrive(kind, "--dry-run", "--output", "json"))["counts"]["moves"] == 25
    assert stack.count_dead_letters(kind) == 25
    assert stack.waiting(WORK[kind]) == []


def test_many_letters_are_moved_once_each(stack: Stack, redrive: Redrive) -> None:
    """Each notice to the queue of its channel, in requests of ten."""
    for number in range(27):
        stack.put("notices", notice(f"job-{number}", "sns" if number % 3 else "slack"))
    assert redrive("notices").exit_code == 0
    for channel, count in (("Sns", 18), ("Slack", 9)):
        bodies = stack.bodies(f"NoticesQueueUrl{channel}")
        assert len(bodies) == len({*bodies}) == count
        assert {json.loads(one)["channel"] for one in bodies} == {channel.lower()}
    assert stack.count_dead_letters("notices") == 0
    assert len(stack.calls.by_name("sqs:SendMessageBatch")) == 3


def test_letters_are_shown_by_reason_and_by_age(stack: Stack, redrive: Redrive) -> None:
    """The most frequent reason first, with its sentences; the oldest letter first."""
    for days in (9, 2, 5):
        sent = ms(datetime(2026, 11, 20, 10, tzinfo=UTC) - timedelta(days=days))
        stack.put("finished", event(), reason="gave_up", why="Describe throttled", first_sent=sent)
    stack.put("finished", event("other"), reason="channel", why="y")
    lines = redrive("finished", "--dry-run").stdout.splitlines()
    assert lines[:5] == [
        "4 dead letters: jobs that were not audited",
        "3 gave_up",
        "  3: Describe throttled",
        "1 channel",
        "  1: y",
    ]
    assert [line.split()[:2] for line in lines[6:8]] == [
        ["2026-11-11", "10:00"],
        ["2026-11-15", "10:00"],
    ]
    assert lines[6].endswith("moves job-1, gave_up")


@pytest.mark.parametrize("answer", ["y\n", "n\n", ""])
def test_a_person_is_asked(
    stack: Stack, redrive: Redrive, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Who does not say yes moves nothing, and the letters can be received at once."""
    stack.put("notices", notice())
    monkeypatch.setattr("sageaudit.cli.commands.redrive.may_ask", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    done = redrive("notices")
    assert "Send 1 letter again?" in done.stderr
    yes = answer == "y\n"
    assert done.exit_code == (0 if yes else 130)
    assert len(stack.waiting("NoticesQueueUrlSlack")) == yes
    assert stack.count_dead_letters("notices") == (not yes)
    assert redrive("notices", "--yes").exit_code == 0
    assert stack.count_dead_letters("notices") == 0


@pytest.mark.parametrize("reason", sorted(NOT_RETRYABLE)[::4])
def test_what_was_refused_stays_unless_its_reason_is_named(
    stack: Stack, redrive: Redrive, reason: str
) -> None:
    """Sent again, it would be refused again, unless for example the policy allows it now."""
    stack.put("finished", event(), reason=reason, why="no")
    assert "moved 0 letters, 1 stay" in redrive("finished").stderr
    assert stack.count_dead_letters("finished") == 1
    assert "moved 1 letter" in redrive("finished", "--reason", reason).stderr
    assert len(stack.waiting("FinishedJobsQueueUrl")) == 1


@pytest.mark.parametrize("body", ["{}", "null", "not json", "[" * 2_000, "\ufffd", "7"])
@pytest.mark.parametrize("kind", KINDS)
def test_nonsense_stays_whatever_its_reason_says(
    stack: Stack, redrive: Redrive, kind: str, body: str
) -> None:
    """It says what cannot be read."""
    stack.put(kind, body, reason="gave_up", why="it says")
    done = redrive(kind, "--output", "json")
    [letter] = printed(done)["letters"]
    assert (done.exit_code, letter["fate"], letter["job"]) == (0, "stays", None)
    assert letter["note"].startswith("cannot be read: ")
    assert stack.count_dead_letters(kind) == 1


def test_only_letters_of_the_reason_that_is_asked_for(stack: Stack, redrive: Redrive) -> None:
    """The others are counted, and stay."""
    for reason in ("a", "b", "b", "malformed"):
        stack.put("finished", event(), reason=reason, why="x")
    done = redrive("finished", "--reason", "b")
    assert "moved 2 letters" in done.stderr
    assert "2 letters of other reasons: left alone" in done.stderr
    assert stack.count_dead_letters("finished") == 2
    assert redrive("finished", "--reason", "nobody").exit_code == 0
    assert redrive("finished", "--reason", "").exit_code == 2


def test_a_limit_moves_the_oldest(stack: Stack, redrive: Redrive) -> None:
    """Letters that stay anyway do not count."""
    for day in (3, 1, 2):
        first = ms(datetime(2026, 11, day, tzinfo=UTC))
        stack.put("finished", event(f"day-{day}"), reason="gave_up", why="x", first_sent=first)
    stack.put("finished", "{}", first_sent=ms(datetime(2026, 10, 1, tzinfo=UTC)))
    assert (
        "moved 2 letters to SageAudit-finished, 2 stay"
        in redrive("finished", "--limit", "2").stderr
    )
    assert stack.bodies("FinishedJobsQueueUrl") == [event("day-1"), event("day-2")]


def test_a_channel_that_is_not_set_up_keeps_its_notices(calls: AwsCalls, redrive: Redrive) -> None:
    """And says so."""
    stack = Stack(calls, without=("NoticesQueueUrlSlack",))
    stack.put("notices", notice("a", "sns"), reason="no_channel", why="x")
    stack.put("notices", notice("b", "slack"), reason="no_channel", why="x")
    assert "slack is not set up" in redrive("notices", "--dry-run").stdout
    assert "moved 1 letter to SageAudit-sns, 1 stay" in redrive("notices").stderr
    assert stack.bodies("NoticesQueueUrlSns") == [notice("a", "sns")]
    assert stack.count_dead_letters("notices") == 1


def test_letters_of_aws_itself_say_why(stack: Stack, redrive: Redrive) -> None:
    """EventBridge has attributes, SQS gives a count, Lambda names a place that nobody decides."""
    refused = {"ERROR_CODE": "NO_PERMISSIONS", "ERROR_MESSAGE": "No permissions to send"}
    stack.put("finished", event("from-eventbridge"), RULE_ARN="arn", **refused)
    stack.put("finished", event("from-sqs"))
    found = printed(redrive("finished", "--output", "json"))["letters"]
    assert {one["job"].rpartition("/")[2]: (one["reason"], one["why"]) for one in found} == {
        "from-eventbridge": (
            "NO_PERMISSIONS",
            "EventBridge could not send: No permissions to send",
        ),
        "from-sqs": ("no_reason", "received 1 time: the function never answered"),
    }
    stack.put("undecided", failed_batch())
    [letter] = printed(redrive("undecided", "--output", "json"))["letters"]
    assert (letter["reason"], letter["fate"]) == ("stream_gave_up", "stays")


def test_hostile_text_and_binary_attributes_are_harmless(stack: Stack, redrive: Redrive) -> None:
    """Nothing that a terminal obeys."""
    evil = "\u009b31mred\u202e\u2028\n\tnext <!channel>" + "w" * 900
    stack.put("notices", notice(), reason=evil[:200], why=evil)
    stack.put("notices", notice("名前" * 9), reason="\u202eabc", why="\U0001f469\u200d" * 90)
    stack.put("notices", event(), reason="r", why=b"\x00\xff" * 40)
    for output in ("table", "json"):
        done = redrive("notices", "--dry-run", "--output", output)
        assert done.exit_code == 0, done.stderr
        shown = done.stdout.replace("\n", "")
        assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cf", "Zl"}]
    assert "(80 bytes of binary data)" in redrive("notices", "--dry-run").stdout


def test_a_letter_that_comes_twice_is_one_letter_with_its_newest_handle(
    stack: Stack, redrive: Redrive
) -> None:
    """SQS may deliver a hidden message again; only the newest receipt handle surely deletes it."""
    answers = [["old"], ["new"], [], []]

    def receive(*_: Any) -> Mapping[str, Any]:
        handles = answers.pop(0) if answers else []
        message = {"MessageId": "one", "Body": event(), "Attributes": {}}
        return {"Messages": [{**message, "ReceiptHandle": handle} for handle in handles]}

    stack.calls.answer("sqs:ReceiveMessage", receive)
    stack.calls.answer("sqs:DeleteMessageBatch", lambda *_: {})
    assert "moved 1 letter to SageAudit-finished\n" in redrive("finished").stderr
    [deleted] = stack.calls.by_name("sqs:DeleteMessageBatch")
    assert [one["ReceiptHandle"] for one in deleted.params["Entries"]] == ["new"]


def test_it_ends_when_only_known_letters_come_and_at_its_memory(
    stack: Stack, redrive: Redrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where SQS delivers a hidden message for ever; the rest is for the next run."""
    message = {"MessageId": "one", "ReceiptHandle": "h", "Body": event(), "Attributes": {}}
    stack.calls.answer("sqs:ReceiveMessage", lambda *_: {"Messages": [message]})
    assert "1 letter would move" in redrive("finished", "--dry-run").stderr
    stack.calls.answers.clear()
    Stack.__post_init__(stack)
    for number in range(15):
        stack.put("finished", event(f"job-{number}"))
    monkeypatch.setattr(redriving, "MAX_BYTES", 100)
    assert "there are more letters" in redrive("finished").stderr
    assert stack.count_dead_letters("finished") == 5


@pytest.mark.parametrize(
    ("operation", "sent"),
    [
        ("cloudformation:DescribeStacks", 0),
        ("sqs:GetQueueAttributes", 0),
        ("sqs:ReceiveMessage", 0),
        ("sqs:SendMessageBatch", 0),
        ("sqs:DeleteMessageBatch", 1),
    ],
)
@pytest.mark.parametrize(
    ("code", "exit_code"), [("AccessDeniedException", 4), ("RequestThrottled", 5)]
)
def test_what_aws_refuses_is_said_and_no_letter_is_lost(
    stack: Stack, redrive: Redrive, operation: str, sent: int, code: str, exit_code: int
) -> None:
    """A letter that could not be deleted has a copy, which does no harm."""
    stack.put("finished", event())
    stack.calls.refuse(operation, code)
    done = redrive("finished", "--output", "json")
    assert done.exit_code == exit_code
    assert "Traceback" not in done.stderr
    stack.calls.answers.pop(operation)
    Stack.__post_init__(stack)
    assert len(stack.waiting("FinishedJobsQueueUrl")) == sent
    if operation.endswith("Batch"):
        document = printed(done)
        assert document["error"]
        assert document["counts"]["moved"] == sent


def test_a_letter_that_sqs_refuses_alone_stays(stack: Stack, redrive: Redrive) -> None:
    """The others of its request move; exit 1. One that is not deleted is said, too."""
    for number in range(2):
        stack.put("finished", event(f"job-{number}"))
    failed = {"Failed": [{"Id": "0", "Code": "InvalidMessageContents"}]}
    stack.calls.answer("sqs:SendMessageBatch", lambda *_: failed)
    stack.calls.answer("sqs:DeleteMessageBatch", lambda *_: {"Failed": [{"Id": "0"}]})
    done = redrive("finished", "--output", "json")
    assert done.exit_code == 1
    by_fate = {one["fate"]: one["note"] for one in printed(done)["letters"]}
    assert by_fate == {
        "failed": "SQS refused it: InvalidMessageContents",
        "moved": "sent, and still here: it may come twice",
    }


def test_without_the_permission_to_show_letters_again_it_says_when(
    stack: Stack, redrive: Redrive
) -> None:
    """The list is shown all the same."""
    stack.put("finished", event())
    stack.calls.refuse("sqs:ChangeMessageVisibilityBatch", "AccessDeniedException")
    done = redrive("finished", "--dry-run")
    assert done.exit_code == 0
    assert "1 letter would move" in done.stderr
    assert "again in 15 minutes only" in done.stderr


def test_a_stack_that_is_not_there_or_another_one_is_said(
    calls: AwsCalls, redrive: Redrive, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3; exit 2 where it has other outputs, or where no region is known."""
    done = redrive("finished", "--stack", "Nobody")
    assert (done.exit_code, "no stack Nobody" in done.stderr) == (3, True)
    Stack(calls, without=("FinishedJobsQueueUrl",))
    done = redrive("finished")
    assert (done.exit_code, "no output FinishedJobsQueueUrl" in done.stderr) == (2, True)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert run("redrive", "finished").exit_code == 2


def test_it_calls_what_it_declares(stack: Stack, redrive: Redrive) -> None:
    """IAM knows no action for a batch: it is that of one message."""
    for name in ("a", "b"):
        stack.put("notices", notice(name), reason="gave_up", why="x")
    stack.calls.log.clear()
    redrive("notices", "--limit", "1")
    called = {name.removesuffix("Batch") for name in stack.calls.names}
    assert called == set(permissions.WRITING_COMMANDS["redrive"].actions(()))


texts = st.text(max_size=40)


@given(
    body=texts | st.sampled_from([event(), decision(), notice(), failed_batch()]),
    attributes=st.dictionaries(
        st.sampled_from(["reason", "why", "ERROR_CODE", "first-sent"]), texts
    ),
    system=st.dictionaries(
        st.sampled_from(["SentTimestamp", "ApproximateReceiveCount"]), texts | st.just("9" * 40)
    ),
    kind=st.sampled_from(LetterKind),
)
def test_any_message_can_be_read(
    body: str, attributes: dict[str, str], system: dict[str, str], kind: LetterKind
) -> None:
    """Whoever wrote it: it has a reason, times and a fate."""
    message = ReceivedMessage("m", "r", body, attributes, system)
    letter = parse_letter(message, kind, timedelta(days=14), NOW)
    assert letter.reason
    assert letter.first_sent_at.tzinfo
    assert letter.fate in {LetterStatus.MOVES, LetterStatus.STAYS}
