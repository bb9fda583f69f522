"""Writes docs/debugger.md: SageMaker Debugger's verdicts beside ours, from the recordings.

Part of `make docs`. A recording's key `debugger` holds what Debugger's own rules said of the job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sageaudit.adapters.files import recording
from sageaudit.auditing import audit_job
from sageaudit.cli.sources.recorded_run import of_recording
from sageaudit.domain.bill.finding import Clear, Found, NotApplicable, Outcome, Unknown
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules import catalogue
from sageaudit.rules.card import Ruleset

PAGE = Path(__file__).parent / "debugger.md"
RECORDINGS = Path(__file__).parents[1] / "tests" / "recorded" / "data" / "jobs"

OURS = {
    "LowGPUUtilization": ("gpu-idle", "gpu-underused", "gpu-starved"),
    "BatchSize": ("gpu-underused",),
    "CPUBottleneck": ("cpu-bottleneck",),
    "GPUMemoryIncrease": ("gpu-memory-growth",),
    "LoadBalancing": ("uneven-hosts",),
    "MaxInitializationTime": ("idle-start",),
}
"""Which rules of ours restate a rule of Debugger's."""

_DEFINED = {
    "LowGPUUtilization": (
        "a GPU's P95 under 70; or P95 over 70 and P5 under 10",
        (
            "@gpu-underused: the busiest host's P95 under 70, where the mean "
            "is under 50 (Jobstats' target). The second half, a fluctuation, is "
            "@gpu-starved: the same two numbers, in at least 3 waits that are a "
            "tenth of the time. All points 0: @gpu-idle"
        ),
    ),
    "BatchSize": (
        "P95 of CPU, GPU and GPU memory all under 70",
        (
            "@gpu-underused with the advice of a larger batch: the same three "
            "numbers, only where GPU memory was recorded"
        ),
    ),
    "CPUBottleneck": (
        "CPU over 90 while GPU under 10, in over 50% of the time",
        (
            "@cpu-bottleneck: the same numbers in the same minute of a host, "
            "limits included; and a milder tier"
        ),
    ),
    "GPUMemoryIncrease": (
        (
            "the moving average rises by over 5 (guide: 10) from a window to the next; window 10 "
            "(guide: 500) samples"
        ),
        (
            "@gpu-memory-growth: over 5 points from a window of 4 minutes "
            "(500 samples) or a tenth of the run to the next, at least 3 times, after 8 minutes"
        ),
    ),
    "LoadBalancing": (
        "distance between the histograms of two GPUs over 0.5",
        ("@uneven-hosts: the same distance between hosts, which are 20 points apart besides"),
    ),
    "MaxInitializationTime": (
        "no first step within 20 minutes",
        (
            "in part @idle-start: no GPU work in the first 10 minutes; steps are "
            "not known to CloudWatch"
        ),
    ),
    "Dataloader": (
        "workers under 70% or over 200% of the cores",
        (
            "in part: the parameter that @cpu-bottleneck and "
            "@gpu-starved name, where a hyperparameter tells the workers"
        ),
    ),
}
"""Its defaults, and how they are restated; @ marks a rule's page."""
_NOT_SEEN = {
    "IOBottleneck": "CloudWatch has no I/O wait; gpu-starved tells its effect, not its cause",
    "StepOutlier": "steps are the framework's: CloudWatch has none",
    "LoadBalancing of single GPUs": "CloudWatch sums the GPUs of an instance: hosts are compared",
    "swings within a minute": "a mean of 60 s hides the 500 ms samples behind threshold_p5",
    "OverallSystemUsage, OverallFrameworkMetrics": "statistics: they never fire",
}
_PAGE = """\
# Beside SageMaker Debugger

The rules of SageMaker Debugger's profiler looked at 500 ms samples of a running job; it takes no
new customers since 30 July 2026. This catalogue restates what one-minute means can tell.

## Its rules and ours

| Debugger's rule | its published defaults | restated on one-minute means |
|---|---|---|
{defined}

Patience, 1,000 samples or about 8 minutes, lies within the 15 active minutes that each rule asks
for once idle head and tail are cut. Defaults: those of smdebug-rulesconfig 1.0.1, and of the
developer guide of March 2023 where it differs.

What minute data cannot tell:

| of Debugger | why not |
|---|---|
{unseen}

## Job by job

{jobs} recorded jobs carry what Debugger said of them, {seen} of them with series: one-minute means
of Debugger's own samples, whose phases may be a minute off. Nearly all ran for less than our 15
minutes. The column *without the minimum* leaves that gate out, for this comparison only, and
*agrees* speaks of it. Debugger's numbers: how often it was triggered, of how many samples.
{tables}
"""
_NO_SERIES = "its recording has no series: nothing is judged, and nothing is called clear"
_NO_MEMORY = (
    "the recording has no GPU memory: what the profiler calls so is activity of the memory "
    "controller, which comes and goes with the load"
)
_BECAUSE = {
    ("profiled-007-g4dn-xlarge-x2", "BatchSize"): (
        "found for its mean of 20%, and without the advice of a larger batch; Debugger's P95 of "
        "79% is of 500 ms samples, and minute means hide such bursts"
    ),
    ("profiled-067-g4dn-xlarge", "CPUBottleneck"): (
        "Debugger counts 57% of its samples, though their P95 over all cores is 82%: it must look "
        "at single cores. All together were at 40%"
    ),
    ("training-048-g4dn-xlarge-completed", "CPUBottleneck"): _NO_SERIES,
    **{
        (name, "GPUMemoryIncrease"): _NO_MEMORY
        for name in (
            "profiled-007-g4dn-xlarge-x2",
            "profiled-043-p3-2xlarge",
            "profiled-056-p3-2xlarge",
            "profiled-062-g4dn-xlarge",
            "profiled-073-p3-2xlarge",
            "training-043-g4dn-xlarge-completed",
        )
    },
    **{
        (f"training-{name}-completed", rule): _NO_SERIES
        for name, rules in {
            "005-g4dn-xlarge-x2": ("LowGPUUtilization", "BatchSize", "GPUMemoryIncrease"),
            "044-g4dn-xlarge-x2": ("LowGPUUtilization", "BatchSize", "GPUMemoryIncrease"),
            "046-g4dn-xlarge-x2": ("LowGPUUtilization", "BatchSize", "GPUMemoryIncrease"),
            "048-g4dn-xlarge": ("LowGPUUtilization", "BatchSize"),
            "049-g4dn-xlarge-x2": ("LowGPUUtilization", "GPUMemoryIncrease"),
            "066-p3-2xlarge": ("LowGPUUtilization", "BatchSize"),
            "068-g4dn-xlarge": ("LowGPUUtilization", "GPUMemoryIncrease"),
        }.items()
        for rule in rules
    },
}
"""Why the two disagree, by recording and Debugger's rule."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One rule of Debugger's and ours on one job; `ungated` is ours without the minimum of time."""

    recording: str
    rule: str
    triggered: int
    datapoints: int
    ours: dict[str, Outcome]
    ungated: dict[str, Outcome]

    @property
    def agrees(self) -> bool | None:
        """Both see an issue, or neither; None where Debugger sees none and ours cannot say."""
        if any(isinstance(one, Found) for one in self.ungated.values()):
            return self.triggered > 0
        if self.triggered:
            return False
        return None if all(isinstance(one, Unknown) for one in self.ungated.values()) else True

    @property
    def because(self) -> str | None:
        """Why they disagree."""
        return _BECAUSE.get((self.recording, self.rule))


def verdicts() -> tuple[Verdict, ...]:
    """Every recording that carries `debugger`, by rule and then by recording."""
    found = [one for path in sorted(RECORDINGS.glob("*.json")) for one in _of(path)]
    return tuple(one for rule in OURS for one in found if one.rule == rule)


def explained() -> frozenset[tuple[str, str]]:
    """The recordings and rules that have an explanation."""
    return frozenset(_BECAUSE)


def _of(path: Path) -> Iterator[Verdict]:
    said: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")).get("debugger")
    read = recording.read(path)
    if said is None or isinstance(read, recording.RecordedSet):
        return
    rules = catalogue.load()
    ours = _outcomes(read, rules)
    ungated = _outcomes(read, (replace(rule, min_active_minutes=0) for rule in rules))
    for rule, names in OURS.items():
        yield Verdict(
            recording=path.stem,
            rule=rule,
            triggered=said[rule]["triggered"],
            datapoints=said[rule]["datapoints"],
            ours={name: ours[name] for name in names},
            ungated={name: ungated[name] for name in names},
        )


def _outcomes(read: recording.Recording, rules: Iterable[Any]) -> dict[str, Outcome]:
    run = of_recording(read)
    ruleset = Ruleset(tuple(rules), "compared")
    audit = audit_job(run.job, run.usage, run.market, Policy(), ruleset, now=run.now)
    return {name.name: outcome for name, outcome in audit.outcomes}


def page() -> str:
    """The whole of docs/debugger.md."""
    compared = verdicts()
    text = _PAGE.format(
        defined="\n".join(f"| {rule} | {' | '.join(both)} |" for rule, both in _DEFINED.items()),
        unseen="\n".join(f"| {what} | {why} |" for what, why in _NOT_SEEN.items()),
        jobs=len({one.recording for one in compared}),
        seen=len({one.recording for one in compared if _seen(one)}),
        tables="\n".join(line for rule in OURS for line in _table(rule, compared)),
    )
    return re.sub(r"@([a-z-]+)", r"[\1](rules/\1.md)", text)


def _seen(one: Verdict) -> bool:
    """Does its recording have a series? The start of a run is judged by the CPU alone."""
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
    said = f"{one.triggered} of {one.datapoints:,}" if one.datapoints else "no samples"
    agrees = {True: "yes", False: "no", None: "-"}[one.agrees]
    ungated = "the same" if one.ungated == one.ours else _said(one.ungated)
    cells = [one.recording, said, _said(one.ours), ungated, agrees, one.because or ""]
    return f"| {' | '.join(cells)} |"


def _said(outcomes: dict[str, Outcome]) -> str:
    """What is found, else the first answer with its reason."""
    found = [f"{name}: {one.summary}" for name, one in outcomes.items() if isinstance(one, Found)]
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
