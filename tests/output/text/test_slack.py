from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.output.text.slack import fit, message
from sageaudit.output.text.untrusted import units
from tests.fakes.documents import document, finding, job, lost_document
from tests.fakes.hostile import documents, whole_documents

LINK = re.compile(
    r"<https://[a-z0-9-]+\.console\.aws\.amazon\.com/[^<>|\s]*\|(?:Job|Metrics|Logs)>"
)


def texts(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every text object."""
    for block in payload["blocks"]:
        yield from (block[key] for key in ("text",) if key in block)
        yield from block.get("fields", [])
        yield from block.get("elements", [])


def text_of(payload: dict[str, Any], block_id: str) -> str:
    """The text of one section."""
    (block,) = (block for block in payload["blocks"] if block["block_id"] == block_id)
    return str(block["text"]["text"])


def assert_within_limits(payload: dict[str, Any]) -> None:
    """Slack's limits, and that no text is empty."""
    blocks = payload["blocks"]
    assert len(blocks) <= 50
    assert units(json.dumps(blocks, ensure_ascii=False)) <= 13_000
    assert 0 < units(payload["text"]) < 4000
    assert len({block["block_id"] for block in blocks}) == len(blocks)
    for block in blocks:
        limit = 150 if block["type"] == "header" else 3000
        assert "text" not in block or 0 < units(block["text"]["text"]) <= limit
        assert len(block.get("fields", [])) <= 10
        assert len(block.get("elements", [])) <= 10
    for text in texts(payload):
        assert units(text["text"]) > 0
    for block in blocks:
        assert all(units(field["text"]) <= 2000 for field in block.get("fields", []))


def test_the_news_is_in_header_and_notification_then_comes_the_rest() -> None:
    """Money first, then why, the fix to copy, evidence, owner, links and where it ran."""
    payload = message(document())
    ids = [block["block_id"] for block in payload["blocks"]]
    assert ids == ["headline", "why", "fix", "evidence", "owner", "links", "context"]
    news = "HIGH  $2.04 of $4.55 (45%) was avoidable - train-bert-0412"
    assert text_of(payload, "headline") == news
    assert payload["text"].startswith(news)
    assert text_of(payload, "fix") == (
        "*Fix*: saves $1.53 per run with the other fixes applied; alone $1.73 to $1.98\n"
        '`ResourceConfig.InstanceType = "ml.g4dn.xlarge"`  was "ml.g5.2xlarge"\n'
        "Caveat: The data loader gets 4 vCPUs in place of 8."
    )


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        ({"anna": "U0123ABC"}, "Owner: <@U0123ABC>"),
        ({"anna": "S0123ABC"}, "Owner: <!subteam^S0123ABC>"),
        ({"anna": "!channel"}, "Owner: anna"),
        ({"bob": "U0123ABC"}, "Owner: anna"),
    ],
)
def test_owner(ids: dict[str, str], shown: str) -> None:
    """Only an id on the list that looks like one is mentioned."""
    assert text_of(message(document(), owner_ids=ids), "owner") == shown


def test_hostile_failure_is_inert() -> None:
    """A failure message neither mentions, links nor formats."""
    whole = json.dumps(message(lost_document()), ensure_ascii=False)
    for attack in ("<!channel", "<https://evil", "\\u001b", "\u202e"):
        assert attack not in whole


def test_what_is_not_known_is_said_or_left_out() -> None:
    """Without owner, region or ARN."""
    payload = message(document(job=job(owner=None, region=None)), owner_ids={"": "U0123ABC"})
    assert text_of(payload, "owner") == "Owner: (no owner)"
    assert text_of(payload, "links").startswith("Full audit: `sageaudit audit arn:")
    nothing = message(document(job=job(region=None, arn=None)))
    assert "links" not in {block["block_id"] for block in nothing["blocks"]}


@whole_documents
@given(documents())
def test_any_audit_fits_and_is_inert(audit: AuditDocument) -> None:
    """Whatever the audit holds: within every limit, valid UTF-8, no mention, no foreign link."""
    payload = message(audit, owner_ids={"anna": "U0123ABC"})
    assert_within_limits(payload)
    assert json.dumps(payload, ensure_ascii=False).encode("utf-8")
    owned = "Owner: <@U0123ABC>"
    for text in texts(payload):
        own = LINK.sub("", text["text"])
        own = own.replace("<@U0123ABC>", "") if own == owned else own
        assert not set(own) & set("<>"), own
        assert text["type"] == "plain_text" or text["verbatim"] is True
    assert not set(payload["text"]) & set("<>")


def test_plots_are_in_no_message() -> None:
    """Five metrics of 48 points stand in the audit; a phone shows the finding's numbers."""
    row = {"metric": "GPUMemoryUtilization", "unit": "percent", "hosts": 1, "period_s": 300}
    series = [{**row, "values": [Decimal("93.2")] * 48} for _ in range(5)]
    payload = message(document(findings=[finding(evidence={"vcpu": 4, "series": series})]))
    assert_within_limits(payload)
    (fields,) = (block["fields"] for block in payload["blocks"] if "fields" in block)
    assert [field["text"].partition("*:")[0] for field in fields][2:] == ["*vCPU"]
    assert "93.2" not in json.dumps(payload)


def section(number: int, length: int) -> dict[str, Any]:
    """A section whose text is all entities."""
    text = {"type": "mrkdwn", "text": "&amp;" * (length // 5), "verbatim": True}
    return {"type": "section", "block_id": f"b{number}", "text": text}


def test_evidence_goes_first() -> None:
    """What fits stays as it is; else evidence goes before any text is cut."""
    payload = {"text": "news", "blocks": [section(1, 100)], "unfurl_links": False}
    assert fit(payload) == payload
    fields = [{"type": "mrkdwn", "text": "x" * 1500, "verbatim": True}] * 9
    evidence = {"type": "section", "block_id": "evidence", "fields": fields}
    assert fit({"text": "x", "blocks": [section(1, 2000), evidence]})["blocks"] == [
        section(1, 2000)
    ]


@pytest.mark.parametrize(("count", "length"), [(51, 10), (400, 10), (300, 9000)])
def test_too_many_blocks_are_counted(count: int, length: int) -> None:
    """What is left out is announced with its number."""
    payload = {"text": "x" * 9000, "blocks": [section(n, length) for n in range(count)]}
    fitted = fit(payload)
    assert_within_limits(fitted)
    shown = len(fitted["blocks"]) - 1
    assert fitted["blocks"][-1]["elements"][0]["text"] == f"+{count - shown} more"


def test_long_texts_lose_their_middle_before_blocks_go() -> None:
    """Fifty long sections all stay, shorter."""
    payload = {"text": "x", "blocks": [section(n, 3000) for n in range(50)]}
    fitted = fit(payload)
    assert_within_limits(fitted)
    assert [block["block_id"] for block in fitted["blocks"]] == [f"b{n}" for n in range(50)]


def test_too_many_fields_are_counted() -> None:
    """The last field says how many are not shown."""
    fields = [{"type": "mrkdwn", "text": f"f{n}", "verbatim": True} for n in range(14)]
    blocks = [{"type": "section", "block_id": "evidence", "fields": fields}]
    shown = fit({"text": "x", "blocks": blocks})["blocks"][0]["fields"]
    assert len(shown) == 10
    assert shown[-1]["text"] == "+5 more"
