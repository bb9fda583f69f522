"""`python -m tools.ec2_rates` reads the packaged EC2 rates from a file of Karpenter."""

import json
from decimal import Decimal

import pytest

from sageaudit.adapters.prices import packaged
from tools import ec2_rates
from tools.hourly_prices import table_text

FILE = """
// generated at 2026-09-01T13:44:30Z for us-east-1
var InitialOnDemandPricesAWS = map[string]map[ec2types.InstanceType]float64{
\t"us-east-1": {
\t\t"m6i.large": 0.096000, "m6i.metal": 6.144000, "m5.large": 0.097000,
\t\t"g7.2xlarge": 2.000000, "x1.32xlarge": 13.338000,
"""
TABLE = json.loads(ec2_rates.DATA.read_text(encoding="utf-8"), parse_float=Decimal)


def test_rates_of_types_with_a_tested_factor_are_taken_with_their_day() -> None:
    """SageMaker has no metal size and no x1. For g7, no pair of rates was compared."""
    table = ec2_rates.renew_table(TABLE, FILE, packaged.instance_types())
    assert table["ec2_usd_per_hour"] == {
        "us-east-1": {"ml.m6i.large": Decimal("0.096"), "ml.m5.large": Decimal("0.097")}
    }
    assert table["provenance"]["as_of"] == "2026-09-01"
    assert table["provenance"]["source"].endswith("generated 2026-09-01")
    assert table["factors"] == TABLE["factors"]


def test_the_packaged_table_is_as_the_tool_writes_it() -> None:
    """So a diff shows only changed rates."""
    assert table_text(TABLE) == ec2_rates.DATA.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["", "// generated at 2026-09-01T13:44:30Z for us-east-1", FILE[60:]]
)
def test_another_file_is_refused(text: str) -> None:
    """A file without a day, or without rates, is not Karpenter's."""
    with pytest.raises(ec2_rates.Unreadable):
        ec2_rates.parse_rates(text)
