"""Guards: each call that starts a job is checked before it is sent, and may be refused."""

from __future__ import annotations

import sys
import textwrap
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from sageaudit.adapters.aws.client_events import CallListener
from sageaudit.api.documents import PolicyOrPath, choose_policy, make_checker
from sageaudit.api.guarded_call import CallChecker, CheckedCall
from sageaudit.api.history import AuditHistory, require_open_history
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.rule_choices import parse_requirements
from sageaudit.domain.policy.table_reader import TableReader
from sageaudit.errors import BadUsage, JobRefused
from sageaudit.output.text import guard_text
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.structs import replace
from sageaudit.workflows import check_files

_REQUIREMENT_RULE = "requirement-not-met"
_WOULD_REFUSE = "; refuse_unknown=True would refuse this call"
_PRINTED = "sageaudit_printed"
"""The key in a call's context under which guards remember what they have printed about it."""
_HEADING = "sageaudit: "
_FAULT_HEADING = "sageaudit could not check "
_WIDTH = 80
_REQUIRE_EXAMPLE = '{"EnableManagedSpotTraining": True, "Tags.team": "set"}'
_FIRST_REQUEST = {
    "TrainingJobName": "first",
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
}
"""It is checked when a guard is made, so that rules and prices are loaded before the first call."""
_FIRST_REGION = "us-east-1"
Write = Callable[[str], object]


def guard(
    target: Any = None,
    *,
    max_usd: Decimal | float | str | None = None,
    require: Mapping[str, Any] | None = None,
    refuse_unknown: bool = False,
    history: AuditHistory | None = None,
    policy: PolicyOrPath = None,
    account: str | None = None,
    write: Write | None = None,
) -> Guard:
    """Checks each job before it is created: prints its cost, and refuses it if you set a limit.

    `target` is a boto3 session, a SageMaker client, or a session of a SageMaker SDK; None stands
    for this process. A guard of the same target is replaced. A refused call raises JobRefused, and
    nothing is sent. It is refused if:

    - its highest cost is above `max_usd` or, if that is not known, its family's usual cost
    - it does not meet `require`, a table as `[require]` of a policy, or the policy's own table,
      which counts only if `require` is given; `require={}` adds nothing to it
    - its highest cost is not known, and `refuse_unknown` is True

    `history` adds what earlier runs cost; a call waits at most a second for it. `account` is used
    if a request has no role. `write` gets the text about a call; by default it goes to stderr.
    Raises BadUsage or BadPolicy for an invalid argument.
    """
    require_open_history(history)
    if write is not None and not callable(write):
        raise BadUsage(f"write={write!r} is not a function that takes a text")
    limits = Limits(
        max_usd=None if max_usd is None else _parse_usd(max_usd),
        refuse_unknown=refuse_unknown,
        refuse_unmet=require is not None,
    )
    chosen_policy = _with_requirements(choose_policy(policy), require)
    checker = make_checker(chosen_policy, None, account=account, region=_FIRST_REGION)
    with suppress(Exception):  # a fault is printed at the first call, which it does not break
        check_files.check_mapping(checker, _FIRST_REQUEST)
    call_checker = CallChecker(checker, history.source.history if history else None)
    return Guard(target, call_checker, limits, write or _write_to_stderr)


class Limits(Struct, frozen=True):
    """When a guard refuses a call."""

    max_usd: Decimal | None
    refuse_unknown: bool
    refuse_unmet: bool

    def reasons(self, call: CheckedCall) -> Iterator[str]:
        """Yields why a call is refused; nothing if it may pass."""
        if self.refuse_unmet:
            for finding in call.findings:
                if finding["rule"] == _REQUIREMENT_RULE:
                    yield finding["summary"].partition(": ")[2].rstrip(".")
        cost = call.cost
        if self.max_usd is not None and cost.usd is not None and cost.usd > self.max_usd:
            yield guard_text.over_limit_text(call.jobs, cost, self.max_usd)
        if self.refuse_unknown and cost.unknown_reasons:
            reason = cost.unknown_reasons[0]
            yield f"its maximum cost is not known, and refuse_unknown is on: {reason}"


class Guard:
    """A guard of calls. It works until `remove` is called, or until its `with` block ends."""

    def __init__(self, target: Any, checker: CallChecker, limits: Limits, write: Write) -> None:
        self._checker = checker
        self._limits = limits
        self._write = write
        self._created_pipeline: list[str] = []
        self._switch = _Switch()
        self._listener = CallListener(target, self._before_call)
        self._switch.turn_on(target)

    def remove(self) -> None:
        """Ends the guard. Calls are sent without a check again."""
        self._switch.remove()
        self._listener.stop()

    def __enter__(self) -> Self:
        """Raises BadUsage for a guard that was removed or replaced, which would guard nothing."""
        if not self._switch.is_on:
            raise BadUsage("this guard was removed or replaced: make another with guard(...)")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the guard. The one that it replaced works again."""
        self.remove()
        self._switch.restore_replaced()

    def _before_call(self, params: Any, model: Any, context: Any, **_: Any) -> None:
        if not self._switch.is_on:
            return
        refusal = None
        try:
            call = self._checker.check(model.name, params, context.get("client_region"))
            if call is None:
                return
            if not self._was_printed_before(model.name, lines := [*self._lines(call)]):
                self._print(lines, context)
            if reasons := "; ".join(self._limits.reasons(call)):
                message = f"the {call.subject} was not {call.verb}: {reasons}"
                refusal = JobRefused(message, call.checked)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not break the user's call
            fault = f"{type(error).__name__}: {error}"
            self._print([f"{_FAULT_HEADING}{model.name}, which is sent: {fault}"], context)
        if refusal is not None:
            raise refusal

    def _lines(self, call: CheckedCall) -> Iterator[str]:
        yield f"{_HEADING}{call.subject}"
        if call.checked is None:
            yield f"Its maximum cost is not known: {call.unknown_because}."
        else:
            yield from guard_text.cost_lines(call.jobs)
            yield from guard_text.unchecked_lines(call.checked["not_checked"])
        cost, max_usd = call.cost, self._limits.max_usd
        if max_usd is not None and cost.unknown_reasons:
            part = "cannot be applied" if cost.usd is None else "is applied to the known costs only"
            would_refuse = "" if self._limits.refuse_unknown else _WOULD_REFUSE
            yield f"The limit of {format_usd(max_usd)} {part}{would_refuse}."
        if call.checked is None and self._limits.refuse_unmet:
            yield "It is not known whether it meets what is required."
        if call.history_problem:
            yield call.history_problem
        yield from dict.fromkeys(note for job in call.jobs for note in job["notes"])
        yield from guard_text.finding_lines(call.findings)

    def _was_printed_before(self, action: str, lines: list[str]) -> bool:
        """Returns whether these lines are those of a pipeline that was to be created just now.

        The SDKs update a pipeline after AWS has said that it exists already.
        """
        is_repeated = action == "UpdatePipeline" and lines == self._created_pipeline
        self._created_pipeline = lines if action == "CreatePipeline" else []
        return is_repeated

    def _print(self, lines: Iterable[str], context: Any) -> None:
        """Prints the lines that no guard has printed about this call."""
        with suppress(Exception):  # where it writes to may be closed
            printed = context.setdefault(_PRINTED, [])
            new_lines = [line for line in lines if (self._write, line) not in printed]
            printed += [(self._write, line) for line in new_lines]
            if new_lines:
                self._write("\n".join(map(_format_line, new_lines)))


class _Switch:
    """Says whether a guard is on. A later switch of the same target turns it off."""

    def __init__(self) -> None:
        self.is_on = False
        self.is_removed = False
        self.target: Callable[[], Any] = _process
        self._replaced: list[_Switch] = []

    def turn_on(self, target: Any) -> None:
        """Turns the guard on, and those of the same target off."""
        if target is not None:
            self.target = weakref.ref(target)
        with _lock:
            others = [other for other in _switches if other.target() is self.target()]
            self._replaced = [other for other in others if other.is_on]
            for replaced in self._replaced:
                replaced.is_on = False
            _switches.add(self)
        self.is_on = True

    def remove(self) -> None:
        """Turns the guard off for good."""
        self.is_on, self.is_removed = False, True

    def restore_replaced(self) -> None:
        """Turns the guards on again that this one replaced, if they were not removed since.

        A later guard of the same target stays the only one.
        """
        with _lock:
            if not any(other.is_on for other in _switches if other.target() is self.target()):
                for replaced in self._replaced:
                    replaced.is_on = not replaced.is_removed


_switches: weakref.WeakSet[_Switch] = weakref.WeakSet()
_lock = threading.Lock()


def _process() -> Any:
    """Returns the target of guards without a target."""
    return _process


def _format_line(line: str) -> str:
    if line.startswith((_HEADING, _FAULT_HEADING)):
        return for_terminal(line)
    if line.startswith(" "):  # an assignment to copy
        return f"    {for_terminal(line)}"
    return textwrap.fill(
        for_terminal(line),
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _write_to_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _parse_usd(amount: Decimal | float | str) -> Decimal:
    with suppress(InvalidOperation):
        usd = Decimal(str(amount))
        if usd.is_finite() and usd >= 0 and not isinstance(amount, bool):
            return usd
    raise BadUsage(f"max_usd={amount!r} is not an amount in USD, such as 50")


def _with_requirements(policy: Policy, require: Mapping[str, Any] | None) -> Policy:
    """Returns the policy with more requirements, and with the rule that checks them on."""
    if require is None:
        return policy
    if not isinstance(require, Mapping) or not all(isinstance(key, str) for key in require):
        raise BadUsage(
            f"require={require!r} is not a table of settings, such as {_REQUIRE_EXAMPLE}"
        )
    requirements = parse_requirements(TableReader(require, ("require",)))
    return replace(
        policy,
        require={**policy.require, **requirements},
        disabled_rules=policy.disabled_rules - {_REQUIREMENT_RULE},
    )
