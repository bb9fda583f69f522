"""How much of a bill is audited: every dollar of it is in one row."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.reconcile.coverage import Coverage, coverage
from sageaudit.domain.reconcile.lines import AuditedLine, AwsLine, AwsSpend, parse_usage_type

pytestmark = pytest.mark.money

DAYS = (date(2026, 10, 23), date(2026, 11, 21))


def line(usage_type: str, usd: str | Decimal, region: str | None = "us-east-1") -> AwsLine:
    """Returns one of AWS's lines."""
    return AwsLine(usage_type, region, "Hrs", Decimal(1), Decimal(usd))


def audited(usage_type: str | None, usd: str) -> AuditedLine:
    """Returns a line of an audit."""
    usage = None if usage_type is None else parse_usage_type(usage_type)
    quantity, amount = Decimal(1), Decimal(usd)
    return AuditedLine(
        "arn", "job", "us-east-1", "compute", usage_type, usage, "h", quantity, amount, True, False
    )


def coverage_of(
    lines: list[AwsLine], audited_lines: list[AuditedLine] | None = None, total: str = "0"
) -> Coverage:
    """Returns the coverage of us-east-1."""
    return coverage(
        AwsSpend(tuple(lines)),
        audited_lines or [],
        days=DAYS,
        audited_usd=Decimal(total),
        regions={"us-east-1"},
        accounts={},
    )


def test_the_regions_of_a_usage_type_are_one_row() -> None:
    """Audits without a prefix and bills with one have the same usage type."""
    result = coverage_of(
        [line("USE1-Train:ml.m5.large", "12")],
        [audited("Train:ml.m5.large", "8"), audited("EU-Train:ml.m5.large", "1")],
        "9",
    )
    [row] = result.covered_usage
    assert (row.usage_type, row.bill_usd, row.audited_usd) == ("Train:ml.m5.large", 12, 9)
    assert result.percent == 75


@pytest.mark.parametrize(
    ("usage_type", "region", "name"),
    [
        ("USE1-Host:ml.m5.large", "us-east-1", "endpoints"),
        ("USE1-Host:VolumeUsage.gp2", "us-east-1", "storage of endpoints"),
        ("USE1-Notebk:ml.t3.medium", "us-east-1", "notebooks"),
        ("USE1-Studio:JupyterLab-ml.t3.medium", "us-east-1", "Studio"),
        ("USE1-Canvas:Session-Hrs", "us-east-1", "Canvas"),
        ("USE1-FeatureStore:Storage", "us-east-1", "Feature Store"),
        ("EU-Train:ml.m5.large", "eu-west-1", "jobs in regions that were not scanned"),
        ("USE1-NewThing:x", "us-east-1", "NewThing:x"),
    ],
)
def test_what_audits_do_not_cover_has_a_name(usage_type: str, region: str, name: str) -> None:
    """The name of its area; if that is unknown, the usage type."""
    [outside] = coverage_of([line(usage_type, "5", region)]).uncovered_usage
    assert (outside.name, outside.usd, outside.percent) == (name, 5, 100)


def test_an_audited_line_without_a_usage_type_is_shown_as_such() -> None:
    """Warm pools have none. The share of a bill of 0 is unknown, not 0."""
    result = coverage_of([], [audited(None, "3")], "3")
    [row] = result.covered_usage
    assert (row.usage_type, row.bill_usd, row.audited_usd) == ("(usage type not known)", 0, 3)
    assert result.percent is None


USAGE = st.sampled_from(
    ["USE1-Train:ml.m5.large", "Processing:ml.m5.large", "USE1-Host:x", "Odd", "EU-Tsform:y"]
)
LINES = st.builds(
    line, USAGE, st.decimals(0, 10_000, places=6), st.sampled_from(["us-east-1", "eu-west-1", None])
)


@given(st.lists(LINES, max_size=20))
def test_the_rows_add_up_to_the_bill(lines: list[AwsLine]) -> None:
    """No line is lost, and none is counted twice."""
    result = coverage_of(lines)
    rows = [row.bill_usd for row in result.covered_usage] + [
        row.usd for row in result.uncovered_usage
    ]
    assert sum(rows) == result.bill_usd == sum(line.usd for line in lines)
