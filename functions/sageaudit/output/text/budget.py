"""The texts about a budget: its line in a digest, and the card of its messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_FLOOR, Decimal

from sageaudit.domain.audit.bill_document import SpendQualifier
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.budget import BudgetMonth, BudgetState, Threshold
from sageaudit.domain.money import UNKNOWN, format_usd
from sageaudit.domain.policy.budgets import ALL_JOBS, Budget
from sageaudit.output.text.amounts import rule_amounts, sums_amounts, waste_text
from sageaudit.output.text.card import (
    MAX_ROWS,
    CardLine,
    MessageCard,
    fit_card,
    short_name,
    text_attributes,
)
from sageaudit.output.text.links import DEFAULT_HISTORY, HistoryLocation
from sageaudit.output.text.money import Figure, sum_figures
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.structs import replace

BUDGET_LABEL = "Budget"
"""The first word of a budget's label in a digest."""
_MAX_NAME_LENGTH = 40
_BOUND_WORDS = {SpendQualifier.AT_LEAST: "at least ", SpendQualifier.UP_TO: "up to "}


def spent_figure(month: BudgetMonth) -> Figure:
    """Returns the spend. It is a lower bound if the history begins within the month."""
    spend = sums_amounts(month.total).spend
    return replace(spend, usd=month.spent_usd, at_least=month.is_lower_bound)


def projected_figure(month: BudgetMonth) -> Figure:
    """Returns the projected spend; `-` if none is made, as for a month that is over."""
    absent = UNKNOWN if month.spent_usd is None else "-"
    return replace(spent_figure(month), usd=month.projected_usd, estimated=True, absent=absent)


def percent_of_budget(month: BudgetMonth) -> str:
    """Returns `81%` or `at least 81%`. It is rounded down, so that 80% means 80% or more."""
    percent = month.spent_percent
    if percent is None:
        return UNKNOWN
    text = "<1%" if 0 < percent < 1 else f"{percent.quantize(Decimal(1), ROUND_FLOOR):,}%"
    return f"{_BOUND_WORDS.get(month.spend_qualifier, '')}{text}"


def spent_text(month: BudgetMonth) -> str:
    """Returns `$812.40 of $1,000.00 (81%)`."""
    budget_text = format_usd(month.budget.usd_per_month)
    return f"{spent_figure(month)} of {budget_text} ({percent_of_budget(month)})"


def selector_text(budget: Budget) -> str:
    """Returns what the budget is for: `tag team=vision`, or `all jobs`."""
    kind, name = budget.selector
    if kind == "family":
        return f"family {short_name(name)}"
    return f"{kind} {cut_middle(for_terminal(name), _MAX_NAME_LENGTH)}" if kind else ALL_JOBS


def short_budget_name(budget: Budget) -> str:
    """Returns the budget's name, cut in its middle if it is long."""
    return cut_middle(for_terminal(budget.name), _MAX_NAME_LENGTH)


def budget_card(
    month: BudgetMonth,
    threshold: Threshold,
    history: HistoryLocation = DEFAULT_HISTORY,
    *,
    costliest_family: tuple[str, Sums] | None = None,
    has_own_prices: bool = False,
) -> MessageCard:
    """Returns the card of a message about a budget.

    `history`: the history that the card's commands read. `costliest_family`: with its sums of the
    month; None if unknown. `has_own_prices`: whether the policy's rates replace list prices.
    """
    budget = month.budget
    card = MessageCard(
        _headline(month, threshold),
        lines=(
            *_spend_lines(month, threshold, has_own_prices=has_own_prices),
            *_waste_lines(month.total, costliest_family),
            *_missing_lines(month),
        ),
        scope=budget.owner or selector_text(budget),
        place_or_period=month.label,
        commands=tuple(_commands(month, history)),
        attributes=text_attributes(
            {
                "message_kind": "budget",
                "budget": budget.name,
                "threshold": threshold,
                "owner": budget.owner,
                "account": budget.account,
            }
        ),
    )
    return fit_card(card, MAX_ROWS)


def _headline(month: BudgetMonth, threshold: Threshold) -> str:
    # An e-mail's subject has the headline and cuts its middle, so the amounts are short and last.
    subject, may_be_lower = f"Budget {short_budget_name(month.budget)}", month.may_be_lower
    if threshold is Threshold.PROJECTED:
        verb = "may" if may_be_lower else "will probably"
        budget_text = format_usd(month.budget.usd_per_month)
        return f"{subject} {verb} be exceeded: {projected_figure(month)} of {budget_text}"
    spent = f"{spent_text(month)} in {month.label}" if month.is_over else spent_text(month)
    if threshold is Threshold.EXCEEDED:
        return f"{subject} {'may be' if may_be_lower else 'is'} exceeded: {spent}"
    return f"{subject}: {spent}"


def _spend_lines(
    month: BudgetMonth, threshold: Threshold, *, has_own_prices: bool
) -> Iterator[CardLine]:
    if threshold is Threshold.PROJECTED:
        yield CardLine(spent_text(month), "Spent")
    prices = "the policy's own rates" if has_own_prices else "list prices"
    jobs = count_text(month.jobs, "job")
    time_text = f"in {month.label}" if month.is_over else f"by {month.as_of}"
    yield CardLine(f"{jobs} that ended {time_text}, at {prices}: not your invoice", "Counted")
    if month.projected_usd is not None:
        days = count_text(month.finished_days, "whole day")
        text = f"{projected_figure(month)}, if the other days cost the average of {days}"
        drop_priority = 0 if threshold is Threshold.PROJECTED else 2
        yield CardLine(text, "Month", drop_priority=drop_priority)


def _waste_lines(total: Sums, costliest_family: tuple[str, Sums] | None) -> Iterator[CardLine]:
    if costliest_family is not None:
        name, sums = costliest_family
        amounts = sums_amounts(sums)
        text = f"{short_name(name)}, {amounts.spend}, of which avoidable: {amounts.avoidable}"
        yield CardLine(text, "Costliest family")
    yield CardLine(f"{waste_text(total)}{_costliest_rule_text(total)}", "Avoidable")


def _costliest_rule_text(total: Sums) -> str:
    """Returns the rule whose findings have the most avoidable and lost dollars; "" if none has."""
    rule = max(total.rules, key=lambda name: total.rules[name].waste_usd, default="")
    sums = total.rules.get(rule, RuleSums())
    if not sums.waste_usd:
        return ""
    avoidable, lost, _ = rule_amounts(sums)
    return f"; most by {rule}: {sum_figures((avoidable, lost))}"


def _missing_lines(month: BudgetMonth) -> Iterator[CardLine]:
    if missing := month.total.total_unknown_count + month.total.incomplete:
        verb = "lacks" if missing == 1 else "lack"
        yield CardLine(f"{count_text(missing, 'bill')} {verb} a price", "Unknown")
    if month.is_covered_in_part:
        yield CardLine(f"jobs before {month.covered_since}", "Not counted")
    if month.lacks_days:
        yield CardLine(f"jobs after {month.covered_until}", "Not counted")
    if month.has_unreadable:
        yield CardLine("stored sums that cannot be read", "Not counted")


def _commands(month: BudgetMonth, history: HistoryLocation) -> Iterator[CardLine]:
    kind, name = month.budget.selector
    option = (f"--{kind}", name) if kind else ()
    since = ("--since", month.label)
    words = ("history",) if kind == "family" else ("by", "family")
    command = history.command(*words, *option, *since, "--sort", "total")
    yield CardLine(command, "Where it went", is_code=True, drop_priority=1)
    # Recommendations are about families, and a family may have jobs with several values of a tag.
    to_change = ("top", *since) if kind == "tag" else ("advice",)
    yield CardLine(history.command(*to_change, *option), "What to change", is_code=True)
    all_budgets = history.command("budgets", "--policy", "policy.toml")
    yield CardLine(all_budgets, "All budgets", is_code=True, drop_priority=3)


def budget_lines(months: Sequence[BudgetMonth], max_budgets: int) -> Iterator[CardLine]:
    """Yields a line of a digest for each of `max_budgets` budgets, and the number of the others.

    Exceeded budgets come first, then those with unknown spend, since nobody knows how much is left.
    """
    for index, month in enumerate(sorted(months, key=_digest_order)[:max_budgets]):
        projected = f", {projected_figure(month)} projected" if month.projected_usd else ""
        label = f"{BUDGET_LABEL} {short_budget_name(month.budget)}"
        text = f"{spent_text(month)} in {month.label}{projected}"
        yield CardLine(text, label, drop_priority=index)
    if (others := len(months) - max_budgets) > 0:
        word = "it" if others == 1 else "them"
        yield CardLine(f"{count_text(others, 'more budget')}: `sageaudit budgets` lists {word}")


def _digest_order(month: BudgetMonth) -> tuple[bool, bool, Decimal]:
    percent = month.spent_percent
    is_exceeded = month.state is BudgetState.EXCEEDED
    return not is_exceeded, percent is not None, -(percent or Decimal(0))
