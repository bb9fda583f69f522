from decimal import Decimal

import pytest

from sageaudit.domain.job.job import duration_text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        ("0", "0 s"),
        ("59.4", "59 s"),
        ("59.6", "1 min"),
        ("724", "12 min 4 s"),
        ("10920", "3 h 2 min"),
        ("187200", "2 d 4 h"),
        ("-61", "-1 min 1 s"),
        (None, "unknown"),
    ],
)
def test_duration(seconds: str | None, shown: str) -> None:
    """At most two units, the largest one first. An unknown time is not zero."""
    assert duration_text(None if seconds is None else Decimal(seconds)) == shown
