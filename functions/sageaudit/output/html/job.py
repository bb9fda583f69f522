"""The report of one job: the headline, findings, phases, use, where the money went, the bill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, JobDocument, PhaseDocument
from sageaudit.domain.guides import GuideDocument
from sageaudit.domain.job.job import duration_text
from sageaudit.output.html.contents import JobReport
from sageaudit.output.html.markup import (
    Child,
    Markup,
    figure,
    join,
    svg_chart,
    table,
    tag,
    waterfall,
)
from sageaudit.output.html.page import findings, section, tiles
from sageaudit.output.html.usage_charts import usage_charts
from sageaudit.output.text import notes
from sageaudit.output.text.amounts import IDLE_LABEL, UNIT_WORDS, document_amounts, idle_sentence
from sageaudit.output.text.headline import headline
from sageaudit.output.text.links import document_links
from sageaudit.output.text.money import Figure, percent_text
from sageaudit.output.text.words import GUIDES_TITLE, capitalised, count_text, format_number

_REST = "rest"
_LINE_HEIGHT = 30
_PHASES = 24
_COLOURS = 6
"""Classes p0 to p5 of the style sheet."""


def job_body(job: JobReport) -> Markup:
    """The main part of a job's page."""
    document = job.document
    if document["unauditable"] is not None:
        return join([_lead(document), tag("p", f"Could not be audited: {document['unauditable']}")])
    no_series = "No metrics of its hosts are kept, so there is no chart of their use."
    without = None if document["rollup"] else tag("p", no_series)
    return join(
        [
            _lead(document),
            _tiles(document),
            _doubts(document),
            section("What to change", findings(document, short=False), id_="findings"),
            section(
                "What the run did",
                _timeline(document, short=False),
                usage_charts(job, short=False) or without,
            ),
            section("Where the money went", _money(document)),
            section(notes.children_title(document), _children(document)),
            section("The bill", _bill(document)),
            _guides(job.guides),
            section("What was not judged", _bullet_list(notes.unchecked_lines(document))),
            section("The rules that did not fire", _quiet(document)),
        ]
    )


def job_title(document: AuditDocument) -> str:
    """The page's title: the headline, then the job."""
    return f"{capitalised(headline(document))} - {document['job']['name']}"


def short_job(job: JobReport) -> Markup:
    """What an account's report says of one job, below its name."""
    document = job.document
    if document["unauditable"] is not None:
        return tag("p", f"Could not be audited: {document['unauditable']}")
    return join(
        [
            tag("p", capitalised(headline(document)), ".", class_="lead"),
            tag("p", _facts(document["job"]), class_="note"),
            _doubts(document),
            findings(document, short=True),
            _money(document),
            _timeline(document, short=True),
            usage_charts(job, short=True),
        ]
    )


def _lead(document: AuditDocument) -> Markup:
    job = document["job"]
    first_line = (
        capitalised(headline(document)) if document["unauditable"] is None else "Not audited"
    )
    console = [
        tag("a", link.label, href=link.url, rel="noreferrer noopener")
        for link in document_links(document)
    ]
    return join(
        [
            tag("p", f"{job['kind']} job, {job['status']}", class_="eyebrow"),
            tag("h1", tag("bdi", job["name"])),
            tag("p", f"{first_line}.", class_="headline"),
            tag("p", _facts(job), class_="note"),
            tag("p", "In the AWS console: ", console, class_="links") if console else None,
        ]
    )


def _facts(job: JobDocument) -> str:
    facts = (
        notes.instances_text(job),
        notes.times_text(job),
        notes.owner_family_text(job),
        notes.account_region_text(job),
    )
    return " · ".join(fact for fact in facts if fact)


def _tiles(document: AuditDocument) -> Markup:
    found, total, idle = document_amounts(document), document["bill"]["total_usd"], ""
    if hours := document["idle_capacity"]:
        worked = f"{format_number(hours['idle'], 1)} of {format_number(hours['paid'], 1)}"
        idle = f"{worked} {UNIT_WORDS[hours['unit']]}"

    def part(amount: Figure) -> str:
        return (
            f"{percent_text(amount.upper_end, total)} of the cost"
            if amount.upper_end and total
            else ""
        )

    trial = "worth a trial, in no total"
    return tiles(
        ("avoidable", "Avoidable", str(found.avoidable), part(found.avoidable)),
        ("spent", "Cost", str(found.spend), ""),
        ("lost", "Lost", str(found.lost), part(found.lost)),
        ("possible", "Possible", str(found.possible), trial),
        ("idle", "Idle capacity", str(found.idle), idle),
    )


def _doubts(document: AuditDocument) -> Markup | None:
    """What to know before one acts: what was not judged, pools, capacity that was not used."""
    idle = idle_sentence(document)
    doubts = [
        *document["not_judged"],
        notes.pool_note(document),
        f"{IDLE_LABEL}: {idle}" if idle else None,
    ]
    return _bullet_list([line for line in doubts if line], "doubts")


def _bullet_list(lines: Sequence[str], kind: str | None = None) -> Markup | None:
    return tag("ul", (tag("li", line) for line in lines), class_=kind) if lines else None


def _money(document: AuditDocument) -> Markup | None:
    """The waterfall from the cost to what was needed; None where the cost is not known."""
    estimated = bool(document["bill"]["estimated"])
    steps = [
        (
            _step(part["slice"]),
            Figure(part["usd"], estimated=estimated),
            part["slice"].partition(":")[0],
        )
        for part in document["waterfall"]
        if part["slice"] != _REST and part["usd"]
    ]
    if document["bill"]["total_usd"] is None or not steps:
        return None
    cost = ("Cost", document_amounts(document).spend)
    return waterfall("From the cost to what was needed", cost, steps, "Needed")


def _step(name: str) -> str:
    """`some-gpus-unused (avoidable)` of `avoidable: some-gpus-unused`."""
    bucket, colon, rule = name.partition(": ")
    return f"{rule} ({bucket})" if colon else name


def _bill(document: AuditDocument) -> Markup | None:
    lines = document["bill"]["lines"]
    if not lines:
        return None
    numbers = ("Quantity", "Rate", "USD")
    titles = ("Item", *numbers, "Price")
    foot = ("Total", "", "", str(document_amounts(document).spend), "")
    rows = table(titles, map(notes.bill_line_cells, lines), "The bill", numbers=numbers, foot=foot)
    return join([rows, _bullet_list(list(map(capitalised, notes.money_notes(document))), "notes")])


def _quiet(document: AuditDocument) -> Markup | None:
    """Clear: judged, and nothing found. Not applicable: not meant for such a job."""
    parts = []
    if document["clear"]:
        parts.append(tag("p", f"Clear: {', '.join(document['clear'])}."))
    if rules := document["not_applicable"]:
        reasons = _bullet_list([f"{one['rule']}: {one['reason']}" for one in rules])
        summary = tag("summary", notes.not_applicable_text(rules, "reasons below"))
        parts.append(tag("details", summary, reasons, class_="data"))
    return join(parts) if parts else None


def _guides(guides: Sequence[GuideDocument]) -> Markup | None:
    """Closed until somebody opens it: they are no findings of this run."""
    if not guides:
        return None
    rows = (
        tag(
            "li",
            tag("b", guide["name"]),
            f": {guide['says']} ",
            tag("a", "Source", href=guide["source"], rel="noreferrer noopener"),
        )
        for guide in guides
    )
    summary = tag("summary", count_text(len(guides), "guide"))
    return section(
        GUIDES_TITLE, tag("details", summary, tag("ul", rows), class_="data"), id_="guides"
    )


def _children(document: AuditDocument) -> Markup | None:
    audits = document["children"]
    if not audits:
        return None
    numbers = ("Cost", "Avoidable", "Lost")
    rows = (
        (child["job"]["name"], child["job"]["status"], *map(str, document_amounts(child)[:3]))
        for child in audits
    )
    titles = ("Job", "Status", *numbers)
    return table(titles, rows, notes.children_title(document), numbers=numbers)


def _timeline(document: AuditDocument, *, short: bool) -> Markup | None:
    """The phases as one line of time; None where none is known. `short` leaves out the table."""
    phases = document["phases"]
    whole = sum((phase["seconds"] or Decimal(0) for phase in phases), Decimal(0))
    if not whole:
        return None
    names = dict.fromkeys(phase["name"] for phase in phases)
    colours = {name: f"p{at % _COLOURS}" for at, name in enumerate(names)}
    in_order = ", ".join(
        f"{phase['name']} {duration_text(phase['seconds'])}" for phase in phases[:_PHASES]
    )
    rects = _rects(phases, whole, colours)
    svg = svg_chart(f"Phases in order: {in_order}", _LINE_HEIGHT, rects, class_="chart line")
    below = tag("p", in_order, class_="note") if short else _phases(document, colours)
    return figure(f"Phases, {duration_text(whole)} in all", svg, below)


def _rects(
    phases: Sequence[PhaseDocument], whole: Decimal, colours: dict[str, str]
) -> Iterator[Markup]:
    at = Decimal(0)
    for phase in phases:
        if seconds := phase["seconds"]:
            place = {"x": at, "width": seconds}
            yield tag(
                "rect",
                tag("title", f"{phase['name']}: {duration_text(seconds)}"),
                height=_LINE_HEIGHT,
                class_=_kind(phase, colours),
                **{key: f"{float(part / whole * 100):.2f}%" for key, part in place.items()},
            )
            at += seconds


def _kind(phase: PhaseDocument, colours: dict[str, str]) -> str:
    """The classes of a phase's colour; paler where it is not billed."""
    return colours[phase["name"]] + ("" if phase["billed"] else " free")


def _phases(document: AuditDocument, colours: dict[str, str]) -> Markup:
    phases = document["phases"]
    rows: list[tuple[Child, ...]] = [
        (
            (tag("i", class_=_kind(phase, colours)), phase["name"]),
            duration_text(phase["seconds"]),
            ": ".join(
                filter(
                    None,
                    (notes.phase_cost_text(phase, document["bill"]), phase["not_billed_because"]),
                )
            ),
        )
        for phase in phases[:_PHASES]
    ]
    if len(phases) > _PHASES:
        rows.append((f"+{len(phases) - _PHASES} more", "", ""))
    return table(("Phase", "Time", "Cost"), rows, "Phases", numbers=("Time", "Cost"))
