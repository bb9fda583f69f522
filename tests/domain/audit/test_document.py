"""The document of an audit has the same form in all three cases."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.domain.audit.audit import Audit, unauditable_audit
from sageaudit.domain.audit.document import document
from sageaudit.domain.audit.finding_document import finding_document, is_standing, parse_finding
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobEndEvent, JobRef
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.workflows.audit.judge import Child, audit_job, audit_roll_up
from tests.fakes.documents import finding
from tests.fakes.jobs import ACCOUNT, REGION, START, job, market, usage

RULES = Ruleset(catalogue.load(), "test")


def one_job() -> Audit:
    """Returns the audit of an on-demand run of three hours."""
    ran = job()
    return audit_job(ran, usage(ran), market(), Policy(), RULES, now=START)


def tuning_job() -> Audit:
    """Returns a roll-up of one training job, without the tuning job's own answer."""
    return audit_roll_up(None, [Child(document(one_job()), {})], Policy(), RULES, now=START)


def unauditable_document(kind: JobKind) -> Audit:
    """Returns the audit of a job that was deleted before anybody described it."""
    ref = JobRef(kind, "gone", f"arn:of:{kind.value}/gone", ACCOUNT, REGION)
    ended = JobEndEvent(ref, "Completed", None, datetime(2026, 5, 20, tzinfo=UTC), {})
    return unauditable_audit(ended, "there is no such job", Policy(), "test")


AUDITS = [one_job(), tuning_job(), *map(unauditable_document, JobKind)]


def shape(value: Any, path: str = "") -> Iterator[str]:
    """Returns the keys of a document, without those of its rows and of its open tables."""
    if isinstance(value, dict) and not path.endswith((".share", ".evidence")):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from shape(inner, f"{path}.{key}")


@pytest.mark.parametrize("audit", AUDITS)
def test_every_audit_has_the_same_keys(audit: Audit) -> None:
    """A tuning job and an unauditable job have the keys of any other job, in the same order."""
    assert list(shape(document(audit))) == list(shape(document(AUDITS[0])))


@pytest.mark.parametrize("audit", AUDITS)
def test_a_document_is_what_json_gives_back(audit: Audit) -> None:
    """Words are plain text and figures are exact, so that a reader gets the same types."""
    audit_document = document(audit)
    assert plain_types(audit_document) == plain_types(from_json(to_json(audit_document)))
    assert from_json(to_json(audit_document)) == audit_document


def plain_types(value: Any) -> Any:
    """Returns the type of each value."""
    if isinstance(value, dict):
        return {key: plain_types(inner) for key, inner in value.items()}
    return [plain_types(inner) for inner in value] if isinstance(value, list) else type(value)


def test_every_rule_has_one_place() -> None:
    """A rule has a finding, could not judge, does not apply, or found nothing."""
    audit_document = document(AUDITS[0])
    rows = [
        *audit_document["findings"],
        *audit_document["unknown"],
        *audit_document["not_applicable"],
    ]
    rule_names = [*(row["rule"] for row in rows), *audit_document["clear"]]
    assert sorted(rule_names) == sorted(name.name for name, _ in AUDITS[0].outcomes)


def test_children_are_included_if_they_are_passed() -> None:
    """None if they have their own audits in the history; an empty list if there are none."""
    assert document(tuning_job())["children"] is None
    assert document(tuning_job(), [])["children"] == []


@pytest.mark.parametrize("kind", JobKind)
def test_a_job_that_could_not_be_audited_is_not_a_roll_up(kind: JobKind) -> None:
    """That includes a tuning job. The coverage names the reason as missing, and no metric."""
    audit_document = document(unauditable_document(kind))
    unseen: dict[str, Any] = {"period_s": None, "hosts": 0, "hosts_expected": None, "share": {}}
    assert audit_document["audit"]["coverage"] == unseen | {"missing": ["there is no such job"]}
    assert (audit_document["rollup"], audit_document["unauditable"]) == (
        False,
        "there is no such job",
    )
    assert (audit_document["bill"]["total_usd"], audit_document["job"]["purchase"]) == (None, None)


@pytest.mark.parametrize("written", [finding(), finding("gpu-underused")])
def test_a_standing_finding_is_read_back_as_it_was_written(written: Any) -> None:
    """Roll-ups read the findings of their children's documents."""
    assert is_standing(written)
    assert finding_document(parse_finding(written)) == written
