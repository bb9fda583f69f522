from typing import Any, cast

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.forecast import find_unfollowed
from sageaudit.domain.request.request import REQUEST_SHAPES, Request
from tests.fakes import documents
from tests.fakes.families import earlier_run
from tests.fakes.planned import LATER, body, checked_request

TYPE = {"parameter": "ResourceConfig.InstanceType", "old": "ml.m5.xlarge", "new": "ml.m5.large"}


def finding(rule: str = "cheaper-type", **changes: Any) -> FindingDocument:
    """One that stands, with a fix."""
    whole: dict[str, Any] = {"saving_alone_usd": 2, "fix": [TYPE]} | changes
    return documents.finding(rule, **whole)


def audit(*findings: FindingDocument, name: str = "train-1") -> AuditDocument:
    """The audit of an earlier run."""
    job = {"name": name, "ended_at": "2026-05-19T10:00:00+00:00"}
    return cast(AuditDocument, {"job": job, "findings": list(findings)})


def asked(audits: list[AuditDocument], changes: dict[str, Any] | None = None) -> list[str]:
    """The rules whose advice a request ignores."""
    kind = JobKind.TRAINING
    request = Request(kind, body(kind, changes), "training job", REQUEST_SHAPES[kind])
    return [item.finding["rule"] for item in find_unfollowed(request, audits)]


def test_advice_whose_old_value_still_stands_is_ignored() -> None:
    """It is told once, with the number of runs that were told it."""
    request = Request(JobKind.TRAINING, body(), "training job", REQUEST_SHAPES[JobKind.TRAINING])
    [item] = find_unfollowed(request, [audit(finding(), name="new"), audit(finding(), name="old")])
    assert (item.finding["rule"], item.run, item.runs, item.usd) == ("cheaper-type", "new", 2, 2)


def test_advice_that_was_taken_is_not_repeated() -> None:
    """And neither is one about a type that the request no longer has."""
    for name in ("ml.m5.large", "ml.g5.xlarge"):
        assert asked([audit(finding())], {"ResourceConfig.InstanceType": name}) == []


def test_a_value_that_is_known_later_is_not_held_against_it() -> None:
    """It may follow the advice."""
    assert asked([audit(finding())], {"ResourceConfig.InstanceType": LATER}) == []


def test_a_switch_that_is_off_may_as_well_be_absent() -> None:
    """All parameters of a fix must still be as they were."""
    spot = {"parameter": "EnableManagedSpotTraining", "old": False, "new": True}
    wait = {"parameter": "StoppingCondition.MaxWaitTimeInSeconds", "old": None, "new": 7200}
    audits = [audit(finding("spot-not-used", fix=[spot, wait]))]
    assert asked(audits) == ["spot-not-used"]
    assert asked(audits, {"EnableManagedSpotTraining": True}) == []


def test_findings_that_do_not_stand_are_no_advice() -> None:
    """Exempt, covered by another, or without a fix."""
    marks: dict[str, Any] = {"exempt": {"by": "tag"}, "fix": []}
    marks |= dict.fromkeys(("superseded_by", "subsumed_by"), "gpu-idle")
    for part, value in marks.items():
        assert asked([audit(finding(**{part: value}))]) == []


def test_what_a_rule_of_requests_says_itself_is_not_said_twice() -> None:
    """The finding names the run that was told the same."""
    spot = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition.MaxRuntimeInSeconds": 9000,
        "StoppingCondition.MaxWaitTimeInSeconds": 9000,
    }
    parameter = {"parameter": "CheckpointConfig.S3Uri", "old": None, "new": "s3://<bucket>"}
    told = audit(finding("spot-without-checkpoint", fix=[parameter]), name="before")
    found = checked_request(spot, earlier=[earlier_run(1)], audits=[told])
    [own] = [f for f in found.findings if f.rule.name == "spot-without-checkpoint"]
    assert own.reported_for_run == "before"
    assert found.ignored == ()
