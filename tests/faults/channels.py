"""Answers of channels, given once and for hours, also hangs, cuts and false claims.

This table has rows instead of rules.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta

from msgspec import Struct

from tests.faults.calls import Call
from tests.faults.expected import End, Expected
from tests.faults.network import Broken, Fault
from tests.faults.stories import HOUR, stories
from tests.faults.verdict import Case
from tests.faults.webhook import WebhookAnswer
from tests.faults.world import World

PUBLISH = Call("deliver", "sns.Publish", 1)
_HTML = "<html><body>Welcome to the hotel's network</body></html>"
_LATER = frozenset({End.UNSEEN, End.LATER})
_ANY = frozenset({End.UNSEEN, End.LATER, End.DEAD})

SENT = Expected(frozenset({End.UNSEEN}))
WAITS = Expected(_LATER)
"""Not posted, but it may pass: the notice waits, and is sent without a repeat mark."""
REFUSED = Expected(frozenset({End.DEAD}), counted="NotifyFailed")
"""Not posted, and a person must act: a dead letter, later sent without a repeat mark."""
UNKNOWN = Expected(_LATER, marked=True)
"""Unknown whether it was posted: one repeat, marked as such."""
UNKNOWN_TWICE = Expected(frozenset({End.DEAD}), marked=True, counted="NotifyUnknown")
"""Unknown a second time: a dead letter."""
STRANGE = Expected(_ANY, marked=True)
"""Not an answer that Slack gives: the notice must not count as sent."""


class Row(Struct, frozen=True):
    """A webhook's answer, and the expected end if it is given once, or for hours."""

    name: str
    says: WebhookAnswer
    once: Expected
    for_hours: Expected


def _retry(value: str) -> tuple[tuple[str, str], ...]:
    return (("Retry-After", value),)


SLACK: tuple[Row, ...] = (
    Row("200 ok, slowly", WebhookAnswer(slow_s=8), SENT, SENT),
    Row("200 ok and a line end", WebhookAnswer(body="ok\n"), Expected(_ANY, marked=True), STRANGE),
    Row("429 for 30 s", WebhookAnswer(429, "rate_limited", _retry("30")), WAITS, WAITS),
    Row("429 for 600 s", WebhookAnswer(429, "rate_limited", _retry("600")), WAITS, WAITS),
    Row("429 without a time", WebhookAnswer(429, "rate_limited"), WAITS, WAITS),
    Row("429 for a text", WebhookAnswer(429, "", _retry("soon")), WAITS, WAITS),
    Row("429 for -1 s", WebhookAnswer(429, "", _retry("-1")), WAITS, WAITS),
    Row(
        "429 until a date",
        WebhookAnswer(429, "", _retry("Wed, 21 Oct 2026 07:28:00 GMT")),
        WAITS,
        WAITS,
    ),
    Row("429 for 31 years", WebhookAnswer(429, "", _retry("999999999")), WAITS, WAITS),
    Row("500, posted", WebhookAnswer(500, "rollup_error", accepts=True), UNKNOWN, UNKNOWN_TWICE),
    Row("500", WebhookAnswer(500, "rollup_error"), UNKNOWN, UNKNOWN_TWICE),
    Row("502 as a page", WebhookAnswer(502, _HTML), UNKNOWN, UNKNOWN_TWICE),
    Row("503 with a time", WebhookAnswer(503, "busy", _retry("120")), UNKNOWN, UNKNOWN_TWICE),
    Row("504", WebhookAnswer(504, ""), UNKNOWN, UNKNOWN_TWICE),
    Row("200 as a page", WebhookAnswer(body=_HTML, accepts=False), STRANGE, STRANGE),
    Row("200 and nothing", WebhookAnswer(body="", accepts=False), STRANGE, STRANGE),
    Row("200 OK", WebhookAnswer(body="OK", accepts=False), STRANGE, STRANGE),
    Row("200 not ok", WebhookAnswer(body='{"ok":false}', accepts=False), STRANGE, STRANGE),
    Row("201", WebhookAnswer(201, "", accepts=False), STRANGE, STRANGE),
    Row("204", WebhookAnswer(204, "", accepts=False), STRANGE, STRANGE),
    Row("302", WebhookAnswer(302, "", (("Location", "https://evil.example/"),)), REFUSED, REFUSED),
    Row(
        "302 inside",
        WebhookAnswer(302, "", (("Location", "http://169.254.169.254/"),)),
        REFUSED,
        REFUSED,
    ),
    Row("307", WebhookAnswer(307, "", (("Location", "https://evil.example/"),)), REFUSED, REFUSED),
    Row("308", WebhookAnswer(308, "", (("Location", "https://evil.example/"),)), REFUSED, REFUSED),
    Row("400 invalid_payload", WebhookAnswer(400, "invalid_payload"), REFUSED, REFUSED),
    Row("400 invalid_blocks", WebhookAnswer(400, "invalid_blocks"), REFUSED, REFUSED),
    Row("401 of a proxy", WebhookAnswer(401, _HTML), REFUSED, REFUSED),
    Row("403 invalid_token", WebhookAnswer(403, "invalid_token"), REFUSED, REFUSED),
    Row("403 action_prohibited", WebhookAnswer(403, "action_prohibited"), REFUSED, REFUSED),
    Row("404 no_service", WebhookAnswer(404, "no_service"), REFUSED, REFUSED),
    Row("404 channel_not_found", WebhookAnswer(404, "channel_not_found"), REFUSED, REFUSED),
    Row("407 of a proxy", WebhookAnswer(407, _HTML), REFUSED, REFUSED),
    Row("410 channel_is_archived", WebhookAnswer(410, "channel_is_archived"), REFUSED, REFUSED),
    Row("413", WebhookAnswer(413, ""), REFUSED, REFUSED),
    Row("451", WebhookAnswer(451, ""), REFUSED, REFUSED),
    Row("408", WebhookAnswer(408, ""), STRANGE, STRANGE),
    Row("425", WebhookAnswer(425, ""), STRANGE, STRANGE),
    Row("no connection", WebhookAnswer(connect=ConnectionRefusedError), WAITS, WAITS),
    Row("no name", WebhookAnswer(connect=OSError), WAITS, WAITS),
    Row("no answer to the connection", WebhookAnswer(connect=TimeoutError), WAITS, WAITS),
    Row("hangs, posted", WebhookAnswer(hangs=True), UNKNOWN, UNKNOWN_TWICE),
    Row("hangs", WebhookAnswer(hangs=True, accepts=False), UNKNOWN, UNKNOWN_TWICE),
    Row("cut before the answer", WebhookAnswer(cut=0), UNKNOWN, UNKNOWN_TWICE),
    Row("cut in the first line", WebhookAnswer(cut=9), UNKNOWN, UNKNOWN_TWICE),
    Row("cut in the body", WebhookAnswer(cut=-1), UNKNOWN, UNKNOWN_TWICE),
    Row("reset while posting", WebhookAnswer(resets=True, accepts=False), UNKNOWN, UNKNOWN_TWICE),
    Row("a byte a second", WebhookAnswer(body="ok" + " " * 600, drips=True), STRANGE, STRANGE),
    Row(
        "a line without end", WebhookAnswer(raw=b"HTTP/1.1 200 " + b"x" * 70_000), STRANGE, STRANGE
    ),
    Row(
        "headers without end",
        WebhookAnswer(raw=b"HTTP/1.1 200 ok\r\n" + b"a: b\r\n" * 200 + b"\r\nok"),
        STRANGE,
        STRANGE,
    ),
    Row("no HTTP", WebhookAnswer(raw=b"\x00\x01\x02 nothing\r\n\r\n"), STRANGE, STRANGE),
    Row("a body without end", WebhookAnswer(body="y" * 200_000, accepts=False), STRANGE, STRANGE),
)

TEAMS: tuple[Row, ...] = (
    Row("202", WebhookAnswer(202, ""), SENT, SENT),
    Row("202 and a text", WebhookAnswer(202, "Accepted"), SENT, SENT),
    Row("200", WebhookAnswer(200, "1", accepts=False), STRANGE, STRANGE),
    Row("429 for 60 s", WebhookAnswer(429, '{"error":{}}', _retry("60")), WAITS, WAITS),
    Row("400 of its schema", WebhookAnswer(400, '{"error":{"code":"Trigger"}}'), REFUSED, REFUSED),
    Row("401 of its sig", WebhookAnswer(401, '{"error":{"code":"Direct"}}'), REFUSED, REFUSED),
    Row("404 of its flow", WebhookAnswer(404, '{"error":{"code":"Workflow"}}'), REFUSED, REFUSED),
    Row("413", WebhookAnswer(413, ""), REFUSED, REFUSED),
    Row("302", WebhookAnswer(302, "", (("Location", "https://evil.example/"),)), REFUSED, REFUSED),
    Row("502, posted", WebhookAnswer(502, _HTML, accepts=True), UNKNOWN, UNKNOWN_TWICE),
    Row("hangs, posted", WebhookAnswer(hangs=True, accepts=True), UNKNOWN, UNKNOWN_TWICE),
    Row("no connection", WebhookAnswer(connect=ConnectionRefusedError), WAITS, WAITS),
)

SNS: tuple[tuple[int, str, Expected, Expected], ...] = (
    (400, "KMSDisabled", REFUSED, REFUSED),
    (400, "KMSAccessDenied", REFUSED, REFUSED),
    (400, "KMSNotFound", REFUSED, REFUSED),
    (400, "KMSOptInRequired", REFUSED, REFUSED),
    (400, "KMSInvalidState", REFUSED, REFUSED),
    (403, "AuthorizationError", REFUSED, REFUSED),
    (404, "NotFound", REFUSED, REFUSED),
    (400, "InvalidParameter", REFUSED, REFUSED),
    (400, "ParameterValueInvalid", REFUSED, REFUSED),
    (403, "ExpiredToken", WAITS, WAITS),
    (403, "InvalidClientTokenId", WAITS, WAITS),
    (403, "SignatureDoesNotMatch", WAITS, WAITS),
    (400, "KMSThrottling", WAITS, WAITS),
    (429, "Throttled", WAITS, WAITS),
    (500, "InternalError", UNKNOWN, UNKNOWN_TWICE),
    (503, "ServiceUnavailable", UNKNOWN, UNKNOWN_TWICE),
)
HOURS = 2 * HOUR


def channel_cells() -> tuple[Case, ...]:
    """Returns the cells of each answer of each channel, once and for hours."""
    return tuple(_cells())


def _cells() -> Iterator[Case]:
    story = stories()[0]
    [on_teams] = [
        story_on_teams for story_on_teams in stories() if story_on_teams.name == "on Teams"
    ]
    for service, story_of_service, row in (
        *(("slack", story, row) for row in SLACK),
        *(("teams", on_teams, row) for row in TEAMS),
    ):
        for often, lasts, ends in (("once", None, row.once), ("hours", HOURS, row.for_hours)):
            breaks, met = _slack(row.says, lasts), _slack_met
            yield Case(f"{service}/{row.name}/{often}", story_of_service, ends, breaks, met)
    for status, code, once, for_hours in SNS:
        for often, lasts, ends in (("once", None, once), ("hours", HOURS, for_hours)):
            breaks = _sns(status, code, lasts)
            yield Case(
                f"sns/{code}/{often}", story, ends, breaks, lambda world: world.network.struck > 0
            )


def _slack(says: WebhookAnswer, lasts: timedelta | None) -> Callable[[World], None]:
    def breaks(world: World) -> None:
        if lasts is None:
            world.slack.script.append(says)
        else:
            world.slack.always, world.slack.always_until = says, world.now + lasts

    return breaks


def _slack_met(world: World) -> bool:
    return world.slack.tried > 0


def _sns(status: int, code: str, lasts: timedelta | None) -> Callable[[World], None]:
    def breaks(world: World) -> None:
        until = None if lasts is None else world.now + lasts
        world.network.broken.append(Broken(PUBLISH, Fault.DENIED, until, (status, code)))

    return breaks
