"""What a channel, a secret, a table or a queue may do to a notice: each row of the scenarios.

The rows say how often a notice may be posted and seen, where it stands at the end, what is counted,
and what a redrive does. They were written from facts alone, before the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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

ROWS = {
    row["id"]: row
    for row in map(
        json.loads,
        Path(__file__).with_name("deliveries.jsonl").read_text("utf-8").splitlines(),
    )
}
DAY_S = 86_400.0
REPEAT = "(possible repeat)"

WORDS = {
    "too-old": {"gave_up"},
    "unknown-outcome": {"unknown_outcome"},
    "unexpected-answer": {"unexpected_answer"},
    "redirected": {"redirected"},
    "channel-broken": {"channel_broken"},
    "refused": {"refused"},
    "secret-missing": {"secret_unusable"},
    "secret-denied": {"secret_denied"},
    "secret-invalid": {"secret_unusable"},
    "secret-unreachable": {"gave_up"},
    "key-disabled": {"key_unusable", "secret_unusable"},
    "denied": {"denied"},
    "malformed": {"malformed_notice"},
    "channel-off": {"no_channel"},
    "by maxReceiveCount": {""},
}
"""The rows suggest words for the reasons; these are ours."""

ELSEWHERE = {
    "D74": "the SDK repeats the write: tests/integration/test_deliver.py",
    "D89": "a command: tests/cli/test_redrive.py",
}
DIFFERS = {
    "D46": "a notice that timed out is posted again, marked: up to 2 posts each, not 1",
    "D65": "`posts <= 3` and `too old when for ever` exclude each other: tried for 3.5 days",
    "D69": "a process that was killed counts nothing, so only its second delivery is counted",
    "D77": "a damaged row is no Defects: it reads as an unknown outcome, and the claim mends it",
    "D78": "while no dead letter can be sent, the notice is tried again: posts that nobody sees",
    "D81": "a process that ends counts nothing: Lambda's own Errors do",
    "D90": "one message each, not a digest",
    "D91": "counted as RejectedEvents, the metric of all refused messages",
    "D93": "counted as RejectedEvents",
    "D94": "counted as RejectedEvents",
    "D97": "a broken channel is known by its answer to a post: one each, seen by nobody",
    "D98": "two posts, of which the second is marked, are counted as two",
}
"""Where we answer otherwise, or the row cannot hold as it stands."""


POSTS = {"D46": 120, "D65": 100, "D78": 6, "D97": 1}
"""Our bound of posts, and of copies, where the row's cannot hold."""


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
    healed: bool = False

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
        self.healed = True
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


def for_ever(behaviour: Behaviour) -> World:
    """Slack does the same each time."""
    return World(behaviour)


def once(*behaviours: Behaviour) -> World:
    """Slack does these, and then works."""
    return World(first(*behaviours))


def on_sns(behaviour: Behaviour) -> World:
    """SNS does the same each time."""
    return World(sns=behaviour, channel="sns")


def rollup(service: Service, text: str) -> Any:
    """A server's fault, after which it may have been posted."""
    return answers(500, "rollup_error", shown=True)(service, text)


WORLDS: dict[str, Callable[[], World | list[World]]] = {
    "D01": World,
    "D02": lambda: World(slowly),
    "D03": lambda: World(act=twice_after_it_was_sent),
    "D04": twice_at_the_same_moment,
    "D05": lambda: once(answers(429, "rate_limited", retry_after="30")),
    "D06": lambda: once(answers(429, "rate_limited", retry_after="600")),
    "D07": lambda: once(BUSY),
    "D08": lambda: [
        once(answers(429, "", retry_after=text))
        for text in ("soon", "-5", "Wed, 21 Oct 2026 07:28:00 GMT", "999999999", "\x00", "")
    ],
    "D09": lambda: for_ever(BUSY),
    "D10": lambda: World(bucket("30"), count=60),
    "D11": lambda: once(rollup),
    "D12": lambda: for_ever(rollup),
    "D13": lambda: for_ever(answers(502, "<html>Bad gateway</html>", shown=True)),
    "D14": lambda: once(answers(503, "", shown=True, retry_after="120")),
    "D15": lambda: World(until(DAY_S, rollup), act=arriving(40, 2_160)),
    "D16": lambda: for_ever(html()),
    "D17": lambda: once(html()),
    "D18": lambda: [
        for_ever(answers(200, body, shown=True)) for body in ("", "OK", '{"ok":false}', "okay")
    ],
    "D19": lambda: for_ever(answers(302, "", location="https://evil.example/")),
    "D20": lambda: for_ever(answers(302, "", location="http://169.254.169.254/")),
    "D21": lambda: [for_ever(answers(s, "", location="https://x.example/")) for s in (307, 308)],
    "D22": lambda: [for_ever(answers(s, "", shown=True)) for s in (201, 204)],
    "D23": lambda: World(GONE, act=arriving(25, 3 * DAY_S / 25)),
    "D24": lambda: for_ever(answers(410, "channel_is_archived")),
    "D25": lambda: for_ever(answers(403, "invalid_token")),
    "D26": lambda: [
        for_ever(answers(403, "action_prohibited")),
        for_ever(answers(404, "channel_not_found")),
    ],
    "D27": rotated,
    "D28": lambda: [
        only_this_one(answers(400, word)) for word in ("invalid_payload", "invalid_blocks")
    ],
    "D29": lambda: [for_ever(answers(status, "")) for status in (413, 414, 422, 451)],
    "D30": lambda: [for_ever(answers(status, "<html>")) for status in (401, 407)],
    "D31": lambda: [once(answers(status, "", shown=True)) for status in (408, 425)],
    "D32": lambda: World(until(hours(3), refuses(REFUSED))),
    "D33": lambda: for_ever(refuses(REFUSED)),
    "D34": lambda: World(until(hours(1), refuses(NO_NAME))),
    "D35": lambda: for_ever(refuses(NO_TLS)),
    "D36": lambda: once(refuses(ChannelUnavailable("no connection (TimeoutError)"))),
    "D37": lambda: once(hangs),
    "D38": lambda: World(first(hangs, hangs)),
    "D39": lambda: once(says(CUT, shown=True)),
    "D40": lambda: once(says(MaybeSent("half an answer came"), shown=True)),
    "D41": lambda: once(says(MaybeSent("no answer came (BrokenPipeError)"), shown=True)),
    "D42": lambda: for_ever(hangs),
    "D43": lambda: for_ever(answers(200, "x" * 1_000, shown=True)),
    "D44": lambda: World(until(120, hangs), count=20),
    "D45": hang_beside_sns,
    "D46": lambda: World(until(3 * DAY_S, hangs), act=arriving(60, 3 * DAY_S / 60)),
    "D47": lambda: only_this_one(hangs),
    "D48": lambda: with_store(value=secret_error("ResourceNotFoundException")),
    "D49": lambda: with_store(value=secret_error("AccessDeniedException")),
    "D50": lambda: with_store(value=ReadTimeoutError(endpoint_url="https://secretsmanager")),
    "D51": lambda: with_store(faults=[ReadTimeoutError(endpoint_url="https://secretsmanager")]),
    "D52": secret_throttled,
    "D53": lambda: [
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
    ],
    "D54": lambda: [
        with_store(value=secret_error(code))
        for code in ("DecryptionFailure", "KMSInvalidStateException")
    ],
    "D55": lambda: World(channel="sns"),
    "D56": lambda: on_sns(says(sns_error("AuthorizationError", 403))),
    "D57": lambda: on_sns(says(sns_error("NotFound", 404))),
    "D58": lambda: [
        on_sns(says(sns_error(code)))
        for code in ("KMSDisabled", "KMSAccessDenied", "KMSNotFound", "KMSOptInRequired")
    ],
    "D59": lambda: [
        on_sns(first(*[says(sns_error(code, 429))] * 3)) for code in ("Throttled", "KMSThrottling")
    ],
    "D60": lambda: on_sns(says(sns_error("Throttled", 429))),
    "D61": lambda: on_sns(first(says(SILENT_SNS, shown=True))),
    "D62": lambda: on_sns(says(sns_error("InternalError", 500), shown=True)),
    "D63": lambda: on_sns(says(sns_error("InvalidParameter"))),
    "D64": lambda: on_sns(says(ResponseParserError("not XML"), shown=True)),
    "D65": lambda: [
        on_sns(says(sns_error(code, 403)))
        for code in ("ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch")
    ],
    "D66": lambda: once(refuses(Killed())),
    "D67": lambda: once(says(Killed(), shown=True)),
    "D68": lambda: World(first(says(Killed(), shown=True), says(Killed(), shown=True))),
    "D69": lambda: with_lost(mark_sent=[Killed()]),
    "D70": lambda: with_store(faults=[Killed()]),
    "D71": lambda: with_ledger(claim_send=[Throttled("later")]),
    "D72": lambda: [
        away("claim_send", 6),
        with_ledger(claim_send=[AccessDenied("dynamodb:PutItem", "no")] * 9),
    ],
    "D73": lambda: with_lost(claim_send=[Unavailable("no answer")]),
    "D75": lambda: away("mark_sent", 1),
    "D76": lambda: with_ledger(GONE, mark_failed=[Unavailable("no answer")]),
    "D77": damaged,
    "D78": lambda: [lost_letter(1), lost_letter(5)],
    "D79": lost_answer,
    "D80": deaf_queue,
    "D81": lambda: World(act=crashes),
    "D82": lambda: aged(3.5, BUSY),
    "D83": lambda: aged(4),
    "D84": lambda: redriven_after(6),
    "D85": lambda: redriven_after(6, BUSY),
    "D86": lambda: redriven_twice(2),
    "D87": lambda: redriven_twice(2),
    "D88": lambda: redriven_twice(1, meanwhile_sent=True),
    "D90": many_redriven,
    "D91": lambda: malformed("{", "null", "[1]", '{"schema":1,"channel":"slack"}', "x" * 200_000),
    "D92": lambda: World(channels=("sns",)),
    "D93": lambda: malformed(numbered_body("sns", 1)),
    "D94": lambda: malformed(numbered_body("slack", 1).replace('"schema": 1', '"schema": 2')),
    "D95": World,
    "D96": lambda: both(GONE, works),
    "D97": lambda: both(GONE, says(sns_error("KMSDisabled"))),
    "D98": clock_ahead,
}


def cases() -> Iterator[Any]:
    """Each row, with each world that it names."""
    for name in ROWS:
        if name not in ELSEWHERE:
            made = WORLDS[name]()
            for number in range(len(made) if isinstance(made, list) else 1):
                yield pytest.param(name, number, id=f"{name}-{number}")


def test_every_row_is_a_test() -> None:
    """Here or elsewhere."""
    assert set(ROWS) == set(WORLDS) | set(ELSEWHERE)
    assert set(DIFFERS) <= set(ROWS)


@pytest.mark.parametrize(("name", "number"), list(cases()))
def test_scenario(name: str, number: int) -> None:
    """Posted and seen at most so often, counted, and found where the row says."""
    row = ROWS[name]
    made = WORLDS[name]()
    world = made[number] if isinstance(made, list) else made
    world.run()
    check_always(world)
    assert world.service.posts <= most(row["posts_max"], world, name)
    assert len(world.service.shown) <= (
        row["copies_max"] if row["copies_max"] == 0 else most(row["copies_max"], world, name)
    )
    if row["repeat_mark"] == "none":
        assert not [text for text in world.service.shown if REPEAT in text]
    check_end(name, world)
    if name not in DIFFERS:
        check_metrics(row["metrics"], world)
    check_redrive(name, world)


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


def most(said: int | str, world: World, name: str) -> int:
    """The row's bound as a number."""
    if name in POSTS:
        return POSTS[name]
    if isinstance(said, int):
        return said
    if said == "2 each":
        return 80
    assert said == "20 + number of time-outs"
    return world.service.posts


def check_end(name: str, world: World) -> None:
    """Each notice is sent or in the dead letters; none waits, none is in both."""
    end = ROWS[name]["end"]
    dead = [json_or_none(body) for body, _ in world.delivery.dead.letters]
    names = [one["notice_id"] for one in dead if one is not None and "notice_id" in one]
    if name not in {"D79", "D81"}:
        assert len(names) == len(set(names))
    sent = {one for one, lease in world.ledger._leases.items() if lease.state.value == "SENT"}
    if name not in {"D94", "D93"}:
        assert not sent & set(names)
    assert world.delivery.waiting("slack") == world.delivery.waiting("sns") == 0
    if end == "sent":
        assert not world.delivery.dead.letters
        assert sent or name == "D75"  # posted, and not marked: only its lease is known
        return
    allowed = set().union(*(ours for word, ours in WORDS.items() if word in end))
    reasons = set(world.delivery.reasons())
    assert reasons <= allowed or (name, reasons) == ("D78", {"channel_broken"})
    if "sent" not in end:
        assert reasons


def json_or_none(body: str) -> dict[str, Any] | None:
    """The body as an object, where it is one."""
    try:
        read = json.loads(body)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def check_metrics(said: Sequence[str], world: World) -> None:
    """Each is exact, a range, a bound or an alternative."""
    for one in said:
        words = re.findall(
            r"(NoticesSent|DuplicateNotices|NotifyFailed|NotifyUnknown|GivenUp)(?:\((\w+)\))?"
            r"(<=|>=|=)(\d+)(?:\.\.(\d+))?",
            one,
        )
        assert (
            words
            or one in {"any", "n = number dead"}
            or one.endswith(("=n", "=m"))
            or (one.startswith(("any of", "NotifyFailed per")))
        )
        if words:
            assert any(counted(world, *word) for word in words), (one, world.delivery.counts)


def counted(world: World, name: str, channel: str, how: str, low: str, high: str) -> bool:
    """Whether the counts are so."""
    of = None if name == "GivenUp" else channel or world.channel
    found = world.delivery.counts.get((name, of), 0)
    if how == "<=":
        return found <= int(low)
    if how == ">=":
        return found >= int(low)
    return int(low) <= found <= int(high or low)


def check_redrive(name: str, world: World) -> None:
    """When the cause is gone, one redrive empties the dead letters: all are sent, marked or not."""
    if name in {"D91", "D93", "D94"}:
        world.delivery.dead.letters.clear()
        return
    if name == "D92":
        assert world.delivery.redrive() == 1
        world.delivery.run()
        assert world.delivery.reasons() == ["no_channel"]
        return
    world.heal()
    before = {key: len(one.shown) for key, one in world.services.items()}
    numbers = [json.loads(body)["notice_id"] for body, _ in world.delivery.dead.letters]
    states = {one: world.ledger._leases.get(one) for one in numbers}
    world.delivery.redrive()
    world.delivery.run()
    assert not world.delivery.dead.letters
    check_always(world)
    shown = [text for key, one in world.services.items() for text in one.shown[before[key] :]]
    assert len(shown) == len(set(numbers))
    unknown = [one for one, lease in states.items() if lease and lease.state.value == "UNKNOWN"]
    if name != "D76":
        assert len([text for text in shown if REPEAT in text]) == len(unknown)
    said = ROWS[name]["redrive"]
    if said.startswith("sends again, without the mark"):
        assert not unknown
    elif said.startswith("sends again, WITH the mark") and numbers:
        assert len(unknown) == len(numbers) or name == "D16"
