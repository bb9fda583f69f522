"""The one document of an audit, whichever of the three cases it is."""

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
    """An on-demand run of three hours."""
    ran = job()
    return audit_job(ran, usage(ran), market(), Policy(), RULES, now=START)


def tuning_job() -> Audit:
    """A set of one training job, without its tuning job's own answer."""
    return audit_roll_up(None, [Child(document(one_job()), {})], Policy(), RULES, now=START)


def gone(kind: JobKind) -> Audit:
    """A job that was deleted before anybody looked."""
    ref = JobRef(kind, "gone", f"arn:of:{kind.value}/gone", ACCOUNT, REGION)
    ended = JobEndEvent(ref, "Completed", None, datetime(2026, 5, 20, tzinfo=UTC), {})
    return unauditable_audit(ended, "there is no such job", Policy(), "test")


AUDITS = [one_job(), tuning_job(), *map(gone, JobKind)]


def shape(value: Any, path: str = "") -> Iterator[str]:
    """The keys of a document, without those of its rows and of its open tables."""
    if isinstance(value, dict) and not path.endswith((".share", ".evidence")):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from shape(inner, f"{path}.{key}")


@pytest.mark.parametrize("audit", AUDITS)
def test_every_audit_has_the_same_keys(audit: Audit) -> None:
    """A tuning job and a job that could not be audited have the keys of any other, in order."""
    assert list(shape(document(audit))) == list(shape(document(AUDITS[0])))


@pytest.mark.parametrize("audit", AUDITS)
def test_a_document_is_what_json_gives_back(audit: Audit) -> None:
    """Its words are plain text and its figures exact, so that no reader sees two types of it."""
    written = document(audit)
    assert plain_types(written) == plain_types(from_json(to_json(written)))
    assert from_json(to_json(written)) == written


def plain_types(value: Any) -> Any:
    """The type of each value."""
    if isinstance(value, dict):
        return {key: plain_types(inner) for key, inner in value.items()}
    return [plain_types(inner) for inner in value] if isinstance(value, list) else type(value)


def test_every_rule_has_one_place() -> None:
    """A finding, or why it could not judge, does not apply or found nothing."""
    written = document(AUDITS[0])
    rows = [*written["findings"], *written["unknown"], *written["not_applicable"]]
    named = [*(row["rule"] for row in rows), *written["clear"]]
    assert sorted(named) == sorted(name.name for name, _ in AUDITS[0].outcomes)


def test_children_are_shown_where_they_are_given() -> None:
    """None where they have their own audits in the history, an empty list where there are none."""
    assert document(tuning_job())["children"] is None
    assert document(tuning_job(), [])["children"] == []


@pytest.mark.parametrize("kind", JobKind)
def test_a_job_that_could_not_be_audited_is_no_sum(kind: JobKind) -> None:
    """Also not of a tuning job; its coverage names the reason as what is missing, and no metric."""
    written = document(gone(kind))
    unseen: dict[str, Any] = {"period_s": None, "hosts": 0, "hosts_expected": None, "share": {}}
    assert written["audit"]["coverage"] == unseen | {"missing": ["there is no such job"]}
    assert (written["rollup"], written["unauditable"]) == (False, "there is no such job")
    assert (written["bill"]["total_usd"], written["job"]["purchase"]) == (None, None)


@pytest.mark.parametrize("written", [finding(), finding("gpu-underused")])
def test_a_standing_finding_is_read_back_as_it_was_written(written: Any) -> None:
    """Roll-ups build on the findings of their children's documents."""
    assert is_standing(written)
    assert finding_document(parse_finding(written)) == written
