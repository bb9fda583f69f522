"""Messages at the limits of Slack, Teams and SNS, and just above them."""

import json
from typing import Any

import pytest

from sageaudit.errors import MalformedData
from sageaudit.output.text import plain, slack, teams
from sageaudit.output.text.card import MessageCard


def teams_message(size: int) -> Any:
    """Returns a message that has this many bytes if it is marked as a possible repeat."""
    payload = teams.make_payload(MessageCard("x"))
    room = size - len(json.dumps(teams.mark_as_repeat(payload)))
    payload["attachments"][0]["content"]["body"][0]["inlines"][0]["text"] += "x" * room
    assert len(json.dumps(teams.mark_as_repeat(payload))) == size
    return payload


def slack_message(blocks: int = 1, characters: int = 1) -> Any:
    """Returns a message whose sections have this many characters if it is marked as a repeat."""
    payload: Any = slack.make_payload(MessageCard("x"))
    marked = slack.mark_as_repeat(payload)["blocks"][0]["text"]["text"]
    [block] = payload["blocks"]
    block["text"]["text"] += "x" * (characters - len(marked))
    payload["blocks"] = [{**block, "block_id": f"{n or 'headline'}"} for n in range(blocks)]
    return payload


@pytest.mark.parametrize(
    ("check", "fits", "is_too_large"),
    [
        (teams.check_payload, teams_message(20_000), teams_message(20_001)),
        (slack.check_payload, slack_message(blocks=50), slack_message(blocks=51)),
        (slack.check_payload, slack_message(characters=3_000), slack_message(characters=3_001)),
    ],
    ids=["20,000 bytes of Teams", "50 blocks of Slack", "3,000 characters of a section"],
)
def test_a_message_above_a_services_limit_is_malformed(
    check: Any, fits: Any, is_too_large: Any
) -> None:
    """It is too large by one byte, block or character."""
    check(fits)
    with pytest.raises(MalformedData):
        check(is_too_large)


@pytest.mark.parametrize(("length", "is_whole"), [(99, True), (100, False)])
def test_a_subject_has_under_100_characters(length: int, is_whole: bool) -> None:
    """SNS refuses a longer one, so it is cut in the middle."""
    subject = plain.make_payload(MessageCard("x" * length))["subject"]
    assert (subject == "x" * length) is is_whole
    assert len(subject) == 99
