"""Versions of one run are decided while queues fail, answers are lost and processes end."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.errors import AccessDenied, AwsError, Throttled, Unavailable
from sageaudit.workflows.notify.decide import LEASE_S, Later, NewAudit, notify
from tests.fakes.delivering import Killed, RecordingQueue
from tests.fakes.telling import MORNING, FamilyStory, run_document
from tests.workflows.notify.test_half_told import new, stepping
from tests.workflows.notify.test_two_at_once import at_step, die

RUN = "train-bert-0001"
USD = ("0", "20", "60")
Event = tuple[int, AwsError | None, AwsError | None, int, int]
ERRORS = (None, AccessDenied("sqs:SendMessage", "no"), Throttled("busy"), Unavailable("lost"))


@dataclass
class Unsure(RecordingQueue):
    """Takes the message before the answer Unavailable: the answer is lost."""

    def send(
        self, body: str, *, delay_s: int = 0, attributes: dict[str, str] | None = None
    ) -> None:
        try:
            super().send(body)
        except Unavailable:
            self.sent.append((body, {}))
            raise


def posted(queue: RecordingQueue) -> dict[int, bool]:
    """What deliver posts, in order: by version, whether it is a correction."""
    return {
        int(notice["notice_id"].split("|")[1]): "Correction" in json.dumps(notice["payload"])
        for notice in (json.loads(body) for body, _ in reversed(queue.sent))
    }


events = st.tuples(
    st.integers(0, 2),  # which of the versions that are there
    st.sampled_from(ERRORS),
    st.sampled_from(ERRORS),
    st.integers(0, 40),  # at which step the process ends, if it comes so far
    st.sampled_from([1, 5, 60]),  # minutes since the last one
)


class Versions:
    """The versions of one run: those that were written, and those still to be decided about."""

    def __init__(self, figures: list[str]) -> None:
        self.story, self.now = FamilyStory(), MORNING.replace(hour=22)
        self.story.sns, self.story.queue = Unsure(), Unsure()
        self.figures, self.written = figures, 0
        self.left: dict[int, NewAudit] = {}

    def write(self) -> None:
        """The next version, if there is one."""
        if self.written < len(self.figures):
            whole = run_document(RUN, avoidable=self.figures[self.written])
            self.written += 1
            self.left[self.written] = new(self.story, whole, self.now, self.written)

    def deliver(self, version: int, step: Callable[[], None]) -> None:
        """One delivery; the version is done unless it has to come again."""
        with suppress(Killed, AwsError):
            deps = stepping(self.story, step)
            if not isinstance(notify(self.left[version], deps, now=self.now), Later):
                del self.left[version]

    def happens(self, event: Event) -> None:
        """A version is delivered, while these queues fail, and may end at a step."""
        which, sns, slack, ends, minutes = event
        self.now += timedelta(minutes=minutes)
        version = which % self.written + 1
        self.story.sns.answers[:] = [sns] if sns else []
        self.story.queue.answers[:] = [slack] if slack else []
        if version in self.left:
            self.deliver(version, at_step(ends, die))

    def settle(self) -> None:
        """All versions are there, everything works, and each is delivered until it is done."""
        self.story.sns.answers.clear()
        self.story.queue.answers.clear()
        while self.written < len(self.figures):
            self.write()
        for _ in range(8):
            self.now += timedelta(seconds=LEASE_S)
            for version in list(self.left):
                self.deliver(version, lambda: None)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(USD), min_size=1, max_size=3),
    st.lists(st.one_of(events, st.none()), max_size=14),
)
def test_whatever_happens_both_channels_end_with_the_newest_figures(
    figures: list[str], happened: list[Event | None]
) -> None:
    """Each message but the first is marked as a correction. None as event: the next version."""
    versions = Versions(figures)
    versions.write()
    for event in happened:
        if event is None:
            versions.write()
        else:
            versions.happens(event)
    versions.settle()
    assert not versions.left
    shown = posted(versions.story.sns)
    assert shown == posted(versions.story.queue)
    told = sorted(shown)
    assert [shown[version] for version in told] == [version != told[0] for version in told]
    assert (figures[told[-1] - 1] if told else "0") == figures[-1]
