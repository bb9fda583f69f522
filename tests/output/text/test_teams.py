"""The card for Teams: its lines and buttons, its size, and that no text is read as markup."""

import json
from typing import Any

import pytest
from hypothesis import given

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.errors import MalformedData
from sageaudit.output.text.card import CardLine, MessageCard
from sageaudit.output.text.links import Link
from sageaudit.output.text.teams import (
    MAX_BYTES,
    check_payload,
    make_payload,
    mark_as_repeat,
    text_lines,
)
from tests.fakes.documents import document
from tests.fakes.hostile import documents, whole_documents
from tests.fakes.messages import document_card, first_decision, open_advice
from tests.fakes.sample_documents import lost_document

RUN_KEYS = {"type", "text", "weight", "size", "fontType"}


def card_of(payload: dict[str, Any]) -> dict[str, Any]:
    """Returns the Adaptive Card."""
    [attachment] = payload["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card: dict[str, Any] = attachment["content"]
    assert (payload["type"], card["type"], card["version"]) == ("message", "AdaptiveCard", "1.4")
    return card


def test_the_lines_of_a_card() -> None:
    """They are those of a mail; the links of Slack are buttons."""
    payload = make_payload(document_card(document(), first_decision(recommendation=open_advice())))
    assert list(text_lines(payload)) == [
        "train-bert wastes about $540 a month (12 runs): use 1 x ml.g4dn.xlarge",
        "Why: The GPU averaged 11% over 2 h 20 min; p95 was 24%.",
        "Do this: it saves $1.53 of this run's $4.55, or about $540 a month",
        'InstanceType = "ml.g4dn.xlarge"',
        "Caveat: The data loader gets 4 vCPUs in place of 8.",
        "Not counted: spot-not-used about $0.90",
        "anna, 111122223333, us-east-1",
        "Rule: sageaudit rules gpu-underused",
        "Details: sageaudit show train-bert-0412",
        "Snooze 30 days: sageaudit advice snooze abcdefgh",
        "[Job]  [Metrics]  [Logs]",
    ]
    card = card_of(payload)
    assert {action["type"] for action in card["actions"]} == {"Action.OpenUrl"}
    assert all("console.aws.amazon.com/" in action["url"] for action in card["actions"])
    assert next(text_lines(mark_as_repeat(payload))).startswith("(possible repeat) train-bert")


def test_a_card_without_a_run_has_no_owner_and_rule() -> None:
    """The card of an hour's held messages is such a card."""
    card = MessageCard("And 12 more messages", lines=(CardLine("nlp: about $540 a month"),))
    assert list(text_lines(make_payload(card))) == [
        "And 12 more messages",
        "nlp: about $540 a month",
    ]


def test_hostile_text_stays_text() -> None:
    """Markdown is not read; addresses and date functions are broken."""
    evil = "[x](https://evil.example) **b** <at>all</at> {{DATE(2026-01-01T00:00:00Z)}} \u202ertl"
    payload_json = json.dumps(
        make_payload(MessageCard(evil, lines=(CardLine(evil, is_code=True),)))
    )
    assert "{{" not in payload_json
    assert "\\u202e" not in payload_json
    assert "https://evil" not in json.dumps(make_payload(MessageCard(evil)))
    failed = json.dumps(make_payload(document_card(lost_document())), ensure_ascii=False)
    assert "https://evil" not in failed


@whole_documents
@given(documents())
def test_any_audit_fits_and_is_plain_runs(audit: AuditDocument) -> None:
    """Any audit gives valid UTF-8 within the size limit, and no element that reads markup."""
    payload = make_payload(document_card(audit))
    check_payload(payload)
    assert len(json.dumps(payload)) <= MAX_BYTES
    assert json.dumps(payload, ensure_ascii=False).encode("utf-8")
    for element in card_of(payload)["body"]:
        assert element["type"] == "RichTextBlock"
        assert all(run.keys() <= RUN_KEYS and run["text"] for run in element["inlines"])
    assert len(card_of(payload)["actions"]) <= 6


@pytest.mark.parametrize("lines", [0, 60])
def test_a_card_that_is_too_large_loses_its_buttons_then_its_last_lines(lines: int) -> None:
    """Each letter is six bytes of JSON."""
    links = tuple(Link(str(n), "https://x/" + "y" * 8000) for n in range(3))
    long = tuple(CardLine("ä" * 990) for _ in range(lines))
    payload = make_payload(MessageCard("news", lines=long, links=links))
    check_payload(payload)
    lines_left = list(text_lines(payload))
    assert lines_left[0] == "news"
    assert lines_left[-1] == ("[0]  [1]" if not lines else "ä" * 990)


@pytest.mark.parametrize(
    "body",
    [
        [],
        [{"type": "TextBlock", "text": "x"}],
        [{"inlines": [{"type": "TextRun", "text": ""}]}, {"inlines": [{"text": ""}]}],
        [{"inlines": [{"type": "TextRun", "text": "x" * MAX_BYTES}]}],
        ["no element"],
    ],
)
def test_what_teams_refuses_is_malformed(body: Any) -> None:
    """A payload that cannot be marked as a repeat is malformed too."""
    payload = make_payload(MessageCard("news"))
    card_of(payload)["body"] = body
    with pytest.raises(MalformedData, match="payload"):
        check_payload(payload)
