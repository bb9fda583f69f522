"""Every view of a history that shows dollars.

A view is a function that asks a history and answers with cells: what a figure is of ("spend",
"rule", ...) and what the view says of it.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from datetime import date
from html import unescape
from pathlib import Path
from typing import Any

import duckdb
from msgspec import Struct
from rich.console import Console

from sageaudit import AuditHistory
from sageaudit.cli.views import ranking as scan_ranking
from sageaudit.domain.audit.ranking import Ranking, ranking
from sageaudit.domain.audit.record import RunQuery
from sageaudit.output.text import plain
from sageaudit.output.text.digest import digest_card
from sageaudit.ports import History
from sageaudit.workflows.digest import make_digests
from tests.cli.figures.cells import (
    FIGURE,
    SUMS,
    TEXTS,
    Cells,
    of_rule,
    people,
    programs,
    read,
)
from tests.cli.figures.scenarios import FAMILY, NOW, OWNER, TYPE, Scenario
from tests.fakes.command_line import Run
from tests.fakes.messages import document_card

MONDAY, SUNDAY = date(2026, 11, 2), date(2026, 11, 8)
DAYS = (str(MONDAY), str(SUNDAY))
WEEK = ("--since", DAYS[0], "--until", DAYS[1])
JOB = "ranker-11051200"
"""The first job of the week."""
BUCKETS = ("avoidable", "lost", "possible")
SPENT = ("spend", "avoidable", "lost")
NAMES = [name for fields in SUMS.values() for name in fields.values()] + ["estimated"]
"""What rows for programs have of the sums of a job."""


class Asked(Struct, frozen=True):
    """A history to look at, and the scenario that it has."""

    run: Run
    where: tuple[str, str]
    path: Path
    history: History
    scenario: Scenario

    def stdout(self, *words: str) -> str:
        """What a command prints of the history."""
        done = self.run(*words, *self.where)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """The rows that it prints as JSON."""
        rows: list[dict[str, Any]] = json.loads(self.stdout(*words, "--output", "json"))["rows"]
        return rows

    def week(self, *words: str) -> list[dict[str, Any]]:
        """The rows of the week that it prints as JSON."""
        return self.rows(*words, *WEEK)

    def table(self, *words: str, fields: Iterable[str] = TEXTS.values()) -> list[dict[str, str]]:
        """The rows of the week as people read them."""
        names = [*fields]
        columns = ("--fields", ",".join(names), "--output", "markdown")
        text = self.stdout(*words, *WEEK, *columns)
        lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
        cells = [
            [unescape(cell.replace("\\", "")) for cell in line[2:-2].split(" | ")] for line in lines
        ]
        return [dict(zip(names, row, strict=True)) for row in cells]

    def page(self) -> list[list[str]]:
        """The rows of all tables of the account's page."""
        return table_rows(self.stdout("report", *WEEK, "-o", "-"))


View = Callable[[Asked], Cells]
OF_ONE_JOB: dict[str, View] = {}
"""Views of jobs: asked where a scenario has one."""
OF_A_RULE: dict[str, View] = {}
OF_ONE_FINDING: dict[str, View] = {}
OF_SUMS: dict[str, View] = {}
OF_CHANGES: dict[str, View] = {}


def views_of(asked: Asked) -> dict[str, View]:
    """The views that have something to say of a scenario."""
    scenario = asked.scenario
    shown = {**OF_SUMS}
    if scenario.has_one_job:
        shown |= OF_ONE_JOB
    if scenario.rule:
        shown |= OF_A_RULE | (OF_ONE_FINDING if scenario.has_one_job else {})
    return shown | (OF_CHANGES if scenario.before else {})


def view(name: str, group: dict[str, View]) -> Callable[[View], View]:
    """Adds a view to its group."""

    def add(function: View) -> View:
        group[name] = function
        return function

    return add


# lists of jobs

OF_ONE_JOB["history"] = lambda asked: people(asked.table("history")[0])
OF_ONE_JOB["history --output json"] = lambda asked: programs(asked.week("history")[0])


@view("history --output csv", OF_ONE_JOB)
def _history_csv(asked: Asked) -> Cells:
    text = asked.stdout("history", *WEEK, "--output", "csv")
    return programs(_typed(next(csv.DictReader(io.StringIO(text)))))


@view("top", OF_ONE_JOB)
def _top(asked: Asked) -> Cells:
    """Leaves out jobs without avoidable or lost dollars."""
    rows = asked.table("top")
    return people(rows[0]) if rows else {}


OF_ONE_JOB["export jsonl"] = lambda asked: programs(_exported(asked, "jsonl"))
OF_ONE_JOB["export csv"] = lambda asked: programs(_exported(asked, "csv"))
OF_ONE_JOB["export parquet"] = lambda asked: programs(_exported(asked, "parquet"))


@view("export --findings", OF_ONE_FINDING)
def _export_findings(asked: Asked) -> Cells:
    return of_rule(asked.scenario.bucket, _exported(asked, "jsonl", "--findings"), "saving")


def _exported(asked: Asked, form: str, *words: str) -> dict[str, Any]:
    """The first row of an export in a format."""
    path = asked.path.with_suffix(f".{form}")
    asked.stdout("export", "-o", str(path), *WEEK, *words)
    if form == "parquet":
        names = [*NAMES, "possible_incomplete"]
        rows = duckdb.read_parquet(str(path)).select(*names).fetchall()
        return dict(zip(names, rows[0], strict=True))
    with path.open(encoding="utf-8", newline="") as file:
        return _typed(next(map(json.loads, file) if form == "jsonl" else csv.DictReader(file)))


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "estimated": row["estimated"] in {True, "true"}}


@view("history --rule", OF_ONE_FINDING)
def _rule_text(asked: Asked) -> Cells:
    row = asked.table("history", "--rule", asked.scenario.rule, fields=["saving_usd"])[0]
    return people(row, {"rule": "saving_usd"})


@view("history --rule --output json", OF_ONE_FINDING)
def _rule_json(asked: Asked) -> Cells:
    row = asked.week("history", "--rule", asked.scenario.rule)[0]
    return of_rule(asked.scenario.bucket, row, "saving")


# one job


@view("show", OF_ONE_JOB)
def _show_text(asked: Asked) -> Cells:
    """The total of the bill and the dollars of the finding."""
    text = asked.stdout("show", JOB)
    cells = {}
    if spend := re.search(rf"[Cc]ost ({FIGURE})|of ({FIGURE})", text):
        cells["spend"] = read("spend", spend[1] or spend[2])
    word = asked.scenario.bucket
    if dollars := re.search(rf"  ({FIGURE}|{word},) (?:{word}|amount unknown)", text):
        cells["rule"] = read("rule", dollars[1] if "$" in dollars[1] else "unknown")
    return cells


@view("show --output json", OF_ONE_JOB)
def _show_json(asked: Asked) -> Cells:
    """The audit as `audit` prints it, too."""
    audit = json.loads(asked.stdout("show", JOB, "--output", "json"))
    estimated, idle = bool(audit["bill"]["estimated"]), audit["idle_capacity"] or {}
    row = {**audit["bill"], **audit, "estimated": estimated, "idle_usd": idle.get("list_usd")}
    row["possible_incomplete"] = any(
        finding["bucket"] == "possible" and finding["saving_usd"] is None
        for finding in audit["findings"]
    )
    return programs(row)


OF_ONE_JOB["page of the job"] = lambda asked: _tile_cells(asked.stdout("report", JOB, "-o", "-"))


@view("message", OF_ONE_JOB)
def _message(asked: Asked) -> Cells:
    """The message about the job, if it names what the job cost."""
    [head] = asked.history.runs(RunQuery.for_name(JOB))
    audit = asked.history.audit(head.key)
    assert audit is not None
    text = " ".join(plain.make_payload(document_card(audit))["message"].split())
    spend = re.search(rf"run cost ({FIGURE})|run's ({FIGURE})", text)
    return {"spend": read("spend", spend[1] or spend[2])} if spend else {}


# sums


_COLUMNS = ("family", "owner", "type", "account", "month", "week", "family,month", "status,type")


def _add_sums_by(columns: str) -> None:
    OF_SUMS[f"by {columns}"] = lambda asked: people(asked.table("by", columns)[-1])
    OF_SUMS[f"by {columns} --output json"] = lambda asked: programs(asked.week("by", columns)[-1])


for _columns in [
    "family",
    "owner",
    "type",
    "account",
    "month",
    "week",
    "family,month",
    "status,type",
]:
    _add_sums_by(_columns)


@view("by rule", OF_A_RULE)
def _by_rule_text(asked: Asked) -> Cells:
    """Dollars are those of the rule's findings."""
    field = f"{asked.scenario.bucket}_usd"
    [row] = asked.table("by", "rule", fields=[field])
    return people(row, {"rule": field})


@view("by rule --output json", OF_A_RULE)
def _by_rule_json(asked: Asked) -> Cells:
    [row] = asked.week("by", "rule")
    return of_rule(asked.scenario.bucket, row)


@view("changes", OF_CHANGES)
def _changes_text(asked: Asked) -> Cells:
    fields = {
        "spend": "total_usd",
        "spend_before": "total_before_usd",
        "change": "total_change_usd",
        "waste": "waste_usd",
    }
    return people(asked.table("changes", fields=fields.values())[0], fields)


@view("changes --output json", OF_CHANGES)
def _changes_json(asked: Asked) -> Cells:
    [row] = asked.week("changes")
    fields = {
        "spend": SUMS["spend"],
        "spend_before": {"usd": "total_before_usd", "word": "spend_qualifier_before"},
        "change": {"usd": "total_change_usd", "word": "change_qualifier"},
    }
    return programs(row, fields)


@view("by week, the week before", OF_CHANGES)
def _week_before(asked: Asked) -> Cells:
    field = "total_before_usd"
    return people(asked.table("by", "week", fields=[field])[-1], {"spend_before": field})


# Python


@view("Python, audits", OF_ONE_JOB)
def _python_audits(asked: Asked) -> Cells:
    with AuditHistory.open(asked.path) as history:
        [row] = history.audits(*DAYS)
    return programs({name: getattr(row, name) for name in (*NAMES, "possible_incomplete")})


@view("Python, by", OF_SUMS)
def _python_by(asked: Asked) -> Cells:
    with AuditHistory.open(asked.path) as history:
        [row] = history.by("family", *DAYS)
    unknown = [f"{name}_unknown" for name in ("avoidable", "lost", "possible", "idle")]
    return programs({name: getattr(row, name) for name in (*NAMES, *unknown)})


# the ranking of all jobs


@view("scan", OF_SUMS)
def _scan_text(asked: Asked) -> Cells:
    """The ranking that `scan` prints: all jobs, and the rule."""
    text = _printed_ranking(asked)
    lines = {**{name: name for name in ("spend", *BUCKETS)}, "idle": "idle capacity"}
    cells = {
        name: read(name, _first(rf"^{word} +({FIGURE}|unknown|not judged)(?: |$)", text))
        for name, word in lines.items()
    }
    if rule := asked.scenario.rule:
        row = re.split(r"\s{2,}", _first(rf"^({rule} {{2,}}\d.*)$", text))
        cells["rule"] = read("rule", row[2 + BUCKETS.index(asked.scenario.bucket)])
    return cells


@view("scan, family", OF_SUMS)
def _scan_family(asked: Asked) -> Cells:
    return _spent(re.split(r"\s{2,}", _first(rf"^({FAMILY}.*)$", _printed_ranking(asked)))[2:5])


@view("scan --output json", OF_SUMS)
def _scan_json(asked: Asked) -> Cells:
    made = scan_ranking.document(_ranking(asked))
    rule = of_rule(asked.scenario.bucket, made["rules"][0]) if asked.scenario.rule else {}
    [family] = made["families"]
    assert programs(family) == programs(made["total"])
    return {**programs(made["total"]), **rule}


def _printed_ranking(asked: Asked) -> str:
    out = io.StringIO()
    scan_ranking.show(_ranking(asked), Console(file=out, width=200))
    return out.getvalue()


def _ranking(asked: Asked) -> Ranking:
    return ranking(
        lambda scope: asked.history.daily_sums(scope, MONDAY, SUNDAY),
        MONDAY,
        SUNDAY,
        lambda _: None,
    )


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found, (pattern, text)
    return found[1]


def _spent(texts: list[str]) -> Cells:
    """The cells of spend, avoidable and lost, which stand in this order."""
    return dict(zip(SPENT, map(read, SPENT, texts), strict=True))


# the page of the account

OF_SUMS["page"] = lambda asked: _tile_cells(asked.stdout("report", *WEEK, "-o", "-"))


def tiles(page: str) -> dict[str, str]:
    """The figures of a page's first screen."""
    found = re.findall(
        r'<div class="(\w+)(?: \w+)*"><dt>[^<]*</dt><dd class="amount">(.*?)</dd>', page
    )
    shown = {kind: unescape(figure) for kind, figure in found}
    kinds = ("spent", "avoidable", "lost", "possible", "idle")
    return {("spend" if kind == "spent" else kind): shown[kind] for kind in kinds}


def _tile_cells(page: str) -> Cells:
    return {name: read(name, text) for name, text in tiles(page).items()}


def table_rows(page: str) -> list[list[str]]:
    """The cells of each row of a page's tables, without the title below a rule's name."""
    untitled = re.sub(r'</span><p class="dim">.*?</p>', "</span>", page)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", untitled)
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows)
    return [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in cells if row]


def _sums_of(asked: Asked, name: str) -> list[str]:
    """The figures of a family, owner, type or rule; the waterfall has rules in shorter rows."""
    return next(row[1:] for row in asked.page() if row[0] == name and len(row) in {6, 7})


@view("page, family", OF_SUMS)
def _page_family(asked: Asked) -> Cells:
    """Its sums by family, owner and type, of which each has one row."""
    sums = [_sums_of(asked, name) for name in (FAMILY, OWNER, TYPE)]
    # beside the spend is its change
    others = slice(2, 4) if asked.scenario.before else slice(1, 3)
    cells, *same = [_spent([row[0], *row[others]]) for row in sums]
    assert same == [cells, cells]
    return cells


@view("page, rule", OF_A_RULE)
def _page_rule(asked: Asked) -> Cells:
    figures = _sums_of(asked, asked.scenario.rule)
    return {"rule": read("rule", figures[BUCKETS.index(asked.scenario.bucket)])}


OF_SUMS["page, all jobs"] = lambda asked: _spent(_page_row(asked, "All jobs")[1:4])
OF_SUMS["page, chart"] = lambda asked: _spent(_page_row(asked, "5 Nov")[2:5])
OF_ONE_JOB["page, job"] = lambda asked: _spent(_page_row(asked, JOB)[1:4])


def _page_row(asked: Asked, name: str) -> list[str]:
    return next(row for row in asked.page() if row[0] == name)


@view("page, changes", OF_CHANGES)
def _page_changes(asked: Asked) -> Cells:
    """What changed since the week before; only changes that are known are listed."""
    row = next((row for row in asked.page() if row[0] == FAMILY and len(row) == 8), None)
    names = ("spend", "spend_before", "change")
    return {} if row is None else dict(zip(names, map(read, names, row[2:5]), strict=True))


@view("digest", OF_SUMS)
def _digest(asked: Asked) -> Cells:
    """The first line of the weekly digest, and its line on what was avoidable."""
    [made] = make_digests(asked.history, (MONDAY, SUNDAY), [None], (), lambda _: (), NOW)
    card = digest_card(made)
    line = next(line.text for line in card.lines if line.label == "Avoidable")
    text = card.headline.partition(": ")[2]
    spend = re.match(FIGURE, text)
    cells = _spent([spend[0] if spend else "unknown", *line.split("; lost: ")])
    if waste := re.search(rf", ({FIGURE}) of it|avoidable: (unknown|not judged)", text):
        return {**cells, "waste": read("waste", waste[1] or waste[2])}
    return cells
