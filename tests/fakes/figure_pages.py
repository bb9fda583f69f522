"""What pages, rankings and messages of all jobs say of the figures of a history."""

import io
import re
from datetime import date
from html import unescape

from rich.console import Console

from sageaudit.cli.views import ranking as scan_ranking
from sageaudit.domain.audit.ranking import Ranking, ranking
from sageaudit.output.text.digest import digest_card
from sageaudit.workflows.digest import digests
from tests.fakes.figure_asked import WEEK, Asked
from tests.fakes.figure_cells import (
    FIGURE,
    Cells,
    of_rule,
    programs,
    read,
)
from tests.fakes.figure_scenarios import BUCKETS, FAMILY, NOW, OWNER, TYPE

# pages, rankings and messages of all jobs


def scan_text(asked: Asked) -> Cells:
    """The ranking that `scan` prints: all jobs, and the rule."""
    console = Console(file=io.StringIO(), width=200)
    scan_ranking.show(_ranking(asked), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    lines = {name: name for name in ("spend", "avoidable", "lost", "possible")}
    lines["idle"] = "idle capacity"
    cells = {
        name: read(name, _first(rf"^{word} +({FIGURE}|unknown|not judged)(?: |$)", text))
        for name, word in lines.items()
    }
    if asked.scenario.rule:
        [row] = [re.split(r"\s{2,}", one) for one in text.splitlines() if _is_rule(asked, one)]
        column = ("avoidable", "lost", "possible").index(BUCKETS[asked.scenario.rule_name])
        cells["rule"] = read("rule", row[2 + column])
    return cells


def _is_rule(asked: Asked, line: str) -> bool:
    return bool(re.match(rf"{asked.scenario.rule_name} {{2,}}\d", line))


def scan_family(asked: Asked) -> Cells:
    """The same of the family."""
    console = Console(file=io.StringIO(), width=200)
    scan_ranking.show(_ranking(asked), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    row = next(re.split(r"\s{2,}", one) for one in text.splitlines() if one.startswith(FAMILY))
    return dict(zip(("spend", "avoidable", "lost"), map(read, _THREE, row[2:5]), strict=True))


_THREE = ("spend", "avoidable", "lost")


def scan_json(asked: Asked) -> Cells:
    """`scan --output json`."""
    made = scan_ranking.document(_ranking(asked))
    rule = of_rule(asked.scenario.rule_name, made["rules"][0]) if asked.scenario.rule else {}
    [family] = made["families"]
    assert programs(family) == programs(made["total"])
    return {**programs(made["total"]), **rule}


def _ranking(asked: Asked) -> Ranking:
    since, until = date(2026, 11, 2), date(2026, 11, 8)
    return ranking(
        lambda scope: asked.history.sums(scope, since, until), since, until, lambda _: None
    )


def page_tiles(asked: Asked) -> Cells:
    """The page of the account: its tiles."""
    return page_figures(asked.stdout("report", *WEEK, "-o", "-"))


def page_family(asked: Asked) -> Cells:
    """Its sums by family, owner and type, of which each has one row."""
    rows = table_rows(asked.stdout("report", *WEEK, "-o", "-"))
    compared = bool(asked.scenario.before)
    found = []
    for name in (FAMILY, OWNER, TYPE):
        row = next(row for row in rows if row[0] == name and len(row) in {6, 7})
        spend, *others = row[1:]
        others = others[1:] if compared else others
        found.append(tuple(map(read, _THREE, (spend, *others[:2]))))
    assert len({*found}) == 1, found
    return dict(zip(_THREE, found[0], strict=True))


def page_rule(asked: Asked) -> Cells:
    """Its sums by rule."""
    rows = table_rows(asked.stdout("report", *WEEK, "-o", "-"))
    # the waterfall above has the rule, too
    row = next(row for row in rows if row[0] == asked.scenario.rule_name and len(row) in {6, 7})
    figures = row[1:2] + row[3:] if asked.scenario.before else row[1:]
    column = ("avoidable", "lost", "possible").index(BUCKETS[asked.scenario.rule_name])
    return {"rule": read("rule", figures[column])}


def page_foot(asked: Asked) -> Cells:
    """The last line of its table of jobs."""
    rows = table_rows(asked.stdout("report", *WEEK, "-o", "-"))
    row = next(row for row in rows if row[0] == "All jobs")
    return dict(zip(_THREE, map(read, _THREE, row[1:4]), strict=True))


def page_job(asked: Asked) -> Cells:
    """The job's line of that table."""
    rows = table_rows(asked.stdout("report", *WEEK, "-o", "-"))
    row = next(row for row in rows if row[0] == asked.job)
    return dict(zip(_THREE, map(read, _THREE, row[1:4]), strict=True))


def page_chart(asked: Asked) -> Cells:
    """The data of its chart over time."""
    rows = table_rows(asked.stdout("report", *WEEK, "-o", "-"))
    row = next(row for row in rows if row[0] == "5 Nov")
    return dict(zip(_THREE, map(read, _THREE, row[2:5]), strict=True))


def page_changes(asked: Asked) -> Cells:
    """What changed since the week before; only changes that are known are listed."""
    rows = table_rows(asked.stdout("report", *WEEK, "-o", "-"))
    row = next((row for row in rows if row[0] == FAMILY and len(row) == 8), None)
    names = ("spend", "spend_before", "change")
    return {} if row is None else dict(zip(names, map(read, names, row[2:5]), strict=True))


def digest(asked: Asked) -> Cells:
    """The weekly digest: its first line, and the line on what was avoidable."""
    week = (date(2026, 11, 2), date(2026, 11, 8))
    [made] = digests(asked.history, week, [None], (), lambda _: (), NOW)
    card = digest_card(made)
    avoidable, lost = next(line.text for line in card.lines if line.label == "Avoidable").split(
        ", lost: "
    )
    text = card.headline.partition(": ")[2]
    spend = re.match(FIGURE, text)
    cells = {
        "spend": read("spend", spend[0] if spend else "unknown"),
        "avoidable": read("avoidable", avoidable),
        "lost": read("lost", lost),
    }
    if waste := re.search(rf", ({FIGURE}) of it|avoidable: (unknown|not judged)", text):
        cells["waste"] = read("waste", waste[1] or waste[2])
    return cells


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found, (pattern, text)
    return found[1]


def tiles(page: str) -> dict[str, str]:
    """The figures of a page's first screen."""
    found = re.findall(r'<div class="(\w+)"><dt>[^<]*</dt><dd class="amount">(.*?)</dd>', page)
    shown = {kind: unescape(figure) for kind, figure in found}
    kinds = ("spent", "avoidable", "lost", "possible", "idle")
    return {("spend" if kind == "spent" else kind): shown[kind] for kind in kinds}


def page_figures(page: str) -> Cells:
    """The cells of the same."""
    return {name: read(name, text) for name, text in tiles(page).items()}


def table_rows(page: str) -> list[list[str]]:
    """The cells of each row of a page's tables."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page)
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows)
    return [[unescape(re.sub(r"<[^>]+>", "", one)) for one in row] for row in cells if row]
