"""A recording split into parts, so that time can be removed or stretched, and joined again."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.labelled.machine import Json
from tests.labelled.made_up_job import stamp, transition

WORK = ("Training", "Processing", "Transform")
Values = list[float | None]
_LEAST_S = 30
"""Shortest length of a phase."""


@dataclass
class Line:
    """One series that begins `lead` minutes after the program's first minute."""

    host: str
    metric: str
    lead: int
    values: Values


@dataclass
class Tape:
    """One run. `phases`: names and seconds in order; the program runs in those of WORK."""

    kind: str
    describe: Json
    phases: list[tuple[str, float]]
    begun: datetime
    billed_share: float
    lines: list[Line]
    rest: Json = field(default_factory=dict)

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts, without those of curves."""
        return list(dict.fromkeys(line.host for line in self.lines if "/" in line.host))

    def take(self, name: str, seconds: float) -> None:
        """Removes seconds from a phase in which the program does not run."""
        remaining_s = seconds
        for place, (phase_name, lasted) in enumerate(self.phases):
            if phase_name == name:
                cut = max(min(remaining_s, lasted - _LEAST_S), 0)
                remaining_s -= cut
                self.phases[place] = (name, lasted - cut)

    def stretch(self, times: float) -> None:
        """Makes the program take `times` times as long, with the same but slower use."""
        self._work(lambda seconds: seconds * times)
        for line in self.lines:
            long, count = line.values, len(line.values)
            line.values = [
                long[min(int(n / times), count - 1)] for n in range(round(count * times))
            ]

    def cut(self, seconds: float, *, head: bool) -> None:
        """Removes the program's first or last seconds."""
        self._work(lambda lasted: max(lasted - seconds, 60))
        minutes = int(seconds // 60)
        for line in self.lines:
            if not head:
                line.values = line.values[: max(len(line.values) - minutes, 0)]
            elif line.lead + len(line.values) > minutes:
                line.values = line.values[max(minutes - line.lead, 0) :]

    def each(self, metric: str, change: Callable[[float], float]) -> None:
        """Changes every point of a metric."""
        for line in self.lines:
            if line.metric == metric:
                line.values = [None if v is None else change(v) for v in line.values]

    def drop(self, metrics: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        """Removes these metrics and these hosts."""
        removed_metrics, away = set(metrics), set(hosts)
        self.lines = [
            x for x in self.lines if x.metric not in removed_metrics and x.host not in away
        ]

    def _work(self, change: Callable[[float], float]) -> None:
        self.phases = [(n, change(s) if n in WORK else s) for n, s in self.phases]


def take_apart(recorded: Json) -> Tape:
    """Splits a recording made by `made_up_job`."""
    recorded = copy.deepcopy(recorded)
    answer = recorded["describe"]
    kind = next(name for name in WORK if f"{name}JobName" in answer)
    start, end = (_moment(answer[f"{kind}{edge}Time"]) for edge in ("Start", "End"))
    begun = _moment(answer["CreationTime"])
    if kind == "Training":
        spans = [
            (x["Status"], _moment(x["StartTime"]), _moment(x["EndTime"]))
            for x in answer["SecondaryStatusTransitions"]
        ]
        begun = spans[0][1]
    else:
        spans = [("Starting", begun, start), (kind, start, end)]
    work = next(since for name, since, _ in spans if name in WORK)
    return Tape(
        kind=kind,
        describe=answer,
        phases=[(name, (until - since).total_seconds()) for name, since, until in spans],
        begun=begun,
        billed_share=answer.get("BillableTimeInSeconds", 1)
        / answer.get("TrainingTimeInSeconds", 1),
        lines=[_line(x, work) for x in recorded["metrics"]["series"]],
        rest=recorded,
    )


def put_together(tape: Tape, later: timedelta) -> Json:
    """Returns the tape as a recording, moved by `later`."""
    spans, moment = [], tape.begun + later
    for name, seconds in tape.phases:
        spans.append((name, moment, moment + timedelta(seconds=round(seconds))))
        moment = spans[-1][2]
    billed = [span for span in spans if span[0] not in {"Starting", "Pending"}]
    start, end = billed[0][1], billed[-1][2]
    seconds = int((end - start).total_seconds())
    work = next(since for name, since, _ in spans if name in WORK)
    answer = tape.describe | {
        "CreationTime": stamp(tape.begun + later),
        f"{tape.kind}StartTime": stamp(start),
        f"{tape.kind}EndTime": stamp(end),
        "LastModifiedTime": stamp(end),
    }
    if tape.kind == "Training":
        answer |= {
            "SecondaryStatusTransitions": [transition(*span) for span in spans],
            "TrainingTimeInSeconds": seconds,
            "BillableTimeInSeconds": int(seconds * tape.billed_share),
        }
    first = work.replace(second=0, microsecond=0)
    series = [
        {
            "host": line.host,
            "metric": line.metric,
            "start": stamp(first + timedelta(minutes=line.lead)),
            "values": line.values,
        }
        for line in tape.lines
    ]
    return tape.rest | {"describe": answer, "metrics": {"period_s": 60, "series": series}}


def _line(series: Json, work: datetime) -> Line:
    start = _moment(series["start"])
    lead = int((start - work.replace(second=0, microsecond=0)).total_seconds() // 60)
    return Line(series["host"], series["metric"], lead, list(series["values"]))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
