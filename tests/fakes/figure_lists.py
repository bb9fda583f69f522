"""What lists, single jobs, sums and Python say of the figures of a history."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from sageaudit import AuditHistory
from sageaudit.domain.audit.record import RunQuery
from sageaudit.output.text import plain
from tests.fakes.cards import document_card
from tests.fakes.figure_asked import WEEK, Asked, View, markdown
from tests.fakes.figure_cells import (
    FIGURE,
    SUMS,
    TEXTS,
    Cell,
    Cells,
    cell,
    of_rule,
    people,
    programs,
    read,
)
from tests.fakes.figure_pages import page_figures
from tests.fakes.figure_scenarios import BUCKETS

# lists of jobs


def history_text(asked: Asked) -> Cells:
    """`history`, as a table."""
    return people(markdown(asked, "history", *WEEK, fields=TEXTS.values())[0])


def history_json(asked: Asked) -> Cells:
    """`history --output json`."""
    return programs(asked.rows("history", *WEEK)[0])


def history_csv(asked: Asked) -> Cells:
    """`history --output csv`."""
    text = asked.stdout("history", *WEEK, "--output", "csv")
    row: dict[str, Any] = next(csv.DictReader(io.StringIO(text)))
    return programs({**row, "estimated": row["estimated"] == "true"})


def top(asked: Asked) -> Cells:
    """`top`, which leaves out jobs without avoidable or lost dollars."""
    rows = markdown(asked, "top", *WEEK, fields=TEXTS.values())
    return people(rows[0]) if rows else {}


def export(form: str) -> View:
    """`export` in a format; `--findings` has the rule's."""

    def view(asked: Asked) -> Cells:
        row = next(_exported(asked, form))
        return programs(row)

    return view


def export_findings(asked: Asked) -> Cells:
    """`export --findings`."""
    return _saving(asked, next(_exported(asked, "jsonl", "--findings")))


def _exported(asked: Asked, form: str, *words: str) -> Iterator[dict[str, Any]]:
    path = asked.path.with_suffix(f".{form}")
    asked.stdout("export", "-o", str(path), *WEEK, *words)
    if form == "parquet":
        names = [*_names(), "possible_incomplete"]
        found = duckdb.read_parquet(str(path)).select(*names)
        yield from (dict(zip(names, row, strict=True)) for row in found.fetchall())
        return
    with path.open(encoding="utf-8", newline="") as file:
        rows = map(json.loads, file) if form == "jsonl" else csv.DictReader(file)
        for row in rows:
            yield {**row, "estimated": row["estimated"] in {True, "true"}}


def _saving(asked: Asked, row: Mapping[str, Any]) -> Cells:
    if asked.scenario.rule_name == "spot-not-used":
        row = {**row, "estimated": False}
    return {"rule": cell(row, "rule", usd="saving_usd", most="saving_up_to_usd")}


def rule_text(asked: Asked) -> Cells:
    """`history --rule`, as a table."""
    words = ("history", "--rule", asked.scenario.rule_name, *WEEK)
    return {"rule": read("rule", markdown(asked, *words, fields=["saving_usd"])[0]["saving_usd"])}


def rule_json(asked: Asked) -> Cells:
    """`history --rule --output json`."""
    return _saving(asked, asked.rows("history", "--rule", asked.scenario.rule_name, *WEEK)[0])


# one job


def show_text(asked: Asked) -> Cells:
    """`show`: the total of the bill and the dollars of the finding."""
    text = asked.stdout("show", asked.job)
    spend = re.search(rf"[Cc]ost ({FIGURE})|of ({FIGURE})", text)
    cells: dict[str, Cell] = {}
    if spend:
        cells["spend"] = read("spend", spend[1] or spend[2])
    word = BUCKETS[asked.scenario.rule_name]
    if dollars := re.search(rf"  ({FIGURE}|{word},) (?:{word}|dollars unknown)", text):
        known = dollars[1] if "$" in dollars[1] else "unknown"
        cells["rule"] = read("rule", known)
    return cells


def show_json(asked: Asked) -> Cells:
    """`show --output json`: the audit as `audit` prints it, too."""
    audit = json.loads(asked.stdout("show", asked.job, "--output", "json"))
    estimated, idle = bool(audit["bill"]["estimated"]), audit["idle_capacity"] or {}
    row = {**audit["bill"], **audit, "estimated": estimated, "idle_usd": idle.get("list_usd")}
    row["possible_incomplete"] = any(
        one["bucket"] == "possible" and one["saving_usd"] is None for one in audit["findings"]
    )
    return programs(row)


def job_page(asked: Asked) -> Cells:
    """The page of the job: its tiles."""
    return page_figures(asked.stdout("report", asked.job, "-o", "-"))


def alert_card(asked: Asked) -> Cells:
    """The message about the job, if it names what the job cost."""
    [head] = asked.history.runs(RunQuery.of_name(asked.job))
    audit = asked.history.audit(head.key)
    assert audit is not None
    text = " ".join(plain.message(document_card(audit))["message"].split())
    spend = re.search(rf"run cost ({FIGURE})|run's ({FIGURE})", text)
    return {"spend": read("spend", spend[1] or spend[2])} if spend else {}


# sums


def by_text(columns: str) -> View:
    """`by COLUMN`, as a table."""

    def view(asked: Asked) -> Cells:
        return people(markdown(asked, "by", columns, *WEEK, fields=TEXTS.values())[-1])

    return view


def by_json(columns: str) -> View:
    """`by COLUMN --output json`."""

    def view(asked: Asked) -> Cells:
        return programs(asked.rows("by", columns, *WEEK)[-1])

    return view


def by_rule_text(asked: Asked) -> Cells:
    """`by rule`, as a table: dollars are those of the rule's findings."""
    bucket = BUCKETS[asked.scenario.rule_name]
    [row] = markdown(asked, "by", "rule", *WEEK, fields=[f"{bucket}_usd"])
    return {"rule": read("rule", row[f"{bucket}_usd"])}


def by_rule_json(asked: Asked) -> Cells:
    """`by rule --output json`."""
    [row] = asked.rows("by", "rule", *WEEK)
    return of_rule(asked.scenario.rule_name, row)


def changes_text(asked: Asked) -> Cells:
    """`changes`, as a table."""
    fields = {
        "spend": "total_usd",
        "spend_before": "total_before_usd",
        "change": "total_change_usd",
        "waste": "waste_usd",
    }
    return people(markdown(asked, "changes", *WEEK, fields=fields.values())[0], fields)


def changes_json(asked: Asked) -> Cells:
    """`changes --output json`."""
    [row] = asked.rows("changes", *WEEK)
    return {
        "spend": cell(row, "spend", **SUMS["spend"]),
        "spend_before": cell(row, "spend", usd="total_before_usd", word="spend_qualifier_before"),
        "change": cell(row, "change", usd="total_change_usd", word="change_qualifier"),
    }


def week_before(asked: Asked) -> Cells:
    """`by week` has the spend of the week before."""
    row = markdown(asked, "by", "week", *WEEK, fields=["total_before_usd"])[-1]
    return {"spend_before": read("spend_before", row["total_before_usd"])}


# Python


def python_audits(asked: Asked) -> Cells:
    """`AuditHistory.audits`."""
    with AuditHistory.open(asked.path) as history:
        [row] = history.audits("2026-11-02", "2026-11-08")
    names = (*_names(), "possible_incomplete")
    return programs({name: getattr(row, name) for name in names})


def python_by(asked: Asked) -> Cells:
    """`AuditHistory.by`."""
    with AuditHistory.open(asked.path) as history:
        [row] = history.by("family", "2026-11-02", "2026-11-08")
    unknown = [f"{name}_unknown" for name in ("avoidable", "lost", "possible", "idle")]
    return programs({name: getattr(row, name) for name in (*_names(), *unknown)})


def _names() -> Iterator[str]:
    for where in SUMS.values():
        yield from where.values()
    yield "estimated"
