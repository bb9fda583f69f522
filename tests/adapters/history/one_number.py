"""One number everywhere: the same dollars from every question, in both histories that last.

`PYTHONPATH=functions python -m tests.adapters.history.one_number 100000` puts so many
audits into a file
and into a table of moto's, and the same number of runs of one family into two more. It asks each
question of the command line, adds the answer up, and compares it with the audits themselves, to the
micro-dollar. Times are of this machine; read units follow from the items' sizes as AWS counts.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.main import main as command_line
from sageaudit.cli.support.history import asking, history_table
from sageaudit.cli.support.scan.scan_run import ScanRun
from sageaudit.domain.audit.document import stands
from sageaudit.domain.audit.record import Entry
from sageaudit.domain.audit.sums import Scope, Sums, total
from sageaudit.domain.job.listed import Period
from sageaudit.output.text.money import usd
from sageaudit.ports import History
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.capacity import Consumed, consumed
from tests.fakes.filled_table import fill, quick_queries
from tests.fakes.many_audits import ACCOUNTS, LAST_END, REGIONS, several_versions

UNTIL = LAST_END.date()
FAMILY = "training/family-000"
_ZERO = Decimal(0)
_LIMIT = 20

Audits = Callable[[], Iterable[tuple[Entry, ...]]]
"""Gives the same audits each time, so that no list of all of them is kept."""


@dataclass(frozen=True, slots=True)
class Dollars:
    """What a question's answer adds up to; None for what it does not tell."""

    total_usd: Decimal | None = None
    avoidable_usd: Decimal | None = None
    lost_usd: Decimal | None = None
    possible_usd: Decimal | None = None
    jobs: int | None = None

    def agrees(self, other: Dollars) -> bool:
        """Whether all that both tell is the same."""
        pairs = ((getattr(self, of.name), getattr(other, of.name)) for of in fields(self))
        return all(one == two for one, two in pairs if one is not None and two is not None)


AMOUNTS = tuple(of.name for of in fields(Dollars) if of.name.endswith("_usd"))


@dataclass(frozen=True, slots=True)
class Truth:
    """The newest audits, added up one by one without the code that sums them elsewhere."""

    dollars: Dollars
    audits: int
    findings: int
    dearest_usd: tuple[Decimal, ...]
    """Avoidable and lost dollars of the dearest audits, as many as a list shows."""


def truth_of(audits: Iterable[tuple[Entry, ...]]) -> Truth:
    """Adds up documents: a tuning job has only the findings of its own."""
    sums = dict.fromkeys(AMOUNTS, _ZERO)
    jobs = count = findings = 0
    wastes: list[Decimal] = []
    for versions in audits:
        document = versions[-1].document
        count += 1
        if document["rollup"]:
            own = [f for f in document["findings"] if f["rule"] in (document["own_rules"] or ())]
            findings += len(own)
            amounts = dict.fromkeys(AMOUNTS, _ZERO)
            for one in filter(stands, own):
                name = f"{one['bucket']}_usd"
                if document[name] is not None:  # type: ignore[literal-required]
                    amounts[name] += one["saving_usd"] or _ZERO
        else:
            jobs += 1
            findings += len(document["findings"])
            amounts = (
                {"total_usd": document["bill"]["total_usd"] or _ZERO}
                | {
                    name: document[name] or _ZERO  # type: ignore[literal-required]
                    for name in AMOUNTS[1:]
                }
            )
        for name, amount in amounts.items():
            sums[name] += amount
        wastes.append(amounts["avoidable_usd"] + amounts["lost_usd"])
    dearest = tuple(sorted(wastes, reverse=True)[:_LIMIT])
    return Truth(Dollars(**sums, jobs=jobs), count, findings, dearest)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's answer in one history."""

    place: str
    question: str
    right: bool
    text: str
    seconds: float
    cost: Consumed


@dataclass(frozen=True, slots=True)
class Place:
    """A history, the words that name it on the command line, and the client that is counted.

    All its audits ended from `since` on, which is the first day of a month.
    """

    name: str
    history: History
    words: tuple[str, ...]
    since: date
    client: Any = None

    def counted(self) -> contextlib.AbstractContextManager[Consumed]:
        """What is read in this block."""
        return contextlib.nullcontext(Consumed()) if self.client is None else consumed(self.client)


@contextmanager
def file_of(audits: Audits, since: date, folder: Path) -> Iterator[Place]:
    """A file with the audits, each version recorded as the flow records it."""
    path = folder / "history.db"
    with SqliteHistory(path, clock=lambda: LAST_END) as history:
        for versions in audits():
            for entry in versions:
                history.record(entry)
    with SqliteHistory(path, create=False) as history:
        yield Place("file", history, ("--history", str(path), *_words(since)), since)


@contextmanager
def table_of(audits: Audits, since: date, client: Any) -> Iterator[Place]:
    """A table of moto's with the items that recording them leaves behind."""
    table = new_table(client)
    fill(table, audits())
    opened = history_table.HistoryTable(
        SimpleNamespace(region_name="us-east-1"), DynamoHistory(client, table)
    )
    with (
        quick_queries(table),
        patch.object(history_table, "open_table", lambda *_: opened),
    ):
        yield Place("table", opened.history, ("--table", table, *_words(since)), since, client)


def _words(since: date) -> tuple[str, str]:
    return "--since", since.isoformat()


def call(*words: str) -> str:
    """What a command prints; it must succeed."""
    printed, said = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["sageaudit", *words]),
        patch.object(asking, "now", lambda: LAST_END + timedelta(hours=10)),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(said),
    ):
        try:
            command_line()
        except SystemExit as ended:
            if ended.code:
                raise AssertionError(f"{words}: {said.getvalue()}") from ended
    return printed.getvalue()


def _added(rows: Iterable[dict[str, Any]]) -> Dollars:
    """The columns of amounts, and of jobs or the rows that are of no tuning job."""
    sums: dict[str, Any] = dict.fromkeys(AMOUNTS, _ZERO)
    count = 0
    for row in rows:
        for name in AMOUNTS:
            sums[name] += Decimal(row.get(name) or 0)
        count += int(row["jobs"]) if "jobs" in row else str(row.get("rollup")).lower() != "true"
    return Dollars(**sums, jobs=count)


def _of_sums(sums: Sums) -> Dollars:
    return Dollars(**{of.name: getattr(sums, of.name) for of in fields(Dollars)})


Answer = tuple[str, Dollars]
"""What both histories must answer in the same words, and what it adds up to."""


def _daily_sums(place: Place, scope: Scope) -> Answer:
    return "", _of_sums(total(place.history.sums(scope, place.since, UNTIL)))


def _list(place: Place) -> Answer:
    text = call("history", "--all", "--output", "csv", *place.words)
    return text, _added(csv.DictReader(io.StringIO(text)))


def _export(place: Place, form: str, *also: str) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"all.{form}")
        call("export", "-o", str(path), *also, *place.words)
        text = path.read_text("utf-8")
    rows: Iterable[dict[str, Any]] = csv.DictReader(io.StringIO(text))
    if form == "jsonl":
        rows = (json.loads(line, parse_float=Decimal) for line in text.splitlines())
    return text, _of_findings(rows) if also else _added(rows)


def _of_findings(rows: Iterable[dict[str, Any]]) -> Dollars:
    """The savings by bucket; findings do not tell the bill."""
    sums: dict[str, Any] = dict.fromkeys(AMOUNTS[1:], _ZERO)
    for row in rows:
        sums[f"{row['bucket']}_usd"] += Decimal(row["saving_usd"] or 0)
    return Dollars(**sums)


def _json(place: Place, *words: str) -> tuple[str, list[dict[str, Any]]]:
    """The rows of a command, and what it printed without how much it read."""
    text = call(*words, "--output", "json", *place.words)
    document = json.loads(text, parse_float=Decimal)
    return str(document | {"read": None}), document["rows"]


def _totals(place: Place, *words: str) -> Answer:
    text, rows = _json(place, *words)
    return text, _added(rows)


def _rules(place: Place) -> Answer:
    text, rows = _json(place, "rules", "--counts")
    sums = _added(rows)
    return text, Dollars(None, sums.avoidable_usd, sums.lost_usd, sums.possible_usd)


def _top(place: Place, dearest_usd: Sequence[Decimal]) -> Answer:
    """Its order is compared, not its sum."""
    text, rows = _json(place, "top", "--limit", str(_LIMIT))
    assert tuple(row["waste_usd"] for row in rows) == tuple(dearest_usd)
    return text, Dollars()


def _page(place: Place, *words: str) -> Answer:
    text, rows = _json(place, "history", "--limit", str(_LIMIT), *words)
    assert len(rows) == _LIMIT
    return text, Dollars()


def _ranking(place: Place) -> Answer:
    """The ranking that a scan of all accounts ends with."""
    days = (place.since, UNTIL)
    places = {(row.account, row.region) for row in place.history.sums(Scope.ACCOUNT, *days)}
    lanes: list[Any] = [SimpleNamespace(account=one, region=region) for one, region in places]
    ranked = ScanRun(place.history, lanes).ranking(Period(*days))
    fixes = [
        family.fix and (family.fix.job, family.fix.finding["rule"]) for family in ranked.families
    ]
    return str(fixes), _of_sums(ranked.total)


def _report(place: Place) -> Answer:
    """The headline of the page, and the dollars of its tiles: to the cent."""
    text = call("report", "-o", "-", *place.words)
    [news] = re.findall(r'<p class="news">(.*?)</p>', text)
    return news, Dollars()


def _family_days(place: Place) -> Answer:
    """The dollars of a family's days, as the notice of a run adds them up."""
    rows = place.history.sums(
        Scope.FAMILY, place.since, UNTIL, account=ACCOUNTS[0], region=REGIONS[0], name=FAMILY
    )
    return "", _of_sums(total(rows))


def questions(truth: Truth) -> dict[str, Callable[[Place], Answer]]:
    """Each question of a history of many families."""
    return {
        **{f"sums by {of.value}": partial(_daily_sums, scope=of) for of in Scope},
        "history --all, CSV": _list,
        "export, CSV": partial(_export, form="csv"),
        "export, JSON lines": partial(_export, form="jsonl"),
        "export --findings": lambda place: _export(place, "csv", "--findings"),
        "families --all": lambda place: _totals(place, "families", "--all"),
        "owners --all": lambda place: _totals(place, "owners", "--all"),
        "trend by week": lambda place: _totals(place, "trend"),
        "trend by month": lambda place: _totals(place, "trend", "--by", "month"),
        "rules --counts": _rules,
        "ranking of a scan": _ranking,
        "report, headline": _report,
        "top 20": partial(_top, dearest_usd=truth.dearest_usd),
        "history, a page of 20": _page,
        "  of one owner": lambda place: _page(place, "--owner", "person-06"),
        "  of one family": lambda place: _page(place, "--family", FAMILY),
        "  of one rule": lambda place: _page(place, "--rule", "gpu-underused"),
    }


def questions_of_one_family(truth: Truth) -> dict[str, Callable[[Place], Answer]]:
    """Those of a history with one family: its days, its page, its dearest runs."""
    return {
        "days of the family": _family_days,
        "families": lambda place: _totals(place, "families"),
        "trend of the family": lambda place: _totals(place, "trend", "--family", FAMILY),
        "ranking of a scan": _ranking,
        "a page of the family": lambda place: _page(place, "--family", FAMILY),
    }


def ask(place: Place, question: str, answer: Callable[[Place], Answer], truth: Truth) -> Asked:
    """Asks, and compares. The report has words: those of the audits' sums."""
    begun = time.process_time()
    with place.counted() as cost:
        text, dollars = answer(place)
    seconds = time.process_time() - begun
    right = dollars.agrees(truth.dollars)
    if question.startswith("report"):
        amounts = (truth.dollars.total_usd, truth.dollars.avoidable_usd, truth.dollars.lost_usd)
        right = all(usd(amount) in text for amount in amounts)
        right &= text.startswith(f"{truth.dollars.jobs:,} jobs cost about ")
    return Asked(place.name, question, right, text, seconds, cost)


def compare(
    audits: Audits,
    since: date,
    asked_of: Callable[[Truth], Mapping[str, Callable[[Place], Answer]]],
) -> Iterator[tuple[Asked, ...]]:
    """Each question, asked of the file and then of the table."""
    truth = truth_of(audits())
    with ExitStack() as open_now:
        folder = Path(open_now.enter_context(tempfile.TemporaryDirectory()))
        client = open_now.enter_context(dynamodb())
        places = (
            open_now.enter_context(file_of(audits, since, folder)),
            open_now.enter_context(table_of(audits, since, client)),
        )
        for question, answer in asked_of(truth).items():
            yield tuple(ask(place, question, answer, truth) for place in places)


def of_many_families(count: int, days: int) -> Iterator[tuple[Asked, ...]]:
    """Audits of every sort."""
    return compare(partial(several_versions, count, days=days), _month_of(days), questions)


def of_one_family(count: int, days: int) -> Iterator[tuple[Asked, ...]]:
    """So many runs of one family, in one account and region."""
    audits = partial(
        several_versions, count, days=days, families=1, accounts=ACCOUNTS[:1], regions=REGIONS[:1]
    )
    return compare(audits, _month_of(days), questions_of_one_family)


def _month_of(days: int) -> date:
    """The first day of the month in which the oldest audit can have ended."""
    return (UNTIL - timedelta(days=days)).replace(day=1)


def right(asked: Sequence[Asked]) -> bool:
    """True where each answer is that of the audits, and all are the same."""
    return all(one.right for one in asked) and len({one.text for one in asked}) == 1


def show(asked: Sequence[Asked]) -> None:
    """A line of the table."""
    of_file, of_table = asked
    cost = of_table.cost
    said = "same" if right(asked) else "DIFFERENT"
    sys.stdout.write(
        f"{of_file.question:24}{of_file.seconds:9.1f} s{of_table.seconds:9.1f} s"
        f"{cost.requests:9,}{cost.units:11,.1f}  {said}\n"
    )
    sys.stdout.flush()


def main(count: int) -> int:
    """Prints the table; 1 where an answer differs."""
    wrong = 0
    for title, lines in (
        (f"{count:,} audits", of_many_families(count, 60)),
        (f"{count:,} runs of one family", of_one_family(count, 30)),
    ):
        sys.stdout.write(f"{title:24}{'file':>11}{'table':>11}{'requests':>9}{'read units':>11}\n")
        for asked in lines:
            show(asked)
            wrong += not right(asked)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
