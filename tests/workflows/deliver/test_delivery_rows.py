"""What a channel, a secret, a table or a queue may do to a notice, and what it comes to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.parsers import ResponseParserError

from sageaudit.adapters.history.dynamo.send_ledger import NO_LEASE
from sageaudit.errors import AccessDenied, ChannelUnavailable, MaybeSent, Throttled, Unavailable
from tests.fakes.delivering import PK, Clock, Killed
from tests.fakes.memory_ledger import MemorySendLedger
from tests.fakes.notices_queues import Delivery, hours, numbered_body
from tests.fakes.services import (
    WEBHOOK,
    Behaviour,
    Service,
    Store,
    answers,
    bucket,
    first,
    hangs,
    refuses,
    says,
    secret_error,
    slack_channel,
    sns_channel,
    sns_error,
    until,
    works,
)

DAY_S = 86_400.0
REPEAT = "(possible repeat)"


class FaultyLedger(MemorySendLedger):
    """`faults`: by method, what is raised before each call; `lost`: after it had its effect."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, list[BaseException]] = {}
        self.lost: dict[str, list[BaseException]] = {}
        self.away_until_s: dict[str, float] = {}
        self.clock: Callable[[], float] = lambda: 0.0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found) or name in ("state", "clock"):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.clock() < self.away_until_s.get(name, 0):
                raise Unavailable("the table is away")
            if before := self.faults.get(name):
                raise before.pop(0)
            answer = found(*args, **kwargs)
            if after := self.lost.get(name):
                raise after.pop(0)
            return answer

        return call


@dataclass
class World:
    """A deployment and what its services do. `act` runs it; by default until nothing waits."""

    slack: Behaviour = works
    sns: Behaviour = works
    channel: str = "slack"
    count: int = 1
    act: Callable[[World], None] | None = None
    clock: Clock = field(default_factory=Clock)
    ledger: FaultyLedger = field(default_factory=FaultyLedger)
    channels: Sequence[str] = ("slack", "sns")

    def __post_init__(self) -> None:
        self.services = {
            "slack": Service(self.clock, self.slack),
            "sns": Service(self.clock, self.sns),
        }
        self.store = Store(self.clock)
        connected = {
            "slack": slack_channel(self.services["slack"], self.store),
            "sns": sns_channel(self.services["sns"]),
        }
        self.ledger.clock = lambda: self.services["slack"].age_s
        self.delivery = Delivery(
            {name: connected[name] for name in self.channels}, self.ledger, self.clock
        )

    @property
    def service(self) -> Service:
        """The one that the row is about."""
        return self.services[self.channel]

    def run(self) -> None:
        """As the row says."""
        if self.act is not None:
            self.act(self)
        else:
            self.delivery.notify(self.channel, count=self.count)
            self.delivery.run()

    def heal(self) -> None:
        """Everything works again."""
        for service in self.services.values():
            service.heals()
        self.store.heals()
        for plan in (self.ledger.faults, self.ledger.lost, self.ledger.away_until_s):
            plan.clear()
        self.delivery.dead.faults.clear()


def arriving(count: int, every_s: float) -> Callable[[World], None]:
    """Notices come one after the other."""

    def act(world: World) -> None:
        for number in range(1, count + 1):
            world.delivery.notify(world.channel, first=number)
            world.delivery.run(until_s=every_s)
            left = number * every_s - world.services["slack"].age_s
            world.clock.move(max(left, 0))
        world.delivery.run()

    return act


def with_store(**changes: Any) -> World:
    """Slack, with another secret."""
    world = World()
    for name, value in changes.items():
        setattr(world.store, name, value)
    return world


def with_ledger(slack: Behaviour = works, **faults: list[BaseException]) -> World:
    """Slack, with a table that fails before these calls."""
    world = World(slack)
    world.ledger.faults.update(faults)
    return world


def with_lost(**faults: list[BaseException]) -> World:
    """Slack, with a table whose answers to these calls are lost."""
    world = World()
    world.ledger.lost.update(faults)
    return world


def twice_after_it_was_sent(world: World) -> None:
    """SQS delivers it again."""
    world.delivery.notify()
    world.delivery.run()
    world.delivery.notify()
    world.delivery.run()


def twice_at_the_same_moment() -> World:
    """The second delivery begins while the first posts."""

    def behave(service: Service, text: str) -> Any:
        if service.posts == 0:
            service.behaviour = works
            queue = world.delivery.queues["slack"]
            queue.put(numbered_body("slack", 1))
            world.delivery.deliver_next(queue)
        return works(service, text)

    world = World(behave)
    return world


def clock_ahead() -> World:
    """The second delivery runs on a machine whose clock is five minutes ahead."""

    def behave(service: Service, text: str) -> Any:
        if service.posts == 0:
            service.behaviour = works
            works(service, text)
            queue = world.delivery.queues["slack"]
            world.clock.move(300)
            queue.put(numbered_body("slack", 1))
            world.delivery.deliver_next(queue)
            world.clock.move(-300)
            return answers(200, "ok")(Service(world.clock, works), text)
        return works(service, text)

    world = World(behave)
    return world


def rotated() -> World:
    """The cached webhook is revoked; the stored one works."""
    old = WEBHOOK.replace("B0001", "B0000")
    world = World(first(answers(404, "no_service")))

    def act(one: World) -> None:
        one.store.value = old
        slack_first = one.services["slack"].behaviour
        one.services["slack"].behaviour = works
        one.delivery.notify(first=99)
        one.delivery.run()
        one.services["slack"].posts, one.services["slack"].shown[:] = 0, []
        one.delivery.counts.clear()
        one.services["slack"].behaviour = slack_first
        one.store.value = WEBHOOK
        one.delivery.notify()
        one.delivery.run()

    world.act = act
    return world


def secret_throttled() -> World:
    """For an hour, when the cached webhook is older than its time."""

    def act(one: World) -> None:
        one.delivery.notify(first=99)
        one.delivery.run()
        one.services["slack"].posts, one.services["slack"].shown[:] = 0, []
        one.delivery.counts.clear()
        one.clock.move(600)
        one.store.failing_from_s, one.store.failing_until_s = 600.0, 4_200.0
        one.delivery.notify()
        one.delivery.run()

    return World(act=act)


def only_this_one(behaviour: Behaviour) -> World:
    """Notice 1 meets it; the others pass."""

    def behave(service: Service, text: str) -> Any:
        if text.endswith("notice 1"):
            return behaviour(service, text)
        others.append(text)
        return service.clock and answers(200, "ok")(Service(service.clock, works), text)

    def act(one: World) -> None:
        one.delivery.notify(count=1)
        one.delivery.run(until_s=0)
        one.delivery.notify(first=2, count=5)
        one.delivery.run()
        assert len(others) == 5
        one.delivery.counts["NoticesSent", "slack"] -= 5

    others: list[str] = []
    return World(behave, act=act)


def aged(days: float, behaviour: Behaviour = works) -> World:
    """A notice that has waited so long."""

    def act(one: World) -> None:
        one.delivery.queues["slack"].put(numbered_body("slack", 1), age_s=days * DAY_S)
        one.delivery.run()

    return World(behaviour, act=act)


def redriven_after(days: float, then: Behaviour = works) -> World:
    """Given up, left in the dead letters, and sent again."""

    def act(one: World) -> None:
        one.delivery.notify()
        one.delivery.run()
        assert one.delivery.reasons() == ["channel_broken"]
        one.clock.move(days * DAY_S)
        one.services["slack"].behaviour, one.services["slack"].posts = then, 0
        one.delivery.counts.clear()
        one.delivery.redrive()
        one.delivery.run()

    return World(answers(404, "no_service"), act=act)


def redriven_twice(copies: int, *, meanwhile_sent: bool = False) -> World:
    """More than one copy of a dead letter comes back."""

    def act(one: World) -> None:
        one.delivery.notify()
        one.delivery.run()
        one.heal()
        if meanwhile_sent:
            one.delivery.queues["slack"].put(numbered_body("slack", 1))
            one.delivery.run()
        one.services["slack"].posts = 0
        one.delivery.counts.clear()
        one.delivery.dead.letters *= copies
        one.delivery.redrive()
        one.delivery.run()
        if meanwhile_sent:
            one.services["slack"].shown.clear()

    return World(answers(404, "no_service"), act=act)


def many_redriven() -> World:
    """A thousand, to a Slack that takes one a second."""

    def act(one: World) -> None:
        one.delivery.notify(count=1_000)
        one.delivery.run()
        assert len(one.delivery.dead.letters) == 1_000
        one.services["slack"].behaviour = bucket("30")
        one.services["slack"].posts = 0
        one.delivery.counts.clear()
        one.delivery.redrive()
        one.delivery.run()

    return World(answers(404, "no_service"), act=act)


def malformed(*bodies: str) -> list[World]:
    """Bodies that are no notices; the next one is delivered."""

    def acting(body: str) -> Callable[[World], None]:
        def act(one: World) -> None:
            one.delivery.queues["slack"].put(body)
            one.delivery.run()
            assert one.delivery.queues["slack"].waits_s == []

        return act

    return [World(act=acting(body)) for body in bodies]


def both(slack: Behaviour, sns: Behaviour) -> World:
    """A notice for each channel."""

    def act(one: World) -> None:
        one.delivery.notify("slack")
        one.delivery.notify("sns")
        one.delivery.run()

    return World(slack, sns, act=act)


def hang_beside_sns() -> World:
    """Twenty notices each; SNS has its own as soon as without the hang."""

    def act(one: World) -> None:
        one.delivery.notify("slack", count=20)
        one.delivery.notify("sns", count=20)
        one.delivery.run()

    return World(until(120, hangs), channel="sns", act=act)


def crashes(world: World) -> None:
    """The process ends at each delivery."""
    world.ledger.faults["circuit"] = [Killed() for _ in range(120)]
    world.delivery.notify()
    world.delivery.run()


def lost_letter(letters: int) -> World:
    """So many dead letters cannot be sent."""
    world = World(answers(404, "no_service"))
    world.delivery.dead.faults = [Throttled("later") for _ in range(letters)]
    return world


def lost_answer() -> World:
    """The dead letter is sent, and the answer lost."""
    world = World(answers(404, "no_service"))
    world.delivery.dead.lost_answers = 1
    return world


def deaf_queue() -> World:
    """A message cannot be hidden."""
    world = World(first(answers(429, "rate_limited", retry_after="30")))
    world.delivery.queues["slack"].faults = [Unavailable("no answer")]
    return world


def damaged() -> World:
    """The row of the notice cannot be read."""
    world = World()
    world.ledger._leases[f"{PK}|1|slack"] = NO_LEASE
    return world


def away(method: str, number: float) -> World:
    """The table does not answer to this for so many hours."""
    world = World()
    world.ledger.away_until_s[method] = hours(number)
    return world


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
CUT = MaybeSent("no answer came (ConnectionResetError)")
GONE = answers(404, "no_service")
BUSY = answers(429, "rate_limited")
SILENT_SNS = ReadTimeoutError(endpoint_url="https://sns")


def once(*behaviours: Behaviour) -> World:
    """Slack does these, and then works."""
    return World(first(*behaviours))


def on_sns(behaviour: Behaviour) -> World:
    """SNS does the same each time."""
    return World(sns=behaviour, channel="sns")


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


def worlds() -> Mapping[str, Sequence[World]]:
    """By what they come to: `sent` or reasons; posts; what is seen; counts; the redrive."""
    return {
        "sent; 1 posted, 1 seen; NoticesSent 1": [
            World(),
            World(slowly),
            secret_throttled(),
            World(channel="sns"),
            with_store(faults=[Killed()]),
            away("mark_sent", 1),
            aged(4),
            redriven_after(6),
        ],
        "sent; 1 posted, 1 seen; DuplicateNotices 1, NoticesSent 1": [
            World(act=twice_after_it_was_sent),
            twice_at_the_same_moment(),
            redriven_twice(2),
        ],
        "sent; 2 posted, 1 seen; DeliveryFailed 1, NoticesSent 1": [
            once(answers(429, "rate_limited", retry_after="30")),
            once(answers(429, "rate_limited", retry_after="600")),
            once(BUSY),
            *(
                once(answers(429, "", retry_after=text))
                for text in ("soon", "-5", "Wed, 21 Oct 2026 07:28:00 GMT", "999999999", "\x00", "")
            ),
            deaf_queue(),
        ],
        "gave_up; 91 posted, 0 seen; DeliveryFailed 91, GivenUp 1, NotifyFailed 1; redriven": [
            World(BUSY),
            on_sns(says(sns_error("Throttled", 429))),
            *(
                on_sns(says(sns_error(code, 403)))
                for code in ("ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch")
            ),
            redriven_after(6, BUSY),
        ],
        "sent; 61 posted, 60 seen; DeliveryFailed 1, NoticesSent 60": [
            World(bucket("30"), count=60),
        ],
        "sent; 2 posted, 2 seen, 1 marked; DeliveryFailed 1, NoticesSent 1": [
            once(rollup),
            once(answers(503, "", shown=True, retry_after="120")),
            *(once(answers(status, "", shown=True)) for status in (408, 425)),
            once(hangs),
            once(says(CUT, shown=True)),
            once(says(MaybeSent("half an answer came"), shown=True)),
            once(says(MaybeSent("no answer came (BrokenPipeError)"), shown=True)),
            on_sns(first(says(SILENT_SNS, shown=True))),
        ],
        UNKNOWN: [
            World(rollup),
            World(answers(502, "<html>Bad gateway</html>", shown=True)),
            World(first(hangs, hangs)),
            World(hangs),
            only_this_one(hangs),
            on_sns(says(sns_error("InternalError", 500), shown=True)),
            on_sns(says(ResponseParserError("not XML"), shown=True)),
        ],
        UNKNOWN_OF_40: [
            World(until(DAY_S, rollup), act=arriving(40, 2_160)),
        ],
        "unexpected_answer; 1 posted, 1 seen; NotifyUnknown 1; redriven, 1 marked": [
            World(html()),
            once(html()),
            *(World(answers(200, body, shown=True)) for body in ("", "OK", '{"ok":false}', "okay")),
            *(World(answers(s, "", shown=True)) for s in (201, 204)),
            World(answers(200, "x" * 1_000, shown=True)),
        ],
        "redirected; 1 posted, 0 seen; NotifyFailed 1; redriven": [
            World(answers(302, "", location="https://evil.example/")),
            World(answers(302, "", location="http://169.254.169.254/")),
            *(World(answers(s, "", location="https://x.example/")) for s in (307, 308)),
        ],
        "channel_broken; 25 posted, 0 seen; NotifyFailed 25; redriven 25": [
            World(GONE, act=arriving(25, 3 * DAY_S / 25)),
        ],
        "channel_broken; 1 posted, 0 seen; NotifyFailed 1; redriven": [
            World(answers(410, "channel_is_archived")),
            World(answers(403, "invalid_token")),
            World(answers(403, "action_prohibited")),
            World(answers(404, "channel_not_found")),
            *(World(answers(status, "<html>")) for status in (401, 407)),
            on_sns(says(sns_error("NotFound", 404))),
            both(GONE, works),
        ],
        "sent; 2 posted, 1 seen; NoticesSent 1": [
            rotated(),
        ],
        "refused; 1 posted, 0 seen; NotifyFailed 1; redriven": [
            *(only_this_one(answers(400, word)) for word in ("invalid_payload", "invalid_blocks")),
            *(World(answers(status, "")) for status in (413, 414, 422, 451)),
            on_sns(says(sns_error("InvalidParameter"))),
        ],
        "sent; 1 posted, 1 seen; DeliveryFailed 9, NoticesSent 1": [
            World(until(hours(3), refuses(REFUSED))),
            with_ledger(claim_send=[AccessDenied("dynamodb:PutItem", "no")] * 9),
        ],
        "gave_up; 0 posted, 0 seen; DeliveryFailed 91, GivenUp 1, NotifyFailed 1; redriven": [
            World(refuses(REFUSED)),
            World(refuses(NO_TLS)),
            with_store(value=ReadTimeoutError(endpoint_url="https://secretsmanager")),
        ],
        "sent; 1 posted, 1 seen; DeliveryFailed 7, NoticesSent 1": [
            World(until(hours(1), refuses(NO_NAME))),
        ],
        "sent; 1 posted, 1 seen; DeliveryFailed 1, NoticesSent 1": [
            once(refuses(ChannelUnavailable("no connection (TimeoutError)"))),
            with_store(faults=[ReadTimeoutError(endpoint_url="https://secretsmanager")]),
            with_ledger(claim_send=[Throttled("later")]),
        ],
        "sent; 24 posted, 24 seen, 4 marked; DeliveryFailed 4, NoticesSent 20": [
            World(until(120, hangs), count=20),
        ],
        "sent; 20 posted, 20 seen; NoticesSent 20": [
            hang_beside_sns(),
        ],
        UNKNOWN_OF_60: [
            World(until(3 * DAY_S, hangs), act=arriving(60, 3 * DAY_S / 60)),
        ],
        "secret_unusable; 0 posted, 0 seen; NotifyFailed 1; redriven": [
            with_store(value=secret_error("ResourceNotFoundException")),
            *(
                with_store(value=value)
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
                with_store(value=secret_error(code))
                for code in ("DecryptionFailure", "KMSInvalidStateException")
            ),
        ],
        "secret_denied; 0 posted, 0 seen; NotifyFailed 1; redriven": [
            with_store(value=secret_error("AccessDeniedException")),
        ],
        "denied; 1 posted, 0 seen; NotifyFailed 1; redriven": [
            on_sns(says(sns_error("AuthorizationError", 403))),
        ],
        "key_unusable; 1 posted, 0 seen; NotifyFailed 1; redriven": [
            *(
                on_sns(says(sns_error(code)))
                for code in ("KMSDisabled", "KMSAccessDenied", "KMSNotFound", "KMSOptInRequired")
            ),
        ],
        "sent; 4 posted, 1 seen; DeliveryFailed 3, NoticesSent 1": [
            *(
                on_sns(first(*[says(sns_error(code, 429))] * 3))
                for code in ("Throttled", "KMSThrottling")
            ),
        ],
        "sent; 1 posted, 1 seen, 1 marked; NoticesSent 1": [
            once(refuses(Killed())),
            damaged(),
        ],
        "sent; 2 posted, 2 seen, 1 marked; NoticesSent 1": [
            once(says(Killed(), shown=True)),
        ],
        "unknown_outcome; 2 posted, 2 seen, 1 marked; NotifyUnknown 1; redriven, 1 marked": [
            World(first(says(Killed(), shown=True), says(Killed(), shown=True))),
        ],
        "sent; 1 posted, 1 seen; DuplicateNotices 1": [
            with_lost(mark_sent=[Killed()]),
        ],
        "sent; 1 posted, 1 seen; DeliveryFailed 12, NoticesSent 1": [
            away("claim_send", 6),
        ],
        "sent; 1 posted, 1 seen, 1 marked; DeliveryFailed 1, NoticesSent 1": [
            with_lost(claim_send=[Unavailable("no answer")]),
        ],
        "channel_broken; 1 posted, 0 seen; NotifyFailed 1; redriven, 1 marked": [
            with_ledger(GONE, mark_failed=[Unavailable("no answer")]),
        ],
        "channel_broken; 2 posted, 0 seen; DeliveryFailed 1, NotifyFailed 2; redriven": [
            lost_letter(1),
            lost_answer(),
        ],
        "channel_broken; 6 posted, 0 seen; DeliveryFailed 5, NotifyFailed 6; redriven": [
            lost_letter(5),
        ],
        "no reason; 0 posted, 0 seen; ; redriven": [
            World(act=crashes),
        ],
        "gave_up; 1 posted, 0 seen; DeliveryFailed 1, GivenUp 1, NotifyFailed 1; redriven": [
            aged(3.5, BUSY),
        ],
        "sent; 0 posted, 0 seen; DuplicateNotices 1": [
            redriven_twice(1, meanwhile_sent=True),
        ],
        "sent; 1015 posted, 1000 seen; DeliveryFailed 15, NoticesSent 1000": [
            many_redriven(),
        ],
        "malformed_notice; 0 posted, 0 seen; RejectedEvents 1": [
            *malformed("{", "null", "[1]", '{"schema":1,"channel":"slack"}', "x" * 200_000),
            *malformed(numbered_body("sns", 1)),
            *malformed(numbered_body("slack", 1).replace('"schema": 1', '"schema": 2')),
        ],
        "no_channel; 0 posted, 0 seen; NotifyFailed 1": [
            World(channels=("sns",)),
        ],
        "channel_broken key_unusable; 1 posted, 0 seen; NotifyFailed 1; redriven": [
            both(GONE, says(sns_error("KMSDisabled"))),
        ],
        "sent; 2 posted, 2 seen, 1 marked; NoticesSent 2": [
            clock_ahead(),
        ],
    }


OUTCOMES = tuple(worlds())


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_deliveries_come_to_this(outcome: str) -> None:
    """When the cause is gone, one redrive sends what is in the dead letters, marked or not."""
    for place, world in enumerate(worlds()[outcome]):
        world.run()
        check_always(world)
        assert (place, summary(world)) == (place, outcome)
        check_always(world)


def summary(world: World) -> str:
    """What the row's channel, the dead letters and the counts say."""
    service, delivery = world.service, world.delivery
    assert delivery.waiting("slack") == delivery.waiting("sns") == 0
    reasons = sorted(set(delivery.reasons()))
    seen = f"{len(service.shown)} seen{_marked(service.shown)}"
    counts = sorted(
        f"{name} {count}"
        for (name, channel), count in delivery.counts.items()
        if channel in (None, world.channel) and count
    )
    parts = [" ".join(reason or "no reason" for reason in reasons) or "sent"]
    parts += [f"{service.posts} posted, {seen}", ", ".join(counts)]
    if reasons and not {"malformed_notice", "no_channel"} & {*reasons}:
        world.heal()
        before, letters = len(service.shown), len(delivery.dead.letters)
        assert delivery.redrive() == letters
        delivery.run()
        assert not delivery.dead.letters
        shown = service.shown[before:]
        number = "" if len(shown) == 1 else f" {len(shown)}"
        parts.append(f"redriven{number}{_marked(shown)}")
    return "; ".join(parts)


def _marked(shown: Sequence[str]) -> str:
    marked = sum(REPEAT in text for text in shown)
    return f", {marked} marked" if marked else ""


def check_always(world: World) -> None:
    """No copy but the first is unmarked; every dead letter says why; no secret is told."""
    for service in world.services.values():
        unmarked = [text for text in service.shown if REPEAT not in text]
        assert len(unmarked) == len(set(unmarked))
        marked = [text.partition(REPEAT)[2].strip() for text in service.shown if REPEAT in text]
        for text in set(marked) & {one.strip() for one in unmarked}:
            assert service.shown.index(text) < service.shown.index(f"{REPEAT} {text}")
    for _, attributes in world.delivery.dead.letters:
        if attributes:
            assert re.fullmatch(r"[a-z_]+", attributes["reason"])
            assert attributes["why"]
            assert int(attributes["first-sent"]) > 0
    told = f"{world.delivery.texts} {[a for _, a in world.delivery.dead.letters]}"
    assert "s3cr3t" not in told
    assert "evil.example" not in told
    assert "<html" not in told
