"""Followed advice is never reversed, on any machine."""

from datetime import timedelta
from decimal import Decimal

from hypothesis import given

from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.bill.finding import Finding
from sageaudit.domain.job.kinds import Component
from tests.labelled.followed import Way, next_recording, ways_to_follow
from tests.labelled.made_up_job import REGION
from tests.properties.judged import EXEMPT, Document, audited, property_settings
from tests.properties.programs import Run, runs

TRIALS = {
    "trainium-candidate": "other hardware and other code, more expensive per hour, with the "
    "speed from which it pays: a trial, never a further step of this recommendation"
}
"""Rules that may name a more expensive type; none may name the type that was left."""
_DAY = timedelta(days=1)
_ROUNDS = 3


def hourly_usd(name: str) -> Decimal:
    """Returns the current hourly price of one instance."""
    book = sources.offline_book(REGION, Component.TRAINING, None)
    rate = book.hourly_rate(REGION, Component.TRAINING, name)
    return Decimal("Infinity") if rate is None else rate.usd


def types_named(finding: Finding) -> list[str]:
    """Returns the types that the finding's fix and alternatives name."""
    return [
        str(parameter.new)
        for fix in (finding.detection.fix, *finding.detection.alternatives)
        for parameter in fix
        if parameter.path.endswith("InstanceType")
        and str(parameter.new) in packaged.instance_types()
    ]


def best_way(findings: tuple[Finding, ...]) -> Way | None:
    """Returns the fix of the first counted finding whose fix sets every value."""
    for finding in findings:
        if finding.is_standing and finding.saving_usd and finding.rule.name not in EXEMPT:
            for way in ways_to_follow(finding):
                return way
    return None


def type_of(job_recording: Document) -> str:
    """Returns the instance type of a recording."""
    return str(job_recording["describe"]["ResourceConfig"]["InstanceType"])


@property_settings(120)
@given(runs(whole=True))
def test_no_fix_leads_back_or_to_a_more_expensive_type(run: Run) -> None:
    """Applies the best finding's fix, does the same work, audits again, and repeats."""
    job_recording = run.recording()
    left_types: list[str] = []
    audit = audited(job_recording)
    for _ in range(_ROUNDS):
        way = best_way(audit.savings.findings)
        if way is None:
            return
        before = type_of(job_recording)
        job_recording = next_recording(job_recording, [way], later=_DAY)
        after = type_of(job_recording)
        left_types += [before] if before != after else []
        audit = audited(job_recording)
        if not left_types:
            continue
        for finding in audit.savings.findings:
            for name in types_named(finding):
                assert name not in left_types, f"{way}; then {finding.detection.summary} -> {name}"
                is_more_expensive = hourly_usd(name) > hourly_usd(after)
                assert not is_more_expensive or finding.rule.name in TRIALS, (
                    f"{way}; then {finding.rule.name}: {finding.detection.summary} -> {name}"
                )
