"""Cost and usage reports: both kinds, three formats, and files that are none."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sageaudit.adapters.billing import cost_report
from sageaudit.domain.reconcile.spend import AwsLine, AwsSpend, Excluded
from sageaudit.errors import BadUsage

ACCOUNT, MONTH = "111122223333", "2026-10"
ARN = f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:training-job/a"
TYPE = "EU-Train:ml.m5.xlarge"
MODERN = {
    "bill_billing_period_start_date": "2026-10-01T00:00:00.000Z",
    "line_item_usage_start_date": "2026-10-12T07:00:00.000Z",
    "line_item_usage_account_id": ACCOUNT,
    "line_item_product_code": "AmazonSageMaker",
    "line_item_line_item_type": "Usage",
    "line_item_usage_type": TYPE,
    "line_item_usage_amount": "1.5",
    "line_item_unblended_cost": "0.3855",
    "line_item_resource_id": ARN,
    "line_item_currency_code": "USD",
    "pricing_unit": "Hrs",
    "product": '{"location":"EU, Ireland"}',
    "product_region_code": "eu-west-1",
}
LEGACY = {
    "identity/LineItemId": "x",
    "bill/BillingPeriodStartDate": "2026-10-01T00:00:00Z",
    "lineItem/UsageStartDate": "2026-10-12T07:00:00Z",
    "lineItem/UsageAccountId": ACCOUNT,
    "lineItem/ProductCode": "AmazonSageMaker",
    "lineItem/LineItemType": "Usage",
    "lineItem/UsageType": TYPE,
    "lineItem/UsageAmount": "1.5",
    "lineItem/UnblendedCost": "0.3855",
    "lineItem/ResourceId": ARN,
    "lineItem/CurrencyCode": "USD",
    "pricing/unit": "Hrs",
    "product/regionCode": "eu-west-1",
}


def text_of(*rows: dict[str, str]) -> str:
    """CSV with the first row's columns as its header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., AwsSpend]:
    """Writes a report and reads it."""

    def written(*rows: dict[str, str] | str | bytes) -> AwsSpend:
        path = tmp_path / "report"
        first = rows[0]
        if isinstance(first, bytes):
            path.write_bytes(first)
        elif isinstance(first, str):
            path.write_text(first, encoding="utf-8")
        else:
            path.write_text(text_of(*[row for row in rows if isinstance(row, dict)]), "utf-8")
        return cost_report.read(path, MONTH, ACCOUNT)

    return written


Read = Callable[..., AwsSpend]
LINE = AwsLine(TYPE, "eu-west-1", "Hrs", Decimal("1.5"), Decimal("0.3855"), ARN)


@pytest.mark.parametrize("row", [MODERN, LEGACY], ids=["cur2", "legacy"])
def test_both_kinds_of_report_are_one_line(read: Read, row: dict[str, str]) -> None:
    """Slash and camel case, or words and underscores."""
    assert read(row).lines == (LINE,)


@pytest.mark.parametrize("row", [MODERN, LEGACY], ids=["cur2", "legacy"])
def test_gzip_is_seen_by_its_content(read: Read, row: dict[str, str]) -> None:
    """Whatever the file is called."""
    assert read(gzip.compress(text_of(row).encode())).lines == (LINE,)


def test_a_byte_order_mark_is_no_part_of_the_first_column(read: Read) -> None:
    """Spreadsheets write one."""
    assert read(b"\xef\xbb\xbf" + text_of(MODERN).encode()).lines == (LINE,)


def test_the_smallest_report_has_seven_columns(read: Read) -> None:
    """Account and region then come from the job's ARN."""
    needed = (*list(MODERN)[1:2], *list(MODERN)[3:9])
    few = {column: MODERN[column] for column in needed}
    assert read(few).lines == (
        AwsLine(TYPE, "eu-west-1", "", Decimal("1.5"), Decimal("0.3855"), ARN),
    )
    other = few | {"line_item_resource_id": ARN.replace(ACCOUNT, "999988887777")}
    assert len(read(few, other).lines) == 1


def test_a_report_does_not_say_that_its_lines_are_estimates(read: Read) -> None:
    """Only Cost Explorer marks a month that AWS may still change."""
    assert read(MODERN).estimated is False


def test_hours_of_one_job_are_added_up_exactly(read: Read) -> None:
    """Ten hourly lines of 0.1 are 1.0, which floats would not be."""
    rows = [MODERN | {"line_item_usage_amount": "0.1"} for _ in range(10)]
    [line] = read(*rows).lines
    assert (line.quantity, line.usd) == (Decimal("1.0"), Decimal("3.8550"))


def test_other_products_accounts_and_months_are_passed_over(read: Read) -> None:
    """A report of an organisation has them all."""
    spend = read(
        MODERN,
        MODERN | {"line_item_product_code": "AmazonEC2", "line_item_usage_amount": "not read"},
        MODERN | {"line_item_usage_account_id": "999988887777"},
        MODERN | {"bill_billing_period_start_date": "2026-09-01T00:00:00Z"},
    )
    assert spend.lines == (LINE,)


def test_what_a_savings_plan_covers_is_usage_and_its_negation_is_not(read: Read) -> None:
    """So hours and on-demand dollars stay comparable."""
    spend = read(
        MODERN | {"line_item_line_item_type": "SavingsPlanCoveredUsage"},
        MODERN
        | {"line_item_line_item_type": "SavingsPlanNegation", "line_item_unblended_cost": "-0.38"},
    )
    assert spend.lines == (LINE,)
    assert spend.excluded == (Excluded("SavingsPlanNegation", 1, Decimal("-0.38")),)


def test_credits_refunds_and_amounts_below_zero_are_left_out_and_counted(read: Read) -> None:
    """By kind, with their dollars; a credit may have no quantity."""
    credit = MODERN | {
        "line_item_line_item_type": "Credit",
        "line_item_unblended_cost": "-2",
        "line_item_usage_amount": "",
    }
    spend = read(
        MODERN,
        credit,
        credit,
        MODERN | {"line_item_line_item_type": "Refund", "line_item_unblended_cost": ""},
        MODERN | {"line_item_usage_amount": "-1", "line_item_unblended_cost": "-0.1"},
    )
    assert spend.lines == (LINE,)
    assert spend.excluded == (
        Excluded("Credit", 2, Decimal(-4)),
        Excluded("Refund", 1, Decimal(0)),
        Excluded("Usage below zero", 1, Decimal("-0.1")),
    )


def test_a_month_without_sagemaker_is_no_error(read: Read) -> None:
    """Nothing was billed: the caller says so."""
    assert read(MODERN | {"line_item_product_code": "AmazonS3"}).lines == ()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("line_item_product_code", "lineItem/ProductCode"),
        ("line_item_line_item_type", "lineItem/LineItemType"),
        ("line_item_usage_type", "lineItem/UsageType"),
        ("line_item_usage_amount", "lineItem/UsageAmount"),
        ("line_item_unblended_cost", "lineItem/UnblendedCost"),
        ("line_item_resource_id", "export with resource ids"),
    ],
)
def test_a_missing_column_is_named_in_both_spellings(read: Read, column: str, said: str) -> None:
    """Whichever report it was meant to be."""
    row = {name: value for name, value in MODERN.items() if name != column}
    with pytest.raises(BadUsage, match=f"no cost report: the column {column}.*{said}"):
        read(row)


def test_without_any_date_the_billing_period_is_missed(read: Read) -> None:
    """One of two columns says the month."""
    row = dict(list(MODERN.items())[2:])
    with pytest.raises(BadUsage, match="bill_billing_period_start_date is missing"):
        read(row)


def test_a_report_of_another_month_is_refused_with_its_month(read: Read) -> None:
    """Comparing it would find everything on one side only."""
    with pytest.raises(BadUsage, match=r"a report of 2026-09, not of 2026-10"):
        read(MODERN | {"bill_billing_period_start_date": "2026-09-01T00:00:00Z"})


def test_a_report_of_another_account_is_refused(read: Read) -> None:
    """As a report of another month is."""
    with pytest.raises(BadUsage, match=f"no line of account {ACCOUNT} in 2026-10"):
        read(MODERN | {"line_item_usage_account_id": "999988887777"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"line_item_usage_amount": "many"},
            r"line 2: line_item_usage_amount is not a number \(many",
        ),
        (
            {"line_item_usage_amount": ""},
            "line 2 is usage, and its line_item_usage_amount is empty",
        ),
        ({"line_item_unblended_cost": ""}, "its line_item_unblended_cost is empty"),
        ({"line_item_unblended_cost": "NaN"}, "is not an amount"),
        ({"line_item_unblended_cost": "Infinity"}, "is not an amount"),
        ({"line_item_usage_amount": "1e400"}, "is not an amount"),
        ({"line_item_currency_code": "CNY"}, "is in CNY: only USD"),
    ],
)
def test_an_amount_that_is_none_is_refused_with_its_line(
    read: Read, change: dict[str, str], said: str
) -> None:
    """Nothing is taken for 0."""
    with pytest.raises(BadUsage, match=said):
        read(MODERN | change)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n", "no cost report: the column line_item_product_code"),
        (b"hello\nworld\n", "no cost report: the column line_item_product_code"),
        (b'{"children": []}', "no cost report: the column line_item_product_code"),
        (b"PK\x03\x04rest", "ZIP archive: unpack it"),
        (b"\x1f\x8bbroken", "broken gzip"),
        (gzip.compress(b"a,b\n" * 1000)[:-12], "broken gzip|no cost report"),
        (gzip.compress(text_of(MODERN).encode() * 50)[:-9], "broken gzip"),
        (gzip.compress(b""), "no cost report: the column line_item_product_code"),
        (b"\xff\xfea\x00", "not text in UTF-8"),
        (b"\x00" * 5_000_000, "a line of over"),
        (gzip.compress(b"a" * 5_000_000), "a line of over"),
        (b'"' + b"a\n" * 200_000, "not CSV"),
        (b"a," * 100_000 + b"b", "no cost report: the column line_item_product_code"),
        (text_of(MODERN).encode()[:-10], "not CSV"),
        (text_of(MODERN).encode()[:-30], "line 2 is cut short: 12 of 13"),
        (text_of(MODERN).encode() + b"1,2\n", "line 3 is cut short: 2 of 13 columns"),
        (text_of(MODERN).encode().partition(b"\n")[0], "has no lines below its header"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value[:24],
)
def test_what_is_no_report_is_one_sentence(read: Read, content: bytes, said: str) -> None:
    """Empty, cut, packed twice, hostile or huge: the file and what is wrong with it."""
    with pytest.raises(BadUsage, match=said) as refused:
        read(content)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["absent.csv", "."])
def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path: Path, name: str) -> None:
    """Absent, or a folder."""
    with pytest.raises(BadUsage, match="cannot be read"):
        cost_report.read(tmp_path / name, MONTH, ACCOUNT)


def parquet(path: Path) -> Path:
    """A file that begins as Parquet does."""
    path.write_bytes(b"PAR1....")
    return path


def test_parquet_gives_the_same_line(tmp_path: Path) -> None:
    """Its doubles and times are read as what they print as; columns nobody needs are not asked."""
    values: dict[str, Any] = {
        **MODERN,
        "bill_billing_period_start_date": datetime(2026, 10, 1, tzinfo=UTC),
        "line_item_usage_amount": 1.5,
        "line_item_unblended_cost": 0.3855,
        "line_item_currency_code": None,
    }

    def reader(
        path: Path, wanted: Callable[[str], bool]
    ) -> tuple[Sequence[str], Iterator[Sequence[object]]]:
        columns = [name for name in values if wanted(name)]
        assert "product" not in columns
        return columns, iter([tuple(values[name] for name in columns)])

    spend = cost_report.read(parquet(tmp_path / "r"), MONTH, ACCOUNT, parquet=reader)
    assert spend.lines == (LINE,)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or to export the report as CSV."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(BadUsage, match=r"needs pyarrow: .*CSV.*pip install pyarrow"):
        cost_report.read(parquet(tmp_path / "r"), MONTH, ACCOUNT)


class Arrow:
    """As much of pyarrow.parquet as is used: one batch of columns."""

    def __init__(self, columns: dict[str, list[object]], *, breaks: bool = False) -> None:
        self._columns = columns
        self._breaks = breaks
        self.schema_arrow = SimpleNamespace(names=list(columns))
        self.closed = False

    def iter_batches(self, columns: list[str]) -> Iterator[Any]:
        chosen = {name: self._columns[name] for name in columns}
        yield SimpleNamespace(column=lambda name: SimpleNamespace(to_pylist=lambda: chosen[name]))
        if self._breaks:
            raise ValueError("Corrupt snappy compressed data.")

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("breaks", [False, True])
def test_pyarrow_is_asked_for_the_columns_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: bool
) -> None:
    """Also when the file breaks in the middle, which is one sentence."""
    file = Arrow({name: [value] for name, value in MODERN.items()}, breaks=breaks)
    module = SimpleNamespace(ParquetFile=lambda path: file)
    monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(parquet=module))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", module)
    path = parquet(tmp_path / "r")
    if breaks:
        with pytest.raises(BadUsage, match="broken Parquet"):
            cost_report.read(path, MONTH, ACCOUNT)
    else:
        assert cost_report.read(path, MONTH, ACCOUNT).lines == (LINE,)
    assert file.closed
