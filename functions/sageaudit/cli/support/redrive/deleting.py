"""Decides which dead letters are deleted, keeps each in a file, and deletes it."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sageaudit.adapters.aws.sqs import BATCH
from sageaudit.adapters.history.dynamo.stream_position import NoLongerThere
from sageaudit.cli.support.redrive.dead_letters import DeadLetter
from sageaudit.cli.support.redrive.redriving import (
    BatchReader,
    Fate,
    Held,
    Plan,
    Rules,
    Watch,
    asked_for,
    limited,
    not_reached,
)
from sageaudit.errors import AwsError, BadUsage, SageauditError

SCHEMA = 1
"""Of a line of the file."""
MAY_SUCCEED = "may still succeed if sent again"
"""Note of a letter that is deleted only because its reason was named."""
_NO_NAME = re.compile(r"[^\w-]")


def default_file(queue: str, now: datetime) -> Path:
    """In the current folder."""
    name = _NO_NAME.sub("_", queue)[:80]
    return Path(f"sageaudit-dead-letters-{name}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.jsonl")


def doomed(letters: Iterable[DeadLetter], rules: Rules, read_batch: BatchReader) -> list[Plan]:
    """What becomes of each letter, the oldest first: without a reason, only those go that were
    refused for good. Raises AwsError where a stream must be read and cannot be.
    """
    plans = (_plan(letter, rules, read_batch) for letter in asked_for(letters, rules.reason))
    return limited(plans, Fate.DELETES, rules.limit)


def _plan(letter: DeadLetter, rules: Rules, read_batch: BatchReader) -> Plan:
    if rules.reason is not None:
        note = (letter.subject.refusal or "") if letter.hopeless else MAY_SUCCEED
        return Plan(letter, Fate.DELETES, note=note)
    if letter.subject.position is not None:
        try:
            read_batch(letter.subject.position)
        except NoLongerThere:
            return Plan(letter, Fate.DELETES, note="over 24 h old: the stream no longer has them")
        except ValueError as error:
            return Plan(letter, Fate.DELETES, note=str(error))
    elif letter.hopeless:
        return Plan(letter, Fate.DELETES, note=letter.subject.refusal or "")
    return Plan(letter, Fate.STAYS, note="can still succeed: --reason deletes it too")


class KeptLetters:
    """A new file of JSON lines, readable by its owner only; it is made with the first letter."""

    def __init__(self, path: Path, queue_url: str) -> None:
        self.path = path
        self.made = False
        self._queue_url = queue_url

    def check_free(self) -> None:
        """Raises BadUsage where the file cannot be made, as far as that can be seen before."""
        if os.path.lexists(self.path):
            raise BadUsage(f"{self.path} exists already: name a new file with --keep")
        if not self.path.parent.is_dir():
            raise BadUsage(f"{self.path}: its folder does not exist; name another with --keep")

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """Appends them whole, or not at all. Raises BadUsage."""
        lines = "".join(json.dumps(self._line(letter)) + "\n" for letter in letters).encode()
        once = 0 if self.made else os.O_CREAT | os.O_EXCL
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | once, 0o600)
            self.made = True
            try:
                _write_whole(file, lines)
            finally:
                os.close(file)
        except FileExistsError as error:
            raise BadUsage(f"{self.path} exists already: name a new file with --keep") from error
        except OSError as error:
            raise BadUsage(
                f"{self.path}: cannot be written ({error.strerror}), so these letters were not"
                " deleted; name a file elsewhere with --keep"
            ) from error

    def _line(self, letter: DeadLetter) -> dict[str, Any]:
        """Attributes have the form of `aws sqs send-message --message-attributes`."""
        message = letter.message
        return {
            "schema": SCHEMA,
            "queue_url": self._queue_url,
            "message_id": message.message_id,
            "reason": letter.reason,
            "why": letter.why,
            "body": message.body,
            "message_attributes": {k: _given(v) for k, v in message.as_sent.items()},
            "system_attributes": dict(message.system),
        }


def _given(attribute: dict[str, Any]) -> dict[str, str]:
    """Bytes as base64, which is how the AWS CLI takes them."""
    return {
        key: base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
        for key, value in attribute.items()
        if key in {"DataType", "StringValue", "BinaryValue"}
    }


def _write_whole(file: int, lines: bytes) -> None:
    """Until the disk has them; a part that was written is taken back. Raises OSError."""
    before = os.fstat(file).st_size
    try:
        left = memoryview(lines)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    except OSError:
        with suppress(OSError):
            os.ftruncate(file, before)
        raise


def delete(
    plans: Sequence[Plan], held: Held, kept: KeptLetters, watch: Watch
) -> SageauditError | None:
    """Keeps, then deletes, batch by batch; each plan gets its fate. The error that ended it.

    Who dies between the two leaves a letter that is in the file as well.
    """
    going = [plan for plan in plans if plan.fate is Fate.DELETES]
    done = 0
    try:
        for start in range(0, len(going), BATCH):
            batch = going[start : start + BATCH]
            if watch.stops(done, len(going)):
                return None
            _delete_batch(batch, held, kept)
            done += len(batch)
    except (AwsError, BadUsage) as error:
        return error
    finally:
        not_reached(going, Fate.DELETES)
    return None


def _delete_batch(batch: Sequence[Plan], held: Held, kept: KeptLetters) -> None:
    lost = held.hold([plan.letter for plan in batch])
    for place in lost:
        batch[place].fate = Fate.FAILED
        batch[place].note = "was hidden too long: run the command again"
    going = [plan for plan in batch if plan.fate is Fate.DELETES]
    try:
        kept.add(plan.letter for plan in going)
        refused = held.queue.delete([plan.letter.message.receipt_handle for plan in going])
    except (AwsError, BadUsage) as error:
        unkept = isinstance(error, BadUsage)
        for plan in going:
            plan.fate = Fate.FAILED
            plan.note = "could not be kept, so it was not deleted" if unkept else str(error)
        raise
    for place, plan in enumerate(going):
        if place in refused:
            plan.fate, plan.note = Fate.FAILED, "SQS did not delete it: run the command again"
        else:
            plan.fate = Fate.DELETED
    held.gone(plan.letter for plan in going if plan.fate is Fate.DELETED)
