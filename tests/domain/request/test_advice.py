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
    """Returns a standing finding with a fix."""
    values: dict[str, Any] = {"saving_alone_usd": 2, "fix": [TYPE]} | changes
    return documents.finding(rule, **values)


def audit(*findings: FindingDocument, name: str = "train-1") -> AuditDocument:
    """Returns the audit of an earlier run."""
    job = {"name": name, "ended_at": "2026-05-19T10:00:00+00:00"}
    return cast(AuditDocument, {"job": job, "findings": list(findings)})


def unfollowed_rules(
    audits: list[AuditDocument], changes: dict[str, Any] | None = None
) -> list[str]:
    """Returns the rules whose fixes the request does not follow."""
    kind = JobKind.TRAINING
    request = Request(kind, body(kind, changes), "training job", REQUEST_SHAPES[kind])
    return [item.finding["rule"] for item in find_unfollowed(request, audits)]


def test_a_fix_whose_old_value_is_unchanged_is_not_followed() -> None:
    """It is listed once, with the number of runs that had it."""
    request = Request(JobKind.TRAINING, body(), "training job", REQUEST_SHAPES[JobKind.TRAINING])
    [item] = find_unfollowed(request, [audit(finding(), name="new"), audit(finding(), name="old")])
    assert (item.finding["rule"], item.run, item.runs, item.usd) == ("cheaper-type", "new", 2, 2)


def test_a_fix_that_was_followed_is_not_repeated() -> None:
    """Neither is one about a type that the request no longer has."""
    for name in ("ml.m5.large", "ml.g5.xlarge"):
        assert unfollowed_rules([audit(finding())], {"ResourceConfig.InstanceType": name}) == []


def test_an_unknown_value_may_follow_the_fix() -> None:
    """It may follow the recommendation."""
    assert unfollowed_rules([audit(finding())], {"ResourceConfig.InstanceType": LATER}) == []


def test_a_switch_that_is_off_may_as_well_be_absent() -> None:
    """All parameters of a fix must still have their old values."""
    spot = {"parameter": "EnableManagedSpotTraining", "old": False, "new": True}
    wait = {"parameter": "StoppingCondition.MaxWaitTimeInSeconds", "old": None, "new": 7200}
    audits = [audit(finding("spot-not-used", fix=[spot, wait]))]
    assert unfollowed_rules(audits) == ["spot-not-used"]
    assert unfollowed_rules(audits, {"EnableManagedSpotTraining": True}) == []


def test_findings_that_do_not_stand_are_ignored() -> None:
    """They are exempt, covered by another finding, or without a fix."""
    marks: dict[str, Any] = {"exempt": {"by": "tag"}, "fix": []}
    marks |= dict.fromkeys(("superseded_by", "subsumed_by"), "gpu-idle")
    for part, value in marks.items():
        assert unfollowed_rules([audit(finding(**{part: value}))]) == []


def test_a_finding_on_the_request_itself_is_not_repeated() -> None:
    """The finding names the run with the same finding."""
    spot = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition.MaxRuntimeInSeconds": 9000,
        "StoppingCondition.MaxWaitTimeInSeconds": 9000,
    }
    parameter = {"parameter": "CheckpointConfig.S3Uri", "old": None, "new": "s3://<bucket>"}
    told = audit(finding("spot-without-checkpoint", fix=[parameter]), name="before")
    result = checked_request(spot, earlier=[earlier_run(1)], audits=[told])
    [own] = [f for f in result.findings if f.rule.name == "spot-without-checkpoint"]
    assert own.reported_for_run == "before"
    assert result.unfollowed == ()
