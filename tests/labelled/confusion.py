"""Compares each rule with stories of known truth, and with real jobs as far as theirs is known."""

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache

from msgspec import Struct

from sageaudit.adapters.files import recording
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.recordings.jobs import measure_recording
from tests.fakes.recorded import DATA, files
from tests.labelled.audits import rules, story_jobs
from tools.pages.track_record import AnswerCounts

AT_LEAST = Decimal("0.95")
"""Lowest allowed precision and recall of every rule on the stories."""


class JudgedRule(Struct, frozen=True):
    """One recording with its truth for one rule, and the rule's answer."""

    recording: str
    rule: str
    truth: bool
    is_reported: bool


@cache
def judged_stories() -> tuple[JudgedRule, ...]:
    """Returns the labelled answers for all stories."""
    return tuple(
        JudgedRule(job.name, rule, truth, rule in job.reported_rules)
        for job in story_jobs()
        for rule, truth in job.truths.items()
    )


@cache
def judged_recordings() -> tuple[JudgedRule, ...]:
    """Returns answers for real jobs where their own record or Debugger's samples leave no doubt.

    A failed run that had started was lost; a completed one was not. A GPU that worked in a quarter
    of Debugger's half-second samples was not idle.
    """
    return tuple(judged for path in files() for judged in _real(path.name))


def _real(name: str) -> Iterator[JudgedRule]:
    path = DATA / "jobs" / name
    read = recording.read(path)
    if isinstance(read, recording.RecordedSet):
        return
    run = measure_recording(read)
    audit = audit_job(run.job, run.usage, run.market, Policy(), catalogue.ruleset(), now=run.now)
    found_rules = {
        finding.rule.name for finding in audit.savings.findings if not finding.subsumed_by
    }
    if run.job.finished and run.job.kind.value != "tuning" and run.job.status != "Stopped":
        lost = run.job.status == "Failed" and not run.job.has_never_started
        yield JudgedRule(
            name, "failed-spend", lost, bool(found_rules & {"failed-spend", "limit-hit"})
        )
    quartile = _gpu_upper_quartile(json.loads(path.read_text()))
    if quartile and run.usage.series:
        yield JudgedRule(name, "gpu-idle", False, "gpu-idle" in found_rules)


def _gpu_upper_quartile(document: dict[str, object]) -> float | None:
    """Returns the upper quartile of Debugger's samples of the first GPU, if its report has it."""
    debugger = document.get("debugger")
    details = debugger["BatchSize"].get("details") if isinstance(debugger, dict) else None
    gpu = (details or {}).get("algo-1", {}).get("gpu0")
    return gpu["p75"] if gpu else None


def counted(answers: Iterable[JudgedRule]) -> dict[str, AnswerCounts]:
    """Returns the right and wrong answers by rule, in the catalogue's order."""
    by_rule: dict[str, list[JudgedRule]] = {rule: [] for rule in rules()}
    for judged_rule in answers:
        by_rule[judged_rule.rule].append(judged_rule)
    return {
        rule: AnswerCounts(
            found=sum(judged_rule.truth and judged_rule.is_reported for judged_rule in judged),
            missed=sum(judged_rule.truth and not judged_rule.is_reported for judged_rule in judged),
            false=sum(judged_rule.is_reported and not judged_rule.truth for judged_rule in judged),
        )
        for rule, judged in by_rule.items()
        if judged
    }


def below_the_bar(answers: Sequence[JudgedRule]) -> list[str]:
    """Returns rules with precision or recall below AT_LEAST, and the stories they get wrong."""
    below = []
    for rule, counts in counted(answers).items():
        shares = {"precision": counts.precision, "recall": counts.recall}
        low = {name: share for name, share in shares.items() if share is not None}
        named = [f"{name} {share:.0%}" for name, share in low.items() if share < AT_LEAST]
        if named:
            wrong = [
                judged_rule
                for judged_rule in answers
                if judged_rule.rule == rule and judged_rule.truth != judged_rule.is_reported
            ]
            stories = ", ".join(
                f"{_wrong(judged_rule)} {judged_rule.recording}" for judged_rule in wrong
            )
            below.append(f"{rule}: {' and '.join(named)}, under {AT_LEAST:.0%}: {stories}")
    return below


def _wrong(judged_rule: JudgedRule) -> str:
    return "not found on" if judged_rule.truth else "found on"


def table() -> str:
    """Returns the confusion table as text."""
    lines = [f"{'rule':<26}{'found':>7}{'missed':>8}{'false':>7}{'precision':>11}{'recall':>8}"]
    for title, answers in (("generated", judged_stories()), ("real", judged_recordings())):
        lines.append(f"-- {title}")
        lines += [
            f"{rule:<26}{counts.found:>7}{counts.missed:>8}{counts.false:>7}"
            f"{_share(counts.precision):>11}{_share(counts.recall):>8}"
            for rule, counts in counted(answers).items()
        ]
    return "\n".join(lines) + "\n"


def _share(share: Decimal | None) -> str:
    return f"{1 if share is None else share:.2f}"
