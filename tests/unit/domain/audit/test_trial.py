from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.audit.trial import trial_of
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
