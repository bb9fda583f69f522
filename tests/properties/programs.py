"""A simulated machine and its program: hosts, devices, processes, loader and memory.

It obeys physics: a device is busy for at most all of each second, a slow loader keeps devices
waiting, and memory in use lies on some device. It knows no threshold of this project.
`tests.labelled.made_up_job` writes it as a recording.
"""

import enum
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.prices.market import InstanceType
from sageaudit.structs import replace
from tests.fakes.packaged_prices import packaged_market
from tests.labelled.machine import Doing, machine
from tests.labelled.made_up_job import REGION, Plot, training

Document = dict[str, Any]
METRICS = ("CPUUtilization", "MemoryUtilization", "GPUUtilization", "GPUMemoryUtilization")


class Layout(enum.Enum):
    """How processes are distributed over a host's devices."""

    COPIES = "copies: each device has a copy, and all make the same step together"
    PROCESSES = "processes: each device has a process of its own, none can be split"
    TURNS = "turns: parts of one model, one of which works at a time"


class Spell(Struct, frozen=True):
    """Some minutes of a program.

    `pace`: the share of them in which it works. `loading`: only its loader works.
    """

    minutes: int
    pace: float = 1.0
    loading: bool = False


class Program(Struct, frozen=True):
    """What one host's program does over time.

    `shares`: how busy each used device is at full pace (0..1). `gpu_gib`: memory on each of them.
    `cores`: of the processes; `loader_cores`: of their loader.
    """

    layout: Layout
    shares: tuple[float, ...]
    gpu_gib: tuple[float, ...]
    cores: float
    loader_cores: float
    gib: float
    spells: tuple[Spell, ...]


class Run(Struct, frozen=True, dict=True):
    """A program on its hosts. `paces`: each host's share of the program's work (0..1)."""

    instance: str
    program: Program
    paces: tuple[float, ...] = (1.0,)
    recorded: tuple[str, ...] = METRICS
    missing_share: float = 0.0
    jitter: float = 0.0
    spot_share: float | None = None
    seed: int = 0

    @property
    def on(self) -> InstanceType:
        """The instance type of each host."""
        return machine(self.instance)

    def recording(self) -> Document:
        """Returns the recording of the run."""
        hosts = tuple(tuple(self._doings(pace)) for pace in self.paces)
        job_recording = training(
            Plot(
                self.instance,
                hosts,
                missing_share=self.missing_share,
                spot_billed_share=self.spot_share,
                name="made-up",
            ),
            self.seed,
        )
        metrics = job_recording["metrics"]
        metrics["series"] = [line for line in metrics["series"] if line["metric"] in self.recorded]
        return job_recording

    def loads(self, spell: Spell) -> tuple[float, ...]:
        """Returns how busy each used device of the busiest host is in these minutes."""
        pace = 0.0 if spell.loading else spell.pace * max(self.paces)
        return tuple(share * pace for share in self.program.shares)

    @property
    def device_seconds(self) -> float:
        """Seconds of work on all devices of all hosts."""
        of_one = sum(
            60 * spell.minutes * share * (0 if spell.loading else spell.pace)
            for spell in self.program.spells
            for share in self.program.shares
        )
        return of_one * sum(self.paces)

    def times_as_long(self, devices: int, late: int = 0, weaker: float = 1.0) -> float:
        """Returns the factor of the run time on `devices` devices, without any overlap.

        `weaker`: how many times as long the same work takes on the new device. Time without device
        work stays the same. After it each device does the work of its processes one after the
        other. Copies of a model split their step evenly. Each separate process is placed on one
        device: the largest first, on the device with the least work. Only visible minutes count:
        without the first `late` ones, and without the last if it was not whole.
        """
        timeline = [spell for spell in self.program.spells for _ in range(spell.minutes)]
        longer = [self._longer(self.loads(spell), devices, weaker) for spell in timeline[late:]]
        return min(mean(longer), mean(longer[:-1]))

    def _longer(self, loads: Sequence[float], devices: int, weaker: float) -> float:
        if not loads:
            return 1.0
        if self.program.layout is Layout.TURNS:
            return 1 - sum(loads) + weaker * sum(loads)
        if self.program.layout is Layout.COPIES:
            works = sum(loads) / min(devices, len(loads))
        else:
            works = max(_placed(loads, devices))
        return 1 - max(loads) + weaker * works

    def _doings(self, paced: float) -> Iterator[Doing]:
        program = self.program
        gpu_gib = tuple(program.gpu_gib)
        for spell in program.spells:
            pace = 0.0 if spell.loading else spell.pace * paced
            feeding = program.loader_cores * (paced if spell.loading else pace)
            cores = min(max(program.cores * pace + feeding, 0.05), 0.985 * self.on.vcpu)
            yield Doing(
                spell.minutes,
                cores=cores,
                gpus=tuple(share * pace for share in program.shares),
                gib=program.gib,
                gpu_gib=gpu_gib,
                jitter=self.jitter,
            )


def plain(
    instance: str,
    *shares: float,
    layout: Layout = Layout.COPIES,
    gpu_gib: float = 2.0,
    cores: float = 1.0,
    loader_cores: float = 0.0,
    gib: float = 4.0,
    spells: tuple[Spell, ...] = (Spell(120),),
    hosts: int = 1,
) -> Run:
    """Returns a perfectly steady run with the same program on each host, for examples."""
    used_gib = (gpu_gib,) * len(shares)
    return Run(
        instance,
        Program(layout, shares, used_gib, cores, loader_cores, gib, spells),
        (1.0,) * hosts,
    )


def _placed(loads: Sequence[float], devices: int) -> list[float]:
    """Returns each device's work: processes are placed largest first, on the freest device."""
    on = [0.0] * devices
    for load in sorted(loads, reverse=True):
        on[on.index(min(on))] += load
    return on


def _priced(*, gpus: bool) -> list[str]:
    """Returns types with a Training price, smallest first, without burstable and Trainium ones."""
    market = packaged_market()
    rows = [
        row
        for row in packaged.instance_types().values()
        if JobKind.TRAINING in row.kinds
        and bool(row.gpus) == gpus
        and (row.gpus or not row.accelerator)
        and not row.family.startswith("t3")
        and market.hourly(REGION, JobKind.TRAINING, row.name) is not None
    ]
    return [row.name for row in sorted(rows, key=lambda row: (row.gpus, row.vcpu, row.name))]


GPU_TYPES = _priced(gpus=True)
SEVERAL_GPUS = [name for name in GPU_TYPES if machine(name).gpus > 1]
CPU_TYPES = _priced(gpus=False)


def percents(*telling: int, minimum: int = 0, maximum: int = 100) -> st.SearchStrategy[float]:
    """Returns a strategy for shares in whole percents; examples shrink to the first given."""
    whole = st.sampled_from(telling) | st.integers(minimum, maximum)
    return whole.map(lambda number: number / 100)


BUSY = percents(30, 10, 3, 60, 85, 96, 1, minimum=1, maximum=98)
"""How busy a device is while the program works."""
HELD = percents(10, 25, 40, 70, 95, minimum=2, maximum=97)
"""How much of a device's or a host's memory is in use."""
FED = percents(5, 0, 20, 45, 90, maximum=98)
"""How many of a host's cores the loader keeps busy."""
PACE = percents(100, 50, 70, minimum=30)
"""The share of minutes in which a program that waits now and then works."""


def _minutes(*telling: int, minimum: int, maximum: int) -> st.SearchStrategy[int]:
    return st.sampled_from(telling) | st.integers(minimum, maximum)


@st.composite
def spells(draw: st.DrawFn, *, pauses: bool) -> tuple[Spell, ...]:
    """Draws 20 to 600 minutes: steady work, bursts, loading only, and idleness anywhere."""
    runs_on = st.builds(Spell, _minutes(120, 60, 30, minimum=20, maximum=150), PACE)
    if not pauses:
        return tuple(draw(st.lists(runs_on, min_size=1, max_size=2)))
    stands = st.builds(Spell, _minutes(40, 60, minimum=5, maximum=90), st.just(0.0))
    loads = st.builds(Spell, _minutes(5, 20, minimum=1, maximum=30), st.just(0.0), st.just(True))
    drawn = draw(st.lists(runs_on | runs_on | stands | loads, min_size=1, max_size=5))
    if sum(spell.minutes for spell in drawn) < 20:
        drawn = [replace(drawn[0], minutes=drawn[0].minutes + 20), *drawn[1:]]
    if draw(st.sampled_from((False, False, False, True))):
        drawn = drawn * draw(st.integers(2, 4))
    cut, remaining = [], 600
    for spell in drawn:
        if remaining:
            cut.append(replace(spell, minutes=min(spell.minutes, remaining)))
            remaining -= cut[-1].minutes
    return tuple(cut)


@st.composite
def programs(draw: st.DrawFn, on: InstanceType, *, pauses: bool) -> Program:
    """Draws a program that fits on the machine."""
    layout = draw(st.sampled_from(Layout))
    used = on.gpus and draw(st.sampled_from((on.gpus, 1)) | st.integers(1, on.gpus))
    if used and pauses and draw(st.sampled_from((False,) * 14 + (True,))):
        used = 0
    full = draw(BUSY) if used else 0.0
    if layout is Layout.COPIES:
        busy = (full,) * used
    elif layout is Layout.TURNS:
        busy = (round(full / used, 4),) * used if used else ()
    else:
        busy = tuple(draw(BUSY) for _ in range(used))
    memory = float(on.gpu_memory_gib or 16)
    gpu_gib = round(draw(HELD) * memory, 2)
    processes = max(used, 1)
    return Program(
        layout,
        busy,
        (gpu_gib,) * used,
        cores=round(draw(percents(50, 100, 10, minimum=1)) * processes, 2),
        loader_cores=round(draw(FED) * on.vcpu, 2),
        gib=round(draw(HELD) * float(on.memory_gib), 1),
        spells=draw(spells(pauses=pauses)),
    )


@st.composite
def runs(
    draw: st.DrawFn, types: Sequence[str] | None = None, *, whole: bool = False, pauses: bool = True
) -> Run:
    """Draws a run; three in four are on GPUs.

    `whole`: no metric or point is missing. Without `pauses`: it always does some work.
    """
    names = types or draw(st.sampled_from((GPU_TYPES, GPU_TYPES, GPU_TYPES, CPU_TYPES)))
    instance = draw(st.sampled_from(names))
    on = machine(instance)
    hosts = draw(st.sampled_from((1, 1, 1, 2, 4, 8)))
    uneven = hosts > 1 and draw(st.booleans())
    lazy = percents(50, 0, 100) if pauses else percents(50, 100, minimum=40)
    paces = (1.0, *((draw(lazy) if uneven else 1.0) for _ in range(hosts - 1)))
    recorded = METRICS if whole else tuple(name for name in METRICS if draw(st.integers(0, 5)) < 5)
    return Run(
        instance,
        draw(programs(on, pauses=pauses)),
        paces,
        recorded=recorded,
        missing_share=0.0 if whole else draw(st.sampled_from((0.0, 0.0, 0.02, 0.2, 0.4))),
        jitter=draw(st.sampled_from((0.0, 0.05, 0.3))),
        spot_share=draw(st.sampled_from((None, None, None, 0.4))),
        seed=draw(st.integers(0, 3)),
    )
