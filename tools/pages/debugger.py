"""Writes docs/evidence/debugger.md: SageMaker Debugger's answers compared with ours.

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

OURS = {
    "LowGPUUtilization": ("gpu-idle", "gpu-underused", "gpu-starved"),
    "BatchSize": ("gpu-underused",),
    "CPUBottleneck": ("cpu-bottleneck",),
    "LoadBalancing": ("uneven-hosts",),
    "MaxInitializationTime": ("idle-start",),
}
"""Which of our rules correspond to a rule of Debugger."""

_DEFINED = {
    "LowGPUUtilization": (
        "a GPU's P95 under 70; or P95 over 70 and P5 under 10",
        (
            "@gpu-underused: the busiest host's P95 under 70, where the mean "
            "is under 50 (Jobstats' target). The second condition, a fluctuation, is "
            "@gpu-starved: the same two numbers, with at least 3 waits that are together "
            "a tenth of the time. @gpu-idle: nothing, or under 5% of one GPU"
        ),
    ),
    "BatchSize": (
        "P95 of CPU, GPU and GPU memory all under 70",
        (
            "@gpu-underused, which then advises a larger batch: the same three numbers, only "
            "where GPU memory was recorded and the mean is under 50 (Jobstats' target)"
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
            "in part: @cpu-bottleneck and @gpu-starved name the parameter to change, where a "
            "hyperparameter has the number of workers"
        ),
    ),
}
"""Its defaults, and the condition in our rules; @ marks a rule's page."""
_NOT_SEEN = {
    "IOBottleneck": "CloudWatch has no I/O wait; gpu-starved shows its effect, not its cause",
    "StepOutlier": "only the framework knows steps: CloudWatch has none",
    "LoadBalancing of single GPUs": "CloudWatch sums the GPUs of an instance: we compare hosts",
    "GPUMemoryIncrease": "a rise costs nothing; one that ends a job is named by failed-spend",
    "changes within a minute": "a mean over 60 s hides the 500 ms samples behind threshold_p5",
    "OverallSystemUsage, OverallFrameworkMetrics": "they are statistics and never find an issue",
}
_PAGE = """\
# Compared with SageMaker Debugger

The profiler rules of SageMaker Debugger read 500 ms samples of a running job. Debugger accepts no
new customers since 30 July 2026. Our rules check what one-minute means of CloudWatch can show.

## Its rules and ours

| Debugger's rule | its published defaults | our rule, on one-minute means |
|---|---|---|
{defined}

Debugger's `patience`, 1,000 samples or about 8 minutes, is shorter than the 15 active minutes that
each of our rules needs, after the idle start and end are cut. The defaults are those of
smdebug-rulesconfig 1.0.1, and of the developer guide of March 2023 where the guide differs.

What one-minute data cannot show:

| of Debugger | why not |
|---|---|
{unseen}

## Job by job

{jobs} recorded jobs have Debugger's answers. {seen} of these have series: one-minute means of
Debugger's own samples, whose phases may be wrong by a minute. Nearly all jobs ran for less than our
15 minutes. For this comparison only, the column *without the minimum* leaves that minimum out, and
*agrees* refers to that column. The column *Debugger* says how often its rule was triggered, of how
many samples.
{tables}
"""
_NO_SERIES = "the recording has no series, so our rules answer unknown, never clear"
_BECAUSE = {
    ("profiled-007-g4dn-xlarge-x2", "BatchSize"): (
        "found because of its mean of 20%, without the advice of a larger batch; Debugger's P95 "
        "of 79% is over 500 ms samples, and one-minute means hide such bursts"
    ),
    ("profiled-067-g4dn-xlarge", "CPUBottleneck"): (
        "Debugger counts 57% of its samples, though the P95 over all cores is 82%: it must look "
        "at single cores. All cores together were at 40%"
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
    """A Debugger rule and ours on one job; `ungated` is ours without the minimum of active time."""

    recording: str
    rule: str
    triggered: int
    datapoints: int
    ours: dict[str, Outcome]
    ungated: dict[str, Outcome]

    @property
    def agrees(self) -> bool | None:
        """Both find an issue, or neither; None where Debugger finds none and ours is unknown."""
        if any(isinstance(one, Detection) for one in self.ungated.values()):
            return self.triggered > 0
        if self.triggered:
            return False
        return None if all(isinstance(one, Unknown) for one in self.ungated.values()) else True

    @property
    def because(self) -> str | None:
        """Why they disagree."""
        return _BECAUSE.get((self.recording, self.rule))


@cache
def verdicts() -> tuple[Verdict, ...]:
    """Every recording with the key `debugger`, by rule and then by recording."""
    found = [one for path in sorted(RECORDINGS.glob("*.json")) for one in _of(path)]
    return tuple(one for rule in OURS for one in found if one.rule == rule)


def explained() -> frozenset[tuple[str, str]]:
    """The recordings and rules that have an explanation."""
    return frozenset(_BECAUSE)


def _of(path: Path) -> Iterator[Verdict]:
    answers: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")).get("debugger")
    read = recording.read(path)
    if answers is None or isinstance(read, recording.RecordedSet):
        return
    rules = catalogue.load()
    ours = _outcomes(read, rules)
    ungated = _outcomes(read, (replace(rule, min_active_minutes=0) for rule in rules))
    for rule, names in OURS.items():
        yield Verdict(
            recording=path.stem,
            rule=rule,
            triggered=answers[rule]["triggered"],
            datapoints=answers[rule]["datapoints"],
            ours={name: ours[name] for name in names},
            ungated={name: ungated[name] for name in names},
        )


def _outcomes(read: recording.Recording, rules: Iterable[Any]) -> dict[str, Outcome]:
    run = measure_recording(read)
    ruleset = Ruleset(tuple(rules), "compared")
    audit = audit_job(run.job, run.usage, run.market, Policy(), ruleset, now=run.now)
    return {name.name: outcome for name, outcome in audit.outcomes}


def page() -> str:
    """The whole of docs/evidence/debugger.md."""
    compared = verdicts()
    text = _PAGE.format(
        defined="\n".join(f"| {rule} | {' | '.join(both)} |" for rule, both in _DEFINED.items()),
        unseen="\n".join(f"| {what} | {why} |" for what, why in _NOT_SEEN.items()),
        jobs=len({one.recording for one in compared}),
        seen=len({one.recording for one in compared if _seen(one)}),
        tables="\n".join(line for rule in OURS for line in _table(rule, compared)),
    )
    return re.sub(r"@([a-z-]+)", r"[\1](../rules/\1.md)", text)


def _seen(one: Verdict) -> bool:
    """Whether the recording has a series: `idle-start` needs the CPU's only."""
    start = one.ungated.get("idle-start")
    return start is not None and not isinstance(start, Unknown)


def _table(rule: str, compared: tuple[Verdict, ...]) -> list[str]:
    rows = [one for one in compared if one.rule == rule]
    agree = sum(one.agrees is True for one in rows)
    differ = sum(one.agrees is False for one in rows)
    return [
        "",
        f"### {rule}: {', '.join(OURS[rule])}",
        "",
        f"{agree} agree, {differ} differ, {len(rows) - agree - differ} cannot be compared.",
        "",
        "| recording | Debugger | ours | without the minimum | agrees | because |",
        "|---|---|---|---|---|---|",
        *(_row(one) for one in rows),
    ]


def _row(one: Verdict) -> str:
    triggered = f"{one.triggered} of {one.datapoints:,}" if one.datapoints else "no samples"
    agrees = {True: "yes", False: "no", None: "-"}[one.agrees]
    ungated = "the same" if one.ungated == one.ours else _answer(one.ungated)
    cells = [one.recording, triggered, _answer(one.ours), ungated, agrees, one.because or ""]
    return f"| {' | '.join(cells)} |"


def _answer(outcomes: dict[str, Outcome]) -> str:
    """The findings; where there are none, the first answer with its reason."""
    found = [
        f"{name}: {one.summary}" for name, one in outcomes.items() if isinstance(one, Detection)
    ]
    if found:
        return " ".join(found)
    if any(isinstance(one, Clear) for one in outcomes.values()):
        return "clear"
    first = next(iter(outcomes.values()))
    what = "not applicable" if isinstance(first, NotApplicable) else "unknown"
    reason = first.reason if isinstance(first, NotApplicable | Unknown) else ""
    return f"{what}: {reason}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
