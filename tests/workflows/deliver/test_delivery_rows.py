"""What a channel, a secret, a table or a queue may do to a notice, and what it comes to."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.parsers import ResponseParserError

from local.functions import ProcessKilled
from sageaudit.adapters.history.dynamo.send_ledger import NO_LEASE
from sageaudit.errors import AccessDenied, ChannelUnavailable, PossiblySent, Throttled, Unavailable
from tests.fakes.calls import NOON
from tests.fakes.channel_services import (
    OK,
    WEBHOOK,
    Behaviour,
    Service,
    answers,
    fails_with,
    for_seconds,
    hangs,
    in_turn,
    rate_limit,
    refuses,
    secret_error,
    sns_error,
    works,
)
from tests.fakes.deliver_function import DeliverFunction, numbered_body
from tests.fakes.lambda_events import PK

HOUR_S, DAY_S = 3_600.0, 86_400.0
REPEAT = "(possible repeat)"
Step = Callable[[DeliverFunction], object]


@dataclass
class Case:
    """What services do, what happens before, and what is then done: a notice, until none waits."""

    slack: Behaviour = works
    sns: Behaviour = works
    of: str = "slack"
    count: int = 1
    before: Sequence[Step] = ()
    act: Sequence[Step] = ()
    channels: Sequence[str] = ("slack", "sns")

    def run(self) -> DeliverFunction:
        """The end of it."""
        delivery = DeliverFunction(self.slack, self.sns, self.channels)
        for step in (*self.before, *(self.act or (notify(self.of, count=self.count), run))):
            step(delivery)
        return delivery


run = DeliverFunction.run


def notify(channel: str = "slack", **numbers: int) -> Step:
    """New notices."""
    return lambda function: function.notify(channel, **numbers)


def put(body: str, *, age_s: float = 0) -> Step:
    """A message that was sent so long ago."""
    return lambda function: function.queues["slack"].put(body, age_s=age_s)


def move(seconds: float) -> Step:
    """Time passes."""
    return lambda function: function.clock.move(seconds)


def slack_is(behaviour: Behaviour) -> Step:
    """From now on."""
    return lambda function: setattr(function.services["slack"], "behaviour", behaviour)


def abandoned(letters: int = 1) -> Step:
    """So many lie in the dead letters, since Slack is gone."""

    def step(function: DeliverFunction) -> None:
        assert function.reasons() == ["channel_broken"] * letters

    return step


def _set(attribute: str, **changes: Any) -> Step:
    def step(function: DeliverFunction) -> None:
        for name, value in changes.items():
            setattr(getattr(function, attribute), name, value)

    return step


def with_secret(value: str | BaseException) -> Case:
    """Slack, with another secret, or none that can be read."""
    return Case(before=[_set("store", value=value)])


def failing(call: str, *errors: BaseException, slack: Behaviour = works) -> Case:
    """Slack, with a table or a secret whose next calls fail."""
    return Case(slack, before=[lambda function: function.faults.fail(call, *errors)])


def answer_lost(call: str, error: BaseException) -> Case:
    """Slack, with a table whose answer to a call is lost."""
    return Case(before=[lambda function: function.faults.lose_answer(call, error)])


def outage(call: str, error: Exception, since_s: float, until_s: float) -> Step:
    """A call fails between two times, in seconds since the beginning."""
    since, until = (NOON + timedelta(seconds=seconds) for seconds in (since_s, until_s))
    return lambda function: function.faults.outage(call, error, since, until)


def away(call: str, hours: float) -> Case:
    """The table does not answer to this for so many hours."""
    return Case(before=[outage(call, Unavailable("the table is away"), 0, hours * HOUR_S)])


def with_dead_letters(*errors: Exception) -> Case:
    """Slack is gone, and the next requests to the dead letters fail."""
    return Case(GONE, before=[_set("dead", errors=[*errors])])


def arriving(slack: Behaviour, count: int, every_s: float) -> Case:
    """Notices come one after the other."""

    def act(function: DeliverFunction) -> None:
        for number in range(1, count + 1):
            function.notify(first=number)
            function.run(until_s=every_s)
            function.clock.move(max(number * every_s - function.clock.age_s, 0))
        function.run()

    return Case(slack, act=[act])


def at_the_same_moment(ahead_s: float = 0) -> Case:
    """The second delivery begins while the first posts, by a clock that is ahead."""

    def begins(function: DeliverFunction) -> None:
        def behave(service: Service, text: str) -> Any:
            service.behaviour = works
            works(service, text)
            function.clock.move(ahead_s)
            function.notify()
            function.deliver_next("slack")
            function.clock.move(-ahead_s)
            return OK

        function.services["slack"].behaviour = behave

    return Case(before=[begins])


def posted_and_not_marked() -> Case:
    """It is done all the same; where SQS delivers it twice, the second says so."""

    def said(function: DeliverFunction) -> None:
        assert "posted, not marked" in str(function.report.lines)

    case = failing("mark_sent", Throttled("the table is busy"))
    return replace(case, act=[notify(), run, said, notify(), run])


def with_cached_webhook(*then: Step, old: bool = False) -> Case:
    """A notice before has read the webhook, or one that is revoked since."""
    value = WEBHOOK.replace("B0001", "B0000") if old else WEBHOOK
    begin = [_set("store", value=value), notify(first=99), run, DeliverFunction.reset_counts]
    return Case(act=[*begin, *then, notify(), run])


def only_this_one(behaviour: Behaviour) -> Case:
    """Notice 1 meets it; the others pass."""
    others: list[str] = []

    def behave(service: Service, text: str) -> Any:
        if text.endswith("notice 1"):
            return behaviour(service, text)
        others.append(text)
        return OK

    def five_passed(function: DeliverFunction) -> None:
        assert len(others) == 5
        function.report.counts["NoticesSent", "slack"] -= 5

    first_try = [notify(), lambda function: function.run(until_s=0)]
    return Case(behave, act=[*first_try, notify(first=2, count=5), run, five_passed])


def aged(days: float, behaviour: Behaviour = works) -> Case:
    """A notice that has waited so long."""
    return Case(behaviour, act=[put(numbered_body("slack", 1), age_s=days * DAY_S), run])


def redriven_after(days: float, then: Behaviour = works, *, letters: int = 1) -> Case:
    """Given up, left in the dead letters, and sent again."""
    begin = [notify(count=letters), run, abandoned(letters), move(days * DAY_S), slack_is(then)]
    return Case(GONE, act=[*begin, DeliverFunction.reset_counts, DeliverFunction.redrive, run])


def redriven_twice() -> Case:
    """Two copies of a dead letter come back."""

    def copied(function: DeliverFunction) -> None:
        [letter] = function.dead.messages.values()
        function.dead.put(letter.body)

    begin = [notify(), run, DeliverFunction.heal, DeliverFunction.reset_counts, copied]
    return Case(GONE, act=[*begin, DeliverFunction.redrive, run])


def redriven_after_it_was_sent() -> Case:
    """Another copy of it was, meanwhile."""
    begin = [notify(), run, DeliverFunction.heal, notify(), run, DeliverFunction.reset_counts]
    return Case(GONE, act=[*begin, DeliverFunction.redrive, run])


def malformed(*bodies: str) -> list[Case]:
    """Bodies that are no notices; they are not made to wait."""

    def no_wait(function: DeliverFunction) -> None:
        assert function.queues["slack"].waits_s == []

    return [Case(act=[put(body), run, no_wait]) for body in bodies]


def both(slack: Behaviour, sns: Behaviour = works, *, of: str = "slack", count: int = 1) -> Case:
    """Notices for each channel."""
    return Case(slack, sns, of, act=[notify(count=count), notify("sns", count=count), run])


def deaf_queue(function: DeliverFunction) -> None:
    """A message cannot be hidden."""
    function.queues["slack"].errors = [Unavailable("no answer")]


def damaged(function: DeliverFunction) -> None:
    """The row of the notice cannot be read."""
    function.ledger._leases[f"{PK}|1|slack"] = NO_LEASE


def slowly(service: Service, text: str) -> Any:
    """Under the time-out."""
    service.clock.move(8)
    return works(service, text)


def html() -> Behaviour:
    """A proxy's page."""
    return answers(200, "<html>Sign in to the network</html>", shown=True)


REFUSED = ChannelUnavailable("no connection (ConnectionRefusedError)")
NO_NAME = ChannelUnavailable("no connection (gaierror)")
NO_TLS = ChannelUnavailable("no secure connection (SSLCertVerificationError)")
CUT = PossiblySent("no answer came (ConnectionResetError)")
BUSY_SECRETS = secret_error("ThrottlingException")
GONE = answers(404, "no_service")
BUSY = answers(429, "rate_limited")
SILENT_SNS = ReadTimeoutError(endpoint_url="https://sns")


def once(*behaviours: Behaviour) -> Case:
    """Slack does these, and then works."""
    return Case(in_turn(*behaviours))


def on_sns(behaviour: Behaviour) -> Case:
    """SNS does the same each time."""
    return Case(sns=behaviour, of="sns")


def rollup(service: Service, text: str) -> Any:
    """A server's fault, after which it may have been posted."""
    return answers(500, "rollup_error", shown=True)(service, text)


UNKNOWN = (
    "unknown_outcome; 2 posted, 2 seen, 1 marked; DeliveryFailed 1, NotifyUnknown 1; redriven,"
    " 1 marked"
)
UNKNOWN_OF_40 = (
    "unknown_outcome; 67 posted, 67 seen, 27 marked; DeliveryFailed 27, NoticesSent 38,"
    " NotifyUnknown 2; redriven 2, 2 marked"
)
UNKNOWN_OF_60 = (
    "unknown_outcome; 120 posted, 120 seen, 60 marked; DeliveryFailed 60, NoticesSent 56,"
    " NotifyUnknown 4; redriven 4, 4 marked"
)


CASES = [
    pytest.param(
        "sent; 1 posted, 1 seen; NoticesSent 1",
        [
            Case(),
            Case(slowly),
            with_cached_webhook(move(600), outage("get_secret_value", BUSY_SECRETS, 600, 4_200)),
            Case(of="sns"),
            failing("get_secret_value", ProcessKilled()),
            away("mark_sent", 1),
            aged(4),
            redriven_after(6),
        ],
        id="a notice is sent once",
    ),
    pytest.param(
        "sent; 1 posted, 1 seen; DuplicateNotices 1, NoticesSent 1",
        [
            Case(act=[notify(), run, notify(), run]),
            at_the_same_moment(),
            redriven_twice(),
        ],
        id="the same notice comes twice, and is sent once",
    ),
    pytest.param(
        "sent; 2 posted, 1 seen; DeliveryFailed 1, NoticesSent 1",
        [
            once(answers(429, "rate_limited", retry_after="30")),
            once(answers(429, "rate_limited", retry_after="600")),
            once(BUSY),
            *(
                once(answers(429, "", retry_after=text))
                for text in ("soon", "-5", "Wed, 21 Oct 2026 07:28:00 GMT", "999999999", "\x00", "")
            ),
            Case(in_turn(answers(429, "rate_limited", retry_after="30")), before=[deaf_queue]),
        ],
        id="a busy service is asked again after the time that it names",
    ),
    pytest.param(
        "abandoned; 91 posted, 0 seen; Abandoned 1, DeliveryFailed 91, NotifyFailed 1; redriven",
        [
            Case(BUSY),
            on_sns(fails_with(sns_error("Throttled", 429))),
            *(
                on_sns(fails_with(sns_error(code, 403)))
                for code in ("ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch")
            ),
            redriven_after(6, BUSY),
        ],
        id="a service that is always busy is given up, after three and a half days of tries",
    ),
    pytest.param(
        "sent; 61 posted, 60 seen; DeliveryFailed 1, NoticesSent 60",
        [Case(rate_limit("30"), count=60)],
        id="60 notices to a service with a rate limit meet it once",
    ),
    pytest.param(
        "sent; 2 posted, 2 seen, 1 marked; DeliveryFailed 1, NoticesSent 1",
        [
            once(rollup),
            once(answers(503, "", shown=True, retry_after="120")),
            *(once(answers(status, "", shown=True)) for status in (408, 425)),
            once(hangs),
            once(fails_with(CUT, shown=True)),
            once(fails_with(PossiblySent("the answer is incomplete"), shown=True)),
            once(fails_with(PossiblySent("no answer came (BrokenPipeError)"), shown=True)),
            on_sns(in_turn(fails_with(SILENT_SNS, shown=True))),
        ],
        id="an answer that may come after the post is followed by a marked repeat",
    ),
    pytest.param(
        UNKNOWN,
        [
            Case(rollup),
            Case(answers(502, "<html>Bad gateway</html>", shown=True)),
            Case(in_turn(hangs, hangs)),
            Case(hangs),
            only_this_one(hangs),
            on_sns(fails_with(sns_error("InternalError", 500), shown=True)),
            on_sns(fails_with(ResponseParserError("not XML"), shown=True)),
        ],
        id="an outcome that stays unknown after one marked repeat is given up",
    ),
    pytest.param(
        UNKNOWN_OF_40,
        [arriving(for_seconds(DAY_S, rollup), 40, 2_160)],
        id="a day of unknown outcomes stops the channel, and few notices are repeated",
    ),
    pytest.param(
        "unexpected_answer; 1 posted, 1 seen; NotifyUnknown 1; redriven, 1 marked",
        [
            Case(html()),
            once(html()),
            *(Case(answers(200, body, shown=True)) for body in ("", "OK", '{"ok":false}', "okay")),
            *(Case(answers(s, "", shown=True)) for s in (201, 204)),
            Case(answers(200, "x" * 1_000, shown=True)),
        ],
        id="an answer that Slack never gives is no success",
    ),
    pytest.param(
        "redirected; 1 posted, 0 seen; NotifyFailed 1; redriven",
        [
            Case(answers(302, "", location="https://evil.example/")),
            Case(answers(302, "", location="http://169.254.169.254/")),
            *(Case(answers(s, "", location="https://x.example/")) for s in (307, 308)),
        ],
        id="a redirect is not followed",
    ),
    pytest.param(
        "channel_broken; 25 posted, 0 seen; NotifyFailed 25; redriven 25",
        [arriving(GONE, 25, 3 * DAY_S / 25)],
        id="a channel that is gone fails each notice once",
    ),
    pytest.param(
        "channel_broken; 1 posted, 0 seen; NotifyFailed 1; redriven",
        [
            Case(answers(410, "channel_is_archived")),
            Case(answers(403, "invalid_token")),
            Case(answers(403, "action_prohibited")),
            Case(answers(404, "channel_not_found")),
            *(Case(answers(status, "<html>")) for status in (401, 407)),
            on_sns(fails_with(sns_error("NotFound", 404))),
            both(GONE, works),
        ],
        id="a channel, a webhook or a topic that is gone is not tried again",
    ),
    pytest.param(
        "sent; 2 posted, 1 seen; NoticesSent 1",
        [with_cached_webhook(slack_is(in_turn(GONE)), _set("store", value=WEBHOOK), old=True)],
        id="a revoked webhook is read again",
    ),
    pytest.param(
        "refused; 1 posted, 0 seen; NotifyFailed 1; redriven",
        [
            *(only_this_one(answers(400, word)) for word in ("invalid_payload", "invalid_blocks")),
            *(Case(answers(status, "")) for status in (413, 414, 422, 451)),
            on_sns(fails_with(sns_error("InvalidParameter"))),
        ],
        id="what the service refuses is not tried again",
    ),
    pytest.param(
        "sent; 1 posted, 1 seen; DeliveryFailed 9, NoticesSent 1",
        [
            Case(for_seconds(3 * HOUR_S, refuses(REFUSED))),
            failing("claim_send", *[AccessDenied("dynamodb:PutItem", "no")] * 9),
        ],
        id="an outage of hours is waited for",
    ),
    pytest.param(
        "abandoned; 0 posted, 0 seen; Abandoned 1, DeliveryFailed 91, NotifyFailed 1; redriven",
        [
            Case(refuses(REFUSED)),
            Case(refuses(NO_TLS)),
            with_secret(ReadTimeoutError(endpoint_url="https://secretsmanager")),
        ],
        id="a service, or a secret, that cannot be reached for days is given up",
    ),
    pytest.param(
        "sent; 1 posted, 1 seen; DeliveryFailed 7, NoticesSent 1",
        [Case(for_seconds(HOUR_S, refuses(NO_NAME)))],
        id="a name that is not resolved for an hour is waited for",
    ),
    pytest.param(
        "sent; 1 posted, 1 seen; DeliveryFailed 1, NoticesSent 1",
        [
            once(refuses(ChannelUnavailable("no connection (TimeoutError)"))),
            failing("get_secret_value", ReadTimeoutError(endpoint_url="https://secretsmanager")),
            failing("claim_send", Throttled("later")),
        ],
        id="a short fault is tried again",
    ),
    pytest.param(
        "sent; 24 posted, 24 seen, 4 marked; DeliveryFailed 4, NoticesSent 20",
        [Case(for_seconds(120, hangs), count=20)],
        id="a hanging service gets few marked repeats",
    ),
    # the other channel's failures: one metric counts those of all
    pytest.param(
        "sent; 20 posted, 20 seen; DeliveryFailed 4, NoticesSent 20",
        [both(for_seconds(120, hangs), of="sns", count=20)],
        id="another channel's failures delay nothing, and are in the one metric of all",
    ),
    pytest.param(
        UNKNOWN_OF_60,
        [arriving(for_seconds(3 * DAY_S, hangs), 60, 3 * DAY_S / 60)],
        id="an outage of days with hanging answers repeats few of 60 notices",
    ),
    pytest.param(
        "secret_unusable; 0 posted, 0 seen; NotifyFailed 1; redriven",
        [
            with_secret(secret_error("ResourceNotFoundException")),
            *(
                with_secret(value)
                for value in (
                    "",
                    "s3cr3t is no URL",
                    WEBHOOK.replace("https", "http"),
                    "https://evil.example/services/T/B/s3cr3t",
                    WEBHOOK.replace("://", "://user:s3cr3t@"),
                    WEBHOOK.replace(".com", ".com:8443"),
                    json.dumps({"url": WEBHOOK}),
                    WEBHOOK.replace("B0001", "B\n0001"),
                )
            ),
            *(
                with_secret(secret_error(code))
                for code in ("DecryptionFailure", "KMSInvalidStateException")
            ),
        ],
        id="a secret that is no webhook is refused, and is never shown",
    ),
    pytest.param(
        "secret_denied; 0 posted, 0 seen; NotifyFailed 1; redriven",
        [with_secret(secret_error("AccessDeniedException"))],
        id="a secret that may not be read is reported as denied",
    ),
    pytest.param(
        "denied; 1 posted, 0 seen; NotifyFailed 1; redriven",
        [on_sns(fails_with(sns_error("AuthorizationError", 403)))],
        id="a topic that may not be published to is reported as denied",
    ),
    pytest.param(
        "key_unusable; 1 posted, 0 seen; NotifyFailed 1; redriven",
        [
            *(
                on_sns(fails_with(sns_error(code)))
                for code in ("KMSDisabled", "KMSAccessDenied", "KMSNotFound", "KMSOptInRequired")
            )
        ],
        id="a key that cannot be used is reported",
    ),
    pytest.param(
        "sent; 4 posted, 1 seen; DeliveryFailed 3, NoticesSent 1",
        [
            *(
                on_sns(in_turn(*[fails_with(sns_error(code, 429))] * 3))
                for code in ("Throttled", "KMSThrottling")
            )
        ],
        id="throttling of SNS or of its key is waited for",
    ),
    pytest.param(
        "sent; 1 posted, 1 seen, 1 marked; NoticesSent 1",
        [
            once(refuses(ProcessKilled())),
            Case(before=[damaged]),
        ],
        id="a function that is killed before its post posts with a mark",
    ),
    pytest.param(
        "sent; 2 posted, 2 seen, 1 marked; NoticesSent 1",
        [once(fails_with(ProcessKilled(), shown=True))],
        id="a function that is killed after its post repeats it with a mark",
    ),
    pytest.param(
        "unknown_outcome; 2 posted, 2 seen, 1 marked; NotifyUnknown 1; redriven, 1 marked",
        [
            Case(
                in_turn(
                    fails_with(ProcessKilled(), shown=True), fails_with(ProcessKilled(), shown=True)
                )
            )
        ],
        id="a function that is killed after its post twice is given up",
    ),
    pytest.param(
        "sent; 1 posted, 1 seen; DuplicateNotices 1",
        [answer_lost("mark_sent", ProcessKilled())],
        id="a mark whose answer is lost is a mark",
    ),
    pytest.param(
        "sent; 1 posted, 1 seen; DeliveryFailed 12, NoticesSent 1",
        [away("claim_send", 6)],
        id="a table that is away for hours is waited for",
    ),
    pytest.param(
        "sent; 1 posted, 1 seen, 1 marked; DeliveryFailed 1, NoticesSent 1",
        [answer_lost("claim_send", Unavailable("no answer"))],
        id="a lease whose answer is lost is posted with a mark",
    ),
    pytest.param(
        "channel_broken; 1 posted, 0 seen; NotifyFailed 1; redriven, 1 marked",
        [failing("mark_failed", Unavailable("no answer"), slack=GONE)],
        id="a failure that cannot be noted is redriven with a mark",
    ),
    pytest.param(
        "channel_broken; 2 posted, 0 seen; DeliveryFailed 1, NotifyFailed 2; redriven",
        [
            with_dead_letters(Throttled("later")),
            with_dead_letters(Unavailable("the answer was lost")),
        ],
        id="a dead letter that cannot be written is written at the next try",
    ),
    pytest.param(
        "channel_broken; 6 posted, 0 seen; DeliveryFailed 5, NotifyFailed 6; redriven",
        [with_dead_letters(*[Throttled("later")] * 5)],
        id="dead letters that cannot be written five times are written at the sixth try",
    ),
    pytest.param(
        "no reason; 0 posted, 0 seen; ; redriven",
        [failing("circuit", *(ProcessKilled() for _ in range(120)))],
        id="a function that is killed at every try leaves a dead letter without a reason",
    ),
    pytest.param(
        "abandoned; 1 posted, 0 seen; Abandoned 1, DeliveryFailed 1, NotifyFailed 1; redriven",
        [aged(3.5, BUSY)],
        id="a notice that is too old is tried once",
    ),
    pytest.param(
        "sent; 0 posted, 0 seen; DuplicateNotices 1",
        [redriven_after_it_was_sent()],
        id="a dead letter of what was sent meanwhile is not sent",
    ),
    pytest.param(
        "sent; 1015 posted, 1000 seen; DeliveryFailed 15, NoticesSent 1000",
        [redriven_after(0, rate_limit("30"), letters=1_000)],
        id="a thousand dead letters are redriven within the service's rate",
    ),
    pytest.param(
        "malformed_notice; 0 posted, 0 seen; RejectedEvents 1",
        [
            *malformed("{", "null", "[1]", '{"schema":1,"channel":"slack"}', "x" * 200_000),
            *malformed(numbered_body("sns", 1)),
            *malformed(numbered_body("slack", 1).replace('"schema": 1', '"schema": 2')),
        ],
        id="a body that is no notice is rejected",
    ),
    pytest.param(
        "no_channel; 0 posted, 0 seen; NotifyFailed 1",
        [Case(channels=("sns",))],
        id="a channel that no longer exists is not posted to",
    ),
    pytest.param(
        "channel_broken key_unusable; 1 posted, 0 seen; NotifyFailed 1; redriven",
        [both(GONE, fails_with(sns_error("KMSDisabled")))],
        id="two channels fail for their own reasons",
    ),
    pytest.param(
        "sent; 2 posted, 2 seen, 1 marked; NoticesSent 2",
        [
            posted_and_not_marked(),
            at_the_same_moment(ahead_s=300),
        ],
        id="a notice that was posted and not marked is repeated with a mark",
    ),
]
"""What cases come to: `sent` or reasons; posts; what is seen; counts; the redrive."""


@pytest.mark.parametrize(("outcome", "cases"), CASES)
def test_deliveries_come_to_this(outcome: str, cases: Sequence[Case]) -> None:
    """When the cause is gone, one redrive sends what is in the dead letters, marked or not."""
    for place, case in enumerate(cases):
        delivery = case.run()
        check_always(delivery)
        assert (place, summary(delivery, case.of)) == (place, outcome)
        check_always(delivery)


def summary(delivery: DeliverFunction, row_channel: str) -> str:
    """What the row's channel, the dead letters and the counts say."""
    service = delivery.services[row_channel]
    assert not any(queue.messages for queue in delivery.queues.values())
    reasons = sorted(set(delivery.reasons()))
    seen = f"{len(service.shown)} seen{_marked(service.shown)}"
    counts = sorted(
        f"{name} {count}"
        for (name, channel), count in delivery.report.counts.items()
        if channel in (None, row_channel) and count
    )
    parts = [" ".join(reason or "no reason" for reason in reasons) or "sent"]
    parts += [f"{service.posts} posted, {seen}", ", ".join(counts)]
    if reasons and not {"malformed_notice", "no_channel"} & {*reasons}:
        delivery.heal()
        before, letters = len(service.shown), len(delivery.dead.messages)
        assert delivery.redrive() == letters
        delivery.run()
        assert not delivery.dead.messages
        shown = service.shown[before:]
        number = "" if len(shown) == 1 else f" {len(shown)}"
        parts.append(f"redriven{number}{_marked(shown)}")
    return "; ".join(parts)


def _marked(shown: Sequence[str]) -> str:
    marked = sum(REPEAT in text for text in shown)
    return f", {marked} marked" if marked else ""


def check_always(delivery: DeliverFunction) -> None:
    """No copy but the first is unmarked; every dead letter says why; no secret is told."""
    for service in delivery.services.values():
        unmarked = [text for text in service.shown if REPEAT not in text]
        assert len(unmarked) == len(set(unmarked))
        marked = [text.partition(REPEAT)[2].strip() for text in service.shown if REPEAT in text]
        for text in set(marked) & {step_text.strip() for step_text in unmarked}:
            assert service.shown.index(text) < service.shown.index(f"{REPEAT} {text}")
    for attributes in delivery.dead.attributes():
        if attributes:
            assert re.fullmatch(r"[a-z_]+", attributes["reason"])
            assert attributes["why"]
            assert int(attributes["first-sent"]) > 0
    outputs = f"{delivery.report.lines} {delivery.dead.attributes()}"
    assert "s3cr3t" not in outputs
    assert "evil.example" not in outputs
    assert "<html" not in outputs
