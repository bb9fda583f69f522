"""A notice on its way: read back as it was written, refused when it is none."""

import json
from typing import Any

import pytest

from sageaudit.errors import Malformed
from sageaudit.output.text import plain, slack
from sageaudit.output.text.card import Check, Notice, read_body
from tests.fakes.delivering import PAYLOADS, PK, notice_body

CHECKS: dict[str, Check] = {"sns": plain.check, "slack": slack.check}


def test_a_body_is_read_back_as_it_was_written() -> None:
    """For each channel."""
    for channel, payload in PAYLOADS.items():
        assert read_body(notice_body(channel), CHECKS) == Notice(
            f"{PK}|1|{channel}", channel, payload
        )


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"schema": 2}, "schema"),
        ({"schema": None}, "schema"),
        ({"channel": "teams"}, "notice_id"),
        ({"channel": None}, "channel"),
        ({"channel": ["slack"]}, "channel"),
        ({"notice_id": ""}, "notice_id"),
        ({"notice_id": 7}, "notice_id"),
        ({"notice_id": "a|1|sns"}, "notice_id"),
        ({"notice_id": "a" * 3_000 + "|slack"}, "notice_id"),
        ({"payload": None}, "payload"),
        ({"payload": {"text": "x"}}, "payload.blocks"),
        ({"payload": {"text": 7, "blocks": []}}, "payload.text"),
        ({"payload": {"text": "x", "blocks": ["y"]}}, "payload"),
        ({"payload": {"text": "x", "blocks": [{"type": "header"}]}}, "payload"),
        ({"payload": {"text": "x", "blocks": [{"text": "no type"}]}}, "payload"),
        ({"payload": {"text": "x", "blocks": [{"type": "section", "text": 7}]}}, "payload"),
        ({"payload": {"text": "x", "blocks": [{"type": "section", "fields": 7}]}}, "payload"),
        (
            {
                "channel": "sns",
                "notice_id": "a|sns",
                "payload": {**PAYLOADS["sns"], "attributes": {"severity": "high"}},
            },
            "payload",
        ),
    ],
)
def test_a_body_that_is_no_notice_names_its_key(change: dict[str, Any], key: str) -> None:
    """One sentence for the dead-letter queue."""
    with pytest.raises(Malformed) as raised:
        read_body(json.dumps({**json.loads(notice_body()), **change}), CHECKS)
    assert raised.value.key == key


def test_a_notice_of_a_channel_that_left_the_policy_is_one() -> None:
    """Its payload cannot be checked: it is not posted."""
    assert read_body(notice_body("sns"), {"slack": slack.check}).channel == "sns"


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "7", '"x"', "\ud800", "[" * 200_000])
def test_a_body_that_is_no_object_is_malformed(body: str) -> None:
    """Nothing else is raised."""
    with pytest.raises(Malformed, match="body "):
        read_body(body, CHECKS)


def test_a_repeat_says_so_where_it_is_read_first() -> None:
    """In the notification, the headline and the subject; the rest is as it was."""
    post = slack.as_repeat(PAYLOADS["slack"])
    assert post["text"] == "(possible repeat) HIGH  $2.04 was avoidable"
    assert post["blocks"][0]["text"]["text"] == "(possible repeat) HIGH"
    assert post["blocks"][1] == PAYLOADS["slack"]["blocks"][1]
    mail = plain.as_repeat(PAYLOADS["sns"])
    assert mail["subject"] == "(possible repeat) HIGH $2.04 was avoidable"
    assert mail["message"] == "(possible repeat) HIGH  $2.04\n"
    assert mail["attributes"] == PAYLOADS["sns"]["attributes"]
