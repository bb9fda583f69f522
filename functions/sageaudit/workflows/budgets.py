"""Checks the budgets of the policy, and writes the messages that are due.

daily sums of the month -> is a threshold reached that was not reported? -> one transaction, with
what was sent and a notice for each channel

If a check stops at any point, no message is repeated or lost: the next check decides again
(docs/decisions/0024-transactional-outbox.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from functools import partial

from msgspec import Struct

from sageaudit.domain.budget import (
    BudgetMonth,
    CoveredDays,
    SentBudgetMessages,
    Threshold,
    after_message,
    due_threshold,
    installation_day,
    months_to_check,
)
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import AwsError, MalformedData
from sageaudit.output.text.budget import budget_card
from sageaudit.output.text.card import NO_OWNER_IDS, Notice, Writer, to_json
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation
from sageaudit.ports import BudgetLedger, History, Workers
from sageaudit.queries.budgets import (
    covered_days,
    find_costliest_family,
    read_budget_month,
)
from sageaudit.workflows.side_by_side import run_side_by_side


class BudgetDependencies(Struct, frozen=True):
    """What the check of budgets reads and writes. `writers` has the channel's name as key.

    `history_location` is the history that commands in messages read.
    """

    history: History
    ledger: BudgetLedger
    policy: Policy
    writers: Mapping[str, Writer]
    history_location: HistoryLocation = DEFAULT_HISTORY


class BudgetCheck(Struct, frozen=True):
    """The result for one budget in one month.

    `threshold` is what its new message reports, on `channels`; None without a message. `error` is
    why the budget could not be checked.
    """

    budget: str
    month: str
    threshold: Threshold | None = None
    channels: tuple[str, ...] = ()
    error: AwsError | MalformedData | None = None


def check_budgets(
    deps: BudgetDependencies, workers: Workers, *, installed_at: datetime | None, now: datetime
) -> Iterator[BudgetCheck]:
    """Checks the budgets side by side, and yields the results. A failure does not stop the others.

    `installed_at`: the time of the installation; None if unknown. Raises AwsError before the first
    result.
    """
    today = now.astimezone(UTC).date()
    days = months_to_check(today, installation_day(installed_at))
    covered_by_day = {day: covered_days(deps.history, day, today, installed_at) for day in days}
    calls = (
        partial(_check_budget, deps, budget, day, covered, now)
        for day, covered in covered_by_day.items()
        for budget in deps.policy.budgets
    )
    yield from run_side_by_side((iter([call]) for call in calls), workers)


def _check_budget(
    deps: BudgetDependencies, budget: Budget, day: date, covered: CoveredDays, now: datetime
) -> BudgetCheck:
    label = f"{day:%Y-%m}"
    try:
        month = read_budget_month(deps.history, budget, day, covered)
        past = deps.ledger.budget_messages(label, budget.selector)
        threshold = due_threshold(month, past)
        if threshold is None:
            return BudgetCheck(budget.name, label)
        new = after_message(month, past)
        channels = budget.channels or deps.policy.routes.default
        bodies = _notice_bodies(deps, month, threshold, new, channels)
        # If another check wrote meanwhile, its message reports the same.
        is_written = deps.ledger.write_budget_message(new, bodies, now)
    except (AwsError, MalformedData) as error:
        return BudgetCheck(budget.name, label, error=error)
    return BudgetCheck(budget.name, label, *((threshold, channels) if is_written else ()))


def _notice_bodies(
    deps: BudgetDependencies,
    month: BudgetMonth,
    threshold: Threshold,
    messages: SentBudgetMessages,
    channels: tuple[str, ...],
) -> dict[str, str]:
    policy = deps.policy
    card = budget_card(
        month,
        threshold,
        deps.history_location,
        costliest_family=find_costliest_family(deps.history, month),
        has_own_prices=policy.discounts.has_own_prices,
    )
    owner_ids = policy.mentions if month.budget.owner else NO_OWNER_IDS
    place = " ".join(("budget", messages.month, *filter(None, messages.selector)))
    return {
        channel: to_json(
            Notice(
                f"{place}|{messages.messages}|{channel}",
                channel,
                deps.writers[channel](card, owner_ids),
            )
        )
        for channel in channels
    }
