"""Large organizations in virtual time: what each sweep lists, and what each watch checks."""

from collections.abc import Mapping

import pytest

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.large_organization import LargeOrganization, Round
from tools.pages import organization

INTERVAL_S = 15 * 60


@pytest.fixture(scope="module")
def rounds() -> Mapping[organization.Size, Round]:
    """The rounds of the page's organizations."""
    return organization.rounds()


@pytest.mark.more
@pytest.mark.parametrize("size", organization.SIZES)
def test_every_list_is_read_and_every_expensive_job_checked_within_15_minutes(
    rounds: Mapping[organization.Size, Round], size: organization.Size
) -> None:
    """Also with 300 accounts in 3 regions, and with 1,000 in 2."""
    figures = rounds[size]
    assert figures.lists_read == figures.lists
    assert figures.expensive_checked == size[3]
    assert figures.not_checked == 0
    assert max(figures.sweep_s, figures.watch_s, figures.oldest_list_s) < INTERVAL_S


@pytest.mark.more
def test_the_page_has_the_figures_of_the_simulation(
    rounds: Mapping[organization.Size, Round],
) -> None:
    """`make docs` rewrites it."""
    text = organization.PAGE.read_text(encoding="utf-8")
    assert text == organization.page(text, rounds)


def test_accounts_that_answer_slowly_delay_only_themselves() -> None:
    """Each answer takes a minute; the lists of the others are read in seconds."""
    figures = LargeOrganization(30, 1, slow_count=5).round()
    assert figures.lists_read >= 25 * len(JobKind)
    quick = LargeOrganization(25, 1).round()
    assert quick.lists_read == quick.lists
    assert quick.sweep_s < 15
