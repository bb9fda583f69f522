"""Measures this checkout alternating with another one and with a peer, and describes each figure.

Figures differ between machines and, on a shared one, between minutes. So the samples of a round are
taken one after the other, and quotients are those of one round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

from tools.bench.samples import PEER

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent / "samples"
MAX_ROUNDS = 9
MIN_ROUNDS = 3
ROUNDS_S = 6
"""After this many seconds, no round is begun if there are MIN_ROUNDS."""
THREE_DIGITS = 100
DIGITS = 4
"""The significant digits of a sample."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure is compared with, and how much it may be."""

    peers: tuple[str, ...] = ()
    """The labels of floors and peers, without the prefix."""
    text: str = ""
    """The goal of the figure or of its quotient, such as "at most 1.1 times"."""


@dataclass(frozen=True, slots=True)
class Row:
    """The samples of a figure, and those of the earlier version and of its peers, by round."""

    label: str
    unit: str
    """Such as "CPU s", "ms", "kB" or "audits/s"."""
    samples: tuple[float, ...]
    before: tuple[float, ...] = ()
    peers: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The samples of each floor or peer."""
    goal: str = ""

    @classmethod
    def of_count(
        cls, label: str, figure: float, unit: str, goal: str = "", floor: float | None = None
    ) -> Self:
        """Returns a figure that is counted, and so needs no other samples."""
        peers = {} if floor is None else {"the floor": (floor,)}
        return cls(label, unit, (figure,), peers=peers, goal=goal)

    @property
    def figure(self) -> float:
        """The median of the samples."""
        return statistics.median(self.samples)

    @property
    def times_better(self) -> tuple[float, ...]:
        """How many times as fast, or as small, as before; by round."""
        pairs = zip(self.samples, self.before, strict=True) if self.before else ()
        is_rate = self.unit.endswith("/s")
        return tuple(now / before if is_rate else before / now for now, before in pairs)

    def times_peer(self, name: str) -> tuple[float, ...]:
        """Returns how many times a peer's figure it is; by round."""
        pairs = zip(self.samples, self.peers[name], strict=True)
        return tuple(now / peer for now, peer in pairs)

    @property
    def peers_text(self) -> str:
        """Each peer's figure, and how many times it this figure is."""
        return "; ".join(
            f"{spread_text(self.times_peer(name))} x {name}, "
            f"{figure_text(statistics.median(samples))}"
            for name, samples in self.peers.items()
        )

    def __str__(self) -> str:
        parts = [f"{self.label:<60} {figure_text(self.figure):>8} {self.unit:<8}"]
        if self.before:
            before_text = figure_text(statistics.median(self.before))
            parts.append(f"before {before_text}, {spread_text(self.times_better)} times better")
        if self.peers:
            parts.append(self.peers_text)
        if self.goal:
            parts.append(f"({self.goal})")
        return "  ".join(parts)


def figure_text(figure: float) -> str:
    """Returns a figure from 100 as a whole number, others with up to three significant digits."""
    return f"{figure:,.0f}" if figure >= THREE_DIGITS else f"{figure:.3g}"


def spread_text(quotients: Sequence[float]) -> str:
    """Returns the median quotient, with the lowest and highest if there are several."""
    median = figure_text(statistics.median(quotients))
    lowest, highest = figure_text(min(quotients)), figure_text(max(quotients))
    return median if lowest == highest else f"{median} ({lowest} to {highest})"


class Checkout:
    """A process that takes samples of the code of one checkout.

    `units` has the labels that this version can measure.
    """

    def __init__(self, root: Path, sample: Path) -> None:
        paths = os.pathsep.join((str(root / "functions"), str(root)))
        env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), str(sample)],
            cwd=root,
            env=env | {"PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.units: Mapping[str, str] = json.loads(self._read_line())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def measure(self, label: str) -> float:
        """Returns one sample."""
        if self._process.stdin is None:
            raise RuntimeError("the process has no stdin")
        print(label, file=self._process.stdin, flush=True)
        return float(f"{float(self._read_line()):.{DIGITS}g}")

    def _read_line(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError(
                f"the process ended with {self._process.wait()}: its stderr says why"
            )
        return line


def sample_alternately(calls: Sequence[Callable[[], float]]) -> list[tuple[float, ...]]:
    """Returns the samples of each call. The calls run in turn, for several rounds.

    A first round is left out, because it makes what is measured.
    """
    rounds: list[list[float]] = []
    for call in calls:
        call()
    begin = time.monotonic()
    while len(rounds) < MIN_ROUNDS or (
        len(rounds) < MAX_ROUNDS and time.monotonic() - begin < ROUNDS_S
    ):
        rounds.append([call() for call in calls])
    return [*zip(*rounds, strict=True)]


def measure_sample(
    sample: Path, goals: Mapping[str, Goal], base: Path | None, only: str = ""
) -> Iterator[Row]:
    """Yields a row for each label of a module of `samples` that has `only` in it.

    Each label has processes of its own, which have nothing of the others in memory.
    """
    with Checkout(ROOT, sample) as checkout:
        units = checkout.units
    for label, unit in units.items():
        if only in label and not label.startswith(PEER):
            yield _measure_label(sample, label, unit, goals.get(label, Goal()), base)


def _measure_label(sample: Path, label: str, unit: str, goal: Goal, base: Path | None) -> Row:
    with ExitStack() as processes:
        checkout = processes.enter_context(Checkout(ROOT, sample))
        calls = {"now": partial(checkout.measure, label)}
        if base is not None:
            base_checkout = processes.enter_context(Checkout(base, sample))
            if label in base_checkout.units:
                calls["before"] = partial(base_checkout.measure, label)
        calls |= {name: partial(checkout.measure, f"{PEER}{name}") for name in goal.peers}
        samples = dict(zip(calls, sample_alternately([*calls.values()]), strict=True))
    peers = {name: samples[name] for name in goal.peers}
    return Row(label, unit, samples["now"], samples.get("before", ()), peers, goal.text)
