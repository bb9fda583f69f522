"""The ranking of a period's dollars on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from msgspec.structs import asdict
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from sageaudit.domain.audit.finding_document import iso
from sageaudit.domain.audit.ranking import FamilyFix, RankedFamily, RankedName, RankedNames, Ranking
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.domain.bill.finding import Bucket
from sageaudit.output.terminal.layout import (
    FittedColumn,
    fit_table,
    indented,
    plain_table,
    print_heading,
    print_line,
)
from sageaudit.output.text.amounts import COLUMN_TITLES, rule_amounts, sums_amounts
from sageaudit.output.text.finding import make_finding_parts
from sageaudit.output.text.headline import account_headline, judged_text, part_of_judged
from sageaudit.output.text.money import ROUND_NEAREST, Figure
from sageaudit.output.text.notes import family_text
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.output.text.words import NO_OWNER_LABEL, NO_TYPE_LABEL, assignment_line, count_text

_MIN_NAME_WIDTH = 20
_INDENT = 3
_MIN_FIX_USD = Decimal("0.01")
"""The smallest saving of a fix that is shown."""
_FAMILY = FittedColumn("family", "Family", False, 28, "start")
_SUMS = (
    FittedColumn("jobs", "Jobs", True, 0),
    *(
        FittedColumn(title.lower(), title, True, 0, is_main_amount=True)
        for title in COLUMN_TITLES[:3]
    ),
)
_DROPPED_FIRST = ("jobs", "lost", "spend")
_MAX_RULES = 10
_MAX_FIX_LINES = 3
_MISSING_NAME_LABELS = {"owner": NO_OWNER_LABEL, "type": NO_TYPE_LABEL}


def document(ranking: Ranking) -> dict[str, Any]:
    """Returns the ranking as JSON. Keys are always present and never removed."""
    return {
        "since": ranking.since.isoformat(),
        "until": ranking.until.isoformat(),
        "total": _sums(ranking.total),
        "families": [
            {
                **_named_sums(ranked.family),
                "places": [
                    {"account": account, "region": region}
                    for account, region in ranked.family.account_regions
                ],
                "fix": None if ranked.fix is None else _fix(ranked.fix),
            }
            for ranked in ranking.families
        ],
        "family_count": ranking.family_count,
        "rules": [{"rule": name, **_rule_document(sums)} for name, sums in ranking.rules],
        "owners": [_named_sums(name) for name in ranking.owners.shown_names],
        "owner_count": ranking.owners.name_count,
        "types": [_named_sums(name) for name in ranking.types.shown_names],
        "type_count": ranking.types.name_count,
    }


def _named_sums(ranked_name: RankedName) -> dict[str, Any]:
    return {"name": ranked_name.name, **_sums(ranked_name.sums)}


def _sums(sums: Sums) -> dict[str, Any]:
    # Unknown amounts are null.
    counts = {name: value for name, value in asdict(sums).items() if name != "rules"}
    return counts | {
        "total_usd": sums.known_total_usd,
        "spend_qualifier": sums.spend_qualifier,
        "judged_usd": sums.judged_usd if sums.known_total_usd is not None else None,
        "avoidable_usd": sums.known_avoidable_usd,
        "lost_usd": sums.known_lost_usd,
        "lost_up_to_usd": sums.known_lost_up_to_usd,
        "possible_usd": sums.known_possible_usd,
        "idle_usd": sums.known_idle_usd,
    }


def _rule_document(sums: RuleSums) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(sums).items() if not name.endswith("_usd")}
    for bucket in (Bucket.AVOIDABLE, Bucket.LOST, Bucket.POSSIBLE):
        fields[f"{bucket}_usd"] = sums.known_usd(bucket)
        fields[f"{bucket}_up_to_usd"] = sums.max_usd(bucket)
    return fields


def _fix(fix: FamilyFix) -> dict[str, Any]:
    finding = fix.finding
    return {
        "job": fix.job,
        "ended_at": iso(fix.ended_at),
        **{key: finding[key] for key in ("rule", "summary", "bucket", "saving_usd")},
        "fix": finding["fix"] or next(iter(finding["alternatives"]), []),
    }


def show(ranking: Ranking, console: Console) -> None:
    """Prints the totals, then the families with their fixes, the rules, owners and types."""
    if ranking.total == Sums():
        days = f"{ranking.since} to {ranking.until}"
        console.print(f"No audited job ended from {days} (UTC).", highlight=False)
        return
    _show_total(ranking, console)
    _show_families(ranking, console)
    _show_rules(ranking, console)
    _show_names("owner", ranking.owners, console)
    _show_names("type", ranking.types, console)


def _show_total(ranking: Ranking, console: Console) -> None:
    sums, amounts = ranking.total, sums_amounts(ranking.total)
    print_line(console, account_headline(sums), "bold")
    days = f"Jobs that ended from {ranking.since} to {ranking.until} (UTC)"
    print_line(console, f"{days}; {judged_text(sums)}", "dim")
    table = plain_table("", " ", "  ", right={" "}, unbroken={" "})
    table.show_header = False
    idle_figure = Figure(sums.idle_counted_usd, rounding=ROUND_NEAREST)
    counted_note = f"; {idle_figure} of it is also counted above" if idle_figure.usd else ""
    notes = (
        _spend_notes(sums),
        part_of_judged(amounts.avoidable, sums),
        "by failed and stopped runs",
        "worth a trial; not in the totals",
        f"at list prices{counted_note}",
    )
    for title, figure, note in zip(COLUMN_TITLES, amounts, notes, strict=True):
        table.add_row(Text(title.lower()), Text(str(figure), "bold"), Text(note, "dim"))
    console.print(table)


def _spend_notes(sums: Sums) -> str:
    parts = (
        (sums.unpriced, "of unknown cost, not in it"),
        (sums.unauditable, "not audited, not in it"),
        (sums.incomplete, "billed only in part"),
        (sums.upper_bounds, "at an upper bound"),
        (sums.estimated, "at estimated rates"),
    )
    return "; ".join(f"{count_text(count, 'job')} {label}" for count, label in parts if count)


def _show_families(ranking: Ranking, console: Console) -> None:
    print_heading(console, "By family")
    family_names = [ranked.family for ranked in ranking.families]
    _sums_table(
        [_FAMILY],
        [[_display_name(ranked, "family")] for ranked in family_names],
        family_names,
        console,
    )
    _print_more(ranking.family_count - len(ranking.families), "family", "families", console)
    _show_fixes(ranking.families, console)


def _show_fixes(families: Sequence[RankedFamily], console: Console) -> None:
    # Fixes that save less than a cent are left out.
    shown_fixes = [
        (ranked.family, ranked.fix)
        for ranked in families
        if ranked.fix and not _is_negligible(ranked.fix.finding["saving_usd"])
    ]
    if shown_fixes:
        print_heading(console, "What to change in the most wasteful run of each family")
    for number, (family, fix) in enumerate(shown_fixes, 1):
        for line in _fix_lines(number, family, fix, console):
            console.print(line)


def _is_negligible(saving_usd: Decimal | None) -> bool:
    return saving_usd is not None and saving_usd < _MIN_FIX_USD


def _fix_lines(
    number: int, family: RankedName, fix: FamilyFix, console: Console
) -> Iterator[Text | Padding]:
    finding = make_finding_parts(fix.finding)
    name = cut_middle(_display_name(family, "family"), console.width - 4)
    finding_text = f"{finding.rule}, {finding.dollars or 'no dollars counted'} in "
    job_width = max(console.width - len(finding_text) - _INDENT, _MIN_NAME_WIDTH)
    yield Text(f"{number}. {name}", "bold")
    yield indented(
        Text(f"{finding_text}{cut_middle(for_terminal(fix.job), job_width)}", "dim"), _INDENT
    )
    changes = [
        for_terminal(assignment_line(part)) for _, way in finding.alternatives[:1] for part in way
    ]
    changes = changes or [for_terminal(finding.summary)]
    for change in changes[:_MAX_FIX_LINES]:
        yield indented(Text(change), _INDENT)
    if len(changes) > _MAX_FIX_LINES:
        yield indented(Text(f"+{len(changes) - _MAX_FIX_LINES} more", "dim"), _INDENT)


def _show_rules(ranking: Ranking, console: Console) -> None:
    if not ranking.rules:
        return
    print_heading(console, "By rule")
    money_columns = ("Avoidable", "Lost", "Possible")
    table = plain_table(
        "Rule",
        "Findings",
        *money_columns,
        right={"Findings", *money_columns},
        unbroken={*money_columns},
    )
    for name, sums in ranking.rules[:_MAX_RULES]:
        amounts = _rule_money(sums)
        table.add_row(Text(for_terminal(name)), f"{sums.findings:,}", *amounts)
    console.print(table)
    _print_more(len(ranking.rules) - _MAX_RULES, "rule", "rules", console)


def _rule_money(sums: RuleSums) -> Iterator[str]:
    # 0 is a dash, since most rules have one kind of dollars.
    for figure in rule_amounts(sums):
        yield "-" if figure.usd == 0 == figure.upper_end and not figure.at_least else str(figure)


def _show_names(scope: str, names: RankedNames, console: Console) -> None:
    print_heading(console, f"By {'instance type' if scope == 'type' else scope}")
    column = FittedColumn("name", scope.capitalize(), False, _MIN_NAME_WIDTH)
    _sums_table(
        [column],
        [[_display_name(name, scope)] for name in names.shown_names],
        names.shown_names,
        console,
    )
    _print_more(names.name_count - len(names.shown_names), scope, f"{scope}s", console)


def _sums_table(
    columns: Sequence[FittedColumn],
    names: Sequence[Sequence[str]],
    ranked_names: Sequence[RankedName],
    console: Console,
) -> None:
    # A narrow terminal leaves out the jobs first.
    cells = [
        [*labels, f"{row.sums.jobs:,}", *map(str, sums_amounts(row.sums)[:3])]
        for labels, row in zip(names, ranked_names, strict=True)
    ]
    console.print(fit_table([*columns, *_SUMS], cells, _DROPPED_FIRST, console.width))


def _display_name(ranked_name: RankedName, scope: str) -> str:
    if ranked_name.name is None:
        return _MISSING_NAME_LABELS.get(scope, "(no name)")
    return for_terminal(family_text(ranked_name.name))


def _print_more(count: int, singular: str, plural: str, console: Console) -> None:
    if count > 0:
        console.print(Text(f"and {count:,} {singular if count == 1 else plural} more", "dim"))
