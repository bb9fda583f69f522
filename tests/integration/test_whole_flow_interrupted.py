"""One job's end delivered many times at once, and handlers that die at any step."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.integration.whole_flow import (
    Scene,
    Steps,
    TakingTurns,
    a_failed_job,
    recorded,
    scene,
)

MARK = "(possible repeat) "
GAP = {"after Publish", "after POST", "before UpdateItem"}
"""A message is out and its mark not yet: the one place where a repeat cannot be avoided."""
PARTS = 4


@pytest.fixture(scope="module")
def steps() -> list[str]:
    """What the handlers do for one job, told on both channels, when nothing goes wrong."""
    job, quiet = a_failed_job(), Steps()
    with scene(job.ended_at, quiet) as one:
        one.aws.ends(job)
        one.aws.advance()
    return quiet.names


@pytest.mark.parametrize("part", range(PARTS))
def test_a_handler_killed_at_any_step_ends_as_if_it_had_not(steps: list[str], part: int) -> None:
    """Delivered again: one audit, one message a channel; a possible repeat says so."""
    assert {"after TransactWriteItems", "answered notify", "before POST"} <= set(steps)
    for place in range(part, len(steps), PARTS):
        killing = Steps(kill_at=place)
        with scene(a_failed_job().ended_at, killing) as one:
            one.aws.ends(a_failed_job())
            one.aws.advance()
            assert killing.killed
            _is_as_if_nothing_happened(one, f"killed at step {place}, {steps[place]}")
            for told in (one.headlines(), _subjects(one)):
                assert len(told) == 1 or steps[place] in GAP


def _is_as_if_nothing_happened(one: Scene, where: str) -> None:
    assert one.versions(a_failed_job()) == 1, where
    assert not one.dead_letters(), where
    assert not any(function.failures for function in one.aws.functions.values()), where
    for told in (one.headlines(), _subjects(one)):
        assert len({line.removeprefix(MARK) for line in told}) == 1, where
        assert all(line.startswith(MARK) for line in told[1:]), where


@pytest.mark.parametrize("step", ["before SendMessage", "after SendMessage", "answered audit"])
def test_a_handler_killed_while_it_asks_for_more_time_audits_once(step: str) -> None:
    """The event may then be there twice: as it first came, and sent again to wait for metrics."""
    job, steps = recorded("profiled-053-g4dn-xlarge"), Steps(kill_first=step)
    with scene(job.ended_at, steps) as one:
        one.aws.ends(job, measured=False)
        one.aws.advance(job.ended_at + timedelta(minutes=10))
        one.aws.measure(job)
        one.aws.advance()
        assert steps.killed
        assert one.versions(job) == 1
        assert not one.dead_letters()


@pytest.mark.parametrize("seed", range(2))
def test_fifty_deliveries_at_once_are_one_audit_and_one_message(seed: int) -> None:
    """Each hop is repeated fifty times, one call of one delivery at a time, in any order."""
    job, turns = a_failed_job(), TakingTurns(seed)
    with scene(job.ended_at, turns) as one:
        one.aws.ends(job)
        for _ in range(49):
            one.aws.put_event(job.event())
        one.aws.clock.forward(300)
        one.at_once("audit", turns)
        assert one.versions(job) == 1
        one.at_once("notify", turns, times=50)
        one.at_once("deliver", turns)
        one.aws.advance()
        assert one.versions(job) == 1
        assert len(one.headlines()) == 1
        assert len(_subjects(one)) == 1
        assert not one.dead_letters()


def _subjects(one: Scene) -> list[str]:
    return [json.loads(mail["Body"])["Subject"] for mail in one.aws.mails]
