"""The ranking of a period's dollars on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from sageaudit.cli.support.history.lists import NO_OWNER, telling_apart
from sageaudit.domain.audit.finding_document import iso
from sageaudit.domain.audit.ranking import (
    FamilyFix,
    RankedFamily,
    RankedName,
    RankedNames,
    Ranking,
)
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.terminal import fitting
from sageaudit.output.terminal.fitting import Column
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.account_words import (
    account_headline,
    avoidable_of,
    judged_words,
    lost_of,
    spend_of,
    summed,
)
from sageaudit.output.text.money import cents, rough_low, roughly, share
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import assignment, counted

_SHORTEST, _INDENT = 20, 3
_LEAST_USD = Decimal("0.01")
"""What a fix must be worth to be shown, where its worth is known."""
_FAMILY = Column("family", "Family", False, 28)
_SUMS = tuple(
    Column(name, name.capitalize(), True, 0) for name in ("jobs", "spend", "avoidable", "lost")
)
_DROPPED = ("jobs", "lost", "spend", "region")
_RULES, _FIX_LINES = 10, 3
_NO_NAME = {"owner": NO_OWNER, "type": "(several types, or not known)"}


def document(ranking: Ranking) -> dict[str, Any]:
    """The ranking as JSON; keys are always present and never removed."""
    return {
        "since": ranking.since.isoformat(),
        "until": ranking.until.isoformat(),
        "total": _sums(ranking.total),
        "families": [
            {**_named(one.family), "fix": None if one.fix is None else _fix(one.fix)}
            for one in ranking.families
        ],
        "family_count": ranking.family_count,
        "rules": [{"rule": name, **asdict(sums)} for name, sums in ranking.rules],
        "owners": [_named(name) for name in ranking.owners.shown],
        "owner_count": ranking.owners.names,
        "types": [_named(name) for name in ranking.types.shown],
        "type_count": ranking.types.names,
    }


def _named(ranked: RankedName) -> dict[str, Any]:
    place = {"account": ranked.account, "region": ranked.region}
    return {"name": ranked.name, **(place if ranked.region else {}), **_sums(ranked.sums)}


def _sums(sums: Sums) -> dict[str, Any]:
    return {name: value for name, value in asdict(sums).items() if name != "rules"}


def _fix(fix: FamilyFix) -> dict[str, Any]:
    return {**asdict(fix), "ended_at": iso(fix.ended_at)}


def show(ranking: Ranking, console: Console) -> None:
    """Prints the totals, then the families with their fixes, the rules, owners and types."""
    if ranking.total == Sums():
        days = f"{ranking.since} to {ranking.until}"
        console.print(f"No audited job ended {days} (UTC).", highlight=False)
        return
    _show_total(ranking, console)
    _show_families(ranking, console)
    _show_rules(ranking, console)
    _show_names("owner", ranking.owners, console)
    _show_names("type", ranking.types, console)


def _show_total(ranking: Ranking, console: Console) -> None:
    sums = ranking.total
    console.print(Text(account_headline(sums), "bold"))
    days = f"ended {ranking.since} to {ranking.until} (UTC)"
    console.print(Text(f"{days}; {judged_words(sums)}", "dim"))
    table = plain_table("", " ", "  ", right={" "}, unbroken={" "})
    table.show_header = False
    for word, amount, note in (
        ("spend", spend_of(sums), _of_spend(sums)),
        ("avoidable", avoidable_of(sums), _part(sums.known_avoidable_usd, sums)),
        ("lost", lost_of(sums), _lost(sums)),
        ("possible", rough_low(sums.possible_usd), "worth a trial; not in the totals"),
        ("idle capacity", roughly(sums.idle_usd), _idle(sums)),
    ):
        table.add_row(Text(word), Text(amount, "bold"), Text(note, "dim"))
    console.print(table)


def _part(amount: Decimal | None, sums: Sums) -> str:
    if amount is None or sums.total_usd <= 0:
        return ""
    return f"{share(amount, sums.total_usd)} of the spend"


def _lost(sums: Sums) -> str:
    """What failed runs cost; the upper end where how much of it is lost is not known."""
    up_to = f", up to {cents(sums.lost_up_to_usd)}" if sums.lost_up_to_usd > sums.lost_usd else ""
    return f"by failed and stopped runs{up_to}"


def _of_spend(sums: Sums) -> str:
    """What the spend does not contain, and which part of it is an estimate."""
    parts = (
        (sums.unpriced, "of unknown cost, not in it"),
        (sums.incomplete, "billed only in part"),
        (sums.estimated, "at estimated rates"),
    )
    return "; ".join(f"{counted(count, 'job')} {words}" for count, words in parts if count)


def _idle(sums: Sums) -> str:
    counted_usd = f", {cents(sums.idle_counted_usd)} of it counted above"
    return f"at list prices{counted_usd if sums.idle_counted_usd else ''}"


def _show_families(ranking: Ranking, console: Console) -> None:
    _heading("By family", console)
    named = [one.family for one in ranking.families]
    places = telling_apart([(one.name, one.account) for one in named])
    columns = [_FAMILY, *(Column(place, place.capitalize(), False, 0) for place in places)]
    cells = [
        [_name_of(one, "family"), *(getattr(one, place) or "-" for place in places)]
        for one in named
    ]
    _sums_table(columns, cells, named, console)
    _more(ranking.family_count - len(ranking.families), "family", "families", console)
    _show_fixes(ranking.families, console)


def _show_fixes(families: Sequence[RankedFamily], console: Console) -> None:
    """The fix of one run of each family, where it is worth a cent."""
    shown = [
        (number, one, one.fix)
        for number, one in enumerate(families, 1)
        if one.fix and (one.fix.saving_usd is None or one.fix.saving_usd >= _LEAST_USD)
    ]
    if shown:
        _heading(
            "What to change in the most wasteful run of each family (numbers as above)", console
        )
    for number, one, fix in shown:
        for line in _fix_lines(number, one.family, fix, console):
            console.print(line)


def _fix_lines(
    number: int, family: RankedName, fix: FamilyFix, console: Console
) -> Iterator[Text | Padding]:
    name = middle(terminal(family.name or ""), console.width - 4)
    form = cents if Bucket(fix.bucket).counted else rough_low
    worth = "no dollars counted"
    if fix.saving_usd is not None:
        worth = f"{fix.bucket} {form(fix.saving_usd)}"
    of_run = f"{fix.rule}, {worth} in "
    room = max(console.width - len(of_run) - _INDENT, _SHORTEST)
    yield Text(f"{number}. {name}", "bold")
    yield _indented(Text(f"{of_run}{middle(terminal(fix.job), room)}", "dim"))
    lines = [terminal(assignment(part)) for part in fix.fix] or [terminal(fix.summary)]
    for line in lines[:_FIX_LINES]:
        yield _indented(Text(line))
    if len(lines) > _FIX_LINES:
        yield _indented(Text(f"+{len(lines) - _FIX_LINES} more", "dim"))


def _indented(line: Text) -> Padding:
    return Padding(line, (0, 0, 0, _INDENT), expand=False)


def _show_rules(ranking: Ranking, console: Console) -> None:
    if not ranking.rules:
        return
    _heading("By rule", console)
    money = ("Avoidable", "Lost", "Possible")
    table = plain_table("Rule", "Findings", *money, right={"Findings", *money}, unbroken={*money})
    for name, sums in ranking.rules[:_RULES]:
        amounts = _rule_money(sums, ranking.total.estimated)
        table.add_row(Text(terminal(name)), f"{sums.findings:,}", *amounts)
    console.print(table)
    _more(len(ranking.rules) - _RULES, "rule", "rules", console)


def _rule_money(sums: RuleSums, estimated: int) -> Iterator[str]:
    for amount in (sums.avoidable_usd, sums.lost_usd):
        yield summed(amount, estimated) if amount else "-"
    yield rough_low(sums.possible_usd) if sums.possible_usd else "-"


def _show_names(scope: str, names: RankedNames, console: Console) -> None:
    _heading(f"By {'instance type' if scope == 'type' else scope}", console)
    column = Column("name", scope.capitalize(), False, _SHORTEST)
    _sums_table([column], [[_name_of(name, scope)] for name in names.shown], names.shown, console)
    _more(names.names - len(names.shown), scope, f"{scope}s", console)


def _sums_table(
    columns: Sequence[Column],
    names: Sequence[Sequence[str]],
    ranked: Sequence[RankedName],
    console: Console,
) -> None:
    """The names with their sums; a narrow terminal lacks the jobs first."""
    cells = [[*name, *_row(one.sums)] for name, one in zip(names, ranked, strict=True)]
    console.print(fitting.fitted([*columns, *_SUMS], cells, _DROPPED, console.width))


def _row(sums: Sums) -> tuple[str, ...]:
    return f"{sums.jobs:,}", spend_of(sums), avoidable_of(sums), lost_of(sums)


def _name_of(ranked: RankedName, scope: str) -> str:
    return terminal(_NO_NAME.get(scope, "(no name)") if ranked.name is None else ranked.name)


def _heading(text: str, console: Console) -> None:
    console.print()
    console.print(Text(text, "bold"))


def _more(count: int, one: str, many: str, console: Console) -> None:
    if count > 0:
        console.print(Text(f"and {count:,} {one if count == 1 else many} more", "dim"))
