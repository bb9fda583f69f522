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
    SAID = "an audit that names what it could not read"
    DEAD = "a dead letter with its reason, done after one redrive"


class Use(StrEnum):
    """What a call is for."""

    DECIDES = "without its answer nothing can be done"
    ENRICHES = "without its answer an audit can be made, and says so"
    HELPS = "without its answer nothing is missing that people would see"
    WRITES = "changes the table"
    SENDS = "hands something on"
    POSTS = "people see it"


class Expected(Struct, frozen=True):
    """The allowed ends. `marked`: a second copy is allowed if marked as a possible repeat."""

    ends: frozenset[End]
    marked: bool = False
    counted: str | None = None
    """A metric that must be counted, if any."""


_UNSEEN, _LATER = frozenset({End.UNSEEN}), frozenset({End.LATER})
_DEAD, _SAID = frozenset({End.DEAD}), frozenset({End.SAID})
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
        return Expected(_UNSEEN | _SAID | (_LATER if "Visibility" in call.name else frozenset()))
    match fault:
        case Fault.THROTTLED | Fault.UNREACHED:
            return Expected(_UNSEEN | _LATER if use is Use.POSTS else _UNSEEN)
        case Fault.UNANSWERED | Fault.SERVER_ERROR:
            return Expected(_LATER, marked=True) if use is Use.POSTS else Expected(_UNSEEN)
        case Fault.GARBLED | Fault.EMPTY:
            ends = _UNSEEN | _LATER | (_SAID if use is Use.ENRICHES else frozenset())
            return Expected(ends, marked=use is Use.POSTS)
        case Fault.DENIED if use is Use.ENRICHES:
            return Expected(_SAID | _UNSEEN)
        case Fault.DENIED if use is Use.POSTS:
            return Expected(_DEAD, counted="NotifyFailed")
        case Fault.HANGS | Fault.DOWN if use is Use.POSTS:
            return Expected(_DEAD, marked=True, counted="NotifyUnknown")
        case Fault.THROTTLED_LONG if use is Use.POSTS:
            return Expected(_LATER)
        case _ if use is Use.ENRICHES:
            ended_in_time = failed if fault is Fault.ENDLESS else None
            return Expected(_LATER | _SAID, counted=ended_in_time)
    return Expected(_LATER, counted=failed)


class Named(Struct, frozen=True):
    """Cells that end differently, and why that is right."""

    why: str
    about: Callable[[Story, Call, Fault], bool]
    expected: Expected


def _webhook(call: Call) -> bool:
    return "sageaudit/channel/" in call.name


EXCEPTIONS: tuple[Named, ...] = (
    Named(
        "a digest that cannot be written is started again: by Lambda, an hour later, by a person",
        lambda story, call, fault: call.function == "digest",
        Expected(_UNSEEN),
    ),
    Named(
        "of a job that runs nothing is said while its metrics are denied, as is in their reason; "
        "tags and live prices help, and the next sweep says what one could not",
        lambda story, call, fault: (
            call.function == "sweep" and use_of(call) in {Use.HELPS, Use.ENRICHES}
        ),
        Expected(_UNSEEN | _LATER),
    ),
    Named(
        "the next sweep does what one could not; what lasts is counted",
        lambda story, call, fault: call.function == "sweep" and fault in LASTING,
        Expected(_UNSEEN | _LATER, counted="SweepFailed"),
    ),
    Named(
        "the next sweep does what one could not",
        lambda story, call, fault: call.function == "sweep",
        Expected(_UNSEEN | _LATER),
    ),
    Named(
        "what cannot be sent to the dead letters stays in its queue, and its age rings",
        lambda story, call, fault: "DeadLetters" in call.name or "Undecided" in call.name,
        Expected(_UNSEEN | _LATER),
    ),
    Named(
        "a message whose answer was lost is sent twice: its copy is known again, and not posted",
        lambda story, call, fault: use_of(call) is Use.SENDS and fault is Fault.UNANSWERED,
        Expected(_UNSEEN | _LATER),
    ),
    Named(
        "a webhook that may not be read is a broken channel: no retry mends a permission",
        lambda story, call, fault: _webhook(call) and fault is Fault.DENIED,
        Expected(_DEAD, counted="NotifyFailed"),
    ),
    Named(
        "an answer without a secret reads as a secret without text, which a person mends",
        lambda story, call, fault: _webhook(call) and fault in {Fault.EMPTY, Fault.GARBLED},
        Expected(_UNSEEN | _LATER | _DEAD),
    ),
    Named(
        "a channel whose secret does not come waits: this is no failure of its notice",
        lambda story, call, fault: _webhook(call),
        Expected(_UNSEEN | _LATER),
    ),
    Named(
        "whether a lost answer was that of its own claim is not known, so the post is marked",
        lambda story, call, fault: (
            call.function == "deliver"
            and call.operation == "dynamodb.PutItem"
            and fault is Fault.UNANSWERED
        ),
        Expected(_UNSEEN | _LATER, marked=True),
    ),
    Named(
        "posted, and the mark is not written: nobody knows, so the next post says so",
        lambda story, call, fault: (
            call.function == "deliver" and call.operation == "dynamodb.UpdateItem"
        ),
        Expected(_UNSEEN | _LATER, marked=True),
    ),
    Named(
        "a lease that is not given back runs out: the next post says that it may be a repeat",
        lambda story, call, fault: (
            call.function == "deliver"
            and call.operation in {"dynamodb.DeleteItem", "dynamodb.GetItem"}
        ),
        Expected(_UNSEEN | _LATER, marked=True),
    ),
    Named(
        "GetItem without an item is an answer: this audit or notice does not exist (any more)",
        lambda story, call, fault: (
            call.name in {"dynamodb.GetItem JOB AUDIT", "dynamodb.GetItem ALERT NOTICE"}
            and fault in {Fault.EMPTY, Fault.GARBLED}
        ),
        Expected(_UNSEEN | _LATER | _DEAD),
    ),
)
