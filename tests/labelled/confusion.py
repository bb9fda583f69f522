"""What each rule says of stories whose truth is known, and of real jobs as far as theirs is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from sageaudit.adapters.files import recording
from sageaudit.cli.support.recordings.recorded_jobs import run_of
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job
from tests.fakes.recorded import DATA, files
from tests.labelled import labelled_jobs
from tests.labelled.labelled_jobs import rules


@dataclass(frozen=True)
class JudgedRule:
    """One recording with its truth for one rule, and what the rule said."""

    recording: str
    rule: str
    truth: bool
    found: bool


@dataclass
class Row:
    """One rule's right and wrong answers."""

    rule: str
    hits: int = 0
    misses: int = 0
    false_alarms: int = 0
    rightly_quiet: int = 0

    @property
    def precision(self) -> float:
        """Of what it found, the share that is true; 1 where it found nothing."""
        found = self.hits + self.false_alarms
        return self.hits / found if found else 1.0

    @property
    def recall(self) -> float:
        """Of what is true, the share that it found; 1 where nothing is."""
        true = self.hits + self.misses
        return self.hits / true if true else 1.0


@cache
def generated() -> tuple[JudgedRule, ...]:
    """Every labelled answer on the stories and sagas."""
    return tuple(
        JudgedRule(job.name, rule, truth, rule in job.told)
        for job in labelled_jobs.generated()
        for rule, truth in job.truths.items()
    )


@cache
def recorded() -> tuple[JudgedRule, ...]:
    """Real jobs: what their own answer, or Debugger's half-second samples, leave no doubt about.

    A failed run that had started was lost, a completed one was not. A GPU that worked in a quarter
    of Debugger's samples was not idle.
    """
    return tuple(judged for path in files() for judged in _real(path.name))


def _real(name: str) -> Iterator[JudgedRule]:
    path = DATA / "jobs" / name
    read = recording.read(path)
    if isinstance(read, recording.RecordedSet):
        return
    run = run_of(read)
    audit = audit_job(run.job, run.usage, run.market, Policy(), catalogue.ruleset(), now=run.now)
    found = {one.rule.name for one in audit.savings.findings if not one.subsumed_by}
    if run.job.finished and run.job.kind.value != "tuning" and run.job.status != "Stopped":
        lost = run.job.status == "Failed" and not run.job.never_started
        yield JudgedRule(name, "failed-spend", lost, bool(found & {"failed-spend", "limit-hit"}))
    quartile = _gpu_upper_quartile(json.loads(path.read_text()))
    if quartile and run.usage.series:
        yield JudgedRule(name, "gpu-idle", False, "gpu-idle" in found)


def _gpu_upper_quartile(document: dict[str, object]) -> float | None:
    """Of Debugger's samples of the first GPU, where its report gives it."""
    said = document.get("debugger")
    details = said["BatchSize"].get("details") if isinstance(said, dict) else None
    gpu = (details or {}).get("algo-1", {}).get("gpu0")
    return gpu["p75"] if gpu else None


def rows(answers: tuple[JudgedRule, ...]) -> list[Row]:
    """Counted by rule, in the catalogue's order."""
    counted = {rule: Row(rule) for rule in rules()}
    for one in answers:
        row = counted[one.rule]
        if one.truth:
            row.hits, row.misses = row.hits + one.found, row.misses + (not one.found)
        else:
            row.false_alarms += one.found
            row.rightly_quiet += not one.found
    answered = {one.rule for one in answers}
    return [row for rule, row in counted.items() if rule in answered]


def _recordings(answers: tuple[JudgedRule, ...]) -> int:
    return len({one.recording for one in answers})


def table() -> str:
    """The confusion table for people."""
    lines = [
        f"{_recordings(generated())} generated recordings, {_recordings(recorded())} real ones",
        "",
        f"{'rule':<26}{'found':>7}{'missed':>8}{'false':>7}{'quiet':>7}{'precision':>11}{'recall':>8}",
    ]
    for title, answers in (("generated", generated()), ("real", recorded())):
        lines.append(f"-- {title}")
        lines += [
            f"{row.rule:<26}{row.hits:>7}{row.misses:>8}{row.false_alarms:>7}"
            f"{row.rightly_quiet:>7}{row.precision:>11.2f}{row.recall:>8.2f}"
            for row in rows(answers)
        ]
    return "\n".join(lines) + "\n"
