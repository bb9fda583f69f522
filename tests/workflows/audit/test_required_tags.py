"""`[require]` of tags and settings in the flow: what is asked, stored, and said later."""

import json
from typing import Any

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy, parse
from sageaudit.errors import AccessDenied
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from tests.fakes.audit_flow import END, KEY, AuditFlow
from tests.fakes.jobs import training_answer
from tests.workflows.audit.test_reaudit import DAY, HOUR, MINUTE, pool

RULE = "requirement-not-met"
KNOWN: dict[str, dict[str, str]] = {rule.info.name: {} for rule in catalogue.load()}
TEAM = parse({"require": {"Tags.purpose": "set"}}, KNOWN)
DENIED = AccessDenied("sagemaker:ListTags", "sagemaker:ListTags is not permitted.")


def answer(document: AuditDocument) -> str:
    """What is said of the requirement: its finding, "clear", or why it is unknown."""
    for finding in document["findings"]:
        if finding["rule"] == RULE:
            return finding["summary"]
    unknown = {row["rule"]: row["reason"] for row in document["unknown"]}
    return "clear" if RULE in document["clear"] else unknown.get(RULE, "not applicable")


def flow(policy: Policy = TEAM, tags: Any = None, *answers: dict[str, Any]) -> AuditFlow:
    """One job with these tags under a policy."""
    return AuditFlow(list(answers) or [training_answer()], tags=tags, policy=policy)


def test_a_required_tag_is_asked_for_and_its_value_is_not_stored() -> None:
    """Only that it is set, or not."""
    audit_flow = flow(tags={"purpose": "project-x", "other": "y"})
    assert answer(audit_flow.deliver_and_record(END + 21 * MINUTE).document) == "clear"
    detail = audit_flow.history.detail(KEY)
    assert detail is not None
    assert detail.tags == {"purpose": "(set)"}
    assert "project-x" not in json.dumps([audit_flow.document, detail.describe], default=str)
    without = flow(tags={"other": "y"})
    said = answer(without.deliver_and_record(END + 21 * MINUTE).document)
    assert (
        said == "The policy's requirements are not met: the tag purpose is not set (required: set)."
    )


def test_the_events_own_tags_are_all_that_the_job_has() -> None:
    """SageMaker is not asked for others."""
    audit_flow = flow(tags=DENIED)
    assert "purpose is not set" in answer(
        audit_flow.deliver_and_record(END + HOUR, Tags={"x": "y"}).document
    )
    assert (
        answer(flow(tags=DENIED).deliver_and_record(END + HOUR, Tags={"purpose": "v"}).document)
        == "clear"
    )


def test_tags_that_could_not_be_read_are_not_called_missing() -> None:
    """It is unknown whether the tag is set."""
    said = answer(flow(tags=DENIED).deliver_and_record(END + HOUR).document)
    assert said == "Tags[purpose].Value: not all of its tags were read"


def test_at_a_second_look_what_is_stored_is_known() -> None:
    """Whether the tag was set or not, if the policy of then asked for it."""
    for tags, expected in (({"purpose": "v"}, "clear"), ({}, "purpose is not set")):
        audit_flow = flow(TEAM, tags, pool("Available"), pool("Terminated", 600))
        audit_flow.deliver_and_record(END + 5 * MINUTE)
        audit_flow.jobs.tag_answer = DENIED
        assert expected in answer(audit_flow.deliver_and_record(END + 2 * HOUR).document)


def test_a_tag_that_was_not_asked_for_is_unknown_later() -> None:
    """The policy requires it only by now, and the job's tags cannot be read any more."""
    audit_flow = flow(Policy(), {"purpose": "v"}, pool("Available"), pool("Terminated", 600))
    audit_flow.deliver_and_record(END + 5 * MINUTE)
    audit_flow.jobs.tag_answer = DENIED
    audit_flow.deps = replace(audit_flow.deps, policy=TEAM)
    assert "not all of its tags were read" in answer(
        audit_flow.deliver_and_record(END + 2 * HOUR).document
    )


def test_nobody_gets_a_message_about_it() -> None:
    """It has no dollars: an audit, a check and `--fail-on` say it."""
    audit_flow = flow()
    document = audit_flow.deliver_and_record(END + DAY).document
    [finding] = [row for row in document["findings"] if row["rule"] == RULE]
    assert (finding["severity"], finding["bucket"]) == ("medium", "none")
    assert finding["saving_usd"] is None
    head = audit_flow.summary
    assert RULE not in [advised.rule for advised in head.recommendations or ()]
