"""Stories of simulated jobs with known truth: what happened, and which rules are right.

A story has one job, a family's runs in order, or a tuning job with its trials. The truth is about
the last one. Any rule that a story does not name would be a false alarm.
"""

import importlib
import math
import pkgutil
import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from sageaudit.structs import replace
from tests.labelled.machine import Doing, Host, Json, machine, one_host
from tests.labelled.made_up_job import BEGIN, Batchwork, Plot, batchwork, search, stamp, training

TRIALS = frozenset({"spot-not-used", "trainium-candidate", "max-runtime-loose"})
"""Rules that fit nearly any long on-demand run: labelled only in stories about them."""
ONE, FAMILY, SEARCH = "job", "family", "search"


class Story(Struct, frozen=True):
    """One story with its truth."""

    name: str
    recordings: Callable[[int], list[Json]]
    """Returns the recordings for a seed, in the order of the jobs' ends."""
    must_find: frozenset[str] = frozenset()
    """Rules that are right by construction."""
    may_find: frozenset[str] = frozenset()
    """Rules that may report it or not."""
    must_not_find: frozenset[str] = frozenset()
    """Rules that the story is about and that must be silent."""
    kind: str = ONE

    def truth(self, rule: str) -> bool | None:
        """Returns whether the rule should report it; None if both are right."""
        if rule in self.must_find:
            return True
        if rule in self.may_find or (rule in TRIALS and rule not in self.must_not_find):
            return None
        return False


@cache
def labelled() -> tuple[Story, ...]:
    """Returns all stories: the `STORIES` of all modules in `stories/`."""
    folder = str(Path(__file__).parent / "stories")
    names = sorted(info.name for info in pkgutil.iter_modules([folder]))
    modules = [importlib.import_module(f"tests.labelled.stories.{name}") for name in names]
    stories = tuple(story for module in modules for story in module.STORIES)
    assert len({story.name for story in stories}) == len(stories), "two stories have one name"
    return stories


def stories_of_kind(*kinds: str) -> tuple[Story, ...]:
    """Returns the stories of these kinds."""
    return tuple(story for story in labelled() if story.kind in kinds)


def story(
    name: str,
    plot: Plot | Batchwork,
    *,
    must_find: Sequence[str] = (),
    may_find: Sequence[str] = (),
    must_not_find: Sequence[str] = (),
) -> Story:
    """Returns the story of one job."""
    named = replace(plot, name=name)

    def recordings(seed: int) -> list[Json]:
        if isinstance(named, Batchwork):
            return [batchwork(named, seed)]
        return [training(_varied(named, seed), seed)]

    return Story(
        name, recordings, frozenset(must_find), frozenset(may_find), frozenset(must_not_find)
    )


def _varied(plot: Plot, seed: int) -> Plot:
    """Varies a story by seed: longer or shorter, with a little more or less use.

    Waiting and working times vary by the same factor. Use varies by up to a tenth, within the
    machine's limits. Every fiftieth point of CloudWatch is missing.
    """
    dice = random.Random(f"{plot.name} on day {seed}")
    factor, much = dice.uniform(0.85, 1.25), dice.uniform(0.92, 1.06)
    hosts: tuple[Host, ...] = tuple(
        tuple(_more_or_less(doing, factor, much, plot.instance) for doing in host)
        for host in plot.hosts
    )
    downloading_s, uploading_s = (
        round(seconds * factor) for seconds in (plot.downloading_s, plot.uploading_s)
    )
    return replace(
        plot, hosts=hosts, downloading_s=downloading_s, uploading_s=uploading_s, missing_share=0.02
    )


def _more_or_less(doing: Doing, factor: float, much: float, instance: str) -> Doing:
    """Returns a doing with another length and load, within the machine's limits."""
    on = machine(instance)
    return replace(
        doing,
        minutes=max(round(doing.minutes * factor), 1),
        cores=min(doing.cores * much, 0.985 * on.vcpu) if doing.cores > 1 else doing.cores,
        gpus=tuple(min(share * much, 0.98) for share in doing.gpus),
    )


def runs(plots: Sequence[Plot], seed: int, *, every: timedelta) -> list[Json]:
    """Returns the recordings of the plots, `every` apart."""
    return [
        training(replace(plot, begin=BEGIN + number * every), 100 * seed + number)
        for number, plot in enumerate(plots)
    ]


def family(
    name: str,
    plots: Sequence[Plot],
    *,
    every: timedelta = timedelta(hours=8),
    must_find: Sequence[str] = (),
    may_find: Sequence[str] = (),
) -> Story:
    """Returns the story of a family, whose jobs share a name except for its number."""
    named = [replace(plot, name=name) for plot in plots]

    def recordings(seed: int) -> list[Json]:
        return runs(named, seed, every=every)

    return Story(name, recordings, frozenset(must_find), frozenset(may_find), kind=FAMILY)


def sweep(
    seed: int, objectives: Sequence[float | None], counters: dict[str, int], **config: Any
) -> list[Json]:
    """Returns the recordings of hour-long trials, then of their tuning job.

    A trial without an objective failed.
    """
    trials = []
    for number, objective in enumerate(objectives):
        failed = objective is None
        plot = Plot(
            "ml.g5.xlarge",
            one_host(replace(BUSY_A10G, minutes=35 if failed else 60)),
            name=f"sweep-{number:03d}",
            begin=BEGIN + number * timedelta(minutes=65),
            status="Failed" if failed else "Completed",
            failure="AlgorithmError: exit code: 1" if failed else "",
            uploading_s=0 if failed else 20,
        )
        trial = training(plot, seed)
        if not failed:
            last = {"MetricName": "validation:auc", "Value": objective, "Timestamp": stamp(BEGIN)}
            trial["describe"]["FinalMetricDataList"] = [last]
        trials.append(trial)
    own = {
        "HyperParameterTuningJobConfig": {
            "Strategy": "Bayesian",
            "TrainingJobEarlyStoppingType": "Auto",
            "HyperParameterTuningJobObjective": {
                "Type": "Maximize",
                "MetricName": "validation:auc",
            },
            "ResourceLimits": {
                "MaxNumberOfTrainingJobs": len(objectives),
                "MaxParallelTrainingJobs": 1,
            },
            **config,
        },
        "TrainingJobStatusCounters": counters,
        "CreationTime": stamp(BEGIN),
    }
    over = BEGIN + (len(objectives) + 1) * timedelta(minutes=65)
    return [*trials, search("sweep", over, own, trials)]


def tuning(
    name: str,
    objectives: Sequence[float | None],
    *,
    must_find: Sequence[str] = (),
    may_find: Sequence[str] = (),
    must_not_find: Sequence[str] = (),
    **config: Any,
) -> Story:
    """Returns the story of a tuning job; `config` adds to its configuration."""
    failed = sum(value is None for value in objectives)
    counters = {"Completed": len(objectives) - failed, "NonRetryableError": failed}

    def recordings(seed: int) -> list[Json]:
        return sweep(seed, objectives, counters, **config)

    return Story(
        name,
        recordings,
        frozenset(must_find),
        frozenset(may_find),
        frozenset(must_not_find),
        kind=SEARCH,
    )


def repeated(times: int, *doings: Doing) -> tuple[Doing, ...]:
    """Returns the doings repeated."""
    return doings * times


def falling_loss(points: int, still: int, level: float = 0.3) -> list[float | None]:
    """Returns a loss that falls to its level and stays there for the last `still` points."""
    steps = points - still
    return [
        level + 1.7 * math.exp(-5 * step / steps) + 0.0004 * math.sin(7 * step)
        for step in range(points)
    ]


BUSY_A10G = Doing(minutes=150, cores=2.6, gpus=(0.92,), gib=9, gpu_gib=(20.0,))
BUSY_T4 = Doing(minutes=150, cores=2.2, gpus=(0.9,), gib=9, gpu_gib=(13.0,))
BUSY_CPU = Doing(minutes=120, cores=14.2, gib=42)
LONG_T4 = replace(BUSY_T4, minutes=320)
FOUR_BUSY_A10G = Doing(minutes=130, cores=30, gpus=(0.9,) * 4, gib=120, gpu_gib=(20.0,) * 4)
