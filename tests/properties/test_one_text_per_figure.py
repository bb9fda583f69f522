"""One figure has one text in all views of an audit: terminal, JSON, message, page and list.

The JSON has the exact figures. Each dollar amount and duration in the other views must be the text
of a figure, or have nothing to do with one: no view may print another rounding of a figure.
"""

import io
import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from html import unescape

import pytest
from rich.console import Console

from sageaudit.adapters.history.rows import finding_rows, make_summary, rule_finding
from sageaudit.cli.views import formats, lists
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.job.job import duration_text, minutes_text, seconds_between
from sageaudit.domain.moments import parse_moment
from sageaudit.domain.money import format_rate, format_usd
from sageaudit.output.html.contents import JobReport
from sageaudit.output.html.job import job_body
from sageaudit.output.terminal.render import render
from sageaudit.output.text import plain
from sageaudit.output.text.amounts import document_amounts
from sageaudit.output.text.finding import finding_parts
from sageaudit.output.text.money import ROUND_DOWN, ROUND_NEAREST, Figure
from tests.fakes.entries import entry_of
from tests.fakes.messages import document_card
from tests.fakes.recorded import jobs_of_file, stem_params

_USD = re.compile(r"(?<!<)\$[\d,]*\d(?:\.\d+)?")
_DURATION = re.compile(r"(?<![\d.,])\d+ (?:d|h|min|s)\b(?: \d+ (?:h|min|s)\b)?")
_UNITS_S = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}


@pytest.mark.parametrize("stem", stem_params())
def test_no_view_prints_another_rounding_of_a_figure(stem: str) -> None:
    """This holds for dollars, rates and durations, also in the sentences of rules and notes."""
    for job in jobs_of_file(stem):
        figures = [*_figures(job.document)]
        usd_values = {abs(value) for key, value in figures if "usd" in key}
        spans_s = {value for key, value in figures if key.endswith(("_s", "seconds"))}
        run_s = _run_seconds(job.document)
        spans_s |= set() if run_s is None else {run_s}
        right_texts = {text for usd in usd_values for text in _usd_texts(usd)}
        right_texts |= {text for span in spans_s for text in _span_texts(span)}
        wrong_texts = {text for usd in usd_values for text in _other_usd_texts(usd)}
        for view, text in _views(job.document).items():
            printed_texts = {match[0] for match in _USD.finditer(text)}
            assert not (printed_texts - right_texts) & wrong_texts, (job.file, view)
            for match in _DURATION.finditer(text):
                is_cut_off = any(_is_cut_off(match[0], span) for span in spans_s)
                assert match[0] in right_texts or not is_cut_off, (job.file, view, match[0])


@pytest.mark.parametrize("stem", stem_params())
def test_a_runs_duration_total_savings_and_rates_have_the_same_text_in_all_views(stem: str) -> None:
    """The list has the duration, the total and the savings; the message has no rates."""
    for job in jobs_of_file(stem):
        document, views = job.document, _views(job.document)
        run_s = _run_seconds(document)
        entry = entry_of(document)
        summary = make_summary(entry, 1, "digest")
        row = {field.name: formats.cell_text(summary, field) for field in lists.AUDITS.fields}
        assert run_s is None or row["duration_s"] == duration_text(run_s)
        assert document["rollup"] or row["total_usd"] == str(document_amounts(document).spend)
        total_usd = document["bill"]["total_usd"]
        texts = [] if total_usd is None else [str(document_amounts(document).spend)]
        texts += [] if run_s is None else [f"UTC ({duration_text(run_s)})"]
        texts += [
            format_rate(line["rate_usd"])
            for line in document["bill"]["lines"]
            if line["rate_usd"] is not None
        ]
        findings, _ = finding_parts(document)
        texts += [finding.dollars for finding in findings if finding.dollars]
        for view in ("terminal", "page"):
            assert not [text for text in texts if text not in views[view]], (job.file, view)
        saving = next(field for field in lists.FINDINGS.fields if field.name == "saving_usd")
        for finding_row in finding_rows(entry):
            if finding_row.saving_usd != finding_row.saving_alone_usd:
                continue  # the audit shows what it saves alone, the list what it adds to others
            listed = rule_finding(
                finding_row,
                key=summary.key,
                job=summary.job,
                family=summary.family,
                ended_at=summary.ended_at,
            )
            parts = [part for part in findings if part.id == finding_row.rule_id and part.dollars]
            assert not parts or formats.cell_text(listed, saving) in str(parts[0].dollars)


def _figures(value: object, key: str = "") -> Iterator[tuple[str, Decimal]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _figures(part, name)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _figures(part, key)
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        yield key, Decimal(str(value))


def _run_seconds(document: AuditDocument) -> Decimal | None:
    started_at, ended_at = document["job"]["started_at"], document["job"]["ended_at"]
    if started_at is None or ended_at is None:
        return None
    return seconds_between(parse_moment(started_at), parse_moment(ended_at))


def _views(document: AuditDocument) -> dict[str, str]:
    out = io.StringIO()
    render(document, Console(file=out, width=200, color_system=None))
    card = plain.text_lines(plain.make_payload(document_card(document)))
    page = unescape(re.sub(r"<[^>]+>", " ", str(job_body(JobReport(document, None)))))
    texts = {"terminal": out.getvalue(), "page": page}
    if document["findings"]:
        texts["message"] = "\n".join(card)
    return {view: " ".join(text.split()) for view, text in texts.items()}


def _usd_texts(usd: Decimal) -> Iterator[str]:
    yield format_usd(usd)
    yield format_rate(usd)
    for rounding in (ROUND_DOWN, ROUND_NEAREST):
        yield str(Figure(usd, rounding=rounding)).removeprefix("about ")


def _other_usd_texts(usd: Decimal) -> Iterator[str]:
    """Texts of an amount with other places, or rounded as floats are."""
    for places in range(6):
        for rounding in (ROUND_HALF_UP, ROUND_HALF_EVEN, ROUND_FLOOR):
            if places != 2 or rounding is ROUND_HALF_EVEN:
                yield f"${usd.quantize(Decimal(1).scaleb(-places), rounding):,}"


def _span_texts(seconds: Decimal) -> Iterator[str]:
    yield duration_text(seconds)
    yield minutes_text(seconds / 60)


def _is_cut_off(text: str, seconds: Decimal) -> bool:
    """Returns True if `text` is a duration without the rest that its smaller unit does not show."""
    words = text.split()
    shown_s = sum(int(words[at]) * _UNITS_S[words[at + 1]] for at in range(0, len(words), 2))
    smallest_s = _UNITS_S[words[-1]] if len(words) > 2 else 1
    return 0 < seconds - shown_s < smallest_s
