"""Reads all dead letters of a queue, decides which move, and moves them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from sageaudit.adapters.aws.dead_letters import DeadLetterQueue, Received
from sageaudit.adapters.aws.sqs import BATCH, BATCH_BYTES, SqsQueue
from sageaudit.adapters.history.dynamo.stream_position import NoLongerThere, StreamPosition
from sageaudit.cli.support.redrive.dead_letters import DeadLetter, Kind, read_letter, table_of
from sageaudit.errors import AwsError

HOLD_S = 900
"""How long a letter is hidden from others while it is read, shown and moved: our choice. If this
process dies, its letters are visible again after as long."""
_HELD_LONG_S = 600
MOST_BYTES = 200_000_000
"""Of bodies in memory; the letters after that are for the next run."""
_EMPTY_ANSWERS = 3


class Fate(enum.StrEnum):
    """What becomes of a letter; the values are JSON output."""

    MOVES = "moves"
    MOVED = "moved"
    STAYS = "stays"
    FAILED = "failed"
    TWICE = "moved_but_not_deleted"
    DELETES = "deletes"
    DELETED = "deleted"


@dataclass(slots=True)
class Plan:
    """What becomes of one letter: `target` names its queue, `note` says why it does not move."""

    letter: DeadLetter
    fate: Fate
    target: str = ""
    note: str = ""
    bodies: Sequence[str] = ()


@dataclass(slots=True)
class Held:
    """Letters that were received and are hidden since, by message id."""

    queue: DeadLetterQueue
    kind: Kind
    clock: Callable[[], float]
    letters: dict[str, DeadLetter] = field(default_factory=dict)
    more: bool = False
    """Whether reading ended before the queue did."""
    _since: float = 0.0

    def read(self, now: datetime, *, wished: Callable[[], bool]) -> None:
        """Receives until no new letter comes. Raises AwsError; then `release` what came before."""
        depth = self.queue.depth()
        retention, size, nothing_new = timedelta(seconds=depth.retention_s), 0, 0
        self._since = self.clock()
        while not wished():
            messages = self.queue.receive(hidden_s=HOLD_S)
            new = [one for one in messages if one.message_id not in self.letters]
            for message in messages:
                self._keep(message, retention, now)
            size += sum(one.size_bytes for one in new)
            nothing_new = 0 if new else nothing_new + 1
            ended = not messages and self.queue.depth().visible == 0
            if ended or nothing_new == _EMPTY_ANSWERS:
                return
            if size >= MOST_BYTES or self.clock() - self._since > _HELD_LONG_S:
                self.more = True
                return

    def _keep(self, message: Received, retention: timedelta, now: datetime) -> None:
        """A letter that comes twice is one letter, with the newest receipt handle."""
        known = self.letters.get(message.message_id)
        if known is None:
            self.letters[message.message_id] = read_letter(message, self.kind, retention, now)
        else:
            self.letters[message.message_id] = replace(known, message=message)

    def hold(self, letters: Sequence[DeadLetter]) -> set[int]:
        """Hides them longer where they were hidden long ago; the places of those that are lost."""
        if self.clock() - self._since < _HELD_LONG_S:
            return set()
        return self.queue.hide([one.message.receipt_handle for one in letters], HOLD_S)

    def release(self) -> None:
        """Shows all letters again that are still here, once. Raises AwsError."""
        handles = [letter.message.receipt_handle for letter in self.letters.values()]
        self.letters.clear()
        self.queue.hide(handles, 0)

    def gone(self, letters: Iterable[DeadLetter]) -> None:
        """These letters are no longer here."""
        for letter in letters:
            del self.letters[letter.message.message_id]


@dataclass(frozen=True, slots=True)
class Rules:
    """Which letters go: of one reason (None: of any), at most so many.

    `everything`: also those are moved that cannot succeed.
    """

    reason: str | None
    limit: int | None
    everything: bool


BatchReader = Callable[[StreamPosition], list[str]]
"""The bodies for a batch of the stream. Raises NoLongerThere, AwsError, or ValueError: why not."""


def planned(
    letters: Iterable[DeadLetter], targets: Iterable[str], rules: Rules, read_batch: BatchReader
) -> list[Plan]:
    """What becomes of each letter, the oldest first; other reasons than asked for are left out."""
    known = set(targets)
    plans = (_plan(letter, known, rules, read_batch) for letter in asked_for(letters, rules.reason))
    return limited(plans, Fate.MOVES, rules.limit)


def asked_for(letters: Iterable[DeadLetter], reason: str | None) -> Iterator[DeadLetter]:
    """Those of this reason, the oldest first."""
    for letter in sorted(letters, key=lambda one: (one.first_sent_at, one.message.message_id)):
        if reason is None or letter.reason == reason:
            yield letter


def limited(plans: Iterable[Plan], fate: Fate, limit: int | None) -> list[Plan]:
    """The same plans, where only the first `limit` have this fate."""
    found: list[Plan] = []
    left = limit
    for plan in plans:
        if plan.fate is fate and left is not None:
            if left == 0:
                plan.fate, plan.note = Fate.STAYS, "over --limit"
            left = max(left - 1, 0)
        found.append(plan)
    return found


def _plan(letter: DeadLetter, known: set[str], rules: Rules, read_batch: BatchReader) -> Plan:
    subject, body = letter.subject, (letter.message.body,)
    channel = subject.channel or ""
    if subject.position is not None:
        return _of_position(letter, subject.position, read_batch)
    if letter.hopeless and not rules.everything:
        return Plan(letter, Fate.STAYS, note=subject.refusal or "refused: --all sends it again")
    if subject.refusal is not None and channel not in known:
        return Plan(letter, Fate.STAYS, note=f"no queue to send it to: {subject.refusal}")
    if channel not in known:
        return Plan(letter, Fate.STAYS, note=f"{channel} is not set up")
    return Plan(letter, Fate.MOVES, channel, bodies=body)


def _of_position(letter: DeadLetter, position: StreamPosition, read_batch: BatchReader) -> Plan:
    try:
        bodies = read_batch(position)
    except NoLongerThere:
        note = (
            "over 24 h old: the stream no longer has them; the audits are stored, and no message"
            f" follows: `sageaudit history --table {table_of(position)}` lists them"
        )
        return Plan(letter, Fate.STAYS, note=note)
    except ValueError as error:
        return Plan(letter, Fate.STAYS, note=str(error))
    return Plan(letter, Fate.MOVES, bodies=bodies)


class Watch(Protocol):
    """Follows what is done with the letters."""

    def stops(self, done: int, letters: int) -> bool:
        """Whether to stop before the next batch."""


def move(
    plans: Sequence[Plan], held: Held, work: Mapping[str, SqsQueue], watch: Watch
) -> AwsError | None:
    """Sends, then deletes, batch by batch; each plan gets its fate. The error that ended it.

    Who dies between the two leaves a letter and its copy: the functions take both for one.
    """
    moving = [plan for plan in plans if plan.fate is Fate.MOVES]
    done = 0
    try:
        for target in dict.fromkeys(plan.target for plan in moving):
            for batch in _batches([plan for plan in moving if plan.target == target]):
                if watch.stops(done, len(moving)):
                    return None
                _move_batch(batch, held, work[target])
                done += len(batch)
    except AwsError as error:
        return error
    finally:
        not_reached(moving, Fate.MOVES)
    return None


def not_reached(plans: Iterable[Plan], fate: Fate) -> None:
    """Those that still have this fate stay."""
    for plan in plans:
        if plan.fate is fate:
            plan.fate, plan.note = Fate.STAYS, "not reached: run the command again"


def _move_batch(batch: Sequence[Plan], held: Held, queue: SqsQueue) -> None:
    lost = held.hold([plan.letter for plan in batch])
    going = []
    for place, plan in enumerate(batch):
        if place in lost:
            plan.fate, plan.note = Fate.FAILED, "was hidden too long: run the command again"
        else:
            going.append(plan)
    owners = [plan for plan in going for _ in plan.bodies]
    try:
        refused = queue.send_all([body for plan in going for body in plan.bodies])
    except AwsError as error:
        for plan in going:
            plan.fate, plan.note = Fate.FAILED, str(error)
        raise
    for place, code in refused.items():
        owners[place].fate, owners[place].note = Fate.FAILED, f"SQS refused it: {code}"
    sent = [plan for plan in going if plan.fate is Fate.MOVES]
    for plan in sent:
        plan.fate, plan.note = (
            Fate.TWICE,
            "sent, but still here: it may come twice, which is harmless",
        )
    kept = held.queue.delete([plan.letter.message.receipt_handle for plan in sent])
    gone = [plan for place, plan in enumerate(sent) if place not in kept]
    for plan in gone:
        plan.fate, plan.note = Fate.MOVED, ""
    held.gone(plan.letter for plan in gone)


def _batches(plans: Sequence[Plan]) -> Iterator[list[Plan]]:
    """Letters that are sent in one request; one with more bodies than that is alone."""
    part: list[Plan] = []
    bodies = size = 0
    for plan in plans:
        more = sum(len(body.encode("utf-8", "replace")) for body in plan.bodies)
        if part and (bodies + len(plan.bodies) > BATCH or size + more > BATCH_BYTES):
            yield part
            part, bodies, size = [], 0, 0
        part.append(plan)
        bodies, size = bodies + len(plan.bodies), size + more
    if part:
        yield part
