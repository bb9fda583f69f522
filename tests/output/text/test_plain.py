import json
import re
import string
from decimal import Decimal

import pytest
from hypothesis import given

from sageaudit.domain.advice.totals import Month
from sageaudit.domain.alert.alert import AlertDecision, AlertKind
from sageaudit.domain.alert.audit_figures import AlertFigures, MessageAudit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text.card import message_attributes
from sageaudit.output.text.plain import make_payload
from tests.fakes.documents import document, finding, fix, job
from tests.fakes.hostile import documents, whole_documents
from tests.fakes.messages import alert, document_card
from tests.fakes.sample_documents import lost_document


def test_subject() -> None:
    """The subject is the card's title."""
    title = "train-bert wastes about $540 a month (12 runs): use 1 x ml.g4dn.xlarge"
    assert make_payload(document_card(document()))["subject"] == title


def test_a_long_subject_loses_its_step() -> None:
    """A subject that is still too long is cut in the middle."""
    step = "A" * 60
    audit = document(findings=[finding(saving_usd=Decimal("2.04"), fix=[fix("A" * 60, 1, None)])])
    assert step not in make_payload(document_card(audit))["subject"]
    figures = AlertFigures(Severity.HIGH, Decimal(10**12), Decimal(10**12), Decimal(10**12))
    last = alert(figures)
    subject = make_payload(
        document_card(audit, AlertDecision(AlertKind.CORRECTION, previous_alert=last))
    )["subject"]
    assert len(subject) == 99
    assert subject.startswith("Correction: train-bert wasted $2.04, not ")
    assert subject.endswith(" more as reported")
    assert "~" in subject


def test_attributes() -> None:
    """A subscription can filter by the month's severity, kind, rule, owner, account, region and
    dollars.
    """
    month = Month(AmountKind.COUNTED, Decimal(540), Decimal(540), 12)
    assert message_attributes(MessageAudit.parse(document()), AlertDecision(month=month)) == {
        "month_severity": {"type": "String", "value": "high"},
        "job_type": {"type": "String", "value": "training"},
        "rule_ids": {"type": "String.Array", "value": '["SA202", "SA101"]'},
        "owner": {"type": "String", "value": "anna"},
        "account": {"type": "String", "value": "111122223333"},
        "region": {"type": "String", "value": "us-east-1"},
        "judged": {"type": "String", "value": "yes"},
        "message_kind": {"type": "String", "value": "first"},
        "avoidable_usd": {"type": "Number", "value": "2.035"},
        "lost_usd": {"type": "Number", "value": "0"},
    }


def test_an_unknown_value_has_no_attribute() -> None:
    """A filter must not take it for zero."""
    audit = document(
        job=job(owner=None, account=None, region=None), avoidable_usd=None, lost_usd=None
    )
    assert set(message_attributes(MessageAudit.parse(audit))) == {
        "job_type",
        "rule_ids",
        "judged",
        "message_kind",
    }


@pytest.mark.parametrize(
    ("amount", "expected"),
    [("1e12", "1000000000"), ("0.1234567", "0.12346"), ("100", "100"), ("0.000001", "0")],
)
def test_numbers_are_within_the_limits_of_filters(amount: str, expected: str) -> None:
    """SNS compares numbers up to 1,000,000,000 with five decimals."""
    assert (
        message_attributes(MessageAudit.parse(document(avoidable_usd=Decimal(amount))))[
            "avoidable_usd"
        ]["value"]
        == expected
    )


def test_a_hostile_failure_message_is_inert() -> None:
    """No line, link or control character of it reaches the e-mail."""
    body = make_payload(document_card(lost_document()))["message"]
    assert "http://evil" not in body
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", body)


@whole_documents
@given(documents())
def test_any_audit_is_a_valid_notice(audit: AuditDocument) -> None:
    """SNS accepts the notice of any audit."""
    notice = make_payload(document_card(audit))
    subject = notice["subject"]
    assert 0 < len(subject) < 100
    assert subject.isascii()
    assert subject.isprintable()
    assert subject[0].isalnum() or subject[0] in string.punctuation
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", notice["message"])
    assert len(json.dumps(notice, ensure_ascii=False).encode("utf-8")) < 262_144
    for attribute in notice["attributes"].values():
        assert attribute["value"]
        if attribute["type"] == "Number":
            assert abs(Decimal(attribute["value"])) <= Decimal(10**9)
    assert isinstance(json.loads(notice["attributes"]["rule_ids"]["value"]), list)
