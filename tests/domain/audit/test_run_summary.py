"""What later runs of a family know of a run."""

from decimal import Decimal

from msgspec.structs import fields

from sageaudit.domain.audit.family_runs import summary_of_run
from sageaudit.domain.audit.finding_document import recommendation_from_finding, value_text
from sageaudit.domain.audit.summary import RUN_FIELDS, AuditSummary
from tests.fakes import recorded
from tests.fakes.jobs import ran


def test_every_field_of_the_run_itself_is_stored() -> None:
    """They are the last fields of a summary. One that RUN_FIELDS lacks would be lost when it is
    recorded.
    """
    names = [field.name for field in fields(AuditSummary)]
    assert {*names[names.index("purchase") :]} == {*RUN_FIELDS}


def test_no_more_final_metrics_are_kept_than_a_job_may_define() -> None:
    """The first 40 are kept, so that a row of the history stays small."""
    metrics = {f"metric-{n}": Decimal(n) for n in range(41)}
    facts = summary_of_run(ran(3600, final_metrics=metrics))
    assert list(facts.final_metrics) == list(metrics)[:40]


def test_a_later_run_shows_whether_a_recommendation_was_followed() -> None:
    """For each parameter of a recommendation with dollars, every recorded run has its own value, in
    the same form. Otherwise a change of the value would go unnoticed.
    """
    seen = set()
    for job in recorded.all_recorded_jobs():
        facts = summary_of_run(job.job)
        for finding in job.document["findings"]:
            if recommendation_from_finding(finding) is None or not finding["fix"]:
                continue
            first = finding["fix"][0]
            seen.add(first["parameter"].partition("[")[0])
            own = facts.setting_value(first["parameter"])
            assert own == (value_text(first["old"]) or own), (job.file, first)
            assert own != value_text(first["new"]), (job.file, first)
    assert {"ResourceConfig.InstanceType", "CheckpointConfig.S3Uri"} <= seen
