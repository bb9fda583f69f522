"""The lists that the command line prints: their fields, tables, and what a narrow terminal lacks.

docs/queries.md describes the fields. Amounts have the words of the audit's own view: "about" at an
estimated rate, "or more" where a part of the bill is missing, "not judged".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sageaudit.cli.support.history.formats import Field, Kind, Listing
from sageaudit.domain.audit.judgement import Judged
from sageaudit.output.text.account_words import judged_sum, summed, summed_spend
from sageaudit.output.text.money import cents, rough_low, roughly
from sageaudit.queries.question import Sort
from sageaudit.queries.rows import AuditRow
from sageaudit.queries.totals import Total

NO_OWNER = "(no owner)"
_NAME, _FULL_NAME, _WORD = 20, 44, 12
"""The least widths of texts. `_FULL_NAME` is that of the job names that the SDKs make: a name is
given to `sageaudit show`, so columns are dropped before it is cut."""


def _bill(row: AuditRow) -> str:
    """The cost; a roll-up has none of its own."""
    if row.rollup and not row.total_usd:
        return "roll-up"
    shown = summed(row.total_usd, row.estimated)
    return f"{shown} or more" if row.incomplete and row.total_usd is not None else shown


def _spend(total: Total) -> str:
    return summed_spend(total.total_usd, total.estimated, total.incomplete + total.unpriced)


def _judged(name: str) -> Callable[[AuditRow], str]:
    """An amount of what could be judged: "not judged" where nothing could."""

    def shown(row: AuditRow) -> str:
        amount = getattr(row, name)
        if amount is None and row.judged is Judged.NO:
            return "not judged"
        return summed(amount, row.estimated)

    return shown


def _summed(name: str) -> Callable[[Total], str]:
    def shown(total: Total) -> str:
        return judged_sum(getattr(total, name), total)

    return shown


def _lost(row: AuditRow | Total) -> str:
    """`up to $41.00` where how much of it is lost is not known."""
    most, estimated = row.lost_up_to_usd, bool(row.estimated)
    if most is not None and most > (row.lost_usd or 0):
        return f"up to {summed(most, estimated)}"
    return summed(row.lost_usd, estimated)


def _saving(row: AuditRow) -> str:
    if row.saving_usd is None:
        return "-"
    if row.bucket is not None and not row.bucket.counted and row.saving_usd:
        return rough_low(row.saving_usd)
    return summed(row.saving_usd, row.estimated)


def _change(total: Total) -> str:
    """`+12.5%`; dollars where the period before had none."""
    if total.change_percent is not None:
        return f"{total.change_percent:+,.1f}%"
    if not total.change_usd:
        return "-"
    shown = cents(total.change_usd)
    return shown if shown.startswith("<") else f"+{shown}"


_JOB = Field("job", least=_FULL_NAME)
_FAMILY = Field("family", least=28)
_SAID = Field("summary", heading="Finding", least=20, sentence=True)
_ENDED = Field("ended_at", Kind.TIME, "Ended", lambda row: f"{row.ended_at:%Y-%m-%d}")
_OF_A_RUN = (
    _ENDED,
    _JOB,
    Field("kind"),
    Field("account"),
    Field("region"),
    _FAMILY,
    Field("owner", least=_WORD),
    Field("severity"),
    Field("rollup", Kind.FLAG, "Roll-up"),
    Field("estimated", Kind.FLAG),
    Field("arn", heading="ARN", least=_NAME),
    Field("created_at", Kind.TIME, "Created (UTC)"),
)
_OF_AN_AUDIT = (
    Field("status"),
    Field("total_usd", Kind.USD, "Bill", _bill),
    Field("avoidable_usd", Kind.USD, "Avoidable", _judged("avoidable_usd")),
    Field("lost_usd", Kind.USD, "Lost", _lost),
    Field("lost_up_to_usd", Kind.USD),
    Field("waste_usd", Kind.USD, "Avoidable+lost", _judged("waste_usd")),
    Field("possible_usd", Kind.USD, "Possible", lambda row: rough_low(row.possible_usd)),
    Field("idle_usd", Kind.USD, "Idle capacity", lambda row: roughly(row.idle_usd)),
    Field("top_rule", heading="Top finding"),
    Field("findings", Kind.COUNT),
    Field("judged"),
    Field("settled", Kind.FLAG),
    Field("incomplete", Kind.FLAG),
    Field("unauditable", least=_NAME),
    Field("instance_type"),
    Field("instance_count", Kind.COUNT),
    Field("purchase"),
    Field("version", Kind.COUNT),
    Field("ruleset"),
    Field("policy"),
)
_OF_A_FINDING = (
    Field("rule"),
    Field("rule_id", heading="Id"),
    Field("confidence"),
    Field("bucket"),
    Field("saving_usd", Kind.USD, "Saving", _saving),
    Field("saving_alone_usd", Kind.USD, "Alone"),
    _SAID,
)
AUDITS = Listing(
    (*_OF_A_RUN, *_OF_AN_AUDIT),
    ("ended_at", "job", "total_usd", "avoidable_usd", "lost_usd", "top_rule"),
    ("top_rule", "ended_at", "lost_usd", "avoidable_usd"),
)
"""Audits: every field is known of every row."""
FINDINGS = Listing(
    (*_OF_A_RUN, *_OF_A_FINDING, *_OF_AN_AUDIT),
    ("ended_at", "job", "severity", "saving_usd", "summary"),
    ("summary", "severity", "ended_at"),
    tuple(field.name for field in (*_OF_A_RUN, *_OF_A_FINDING)),
)
"""Findings of one rule; a field of the audit costs one more read for each row."""
TOP = Listing(
    AUDITS.fields,
    ("job", "ended_at", "total_usd", "waste_usd", "top_rule", "owner"),
    ("owner", "top_rule", "ended_at", "total_usd"),
)
_AMOUNTS = (
    Field("jobs", Kind.COUNT),
    Field("total_usd", Kind.USD, "Spend", _spend),
    Field("avoidable_usd", Kind.USD, "Avoidable", _summed("avoidable_usd")),
    Field("lost_usd", Kind.USD, "Lost", _lost),
    Field("lost_up_to_usd", Kind.USD),
    Field("waste_usd", Kind.USD, "Avoidable+lost", _summed("waste_usd")),
    Field("possible_usd", Kind.USD, "Possible", lambda total: rough_low(total.possible_usd)),
    Field("idle_usd", Kind.USD, "Idle capacity", lambda total: roughly(total.idle_usd)),
    Field("top_rule", heading="Top finding"),
    Field("unauditable", Kind.COUNT),
    Field("not_judged", Kind.COUNT),
    Field("partly_judged", Kind.COUNT),
    Field("unpriced", Kind.COUNT),
    Field("incomplete", Kind.COUNT),
    Field("estimated", Kind.COUNT),
)
FAMILIES = Listing(
    (_FAMILY, Field("account"), Field("region"), *_AMOUNTS),
    ("family", "jobs", "total_usd", "avoidable_usd", "lost_usd", "top_rule"),
    ("top_rule", "jobs", "lost_usd", "total_usd"),
)
OWNERS = Listing(
    (Field("owner", cell=lambda total: total.owner or NO_OWNER, least=_NAME), *_AMOUNTS),
    ("owner", "jobs", "total_usd", "avoidable_usd", "lost_usd", "top_rule"),
    ("top_rule", "jobs", "lost_usd"),
)
TREND = Listing(
    (
        Field(
            "period", cell=lambda total: total.period if total.over else f"{total.period} so far"
        ),
        Field("first_day", Kind.DAY),
        Field("last_day", Kind.DAY),
        Field("over", Kind.FLAG),
        *_AMOUNTS,
        Field("waste_before_usd", Kind.USD, "Before"),
        Field("change_usd", Kind.USD, "Change in USD"),
        Field("change_percent", Kind.PERCENT, "Change", _change),
    ),
    ("period", "jobs", "total_usd", "avoidable_usd", "lost_usd", "waste_usd", "change_percent"),
    ("avoidable_usd", "lost_usd", "jobs"),
)
RULES = Listing(
    (
        Field("rule", least=_NAME),
        Field("findings", Kind.COUNT),
        Field("avoidable_usd", Kind.USD, "Avoidable"),
        Field("lost_usd", Kind.USD, "Lost"),
        Field("waste_usd", Kind.USD, "Avoidable+lost"),
        Field("possible_usd", Kind.USD, "Possible", lambda total: rough_low(total.possible_usd)),
    ),
    ("rule", "findings", "avoidable_usd", "lost_usd", "possible_usd"),
    ("possible_usd", "lost_usd"),
)
VERSIONS = Listing(
    (
        Field("version", Kind.COUNT),
        Field("settled", Kind.FLAG, "Final"),
        Field("total_usd", Kind.USD, "Bill"),
        Field("avoidable_usd", Kind.USD),
        Field("lost_usd", Kind.USD),
        Field("possible_usd", Kind.USD, "Possible", lambda row: rough_low(row.possible_usd)),
        Field("judged"),
        Field("findings", Kind.COUNT),
        Field("ruleset", least=_WORD),
        Field("policy", least=_WORD),
    ),
    ("version", "settled", "total_usd", "avoidable_usd", "lost_usd", "findings", "ruleset"),
    ("ruleset",),
)


def of_families(rows: Sequence[Total]) -> Listing:
    """Families, with their account and region where these tell the rows apart."""
    places = telling_apart([(row.family, row.account) for row in rows])
    table = ("family", *places, *FAMILIES.table[1:])
    return replace(FAMILIES, table=table, dropped=(*FAMILIES.dropped, "region"))


def telling_apart(families: Sequence[tuple[str | None, str | None]]) -> tuple[str, ...]:
    """`account` where these (name, account) are of several; `region` where one is there twice."""
    account = ("account",) if len({account for _, account in families}) > 1 else ()
    return (*account, *(("region",) if len({*families}) < len(families) else ()))


def by_amount(listing: Listing, sort: Sort) -> Listing:
    """The list with the amount that orders it in its table, in place of the top finding."""
    name = f"{sort.value}_usd"
    if sort in {Sort.NEWEST, Sort.WASTE} or name in listing.table:
        return listing
    table = (*(shown for shown in listing.table if shown != "top_rule"), name)
    dropped = tuple(shown for shown in listing.dropped if shown != "top_rule")
    return replace(listing, table=table, dropped=dropped)
