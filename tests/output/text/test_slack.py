import json
import re
from typing import Any

import pytest
from hypothesis import given

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.errors import MalformedData
from sageaudit.output.text.slack import check_payload, make_payload
from sageaudit.output.text.untrusted import utf16_length
from tests.fakes.documents import document, job
from tests.fakes.hostile import documents, whole_documents
from tests.fakes.messages import document_card, first_decision, open_advice
from tests.fakes.sample_documents import lost_document

LINK = re.compile(
    r"<https://[a-z0-9-]+\.console\.aws\.amazon\.com/[^<>|\s]*\|(?:Job|Metrics|Logs)>"
)


def section_texts(payload: dict[str, Any]) -> list[str]:
    """Returns the text of every section."""
    return [block["text"]["text"] for block in payload["blocks"]]


def assert_within_limits(payload: dict[str, Any]) -> None:
    """Asserts Slack's limits, and that no text is empty."""
    check_payload(payload)
    assert len(payload["blocks"]) <= 50
    assert all(0 < utf16_length(text) <= 3000 for text in section_texts(payload))
    assert 0 < utf16_length(payload["text"]) < 4000
    assert utf16_length(json.dumps(payload["blocks"], ensure_ascii=False)) <= 13_000


def test_a_card_has_three_sections() -> None:
    """They are the headline, the reason with the change, and the owner with links and commands."""
    payload = make_payload(document_card(document(), first_decision(recommendation=open_advice())))
    title = "train-bert wastes about $540 a month (12 runs): use 1 x ml.g4dn.xlarge"
    assert payload["text"] == title
    headline, card, foot = section_texts(payload)
    assert headline == f"*{title}*"
    assert card.split("\n")[:4] == [
        "*Why*: The GPU averaged 11% over 2 h 20 min; p95 was 24%.",
        "*Do this*: it saves $1.53 of this run's $4.55, or about $540 a month",
        '`InstanceType = "ml.g4dn.xlarge"`',
        "*Caveat*: The data loader gets 4 vCPUs in place of 8.",
    ]
    assert LINK.sub("link", foot).split("\n") == [
        "anna, 111122223333, us-east-1",
        "link  link  link  Rule: gpu-underused",
        "*Details*: `sageaudit show train-bert-0412`",
        "*Snooze 30 days*: `sageaudit advice snooze abcdefgh`",
    ]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({"anna": "U0123ABC"}, "<@U0123ABC>"),
        ({"anna": "S0123ABC"}, "<!subteam^S0123ABC>"),
        ({"anna": "!channel"}, "anna"),
        ({"bob": "U0123ABC"}, "anna"),
    ],
)
def test_owner(ids: dict[str, str], expected: str) -> None:
    """Only a listed id in Slack's format is mentioned."""
    assert section_texts(make_payload(document_card(document()), ids))[-1].startswith(
        f"{expected}, 1111"
    )


def test_a_hostile_failure_message_is_inert() -> None:
    """It makes no mention, link or format."""
    payload_json = json.dumps(make_payload(document_card(lost_document())), ensure_ascii=False)
    for attack in ("<!channel", "<https://evil", "\\u001b", "\u202e"):
        assert attack not in payload_json


def test_unknown_values_are_named_or_left_out() -> None:
    """The job has no owner, account or region."""
    unknown = job(owner=None, account=None, region=None)
    payload = make_payload(document_card(document(job=unknown)), {"": "U0123ABC"})
    owner_line, links, *_ = section_texts(payload)[-1].split("\n")
    assert (owner_line, links) == (
        "(no owner), account unknown, region unknown",
        "Rule: gpu-underused",
    )


@whole_documents
@given(documents())
def test_any_audit_fits_and_is_inert(audit: AuditDocument) -> None:
    """Any audit gives valid UTF-8 within every limit, without mentions and foreign links."""
    payload = make_payload(document_card(audit), {"anna": "U0123ABC"})
    assert_within_limits(payload)
    assert json.dumps(payload, ensure_ascii=False).encode("utf-8")
    assert all(block["text"]["verbatim"] is True for block in payload["blocks"])
    *other_sections, foot = section_texts(payload)
    own_text = LINK.sub("", foot).removeprefix("<@U0123ABC>, ")
    for text in (*other_sections, own_text, payload["text"]):
        assert not set(text) & set("<>"), text


def test_a_link_too_long_to_post_is_left_out() -> None:
    """SageMaker's own names are far shorter."""
    foot = section_texts(make_payload(document_card(document(job=job(name="ä" * 500)))))[-1]
    assert "|Job>" not in foot
    assert_within_limits(make_payload(document_card(document(job=job(name="ä" * 500)))))


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "section", "text": {"text": "x" * 3001}}],
        [{"type": "section", "block_id": "headline", "text": {"text": "x" * 2999}}],
        [{"type": "section", "text": {"text": ""}}],
        [{"type": "divider"}] * 51,
        ["no block"],
    ],
)
def test_what_slack_refuses_is_malformed(blocks: Any) -> None:
    """A payload that is too large only with the mark of a repeat is malformed too."""
    with pytest.raises(MalformedData, match="payload"):
        check_payload({"text": "news", "blocks": blocks})
