"""Lines of cost reports with what was paid: every shape, other currencies, damage, repeats."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.billing import paid_lines
from sageaudit.adapters.billing.paid_lines import PaidLines
from sageaudit.domain.reconcile.paid_line import DiscountLine, LeftOut, PaidLine, ReportLine
from sageaudit.errors import BadUsage
from tests.fakes import cost_reports
from tests.fakes.cost_reports import ACCOUNT, PAYER, SHAPES, Charge

START = datetime(2026, 10, 5, 23, tzinfo=UTC)
CHARGE = Charge(START)
LINE = PaidLine(
    account=ACCOUNT,
    payer=PAYER,
    usage_type="USE1-Train:ml.g5.2xlarge",
    region="us-east-1",
    first=date(2026, 10, 5),
    last=date(2026, 10, 5),
    quantity=Decimal(1),
    unit="Hrs",
    usd=Decimal("1.3332"),
    net=True,
    amortised_usd=None,
    covered=False,
    list_rate=Decimal("1.515"),
)


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[ReportLine]]:
    """Writes reports and reads them as one."""

    def lines(*contents: str | bytes, account: str | None = None) -> list[ReportLine]:
        reports = PaidLines(account)
        found: list[ReportLine] = []
        for number, content in enumerate(contents):
            path = tmp_path / f"report-{number}"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            found += reports.read(path)
        return found

    return lines


Read = Callable[..., list[ReportLine]]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_the_same_line(read: Read, shape: str) -> None:
    """The last hour of a day ends with that day, not with the next one."""
    [line] = read(SHAPES[shape]([CHARGE]))
    assert isinstance(line, PaidLine)
    amortised = Decimal("1.3332") if shape.startswith("focus") else None
    assert line == replace(LINE, amortised_usd=amortised)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_savings_plan_covers_has_the_plans_cost(read: Read, shape: str) -> None:
    """Beside the on-demand cost in CUR, in place of it in FOCUS."""
    [line] = read(
        gzip.compress(SHAPES[shape]([replace(CHARGE, plan_price=Decimal("0.9"))]).encode())
    )
    assert isinstance(line, PaidLine)
    assert (line.covered, line.amortised_usd) == (True, Decimal("0.9"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["Credit", "Tax", "Refund", "SavingsPlanRecurringFee"])
def test_what_is_no_usage_is_left_out(read: Read, shape: str, kind: str) -> None:
    """With its amount."""
    charge = replace(CHARGE, kind=kind, what="", usd=Decimal("-12.5"))
    [line] = read(SHAPES[shape]([charge]))
    assert isinstance(line, LeftOut)
    assert line.usd == Decimal("-12.5")


def test_without_net_columns_the_unblended_cost_is_paid(read: Read) -> None:
    """AWS has net columns only in accounts with a discount."""
    for write in (cost_reports.cur2, cost_reports.legacy):
        assert read(write([CHARGE], net=False)) == [replace(LINE, net=False)]
    empty = {"line_item_net_unblended_cost": ""}
    [line] = read(cost_reports.cur2([replace(CHARGE, changes=empty)]))
    assert line == replace(LINE, net=False, usd=Decimal("1.515"))


def test_the_plans_net_cost_goes_before_its_cost(read: Read) -> None:
    """A contract may have a discount on the plan too."""
    changes = {"savings_plan_net_savings_plan_effective_cost": "0.81"}
    [line] = read(cost_reports.cur2([replace(CHARGE, plan_price=Decimal("0.9"), changes=changes)]))
    assert isinstance(line, PaidLine)
    assert line.amortised_usd == Decimal("0.81")


def test_discounts_as_lines_keep_their_usage_type(read: Read) -> None:
    """With the cost before discounts, which for them is the discount."""
    charge = replace(CHARGE, kind="EdpDiscount", usd=Decimal("-0.15"), quantity=Decimal(0))
    assert read(cost_reports.cur2([charge])) == [
        DiscountLine(
            "EdpDiscount",
            "USE1-Train:ml.g5.2xlarge",
            "us-east-1",
            LINE.first,
            Decimal("-0.15"),
            PAYER,
        )
    ]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"ChargeClass": "Correction"}, "Correction"),
        ({"CommitmentDiscountStatus": "Unused"}, "Unused commitment"),
        ({"ChargeCategory": "Adjustment"}, "Adjustment"),
        ({"ChargeCategory": ""}, "no charge category"),
    ],
)
def test_corrections_and_unused_commitments_of_focus_are_no_usage(
    read: Read, changes: dict[str, str], kind: str
) -> None:
    """They are of another period, or of no hour."""
    [line] = read(cost_reports.focus_1_2([replace(CHARGE, changes=changes)]))
    assert isinstance(line, LeftOut)
    assert line.kind == kind


def test_focus_1_2_has_the_usage_type_in_sku_meter(read: Read) -> None:
    """It has no x_UsageType."""
    assert "x_UsageType" not in cost_reports.FOCUS_1_2
    assert "SkuMeter" not in cost_reports.FOCUS_1_0
    [line] = read(cost_reports.focus_1_2([replace(CHARGE, changes={"SkuMeter": "other"})]))
    assert isinstance(line, PaidLine)
    assert line.usage_type == "other"


def test_a_monthly_line_is_of_the_whole_month(read: Read) -> None:
    """Its end is the start of the next month."""
    changes = {
        "line_item_usage_start_date": "2026-10-01T00:00:00.000Z",
        "line_item_usage_end_date": "2026-11-01T00:00:00.000Z",
    }
    [line] = read(cost_reports.cur2([replace(CHARGE, changes=changes)]))
    assert isinstance(line, PaidLine)
    assert (line.first, line.last) == (date(2026, 10, 1), date(2026, 10, 31))


def test_a_row_without_end_fills_no_memory(read: Read) -> None:
    """Quoted cells with line breaks: each line is short, and the row is as long as the file."""
    text = cost_reports.cur2([CHARGE]) + '"a\n",' * 1_000_000
    with pytest.raises(BadUsage, match="row of many lines"):
        read(gzip.compress(text.encode()))


def test_an_end_on_the_first_of_all_days_is_no_day_before(read: Read) -> None:
    """No calendar has one."""
    changes = {
        "line_item_usage_start_date": "0001-01-01T00:00:00Z",
        "line_item_usage_end_date": "0001-01-01T00:00:00Z",
    }
    [line] = read(cost_reports.cur2([replace(CHARGE, changes=changes)]))
    assert isinstance(line, PaidLine)
    assert line.first == line.last == date(1, 1, 1)


@pytest.mark.parametrize("number", ["1e-999999", "-1E-400000000", "1e16", "NaN", "sNaN", "-inf"])
def test_a_number_that_no_report_has_is_refused(read: Read, number: str) -> None:
    """A price is a quotient: one by next to nothing is more than a number can be."""
    with pytest.raises(BadUsage, match="line 2: line_item_usage_amount is not an amount"):
        read(cost_reports.cur2([replace(CHARGE, changes={"line_item_usage_amount": number})]))
    for nothing in ("0", "0E-40", "-0.0", "1.2E-16"):
        changes = {"line_item_usage_amount": nothing}
        assert read(cost_reports.cur2([replace(CHARGE, changes=changes)]))


def test_the_region_is_that_of_the_job_or_of_the_product(read: Read) -> None:
    """Never that of the usage type's prefix."""
    none = {"line_item_resource_id": "", "product_region_code": ""}
    [line] = read(cost_reports.cur2([replace(CHARGE, changes=none)]))
    assert isinstance(line, PaidLine)
    assert line.region is None
    [line] = read(cost_reports.cur2([replace(CHARGE, changes={"product_region_code": "x"})]))
    assert isinstance(line, PaidLine)
    assert line.region == "us-east-1"


@pytest.mark.parametrize("shape", SHAPES)
def test_other_services_are_passed_over(read: Read, shape: str) -> None:
    """Whatever is in their cells."""
    changes = {
        "line_item_product_code": "AmazonEC2",
        "x_ServiceCode": "AmazonEC2",
        "ServiceName": "Amazon EC2",
        "BilledCost": "not read",
        "line_item_unblended_cost": "not read",
    }
    assert read(SHAPES[shape]([replace(CHARGE, changes=changes)])) == []


def test_only_the_wanted_account_is_read(read: Read) -> None:
    """A report of an organisation has them all."""
    other = replace(CHARGE, account="222233334444")
    for shape in SHAPES.values():
        assert len(read(shape([CHARGE, other]))) == 2
        assert len(read(shape([CHARGE, other]), account=ACCOUNT)) == 1


def test_lines_of_two_versions_of_a_report_are_counted_once(tmp_path: Path) -> None:
    """Another hour or another job is no repeat, nor are equal lines of one file: several hosts."""
    text = cost_reports.cur2([CHARGE, CHARGE, replace(CHARGE, job="job-2")])
    (tmp_path / "a").write_text(text)
    (tmp_path / "b").write_text(cost_reports.legacy([CHARGE, CHARGE, replace(CHARGE, seconds=60)]))
    reports = PaidLines()
    found = [line for name in ("a", "b") for line in reports.read(tmp_path / name)]
    assert len(found) == 4
    assert (reports.repeats, reports.read_lines, reports.forgets) == (2, 4, False)


def test_equal_lines_without_a_job_are_no_repeats(read: Read) -> None:
    """A report without resource ids has one line for several jobs."""
    charge = replace(CHARGE, changes={"line_item_resource_id": ""})
    assert len(read(cost_reports.cur2([charge]), cost_reports.cur2([charge]))) == 2


def test_repeats_are_looked_for_among_a_bounded_number_of_lines(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory has an end, and it says so."""
    monkeypatch.setattr(paid_lines, "MOST_REMEMBERED", 1)
    text = cost_reports.cur2([CHARGE, replace(CHARGE, job="job-2")])
    assert len(read(text, text)) == 4


@pytest.mark.parametrize("shape", SHAPES)
def test_another_currency_is_refused(read: Read, shape: str) -> None:
    """With its line."""
    with pytest.raises(BadUsage, match=r"line 3 is in CNY: only rates in USD can be learnt"):
        read(SHAPES[shape]([CHARGE, replace(CHARGE, currency="CNY")]))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("line_item_usage_type", "cost report that shows rates: the column line_item_usage_type"),
        ("line_item_unblended_cost", "the column line_item_unblended_cost is missing"),
        ("PricingQuantity", None),
        ("EffectiveCost", "FOCUS export that shows rates: the column effective_cost is missing"),
        ("SkuMeter", "the column x_usage_type or sku_meter is missing"),
        ("ChargePeriodStart", "the column charge_period_start is missing"),
    ],
)
def test_a_missing_column_is_named(read: Read, column: str, said: str | None) -> None:
    """Another column may serve for it."""
    of_focus = column[0].isupper()
    text = SHAPES["focus-1.2" if of_focus else "cur2"]([CHARGE])
    rows = list(csv.DictReader(io.StringIO(text)))
    out = io.StringIO()
    names = [name for name in rows[0] if name != column]
    writer = csv.DictWriter(out, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    if said is None:
        assert len(read(out.getvalue())) == 1
        return
    with pytest.raises(BadUsage, match=said):
        read(out.getvalue())


TEXT = cost_reports.cur2([CHARGE])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"hello\nworld\n", "is no cost report that shows rates"),
        (b"PK\x03\x04rest", "ZIP archive"),
        (gzip.compress(TEXT.encode() * 50)[:-9], "broken gzip"),
        (b"\xff\xfea\x00", "not text in UTF-8"),
        (TEXT.encode() + b"1,2\n", "line 3 is cut short: 2 of 26"),
        (TEXT.encode().partition(b"\n")[0], "has no lines below its header"),
        (TEXT.replace("1.3332000000", "much").encode(), "line 2: .*cost is not a number"),
        (TEXT.replace("1.0000000000", "").encode(), "its line_item_usage_amount is empty"),
        (TEXT.replace("2026-10-05T23", "yesterday").encode(), "its start is no day"),
    ],
    ids=range(10),
)
def test_a_damaged_file_is_one_sentence(read: Read, content: bytes, said: str) -> None:
    """With the file's name; nothing is taken for 0."""
    with pytest.raises(BadUsage, match=said) as refused:
        read(content)
    assert "report-0" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_parquet_is_read_by_column_and_its_numbers_as_printed(tmp_path: Path) -> None:
    """Doubles, and times as datetimes; maps that nobody needs are not asked for."""
    [row] = csv.DictReader(io.StringIO(TEXT))
    values: dict[str, Any] = {
        **row,
        "line_item_usage_start_date": datetime(2026, 10, 5, 23, tzinfo=UTC),
        "line_item_usage_end_date": datetime(2026, 10, 6, tzinfo=UTC),
        "line_item_usage_amount": 1.0,
        "line_item_net_unblended_cost": 1.3332,
    }

    def reader(
        path: Path, wanted: Callable[[str], bool]
    ) -> tuple[Sequence[str], Iterator[Sequence[object]]]:
        columns = [name for name in values if wanted(name)]
        assert not {"product", "discount", "line_item_operation"} & set(columns)
        return columns, iter([tuple(values[name] for name in columns)])

    path = tmp_path / "report.parquet"
    path.write_bytes(b"PAR1....")
    assert list(PaidLines(parquet=reader).read(path)) == [LINE]
