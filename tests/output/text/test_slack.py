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


def texts(payload: dict[str, Any]) -> list[str]:
    """The text of every section."""
    return [block["text"]["text"] for block in payload["blocks"]]


def assert_within_limits(payload: dict[str, Any]) -> None:
    """Slack's limits, and that no text is empty."""
    check_payload(payload)
    assert len(payload["blocks"]) <= 50
    assert all(0 < utf16_length(text) <= 3000 for text in texts(payload))
    assert 0 < utf16_length(payload["text"]) < 4000
    assert utf16_length(json.dumps(payload["blocks"], ensure_ascii=False)) <= 13_000


def test_the_news_is_in_headline_and_notification_then_comes_the_rest() -> None:
    """The card in three sections: the news, why and what to do, whose it is and how to go on."""
    payload = make_payload(document_card(document(), first_decision(recommendation=open_advice())))
    news = "train-bert wastes about $540 a month, 12 runs: use 1 x ml.g4dn.xlarge"
    assert payload["text"] == news
    headline, card, foot = texts(payload)
    assert headline == f"*{news}*"
    assert card.split("\n")[:4] == [
        "*Why*: The GPU averaged 11% over 2 h 20 min; p95 was 24%.",
        "*Do this*: saves $1.53 of this run's $4.55; $540 a month",
        '`InstanceType = "ml.g4dn.xlarge"`',
        "*Caveat*: The data loader gets 4 vCPUs in place of 8.",
    ]
    assert LINK.sub("link", foot).split("\n") == [
        "anna, 111122223333, us-east-1",
        "link  link  link  gpu-underused",
        "*Numbers*: `sageaudit show train-bert-0412`",
        "*Snooze 30 days*: `sageaudit advice snooze abcdefgh`",
    ]


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        ({"anna": "U0123ABC"}, "<@U0123ABC>"),
        ({"anna": "S0123ABC"}, "<!subteam^S0123ABC>"),
        ({"anna": "!channel"}, "anna"),
        ({"bob": "U0123ABC"}, "anna"),
    ],
)
def test_owner(ids: dict[str, str], shown: str) -> None:
    """Only an id on the list that looks like one is mentioned."""
    assert texts(make_payload(document_card(document()), ids))[-1].startswith(f"{shown}, 1111")


def test_hostile_failure_is_inert() -> None:
    """A failure message neither mentions, links nor formats."""
    whole = json.dumps(make_payload(document_card(lost_document())), ensure_ascii=False)
    for attack in ("<!channel", "<https://evil", "\\u001b", "\u202e"):
        assert attack not in whole


def test_what_is_not_known_is_said_or_left_out() -> None:
    """Without owner, account or region."""
    unknown = job(owner=None, account=None, region=None)
    payload = make_payload(document_card(document(job=unknown)), {"": "U0123ABC"})
    whose, links, *_ = texts(payload)[-1].split("\n")
    assert (whose, links) == ("(no owner), account unknown, region unknown", "gpu-underused")


@whole_documents
@given(documents())
def test_any_audit_fits_and_is_inert(audit: AuditDocument) -> None:
    """Whatever the audit holds: within every limit, valid UTF-8, no mention, no foreign link."""
    payload = make_payload(document_card(audit), {"anna": "U0123ABC"})
    assert_within_limits(payload)
    assert json.dumps(payload, ensure_ascii=False).encode("utf-8")
    assert all(block["text"]["verbatim"] is True for block in payload["blocks"])
    *others, foot = texts(payload)
    own = LINK.sub("", foot).removeprefix("<@U0123ABC>, ")
    for text in (*others, own, payload["text"]):
        assert not set(text) & set("<>"), text


def test_a_link_too_long_to_post_is_left_out() -> None:
    """Names of SageMaker are far shorter."""
    foot = texts(make_payload(document_card(document(job=job(name="ä" * 500)))))[-1]
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
    """Also where only the mark of a repeat is too much."""
    with pytest.raises(MalformedData, match="payload"):
        check_payload({"text": "news", "blocks": blocks})
