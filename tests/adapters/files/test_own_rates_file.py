"""The file of own rates: written, read back, and refused where it is something else."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.files import policy_file
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import OwnRate, RateBasis, group_own_rates
from sageaudit.errors import BadUsage

RATE = OwnRate(
    "us-east-1",
    Component.TRAINING,
    "ml.g5.2xlarge",
    Decimal("1.3332"),
    date(2026, 10, 1),
    date(2026, 10, 31),
    Decimal("812.5"),
    "cur.csv.gz",
)
RATES = st.builds(
    OwnRate,
    region=st.sampled_from(["us-east-1", "us-gov-west-1", "eu-central-2"]),
    component=st.sampled_from(Component),
    product=st.sampled_from(["ml.g5.2xlarge", "ml.p6-b200.48xlarge", "VolumeUsage.gp2"]),
    usd=st.decimals("0.000001", 9999, places=6),
    first=st.dates(date(2020, 1, 1), date(2025, 1, 1)),
    last=st.dates(date(2025, 1, 1), date(2030, 1, 1)),
    quantity=st.decimals(0, 10**9, places=10),
    source=st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace").decode()),
    note=st.none() | st.just("a mixture"),
)


@given(st.lists(RATES, max_size=5), st.sampled_from(RateBasis), st.none() | st.just("111122223333"))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    rates: list[OwnRate],
    basis: RateBasis,
    account: str | None,
) -> None:
    """Digit by digit."""
    rates_before = group_own_rates(basis, account, rates)
    path = tmp_path_factory.mktemp("rates") / "own-rates.json"
    path.write_text(policy_file.own_rates_text(rates_before), encoding="utf-8")
    assert policy_file.read_own_rates(path) == rates_before


def document(**changes: Any) -> dict[str, Any]:
    """A file's document; changes go into its rate."""
    written = json.loads(policy_file.own_rates_text(group_own_rates(RateBasis.NET, None, [RATE])))
    written["rates"][0] |= changes
    return dict(written)


NO_FILE = "is not a file of own rates"
NO_FILES = ("", "[]", "{}", '{"schema": 1}', "[" * 100_000)
DAMAGED = ({"usd": "much"}, {"first": "soon"}, {"typo": 1}, {"component": "Hosting"})
IMPOSSIBLE = [{"usd": usd} for usd in (-1, 10**6, "NaN")]
IMPOSSIBLE += [{"type": "m5.large"}, {"region": "Ireland"}, {"last": "2026-09-30"}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, NO_FILE) for text in NO_FILES),
        (json.dumps(document() | {"schema": 2}), "newer version"),
        (json.dumps(document() | {"basis": "gross"}), NO_FILE),
        *((json.dumps(document(**changes)), NO_FILE) for changes in DAMAGED),
        (json.dumps(document(usd=0)), "impossible rate of ml.g5.2xlarge in us-east-1"),
        *((json.dumps(document(**changes)), "impossible rate") for changes in IMPOSSIBLE),
    ],
    ids=range(18),
)
def test_what_is_no_file_of_own_rates_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    """With the file's name; nothing is priced by a typing mistake."""
    path = tmp_path / "own-rates.json"
    path.write_text(text)
    with pytest.raises(BadUsage, match=said) as refused:
        policy_file.read_own_rates(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    """Absent, or not text."""
    path = tmp_path / "own-rates.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadUsage, match=str(path)):
        policy_file.read_own_rates(path)
