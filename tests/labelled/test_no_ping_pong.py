"""No recommendation is reversed by one for the run that follows it."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache

import pytest
from msgspec import Struct

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Detection, Finding, Parameter
from sageaudit.structs import replace
from tests.labelled.audits import audit as audit_of
from tests.labelled.audits import standing_findings, summary_for_next_run
from tests.labelled.followed import Way, has_open_value, next_recording, ways_to_follow
from tests.labelled.machine import Doing, Json, one_host
from tests.labelled.made_up_job import Plot, training
from tests.labelled.story import FAMILY, ONE, labelled, stories_of_kind

DAY = timedelta(days=1)
HALF_ASLEEP = "hours-on-a-gpu-half-asleep"
HALF_ASLEEP_PLOT = Plot(
    instance="ml.g5.8xlarge",
    hosts=one_host(Doing(minutes=300, cores=3, gpus=(0.24,), gib=30, gpu_gib=(4.0,))),
    name="half-asleep",
)
EVERY_RUN = pytest.mark.parametrize(
    "name", [HALF_ASLEEP, *(story.name for story in stories_of_kind(ONE, FAMILY))]
)
"""The stories; of a family's runs the last one is used."""
MAY_REPEAT = "gpu-underused"
"""This rule may repeat itself, and may name a still cheaper type.

`test_type_advice_ends.py` checks that such steps end. Every other rule is silent once its fix is
applied.
"""


class LastRun(Struct, frozen=True):
    """The last run of a story."""

    recording: Json
    audit: Audit
    family: tuple[AuditSummary, ...]
    """All runs so far including this one, newest first."""
    pace: timedelta
    """Time from one run's end to the next."""

    def audit_after(self, *followed: Way) -> Audit:
        """Returns the audit of a run that applied these ways."""
        return audit_of(next_recording(self.recording, followed, later=self.pace), self.family)


@cache
def last_run(name: str) -> LastRun:
    """Returns the last run of a story by its name."""
    family: tuple[AuditSummary, ...] = ()
    for recording in recordings_of_story(name):
        audit = audit_of(recording, family)
        family = (summary_for_next_run(audit), *family)
    ends = [run.ended_at for run in family]
    return LastRun(recording, audit, family, ends[0] - ends[1] if len(ends) > 1 else DAY)


def recordings_of_story(name: str) -> list[Json]:
    """Returns a story's recordings for the first seed."""
    if name == HALF_ASLEEP:
        return [training(HALF_ASLEEP_PLOT, 1)]
    return next(story for story in labelled() if story.name == name).recordings(1)


def followable_findings(audit: Audit) -> list[Finding]:
    """Returns the findings whose fix sets every value."""
    return [
        finding for finding in standing_findings(audit) if not has_open_value(finding.detection.fix)
    ]


def parameter_values(fix: Sequence[Parameter]) -> frozenset[tuple[str, str]]:
    """Returns the parameters of a fix with their new values."""
    return frozenset((parameter.path, str(parameter.new)) for parameter in fix)


def reversals(
    followed: Sequence[Way], after: Audit, still_better: frozenset[tuple[str, str]] = frozenset()
) -> Iterator[str]:
    """Yields each rule that finds the same again, and each parameter that is to be set back.

    `still_better`: the values of the fix itself, if its alternative was followed. The rule may
    still recommend these, but nothing else.
    """
    undone = {(parameter.path, str(parameter.old)) for way in followed for parameter in way.fix}
    followed_rules = {way.rule for way in followed} - {MAY_REPEAT}
    for rule, outcome in after.outcomes:
        if not isinstance(outcome, Detection):
            continue
        ways = [Way(rule.name, fix, None) for fix in (outcome.fix, *outcome.alternatives)]
        if rule.name in followed_rules and parameter_values(outcome.fix) != still_better:
            yield f"again: {outcome.summary} {ways[0]}"
        for way in ways:
            if parameter_values(way.fix) & undone:
                yield f"back: {outcome.summary} {way}"


@EVERY_RUN
def test_no_two_findings_contradict_each_other(name: str) -> None:
    """The shown findings together set no parameter to two values."""
    values: dict[str, set[str]] = {}
    for finding in standing_findings(last_run(name).audit):
        for parameter in finding.detection.fix:
            values.setdefault(parameter.path, set()).add(str(parameter.new))
    assert {path: new for path, new in values.items() if len(new) > 1} == {}


@EVERY_RUN
def test_a_single_fix_is_not_reversed(name: str) -> None:
    """No fix is reversed if followed alone, at both ends of its range, nor an alternative."""
    run = last_run(name)
    for finding in standing_findings(run.audit):
        fix = finding.detection.fix
        for way in ways_to_follow(finding):
            better = frozenset[tuple[str, str]]() if way.fix == fix else parameter_values(fix)
            assert list(reversals([way], run.audit_after(way), better)) == [], str(way)


def test_after_the_second_best_type_only_the_best_one_may_be_advised() -> None:
    """After an alternative, a third type or the original one would be a reversal."""
    run = last_run("one-well-fed-gpu-on-a-host-for-many-loaders")
    [finding] = [
        candidate
        for candidate in standing_findings(run.audit)
        if candidate.rule.name == "cheaper-type"
    ]
    [_, second] = ways_to_follow(finding)
    after = run.audit_after(second)
    assert list(reversals([second], after, parameter_values(finding.detection.fix))) == []
    [repeated] = reversals([second], after, parameter_values(second.fix))
    assert repeated.startswith("again: ")
    back = replace(
        second,
        fix=tuple(replace(parameter, old=parameter.new) for parameter in finding.detection.fix),
    )
    lines = list(reversals([back], after, parameter_values(back.fix)))
    assert any(line.startswith("back: ") for line in lines)


@EVERY_RUN
def test_advice_ends(name: str) -> None:
    """After at most four runs that follow all recommendations, none is left or was reversed."""
    run = last_run(name)
    recording, audit, family = run.recording, run.audit, run.family
    followed: list[Way] = []
    for _ in range(4):
        ways = [next(iter(ways_to_follow(finding))) for finding in followable_findings(audit)]
        if not ways:
            break
        followed += ways
        recording = next_recording(recording, ways, later=run.pace)
        audit = audit_of(recording, family)
        family = (summary_for_next_run(audit), *family)
        assert list(reversals(followed, audit)) == [], [str(way) for way in ways]
    assert followable_findings(audit) == []
