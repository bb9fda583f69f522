"""The tables of costs: their assumptions are above what is computed, and their sums are right."""

from decimal import Decimal

import pytest

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.large_organization import LargeOrganization
from tools.bench.sweeps import member_units
from tools.pages.running_cost import ACCOUNTS, MEMBER_SWEEP_S, SWEEP_S, Item, page


@pytest.mark.parametrize("accounts", [1, 30, 300])
def test_a_sweep_is_not_longer_than_the_page_assumes(accounts: int) -> None:
    """And it asks for each list once."""
    organization = LargeOrganization(accounts, 1)
    assert organization.round().sweep_s <= SWEEP_S + MEMBER_SWEEP_S * (accounts - 1)
    assert organization.requests["lists"] == accounts * len(JobKind)
    assert len(organization.store.regions) == accounts


def test_an_account_without_jobs_adds_one_write_unit_to_a_sweep() -> None:
    """The states of four accounts take about one read unit of the sweep and its watch."""
    units = member_units()
    assert units["write units"] == 1
    assert 0.1 < units["read units"] < 0.3


def test_a_month_adds_up_what_is_always_used_and_what_jobs_and_members_use() -> None:
    """What jobs use may have a maximum."""
    item = Item("", "events", 10, 2, with_jobs=5, per_member=3, max_for_jobs=100)
    assert item.month(0) == Decimal("0.00001")
    assert item.month(4, members=2) == Decimal("0.000029")
    assert item.month(1_000) == Decimal("0.000115")


def test_the_tables_show_each_amount_and_the_sums() -> None:
    """Only services whose cost grows with the accounts have a row of their own there."""
    text = "<!-- made: cost -->\n<!-- end -->\n<!-- made: accounts -->\n<!-- end -->\n"
    used = (Item("a", "alarms", 10, per_member=1), Item("b", "dashboards", 1, per_job=0.01))
    by_jobs, by_accounts = page(text, used).split("<!-- made: accounts -->")
    assert "| a | $1.00 | $1.00 | $1.00 | $1.00 | alarms: 10 a month; $0.10 each |" in by_jobs
    assert "| **together** | **$4.00** | **$7.00** |" in by_jobs
    grown = " | ".join(f"${1 + 0.1 * (accounts - 1):,.2f}" for accounts in ACCOUNTS)
    assert f"| a | {grown} | alarms: 1 for each account; $0.10 each |" in by_accounts
    assert "| the other services | $3.00 | $3.00 | $3.00 | $3.00 |  |" in by_accounts
