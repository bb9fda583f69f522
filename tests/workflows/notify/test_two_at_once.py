"""Two processes decide about a family at the same time, and are killed at any step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.alert.news import Said
from sageaudit.errors import Throttled
from sageaudit.ports import Queue, TellLedger
from sageaudit.workflows.notify.decide import LEASE_S, Later, NewAudit, NotifyDependencies, notify
from tests.fakes.delivering import Killed, Stepped
from tests.fakes.telling import MORNING, FamilyStory, run_document

SOON = timedelta(minutes=1)
FAMILY = "111122223333/us-east-1/train-bert"
AFTER_LEASE = timedelta(seconds=LEASE_S + 1)


def run(story: FamilyStory, number: int, usd: str, severity: str = "low") -> NewAudit:
    """The audit of one run of the family."""
    whole = run_document(f"train-bert-{number:04d}", avoidable=usd, severity=severity)
    return story.audit(whole, MORNING)


def at_step(number: int, do: Callable[[], None]) -> Callable[[], None]:
    """Does something at the step with this number, once."""
    numbers = iter(range(1_000_000))

    def step() -> None:
        if next(numbers) == number:
            do()

    return step


def stepping(story: FamilyStory, step: Callable[[], None]) -> NotifyDependencies:
    """The same family, seen by a process with a step before and after each call."""
    deps = story.dependencies()
    queues = {name: cast("Queue", Stepped(queue, step)) for name, queue in deps.queues.items()}
    return replace(deps, ledger=cast("TellLedger", Stepped(story.ledger, step)), queues=queues)


def decide(deps: NotifyDependencies, audit: NewAudit, now: datetime) -> None:
    """One delivery, which may fail or be killed."""
    with suppress(Killed, Throttled):
        notify(audit, deps, now=now)


def until_decided(story: FamilyStory, audits: list[NewAudit], now: datetime) -> None:
    """Each is delivered until it is decided, as the queue of decisions does."""
    for _ in range(5):
        audits = [one for one in audits if isinstance(story.decided(one, now), Later | Throttled)]
        now += AFTER_LEASE
    assert not audits


def today(story: FamilyStory) -> tuple[Said, ...]:
    """What the family was told."""
    said: tuple[Said, ...] = story.ledger.family_day(FAMILY, MORNING.date()).said()
    return said


def die() -> None:
    """The process ends here."""
    raise Killed


def steps_of(first: tuple[str, str], second: tuple[str, str]) -> Iterator[tuple[Any, ...]]:
    """For each step of deciding about the first run: a family in which the second came there."""
    for number in range(100):
        story, came = FamilyStory(), list[int]()
        one, two = run(story, 1, *first), run(story, 2, *second)

        def another(story: FamilyStory = story, two: NewAudit = two, came: Any = came) -> None:
            came.append(1)
            story.decided(two, MORNING)

        yield story, one, two, at_step(number, another)
        if not came:
            assert number > 8
            return


def told_of(story: FamilyStory, *audits: NewAudit) -> list[bool]:
    """Of which audits a notice was queued for each channel."""
    ids = story.notice_ids()
    return [{f"{one.name}|sns", f"{one.name}|slack"} <= ids for one in audits]


def test_of_two_alike_at_once_one_is_told() -> None:
    """Whichever claims the day first; the other waits for it and then is quiet."""
    for story, one, two, step in steps_of(("6", "low"), ("6", "low")):
        decide(stepping(story, step), one, MORNING)
        until_decided(story, [one, two], MORNING + SOON)
        assert sum(told_of(story, one, two)) == 1
        assert len(story.notice_ids()) == 2


def test_a_large_loss_is_told_whatever_comes_between() -> None:
    """And the small one at most before it."""
    for story, one, two, step in steps_of(("6", "low"), ("5000", "high")):
        decide(stepping(story, step), one, MORNING)
        until_decided(story, [one, two], MORNING + SOON)
        assert told_of(story, two) == [True]
        assert len(today(story)) <= 2


@pytest.mark.parametrize("again", [SOON, AFTER_LEASE])
@pytest.mark.parametrize(("large", "most"), [("6", 2), ("5000", 2)])
def test_killed_at_any_step_nothing_is_lost_and_no_more_is_told_than_allowed(
    again: timedelta, large: str, most: int
) -> None:
    """A claim without notices runs out; one of two like runs is told, or both if it died late."""
    for number in range(100):
        story, died = FamilyStory(), list[int]()
        one, two = run(story, 1, "6"), run(story, 2, large)

        def killed(died: list[int] = died) -> None:
            died.append(1)
            die()

        decide(stepping(story, at_step(number, killed)), one, MORNING)
        until_decided(story, [two, one], MORNING + again)
        told = told_of(story, one, two)
        assert 1 <= sum(told) <= most
        assert large == "6" or told[1]
        if again is SOON and large == "6":
            assert sum(told) == 1
        if not died:
            return
    raise AssertionError("it never ended")


def test_a_correction_that_died_is_told_once() -> None:
    """The same text under the same ids, whenever its process died."""
    for number in range(100):
        story, died = FamilyStory(), list[int]()
        story.audited(run_document(avoidable="412", severity="high"), MORNING)
        second = story.audit(run_document(avoidable="95"), MORNING, version=2)

        def killed(died: list[int] = died) -> None:
            died.append(1)
            die()

        decide(stepping(story, at_step(number, killed)), second, MORNING + SOON)
        until_decided(story, [second], MORNING + 2 * SOON)
        texts = {body for body, _ in story.sns.sent if "Correction" in body}
        assert len(texts) == 1
        assert len(story.notice_ids()) == 4
        if not died:
            return
    raise AssertionError("it never ended")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from([0, 1, 2, 3]), st.integers(0, 40)),
        max_size=12,
    )
)
def test_in_any_order_with_any_failures_no_large_loss_is_lost(
    events: list[tuple[int, int, int]],
) -> None:
    """Runs of $6, $60, ... $60,000: each is delivered, queues fail, processes die, days go on.

    At the end the largest has been told, and no message is smaller than ten times one before it.
    """
    story, now = FamilyStory(), MORNING
    audits = {number: run(story, number, f"{6 * 10**number}") for number in range(1, 6)}
    for number, failing, step in events:
        now += timedelta(seconds=30)
        for place, queue in enumerate((story.sns, story.queue)):
            queue.answers[:] = [Throttled("queue")] if failing >> place & 1 else []
        decide(stepping(story, at_step(step, die)), audits[number], now)
    story.sns.answers.clear()
    story.queue.answers.clear()
    until_decided(story, list(audits.values()), now + AFTER_LEASE)
    assert told_of(story, audits[5]) == [True]
    assert len(today(story)) <= 5
