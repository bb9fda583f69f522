"""Writes docs/evidence/debugger.md, which compares SageMaker Debugger's answers with ours.

Part of `make docs`. A recording's key `debugger` has the answers of Debugger's own rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sageaudit.adapters.files import recording
from sageaudit.domain.bill.finding import Clear, Detection, NotApplicable, Outcome, Unknown
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import audit_job
from sageaudit.workflows.recordings.jobs import measure_recording
from tools.pages import DOCS, ROOT

PAGE = DOCS / "evidence" / "debugger.md"
RECORDINGS = ROOT / "tests" / "recorded" / "data" / "jobs"

OUR_RULES = {
    "LowGPUUtilization": ("gpu-idle", "gpu-underused", "gpu-starved"),
    "BatchSize": ("gpu-underused",),
    "CPUBottleneck": ("cpu-bottleneck",),
    "LoadBalancing": ("uneven-hosts",),
    "MaxInitializationTime": ("idle-start",),
}
"""Our rules that correspond to a rule of Debugger."""

_DEFINITIONS = {
    "LowGPUUtilization": (
        "a GPU's P95 under 70; or P95 over 70 and P5 under 10",
        (
            "@gpu-underused: the busiest host's P95 under 70, if the mean "
            "is under 50 (Jobstats' target). The second condition, a fluctuation, is "
            "@gpu-starved: the same two numbers, with at least 3 waits that are together "
            "a tenth of the time. @gpu-idle: nothing, or under 5% of one GPU"
        ),
    ),
    "BatchSize": (
        "P95 of CPU, GPU and GPU memory all under 70",
        (
            "@gpu-underused, which then recommends a larger batch: the same three numbers, only "
            "if GPU memory was recorded and the mean is under 50 (Jobstats' target)"
        ),
    ),
    "CPUBottleneck": (
        "CPU over 90 while GPU under 10, for over 50% of the time",
        (
            "@cpu-bottleneck: a host's CPU at 90 or more while its GPU is at 50 or less (it waits "
            "half the time), for at least 50% of the minutes; or a second, milder pair of limits"
        ),
    ),
    "LoadBalancing": (
        "distance between the histograms of two GPUs over 0.5",
        ("@uneven-hosts: the same distance between hosts, which are also at least 20 points apart"),
    ),
    "MaxInitializationTime": (
        "no first step within 20 minutes",
        (
            "in part @idle-start: no GPU work in the first 10 minutes; CloudWatch does not "
            "know steps"
        ),
    ),
    "Dataloader": (
        "workers under 70% or over 200% of the cores",
        (
            "in part: @cpu-bottleneck and @gpu-starved name the parameter to change, if a "
            "hyperparameter has the number of workers"
        ),
    ),
}
"""By Debugger's rule, its defaults and the condition in our rules. @ marks a rule's page."""
_NOT_MEASURABLE = {
    "IOBottleneck": "CloudWatch has no I/O wait; gpu-starved shows its effect, not its cause",
    "StepOutlier": "only the framework knows steps: CloudWatch has none",
    "LoadBalancing of single GPUs": "CloudWatch sums the GPUs of an instance: we compare hosts",
    "GPUMemoryIncrease": "a rise costs nothing; if it ends a job, failed-spend reports it",
    "changes within a minute": "an average over 60 s hides the 500 ms samples behind threshold_p5",
    "OverallSystemUsage, OverallFrameworkMetrics": "they are statistics without issues",
}
_PAGE = """\
# Compared with SageMaker Debugger

The profiler rules of SageMaker Debugger read 500 ms samples of a running job. Debugger accepts no
new customers since 30 July 2026. Our rules check what one-minute averages of CloudWatch can show.

## Its rules and ours

| Debugger's rule | its published defaults | our rule, on one-minute averages |
|---|---|---|
{defined}

Debugger's `patience`, 1,000 samples or about 8 minutes, is shorter than the 15 active minutes that
each of our rules needs, after the idle start and end are cut. The defaults are those of
smdebug-rulesconfig 1.0.1. If the developer guide of March 2023 differs, its defaults are used.

One-minute data cannot show these:

| part of Debugger | why one-minute data cannot show it |
|---|---|
{unseen}

## Job by job

{jobs} recorded jobs have the results of Debugger's rules. {seen} of these jobs have series. They
are one-minute averages of Debugger's own samples, whose phases may be wrong by a minute. Nearly all
jobs ran for less than our minimum of 15 minutes. For this comparison only, the column *without the
minimum* ignores that minimum, and *agrees* refers to that column. The column *Debugger* says how
many of its samples triggered its rule.
{tables}
"""
_NO_SERIES = "the recording has no series, so our rules answer unknown, never clear"
_DISAGREEMENTS = {
    ("profiled-007-g4dn-xlarge-x2", "BatchSize"): (
        "found because of its mean of 20%, without a recommendation of a larger batch; Debugger's "
        "P95 of 79% is over 500 ms samples, and one-minute averages hide such bursts"
    ),
    ("profiled-067-g4dn-xlarge", "CPUBottleneck"): (
        "Debugger counts 57% of its samples, though the P95 over all cores is 82%: it probably "
        "looks at single cores. All cores together were at 40%"
    ),
    ("training-048-g4dn-xlarge-completed", "CPUBottleneck"): _NO_SERIES,
    **{
        (f"training-{name}-completed", rule): _NO_SERIES
        for name, rules in {
            "005-g4dn-xlarge-x2": ("LowGPUUtilization", "BatchSize"),
            "044-g4dn-xlarge-x2": ("LowGPUUtilization", "BatchSize"),
            "046-g4dn-xlarge-x2": ("LowGPUUtilization", "BatchSize"),
            "048-g4dn-xlarge": ("LowGPUUtilization", "BatchSize"),
            "049-g4dn-xlarge-x2": ("LowGPUUtilization",),
            "066-p3-2xlarge": ("LowGPUUtilization", "BatchSize"),
            "068-g4dn-xlarge": ("LowGPUUtilization",),
        }.items()
        for rule in rules
    },
}
"""Why the two disagree, by recording and Debugger's rule."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answers of a Debugger rule and of our rules about one job.

    `triggered` of `datapoints` samples triggered Debugger's rule. `ours` has the outcomes by rule,
    `ungated` the same without the minimum of active time.
    """

    recording: str
    rule: str
    triggered: int
    datapoints: int
    outcomes: dict[str, Outcome]
    ungated_outcomes: dict[str, Outcome]

    @property
    def agrees(self) -> bool | None:
        """Whether both find an issue, or neither does. None if Debugger finds none and ours is
        unknown.
        """
        if any(isinstance(outcome, Detection) for outcome in self.ungated_outcomes.values()):
            return self.triggered > 0
        if self.triggered:
            return False
        return (
            None
            if all(isinstance(outcome, Unknown) for outcome in self.ungated_outcomes.values())
            else True
        )

    @property
    def explanation(self) -> str | None:
        """Why they disagree; None without an explanation."""
        return _DISAGREEMENTS.get((self.recording, self.rule))


@cache
def all_verdicts() -> tuple[Verdict, ...]:
    """Returns the verdicts of every recording with the key `debugger`, by rule, then by
    recording.
    """
    verdicts = [
        verdict
        for path in sorted(RECORDINGS.glob("*.json"))
        for verdict in _recording_verdicts(path)
    ]
    return tuple(verdict for rule in OUR_RULES for verdict in verdicts if verdict.rule == rule)


def explained_pairs() -> frozenset[tuple[str, str]]:
    """Returns the recordings and rules that have an explanation."""
    return frozenset(_DISAGREEMENTS)


def _recording_verdicts(path: Path) -> Iterator[Verdict]:
    answers: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")).get("debugger")
    recorded_job = recording.read(path)
    if answers is None or isinstance(recorded_job, recording.RecordedSet):
        return
    rules = catalogue.load()
    outcomes = _outcomes(recorded_job, rules)
    ungated_outcomes = _outcomes(
        recorded_job, (replace(rule, min_active_minutes=0) for rule in rules)
    )
    for rule, names in OUR_RULES.items():
        yield Verdict(
            recording=path.stem,
            rule=rule,
            triggered=answers[rule]["triggered"],
            datapoints=answers[rule]["datapoints"],
            outcomes={name: outcomes[name] for name in names},
            ungated_outcomes={name: ungated_outcomes[name] for name in names},
        )


def _outcomes(recorded_job: recording.Recording, rules: Iterable[Any]) -> dict[str, Outcome]:
    run = measure_recording(recorded_job)
    ruleset = Ruleset(tuple(rules), "compared")
    audit = audit_job(run.job, run.usage, run.market, Policy(), ruleset, now=run.now)
    return {info.name: outcome for info, outcome in audit.outcomes}


def page() -> str:
    """Returns the whole of docs/evidence/debugger.md."""
    verdicts = all_verdicts()
    text = _PAGE.format(
        defined="\n".join(
            f"| {rule} | {' | '.join(texts)} |" for rule, texts in _DEFINITIONS.items()
        ),
        unseen="\n".join(f"| {name} | {reason} |" for name, reason in _NOT_MEASURABLE.items()),
        jobs=len({verdict.recording for verdict in verdicts}),
        seen=len({verdict.recording for verdict in verdicts if _has_series(verdict)}),
        tables="\n".join(line for rule in OUR_RULES for line in _table(rule, verdicts)),
    )
    return re.sub(r"@([a-z-]+)", r"[\1](../rules/\1.md)", text)


def _has_series(verdict: Verdict) -> bool:
    """Whether the recording has series. `idle-start` needs only the CPU's."""
    start = verdict.ungated_outcomes.get("idle-start")
    return start is not None and not isinstance(start, Unknown)


def _table(rule: str, verdicts: tuple[Verdict, ...]) -> list[str]:
    rows = [verdict for verdict in verdicts if verdict.rule == rule]
    agree = sum(verdict.agrees is True for verdict in rows)
    differ = sum(verdict.agrees is False for verdict in rows)
    return [
        "",
        f"### {rule}: {', '.join(OUR_RULES[rule])}",
        "",
        f"{agree} agree, {differ} differ, {len(rows) - agree - differ} cannot be compared.",
        "",
        "| recording | Debugger | ours | without the minimum | agrees | because |",
        "|---|---|---|---|---|---|",
        *(_row(verdict) for verdict in rows),
    ]


def _row(verdict: Verdict) -> str:
    triggered = (
        f"{verdict.triggered} of {verdict.datapoints:,}" if verdict.datapoints else "no samples"
    )
    agrees = {True: "yes", False: "no", None: "-"}[verdict.agrees]
    ungated = (
        "the same"
        if verdict.ungated_outcomes == verdict.outcomes
        else _answer(verdict.ungated_outcomes)
    )
    cells = [
        verdict.recording,
        triggered,
        _answer(verdict.outcomes),
        ungated,
        agrees,
        verdict.explanation or "",
    ]
    return f"| {' | '.join(cells)} |"


def _answer(outcomes: dict[str, Outcome]) -> str:
    """Returns the findings or, if there are none, the first answer with its reason."""
    findings = [
        f"{name}: {outcome.summary}"
        for name, outcome in outcomes.items()
        if isinstance(outcome, Detection)
    ]
    if findings:
        return " ".join(findings)
    if any(isinstance(outcome, Clear) for outcome in outcomes.values()):
        return "clear"
    first = next(iter(outcomes.values()))
    word = "not applicable" if isinstance(first, NotApplicable) else "unknown"
    reason = first.reason if isinstance(first, NotApplicable | Unknown) else ""
    return f"{word}: {reason}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
