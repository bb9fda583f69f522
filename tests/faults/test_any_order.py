"""Jobs end, messages come twice, out of order or never, processes die, services break and mend.

In whatever order that happens: when all is mended, swept and redriven, each job has one right
audit, each message was sent, and nothing lies anywhere.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from decimal import Decimal
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from local.functions import Killed
from local.recorded import RecordedJob
from local.sources import QueueSource
from tests.faults.calls import Call
from tests.faults.network import LASTING, Broken, Fault
from tests.faults.stories import HOUR
from tests.faults.webhook import Says
from tests.faults.world import REPEAT, World, renamed, world
from tests.integration.whole_flow import a_failed_job

FAMILIES = ("family-a", "family-b", "family-c", "family-d")
"""Names of jobs: a digit would make no other family."""
LOST_USD = Decimal("0.154922")
"""Of each of the jobs, as the recording's audit says."""
CALLS = (
    "audit/sagemaker.DescribeTrainingJob",
    "audit/dynamodb.GetItem JOB HEAD",
    "audit/dynamodb.TransactWriteItems JOB+RUNS+SUM",
    "notify/dynamodb.GetItem TOLD TOLD",
    "notify/sqs.SendMessage NoticesQueueSlack",
    "notify/sqs.SendMessage NoticesDecisions",
    "deliver/dynamodb.PutItem DELIVERY DELIVERY",
    "deliver/dynamodb.UpdateItem DELIVERY DELIVERY",
    "deliver/sns.Publish",
    "sweep/sagemaker.ListTrainingJobs",
)
STEPS = (
    "after TransactWriteItems",
    "before SendMessage",
    "after POST",
    "after Publish",
    "before UpdateItem",
    "after PutItem",
    "answered",
)
FAULTS = sorted({*Fault} - {Fault.EMPTY, Fault.ENDLESS, Fault.GARBLED})
SAYS = (
    Says(404, "no_service"),
    Says(429, "rate_limited", (("Retry-After", "300"),)),
    Says(500, "error"),
    Says(500, "error", accepts=True),
    Says(hangs=True),
    Says(302, "", (("Location", "https://evil.example/"),)),
    Says(connect=ConnectionRefusedError),
)


class AnyOrder(RuleBasedStateMachine):
    """One world; its jobs differ in name and family only."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.kills: list[str] = []
        self.jobs: list[RecordedJob] = []
        """Those that have ended."""
        self.one: World

    @initialize()
    def begins(self) -> None:
        """The sweep has noted when it was installed."""
        self.one = self.stack.enter_context(world(a_failed_job().ended_at, on_step=self._step))
        self.one.sweep()

    def _step(self, name: str) -> None:
        if self.kills and self.kills[0] in name:
            self.kills.pop()
            raise Killed(name)

    @precondition(lambda self: len(self.jobs) < len(FAMILIES))
    @rule(copies=st.integers(0, 3))
    def a_job_ends(self, copies: int) -> None:
        """Its event comes as often as that, or never."""
        like = a_failed_job()
        self.one.aws.clock.forward(60)
        job = renamed(like, FAMILIES[len(self.jobs)], later=self.one.now - like.ended_at)
        self.jobs.append(job)
        self.one.aws.sagemaker.add(job)
        for _ in range(copies):
            self.one.aws.put_event(job.event())

    @rule(minutes=st.integers(1, 300))
    def time_passes(self, minutes: int) -> None:
        """What is due is delivered."""
        self.one.quiet(self.one.now + timedelta(minutes=minutes))

    @rule(seed=st.integers(0, 99))
    def delivered_out_of_order(self, seed: int) -> None:
        """One batch of each source, in any order, and the first one again."""
        sources = [s for s in self.one.aws.sources if isinstance(s, QueueSource)]
        Random(seed).shuffle(sources)
        for source in sources:
            if batch := source.receive():
                source.feed(batch)
                source.feed(batch)

    @rule()
    def swept(self) -> None:
        """A sweep, out of its time."""
        self.one.sweep()

    @rule(step=st.sampled_from(STEPS))
    def will_die(self, step: str) -> None:
        """The next handler that comes to this step."""
        self.kills = [step]

    @rule(call=st.sampled_from(CALLS), fault=st.sampled_from(FAULTS), hours=st.integers(1, 5))
    def breaks(self, call: str, fault: Fault, hours: int) -> None:
        """A call fails once, or for hours."""
        function, _, name = call.partition("/")
        until = self.one.now + hours * HOUR if fault in LASTING else None
        number = sum(c.function == function and c.name == name for c in self.one.network.seen) + 1
        self.one.network.broken.append(Broken(Call(function, name, number), fault, until))

    @rule(says=st.sampled_from(SAYS), hours=st.integers(0, 5))
    def slack_breaks(self, says: Says, hours: int) -> None:
        """For one post, or for hours."""
        if hours:
            self.one.slack.always = says
            self.one.slack.always_until = self.one.now + hours * HOUR
        else:
            self.one.slack.script.append(says)

    @rule()
    def mended(self) -> None:
        """Everything works again."""
        self._mend()

    @rule()
    def redriven(self) -> None:
        """Dead letters are sent again, whether or not what failed is mended."""
        self.one.redrive()

    def _mend(self) -> None:
        self.kills.clear()
        self.one.network.broken.clear()
        self.one.slack.script.clear()
        self.one.slack.always_until = self.one.now

    @invariant()
    def nothing_unexpected(self) -> None:
        """No defect, no letter without a reason, no two messages without a mark."""
        if not hasattr(self, "one"):
            return
        assert not self.one.count("Defects")
        assert all(letter.reason and letter.why for letter in self.one.letters())
        for channel in ("slack", "sns"):
            plain = [line for line in self.one.shown(channel) if REPEAT not in line]
            assert len(plain) == len(set(plain))

    def teardown(self) -> None:
        """All is mended and redriven: each job has one right audit, and was told."""
        with self.stack:
            if hasattr(self, "one"):
                self._ends_well()

    def _ends_well(self) -> None:
        one = self.one
        self._mend()
        one.quiet(one.now + HOUR)
        for _ in range(4):
            one.sweep()
            one.quiet(one.now + HOUR)
        one.settle()
        one.quiet()
        one.redrive()
        one.quiet()
        assert not one.letters()
        assert not one.waiting()
        for job in self.jobs:
            audit, head = one.audit(job), one.head(job)
            assert audit is not None
            assert head is not None
            assert (head.settled, head.version) == (True, 1)
            assert audit["lost_usd"] == LOST_USD
        for channel in ("slack", "sns"):
            told = {line.replace(REPEAT, "").rpartition(" ")[2] for line in one.shown(channel)}
            assert told == {job.name for job in self.jobs}


def _machine(examples: int, steps: int) -> type:
    case: type = AnyOrder.TestCase
    case.settings = settings(  # type: ignore[attr-defined]
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    return case


TestAnyOrder = pytest.mark.faults(_machine(12, 14))
