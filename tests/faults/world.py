"""The local AWS with a failing network, failing channels and a simulated clock.

Nothing sleeps: waiting moves the clock. An invocation beyond its function's timeout is ended, as
Lambda does.
"""

import json
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from unittest import mock

from click.testing import CliRunner
from moto.sqs.models import sqs_backends
from msgspec import Struct

from local import ACCOUNT, REGION
from local.aws import LocalAws, local_aws
from local.demo import POLICY
from local.functions import OnStep, ProcessKilled
from local.recorded import RecordedJob
from sageaudit.adapters.aws import sqs
from sageaudit.adapters.aws.stack_outputs import pascal_case
from sageaudit.adapters.channels import services as posting
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.cli.main import cli
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.text import teams
from sageaudit.workflows.redrive import LetterKind
from tests.fakes.entries import due_audits
from tests.fakes.lambda_events import parse_counts
from tests.fakes.quick_moto import quick_moto
from tests.faults.calls import queue_name
from tests.faults.network import Network
from tests.faults.webhook import SLACK_HOST, TEAMS_HOST, Webhooks

REPEAT = "(possible repeat)"
DEAD = ("TriggerFinishedJobsDeadLetters", "NoticesUndecidedAudits", "NoticesNoticesDeadLetters")
"""Dead-letter queues by their names in the stack."""
WORK = {
    "TriggerFinishedJobsDeadLetters": "TriggerFinishedJobs",
    "NoticesUndecidedAudits": "NoticesDecisions",
}
"""Where letters are sent again; a notice returns to its channel's queue."""
_MOST_SECOND_LOOKS = 12


class Letter(Struct, frozen=True):
    """A dead letter: its queue, reason, explanation and body."""

    queue: str
    reason: str | None
    why: str | None
    body: str


class World:
    """One local AWS whose calls and channels can fail."""

    def __init__(
        self, aws: LocalAws, slack: Webhooks, network: Network, timeouts: list[str]
    ) -> None:
        self.aws = aws
        self.slack = slack
        self.network = network
        self.timeouts = timeouts
        """Functions whose invocations Lambda ended."""
        self._digests = False
        self._queues = sqs_backends[ACCOUNT][REGION].queues

    @property
    def invocations(self) -> int:
        """How often a queue or the stream invoked a function."""
        return self.aws.delivery_count

    @property
    def now(self) -> datetime:
        """The current simulated time."""
        return self.aws.clock.now()

    def quiet(self, until: datetime | None = None) -> None:
        """Delivers due messages and moves the clock, until nothing waits or until a time."""
        self.aws.advance(until)

    def sweep(self) -> None:
        """Runs one sweep and delivers what it sends."""
        self.aws.sweep()
        self.quiet()

    def digest(self) -> None:
        """Starts one digest: twice by schedule, each as often as Lambda retries it."""
        self._digests = True
        for pause_s in (0, 60, 120, 3_600, 60, 120):
            self.aws.clock.advance(pause_s)
            self.aws.digest()
            self.quiet()

    def settle(self) -> None:
        """Removes all faults, and sweeps until no audit is due any more."""
        self.network.broken.clear()
        self.slack.script.clear()
        self.slack.always = None
        if self._digests:  # if all its starts failed, a person starts it again
            self.aws.digest()
            self.quiet()
        for _ in range(_MOST_SECOND_LOOKS):
            moments = self.due()
            if not moments:
                return
            self.aws.clock.advance_to(max(moments))
            self.sweep()

    def due(self) -> list[datetime]:
        """Returns when audits that are not final are due."""
        history = self.aws.history()
        far = self.now + timedelta(days=400)
        return [head.due_at for head in due_audits(history, far) if head.due_at is not None]

    def letters(self) -> list[Letter]:
        """Returns the dead letters, which stay in their queues."""
        letters = []
        for physical, queue in self._queues.items():
            name = queue_name(physical)
            for message in queue._messages if name in DEAD else ():
                attributes = message.message_attributes
                letters.append(
                    Letter(
                        name, _text(attributes, "reason"), _text(attributes, "why"), message.body
                    )
                )
        return letters

    def waiting(self) -> int:
        """Returns how many messages of work queues are not handled yet."""
        return sum(
            len(queue._messages)
            for physical, queue in self._queues.items()
            if queue_name(physical) not in {*DEAD, "mailbox"}
        )

    def redrive(self) -> int:
        """Sends each dead letter to its work queue again; returns how many."""
        sqs, moved = self.aws.session.client("sqs"), 0
        for name in DEAD:
            for message in self.aws.take_messages(name):
                body = message["Body"]
                work = WORK.get(name)
                if work is None:
                    work = f"NoticesQueue{pascal_case(json.loads(body)['channel'])}"
                sqs.send_message(QueueUrl=self.aws.physical_id(work), MessageBody=body)
                moved += 1
        return moved

    def redrive_by_command(self) -> None:
        """Runs `sageaudit redrive`, which leaves letters that would be refused again."""
        stack = ("--stack", "sageaudit", "--region", REGION, "--output", "json", "--yes")
        with mock.patch.object(sqs, "LONG_POLL_S", 0):  # the simulated clock stands still
            for kind in LetterKind:
                result = CliRunner().invoke(
                    cli, ["redrive", kind.value, *stack], standalone_mode=False
                )
                assert result.return_value == 0, (result.output, result.exception)
        self.aws.clock.advance(1)  # moto shows a released message only after its time

    def counts(self) -> dict[tuple[str, str | None], int]:
        """Returns the functions' counts by metric and channel."""
        total: Counter[tuple[str, str | None]] = Counter()
        for function in self.aws.functions.values():
            total.update(parse_counts(function.log.getvalue()))
        return dict(total)

    def count(self, name: str) -> int:
        """Returns the count of one metric over all channels."""
        return sum(number for (metric, _), number in self.counts().items() if metric == name)

    def log(self, name: str) -> str:
        """Returns a function's log."""
        return self.aws.functions[name].log.getvalue()

    def audit(self, job: RecordedJob) -> AuditDocument | None:
        """Returns the job's newest audit."""
        return self.aws.history().audit(job.key)

    def summary(self, job: RecordedJob) -> AuditSummary | None:
        """Returns the job's summary."""
        return self.aws.history().summary(job.key)

    def shown(self, channel: str) -> list[str]:
        """Returns the first lines that people saw, in order."""
        if channel == "slack":
            return [post["blocks"][0]["text"]["text"] for post in self.slack.posts_to(SLACK_HOST)]
        if channel == "teams":
            return [next(teams.text_lines(post)) for post in self.slack.posts_to(TEAMS_HOST)]
        if channel == "sns":
            return [json.loads(mail["Body"])["Subject"] for mail in self.aws.mails]
        raise LookupError(f"say here what people see of a message on {channel}")


def _text(attributes: Any, name: str) -> str | None:
    value = attributes.get(name) if attributes else None
    if value is None:
        return None
    return value.get("StringValue") if isinstance(value, dict) else str(value)


_context = cache(ssl.create_default_context)
"""Caches the TLS context: it reads all CA certificates, and none is checked here."""


@contextmanager
def open_world(
    start: datetime, *, policy: Policy | None = None, on_step: OnStep = lambda _: None
) -> Iterator[World]:
    """Opens a world at `start`. `on_step` runs before and after each call and post of a handler."""
    timeouts: list[str] = []
    holder: list[LocalAws] = []

    def wait(seconds: float) -> None:
        aws = holder[0]
        aws.clock.advance(seconds)
        for function in aws.functions.values():
            if function.ends_at is not None and aws.clock.now() >= function.ends_at:
                timeouts.append(function.name)
                raise ProcessKilled("timed out")

    def now() -> datetime:
        return holder[0].clock.now() if holder else start

    def seconds() -> float:
        return now().timestamp()

    def running() -> str:
        return next((f.name for f in holder[0].functions.values() if f.ends_at is not None), "")

    slack = Webhooks(wait, now, on_step=on_step)
    network = Network(running, wait, now)
    with ExitStack() as stack:
        stack.enter_context(quick_moto())
        stack.enter_context(mock.patch("ssl.create_default_context", _context))
        stack.enter_context(mock.patch.object(posting, "_connect", slack.connected))
        stack.enter_context(mock.patch.object(posting, "_time_limit", slack.ends))
        aws = stack.enter_context(
            local_aws(
                start,
                policy=policy or load_policy(POLICY),
                transport=posting.https_post,
                on_step=on_step,
            )
        )
        holder.append(aws)
        stack.enter_context(mock.patch("time.sleep", wait))
        stack.enter_context(mock.patch("time.monotonic", seconds))
        aws.requests.interceptor = network
        yield World(aws, slack, network, timeouts)
