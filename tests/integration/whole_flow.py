"""Scenes of the whole flow on the local AWS: what tests arrange and ask."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from local.aws import LocalAws, local_aws
from local.demo import POLICY
from local.functions import Killed, Step
from local.recorded import RECORDINGS, RecordedJob, of_file
from local.slack import SlackStandIn, slack_stand_in
from sageaudit.adapters.files.policy_file import load
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Head

_WAIT_S = 30


@dataclass(frozen=True, slots=True)
class Scene:
    """A local AWS with Slack at its end."""

    aws: LocalAws
    slack: SlackStandIn

    def head(self, job: RecordedJob) -> Head:
        """What the history says of a job."""
        head = self.aws.history().head(job.key)
        assert head is not None
        return head

    def audit(self, job: RecordedJob) -> AuditDocument:
        """The job's newest audit."""
        audit = self.aws.history().audit(job.key)
        assert audit is not None
        return audit

    def versions(self, job: RecordedJob) -> int:
        """How many versions of its audit the history holds."""
        history = self.aws.history()
        return sum(history.audit(job.key, version) is not None for version in range(1, 60))

    def headlines(self) -> list[str]:
        """What Slack was sent, by its first lines."""
        return [post["blocks"][0]["text"]["text"] for post in self.slack.posts]

    def dead_letters(self) -> list[dict[str, Any]]:
        """Takes what was given up, of all three queues."""
        names = (
            "TriggerFinishedJobsDeadLetters",
            "NoticesUndecidedAudits",
            "NoticesNoticesDeadLetters",
        )
        return [message for name in names for message in self.aws.messages(name)]

    def at_once(self, name: str, turns: TakingTurns, *, times: int = 1) -> None:
        """Delivers all that waits for a function in invocations of one record, all running."""
        self.aws.functions[name].invoke({"Records": []})  # one environment, warm
        feeds: list[Callable[[], None]] = []
        for source in self.aws.sources:
            while source.function.name == name and (batch := source.receive()):
                feeds += [partial(source.feed, [record]) for record in batch]
        turns.run(feeds * times)


@contextmanager
def scene(
    start: datetime, on_step: Step = lambda _: None, *, sweeps: bool = False
) -> Iterator[Scene]:
    """One scene from `start` on, with the demo's policy. Posts to Slack are steps too."""
    with slack_stand_in() as slack:

        def transport(url: str, body: bytes, headers: Any) -> Any:
            on_step("before POST")
            answer = slack.transport(url, body, headers)
            on_step("after POST")
            return answer

        with local_aws(
            start, policy=load(POLICY), transport=transport, on_step=on_step, sweeps=sweeps
        ) as aws:
            yield Scene(aws, slack)


def recorded(name: str, folder: Path = RECORDINGS) -> RecordedJob:
    """The one job of a recording."""
    [job] = of_file(folder / f"{name}.json")
    return job


def a_failed_job() -> RecordedJob:
    """Two large hosts that failed: dear enough to be told, whole without metrics."""
    return recorded("training-020-c4-8xlarge-x2-failed")


def tuning_set(status: str) -> tuple[list[RecordedJob], RecordedJob]:
    """Five children and their tuning job; `status` is made the children's."""
    children = [
        replace(child, describe={**child.describe, "TrainingJobStatus": status})
        for child in of_file(RECORDINGS / "tuning-set-bayesian-221019-1807.json")
    ]
    return children, recorded("tuning-bayesian-221019-1807")


class Steps:
    """Remembers the steps of handlers and ends the process at one of them, once."""

    def __init__(self, *, kill_at: int | None = None, kill_first: str | None = None) -> None:
        self.names: list[str] = []
        self.killed = False
        self._kill_at = kill_at
        self._kill_first = kill_first

    def __call__(self, name: str) -> None:
        """One step."""
        place = len(self.names)
        self.names.append(name)
        if not self.killed and (place == self._kill_at or name == self._kill_first):
            self.killed = True
            raise Killed(name)


class TakingTurns:
    """Runs calls at the same time, one step of one of them at a time, in an order of its own."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._turn = threading.Condition()
        self._alive: list[str] = []
        self._whose = ""

    def __call__(self, _: str) -> None:
        """A step: anyone's turn now. Calls from outside `run` just go on."""
        me = threading.current_thread().name
        if me in self._alive:
            with self._turn:
                self._hand_on()
                self._wait(me)

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Until all are done. Raises what one of them raised."""
        raised: list[BaseException] = []

        def one(call: Callable[[], None]) -> None:
            me = threading.current_thread().name
            with self._turn:
                self._wait(me)
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - raised again in the test's own thread
                raised.append(error)
            finally:
                with self._turn:
                    self._alive.remove(me)
                    self._hand_on()

        threads = [
            threading.Thread(target=one, args=(call,), name=f"turn-{number}")
            for number, call in enumerate(calls)
        ]
        self._alive = [thread.name for thread in threads]
        for thread in threads:
            thread.start()
        with self._turn:
            self._hand_on()
        for thread in threads:
            thread.join(_WAIT_S)
        if raised:
            raise raised[0]

    def _hand_on(self) -> None:
        self._whose = self._random.choice(self._alive) if self._alive else ""
        self._turn.notify_all()

    def _wait(self, me: str) -> None:
        assert self._turn.wait_for(lambda: self._whose == me, _WAIT_S), f"{me} never had its turn"
