"""Random jobs, and clusters of growing size: every rule answers, in time that grows with them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from sageaudit.domain.bill.finding import Clear, Detection, Outcome
from sageaudit.domain.job.job import Hints
from sageaudit.domain.job.job_fields import FIELDS_BY_KIND
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel, ProcessingOutput, TransformBatching
from sageaudit.rules import catalogue
from sageaudit.rules.card import FamilyCase, JobCase, Rule
from sageaudit.rules.judge import judge
from tests.fakes.any_input import PHASES, families, likely_jobs, odd_jobs, series
from tests.fakes.bad_input import case, measured
from tests.fakes.families import earlier_run
from tests.fakes.jobs import host_series, job, phases, ran
from tests.fakes.sound import check_answers

NOT_DRAWN = {"name": "which job", "arn": "which job", "tuning": "of jobs without instances"}
"""Fields that are the same in all generated jobs, and what they say."""
DRAWN = {row.name for rows in FIELDS_BY_KIND.values() for row in rows} - NOT_DRAWN.keys()
FOUND = settings(
    max_examples=1000, deadline=None, derandomize=True, database=None, phases=[Phase.generate]
)
ANY = settings(max_examples=120, deadline=None, derandomize=True, database=None)


@ANY
@given(st.data())
def test_any_job_gets_an_answer_of_every_rule(data: st.DataObject) -> None:
    """None fails, what they find can be read and recomputed, and no dollar is counted twice."""
    run = data.draw(likely_jobs() | odd_jobs())
    usage = measured(run, data.draw(series(run)))
    check_answers(case(run, usage, earlier=data.draw(families(run))))


@pytest.mark.parametrize("field", sorted(DRAWN))
def test_each_field_of_the_table_is_drawn(field: str) -> None:
    """No rule is spared a value of it: one that is added to the table is added to the jobs too."""
    plain = getattr(job(), field)
    find(odd_jobs(), lambda drawn: getattr(drawn, field) != plain, settings=FOUND)


def clusters(instance: str, kind: JobKind, hosts: int, mode: str) -> FamilyCase:
    """An hour of hosts with four patterns: some work all the time, some less and less."""
    run = ran(
        3600,
        instance,
        hosts,
        kind=kind,
        phases=phases((PHASES[kind][0], 3600)),
        batch=TransformBatching("SingleRecord", 1, 6),
        uploads=(ProcessingOutput("out", "EndOfJob"),),
        volume_gb=500,
        channels=(InputChannel("train", DataSource.S3, mode, "FullyReplicated"),),
        hints=Hints(deep_learning=True),
    )
    shares = [0.0] * 10 + [1.0, 0.2] * 20 + [0.0] * 10
    maxima = {"cores": 3, "memory": 30, "gpu": 400, "gpu_memory": 60, "disk": 5}
    lines = [
        line
        for n in range(hosts)
        for line in host_series(
            f"train/algo-{n + 1}",
            {
                word: [value * (1 - (n % 4) / 5) * share for share in shares]
                for word, value in maxima.items()
            },
        )
    ]
    return case(run, measured(run, lines), earlier=[earlier_run(n) for n in range(1, 12)])


@contextmanager
def counting() -> Iterator[list[int]]:
    """Counts the lines of code that run inside: unlike seconds, the same on every machine."""
    count, before = [0], sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        count[0] += 1
        return trace

    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def work(rule: Rule, family_case: FamilyCase) -> tuple[type[Outcome], int]:
    """Returns what a rule answers, and how many lines of code it ran."""
    judge(family_case, [rule])
    with counting() as count:
        [(_, outcome)] = judge(family_case, [rule])
    return type(outcome), count[0]


def test_no_rule_compares_each_host_with_each_other() -> None:
    """Eight times the hosts are about eight times the work; pairs of hosts would be 64 times."""
    judged: set[str] = set()
    for instance, kind, mode in (
        ("ml.g5.48xlarge", JobKind.TRAINING, "File"),
        ("ml.p3.16xlarge", JobKind.TRAINING, "File"),
        ("ml.r5.24xlarge", JobKind.TRAINING, "FastFile"),
        ("ml.r5.24xlarge", JobKind.PROCESSING, "File"),
        ("ml.r5.24xlarge", JobKind.TRANSFORM, "File"),
    ):
        small, large = (clusters(instance, kind, hosts, mode) for hosts in (8, 64))
        for rule in catalogue.load():
            if issubclass(rule.scope, JobCase):
                (answer, lines), (large_answer, large_lines) = work(rule, small), work(rule, large)
                assert large_answer is answer, rule.info
                assert large_lines <= 12 * lines, rule.info
                if rule.required_metrics and answer in {Detection, Clear}:
                    judged.add(rule.info.name)
    assert judged >= {rule.info.name for rule in catalogue.load() if rule.required_metrics}
