from __future__ import annotations

from decimal import Decimal
from typing import Any

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.policy.policy import Policy
from sageaudit.rules.card import AccountCase
from sageaudit.rules.judge import judge
from tests.fakes.accounts import account_outcome
from tests.fakes.families import earlier_run
from tests.fakes.jobs import job
from tests.fakes.judging import card, case
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "no-owner"


def owned(count: int, **changes: Any) -> list[EarlierRun]:
    """Runs of ann's for $1 each."""
    return [earlier_run(**{"owner": "ann", "total_usd": Decimal(1), **changes})] * count


def nobodys(count: int, **changes: Any) -> list[EarlierRun]:
    """Runs without an owner for $1 each."""
    return owned(count, **{"owner": None, **changes})


test_cases = cases(
    RULE,
    "A quarter of the runs without an owner is found. 3 of 12 runs; $6 of $15.",
    row(finds("3 of 12 runs in 30 days (25%) have no owner: $6.00 of $15.00 (40%).", builder="fact",
        change=None, evidence={"without_owner_usd": Decimal(6)}), owned(9) + nobodys(3,
        total_usd=Decimal(2))),
    "Exactly a tenth is too many. 1 of 10, not 1 of 11.",
    row(FOUND, owned(9) + nobodys(1)),
    row(CLEAR, owned(10) + nobodys(1)),
    "A tenth of the dollars is too many too.",
    # One run of 20: $2.12 of $21.12 are 10.04%, $2.11 of $21.11 are 9.995%.
    row(FOUND, owned(19) + nobodys(1, total_usd=Decimal("2.12"))),
    row(CLEAR, owned(19) + nobodys(1, total_usd=Decimal("2.11"))),
    "All owned is clear. Even when the policy asks for 0%.",
    row(CLEAR, owned(3), limits={"share_from_percent": 0}),
    "Unknown costs are counted and not invented. The runs count, their dollars do not.",
    row(finds("…$0.00 of $1.00 (0%).", evidence={"runs_of_unknown_cost": 1}), owned(1) + nobodys(1,
        total_usd=None)),
    row(finds(evidence={"usd_percent": 0}), nobodys(2, total_usd=Decimal(0))),
    "It names the family where a tag helps most.",
    # The dearest one, the first by name where two are alike.
    row(finds(evidence={"dearest_family": "a", "dearest_family_usd": 2}),
        (nobodys(2, family="b") + nobodys(1, family="c") + nobodys(1, family="a")) + nobodys(1,
        family="a")),
    "The fix is the first tag of the policy's list. As the Create*Job request takes it.",
    row(finds(fix=[("Tags[Squad].Value", None, "<team or person>")]), nobodys(1),
        policy=Policy(owner_tags=("Squad", "owner"))),
    "A policy without owner tags asks for no owner. Then no owner is expected.",
    row("not applicable: …owner tags…", nobodys(1), policy=Policy(owner_tags=())),
    "An account without runs is unknown. 0 of 0 is no share.",
    row("unknown: no_runs", []),
    ask=account_outcome,
)  # fmt: skip


def test_it_never_speaks_of_one_job() -> None:
    """Its scope is the account: a job without tags is judged by others."""
    assert card(RULE).scope is AccountCase
    assert judge(case(job()), [card(RULE)]) == []
