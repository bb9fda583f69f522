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
        ("3599.5", "1 h"),
        ("4000", "1 h 7 min"),
        ("10920", "3 h 2 min"),
        ("86370", "1 d"),
        ("86369", "23 h 59 min"),
        ("187200", "2 d 4 h"),
        ("-61", "-1 min 1 s"),
        (None, "unknown"),
    ],
)
def test_duration(seconds: str | None, shown: str) -> None:
    """At most two units, rounded to the smaller one. An unknown time is not zero."""
    assert duration_text(None if seconds is None else Decimal(seconds)) == shown
