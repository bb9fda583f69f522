"""The table's stream with two kinds of inserts, read by the real `notify` from record to record."""

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
from tests.fakes.calls import Clock, no_step, stepped
from tests.fakes.family import FamilyStory, WrittenAudit
from tests.fakes.lambda_events import batch, failures, notice_record, stream_record
from tests.fakes.queues import FakeQueue


@dataclass
class Stream:
    """One shard. `step` runs before and after each call of the function; it may raise Killed."""

    story: FamilyStory = field(default_factory=FamilyStory)
    clock: Clock = field(default_factory=Clock)
    service: str = "stream-tests"
    records: list[dict[str, Any]] = field(default_factory=list)
    """Those that are not done."""
    decisions: FakeQueue = field(default_factory=FakeQueue)
    undecided: FakeQueue = field(default_factory=FakeQueue)
    channels: tuple[str, ...] = ("sns", "slack")
    """Those that are on."""
    seen: int = 0
    """How many notices the stream has had."""

    def written(self, whole: AuditDocument, *, version: int = 1) -> WrittenAudit:
        """A new audit, and its record."""
        audit = self.story.audit(whole, self.clock(), version=version)
        record = stream_record(whole, number=len(self.records) + 1, version=version, pk=audit.pk)
        at = {"ApproximateCreationDateTime": self.clock().timestamp()}
        self.records.append({**record, "dynamodb": {**record["dynamodb"], **at}})
        return audit

    def read_at_once(self, whole: AuditDocument, *, version: int = 1) -> None:
        """A new audit, which another process reads now."""
        self.written(whole, version=version)
        self.handler()(batch(self.records.pop()), None)

    def handler(self, step: Callable[[], None] = no_step) -> Handler:
        """The function of one process."""
        deps, queues = self.story.dependencies(), self.story.queues
        return assemble(
            replace(deps, ledger=stepped(deps.ledger, step), history=stepped(deps.history, step)),
            queues={name: stepped(queues[name], step) for name in self.channels},
            decisions=stepped(self.decisions, step),
            undecided=self.undecided,
            clock=self.clock,
            report=RecordReport({"POWERTOOLS_SERVICE_NAME": self.service}),
        )

    def read(self, step: Callable[[], None] = no_step, *, most: int = 10) -> None:
        """One batch, which comes again as a whole where the process dies."""
        self._insert_notices()
        records = [
            {**record, "dynamodb": {**record["dynamodb"], "SequenceNumber": str(number)}}
            for number, record in enumerate(self.records[:most])
        ]
        done = 0
        with suppress(ProcessKilled):
            failed = failures(self.handler(step)(batch(*records), None))
            done = int(failed[0]) if failed else len(records)
        del self.records[:done]
        self._insert_notices()

    def read_decisions(self, step: Callable[[], None] = no_step) -> None:
        """Each message of the queue of decisions once; what fails stays."""
        for letter in list(self.decisions.messages.values()):
            self.decisions.deliver(letter, self.handler(step), self.undecided)

    def settle(self) -> None:
        """Everything works again, and is read until nothing is left."""
        for queue in (self.story.sns, self.story.slack, self.decisions):
            queue.errors.clear()
        for _ in range(20):
            self.clock.move(60)
            self.read()
            self.read_decisions()
        assert not self.records
        assert not self.decisions.sent

    def posted(self, channel: str) -> list[dict[str, Any]]:
        """What `deliver` posts, in order: each notice once."""
        bodies = [json.loads(body) for body, _ in self.story.queues[channel].sent]
        return list({body["notice_id"]: body for body in bodies}.values())

    def versions(self, channel: str = "sns", *, of: str = "") -> dict[int, bool]:
        """By version of the runs with this in their names: whether its notice is a correction."""
        return {
            int(body["notice_id"].split("|")[1]): "Correction" in json.dumps(body["payload"])
            for body in self.posted(channel)
            if of in body["notice_id"]
        }

    def _insert_notices(self) -> None:
        notices = list(self.story.ledger.notices.items())
        for (pk, sk), (channel, body) in notices[self.seen :]:
            self.records.append(notice_record(pk, sk, channel, body))
        self.seen = len(notices)
