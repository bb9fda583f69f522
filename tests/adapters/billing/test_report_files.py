"""Cost reports as people have them: packed, split, in UTF-16, from spreadsheets, or damaged."""

import codecs
import gzip
import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from sageaudit.adapters.billing import report_files
from sageaudit.adapters.billing.cost_report import read_paid_usage, read_spend
from sageaudit.domain.prices.known_prices import RateBasis
from sageaudit.domain.reconcile.lines import AwsSpend
from sageaudit.errors import BadUsage
from sageaudit.structs import replace
from tests.adapters.billing.test_cost_report import CHARGE, LINE, MONTH, PAID, changed
from tests.fakes.cost_reports import ACCOUNT, SHAPES, cur2, legacy

_CASES = Path(__file__).with_name("reports")
_TEXT = cur2([CHARGE])
_SECOND = cur2([replace(CHARGE, job="job-2")])
_ENCRYPTED_FLAG_OFFSETS = {b"PK\x03\x04": 6, b"PK\x01\x02": 8}
"""Where a ZIP file's two headers of a member have its flags."""
_METHOD_OFFSETS = {b"PK\x03\x04": 8, b"PK\x01\x02": 10}


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """A ZIP file with these members."""
    out = io.BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def patched(content: bytes, offsets: dict[bytes, int], value: int) -> bytes:
    """A ZIP file with a byte changed in both headers of its only member."""
    changed_content = bytearray(content)
    for magic, offset in offsets.items():
        changed_content[content.index(magic) + offset] = value
    return bytes(changed_content)


def in_utf16(text: str, encoding: str = "utf-16-le") -> bytes:
    """Text as spreadsheets and PowerShell write it."""
    mark = codecs.BOM_UTF16_LE if encoding.endswith("le") else codecs.BOM_UTF16_BE
    return mark + text.encode(encoding)


_FORMS: dict[str, Callable[[str], bytes]] = {
    "gzip": lambda text: gzip.compress(text.encode()),
    "ZIP": lambda text: zipped({"report.csv": text}),
    "ZIP of a gzip file": lambda text: zipped({"report.csv.gz": gzip.compress(text.encode())}),
    "ZIP of UTF-16": lambda text: zipped({"report.csv": in_utf16(text)}),
    "ZIP made on macOS": lambda text: zipped(
        {"report.csv": text, "Manifest.json": "{}", "__MACOSX/._report.csv": b"\0\5\26\7"}
    ),
    "a mark of UTF-8": lambda text: f"\ufeff{text}".encode(),
    "UTF-16": in_utf16,
    "UTF-16, most significant byte first": lambda text: in_utf16(text, "utf-16-be"),
    "semicolons": lambda text: text.replace(",", ";").encode(),
    "tabs": lambda text: text.replace(",", "\t").encode(),
    "tabs in UTF-16": lambda text: in_utf16(text.replace(",", "\t")),
    "line feeds alone": lambda text: text.replace("\r\n", "\n").encode(),
}


def without_json(text: str) -> str:
    """A report without CUR 2.0's column of JSON, whose cells have commas."""
    return text.replace('"{""component"":""Training""}"', "")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", _FORMS)
def test_every_form_of_a_file_gives_the_same_usage(tmp_path: Path, form: str, shape: str) -> None:
    """By its content, whatever its name is."""
    path = tmp_path / "report.csv"
    path.write_bytes(_FORMS[form](without_json(SHAPES[shape]([CHARGE]))))
    [usage] = read_paid_usage([path], None, RateBasis.NET).usage
    assert replace(usage, largest_line="") == PAID
    assert usage.largest_line == f"{path}: line 2"


@pytest.mark.parametrize("name", ["54-gz-named-csv.csv", "54-legacy.zip", "54-zip-named.csv"])
def test_packed_reports_compare_job_by_job(name: str) -> None:
    """Four jobs, as in the same report unpacked."""
    spend = read_spend(_CASES / name, MONTH, ACCOUNT)
    assert [str(line.resource).rpartition("/")[2] for line in spend.lines] == [
        "prep-ok",
        "prep-oom",
        "train-a",
        "train-b",
    ]


def test_files_in_a_zip_file_are_one_report(tmp_path: Path) -> None:
    """A message about one of them names it; a job in both is counted once."""
    path = tmp_path / "reports.zip"
    path.write_bytes(zipped({"a.csv": _TEXT, "b.csv": _SECOND, "c.csv": _TEXT}))
    assert len(read_spend(path, MONTH, ACCOUNT).lines) == 2
    path.write_bytes(
        zipped({"a.csv": _TEXT, "b.csv": cur2([changed(line_item_currency_code="EUR")])})
    )
    with pytest.raises(BadUsage, match=r"reports.zip: b.csv: line 2 is in EUR"):
        read_spend(path, MONTH, ACCOUNT)


def test_a_folder_may_have_all_forms(tmp_path: Path) -> None:
    """AWS writes `.csv.zip`, and Data Exports a folder for each month."""
    month = tmp_path / "BILLING_PERIOD=2026-10"
    month.mkdir()
    (month / "report-1.csv.zip").write_bytes(zipped({"report-1.csv": _TEXT}))
    (month / "report-2.CSV.gz").write_bytes(gzip.compress(legacy([CHARGE]).encode()))
    (month / "report-3.csv").write_text(_SECOND)
    (month / "._report-3.csv").write_bytes(b"\0\5\26\7")
    (month / "other.zip").write_bytes(b"not read")
    assert [line.quantity for line in read_spend(tmp_path, MONTH, ACCOUNT).lines] == [1, 1]


_ZIP = zipped({"report.csv": _TEXT})
_REFUSED: dict[str, tuple[bytes, str]] = {
    "a cut ZIP file": (_ZIP[:-40], "is a damaged ZIP file: download it again"),
    "the start of a ZIP file": (b"PK\x03\x04rest", "is a damaged ZIP file: download it again"),
    "a changed ZIP file": (
        _ZIP[:60] + b"\xff" * 20 + _ZIP[80:],
        "is a damaged ZIP file: download it again",
    ),
    "an encrypted ZIP file": (
        patched(_ZIP, _ENCRYPTED_FLAG_OFFSETS, 1),
        "is encrypted: unzip it with its password first",
    ),
    "Deflate64, as Windows packs large files": (
        patched(_ZIP, _METHOD_OFFSETS, 9),
        "is packed in a way that Python cannot read: unzip it",
    ),
    "a ZIP file in a ZIP file": (
        zipped({"report.csv.zip": _ZIP}),
        "has a ZIP file inside a ZIP file: unzip it first",
    ),
    "an empty ZIP file": (zipped({}), "has no file inside that ends in .csv, .csv.gz, .csv.zip"),
    "a workbook": (
        zipped({"[Content_Types].xml": "", "xl/workbook.xml": ""}),
        "is a spreadsheet's workbook: give the report as AWS wrote it",
    ),
    "a gzip file's start": (gzip.compress(_TEXT.encode())[:20], "is a broken gzip file"),
    "UTF-16 without a mark": (
        _TEXT.encode("utf-16-le"),
        "is not text in UTF-8, so save it as CSV in UTF-8",
    ),
    "half a character of UTF-16": (
        in_utf16(_TEXT)[:-1],
        "is not text in UTF-8, so save it as CSV in UTF-8",
    ),
    "another list": (b'"a, b","c"\r\n"1","2"\r\n', "the column line_item_product_code is missing"),
    "decimal commas": (
        cur2([changed(line_item_usage_amount="1,5")]).encode(),
        "line 2 has a quantity that is not a number: 1,5",
    ),
    "a date of a spreadsheet": (
        cur2([changed(bill_billing_period_start_date="10/1/20")]).encode(),
        "line 2 has the date 10/1/20, but AWS writes 2026-10-31T00:00:00Z: give AWS's own file",
    ),
    "a date of a spreadsheet, day first": (
        cur2([changed(line_item_usage_start_date="1.10.2026 00:00")]).encode(),
        "line 2 has the date 1.10.2026 00:00, but AWS writes",
    ),
    "an account of a spreadsheet": (
        cur2([changed(line_item_usage_account_id="1.11122E+11")]).encode(),
        "line 2 has the account 1.11122E+11, but AWS writes",
    ),
    "a spreadsheet's report of other services": (
        cur2(
            [changed(line_item_product_code="AmazonS3", bill_billing_period_start_date="10/1/20")]
        ).encode(),
        "line 2 has the date 10/1/20, but AWS writes",
    ),
}


@pytest.mark.parametrize("form", _REFUSED)
def test_what_cannot_be_read_is_named_in_one_sentence(tmp_path: Path, form: str) -> None:
    """With the file, what it is, and what to do."""
    content, sentence = _REFUSED[form]
    path = tmp_path / "report.csv"
    path.write_bytes(content)
    with pytest.raises(BadUsage) as refused:
        read_spend(path, MONTH, ACCOUNT)
    assert str(refused.value).startswith(f"{path}: ")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_spreadsheets_report_is_refused_for_rates_too() -> None:
    """Neither day nor month is guessed."""
    path = _CASES / "57-excel.csv"
    with pytest.raises(BadUsage, match=r"line 2 has the date 10/1/2026 0:00, but AWS writes 2026"):
        read_spend(path, MONTH, ACCOUNT)
    with pytest.raises(BadUsage, match=r"line 2 has the date 10/1/2026 0:00, but AWS writes 2026"):
        read_paid_usage([path], None, RateBasis.NET)


def test_a_report_without_resource_ids_names_no_jobs() -> None:
    """Comparing it by job would find every job on one side only. Rates need no jobs."""
    path = _CASES / "68-no-resource.csv"
    with pytest.raises(BadUsage, match=r"names no jobs: only usage types can be .* --coverage"):
        read_spend(path, MONTH, ACCOUNT)
    assert len(read_paid_usage([path], None, RateBasis.NET).usage) == 4


def test_usage_of_endpoints_may_name_no_resource(tmp_path: Path) -> None:
    """Only jobs are compared; a job with a name makes the report one of jobs."""
    endpoint = changed(line_item_resource_id="", line_item_usage_type="USE1-Host:ml.m5.large")
    unnamed = changed(line_item_resource_id="")
    path = tmp_path / "report.csv"
    for charges, count in (([endpoint], 1), ([endpoint, CHARGE, unnamed], 3)):
        path.write_text(cur2(charges))
        assert len(read_spend(path, MONTH, ACCOUNT).lines) == count


def test_size_is_bounded_before_and_after_unpacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ZIP file of a few bytes may hold terabytes."""
    plain, packed = tmp_path / "report.csv", tmp_path / "report.zip"
    plain.write_text(_TEXT)
    packed.write_bytes(zipped({"a.csv": _TEXT, "b.csv": _TEXT}))
    monkeypatch.setattr(report_files, "MAX_BYTES", len(_TEXT) - 1)
    assert packed.stat().st_size < 2 * len(_TEXT)
    for path in (plain, packed):
        with pytest.raises(BadUsage, match=rf"{path.name}: has more than .* GB: give the files of"):
            read_spend(path, MONTH, ACCOUNT)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """A report is read twice: its header, then its lines."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(BadUsage, match="pipe: is not a regular file: write the report to a file"):
        read_spend(path, MONTH, ACCOUNT)


def test_plain_reports_are_not_copied(tmp_path: Path) -> None:
    """A report may be larger than the temporary folder."""
    path, folder = tmp_path / "report.csv.gz", tmp_path / "temporary"
    folder.mkdir()
    path.write_bytes(gzip.compress(_TEXT.encode()))
    [file] = report_files.find_report_files(path, folder)
    assert file.path == path
    assert read_spend(path, MONTH, ACCOUNT) == AwsSpend((LINE,))
