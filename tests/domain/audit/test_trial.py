from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.audit.trials import trial_of
from tests.fakes.documents import document


@pytest.mark.parametrize(
    ("avoidable_usd", "lost_usd", "claimed_usd"),
    [
        (Decimal("0.5"), Decimal(2), Decimal("2.5")),
        (None, Decimal(2), None),
        (Decimal("0.5"), None, None),
        (None, None, None),
    ],
)
def test_a_trials_claims_are_known_when_both_sums_are(
    avoidable_usd: Decimal | None, lost_usd: Decimal | None, claimed_usd: Decimal | None
) -> None:
    """An unknown sum beside a known one leaves what the trial's findings took unknown."""
    trial = trial_of(document(avoidable_usd=avoidable_usd, lost_usd=lost_usd), {}, None)
    assert trial.claimed_usd == claimed_usd


def test_a_trial_that_was_not_judged_claims_what_it_lost() -> None:
    """Nothing of it was found avoidable, so the tuning job's findings may take the rest."""
    trial = trial_of(document(judged="no", avoidable_usd=None, lost_usd=Decimal(2)), {}, None)
    assert trial.claimed_usd == 2
