"""The webhook: only Slack's address is ever posted to, and each answer says what to do next."""

import json
import logging
import traceback
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.channels.channel import Response
from sageaudit.adapters.channels.services import SlackChannel, webhook_invalid_reason
from sageaudit.errors import (
    AccessDenied,
    BadSettings,
    ChannelBroken,
    ChannelError,
    ChannelUnavailable,
    PossiblySent,
    RateLimited,
    Throttled,
    UnexpectedResponse,
)

URL = "https://hooks.slack.com/services/T0001/B0001/s3cr3ts3cr3t"
NEWER = "https://hooks.slack.com/services/T0001/B0002/n3w3rn3w3r"
OK = Response(200, {}, b"ok")
PAYLOAD = {"text": "HIGH $2.04 – train", "blocks": []}
HOSTILE = [
    "",
    "http://hooks.slack.com/services/T/B/x",
    "HTTPS://hooks.slack.com/services/T/B/x",
    "ftp://hooks.slack.com/services/T/B/x",
    "//hooks.slack.com/services/T/B/x",
    "https://evil.example/services/T/B/x",
    "https://hooks.slack.com.evil.example/services/T/B/x",
    "https://evilhooks.slack.com/services/T/B/x",
    "https://hooks-slack.com/services/T/B/x",
    "https://hooks.slack.com./services/T/B/x",
    "https://hooks.slack.com@evil.example/services/T/B/x",
    "https://user@hooks.slack.com/services/T/B/x",
    "https://user:pass@hooks.slack.com/services/T/B/x",
    "https://evil.example#@hooks.slack.com/services/T/B/x",
    "https://evil.example\\@hooks.slack.com/services/T/B/x",
    "https://evil.example/https://hooks.slack.com/services/T/B/x",
    "https://hooks.slack.com:80/services/T/B/x",
    "https://hooks.slack.com:4430/services/T/B/x",
    "https://hooks.slack.com:/services/T/B/x",
    "https://hooks.slack.com",
    "https://hooks.slack.com/",
    "https://hooks.slack.com/services",
    "https://hooks.slack.com/services/",
    "https://hooks.slack.com/services//B/x",
    "https://hooks.slack.com/api/chat.postMessage",
    "https://hooks.slack.com/services/T/B/x?redirect=https://evil.example",
    "https://hooks.slack.com/services/T/B/x#part",
    "https://hooks.slack.com/services/../api/x",
    "https://hooks.slack.com/services/T/%2e%2e/x",
    "https://hooks.slack.com/services/T/B/x\n",
    "https://hooks.slack.com/services/T/B/x\r\nHost: evil.example",
    "https://hooks.slack.com/services/T/B/x y",
    " https://hooks.slack.com/services/T/B/x",
    "https://hooks.slack.com/services/T/B/ⅹ",
    "https://hooks.ѕlack.com/services/T/B/x",
    "https://[::1]/services/T/B/x",
    "https://[/services/T/B/x",
    "https://127.0.0.1/services/T/B/x",
    "https://169.254.169.254/services/T/B/x",
    "file:///etc/passwd",
]


class Wire:
    """A transport that answers in order and remembers where it was sent."""

    def __init__(self, *answers: Response | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, bytes, Mapping[str, str]]] = []

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        self.sent.append((url, body, headers))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Kept:
    """A secret: the newer value is seen by a refresh only."""

    def __init__(self, kept: str | Exception = URL, stored: str | None = None) -> None:
        self.kept = kept
        self.stored = kept if stored is None else stored
        self.refreshed = 0

    def value(self, *, refresh: bool = False) -> str:
        if refresh:
            self.refreshed += 1
            self.kept = self.stored
        if isinstance(self.kept, Exception):
            raise self.kept
        return self.kept


def posted(wire: Wire, secret: Kept | None = None) -> list[str]:
    """Posts the payload, and returns the addresses it was sent to."""
    SlackChannel("slack", secret or Kept(), wire).post(PAYLOAD)
    return [url for url, _, _ in wire.sent]


def test_the_payload_is_posted_as_json() -> None:
    """Once, to the stored address."""
    wire = Wire(OK)
    SlackChannel("slack", Kept(), wire).post(PAYLOAD)
    [(url, body, headers)] = wire.sent
    assert url == URL
    assert json.loads(body) == PAYLOAD
    assert headers["Content-Type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize(
    "url", [URL, URL.replace(".com", ".com:443"), URL.replace("slack.com", "slack-gov.com")]
)
def test_slacks_own_addresses_are_taken(url: str) -> None:
    """Both hosts, with or without the port that https has anyway."""
    assert webhook_invalid_reason(url) is None


@pytest.mark.parametrize("url", HOSTILE)
def test_any_other_address_is_refused_before_anything_is_sent(url: str) -> None:
    """Whatever the transport: the check stands above it. The address is not repeated."""
    wire = Wire()
    with pytest.raises(ChannelBroken) as raised:
        posted(wire, Kept(url))
    assert wire.sent == []
    assert "evil" not in str(raised.value)


@given(st.text(alphabet="abs./:@#?%\\T\n htp", max_size=40))
def test_nothing_before_the_host_makes_another_host_slacks(text: str) -> None:
    """What passes begins with Slack's host, whatever is put in front of the rest."""
    assert webhook_invalid_reason(f"https://{text}/services/T/B/x") is not None
    assert webhook_invalid_reason(f"https://{text}@hooks.slack.com/services/T/B/x") is not None


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "42"}, 42),
        ({"retry-after": " 600 "}, 600),
        ({}, 30),
        ({"retry-after": "soon"}, 30),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30),
        ({"retry-after": "-5"}, 30),
        ({"retry-after": "0"}, 1),
        ({"retry-after": "999999999"}, 3_600),
        ({"retry-after": "9" * 5_000}, 30),
        ({"retry-after": "٣"}, 30),
    ],
)
def test_too_many_says_when_to_come_back(headers: dict[str, str], wait_s: int) -> None:
    """Never nothing, and after an hour it is asked again."""
    with pytest.raises(RateLimited) as raised:
        posted(Wire(Response(429, headers, b"rate_limited")))
    assert raised.value.retry_after_s == wait_s


ANSWERS: list[tuple[int, bytes, type[ChannelError], str, str]] = [
    # permanent: only a short word of Slack's is repeated
    (400, b"invalid_payload", ChannelBroken, "400 invalid_payload: ", "refused"),
    (413, b"", ChannelBroken, "413 with an unknown text: ", "refused"),
    (401, b"", ChannelBroken, "401 with an unknown text: ", "channel_broken"),
    (403, b"action_prohibited", ChannelBroken, "403 action_prohibited: ", "channel_broken"),
    (404, b"channel_not_found\n", ChannelBroken, "404 channel_not_found: ", "channel_broken"),
    (410, b"channel_is_archived", ChannelBroken, "410 channel_is_archived: ", "channel_broken"),
    (404, URL.encode(), ChannelBroken, "404 with an unknown text: ", "channel_broken"),
    # a redirect would carry the notice, and with 307 its body, to another host
    *(
        (status, b"", ChannelBroken, f"{status}, a redirect", "redirected")
        for status in (301, 302, 303, 307, 308)
    ),
    # a proxy answered, or Slack changed: it may have been posted
    *(
        (status, body, UnexpectedResponse, f"{status} .*not known", "")
        for status, body in (
            (200, b"no_service"),
            (200, b"<html>ok</html>"),
            (200, b""),
            (200, b"OK"),
            (200, b'{"ok":false}'),
            (201, b"ok"),
            (204, b""),
            (101, b""),
        )
    ),
    # Slack's `rollup_error` comes after it took the message
    *(
        (status, b"rollup_error", PossiblySent, f"{status} rollup_error", "")
        for status in (408, 425, 500, 502, 503, 504, 599)
    ),
]


@pytest.mark.parametrize(("status", "body", "meant", "said", "code"), ANSWERS)
def test_an_answer_says_what_became_of_the_notice(
    status: int, body: bytes, meant: type[ChannelError], said: str, code: str
) -> None:
    """And is not followed to another address."""
    answer = Response(status, {"location": "http://169.254.169.254/"}, body)
    wire = Wire(answer)
    with pytest.raises(meant, match=f"^slack: {said}") as raised:
        posted(wire)
    assert getattr(raised.value, "code", "") == code
    assert getattr(raised.value, "retry_after_s", 0) == 0
    assert len(wire.sent) == 1


def test_a_servers_fault_says_when_to_come_back() -> None:
    """As with too many."""
    with pytest.raises(PossiblySent) as raised:
        posted(Wire(Response(503, {"retry-after": "120"}, b"")))
    assert raised.value.retry_after_s == 120


def test_nothing_is_prepared_with_an_address_that_is_refused() -> None:
    """So that no claim is taken for it."""
    with pytest.raises(ChannelBroken, match="not valid") as raised:
        SlackChannel("slack", Kept("http://evil.example/"), Wire()).prepare()
    assert raised.value.code == "secret_unusable"
    SlackChannel("slack", Kept("http://evil.example/", URL), Wire()).prepare()


GONE = Response(410, {}, b"channel_is_archived")
EVIL = "http://evil.example/"


@pytest.mark.parametrize(
    ("kept", "stored", "answers", "sent"),
    [
        *((URL, NEWER, [Response(status), OK], [URL, NEWER]) for status in (403, 404, 410)),
        (EVIL, URL, [OK], [URL]),
    ],
)
def test_a_webhook_that_was_renewed_or_corrected_is_read_and_tried(
    kept: str, stored: str, answers: list[Response], sent: list[str]
) -> None:
    """The kept secret may be minutes old."""
    assert posted(Wire(*answers), Kept(kept, stored)) == sent


@pytest.mark.parametrize(("stored", "tries"), [(NEWER, 2), (URL, 1), ("https://evil.example/x", 1)])
def test_a_webhook_that_is_gone_is_tried_at_most_twice(stored: str, tries: int) -> None:
    """Not the same one again, and no address that is not Slack's: the check is on at every send."""
    wire, secret = Wire(GONE, GONE), Kept(URL, stored)
    with pytest.raises(ChannelBroken):
        posted(wire, secret)
    assert (len(wire.sent), secret.refreshed) == (tries, 1)


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (BadSettings("the secret x: there is no such secret"), ChannelBroken),
        (AccessDenied("secretsmanager:GetSecretValue", "not permitted"), ChannelBroken),
        (Throttled("later"), ChannelUnavailable),
    ],
)
def test_a_secret_that_cannot_be_read_says_so(error: Exception, meant: type[Exception]) -> None:
    """A missing one is permanent, a busy store is not."""
    with pytest.raises(meant, match=str(error)):
        posted(Wire(), Kept(error))


def test_what_the_transport_says_goes_up() -> None:
    """Whether the notice left is known only there."""
    for error in (PossiblySent("no answer"), ChannelUnavailable("no connection")):
        with pytest.raises(type(error)):
            posted(Wire(error))


@pytest.mark.parametrize(
    "answer",
    [
        Response(404, {}, URL.encode()),
        Response(302, {"location": URL}, b""),
        Response(429, {"retry-after": URL}, b""),
        Response(500, {}, URL.encode()),
        PossiblySent("no answer"),
    ],
)
def test_the_address_is_in_no_error_and_no_log(
    answer: Response | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Even where the other side sends it back, and even at DEBUG."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ChannelError) as raised:
        posted(Wire(answer, answer))
    error_and_log = "".join(traceback.format_exception(raised.value)) + caplog.text
    assert "s3cr3t" not in error_and_log
