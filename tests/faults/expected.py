"""The expected end of each cell: a few rules by the purpose of the call, and named exceptions."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from sageaudit.structs import replace
from tests.faults.calls import Call
from tests.faults.network import LASTING, Fault
from tests.faults.stories import Story


class End(StrEnum):
    """How a cell can end."""

    UNSEEN = "as if nothing had happened"
    LATER = "delivered again, then as if nothing had happened"
    INCOMPLETE = "an audit that names what it could not read"
    DEAD = "a dead letter with its reason, done after one redrive"


class Use(StrEnum):
    """What a call is for."""

    DECIDES = "nothing can be done without its answer"
    ENRICHES = "an audit is possible without its answer, and says so"
    HELPS = "nobody notices if its answer is missing"
    WRITES = "changes the table"
    SENDS = "sends a message on"
    POSTS = "people see it"


class Expected(Struct, frozen=True):
    """The allowed ends. `marked`: a second copy is allowed if marked as a possible repeat."""

    ends: frozenset[End]
    marked: bool = False
    counted: str | None = None
    """A metric that must be counted, if any."""


_UNSEEN, _LATER = frozenset({End.UNSEEN}), frozenset({End.LATER})
_DEAD, _INCOMPLETE = frozenset({End.DEAD}), frozenset({End.INCOMPLETE})
_HELPS = (
    "sagemaker-runtime.",
    "pricing.GetProducts",
    "dynamodb.GetItem PRICE",
    "dynamodb.PutItem PRICE",
    "dynamodb.PutItem CHANNEL",
    "dynamodb.PutItem SWEEP SENT",
    "secrets-manager.GetSecretValue sageaudit/fingerprint-key",
    "sqs.ChangeMessageVisibility",
)
_ENRICHES = ("sagemaker.ListTags", "cloudwatch.")
_WRITES = (
    "dynamodb.PutItem",
    "dynamodb.UpdateItem",
    "dynamodb.DeleteItem",
    "dynamodb.TransactWriteItems",
)
_FAILED = {"audit": "AuditFailed", "notify": "NotDecided", "deliver": "DeliveryFailed"}


def use_of(call: Call) -> Use:
    """What a call is for."""
    for prefixes, use in (
        (_HELPS, Use.HELPS),
        (_ENRICHES, Use.ENRICHES),
        (_WRITES, Use.WRITES),
        (("sqs.SendMessage",), Use.SENDS),
        (("sns.Publish",), Use.POSTS),
    ):
        if call.name.startswith(prefixes):
            return use
    return Use.DECIDES


def expected(story: Story, call: Call, fault: Fault) -> Expected:
    """Returns the expectation of the first matching exception, or else of the rules."""
    for exception in EXCEPTIONS:
        if exception.about(story, call, fault):
            return exception.expected
    should = _by_rule(call, fault)
    if story.broken and End.UNSEEN in should.ends:
        # a retry of a request can delay an attempt beyond the end of the story's own fault
        return replace(should, ends=should.ends | _LATER)
    return should


def _by_rule(call: Call, fault: Fault) -> Expected:
    use, failed = use_of(call), _FAILED.get(call.function)
    if use is Use.HELPS:
        return Expected(
            _UNSEEN | _INCOMPLETE | (_LATER if "Visibility" in call.name else frozenset())
        )
    match fault:
        case Fault.THROTTLED | Fault.UNREACHED:
            return Expected(_UNSEEN | _LATER if use is Use.POSTS else _UNSEEN)
        case Fault.UNANSWERED | Fault.SERVER_ERROR:
            return Expected(_LATER, marked=True) if use is Use.POSTS else Expected(_UNSEEN)
        case Fault.GARBLED | Fault.EMPTY:
            ends = _UNSEEN | _LATER | (_INCOMPLETE if use is Use.ENRICHES else frozenset())
            return Expected(ends, marked=use is Use.POSTS)
        case Fault.DENIED if use is Use.ENRICHES:
            return Expected(_INCOMPLETE | _UNSEEN)
        case Fault.DENIED if use is Use.POSTS:
            return Expected(_DEAD, counted="NotifyFailed")
        case Fault.HANGS | Fault.DOWN if use is Use.POSTS:
            return Expected(_DEAD, marked=True, counted="NotifyUnknown")
        case Fault.THROTTLED_LONG if use is Use.POSTS:
            return Expected(_LATER)
        case _ if use is Use.ENRICHES:
            ended_in_time = failed if fault is Fault.ENDLESS else None
            return Expected(_LATER | _INCOMPLETE, counted=ended_in_time)
    return Expected(_LATER, counted=failed)


class ExpectedException(Struct, frozen=True):
    """Cells that end differently, and why that is right."""

    why: str
    about: Callable[[Story, Call, Fault], bool]
    expected: Expected


def _webhook(call: Call) -> bool:
    return "sageaudit/channel/" in call.name


EXCEPTIONS: tuple[ExpectedException, ...] = (
    ExpectedException(
        "a failed digest is started again: by Lambda, an hour later, and by a person",
        lambda story, call, fault: call.function == "digest",
        Expected(_UNSEEN),
    ),
    ExpectedException(
        "nothing is reported about a running job while its metrics are denied; tags and live "
        "prices are optional, and the next watch reports what this one could not",
        lambda story, call, fault: (
            call.function == "watch" and use_of(call) in {Use.HELPS, Use.ENRICHES}
        ),
        Expected(_UNSEEN | _LATER),
    ),
    ExpectedException(
        "the next sweep does what this one could not; lasting faults are counted",
        lambda story, call, fault: call.function == "sweep" and fault in LASTING,
        Expected(_UNSEEN | _LATER, counted="SweepFailed"),
    ),
    ExpectedException(
        "budgets are checked again an hour later; lasting faults are counted",
        lambda story, call, fault: (
            story.name == "budget" and call.function == "watch" and fault in LASTING
        ),
        Expected(_UNSEEN | _LATER),
    ),
    ExpectedException(
        "the next watch checks what this one could not; lasting faults are counted",
        lambda story, call, fault: call.function == "watch" and fault in LASTING,
        Expected(_UNSEEN | _LATER, counted="WatchFailed"),
    ),
    ExpectedException(
        "the next sweep or watch does what this one could not",
        lambda story, call, fault: call.function in {"sweep", "watch"},
        Expected(_UNSEEN | _LATER),
    ),
    ExpectedException(
        "a message that cannot become a dead letter stays in its queue; its age raises an alarm",
        lambda story, call, fault: "DeadLetters" in call.name or "Undecided" in call.name,
        Expected(_UNSEEN | _LATER),
    ),
    ExpectedException(
        "a message whose answer was lost is sent twice; its copy is recognised and not posted",
        lambda story, call, fault: use_of(call) is Use.SENDS and fault is Fault.UNANSWERED,
        Expected(_UNSEEN | _LATER),
    ),
    ExpectedException(
        "a webhook that may not be read is a broken channel: no retry fixes a permission",
        lambda story, call, fault: _webhook(call) and fault is Fault.DENIED,
        Expected(_DEAD, counted="NotifyFailed"),
    ),
    ExpectedException(
        "an answer without a secret reads as an empty secret, which a person must fix",
        lambda story, call, fault: _webhook(call) and fault in {Fault.EMPTY, Fault.GARBLED},
        Expected(_UNSEEN | _LATER | _DEAD),
    ),
    ExpectedException(
        "a channel waits if its secret cannot be read: this is not a failure of the notice",
        lambda story, call, fault: _webhook(call),
        Expected(_UNSEEN | _LATER),
    ),
    ExpectedException(
        "it is unknown whether the lost answer was about its own claim, so the post is marked",
        lambda story, call, fault: (
            call.function == "deliver"
            and call.operation == "dynamodb.PutItem"
            and fault is Fault.UNANSWERED
        ),
        Expected(_UNSEEN | _LATER, marked=True),
    ),
    ExpectedException(
        "posted, but the mark is not written: it is unknown, so the next post says so",
        lambda story, call, fault: (
            call.function == "deliver" and call.operation == "dynamodb.UpdateItem"
        ),
        Expected(_UNSEEN | _LATER, marked=True),
    ),
    ExpectedException(
        "a lease that is not released expires; the next post says that it may be a repeat",
        lambda story, call, fault: (
            call.function == "deliver"
            and call.operation in {"dynamodb.DeleteItem", "dynamodb.GetItem"}
        ),
        Expected(_UNSEEN | _LATER, marked=True),
    ),
    ExpectedException(
        "GetItem without an item is an answer: this audit or notice does not exist (any more)",
        lambda story, call, fault: (
            call.name in {"dynamodb.GetItem JOB AUDIT", "dynamodb.GetItem ALERT NOTICE"}
            and fault in {Fault.EMPTY, Fault.GARBLED}
        ),
        Expected(_UNSEEN | _LATER | _DEAD),
    ),
)
