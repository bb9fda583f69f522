"""Physical stories with their truth: what happened in the job, and what a person would say of it.

`wasteful` names what is true of the story by the way it is built; `either` what could be said with
as much right as not. All else would be a false alarm.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.labelled.machine import Batchwork, Doing, Plot, batchwork, machine, training

TRIALS = frozenset(
    {
        "spot-not-used",
        "trainium-candidate",
        "mixed-precision-candidate",
        "max-runtime-loose",
        "profile-me",
        "network-isolation-off",
    }
)
"""Worth saying of nearly any long on-demand run: labelled only where a story is about them."""


@dataclass(frozen=True)
class Story:
    """One story, told once for each seed. `tell` makes the recording."""

    name: str
    tell: Callable[[int], dict[str, Any]]
    wasteful: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    fine: frozenset[str] = field(default_factory=frozenset)
    """Trials that this story is about, and that must not be advised."""

    def truth(self, rule: str) -> bool | None:
        """True, False, or None where both would be right."""
        if rule in self.wasteful:
            return True
        if rule in self.either or (rule in TRIALS and rule not in self.fine):
            return None
        return False


def story(
    name: str,
    plot: Plot,
    *wasteful: str,
    either: tuple[str, ...] = (),
    fine: tuple[str, ...] = (),
) -> Story:
    """A training job's story."""
    named = replace(plot, name=name)
    return Story(
        name,
        lambda seed: training(_varied(named, seed), seed),
        frozenset(wasteful),
        frozenset(either),
        frozenset(fine),
    )


def _varied(plot: Plot, seed: int) -> Plot:
    """The same story on another day: longer or shorter, a little more or less of everything.

    What waits and what works grow alike; what is used is used a tenth more or less, as far as the
    machine goes; every fiftieth point of CloudWatch is missing.
    """
    dice = random.Random(f"{plot.name} on day {seed}")
    factor, much = dice.uniform(0.85, 1.25), dice.uniform(0.92, 1.06)
    hosts = tuple(
        tuple(more_or_less(doing, factor, much, plot.instance) for doing in host)
        for host in plot.hosts
    )
    downloading_s, uploading_s = (
        round(seconds * factor) for seconds in (plot.downloading_s, plot.uploading_s)
    )
    return replace(
        plot, hosts=hosts, downloading_s=downloading_s, uploading_s=uploading_s, missing_share=0.02
    )


def more_or_less(doing: Doing, factor: float, much: float, instance: str) -> Doing:
    """A doing of another length and strength, within what the machine has."""
    on = machine(instance)
    return replace(
        doing,
        minutes=max(round(doing.minutes * factor), 1),
        cores=min(doing.cores * much, 0.985 * on.vcpu) if doing.cores > 1 else doing.cores,
        gpus=tuple(min(share * much, 0.98) for share in doing.gpus),
    )


def swinging(times: int, *doings: Doing) -> tuple[Doing, ...]:
    """The same minutes over and over."""
    return doings * times


def falling(points: int, still: int, level: float = 0.3) -> list[float | None]:
    """A loss that falls to its level and stays there for the last `still` points."""
    steps = points - still
    return [
        level + 1.7 * math.exp(-5 * step / steps) + 0.0004 * math.sin(7 * step)
        for step in range(points)
    ]


def many(name: str, work: Batchwork, *wasteful: str, either: tuple[str, ...] = ()) -> Story:
    """A processing or transform job's story."""
    named = replace(work, name=name)
    return Story(name, lambda seed: batchwork(named, seed), frozenset(wasteful), frozenset(either))


BUSY_A10G = Doing(150, cores=2.6, gpus=(0.92,), gib=9, gpu_gib=(20.0,))
BUSY_T4 = Doing(150, cores=2.2, gpus=(0.9,), gib=9, gpu_gib=(13.0,))
BUSY_CPU = Doing(120, cores=14.2, gib=42)
LONG_T4 = replace(BUSY_T4, minutes=320)
