"""The report of one job: the news, findings, phases, use, where the money went, the bill."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from sageaudit.domain.audit.document import (
    AuditDocument,
    JobDocument,
    LineDocument,
)
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.bill.bill_facts import NOT_IN_IT
from sageaudit.output.html.bars import waterfall
from sageaudit.output.html.contents import JobReport
from sageaudit.output.html.figure import Column, table
from sageaudit.output.html.findings import findings
from sageaudit.output.html.markup import Markup, join, tag
from sageaudit.output.html.page import section, tiles
from sageaudit.output.html.phases import timeline
from sageaudit.output.html.usage_charts import usage_charts
from sageaudit.output.text.estimate import about, about_usd, is_estimate
from sageaudit.output.text.headline import headline, whole_cost
from sageaudit.output.text.idle_capacity import IDLE_LABEL, idle_sentence
from sageaudit.output.text.job_words import family_words, when
from sageaudit.output.text.links import links
from sageaudit.output.text.message import pool_note, ran_on
from sageaudit.output.text.money import rate, rough_low, roughly, share, usd
from sageaudit.output.text.money_notes import money_notes
from sageaudit.output.text.unchecked import not_applicable, unchecked
from sageaudit.output.text.words import PRICES, capitalised, number

_REST = "rest"


def job_body(job: JobReport) -> Markup:
    """The main part of a job's page."""
    document = job.document
    if document["unauditable"] is not None:
        return join([_lead(document), tag("p", f"Could not be audited: {document['unauditable']}")])
    return join(
        [
            _lead(document),
            tiles(list(_figures(document))),
            _doubts(document),
            section("What to change", findings(document, short=False), id_="findings"),
            section(
                "What the run did",
                timeline(document, short=False),
                usage_charts(job, short=False) or _no_series(document),
            ),
            section("Where the money went", money(document)),
            section("Jobs of this tuning job", _children(document)),
            section("The bill", _bill(document)),
            section("What was not judged", _not_judged(document)),
            section("The rules that did not fire", _quiet(document)),
        ]
    )


def job_title(document: AuditDocument) -> str:
    """The page's title: the news, then the job."""
    return f"{capitalised(headline(document))} - {document['job']['name']}"


def short_job(job: JobReport) -> Markup:
    """What an account's report says of one job, below its name."""
    document = job.document
    if document["unauditable"] is not None:
        return tag("p", f"Could not be audited: {document['unauditable']}")
    return join(
        [
            tag("p", capitalised(headline(document)), ".", class_="lead"),
            tag("p", *_facts(document["job"]), class_="note"),
            _doubts(document),
            findings(document, short=True),
            money(document),
            timeline(document, short=True),
            usage_charts(job, short=True),
        ]
    )


def _lead(document: AuditDocument) -> Markup:
    job = document["job"]
    news = capitalised(headline(document)) if document["unauditable"] is None else "Not audited"
    return join(
        [
            tag("p", f"{job['kind']} job, {job['status']}", class_="eyebrow"),
            tag("h1", tag("bdi", job["name"])),
            tag("p", f"{news}.", class_="news"),
            tag("p", *_facts(job), class_="note"),
            _links(document),
        ]
    )


def _facts(job: JobDocument) -> Iterator[str]:
    where = f"account {job['account'] or 'unknown'}, {job['region'] or 'region unknown'}"
    owner = f"owner {job['owner'] or 'not known'}, family {family_words(job['family'])}"
    yield " · ".join(part for part in (ran_on(job), when(job), owner, where) if part)


def _links(document: AuditDocument) -> Markup | None:
    shown = links(document)
    if not shown:
        return None
    made = (tag("a", link.word, href=link.url, rel="noreferrer noopener") for link in shown)
    return tag("p", "In the AWS console: ", made, class_="links")


def _figures(document: AuditDocument) -> Iterator[tuple[str, str, str, str]]:
    bill, total = document["bill"], document["bill"]["total_usd"]
    estimated = bool(bill["estimated"])

    def shown(amount: Decimal | None) -> str:
        return about_usd(amount, estimated=estimated)

    def part(amount: Decimal | None) -> str:
        return f"{share(amount, total)} of the cost" if amount and total else ""

    avoidable, lost, most = (
        document["avoidable_usd"],
        document["lost_usd"],
        document["lost_up_to_usd"],
    )
    unjudged = avoidable is None and document["judged"] == Judged.NO
    yield "spent", "Cost", whole_cost(bill) or usd(None), ""
    yield "avoidable", "Avoidable", "not judged" if unjudged else shown(avoidable), part(avoidable)
    more = most if most and most > (lost or 0) else None
    yield "lost", "Lost", f"up to {shown(more)}" if more else shown(lost), part(more or lost)
    possible = document["possible_usd"]
    yield "possible", "Possible", rough_low(possible), "worth a trial, in no total"
    idle = document.get("idle_capacity")
    hours = "GPU-hours" if idle and idle["unit"] == "gpu_hours" else "vCPU-hours"
    said = f"{number(idle['idle'], 1)} of {number(idle['paid'], 1)} {hours}" if idle else ""
    yield "idle", IDLE_LABEL, roughly(idle["list_usd"]) if idle else usd(None), said


def _doubts(document: AuditDocument) -> Markup | None:
    """What to know before one acts: what was not judged, pools, capacity that was not used."""
    idle = idle_sentence(document)
    said = [*document["not_judged"], pool_note(document), f"{IDLE_LABEL}: {idle}" if idle else None]
    lines = [tag("li", line) for line in said if line]
    return tag("ul", lines, class_="doubts") if lines else None


def _no_series(document: AuditDocument) -> Markup | None:
    if document["rollup"]:
        return None
    return tag("p", "No metrics of its hosts are kept, so there is no chart of their use.")


def money(document: AuditDocument) -> Markup | None:
    """The waterfall from the cost to what was needed; None where the cost is not known."""
    total, slices = document["bill"]["total_usd"], document["waterfall"]
    steps = [
        (_step(part["slice"]), part["usd"], part["slice"].partition(":")[0])
        for part in slices
        if part["slice"] != _REST and part["usd"]
    ]
    if total is None or not steps:
        return None
    return waterfall("From the cost to what was needed", ("Cost", total), steps, "Needed")


def _step(name: str) -> str:
    """`some-gpus-unused (avoidable)` of `avoidable: some-gpus-unused`."""
    bucket, colon, rule = name.partition(": ")
    return f"{rule} ({bucket})" if colon else name


def _bill(document: AuditDocument) -> Markup | None:
    lines = document["bill"]["lines"]
    if not lines:
        return None
    columns = (
        Column("Item"),
        Column("Quantity", number=True),
        Column("Rate", number=True),
        Column("USD", number=True),
        Column("Price"),
    )
    total = whole_cost(document["bill"]) or usd(None)
    notes = [capitalised(note) for note in money_notes(document)]
    notes += [capitalised(note) for note in document["bill"]["notes"] if note == NOT_IN_IT]
    rows = table(columns, map(_line, lines), "The bill", foot=("Total", "", "", total, ""))
    return join([rows, tag("ul", (tag("li", note) for note in notes), class_="notes")])


def _line(line: LineDocument) -> tuple[str, ...]:
    quantity = "unknown"
    if line["quantity"] is not None:
        quantity = f"{number(line['quantity'], places=4)} {line['unit']}"
    no_rate = line["rate_usd"] is None and line["usd"] is not None
    price = None
    if line["price_as_of"]:
        source = f" ({line['price_source']})" if line["price_source"] else ""
        price = f"{PRICES[line['price_kind'] or 'list']} of {line['price_as_of']}{source}"
    estimated = is_estimate(line)
    return (
        line["item"].replace("_", " "),
        quantity,
        "-" if no_rate else about(rate(line["rate_usd"]), estimated=estimated),
        about_usd(line["usd"], estimated=estimated),
        ", ".join(part for part in (price, line["usage_type"], line["note"]) if part),
    )


def _not_judged(document: AuditDocument) -> Markup | None:
    lines = [tag("li", line) for line in unchecked(document)]
    return tag("ul", lines) if lines else None


def _quiet(document: AuditDocument) -> Markup | None:
    """Clear: judged, and nothing found. Not applicable: not meant for such a job."""
    parts = []
    if document["clear"]:
        parts.append(tag("p", f"Clear: {', '.join(document['clear'])}."))
    if document["not_applicable"]:
        rules = document["not_applicable"]
        reasons = [tag("li", f"{one['rule']}: {one['reason']}") for one in rules]
        said = not_applicable(rules, "reasons below")
        folded = tag("details", tag("summary", said), tag("ul", reasons), class_="data")
        parts.append(folded)
    return join(parts) if parts else None


def _children(document: AuditDocument) -> Markup | None:
    audits = document["children"]
    if not audits:
        return None
    columns = (
        Column("Job"),
        Column("Status"),
        *(Column(word, number=True) for word in ("Cost", "Avoidable", "Lost")),
    )
    rows = (
        (
            child["job"]["name"],
            child["job"]["status"],
            whole_cost(child["bill"]) or usd(None),
            usd(child["avoidable_usd"]),
            usd(child["lost_usd"]),
        )
        for child in audits
    )
    return table(columns, rows, "Jobs of this tuning job")
