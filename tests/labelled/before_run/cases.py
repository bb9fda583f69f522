"""What a reviewer says of a job request before it runs: the cases of cases.json, typed.

How to read a case is told in README.md beside this file. Standard library only.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
INPUTS = HERE / "inputs"

FORMS = ("training", "processing", "transform", "tuning", "pipeline", "terraform")
SEVERITIES = ("info", "low", "medium", "high")
KINDS = ("unknown", "missing", "enum", "range")

WORDS = {
    # Spot
    "spot-max-wait-missing": "spot without MaxWaitTimeInSeconds: refused",
    "spot-max-wait-short": "MaxWaitTimeInSeconds below MaxRuntimeInSeconds: refused",
    "max-wait-without-spot": "MaxWaitTimeInSeconds on an on-demand job: refused",
    "spot-no-checkpoint": "spot without CheckpointConfig: an interruption begins again at zero",
    "spot-builtin-wait": "built-in algorithm without checkpoints and more than 3,600 s of wait",
    "spot-with-warm-pool": "KeepAlivePeriodInSeconds on a spot job",
    "spot-candidate": "could run on spot; always an opinion, never a must here",
    "no-checkpoint-long": "a long on-demand run that keeps nothing if it fails",
    # Limits
    "run-limit-default": "no MaxRuntimeInSeconds, so the default of one day is the only stop",
    "run-limit-high": "the limit lets a hung job cost far more than the work can need",
    "run-limit-short": "the limit will stop the job before it is done (needs a history)",
    "retry-cost": "attempts multiplied by the limit: always wrong, the limit covers them all",
    # Data and instances
    "replicated-input": "every one of several instances downloads all of the data",
    "file-mode-large-data": "File mode copies very much data before the first step",
    "more-instances-than-objects": "fewer input objects than instances: some have no work",
    "single-instance-algorithm": "several instances, an algorithm or script that uses one",
    # Types and volumes
    "old-generation": "a family with a successor that is cheaper for the same work",
    "gpu-not-used": "a GPU type for an algorithm or image that trains on CPU",
    "gpus-not-used": "several GPUs, one of them used",
    "old-algorithm-version": "a built-in algorithm version that newer ones replace",
    "local-volume-ignored": "VolumeSizeInGB on a type with local NVMe: no such volume is made",
    "volume-over-local": "processing: VolumeSizeInGB above the local NVMe: refused",
    "volume-too-big": "the billed volume is out of proportion to the data",
    "price-unknown": "no on-demand price is known for the type: no ceiling",
    "training-plan": "prepaid capacity: on-demand dollars do not apply",
    "value-unknown": "known only when the pipeline starts or the plan is applied",
    # Clusters and warm pools
    "preferences-conflict": "InstancePreferences beside what it excludes: refused",
    "type-and-groups": "InstanceType or InstanceCount beside InstanceGroups: refused",
    "groups-with-warm-pool": "KeepAlivePeriodInSeconds beside InstanceGroups: refused",
    "unknown-group": "a channel names an instance group that is not there",
    "warm-pool-idle": "a warm pool that nothing takes over, or longer than it pays",
    # Retired options
    "debugger-closed": "Debugger or Profiler options, closed to new customers since 2026-07-30",
    "retired-rule": "a profiler rule that was dropped on 2023-03-16",
    "custom-rule-cost": "a custom Debugger rule is billed on its own instance",
    # Tuning
    "tuning-parallel-high": "Bayesian search with nearly all trials at once",
    "tuning-no-early-stop": "many or dear trials with early stopping Off",
    "tuning-early-stop-conflict": "Hyperband together with TrainingJobEarlyStoppingType Auto",
    # Transform
    "transform-batch-strategy": "BatchStrategy and SplitType do not fit together or cost requests",
    "transform-payload-limit": "MaxConcurrentTransforms x MaxPayloadInMB above 100: refused",
    "transform-serial": "one request at a time on a host of many cores",
}

ADVICE = {
    "smaller-type": "a smaller size of the family",
    "cheaper-type": "another family at a lower cost for the work",
    "drop-keep-alive": "leave KeepAlivePeriodInSeconds out",
    "spot-checkpoint": "set CheckpointConfig on the spot job",
    "failed-runs": "look into a failure that repeats",
}


@dataclass(frozen=True)
class Issue:
    """One thing to tell (or that may be told), where, how loudly and what is at stake."""

    word: str
    path: str
    severity: str
    usd: tuple[float, float] | None = None
    also: tuple[str, ...] = ()
    note: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path at which the issue counts as told."""
        return (self.path, *self.also)


@dataclass(frozen=True)
class Ban:
    """A false alarm; without a path it is false anywhere in the request."""

    word: str
    why: str
    path: str = ""


@dataclass(frozen=True)
class Problem:
    """One validation problem."""

    path: str
    kind: str


@dataclass(frozen=True)
class Run:
    """One earlier run of the family."""

    ended: str
    billable_seconds: int
    status: str
    instance_type: str
    instances: int
    usd: float


@dataclass(frozen=True)
class Estimate:
    """Median and range; a side that cannot be said is None."""

    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Advice:
    """Advice that earlier runs were given."""

    advice: str
    told_times: int
    usd_per_run: float | None = None
    note: str = ""


@dataclass(frozen=True)
class History:
    """What is known of the family, and what follows for the next run."""

    words: str
    runs: tuple[Run, ...]
    billable_seconds: Estimate | None
    usd: Estimate | None
    ignored: tuple[Advice, ...]
    taken: tuple[Advice, ...]
    note: str


@dataclass(frozen=True)
class Case:
    """One request with what a reviewer says of it."""

    name: str
    form: str
    region: str
    why: str
    must: tuple[Issue, ...]
    may: tuple[Issue, ...]
    must_not: tuple[Ban, ...]
    problems: tuple[Problem, ...]
    ceiling_usd: tuple[float, float] | None
    facts: dict[str, dict[str, float]]
    history: History | None

    @property
    def file(self) -> Path:
        """The request as its owner has it on disk."""
        return INPUTS / f"{self.name}.json"

    @property
    def silent(self) -> bool:
        """Whether nothing at all has to be said."""
        return not self.must and not self.problems


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    return None if values is None else (values[0], values[1])


def _issue(raw: dict[str, Any]) -> Issue:
    return Issue(
        word=raw["word"],
        path=raw["path"],
        severity=raw["severity"],
        usd=_pair(raw.get("usd")),
        also=tuple(raw.get("also", ())),
        note=raw.get("note", ""),
    )


def _history(raw: dict[str, Any] | None) -> History | None:
    if raw is None:
        return None
    predict = raw["predict"] or {}
    seconds, usd = predict.get("billable_seconds"), predict.get("usd")
    return History(
        words=raw["words"],
        runs=tuple(Run(**run) for run in raw["runs"]),
        billable_seconds=Estimate(**seconds) if seconds else None,
        usd=Estimate(**usd) if usd else None,
        ignored=tuple(Advice(**advice) for advice in raw["ignored"]),
        taken=tuple(Advice(**advice) for advice in raw["taken"]),
        note=raw["note"],
    )


def _case(raw: dict[str, Any]) -> Case:
    return Case(
        name=raw["name"],
        form=raw["form"],
        region=raw["region"],
        why=raw["why"],
        must=tuple(_issue(issue) for issue in raw["must"]),
        may=tuple(_issue(issue) for issue in raw["may"]),
        must_not=tuple(Ban(**ban) for ban in raw["must_not"]),
        problems=tuple(Problem(**problem) for problem in raw["problems"]),
        ceiling_usd=_pair(raw["ceiling_usd"]),
        facts=raw.get("facts", {}),
        history=_history(raw.get("history")),
    )


def load() -> tuple[Case, ...]:
    """Every case, in the order of the file."""
    raw = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    return tuple(_case(case) for case in raw["cases"])


CASES = load()
