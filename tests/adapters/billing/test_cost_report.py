"""Cost reports: every shape and format, what is no usage, repeats, and files that are none."""

import csv
import gzip
import importlib
import io
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.adapters.billing import cost_report
from sageaudit.domain.prices.known_prices import RateBasis
from sageaudit.domain.reconcile.lines import (
    JOBS,
    AuditedLine,
    AuditedMonth,
    AwsLine,
    AwsSpend,
    ExcludedLines,
    PaidReport,
    PaidUsage,
    UnlistedJobs,
    job_usage_type,
)
from sageaudit.domain.reconcile.reconcile import Presence, reconcile
from sageaudit.errors import BadUsage
from sageaudit.structs import replace
from tests.fakes.cost_reports import ACCOUNT, SHAPES, Charge, cur2, legacy

MONTH, OTHER = "2026-10", "222233334444"
START = datetime(2026, 10, 5, 23, tzinfo=UTC)
CHARGE = Charge(START)
TEXT = cur2([CHARGE])
TYPE = "USE1-Train:ml.g5.2xlarge"
LINE = AwsLine(TYPE, "us-east-1", "Hrs", Decimal(1), Decimal("1.515"), CHARGE.arn)
PAID = PaidUsage(
    ACCOUNT,
    TYPE,
    "us-east-1",
    "Hrs",
    date(2026, 10, 5),
    date(2026, 10, 5),
    cost_decimals=10,
    line_count=1,
    quantity=Decimal(1),
    usd=Decimal("1.3332"),
    covered_quantity=Decimal(0),
    list_rate=Decimal("1.515"),
    largest_usd=Decimal("1.3332"),
)
Write = Callable[..., list[Path]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes reports and returns their paths."""

    def written(*contents: str | bytes) -> list[Path]:
        paths = [tmp_path / f"report-{number}.csv" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return paths

    return written


def spend(path: Path) -> AwsSpend:
    """October of the account."""
    return cost_report.read_spend(path, MONTH, ACCOUNT)


def paid(*paths: Path, account: str | None = None, basis: RateBasis = RateBasis.NET) -> PaidReport:
    """What was paid, with no file's name in it."""
    report = cost_report.read_paid_usage(paths, account, basis)
    usage = tuple(replace(line, largest_line="") for line in report.usage)
    return replace(report, usage=usage)


def changed(**cells: str) -> Charge:
    """The charge with other cells."""
    return replace(CHARGE, changes=cells)


CHARGES = st.builds(
    Charge,
    st.just(START),
    what=st.sampled_from(("ml.g5.2xlarge", "ml.m5.large", "VolumeUsage.gp2")),
    role=st.sampled_from(("Train", "train", "Train", "Processing", "TrSpt", "Host", "New")),
    job=st.sampled_from(("job-1", "JOB-1", "job-2", "job-3", "job-4", "job-5")),
    quantity=st.integers(0, 5).map(Decimal),
    changes=st.sampled_from(
        ({}, {}, {}, {"line_item_resource_id": ""}, {"line_item_resource_id": "another"})
    ),
)


@settings(max_examples=40, deadline=None)
@given(
    charges=st.lists(CHARGES, min_size=1, max_size=14),
    audited=st.sets(st.integers(1, 6)),
    most_expensive=st.integers(1, 3),
)
def test_jobs_without_an_audit_are_only_summed(
    charges: list[Charge], audited: set[int], most_expensive: int
) -> None:
    """The sums, the numbers of jobs, and the most expensive rows are those of all lines."""
    arns = [CHARGE.arn.replace("job-1", f"job-{number}") for number in sorted(audited)]
    history = AuditedMonth(tuple(audited_line(arn) for arn in arns), jobs=len(arns))
    with TemporaryDirectory() as folder:
        path = Path(folder, "report.csv")
        path.write_text(cur2([CHARGE, *charges]))
        every = reconcile(spend(path), history)
        listed = reconcile(
            cost_report.read_spend(path, MONTH, ACCOUNT, arns, most_expensive=most_expensive),
            history,
        )
    assert listed.usd_by_presence == {
        (Presence.ONLY_IN_AWS, True): (Decimal(0), Decimal(0)),
        **every.usd_by_presence,
    }
    assert listed.count_jobs() == every.count_jobs()
    for presence in Presence:
        all_rows, rows = (
            [row for row in result.rows_by_presence[presence] if row.area == JOBS]
            for result in (every, listed)
        )
        assert rows[:most_expensive] == all_rows[:most_expensive]
        unlisted = listed.spend.unlisted.rows if presence is Presence.ONLY_IN_AWS else 0
        assert len(rows) + unlisted == len(all_rows)
    assert listed.unnamed_usd == every.unnamed_usd
    assert listed.spend.managed_spot == every.spend.managed_spot


def audited_line(arn: str) -> AuditedLine:
    """Returns an hour of a job's training instance."""
    usage = job_usage_type("training", "ml.g5.2xlarge")
    hour, usd = Decimal(1), Decimal("1.515")
    return AuditedLine(
        arn, arn.rpartition("/")[2], "us-east-1", "compute", None, usage, "instance-hours", hour,
        usd, is_metered=True, crosses_month=False,
    )  # fmt: skip


def test_a_report_without_jobs_is_read_whole(write: Write) -> None:
    """Whatever is audited: its usage is of endpoints."""
    [path] = write(cur2([replace(CHARGE, role="Host", changes={"line_item_resource_id": ""})]))
    read = cost_report.read_spend(path, MONTH, ACCOUNT, [], most_expensive=1)
    assert read == AwsSpend((LINE._replace(usage_type="USE1-Host:ml.g5.2xlarge", resource=None),))


def test_few_lines_of_a_thousand_jobs_are_read(write: Write) -> None:
    """The audited job's and that of the most expensive job. The others are two sums."""
    charges = [
        replace(CHARGE, job=f"job-{number}", quantity=Decimal(number)) for number in range(1000)
    ]
    [path] = write(cur2(charges))
    read = cost_report.read_spend(path, MONTH, ACCOUNT, [CHARGE.arn], most_expensive=1)
    assert [line.resource for line in read.lines] == [
        CHARGE.arn,
        CHARGE.arn.replace("job-1", "job-999"),
    ]
    others = Decimal(sum(range(2, 999)))
    assert read.unlisted == UnlistedJobs(998, 998, others * Decimal("1.515"))


@pytest.mark.parametrize("shape", ["cur2", "legacy"])
@pytest.mark.parametrize("pack", [str.encode, lambda text: gzip.compress(text.encode())])
def test_both_kinds_of_cost_report_give_the_usage_at_on_demand_cost(
    write: Write, shape: str, pack: Callable[[str], bytes]
) -> None:
    """Also gzipped, whatever the file is called, and with a byte order mark."""
    text = SHAPES[shape]([CHARGE])
    for content in (text, f"\ufeff{text}"):
        assert spend(*write(pack(content))) == AwsSpend((LINE,))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_what_was_paid(write: Write, shape: str) -> None:
    """The last hour of a day ends with that day, not with the next one."""
    text = SHAPES[shape]([CHARGE])
    assert paid(*write(text)).usage == (PAID,)
    [usage] = cost_report.read_paid_usage(write(text), None, RateBasis.NET).usage
    assert usage.largest_line.endswith("report-0.csv: line 2")


def test_parquet_numbers_count_as_they_print(tmp_path: Path) -> None:
    """Doubles, and times with or without a zone; its name is no pattern."""
    types = {
        "line_item_usage_start_date": "TIMESTAMP",
        "line_item_usage_end_date": "TIMESTAMPTZ",
        "line_item_usage_amount": "DOUBLE",
        "line_item_unblended_cost": "DOUBLE",
        "line_item_net_unblended_cost": "DOUBLE",
    }
    duckdb: Any = importlib.import_module("duckdb")
    source, path = tmp_path / "of.csv", tmp_path / "report [1].parquet"
    source.write_text(cur2([replace(CHARGE, quantity=Decimal("0.1"))] * 10))
    columns = ", ".join(f"CAST({name} AS {sql_type}) AS {name}" for name, sql_type in types.items())
    read = f"SELECT * REPLACE ({columns}) FROM read_csv('{source}', all_varchar = true)"  # noqa: S608
    duckdb.execute(f"SET TimeZone = 'UTC'; COPY ({read}) TO '{path}' (FORMAT parquet)")
    assert spend(path).lines == (LINE,)
    [usage] = paid(path).usage
    largest = Decimal("0.13332")
    assert usage == replace(PAID, cost_decimals=5, line_count=10, largest_usd=largest)


def test_a_folder_is_read_as_one_report(tmp_path: Path) -> None:
    """AWS splits a large report into files; other files beside them are not read."""
    (tmp_path / "part").mkdir()
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "1.csv").write_text(TEXT)
    (tmp_path / "part" / "2.csv.gz").write_bytes(
        gzip.compress(legacy([replace(CHARGE, job="job-2")]).encode())
    )
    assert [line.resource for line in spend(tmp_path).lines] == [
        CHARGE.arn,
        CHARGE.arn.replace("job-1", "job-2"),
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadUsage, match=r"has no file that ends in \.csv, \.csv\.gz, \.csv\.zip"):
        spend(tmp_path / "empty")


def test_lines_are_added_up_exactly(write: Write) -> None:
    """Ten times 0.1 is 1, which floats would not give; a number of 30 digits keeps them."""
    tenth = replace(CHARGE, quantity=Decimal("0.1"))
    [line] = spend(*write(cur2([tenth] * 10))).lines
    assert (str(line.quantity), str(line.usd)) == ("1", "1.515")
    cost = "123456789012.123456789012345678"
    [line] = spend(*write(cur2([changed(line_item_unblended_cost=cost)]))).lines
    assert str(line.usd) == cost


def test_other_products_accounts_and_months_are_passed_over(write: Write) -> None:
    """A report of an organisation has them all, and nothing else in their cells is read."""
    charges = [
        CHARGE,
        replace(CHARGE, account=OTHER, currency="EUR"),
        changed(line_item_product_code="AmazonEC2", line_item_unblended_cost="not read"),
        changed(bill_billing_period_start_date="2026-09-01T00:00:00Z"),
    ]
    path = write(cur2(charges))[0]
    assert spend(path) == AwsSpend((LINE,))
    assert [usage.account for usage in paid(path, account=ACCOUNT).usage] == [ACCOUNT]
    assert len(paid(*write(cur2([CHARGE, replace(CHARGE, account=OTHER)]))).usage) == 2
    with pytest.raises(BadUsage, match=f"report-0.csv: has no SageMaker line of account {OTHER}"):
        paid(*write(TEXT), account=OTHER)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bill_billing_period_start_date": "2026-09-01"}, "a report of 2026-09, not of 2026-10"),
        ({"line_item_usage_account_id": OTHER}, f"has no line of account {ACCOUNT} in 2026-10"),
    ],
)
def test_a_report_of_another_month_or_account_is_refused(
    write: Write, change: dict[str, str], said: str
) -> None:
    """Comparing it would find everything on one side only; a month without SageMaker is none."""
    with pytest.raises(BadUsage, match=said):
        spend(*write(cur2([changed(**change)])))
    assert spend(*write(cur2([changed(line_item_product_code="AmazonS3")]))) == AwsSpend(())


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_savings_plan_covers_costs_what_the_plan_does(write: Write, shape: str) -> None:
    """Only in amortised rates; for a comparison it is usage at its on-demand price."""
    path = write(SHAPES[shape]([replace(CHARGE, plan_price=Decimal("0.9"))]))[0]
    [usage] = paid(path, basis=RateBasis.AMORTISED).usage
    assert (usage.covered_quantity, usage.usd) == (1, Decimal("0.9"))
    [usage] = paid(path).usage
    assert usage.covered_quantity == 1
    if not shape.startswith("focus"):
        assert spend(path).lines == (LINE,)


def test_the_plans_net_cost_goes_before_its_cost(write: Write) -> None:
    """A contract may have a discount on the plan too; without any cost of it there is no rate."""
    net = {"savings_plan_net_savings_plan_effective_cost": "0.81"}
    charge = replace(CHARGE, plan_price=Decimal("0.9"), changes=net)
    [usage] = paid(*write(cur2([charge])), basis=RateBasis.AMORTISED).usage
    assert usage.usd == Decimal("0.81")
    unknown = changed(line_item_line_item_type="SavingsPlanCoveredUsage")
    with pytest.raises(BadUsage, match=r"line 2 .*savings_plan_savings_plan_effective_cost"):
        paid(*write(cur2([unknown])), basis=RateBasis.AMORTISED)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_no_usage_is_left_out_and_counted(write: Write, shape: str) -> None:
    """By kind, with its amount; a credit may have no quantity."""
    kinds = ("Credit", "Credit", "SavingsPlanRecurringFee", "Tax")
    others = [replace(CHARGE, kind=kind, what="", usd=Decimal("-12.5")) for kind in kinds]
    path = write(SHAPES[shape]([CHARGE, *others]))[0]
    report = paid(path)
    assert report.usage == (PAID,)
    assert [(left.line_count, left.usd) for left in report.excluded] == [
        (2, -25),
        (1, Decimal("-12.5")),
        (1, Decimal("-12.5")),
    ]
    if not shape.startswith("focus"):
        assert spend(path) == AwsSpend((LINE,), report.excluded)
    below = changed(line_item_usage_amount="-1", line_item_unblended_cost="-0.1")
    left_out = (ExcludedLines("Usage below zero", 1, Decimal("-0.1")),)
    assert spend(*write(cur2([CHARGE, below]))) == AwsSpend((LINE,), left_out)


def test_corrections_and_usage_without_a_price_are_left_out(write: Write) -> None:
    """They are of another period, of no hour, or of nothing."""
    kinds = {
        "Adjustment": {"ChargeCategory": "Adjustment"},
        "Correction": {"ChargeClass": "Correction"},
        "Unused commitment": {"CommitmentDiscountStatus": "Unused"},
        "Usage below zero": {"BilledCost": "-1"},
        "Usage without a quantity": {"PricingQuantity": "1E-40"},
        "no kind of charge": {"ChargeCategory": ""},
    }
    charges = [
        replace(CHARGE, changes={"ChargeClass": "", **changes}) for changes in kinds.values()
    ]
    report = paid(*write(SHAPES["focus-1.2"](charges)))
    assert (report.usage, [left.kind for left in report.excluded]) == ((), [*kinds])


def test_without_net_columns_the_unblended_cost_is_paid(write: Write) -> None:
    """AWS has net columns only in accounts with a discount, and empty for those without."""
    for shape in (cur2, legacy):
        assert paid(*write(shape([CHARGE], net=False))).usage == (PAID,)
    [usage] = paid(*write(cur2([changed(line_item_net_unblended_cost="")]))).usage
    assert usage.usd == Decimal("1.515")


def test_discounts_as_lines_of_their_own_are_refused_without_net_costs(write: Write) -> None:
    """A rate that is not net must not be taken for one; another payer's net costs say nothing."""
    discount = replace(CHARGE, kind="EdpDiscount", usd=Decimal("-0.15"))
    other = replace(CHARGE, payer="222200001111")
    reports = write(cur2([CHARGE, discount]), cur2([other, discount], net=False), cur2([other]))
    assert paid(reports[0]).excluded == (ExcludedLines("EdpDiscount", 1, Decimal("-0.15")),)
    for refused in (reports[1:2], reports[1:]):
        with pytest.raises(BadUsage, match=r"discounts \(EdpDiscount\) .*net_unblended_cost"):
            paid(*refused)


def test_a_monthly_line_is_of_the_whole_month(write: Write) -> None:
    """Its end is the start of the next month; no calendar has a day before the first."""
    month = {
        "line_item_usage_start_date": "2026-10-01T00:00:00.000Z",
        "line_item_usage_end_date": "2026-11-01T00:00:00.000Z",
    }
    [usage] = paid(*write(cur2([changed(**month)]))).usage
    assert (usage.first_day, usage.last_day) == (date(2026, 10, 1), date(2026, 10, 31))
    [usage] = paid(*write(cur2([changed(**dict.fromkeys(month, "0001-01-01T00:00:00Z"))]))).usage
    assert usage.first_day == usage.last_day == date(1, 1, 1)


def test_the_region_and_account_are_those_of_the_job_where_no_column_has_them(write: Write) -> None:
    """The region is never that of the usage type's prefix."""
    unnamed = {"line_item_usage_account_id": "", "product_region_code": "", "pricing_unit": ""}
    assert spend(*write(cur2([changed(**unnamed)]))).lines == (LINE._replace(unit=""),)
    [usage] = paid(*write(cur2([changed(**unnamed, line_item_resource_id="")]))).usage
    assert (usage.region, usage.account) == (None, "")


def test_lines_of_two_versions_of_a_report_are_counted_once(write: Write) -> None:
    """Another hour or another job is no repeat, nor are equal lines of one file: several hosts."""
    first = cur2([CHARGE, CHARGE, replace(CHARGE, job="job-2")])
    second = legacy([CHARGE, CHARGE, replace(CHARGE, seconds=60)])
    report = paid(*write(first, second))
    assert (report.duplicate_lines, sum(usage.line_count for usage in report.usage)) == (2, 4)
    unnamed = cur2([changed(line_item_resource_id="")])
    report = paid(*write(unnamed, unnamed))
    assert (report.duplicate_lines, report.usage[0].line_count) == (0, 2)


def without(shape: str, *columns: str) -> str:
    """A report without some of its columns."""
    rows = list(csv.DictReader(io.StringIO(SHAPES[shape]([CHARGE]))))
    out = io.StringIO()
    writer = csv.DictWriter(out, [n for n in rows[0] if n not in columns], extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize(
    ("shape", "column", "said"),
    [
        ("cur2", "line_item_usage_type", "not a cost report: the column line_item_usage_type is"),
        ("cur2", "line_item_unblended_cost", "the column line_item_unblended_cost is missing"),
        ("legacy", "lineItem/ProductCode", "not a cost report: the column line_item_product_code"),
        ("focus-1.2", "EffectiveCost", "not a FOCUS export: the column effective_cost is missing"),
        ("focus-1.2", "SkuMeter", "the column x_usage_type or sku_meter is missing"),
        ("focus-1.2", "ChargePeriodStart", "the column charge_period_start is missing"),
    ],
)
def test_a_missing_column_is_named(write: Write, shape: str, column: str, said: str) -> None:
    """As CUR 2.0 and FOCUS have it."""
    with pytest.raises(BadUsage, match=said):
        paid(*write(without(shape, column)))


def test_another_column_may_serve_but_a_comparison_needs_resource_ids(write: Write) -> None:
    """FOCUS has a quantity twice; the billing period is a start."""
    assert paid(*write(without("focus-1.2", "PricingQuantity", "PricingUnit"))).usage == (PAID,)
    assert spend(*write(without("cur2", "line_item_usage_start_date"))).lines == (LINE,)
    text = without("cur2", "line_item_resource_id")
    assert paid(*write(text)).usage == (PAID,)
    with pytest.raises(BadUsage, match=r"the report names no jobs: .* export it with resource ids"):
        spend(*write(text))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"line_item_currency_code": "CNY"}, "is in CNY: only USD can be read"),
        ({"line_item_usage_amount": "many"}, "has a quantity that is not a number: many"),
        ({"line_item_usage_amount": ""}, "is usage without a quantity"),
        ({"line_item_usage_amount": "1e400"}, "quantity that is not a number"),
        ({"line_item_unblended_cost": ""}, "is usage without a cost"),
        ({"line_item_unblended_cost": "NaN"}, "has a cost that is not a number: NaN"),
        ({"line_item_net_unblended_cost": "Infinity"}, "has a net cost that is not a number"),
        (
            {"savings_plan_savings_plan_effective_cost": "?"},
            "Savings Plan cost that is not a number",
        ),
        ({"line_item_usage_start_date": "2026-02-30"}, "has no valid start date: 2026-02-30"),
        (
            {"line_item_usage_start_date": "yesterday"},
            "has the date yesterday, but AWS writes 2026-10-31",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_refused(
    write: Write, change: dict[str, str], said: str
) -> None:
    """With its file and its number: nothing is taken for 0."""
    with pytest.raises(BadUsage, match=rf"report-0.csv: line 3 .*{said}"):
        paid(*write(cur2([CHARGE, changed(**change)])))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a cost report: the column line_item_product_code"),
        (b"hello\nworld\n", "not a cost report: the column line_item_product_code"),
        (b"PK\x03\x04rest", "damaged ZIP"),
        (b"PAR1rest", "not a cost report that can be read"),
        (b"\x1f\x8bbroken", "broken gzip"),
        (gzip.compress(TEXT.encode() * 5000)[:-9], "not a cost report that can be read"),
        (b"\xff\xfea\x00", "the column line_item_product_code is missing"),
        (TEXT.encode() + b"\xff" * 500, "CSV Error on Line: 3"),
        (TEXT.encode() + b"1,2\r\n", "CSV Error on Line: 3"),
        (TEXT.encode()[:-10], "CSV Error on Line: 2"),
        (TEXT.encode() + b'"a\n",' * 1_000_000, "CSV Error on Line: 3"),
        (b"\x00" * 5_000_000, "not a cost report"),
        (gzip.compress(b"a" * 5_000_000), "not a cost report"),
        (TEXT.encode().partition(b"\n")[0], "has no lines below its header"),
    ],
    ids=range(14),
)
def test_what_is_no_report_is_one_sentence(write: Write, content: bytes, said: str) -> None:
    """Empty, cut, packed twice, hostile or huge: the file and what is wrong with it."""
    with pytest.raises(BadUsage, match=said) as refused:
        spend(*write(content))
    assert "report-0" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_without_the_file_or_the_engine_it_says_so(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence, with what to install."""
    with pytest.raises(BadUsage, match=r"absent.csv: cannot be read \(No such file"):
        spend(tmp_path / "absent.csv")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(BadUsage, match="reading a cost report needs DuckDB: `pip install duckdb`"):
        spend(*write(TEXT))
