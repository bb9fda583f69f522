"""Random work on random types: following the advice on types goes downhill, and comes to an end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.prices.market import InstanceType
from tests.labelled.audits import audit as audit_of
from tests.labelled.followed import Way, cluster, followed, ways
from tests.labelled.machine import BEGIN, REGION, SKLEARN, Doing, Json, Plot, training
from tests.labelled.test_no_ping_pong import remembered, standing

AT_MOST = 4
DAY = timedelta(days=1)
_PRICES = sources.offline_book(REGION, Component.TRAINING, BEGIN.date())


def hourly_usd(name: str) -> Decimal | None:
    """What an instance costs on demand."""
    rate = _PRICES.hourly(REGION, Component.TRAINING, name)
    return None if rate is None else rate.usd


def sold(*, gpus: bool) -> list[InstanceType]:
    """Types with a price here, by whether they have GPUs."""
    kinds = packaged.types().values()
    return [
        kind
        for kind in kinds
        if JobKind.TRAINING in kind.kinds
        and hourly_usd(kind.name)
        and (kind.gpus > 0 if gpus else kind.accelerator is None)
    ]


def on_cpus(dice: random.Random) -> Plot:
    """Some cores and some memory, for an hour and more, on one host or several alike."""
    kind = dice.choice(sold(gpus=False))
    share, jitter = dice.random() ** 2, dice.choice((0.02, 0.1, 0.4))
    memory = float(kind.memory_gib) * dice.random() ** 2
    work = Doing(70, cores=max(kind.vcpu * share, 0.3), gib=memory, jitter=jitter)
    hosts = ((work,),) * dice.choice((1, 1, 1, 2, 5))
    return Plot(kind.name, hosts, image=SKLEARN, name=f"cpu-{kind.name}")


def on_gpus(dice: random.Random) -> Plot:
    """Some of the GPUs at some of their strength, a part of their memory, and what feeds them."""
    kind = dice.choice(sold(gpus=True))
    used = dice.randint(1, kind.gpus)
    busy = dice.choice((0.0, dice.random() ** 2, dice.random()))
    memory = float(kind.gpu_memory_gib or 16) * dice.random() ** 2
    work = Doing(
        70,
        cores=max(kind.vcpu * dice.random() ** 2, 0.3),
        gpus=(busy,) * used,
        gib=float(kind.memory_gib) * dice.random() ** 2,
        gpu_gib=(memory,) * used,
        jitter=dice.choice((0.02, 0.1, 0.4)),
    )
    return Plot(kind.name, ((work,),) * dice.choice((1, 1, 1, 2)), name=f"gpu-{kind.name}")


def steps(document: Json, dice: random.Random) -> Iterator[tuple[Way, Json]]:
    """Each advice on type or count, as it is followed, and the run that follows it."""
    audit, earlier = audit_of(document, ()), tuple[EarlierRun, ...]()
    while True:
        moves = [
            way
            for finding in standing(audit)
            for way in ways(finding)
            if any(one.path.endswith(("InstanceType", "InstanceCount")) for one in way.fix)
        ]
        if not moves:
            return
        way = dice.choice(moves)
        document = followed(document, [way], later=DAY)
        yield way, document
        earlier = (remembered(audit), *earlier)
        audit = audit_of(document, earlier)


def place(document: Json) -> tuple[str, int]:
    """Type and count."""
    where = cluster(document["describe"])
    return where["InstanceType"], where["InstanceCount"]


@pytest.mark.parametrize("seed", range(20))
def test_advice_on_types_goes_downhill_and_ends(seed: int) -> None:
    """Ten jobs each: at most four steps, each cheaper by the hour, to no place a second time."""
    dice = random.Random(seed)
    for number in range(10):
        plot = (on_cpus, on_gpus)[number % 2](dice)
        document = training(replace(plot, describe={}), seed)
        been, path = [place(document)], [str(plot)]
        for way, after in steps(document, dice):
            where = place(after)
            path.append(str(way))
            assert where not in been, path
            assert usd_an_hour(where) < usd_an_hour(been[-1]), path
            been.append(where)
            assert len(been) <= 1 + AT_MOST, path


def usd_an_hour(where: tuple[str, int]) -> Decimal:
    """Of all hosts together."""
    name, count = where
    rate = hourly_usd(name)
    assert rate is not None, name
    return rate * count
