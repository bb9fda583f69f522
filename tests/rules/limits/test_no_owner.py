from __future__ import annotations

from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules.card import AccountCase
from sageaudit.rules.judge import judge
from tests.fakes.accounts import account_found, account_not_applicable, account_outcome
from tests.fakes.families import earlier_run
from tests.fakes.jobs import job
from tests.fakes.judging import card, case

RULE = "no-owner"


def owned(count: int, **changes: Any) -> list[EarlierRun]:
    """Runs of ann's for $1 each."""
    return [earlier_run(**{"owner": "ann", "total_usd": Decimal(1), **changes})] * count


def nobodys(count: int, **changes: Any) -> list[EarlierRun]:
    """Runs without an owner for $1 each."""
    return owned(count, **{"owner": None, **changes})


def test_a_quarter_of_the_runs_without_an_owner_is_found() -> None:
    """3 of 12 runs; $6 of $15."""
    what = account_found(RULE, owned(9) + nobodys(3, total_usd=Decimal(2)))
    assert what.summary == ("3 of 12 runs in 30 days (25%) have no owner: $6.00 of $15.00 (40%).")
    assert (what.bucket, what.confidence) == (Bucket.NONE, Confidence.MEASURED)
    assert what.change is None
    assert what.evidence["without_owner_usd"] == Decimal(6)


def test_exactly_a_tenth_is_too_many() -> None:
    """1 of 10, not 1 of 11."""
    assert isinstance(account_outcome(RULE, owned(9) + nobodys(1)), Found)
    assert account_outcome(RULE, owned(10) + nobodys(1)) == Clear()


def test_a_tenth_of_the_dollars_is_too_many_too() -> None:
    """One run of 20: $2.12 of $21.12 are 10.04%, $2.11 of $21.11 are 9.995%."""
    dear = nobodys(1, total_usd=Decimal("2.12"))
    assert isinstance(account_outcome(RULE, owned(19) + dear), Found)
    assert account_outcome(RULE, owned(19) + nobodys(1, total_usd=Decimal("2.11"))) == Clear()


def test_all_owned_is_clear() -> None:
    """Even when the policy asks for 0%."""
    assert account_outcome(RULE, owned(3), limits={"share_from_percent": 0}) == Clear()


def test_unknown_costs_are_counted_and_not_invented() -> None:
    """The runs count, their dollars do not."""
    what = account_found(RULE, owned(1) + nobodys(1, total_usd=None))
    assert what.summary.endswith("$0.00 of $1.00 (0%).")
    assert what.evidence["runs_of_unknown_cost"] == 1
    free = account_found(RULE, nobodys(2, total_usd=Decimal(0)))
    assert free.evidence["usd_percent"] == 0


def test_it_names_the_family_where_a_tag_helps_most() -> None:
    """The dearest one, the first by name where two are alike."""
    runs = nobodys(2, family="b") + nobodys(1, family="c") + nobodys(1, family="a")
    what = account_found(RULE, runs + nobodys(1, family="a"))
    assert (what.evidence["dearest_family"], what.evidence["dearest_family_usd"]) == ("a", 2)


def test_the_fix_is_the_first_tag_of_the_policys_list() -> None:
    """As the Create*Job request takes it."""
    what = account_found(RULE, nobodys(1), policy=Policy(owner_tags=("Squad", "owner")))
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == ("Tags[Squad].Value", None, "<team or person>")


def test_a_policy_without_owner_tags_asks_for_no_owner() -> None:
    """Then no owner is expected."""
    assert "owner tags" in account_not_applicable(RULE, nobodys(1), policy=Policy(owner_tags=()))


def test_an_account_without_runs_is_unknown() -> None:
    """0 of 0 is no share."""
    answer = account_outcome(RULE, [])
    assert isinstance(answer, Unknown)
    assert answer.code == "no_runs"


def test_it_never_speaks_of_one_job() -> None:
    """Its scope is the account: a job without tags is judged by others."""
    assert card(RULE).scope is AccountCase
    assert judge(case(job()), [card(RULE)]) == []
