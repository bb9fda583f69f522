"""Budgets of the policy: what they select, and the errors for invalid ones."""

import tomllib
from decimal import Decimal

import pytest

from sageaudit.adapters.files import stored_policy
from sageaudit.domain.policy.budgets import MAX_BUDGETS, Budget
from sageaudit.domain.policy.policy import Policy, parse
from sageaudit.errors import BadPolicy

CHANNELS = '[channels.ml]\nservice = "slack"\n'
TAGS = '[tags]\nshow = ["team"]\n'


def read(text: str) -> Policy:
    """Returns the policy of a TOML text with the channel `ml` and the cost tag `team`."""
    return parse(tomllib.loads(f"{CHANNELS}{TAGS}{text}"), {})


def budget_toml(*lines: str) -> str:
    """Returns the TOML of one budget."""
    return "\n".join(("[[budget]]", *lines, ""))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", Budget("all jobs", Decimal(10))),
        ('owner = "ana"', Budget("ana", Decimal(10), owner="ana")),
        ('tag = "team=vision"', Budget("team=vision", Decimal(10), tag=("team", "vision"))),
        ('tag = "team=a=b"', Budget("team=a=b", Decimal(10), tag=("team", "a=b"))),
        ('account = "111122223333"', Budget("111122223333", Decimal(10), account="111122223333")),
        (
            'family = "training/pytorch/train.py/resnet"',
            Budget("resnet", Decimal(10), family="training/pytorch/train.py/resnet"),
        ),
        ('owner = " ana "', Budget("ana", Decimal(10), owner="ana")),
        ('tag = " team = vision "', Budget("team = vision", Decimal(10), tag=("team", "vision"))),
        ('account = " 111122223333"', Budget("111122223333", Decimal(10), account="111122223333")),
        ('family = "training/x/ "', Budget("training/x/", Decimal(10), family="training/x/")),
        ('name = " everything "', Budget("everything", Decimal(10))),
        ('to = ["ml", "ml"]', Budget("all jobs", Decimal(10), channels=("ml",))),
    ],
)
def test_a_budget_is_for_one_of_four_kinds_or_for_all_jobs(line: str, expected: Budget) -> None:
    """Its name defaults to what it is for, of a family to its last part."""
    assert read(budget_toml("usd_per_month = 10", line)).budgets == (expected,)


NO_AMOUNT = "usd_per_month is not an amount in USD: a number of 0 or more, without quotes"
KNOWN = "known here: account, family, name, owner, tag, to, usd_per_month"
NO_SUMS = "which tags.show lacks: only those tags have daily sums: did you mean team?"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("usd = 5", f"unknown key budget[1].usd; {KNOWN}"),
        (
            'owner = "a"\nfamily = "f"',
            "owner and family are both set: a budget selects jobs by one of them",
        ),
        ('tag = "team"', 'tag is not written "key=value"'),
        ('tag = "team="', 'tag is not written "key=value"'),
        ('tag = "taem=x"', f"tag names 'taem', {NO_SUMS}"),
        ('account = "12"', "account is not an account id of 12 digits"),
        ('owner = " "', "owner is empty"),
        (f'owner = "{"o" * 513}"', "owner is longer than 512 characters"),
        (f'name = "{"n" * 41}"', "name is longer than 40 characters"),
        ('to = ["m-l"]', "to names 'm-l': there is no such channel: did you mean ml?"),
        ("to = []", "to names no channel"),
    ],
)
def test_an_invalid_budget_is_refused_with_its_key(line: str, error: str) -> None:
    """Nothing is deployed that would never send a message."""
    with pytest.raises(BadPolicy) as refused:
        read(budget_toml("usd_per_month = 5", line))
    assert str(refused.value).removeprefix("budget[1].") == error


@pytest.mark.parametrize(
    ("amount", "error"),
    [("0", "usd_per_month is less than one cent"), ("-5", NO_AMOUNT), ('"5"', NO_AMOUNT)],
)
def test_a_budget_needs_an_amount(amount: str, error: str) -> None:
    """A budget of nothing would be passed by every job."""
    with pytest.raises(BadPolicy) as refused:
        read(budget_toml(f"usd_per_month = {amount}"))
    assert str(refused.value).removeprefix("budget[1].") == error
    with pytest.raises(BadPolicy, match="is not an amount in USD"):
        read(budget_toml())


def test_two_budgets_for_the_same_jobs_are_refused() -> None:
    """Each would report what the other has reported."""
    text = budget_toml("usd_per_month = 5", 'name = "a"') + budget_toml("usd_per_month = 9")
    with pytest.raises(BadPolicy, match=r"budget\[2\] is for the same jobs as the budget 'a'"):
        read(text)


def test_two_budgets_with_one_name_are_refused() -> None:
    """A message names the budget."""
    text = budget_toml("usd_per_month = 5", 'owner = "a"') + budget_toml(
        "usd_per_month = 9", 'tag = "team=a"', 'name = "a"'
    )
    with pytest.raises(
        BadPolicy, match=r"budget\[2\].name is that of an earlier budget, 'a': set another name"
    ):
        read(text)


def test_there_is_a_maximum_of_budgets() -> None:
    """The watch reads each of them once an hour."""
    rows = [budget_toml("usd_per_month = 5", f'owner = "o{n}"') for n in range(MAX_BUDGETS + 1)]
    assert len(read("".join(rows[1:])).budgets) == MAX_BUDGETS
    with pytest.raises(BadPolicy, match="budget has 51 tables: 50 at most"):
        read("".join(rows))


def test_a_budget_is_no_reason_to_judge_jobs_again() -> None:
    """The policy's version covers only what audits depend on."""
    assert read(budget_toml("usd_per_month = 5")).version == read("").version


def test_the_functions_read_budgets_exactly() -> None:
    """The stored policy keeps amounts and selectors."""
    policy = read(budget_toml("usd_per_month = 10.10", 'tag = "team=vision"', 'to = ["ml"]'))
    assert stored_policy.from_text(stored_policy.to_text(policy)).budgets == policy.budgets
