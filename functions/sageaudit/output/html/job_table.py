"""A row for every job. The row itself is the data that the script sorts and filters by."""

from __future__ import annotations

from collections.abc import Iterator

from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Sums
from sageaudit.output.html.contents import AccountReport
from sageaudit.output.html.figure import scrolling
from sageaudit.output.html.markup import Child, Markup, join, tag
from sageaudit.output.text.amounts import of_head, of_sums
from sageaudit.output.text.money import Figure
from sageaudit.output.text.notes import family_words
from sageaudit.output.text.untrusted import middle
from sageaudit.output.text.words import NO_OWNER, counted

_NAME = 90
_MILLION = 1_000_000
FIRST = 100
"""Rows that are laid out at once; the others are drawn when they are asked for."""
_NOTHING = "$0.00"
COLUMNS = (
    *("Job", "Spend", "Avoidable", "Lost", "Findings", "Possible", "Idle"),
    *("Ended (UTC)", "Kind", "Status", "Instance type", "Count", "Owner", "Family", "Judged"),
)
"""First what one decides by; on a narrow screen the others are further right."""
_AMOUNTS = frozenset({"Spend", "Avoidable", "Lost", "Possible", "Idle"})
_JUDGED = {
    Judged.YES: "yes",
    Judged.PARTLY: "in part",
    Judged.NO: "no",
    None: "unknown",
}


def job_table(report: AccountReport) -> Markup | None:
    """The table with its filters; None without jobs."""
    if not report.heads:
        return None
    detailed = {at for at, detail in enumerate(report.details) if detail}
    rows = [_row(head, at if at in detailed else None) for at, head in enumerate(report.heads)]
    heads = (
        tag("th", title, scope="col", class_="n" if title in _AMOUNTS else None)
        for title in COLUMNS
    )
    whole = tag(
        "table",
        tag("thead", tag("tr", heads)),
        tag("tbody", rows[:FIRST]),
        tag("tbody", rows[FIRST:], class_="rest"),
        tag("tfoot", _foot(report.total)),
        id="all",
        class_="all",
    )
    return join([_filters(report), scrolling("Every job", whole)])


def _filters(report: AccountReport) -> Markup:
    """Shown by the script, which can use them."""
    search = tag("label", "Find ", tag("input", type="search", id="find", autocomplete="off"))
    kinds = sorted({head.kind for head in report.heads})
    statuses = sorted({head.status for head in report.heads})
    picks = (
        _select("Kind", kinds),
        _select("Status", statuses),
        _select("Judged", list(_JUDGED.values())),
    )
    said = tag("p", counted(len(report.heads), "job"), id="found", role="status")
    clear = tag("button", "Clear", type="button", id="clear")
    return tag(
        "form",
        tag("div", search, picks, clear, class_="filters"),
        said,
        id="filters",
        role="search",
        aria_label="Filter the jobs",
        hidden=True,
    )


def _select(title: str, values: list[str]) -> Markup:
    options = (tag("option", value, value=value) for value in values)
    every = tag("option", "all", value="")
    return tag(
        "label", f"{title} ", tag("select", every, options, data_column=COLUMNS.index(title))
    )


def _row(head: Head, section: int | None) -> Markup:
    name: Child = middle(head.name, _NAME)
    first = name if section is None else tag("a", name, href=f"#j{section}")
    spend, *found = of_head(head)
    avoidable, lost, possible, idle = map(_amount, found)
    cells = (
        tag("td", str(spend), class_="n", data_u=_micros(head)),
        *(avoidable, lost, tag("td", ", ".join(_rules(head)) or "-"), possible, idle),
        *(tag("td", text) for text in _texts(head)),
    )
    return tag("tr", tag("th", first, scope="row"), cells)


def _micros(head: Head) -> int | None:
    """What the row adds to the spend, in millionths of a dollar: the script sums them exactly."""
    known = head.sums is not None and not head.rollup and head.total_usd is not None
    return int(head.sums.total_usd * _MILLION) if known and head.sums else None


def _amount(figure: Figure) -> Markup:
    """Nothing is shown paler than something."""
    shown = str(figure)
    return tag("td", shown, class_="n z" if shown == _NOTHING else "n")


def _rules(head: Head) -> list[str]:
    """The rules that found something, the one that matters most first."""
    found = sorted(head.sums.rules) if head.sums else head.facts.found if head.facts else ()
    return list(dict.fromkeys([*filter(None, (head.top_rule,)), *found]))


def _texts(head: Head) -> Iterator[str]:
    facts = head.facts
    yield f"{head.ended_at:%Y-%m-%d %H:%M}"
    yield head.kind
    yield head.status
    yield type_name(facts.instance_type if facts else None)
    yield f"{facts.instance_count}" if facts and facts.instance_count else "-"
    yield owner_name(head.owner)
    yield family_name(head.family)
    yield _JUDGED[head.judged]


def family_name(name: str | None) -> str:
    """A family as rows and sums name it."""
    return middle(family_words(name or "unknown"), _NAME)


def owner_name(name: str | None) -> str:
    """An owner, or that there is none."""
    return middle(name, _NAME) if name else NO_OWNER


def type_name(name: str | None) -> str:
    """An instance type, or that there is not one."""
    return name or "several or unknown"


def _foot(total: Sums) -> Markup:
    spend, avoidable, lost, possible, idle = map(str, of_sums(total))
    shown = (spend, avoidable, lost, "", possible, idle)
    cells = (tag("td", text, class_="n") for text in shown)
    empty = (tag("td") for _ in COLUMNS[len(shown) + 1 :])
    return tag("tr", tag("th", "All jobs", scope="row"), cells, empty)
