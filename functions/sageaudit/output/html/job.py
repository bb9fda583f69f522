"""The report of one job: headline, findings, phases, metrics, where the money went, the bill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument, PhaseDocument
from sageaudit.domain.guides import GuideDocument
from sageaudit.domain.job.job import duration_text
from sageaudit.output.html.contents import JobReport, RuleExplanation
from sageaudit.output.html.legend import legend
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
_TIMELINE_HEIGHT = 30
_MAX_PHASES = 24
_COLOURS = 6
"""The style sheet has the classes p0 to p5."""


def job_body(job: JobReport) -> Markup:
    """Returns the main part of a job's page."""
    document = job.document
    if document["unauditable"] is not None:
        return join([_lead(document), tag("p", f"Could not be audited: {document['unauditable']}")])
    no_charts_text = "The metrics of its hosts were not kept, so there are no charts."
    charts_fallback = None if document["rollup"] else tag("p", no_charts_text)
    return join(
        [
            _lead(document),
            _tiles(document),
            _doubts(document),
            section(
                "What to change",
                findings(document, job.rules, short=False),
                legend(),
                id_="findings",
            )
            if document["findings"]
            else legend(),
            section(
                "What the run did",
                _timeline(document, short=False),
                usage_charts(job, short=False) or charts_fallback,
            ),
            section("Where the money went", _money(document)),
            section(notes.children_title(document), _children(document)),
            section("The bill", _bill(document)),
            _guides(job.guides),
            section("What was not judged", _bullet_list(notes.unchecked_lines(document))),
            section("Rules that did not fire", _rules_without_finding(document)),
        ]
    )


def job_title(document: AuditDocument) -> str:
    """Returns the page's title."""
    return f"{capitalised(headline(document))} - {document['job']['name']}"


def short_job(job: JobReport, rules: Mapping[str, RuleExplanation]) -> Markup:
    """Returns the section about one job in an account's report, without the job's name.

    `rules`: an explanation of each rule by its name.
    """
    document = job.document
    if document["unauditable"] is not None:
        return tag("p", f"Could not be audited: {document['unauditable']}")
    return join(
        [
            tag("p", capitalised(headline(document)), ".", class_="lead"),
            tag("p", _facts(document), class_="note"),
            _doubts(document),
            findings(document, rules, short=True),
            _money(document),
            _timeline(document, short=True),
            usage_charts(job, short=True),
        ]
    )


def _lead(document: AuditDocument) -> Markup:
    job = document["job"]
    headline_text = (
        capitalised(headline(document)) if document["unauditable"] is None else "Not audited"
    )
    console_links = [
        tag("a", link.label, href=link.url, rel="noreferrer noopener")
        for link in document_links(document)
    ]
    return join(
        [
            tag("p", f"{job['kind']} job, {job['status']}", class_="eyebrow"),
            tag("h1", tag("bdi", job["name"])),
            tag("p", f"{headline_text}.", class_="headline"),
            tag("p", _facts(document), class_="note"),
            tag("p", "In the AWS console: ", console_links, class_="links")
            if console_links
            else None,
        ]
    )


def _facts(document: AuditDocument) -> str:
    job = document["job"]
    facts = (
        notes.instances_text(job),
        notes.times_text(document),
        notes.owner_family_text(job),
        notes.account_region_text(job),
    )
    return " · ".join(fact for fact in facts if fact)


def _tiles(document: AuditDocument) -> Markup:
    amounts, total_usd = document_amounts(document), document["bill"]["total_usd"]
    idle_hours_text = ""
    if idle := document["idle_capacity"]:
        hours_text = f"{format_number(idle['idle'], 1)} of {format_number(idle['paid'], 1)}"
        idle_hours_text = f"{hours_text} {UNIT_WORDS[idle['unit']]}"

    def share_of_cost(figure: Figure) -> str:
        if not figure.upper_end or not total_usd:
            return ""
        return f"{percent_text(figure.upper_end, total_usd)} of the cost"

    trial_note = "worth a trial; not in the totals"
    return tiles(
        ("avoidable", "Avoidable", str(amounts.avoidable), share_of_cost(amounts.avoidable)),
        ("spent", "Cost", str(amounts.spend), ""),
        ("lost", "Lost", str(amounts.lost), share_of_cost(amounts.lost)),
        ("possible", "Possible", str(amounts.possible), trial_note),
        ("idle", "Idle capacity", str(amounts.idle), idle_hours_text),
    )


def _doubts(document: AuditDocument) -> Markup | None:
    idle_text = idle_sentence(document)
    doubts = [
        *document["not_judged"],
        notes.pool_note(document),
        f"{IDLE_LABEL}: {idle_text}" if idle_text else None,
    ]
    return _bullet_list([doubt for doubt in doubts if doubt], "doubts")


def _bullet_list(lines: Sequence[str], css_class: str | None = None) -> Markup | None:
    return tag("ul", (tag("li", line) for line in lines), class_=css_class) if lines else None


def _money(document: AuditDocument) -> Markup | None:
    """Returns the chart of the needed cost; None if the cost is unknown or nothing was wasted."""
    estimated = bool(document["bill"]["estimated"])
    steps = [
        (
            _step_title(part["slice"]),
            Figure(part["usd"], estimated=estimated),
            part["slice"].partition(":")[0],
        )
        for part in document["waterfall"]
        if part["slice"] != _REST and part["usd"]
    ]
    if document["bill"]["total_usd"] is None or not steps:
        return None
    cost = ("Cost", document_amounts(document).spend)
    return waterfall("How much of the cost was needed", cost, steps, "Needed")


def _step_title(slice_name: str) -> str:
    bucket, colon, rule = slice_name.partition(": ")
    return f"{rule} ({bucket})" if colon else slice_name


def _bill(document: AuditDocument) -> Markup | None:
    lines = document["bill"]["lines"]
    if not lines:
        return None
    numbers = ("Quantity", "Rate", "USD")
    titles = ("Item", *numbers, "Price")
    foot = ("Total", "", "", str(document_amounts(document).spend), "")
    rows = table(titles, map(notes.bill_line_cells, lines), "The bill", numbers=numbers, foot=foot)
    return join([rows, _bullet_list(list(map(capitalised, notes.money_notes(document))), "notes")])


def _rules_without_finding(document: AuditDocument) -> Markup | None:
    elements = []
    if document["clear"]:
        elements.append(tag("p", f"Checked, nothing found: {', '.join(document['clear'])}."))
    if rules := document["not_applicable"]:
        reasons = _bullet_list([f"{rule['rule']}: {rule['reason']}" for rule in rules])
        summary = tag("summary", notes.not_applicable_text(rules, "reasons below"))
        elements.append(tag("details", summary, reasons, class_="data"))
    return join(elements) if elements else None


def _guides(guides: Sequence[GuideDocument]) -> Markup | None:
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
    """Returns the job's phases; None if no duration is known. With `short` they have no table."""
    phases = document["phases"]
    total_s = sum((phase["seconds"] or Decimal(0) for phase in phases), Decimal(0))
    if not total_s:
        return None
    names = dict.fromkeys(phase["name"] for phase in phases)
    colours = {name: f"p{index % _COLOURS}" for index, name in enumerate(names)}
    phases_text = ", ".join(
        f"{phase['name']} {duration_text(phase['seconds'])}" for phase in phases[:_MAX_PHASES]
    )
    rects = _phase_rects(phases, total_s, colours)
    label = f"Phases in order: {phases_text}"
    svg = svg_chart(label, _TIMELINE_HEIGHT, rects, class_="chart line")
    below = tag("p", phases_text, class_="note") if short else _phase_table(document, colours)
    unbilled_text = "" if all(phase["billed"] for phase in phases) else ", with those not billed"
    return figure(f"Phases, {duration_text(total_s)} in total{unbilled_text}", svg, below)


def _phase_rects(
    phases: Sequence[PhaseDocument], total_s: Decimal, colours: dict[str, str]
) -> Iterator[Markup]:
    start_s = Decimal(0)
    for phase in phases:
        if seconds := phase["seconds"]:
            horizontal = {"x": start_s, "width": seconds}
            yield tag(
                "rect",
                tag("title", f"{phase['name']}: {duration_text(seconds)}"),
                height=_TIMELINE_HEIGHT,
                class_=_css_class(phase, colours),
                **{
                    key: f"{float(value / total_s * 100):.2f}%" for key, value in horizontal.items()
                },
            )
            start_s += seconds


def _css_class(phase: PhaseDocument, colours: dict[str, str]) -> str:
    return colours[phase["name"]] + ("" if phase["billed"] else " free")


def _phase_table(document: AuditDocument, colours: dict[str, str]) -> Markup:
    phases = document["phases"]
    rows: list[tuple[Child, ...]] = [
        (
            (tag("i", class_=_css_class(phase, colours)), phase["name"]),
            duration_text(phase["seconds"]),
            ": ".join(
                filter(
                    None,
                    (notes.phase_cost_text(phase, document["bill"]), phase["not_billed_because"]),
                )
            ),
        )
        for phase in phases[:_MAX_PHASES]
    ]
    if len(phases) > _MAX_PHASES:
        rows.append((f"+{len(phases) - _MAX_PHASES} more", "", ""))
    return table(("Phase", "Time", "Cost"), rows, "Phases", numbers=("Time", "Cost"))
