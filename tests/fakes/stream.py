"""The table's stream of audits and notices, read by the real `notify` record by record."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from local.functions import ProcessKilled
from notify.handler import assemble
from sageaudit.adapters.lambda_runtime.batch import Handler
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.structs import replace
from tests.fakes.calls import Clock, no_step, with_steps
from tests.fakes.family import FamilyStory, WrittenAudit
from tests.fakes.lambda_events import batch, failures, notice_record, stream_record
from tests.fakes.queues import FakeQueue


@dataclass
class Stream:
    """One shard of the stream.

    `step` runs before and after each call of the function, and may raise ProcessKilled.
    """

    story: FamilyStory = field(default_factory=FamilyStory)
    clock: Clock = field(default_factory=Clock)
    service: str = "stream-tests"
    records: list[dict[str, Any]] = field(default_factory=list)
    """The records that are not handled yet."""
    decisions: FakeQueue = field(default_factory=FakeQueue)
    undecided: FakeQueue = field(default_factory=FakeQueue)
    channels: tuple[str, ...] = ("sns", "slack")
    """The enabled channels."""
    seen: int = 0
    """How many notices the stream has had so far."""

    def write_audit(self, whole: AuditDocument, *, version: int = 1) -> WrittenAudit:
        """Writes an audit and its stream record."""
        audit = self.story.audit(whole, self.clock(), version=version)
        record = stream_record(whole, number=len(self.records) + 1, version=version, pk=audit.pk)
        at = {"ApproximateCreationDateTime": self.clock().timestamp()}
        self.records.append({**record, "dynamodb": {**record["dynamodb"], **at}})
        return audit

    def write_and_read(self, whole: AuditDocument, *, version: int = 1) -> None:
        """Writes an audit that another process reads at once."""
        self.write_audit(whole, version=version)
        self.handler()(batch(self.records.pop()), None)

    def handler(self, step: Callable[[], None] = no_step) -> Handler:
        """Returns the function of one process."""
        deps, queues = self.story.dependencies(), self.story.queues
        return assemble(
            replace(
                deps, ledger=with_steps(deps.ledger, step), history=with_steps(deps.history, step)
            ),
            queues={name: with_steps(queues[name], step) for name in self.channels},
            decisions=with_steps(self.decisions, step),
            undecided=self.undecided,
            clock=self.clock,
            report=RecordReport({"POWERTOOLS_SERVICE_NAME": self.service}),
        )

    def read(self, step: Callable[[], None] = no_step, *, most: int = 10) -> None:
        """Reads one batch; if the process dies, the whole batch is read again."""
        self._insert_notices()
        records = [
            {**record, "dynamodb": {**record["dynamodb"], "SequenceNumber": str(number)}}
            for number, record in enumerate(self.records[:most])
        ]
        handled = 0
        with suppress(ProcessKilled):
            failed = failures(self.handler(step)(batch(*records), None))
            handled = int(failed[0]) if failed else len(records)
        del self.records[:handled]
        self._insert_notices()

    def read_decisions(self, step: Callable[[], None] = no_step) -> None:
        """Delivers each message of the decisions queue once; failed ones stay."""
        for letter in list(self.decisions.messages.values()):
            self.decisions.deliver(letter, self.handler(step), self.undecided)

    def settle(self) -> None:
        """Removes all errors, and reads until nothing is left."""
        for queue in (self.story.sns, self.story.slack, self.decisions):
            queue.errors.clear()
        for _ in range(20):
            self.clock.move(60)
            self.read()
            self.read_decisions()
        assert not self.records
        assert not self.decisions.sent

    def posted(self, channel: str) -> list[dict[str, Any]]:
        """Returns what `deliver` posts, in order, each notice once."""
        bodies = [json.loads(body) for body, _ in self.story.queues[channel].sent]
        return list({body["notice_id"]: body for body in bodies}.values())

    def versions(self, channel: str = "sns", *, run_name: str = "") -> dict[int, bool]:
        """Returns, by audit version of the named runs, whether its notice is a correction."""
        return {
            int(body["notice_id"].split("|")[1]): "Correction" in json.dumps(body["payload"])
            for body in self.posted(channel)
            if run_name in body["notice_id"]
        }

    def _insert_notices(self) -> None:
        notices = list(self.story.ledger.notices.items())
        for (pk, sk), (channel, body) in notices[self.seen :]:
            self.records.append(notice_record(pk, sk, channel, body))
        self.seen = len(notices)
