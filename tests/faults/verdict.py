"""Runs one case and reports everything that is wrong at its end."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec import Struct

from local.functions import OnStep
from sageaudit.adapters.channels.services import SERVICES
from sageaudit.domain.audit.document import AuditDocument
from tests.faults.calls import Call
from tests.faults.expected import End, Expected
from tests.faults.stories import Story, played, without_faults
from tests.faults.world import REPEAT, Letter, World

CHANNELS = tuple(sorted(SERVICES))
FAILURES = ("AuditFailed", "NotDecided", "DeliveryFailed")
COUNTED = (*FAILURES, "NotifyFailed", "NotifyUnknown", "SweepFailed", "WatchFailed")
NEVER = ("Defects", "Abandoned", "JobsUnauditable", "RuleFailed")
"""Metrics that a cell must not count more often than its story does."""
SECRETS = ("hooks.slack.com/services", "T00000000", "workflows/00000000", "sig=")
_SAYS = frozenset({"note", "notes", "missing", "unknown", "price_source", "not_judged"})
_OF_TIME = frozenset({"version", "due_at", "settled"})


class Baseline(Struct, frozen=True):
    """The end of a story without further faults."""

    audits: Mapping[str, AuditDocument]
    shown: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, int]
    invocations: int
    letters: int
    calls: tuple[Call, ...]
    """The functions' AWS calls in order, each once."""
    steps: tuple[str, ...]
    """The steps before and after each call and post, in order."""


@cache
def baseline(story: Story) -> Baseline:
    """Plays a story without further faults; returns its end and what happened."""
    names: list[str] = []
    with played(story, on_step=names.append) as world:
        calls, steps = tuple(dict.fromkeys(world.network.seen)), tuple(names)
        world.settle()
        return _fair(world, story, calls, steps)


def _fair(world: World, story: Story, calls: tuple[Call, ...], steps: tuple[str, ...]) -> Baseline:
    audits = {job.name: audit for job in story.jobs if (audit := world.audit(job)) is not None}
    return Baseline(
        audits,
        {channel: tuple(world.shown(channel)) for channel in CHANNELS},
        {name: world.count(name) for name in (*COUNTED, *NEVER)},
        world.invocations,
        len(_distinct(world.letters())),
        calls,
        steps,
    )


@dataclass(frozen=True, slots=True)
class Case:
    """A story in which `breaks` breaks something, and its expected end.

    `met` returns whether the fault occurred: a case without a fault proves nothing.
    """

    name: str
    story: Story
    expected: Expected
    breaks: Callable[[World], None]
    met: Callable[[World], bool] = lambda _: True
    on_step: OnStep = lambda _: None


class Verdict(Struct, frozen=True):
    """What is wrong, one sentence each; `met` is False if no fault occurred."""

    case: Case
    wrong: tuple[str, ...]
    met: bool
    ended: End | None = None


def judge(case: Case) -> Verdict:
    """Runs a case and returns its verdict."""
    for story in (case.story, without_faults(case.story)):
        baseline(story)  # first, because only one local AWS can exist at a time
    with played(case.story, case.breaks, on_step=case.on_step) as world:
        if not case.met(world):
            return Verdict(case, (), met=False)
        wrong: list[str] = []
        ended = _end(world, case, wrong)
        world.settle()
        if (
            world.letters()
            and baseline(case.story).shown != baseline(without_faults(case.story)).shown
        ):
            world.redrive()  # the story's own faults end in a dead letter
            world.quiet()
        wrong += _problems(world, case, ended)
        return Verdict(case, tuple(wrong), met=True, ended=ended)


def _end(world: World, case: Case, wrong: list[str]) -> End:
    """Returns how the case ended; sends dead letters again."""
    before, letters = baseline(case.story), world.letters()
    if len(_distinct(letters)) > before.letters:
        wrong += [
            f"a dead letter of {letter.queue} has no reason: {letter.body[:200]}"
            for letter in letters
            if not letter.reason or not letter.why
        ]
        world.settle()
        world.redrive()
        world.quiet()
        return End.DEAD
    right = {
        name: essence(audit) for name, audit in baseline(without_faults(case.story)).audits.items()
    }
    audits = {job.name: audit for job in case.story.jobs if (audit := world.audit(job))}
    if any(essence(audit) != right.get(name) for name, audit in audits.items()):
        return End.INCOMPLETE
    later = world.invocations > before.invocations
    return End.LATER if later else End.UNSEEN


def _problems(world: World, case: Case, ended: End) -> Iterator[str]:
    should, before = case.expected, baseline(case.story)
    if ended not in should.ends:
        yield f"ended: {ended}; expected: {' or '.join(sorted(should.ends))}"
    yield from _audits(world, case.story, is_incomplete=ended is End.INCOMPLETE)
    copies = 1 + should.marked + (should.marked and ended is End.DEAD)
    yield from _messages(world, case.story, copies)
    if world.due():
        yield f"{len(world.due())} audits remain due"
    if world.waiting():
        yield f"{world.waiting()} messages still wait"
    if len(_distinct(world.letters())) > before.letters:
        yield f"dead letters: {[(letter.queue, letter.reason) for letter in world.letters()]}"
    if should.counted and world.count(should.counted) <= before.counts.get(should.counted, 0):
        yield f"{should.counted} is not counted"
    if ended is End.UNSEEN:
        yield from (
            f"{name} is counted" for name in FAILURES if world.count(name) > before.counts[name]
        )
    yield from (f"{name} is counted" for name in NEVER if world.count(name) > before.counts[name])
    yield from _function_problems(world)


def _distinct(letters: list[Letter]) -> set[Letter]:
    """Returns distinct letters: SQS may have one twice if its first answer was lost."""
    return set(letters)


def _function_problems(world: World) -> Iterator[str]:
    """Yields timeouts, exceptions and secrets in the logs of the functions."""
    if world.timeouts:
        yield f"Lambda ended {len(world.timeouts)} invocations of {sorted(set(world.timeouts))}"
    for function in world.aws.functions.values():
        # digest raises errors so that Lambda retries it; a defect is also counted
        for failure in function.failures[: int(function.name != "digest")]:
            yield f"{function.name} raised {failure}"
        if any(secret in function.log.getvalue() for secret in SECRETS):
            yield f"the log of {function.name} has a secret"


def _audits(world: World, story: Story, *, is_incomplete: bool) -> Iterator[str]:
    """Yields missing audits, version gaps, and wrong audits that do not say what they lack."""
    for name, right in baseline(without_faults(story)).audits.items():
        [job] = [job for job in story.jobs if job.name == name]
        audit, head = world.audit(job), world.summary(job)
        if audit is None or head is None:
            yield f"{name} has no audit"
            continue
        history = world.aws.history()
        versions = [history.audit(job.key, number) for number in range(1, head.version + 1)]
        if None in versions or history.audit(job.key, head.version + 1) is not None:
            yield f"{name}: its versions have a gap"
        if essence(audit) == essence(right):
            continue
        paths = ", ".join(sorted(differences(essence(audit), essence(right)))[:6])
        if not is_incomplete or explanations(audit) == explanations(right):
            yield f"{name}: its audit is wrong and does not say so: {paths}"


def _messages(world: World, story: Story, most: int) -> Iterator[str]:
    """Yields wrong, unmarked or too many messages; at most `most` copies may be posted."""
    for channel in CHANNELS:
        lines = world.shown(channel)
        plain = [_without_mark(line, story) for line in lines]
        should = [
            _without_mark(line, story) for line in baseline(without_faults(story)).shown[channel]
        ]
        if sorted(set(plain)) != sorted(set(should)):
            yield f"{channel} got {lines}, not {should}"
        for text in set(plain):
            copies = [line for line, bare in zip(lines, plain, strict=True) if bare == text]
            if any(REPEAT not in copy for copy in copies[1:]):
                yield f"{channel} got it twice without a mark: {text}"
            if len(copies) > most:
                yield f"{channel} got it {len(copies)} times: {text}"


def _without_mark(line: str, story: Story) -> str:
    """Returns a first line without its repeat mark and the words that depend on the time."""
    return re.sub(story.seen_at, "", line.replace(REPEAT, "")).strip()


def essence(value: Any) -> Any:
    """Returns a document without provenance, versions and times."""
    if isinstance(value, dict):
        return {k: essence(v) for k, v in value.items() if k not in _SAYS | _OF_TIME}
    return [essence(item) for item in value] if isinstance(value, list | tuple) else value


def explanations(value: Any) -> list[str]:
    """Returns all texts of a document that say what could not be read."""
    if isinstance(value, dict):
        return [
            text
            for key, inner in value.items()
            for text in ([f"{key} {inner}"] if key in _SAYS else explanations(inner))
        ]
    return (
        [text for item in value for text in explanations(item)] if isinstance(value, list) else []
    )


def differences(before: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yields the paths at which two documents differ."""
    if isinstance(before, dict) and isinstance(other, dict):
        for key in before.keys() | other.keys():
            yield from differences(before.get(key), other.get(key), f"{path}.{key}")
    elif before != other:
        yield f"{path} {str(before)[:60]} for {str(other)[:60]}"
