"""`sageaudit redrive` on queues in moto."""

import io
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from sageaudit.adapters.aws import sqs as queue_module
from sageaudit.adapters.aws.sqs import ReceivedMessage
from sageaudit.adapters.history.dynamo.keys import budget_pk, digest_pk
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
    """Yields an account in which an empty queue responds at once."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setattr(queue_module, "LONG_POLL_S", 0)
    with mock_aws(), aws_calls() as recorded_calls:
        yield recorded_calls


@pytest.fixture
def stack(calls: AwsCalls) -> Stack:
    """Returns a stack with both channels."""
    return Stack(calls)


Redrive = Callable[..., Result]


@pytest.fixture
def redrive(run: Run) -> Redrive:
    """Returns a function that runs the command in the stack's region."""
    return lambda *words: run("redrive", *words, "--region", REGION)


def printed_document(done: Result) -> Any:
    """Returns the printed JSON, which is valid by its schema."""
    document = json.loads(done.stdout)
    assert schema_errors("redrive", document) == []
    return document


def first_sent_text(moment: datetime) -> str:
    """Returns a time as in the attribute `first-sent`."""
    return str(int(moment.timestamp() * 1000))


@pytest.mark.parametrize("kind", KINDS)
def test_a_letter_is_sent_again_and_then_deleted(stack: Stack, redrive: Redrive, kind: str) -> None:
    """The body has the same bytes; the new message has no counter, age or reason."""
    body = BODIES[kind]() + " "
    stack.put(
        kind, body, reason="abandoned", why="x", first_sent=first_sent_text(NOW), waited_tags="3"
    )
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
    """25 letters are shown once each, and all can be received at once afterwards."""
    for number in range(25):
        stack.put(kind, BODIES[kind](f"job-{number:02d}"), reason="abandoned", why="throttled")
    done = redrive(kind, "--dry-run")
    assert done.exit_code == 0
    last = done.stderr.splitlines()[-1]
    assert last == "sageaudit: --dry-run: 25 letters would move, 0 would stay"
    assert all(done.stdout.count(f"job-{number:02d}") == 1 for number in range(25))
    assert printed_document(redrive(kind, "--dry-run", "--output", "json"))["counts"]["moves"] == 25
    assert stack.count_dead_letters(kind) == 25
    assert stack.waiting(WORK[kind]) == []


def test_many_letters_are_moved_once_each(stack: Stack, redrive: Redrive) -> None:
    """Each notice goes to its channel's queue, in requests of ten."""
    for number in range(27):
        stack.put("notices", notice(f"job-{number}", "sns" if number % 3 else "slack"))
    assert redrive("notices").exit_code == 0
    for channel, count in (("Sns", 18), ("Slack", 9)):
        bodies = stack.bodies(f"NoticesQueueUrl{channel}")
        assert len(bodies) == len({*bodies}) == count
        assert {json.loads(letter_document)["channel"] for letter_document in bodies} == {
            channel.lower()
        }
    assert stack.count_dead_letters("notices") == 0
    assert len(stack.calls.by_name("sqs:SendMessageBatch")) == 3


def test_letters_are_shown_by_reason_and_by_age(stack: Stack, redrive: Redrive) -> None:
    """The most frequent reason is first, with its explanations; the oldest letter is first."""
    for days in (9, 2, 5):
        sent = first_sent_text(datetime(2026, 11, 20, 10, tzinfo=UTC) - timedelta(days=days))
        stack.put(
            "finished", event(), reason="abandoned", why="Describe throttled", first_sent=sent
        )
    stack.put("finished", event("other"), reason="channel", why="y")
    lines = redrive("finished", "--dry-run").stdout.splitlines()
    assert lines[:5] == [
        "4 dead letters: jobs that were not audited",
        "3 abandoned",
        "  3: Describe throttled",
        "1 channel",
        "  1: y",
    ]
    assert [line.split()[:2] for line in lines[6:8]] == [
        ["2026-11-11", "10:00"],
        ["2026-11-15", "10:00"],
    ]
    assert lines[6].endswith("moves job-1, abandoned")


@pytest.mark.parametrize("answer", ["y\n", "n\n", ""])
def test_a_person_has_to_confirm(
    stack: Stack, redrive: Redrive, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Without a yes nothing is moved, and the letters can be received at once."""
    stack.put("notices", notice())
    monkeypatch.setattr("sageaudit.cli.commands.redrive.can_ask", lambda: True)
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
def test_refused_letters_stay_unless_their_reason_is_named(
    stack: Stack, redrive: Redrive, reason: str
) -> None:
    """They would be refused again, unless for example the policy now allows them."""
    stack.put("finished", event(), reason=reason, why="no")
    assert "moved 0 letters, 1 stay" in redrive("finished").stderr
    assert stack.count_dead_letters("finished") == 1
    assert "moved 1 letter" in redrive("finished", "--reason", reason).stderr
    assert len(stack.waiting("FinishedJobsQueueUrl")) == 1


@pytest.mark.parametrize("body", ["{}", "null", "not json", "[" * 2_000, "\ufffd", "7"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_unreadable_letter_stays_with_any_reason(
    stack: Stack, redrive: Redrive, kind: str, body: str
) -> None:
    """The output says what cannot be read."""
    stack.put(kind, body, reason="abandoned", why="it says")
    done = redrive(kind, "--output", "json")
    [letter] = printed_document(done)["letters"]
    assert (done.exit_code, letter["status"], letter["subject"]) == (0, "stays", None)
    assert letter["note"].startswith("cannot be read: ")
    assert stack.count_dead_letters(kind) == 1


def test_only_letters_with_the_named_reason_move(stack: Stack, redrive: Redrive) -> None:
    """The others are counted, and stay."""
    for reason in ("a", "b", "b", "malformed"):
        stack.put("finished", event(), reason=reason, why="x")
    done = redrive("finished", "--reason", "b")
    assert "moved 2 letters" in done.stderr
    assert "2 letters with other reasons: not sent" in done.stderr
    assert stack.count_dead_letters("finished") == 2
    assert redrive("finished", "--reason", "nobody").exit_code == 0
    assert redrive("finished", "--reason", "").exit_code == 2


def test_a_limit_moves_the_oldest(stack: Stack, redrive: Redrive) -> None:
    """Letters that stay do not count."""
    for day in (3, 1, 2):
        first = first_sent_text(datetime(2026, 11, day, tzinfo=UTC))
        stack.put("finished", event(f"day-{day}"), reason="abandoned", why="x", first_sent=first)
    stack.put("finished", "{}", first_sent=first_sent_text(datetime(2026, 10, 1, tzinfo=UTC)))
    assert (
        "moved 2 letters to SageAudit-finished, 2 stay"
        in redrive("finished", "--limit", "2").stderr
    )
    assert stack.bodies("FinishedJobsQueueUrl") == [event("day-1"), event("day-2")]


def test_notices_of_a_missing_channel_stay(calls: AwsCalls, redrive: Redrive) -> None:
    """A message says so."""
    stack = Stack(calls, without=("NoticesQueueUrlSlack",))
    stack.put("notices", notice("a", "sns"), reason="no_channel", why="x")
    stack.put("notices", notice("b", "slack"), reason="no_channel", why="x")
    assert "the stack has no queue for" in redrive("notices", "--dry-run").stdout
    assert "moved 1 letter to SageAudit-sns, 1 stay" in redrive("notices").stderr
    assert stack.bodies("NoticesQueueUrlSns") == [notice("a", "sns")]
    assert stack.count_dead_letters("notices") == 1


def test_letters_from_aws_itself_have_a_reason(stack: Stack, redrive: Redrive) -> None:
    """EventBridge adds attributes, SQS a count; Lambda names an unknown destination."""
    refused = {"ERROR_CODE": "NO_PERMISSIONS", "ERROR_MESSAGE": "No permissions to send"}
    stack.put("finished", event("from-eventbridge"), RULE_ARN="arn", **refused)
    stack.put("finished", event("from-sqs"))
    result = printed_document(redrive("finished", "--output", "json"))["letters"]
    assert {
        letter_document["subject"].rpartition("/")[2]: (
            letter_document["reason"],
            letter_document["why"],
        )
        for letter_document in result
    } == {
        "from-eventbridge": (
            "NO_PERMISSIONS",
            "EventBridge could not deliver it: No permissions to send",
        ),
        "from-sqs": ("no_reason", "received 1 time, and the function never answered"),
    }
    stack.put("undecided", failed_batch())
    [letter] = printed_document(redrive("undecided", "--output", "json"))["letters"]
    assert (letter["reason"], letter["status"]) == ("stream_abandoned", "stays")


def test_hostile_text_and_binary_attributes_are_harmless(stack: Stack, redrive: Redrive) -> None:
    """The output has nothing that controls a terminal."""
    evil = "\u009b31mred\u202e\u2028\n\tnext <!channel>" + "w" * 900
    stack.put("notices", notice(), reason=evil[:200], why=evil)
    stack.put("notices", notice("名前" * 9), reason="\u202eabc", why="\U0001f469\u200d" * 90)
    stack.put("notices", event(), reason="r", why=b"\x00\xff" * 40)
    for output in ("table", "json"):
        done = redrive("notices", "--dry-run", "--output", output)
        assert done.exit_code == 0, done.stderr
        printed_text = done.stdout.replace("\n", "")
        assert not [
            char for char in printed_text if unicodedata.category(char) in {"Cc", "Cf", "Zl"}
        ]
    assert "(80 bytes of binary data)" in redrive("notices", "--dry-run").stdout


def test_a_letter_received_twice_is_one_letter_with_its_newest_handle(
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
    assert [letter_document["ReceiptHandle"] for letter_document in deleted.params["Entries"]] == [
        "new"
    ]


def test_it_stops_at_repeated_letters_and_at_its_limit(
    stack: Stack, redrive: Redrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS may deliver a hidden message for ever; the remaining letters are for the next run."""
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
def test_an_aws_error_is_reported_and_no_letter_is_lost(
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
        document = printed_document(done)
        assert document["error"]
        assert document["counts"]["moved"] == sent


def test_a_single_refused_letter_stays(stack: Stack, redrive: Redrive) -> None:
    """The others of its request move; the exit code is 1.

    A letter that is not deleted is reported too.
    """
    for number in range(2):
        stack.put("finished", event(f"job-{number}"))
    failed = {"Failed": [{"Id": "0", "Code": "InvalidMessageContents"}]}
    stack.calls.answer("sqs:SendMessageBatch", lambda *_: failed)
    stack.calls.answer("sqs:DeleteMessageBatch", lambda *_: {"Failed": [{"Id": "0"}]})
    done = redrive("finished", "--output", "json")
    assert done.exit_code == 1
    by_fate = {
        letter_document["status"]: letter_document["note"]
        for letter_document in printed_document(done)["letters"]
    }
    assert by_fate == {
        "failed": "SQS refused it: InvalidMessageContents",
        "moved": "sent but not deleted: it may be sent twice",
    }


def test_without_permission_to_unhide_letters_it_says_how_long_they_are_hidden(
    stack: Stack, redrive: Redrive
) -> None:
    """The list is still shown."""
    stack.put("finished", event())
    stack.calls.refuse("sqs:ChangeMessageVisibilityBatch", "AccessDeniedException")
    done = redrive("finished", "--dry-run")
    assert done.exit_code == 0
    assert "1 letter would move" in done.stderr
    assert "hidden from others for 15 minutes" in done.stderr


def test_a_missing_or_different_stack_is_reported(
    calls: AwsCalls, redrive: Redrive, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 3. It is 2 if the stack has other outputs, or no region is known."""
    done = redrive("finished", "--stack", "Nobody")
    assert (done.exit_code, "no stack Nobody" in done.stderr) == (3, True)
    Stack(calls, without=("FinishedJobsQueueUrl",))
    done = redrive("finished")
    assert (done.exit_code, "no output FinishedJobsQueueUrl" in done.stderr) == (2, True)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert run("redrive", "finished").exit_code == 2


def test_it_calls_only_declared_actions(stack: Stack, redrive: Redrive) -> None:
    """IAM has no action for a batch: it is the action of one message."""
    for name in ("a", "b"):
        stack.put("notices", notice(name), reason="abandoned", why="x")
    stack.calls.log.clear()
    redrive("notices", "--limit", "1")
    called = {name.removesuffix("Batch") for name in stack.calls.names}
    assert called == set(permissions.WRITING_COMMANDS["redrive"].actions(()))


texts = st.text(max_size=40)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (("tag", "team=a/b#c"), "budget 2026-08 tag team=a/b#c"),
        (("", ""), "budget 2026-08"),
    ],
)
def test_a_letter_about_a_budget_names_it(
    stack: Stack, redrive: Redrive, selector: tuple[str, str], expected: str
) -> None:
    """Both the record of its notice and the notice."""
    keys = {"pk": budget_pk("2026-08", selector), "sk": "NOTICE#00001#slack"}
    stack.put("undecided", json.dumps(keys), reason="abandoned", why="x")
    body = {**json.loads(notice()), "notice_id": f"{expected}|1|slack"}
    stack.put("notices", json.dumps(body), reason="abandoned", why="x")
    for kind, line in (("undecided", "moves "), ("notices", "moves slack: ")):
        [letter] = printed_document(redrive(kind, "--dry-run", "--output", "json"))["letters"]
        assert letter["subject"] == expected
        assert f"{line}{expected}" in redrive(kind, "--dry-run").stdout


def test_a_letter_about_a_digest_names_its_week(stack: Stack, redrive: Redrive) -> None:
    """By its last day."""
    keys = {"pk": digest_pk(date(2026, 11, 22)), "sk": "NOTICE#00000#slack"}
    stack.put("undecided", json.dumps(keys), reason="abandoned", why="x")
    [letter] = printed_document(redrive("undecided", "--dry-run", "--output", "json"))["letters"]
    assert letter["subject"] == "digest to 2026-11-22"


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
    """A message from any sender has a reason, times and a status."""
    message = ReceivedMessage("m", "r", body, attributes, system)
    letter = parse_letter(message, kind, timedelta(days=14), NOW)
    assert letter.reason
    assert letter.first_sent_at.tzinfo
    assert letter.status in {LetterStatus.MOVES, LetterStatus.STAYS}
