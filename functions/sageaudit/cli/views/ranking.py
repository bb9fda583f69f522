"""The ranking of a period's dollars on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from sageaudit.cli.views.layout import plain_table
from sageaudit.cli.views.lists import NO_OWNER
from sageaudit.domain.audit.document import iso
from sageaudit.domain.audit.ranking import (
    FamilyFix,
    RankedFamily,
    RankedName,
    RankedNames,
    Ranking,
)
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.text.estimate import about, about_usd
from sageaudit.text.money import rough_low, roughly, share, usd
from sageaudit.text.untrusted import middle, terminal
from sageaudit.text.words import assignment, counted

_WIDTH, _NAME = 80, 38
"""A terminal's usual width, and that of names on it; names take what a terminal differs by."""
_SHORTEST, _LONGEST = 16, 64
_MONEY = ("Spend", "Avoidable", "Lost")
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
    jobs, days = counted(sums.jobs, "audited job"), f"{ranking.since} to {ranking.until}"
    console.print(Text(f"{jobs} that ended {days} (UTC)", "bold"))
    table = plain_table("", " ", "  ", right={" "}, unbroken={" "})
    table.show_header = False
    estimated = bool(sums.estimated)
    for word, amount, note in (
        ("spend", about(usd(sums.total_usd), estimated=estimated), _of_spend(sums)),
        ("avoidable", usd(sums.avoidable_usd), _part(sums.avoidable_usd, sums)),
        ("lost", usd(sums.lost_usd), _lost(sums)),
        ("possible", rough_low(sums.possible_usd), "worth a trial; in no sum"),
        ("idle capacity", roughly(sums.idle_usd), _idle(sums)),
    ):
        table.add_row(Text(word), Text(amount, "bold"), Text(note, "dim"))
    console.print(table)


def _part(amount: Decimal, sums: Sums) -> str:
    return f"{share(amount, sums.total_usd)} of the spend" if sums.total_usd > 0 else ""


def _lost(sums: Sums) -> str:
    """What failed runs cost; the upper end where how much of it is lost is not known."""
    up_to = f", up to {usd(sums.lost_up_to_usd)}" if sums.lost_up_to_usd > sums.lost_usd else ""
    return f"by failed and stopped runs{up_to}"


def _of_spend(sums: Sums) -> str:
    """What the spend does not contain, and which part of it is an estimate."""
    parts = (
        (sums.unpriced, "without a known price: not in it"),
        (sums.incomplete, "without a part of the bill"),
        (sums.estimated, "at estimated rates"),
    )
    return "; ".join(f"{counted(count, 'job')} {words}" for count, words in parts if count)


def _idle(sums: Sums) -> str:
    counted_usd = f", {usd(sums.idle_counted_usd)} of it counted above"
    return f"list value{counted_usd if sums.idle_counted_usd else ''}"


def _show_families(ranking: Ranking, console: Console) -> None:
    _heading("By family, with the fix of its dearest run", console)
    table = plain_table("Family", "Jobs", *_MONEY, right={"Jobs", *_MONEY}, unbroken={*_MONEY})
    names = [_shown_name(one.family, "family", console) for one in ranking.families]
    for one, name in zip(ranking.families, names, strict=True):
        table.add_row(Text(name), *_row(one.family.sums))
    console.print(table)
    _more(ranking.family_count - len(ranking.families), "family", "families", console)
    for number, one in enumerate(ranking.families, 1):
        for line in _fix_lines(number, one, console):
            console.print(line)


def _fix_lines(number: int, one: RankedFamily, console: Console) -> Iterator[Text | Padding]:
    fix = one.fix
    if fix is None:
        return
    name = middle(terminal(one.family.name or ""), console.width - 4)
    form = usd if Bucket(fix.bucket).counted else rough_low
    worth = form(fix.saving_usd) if fix.saving_usd is not None else "no dollars counted"
    of_run = f"{fix.rule}, {fix.bucket} {worth} in {middle(terminal(fix.job), _NAME)}"
    yield Text(f"{number}. {name}", "bold")
    yield Padding(Text(of_run, "dim"), (0, 0, 0, 3), expand=False)
    lines = [terminal(assignment(part)) for part in fix.fix] or [terminal(fix.summary)]
    for line in lines[:_FIX_LINES]:
        yield Padding(Text(line), (0, 0, 0, 3), expand=False)
    if len(lines) > _FIX_LINES:
        yield Padding(Text(f"+{len(lines) - _FIX_LINES} more", "dim"), (0, 0, 0, 3), expand=False)


def _show_rules(ranking: Ranking, console: Console) -> None:
    if not ranking.rules:
        return
    _heading("By rule", console)
    money = ("Avoidable", "Lost", "Possible")
    table = plain_table("Rule", "Findings", *money, right={"Findings", *money}, unbroken={*money})
    for name, sums in ranking.rules[:_RULES]:
        table.add_row(Text(terminal(name)), f"{sums.findings:,}", *map(Text, _rule_money(sums)))
    console.print(table)
    _more(len(ranking.rules) - _RULES, "rule", "rules", console)


def _rule_money(sums: RuleSums) -> Iterable[str]:
    amounts = ((sums.avoidable_usd, usd), (sums.lost_usd, usd), (sums.possible_usd, rough_low))
    return (form(amount) if amount else "-" for amount, form in amounts)


def _show_names(scope: str, names: RankedNames, console: Console) -> None:
    _heading(f"By {'instance type' if scope == 'type' else scope}", console)
    title = scope.capitalize()
    table = plain_table(title, "Jobs", *_MONEY, right={"Jobs", *_MONEY}, unbroken={*_MONEY})
    for name in names.shown:
        table.add_row(Text(_shown_name(name, scope, console)), *_row(name.sums))
    console.print(table)
    _more(names.names - len(names.shown), scope, f"{scope}s", console)


def _row(sums: Sums) -> tuple[str, ...]:
    spend = about_usd(sums.total_usd, estimated=bool(sums.estimated))
    return f"{sums.jobs:,}", spend, usd(sums.avoidable_usd), usd(sums.lost_usd)


def _shown_name(ranked: RankedName, scope: str, console: Console) -> str:
    room = min(max(_NAME + console.width - _WIDTH, _SHORTEST), _LONGEST)
    name = _NO_NAME.get(scope, "(no name)") if ranked.name is None else ranked.name
    return middle(terminal(name), room)


def _heading(text: str, console: Console) -> None:
    console.print()
    console.print(Text(text, "bold"))


def _more(count: int, one: str, many: str, console: Console) -> None:
    if count > 0:
        console.print(Text(f"and {count:,} {one if count == 1 else many} more", "dim"))
