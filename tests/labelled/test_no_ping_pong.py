"""No advice is ever turned back: the run that follows it, audited, is told nothing to undo it.

Of random work on random types the advice goes downhill, and comes to an end.
"""

import copy
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import cache

import pytest

from sageaudit.adapters.prices import packaged, sources
from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.finding_document import FindingDocument, FixDocument
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Finding, Found, Parameter
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.prices.market import InstanceType
from sageaudit.structs import replace
from sageaudit.workflows.audit.judge import run_summary
from tests.labelled.audits import audit as audit_of
from tests.labelled.audits import audit_in_turn
from tests.labelled.effects import cluster
from tests.labelled.followed import (
    Way,
    has_open_value,
    next_recording,
    set_parameter,
    ways_to_follow,
)
from tests.labelled.machine import Doing, Json, one_host
from tests.labelled.made_up_job import BEGIN, REGION, SKLEARN, Plot, training
from tests.labelled.story import FAMILY, ONE, SEARCH, labelled, stories_of_kind, sweep

RISING: list[float | None] = [0.5 + 0.012 * number for number in range(30)]
FLAT: list[float | None] = [0.8] * 30
AT_ONCE = {"MaxNumberOfTrainingJobs": 30, "MaxParallelTrainingJobs": 30}
DAY = timedelta(days=1)
_HALF_ASLEEP = Doing(300, cores=3, gpus=(0.24,), gib=30, gpu_gib=(4.0,))
HALF_ASLEEP = "hours-on-a-gpu-half-asleep"
RUNS = (HALF_ASLEEP, *(story.name for story in stories_of_kind(ONE, FAMILY)))
"""Each story's run, and each family's runs in their order: the last one is advised."""


def recordings_of_story(name: str) -> list[Json]:
    """The recordings of a story."""
    if name == HALF_ASLEEP:
        return [training(Plot("ml.g5.8xlarge", one_host(_HALF_ASLEEP), name="half-asleep"), 1)]
    return next(story for story in labelled() if story.name == name).recordings(1)


def summary_for_next_run(audit: Audit) -> AuditSummary:
    """What the family's next run knows of this one."""
    job, savings = audit.job, audit.savings
    assert job.ended_at is not None
    return replace(
        run_summary(audit),
        family=audit.family,
        owner=audit.owner,
        total_usd=audit.bill.total_usd,
        avoidable_usd=savings.avoidable_usd,
        lost_usd=savings.lost_usd,
    )


@cache
def last_run(name: str) -> tuple[Json, Audit, tuple[AuditSummary, ...], timedelta]:
    """A story's last run, its audit, the runs before and with it, newest first, and their pace."""
    earlier: tuple[AuditSummary, ...] = ()
    for document in recordings_of_story(name):
        audit = audit_of(document, earlier)
        earlier = (summary_for_next_run(audit), *earlier)
    ends = [run.ended_at for run in earlier]
    return document, audit, earlier, ends[0] - ends[1] if len(ends) > 1 else DAY


def standing_findings(audit: Audit) -> list[Finding]:
    """The findings that tell somebody to change something."""
    return [
        one
        for one in audit.savings.findings
        if one.found.fix and not (one.superseded_by or one.subsumed_by)
    ]


def followable_findings(audit: Audit) -> list[Finding]:
    """Those whose fix says every value."""
    return [one for one in standing_findings(audit) if not has_open_value(one.found.fix)]


GOES_ON = "gpu-underused"
"""It says how little a GPU does, whatever was done about it, and may name a type that is cheaper
still: a test below holds that such steps end. Every other rule is silent once heeded."""


def parameter_values(fix: Sequence[Parameter]) -> frozenset[tuple[str, str]]:
    """What it sets, and to what."""
    return frozenset((one.path, str(one.new)) for one in fix)


def reversals(
    taken: Sequence[Way], after: Audit, still_better: frozenset[tuple[str, str]] = frozenset()
) -> Iterator[str]:
    """Each rule that fires again, and each parameter that is told to be what it was.

    `still_better`: the fix itself, where its alternative was taken. That one is still the better,
    so a rule may tell it again, in the very same words, and nothing else.
    """
    undone = {(parameter.path, str(parameter.old)) for way in taken for parameter in way.fix}
    names = {way.rule for way in taken}
    for name, outcome in after.outcomes:
        if isinstance(outcome, Found):
            said = [Way(name.name, fix, None) for fix in (outcome.fix, *outcome.alternatives)]
            if name.name in names - {GOES_ON} and parameter_values(outcome.fix) != still_better:
                yield f"again: {outcome.summary} {said[0]}"
            for way in said:
                if any((one.path, str(one.new)) in undone for one in way.fix):
                    yield f"back: {outcome.summary} {way}"


@pytest.mark.parametrize("name", RUNS)
def test_no_two_findings_contradict_each_other(name: str) -> None:
    """What stands sets no parameter to two values."""
    values: dict[str, set[str]] = {}
    for finding in standing_findings(last_run(name)[1]):
        for one in finding.found.fix:
            values.setdefault(one.path, set()).add(str(one.new))
    assert {path: new for path, new in values.items() if len(new) > 1} == {}


@pytest.mark.parametrize("name", RUNS)
def test_one_advice_is_not_turned_back(name: str) -> None:
    """Taken alone, at both ends of its range, and each of its alternatives."""
    document, audit, earlier, pace = last_run(name)
    for finding in standing_findings(audit):
        fix = finding.found.fix
        for way in ways_to_follow(finding):
            after = audit_of(next_recording(document, [way], later=pace), earlier)
            better = frozenset[tuple[str, str]]() if way.fix == fix else parameter_values(fix)
            assert list(reversals([way], after, better)) == [], str(way)


def test_what_is_still_better_may_be_told_again_and_nothing_else() -> None:
    """After the second best type: the best one is; a third, or the one it came from, is not."""
    document, audit, earlier, pace = last_run("one-well-fed-gpu-on-a-host-for-many-loaders")
    [finding] = [one for one in standing_findings(audit) if one.rule.name == "cheaper-type"]
    [_, second] = ways_to_follow(finding)
    after = audit_of(next_recording(document, [second], later=pace), earlier)
    assert list(reversals([second], after, parameter_values(finding.found.fix))) == []
    [again] = reversals([second], after, parameter_values(second.fix))
    assert again.startswith("again: ")
    back = replace(second, fix=tuple(replace(one, old=one.new) for one in finding.found.fix))
    assert any(
        line.startswith("back: ") for line in reversals([back], after, parameter_values(back.fix))
    )


@pytest.mark.parametrize("name", RUNS)
def test_advice_ends(name: str) -> None:
    """All of it taken together, and what is said then too: it ends, and nothing is turned back."""
    document, audit, earlier, pace = last_run(name)
    taken: list[Way] = []
    for _ in range(4):
        now = [next(iter(ways_to_follow(finding))) for finding in followable_findings(audit)]
        if not now:
            break
        taken += now
        document = next_recording(document, now, later=pace)
        audit = audit_of(document, earlier)
        earlier = (summary_for_next_run(audit), *earlier)
        assert list(reversals(taken, audit)) == [], [str(way) for way in now]
    assert followable_findings(audit) == []


SWEEPS: dict[str, tuple[list[float | None], Json]] = {
    "every-point-of-a-grid": (RISING, {"Strategy": "Grid"}),
    "all-at-random-at-once": (RISING, {"Strategy": "Random", "ResourceLimits": AT_ONCE}),
    "all-bayesian-at-once": (RISING, {"ResourceLimits": AT_ONCE}),
    "never-cut-short": (FLAT, {"TrainingJobEarlyStoppingType": "Off"}),
}


def search_recordings(name: str) -> list[Json]:
    """A tuning job with its trials, the tuning job's own answer last."""
    if name not in SWEEPS:
        return next(story for story in labelled() if story.name == name).recordings(1)
    objectives, config = SWEEPS[name]
    return sweep(1, objectives, {"Completed": len(objectives)}, **config)


def advised_search(
    recordings: list[Json], fix: list[FixDocument]
) -> tuple[list[Json], set[tuple[str, str]]]:
    """The search as it is asked for then, with as many trials as that runs; what it was before."""
    *trials, own = copy.deepcopy(recordings)
    most = len(trials)
    for parameter in fix:
        path, new = parameter["parameter"], parameter["new"]
        set_parameter(own["describe"], path, new)
        if path.endswith("MaxNumberOfTrainingJobs"):
            most = int(str(new))
        elif "TuningJobCompletionCriteria" in path:
            most = min(most, 2 + 5)
    counters = {"Completed": most}
    own["describe"]["TrainingJobStatusCounters"] = counters
    return [*trials[:most], own], {(one["parameter"], str(one["old"])) for one in fix}


@pytest.mark.parametrize("name", [*SWEEPS, *(story.name for story in stories_of_kind(SEARCH))])
def test_a_searchs_advice_is_not_turned_back(name: str) -> None:
    """Each way of each finding on the tuning job itself."""
    search = search_recordings(name)
    for finding in own_findings(search):
        for fix in filter(None, (finding["fix"], *finding["alternatives"])):
            recordings, undone = advised_search(search, fix)
            for after in own_findings(recordings):
                assert after["rule"] != finding["rule"], (fix, after["summary"])
                said = [one for way in (after["fix"], *after["alternatives"]) for one in way]
                assert not {(one["parameter"], str(one["new"])) for one in said} & undone, fix


def own_findings(recordings: list[Json]) -> list[FindingDocument]:
    """Those on the tuning job itself, not on its trials."""
    document = audit_in_turn(recordings)[-1]
    return [one for one in document["findings"] if "training_jobs" not in one["evidence"]]


AT_MOST = 4
"""Steps from type to type."""
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
    return Plot(kind.name, hosts, image=SKLEARN, name=f"cpu-{kind.name.replace('.', '-')}")


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
    return Plot(
        kind.name, ((work,),) * dice.choice((1, 1, 1, 2)), name=f"gpu-{kind.name.replace('.', '-')}"
    )


def steps(document: Json, dice: random.Random) -> Iterator[tuple[Way, Json]]:
    """Each advice on type or count, as it is followed, and the run that follows it."""
    audit, earlier = audit_of(document, ()), tuple[AuditSummary, ...]()
    while True:
        moves = [
            way
            for finding in standing_findings(audit)
            for way in ways_to_follow(finding)
            if any(one.path.endswith(("InstanceType", "InstanceCount")) for one in way.fix)
        ]
        if not moves:
            return
        way = dice.choice(moves)
        document = next_recording(document, [way], later=DAY)
        yield way, document
        earlier = (summary_for_next_run(audit), *earlier)
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
