"""For random work on random types, recommendations lead to ever cheaper types and end."""

import random
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest

from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.prices.market import InstanceType
from sageaudit.structs import replace
from tests.labelled.audits import audit as audit_of
from tests.labelled.audits import standing_findings, summary_for_next_run
from tests.labelled.effects import cluster
from tests.labelled.followed import Way, next_recording, ways_to_follow
from tests.labelled.machine import Doing, Json
from tests.labelled.made_up_job import BEGIN, REGION, SKLEARN, Plot, training

DAY = timedelta(days=1)
MAX_STEPS = 4
"""Steps from type to type."""
_PRICES = sources.offline_book(REGION, Component.TRAINING, BEGIN.date())


def hourly_usd(name: str) -> Decimal | None:
    """Returns the on-demand price of an instance-hour."""
    rate = _PRICES.hourly_rate(REGION, Component.TRAINING, name)
    return None if rate is None else rate.usd


def priced_types(*, gpus: bool) -> list[InstanceType]:
    """Returns the types with a price, with or without GPUs."""
    kinds = packaged.instance_types().values()
    return [
        kind
        for kind in kinds
        if JobKind.TRAINING in kind.kinds
        and hourly_usd(kind.name)
        and (kind.gpus > 0 if gpus else kind.accelerator is None)
    ]


def on_cpus(dice: random.Random) -> Plot:
    """Returns random CPU work of 70 minutes, on one host or several equal ones."""
    kind = dice.choice(priced_types(gpus=False))
    share, jitter = dice.random() ** 2, dice.choice((0.02, 0.1, 0.4))
    memory = float(kind.memory_gib) * dice.random() ** 2
    work = Doing(minutes=70, cores=max(kind.vcpu * share, 0.3), gib=memory, jitter=jitter)
    hosts = ((work,),) * dice.choice((1, 1, 1, 2, 5))
    return Plot(kind.name, hosts, image=SKLEARN, name=f"cpu-{kind.name.replace('.', '-')}")


def on_gpus(dice: random.Random) -> Plot:
    """Returns random work on some GPUs of a random type."""
    kind = dice.choice(priced_types(gpus=True))
    used = dice.randint(1, kind.gpus)
    busy = dice.choice((0.0, dice.random() ** 2, dice.random()))
    memory = float(kind.gpu_memory_gib or 16) * dice.random() ** 2
    work = Doing(
        minutes=70,
        cores=max(kind.vcpu * dice.random() ** 2, 0.3),
        gpus=(busy,) * used,
        gib=float(kind.memory_gib) * dice.random() ** 2,
        gpu_gib=(memory,) * used,
        jitter=dice.choice((0.02, 0.1, 0.4)),
    )
    return Plot(
        kind.name, ((work,),) * dice.choice((1, 1, 1, 2)), name=f"gpu-{kind.name.replace('.', '-')}"
    )


def steps(document: Json, dice: random.Random) -> Iterator[tuple[Way, Json]]:
    """Yields each followed recommendation on type or count, and the recording of the next run."""
    audit, earlier = audit_of(document, ()), tuple[AuditSummary, ...]()
    while True:
        moves = [
            way
            for finding in standing_findings(audit)
            for way in ways_to_follow(finding)
            if any(
                parameter.path.endswith(("InstanceType", "InstanceCount")) for parameter in way.fix
            )
        ]
        if not moves:
            return
        way = dice.choice(moves)
        document = next_recording(document, [way], later=DAY)
        yield way, document
        earlier = (summary_for_next_run(audit), *earlier)
        audit = audit_of(document, earlier)


def type_and_count(document: Json) -> tuple[str, int]:
    """Returns instance type and count."""
    resources = cluster(document["describe"])
    return resources["InstanceType"], resources["InstanceCount"]


@pytest.mark.parametrize("seed", range(20))
def test_advice_on_types_goes_downhill_and_ends(seed: int) -> None:
    """Ten jobs per seed take at most four steps, each cheaper per hour, and repeat no cluster."""
    dice = random.Random(seed)
    for number in range(10):
        plot = (on_cpus, on_gpus)[number % 2](dice)
        recording = training(replace(plot, describe={}), seed)
        visited, path = [type_and_count(recording)], [str(plot)]
        for way, after in steps(recording, dice):
            cluster_after = type_and_count(after)
            path.append(str(way))
            assert cluster_after not in visited, path
            assert usd_per_hour(cluster_after) < usd_per_hour(visited[-1]), path
            visited.append(cluster_after)
            assert len(visited) <= 1 + MAX_STEPS, path


def usd_per_hour(type_count: tuple[str, int]) -> Decimal:
    """Returns the hourly cost of all hosts."""
    name, count = type_count
    rate = hourly_usd(name)
    assert rate is not None, name
    return rate * count
