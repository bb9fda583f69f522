"""The texts about budgets: the card of each message, and the lines of a digest."""

from datetime import date
from decimal import Decimal

import pytest

from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.budget import BudgetMonth, Threshold
from sageaudit.domain.policy.budgets import Budget
from sageaudit.output.text import plain, slack, teams
from sageaudit.output.text.budget import budget_card, budget_lines, percent_of_budget, spent_text
from sageaudit.output.text.card import MAX_ROWS, row_count
from sageaudit.output.text.links import HistoryLocation
from sageaudit.structs import replace
from tests.fakes.budgets import NOVEMBER, month_of

VISION = Budget("vision team", Decimal(1000), tag=("team", "vision"))
TABLE = HistoryLocation.for_table("h", "eu-west-1")
EXCEEDED_TEXT = "Budget vision team is exceeded"
PROJECTED_TEXT = "Budget vision team will probably be exceeded: about $1,537.20 of $1,000.00"
WHERE_VISION_WENT = "sageaudit by family --tag team=vision --since 2026-11 --sort total"
TABLE_OPTIONS = "--table h --table-region eu-west-1"
SPEND = dict.fromkeys(range(1, 18), 45.0)


def day(number: int) -> date:
    """Returns a day of November 2026."""
    return NOVEMBER.replace(day=number)


def test_the_card_says_what_was_spent_of_which_jobs_and_where_to_look() -> None:
    """Its first line is the news."""
    card = budget_card(
        month_of(SPEND | {18: 40.0}, today=day(18), budget=VISION), Threshold.NEAR, TABLE
    )
    assert [*plain.text_lines(plain.make_payload(card))][2:] == [
        "Budget vision team: $805.00 of $1,000.00 (80%)",
        "Counted: 18 jobs that ended by 2026-11-18, at list prices: not your invoice",
        "Month: about $1,350.00, if the other days cost the average of 17 whole days",
        "Avoidable: $0.00; lost: $0.00",
        "tag team=vision, 2026-11",
        f"Where it went: {WHERE_VISION_WENT} {TABLE_OPTIONS}",
        f"What to change: sageaudit top --since 2026-11 --tag team=vision {TABLE_OPTIONS}",
        "",
    ]


@pytest.mark.parametrize(
    ("threshold", "spend", "headline"),
    [
        (
            Threshold.EXCEEDED,
            {2: 1012.4},
            "Budget vision team is exceeded: $1,012.40 of $1,000.00 (101%)",
        ),
        (
            Threshold.PROJECTED,
            {2: 512.4},
            PROJECTED_TEXT,
        ),
        (
            Threshold.EXCEEDED,
            {2: 1012.4, 3: None},
            f"{EXCEEDED_TEXT}: $1,012.40 or more of $1,000.00 (at least 101%)",
        ),
    ],
)
def test_the_first_line_names_the_threshold(
    threshold: Threshold, spend: dict[int, float | None], headline: str
) -> None:
    """A bound keeps its direction."""
    card = budget_card(month_of(spend, today=day(11), budget=VISION), threshold)
    assert card.headline == headline


@pytest.mark.parametrize(
    ("threshold", "verb"),
    [(Threshold.EXCEEDED, "may be exceeded: "), (Threshold.PROJECTED, "may be ")],
)
@pytest.mark.parametrize("other_bills", [{}, {3: None}])
def test_an_upper_bound_may_pass_a_budget(
    threshold: Threshold, verb: str, other_bills: dict[int, float | None]
) -> None:
    """The true spend may be lower, also if another bill lacks a price."""
    month = month_of({2: 1012.4, **other_bills}, today=day(11), upper_bounds=1)
    assert budget_card(month, threshold).headline.startswith(f"Budget all jobs {verb}")


@pytest.mark.parametrize("threshold", Threshold)
@pytest.mark.parametrize("name", ["all jobs", "x" * 40])
def test_a_subject_has_whole_amounts(threshold: Threshold, name: str) -> None:
    """A subject has 99 characters, and is cut in its middle."""
    budget = replace(VISION, name=name)
    month = month_of({2: 9_012.4, 3: None}, today=day(11), budget=budget)
    card = budget_card(month, threshold)
    amounts = card.headline.partition("$")[2]
    assert plain.make_payload(card)["subject"].endswith(f"${amounts}")


def test_the_card_says_what_could_be_saved() -> None:
    """By family, if it is known, and by rule; the commands list the rest."""
    rules = {
        "gpu-underused": RuleSums(findings=1, avoidable_usd=Decimal(90)),
        "failed-spend": RuleSums(findings=1, lost_usd=Decimal(30)),
    }
    month = month_of(
        {2: 900.0}, today=day(4), avoidable_usd=Decimal(90), lost_usd=Decimal(30), rules=rules
    )
    family = ("training/x/nightly", Sums(1, total_usd=Decimal(600), avoidable_usd=Decimal(80)))
    card = budget_card(month, Threshold.NEAR, TABLE, costliest_family=family)
    assert [line.labelled_text for line in (*card.lines[1:], *card.commands)] == [
        "Costliest family: nightly, $600.00, of which avoidable: $80.00",
        "Avoidable: $90.00; lost: $30.00; most by gpu-underused: $90.00",
        f"Where it went: sageaudit by family --since 2026-11 --sort total {TABLE_OPTIONS}",
        f"What to change: sageaudit advice {TABLE_OPTIONS}",
        f"All budgets: sageaudit budgets --policy policy.toml {TABLE_OPTIONS}",
    ]


def test_a_message_after_the_month_says_so() -> None:
    """It may come on the first day of the next month."""
    month = month_of({30: 1000.0}, today=date(2026, 12, 1), budget=VISION)
    card = budget_card(month, Threshold.EXCEEDED)
    assert card.headline.endswith("(100%) in 2026-11")
    assert [line.label for line in card.lines] == ["Counted", "Avoidable"]


def test_the_card_says_what_the_spend_lacks() -> None:
    """Bills without a price, and days before the history."""
    month = month_of({21: 900.0, 22: None}, today=day(22), budget=VISION, covered_since=day(20))
    texts = [line.labelled_text for line in budget_card(month, Threshold.NEAR).lines]
    assert texts[2:] == ["Unknown: 1 bill lacks a price", "Not counted: jobs before 2026-11-20"]
    month = month_of({2: 900.0}, today=day(22), budget=VISION, covered_until=day(12))
    [*_, line] = budget_card(replace(month, has_unreadable=True), Threshold.NEAR).lines
    assert line.labelled_text == "Not counted: stored sums that cannot be read"
    [*_, line] = budget_card(month, Threshold.NEAR).lines
    assert line.labelled_text == "Not counted: jobs after 2026-11-12"


def test_own_rates_are_not_called_list_prices() -> None:
    """The policy may have discounts or learnt rates."""
    month = month_of({2: 900.0}, today=day(3), budget=VISION)
    text = budget_card(month, Threshold.NEAR, has_own_prices=True).lines[0].text
    assert text == "1 job that ended by 2026-11-03, at the policy's own rates: not your invoice"


@pytest.mark.parametrize(
    ("usd", "percent"),
    [
        (0, "0%"),
        (0.01, "<1%"),
        (9.99, "<1%"),
        (799.99, "79%"),
        (999.99, "99%"),
        (12_345, "1,234%"),
        (None, "unknown"),
    ],
)
def test_percents_are_rounded_down(usd: float | None, percent: str) -> None:
    """80% is never shown before the message about it is due."""
    assert percent_of_budget(month_of({2: usd}, today=day(3))) == percent


def test_an_upper_bound_stays_one() -> None:
    """A spot run without billable seconds."""
    month = month_of({2: 500.0}, today=day(3), upper_bounds=1)
    assert spent_text(month) == "up to $500.00 of $1,000.00 (up to 50%)"


@pytest.mark.parametrize(
    ("budget", "command"),
    [
        (
            Budget("a", Decimal(1), family="training/x"),
            "sageaudit history --family training/x --since 2026-11 --sort total",
        ),
        (Budget("a", Decimal(1), owner="a b"), "sageaudit by family --owner 'a b' --since 2026-11"),
        (Budget("a", Decimal(1)), "sageaudit by family --since 2026-11 --sort total"),
        (
            Budget("a", Decimal(1), account="111122223333"),
            "sageaudit by family --account 111122223333 --since 2026-11 --sort total",
        ),
    ],
)
def test_the_command_shows_the_jobs_of_the_budget(budget: Budget, command: str) -> None:
    """Quoted for a shell."""
    card = budget_card(month_of({2: 5.0}, today=day(3), budget=budget), Threshold.EXCEEDED)
    assert card.commands[0].text.startswith(command)


@pytest.mark.parametrize("name", ["<!channel> *x*", "x" * 40, "\x1b[31m\u202e", "a\nb"])
def test_a_hostile_name_breaks_no_channel(name: str) -> None:
    """It is text of a policy, but owners and tags have any text."""
    budget = Budget(name, Decimal(1), owner=name * 10)
    card = budget_card(month_of({2: 5.0}, today=day(3), budget=budget), Threshold.EXCEEDED)
    for service in (plain, slack, teams):
        payload = service.make_payload(card)
        service.check_payload(payload)
        assert "<!channel>" not in str(payload) or service is not slack
    rows = [line.labelled_text for line in card.lines]
    assert sum(map(row_count, (card.title, *rows))) <= MAX_ROWS


def test_subscriptions_can_filter_by_the_budget() -> None:
    """And by the threshold."""
    card = budget_card(month_of({2: 900.0}, today=day(3), budget=VISION), Threshold.NEAR)
    assert {name: attribute["value"] for name, attribute in card.attributes.items()} == {
        "message_kind": "budget",
        "budget": "vision team",
        "threshold": "near",
    }


def budget_months(*spends: float | None) -> list[BudgetMonth]:
    """Returns months of budgets of $1,000, each with this spend; None is unknown."""
    return [
        month_of(
            {2: usd}, today=day(12), budget=Budget(f"b{number}", Decimal(1000), owner=str(number))
        )
        for number, usd in enumerate(spends)
    ]


def test_a_digest_has_exceeded_budgets_first_then_unknown_then_the_most_used() -> None:
    """Nobody knows how much is left of an unknown one. The last line counts the others."""
    months = budget_months(10.0, 900.0, None, 1100.0, *range(100, 140, 10))
    lines = [line.labelled_text for line in budget_lines(months, 5)]
    assert lines == [
        "Budget b3: $1,100.00 of $1,000.00 (110%) in 2026-11, about $3,000.00 projected",
        "Budget b2: unknown of $1,000.00 (unknown) in 2026-11",
        "Budget b1: $900.00 of $1,000.00 (90%) in 2026-11, about $2,454.55 projected",
        "Budget b7: $130.00 of $1,000.00 (13%) in 2026-11, about $354.55 projected",
        "Budget b6: $120.00 of $1,000.00 (12%) in 2026-11, about $327.27 projected",
        "3 more budgets: `sageaudit budgets` lists them",
    ]
    assert [*budget_lines(months, 7)][-1].text == "1 more budget: `sageaudit budgets` lists it"
    assert not [*budget_lines([], 5)]


def test_a_full_digest_drops_the_least_used_budgets_first() -> None:
    """The first is never dropped."""
    lines = [*budget_lines(budget_months(100.0, 900.0, 500.0), 10)]
    assert [(line.label, line.drop_priority) for line in lines] == [
        ("Budget b1", 0),
        ("Budget b2", 1),
        ("Budget b0", 2),
    ]
