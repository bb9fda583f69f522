"""One history in every view: a figure is spelled the same, with the same qualifier."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.support.history import asking
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Entry, JobKey
from sageaudit.domain.audit.sums import Sums, sums_of
from sageaudit.output.text import plain, slack
from sageaudit.output.text.alert_card import card_of
from sageaudit.output.text.amounts import Amounts, of_document, of_sums
from sageaudit.output.text.headline import account_headline, headline
from tests.fakes import documents
from tests.fakes.command_line import Run

NOW = datetime(2026, 5, 21, 12, 0, tzinfo=UTC)
MISSING = "storage: no ML storage price for us-east-1 (Training)"
NOTHING: dict[str, Any] = {
    "avoidable_usd": None,
    "lost_usd": None,
    "lost_up_to_usd": None,
    "possible_usd": None,
    "idle_capacity": {
        **(documents.document()["idle_capacity"] or {}),
        "list_usd": None,
        "counted_usd": None,
    },
    "findings": [],
}


def billed(**changes: Any) -> dict[str, Any]:
    """Another bill."""
    return {"bill": {**documents.document()["bill"], **changes}}


MADE: dict[str, Callable[..., AuditDocument]] = {
    "whole": documents.document,
    "estimated": documents.estimated_document,
    "incomplete": lambda: documents.document(**billed(complete=False, missing=[MISSING])),
    "unpriced": lambda: documents.document(
        **NOTHING, **billed(total_usd=None, complete=False, missing=["no price"])
    ),
    "unjudged": documents.not_judged_document,
    "lost-range": documents.perhaps_lost_document,
    "lost": documents.lost_document,
    "tiny": lambda: documents.document(
        **billed(total_usd=Decimal("0.004")), avoidable_usd=Decimal("0.003"), findings=[]
    ),
    "from-times": lambda: documents.document(**billed(basis="estimated_from_times")),
}
SPELLED = {
    "whole": ("$4.55", "$2.04", "$0.00", "about $0.90", "about $4.10"),
    "estimated": ("about $1.39", "about $0.96", "$0.00", "about $0.90", "about $4.10"),
    "incomplete": ("$4.55 or more", "$2.04", "$0.00", "about $0.90", "about $4.10"),
    "unpriced": ("unknown", "unknown", "unknown", "unknown", "unknown"),
    "unjudged": ("$4.55", "not judged", "$0.00", "$0.00", "about $4.10"),
    "lost-range": ("$4.55", "$0.00", "up to $4.55", "$0.00", "about $4.10"),
    "lost": ("$4.55", "$0.00", "$4.55", "$0.00", "about $4.10"),
    "tiny": ("<$0.01", "<$0.01", "$0.00", "about $0.90", "about $4.10"),
    "from-times": ("$4.55", "$2.04", "$0.00", "about $0.90", "about $4.10"),
}
FIELDS = "job,total_usd,avoidable_usd,lost_usd,possible_usd,idle_usd,waste_usd"


def made(name: str) -> AuditDocument:
    """The audit of the job of that name."""
    audit = MADE[name]()
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{name}"
    audit["job"] = {**audit["job"], "name": name, "arn": arn, "owner": "anna", "family": "bert"}
    return audit


TOTAL = of_sums(sum((sums_of(made(name)) for name in MADE), Sums()))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of one job of each kind, of one owner and family, that ended on one day."""
    path = tmp_path_factory.mktemp("figures") / "history.db"
    with SqliteHistory(path) as opened:
        for number, name in enumerate(MADE):
            audit, begun = made(name), NOW - timedelta(days=1, minutes=number)
            key = JobKey(audit["job"]["arn"] or "", begun)
            opened.record(Entry(key, NOW, audit, 1, None, None))
        rollup = documents.rollup_document()
        key = JobKey(documents.TUNING_ARN, NOW - timedelta(days=1))
        opened.record(Entry(key, NOW, rollup, 1, None, None))
    return path


@pytest.fixture
def shown(run: Run, history: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a command prints of this history on a wide terminal."""
    monkeypatch.setattr(asking, "now", lambda: NOW)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str) -> str:
        done = run(*words, "--history", history)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    return call


def rows(markdown: str) -> dict[str, tuple[str, ...]]:
    """The cells of each row of Markdown's tables, by the first of them."""
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    cells = [[plain_of(cell) for cell in line.strip("| ").split(" | ")] for line in lines]
    return {first: tuple(others) for first, *others in cells}


def plain_of(cell: str) -> str:
    """A cell without code marks and escapes."""
    return unescape(re.sub(r"\\(.)", r"\1", cell)).strip("`")


def page_rows(page: str) -> Iterator[tuple[str, ...]]:
    """The cells of each row of a page's tables."""
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", page):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
        yield tuple(unescape(re.sub(r"<[^>]+>", "", cell)) for cell in cells)


def tiles(page: str) -> tuple[str, ...]:
    """The figures of a page's first screen."""
    found = re.findall(r'<div class="(\w+)"><dt>[^<]*</dt><dd class="amount">(.*?)</dd>', page)
    shown = {kind: unescape(figure) for kind, figure in found}
    return tuple(shown[kind] for kind in ("spent", "avoidable", "lost", "possible", "idle"))


def texts(figures: Amounts) -> tuple[str, ...]:
    """As every view must write them."""
    return tuple(map(str, figures))


def test_each_job_is_spelled_the_same_in_every_list_and_report(shown: Callable[..., str]) -> None:
    """Lists as Markdown and as a table, and the page of the account.

    A roll-up has no cost of its own: rows add up.
    """
    listed = rows(shown("history", "--fields", FIELDS, "--output", "markdown"))
    table = [re.split(r"\s{2,}", line.strip()) for line in shown("history").splitlines()[1:]]
    on_page = {cells[0]: cells for cells in page_rows(shown("report", "-o", "-"))}
    own = ("in its jobs", "$0.00", "$0.00")
    assert listed["sweep-7"][:3] == on_page["sweep-7"][1:4] == own
    for name, spelled in SPELLED.items():
        assert texts(of_document(made(name))) == spelled
        assert listed[name][:5] == spelled, name
        assert listed[name][5] == str(of_document(made(name)).waste), name
        assert next(row[2:5] for row in table if row[1] == name) == [*spelled[:3]], name
        page = on_page[name]
        assert (*page[1:4], *page[8:10]) == spelled, name


@pytest.mark.parametrize("name", SPELLED)
def test_a_job_is_spelled_the_same_in_its_own_views(shown: Callable[..., str], name: str) -> None:
    """The terminal, its page and its messages."""
    spelled, news = SPELLED[name], headline(made(name))
    text = shown("show", name)
    assert re.search(rf"^  total +{re.escape(spelled[0])} *$", text, re.MULTILINE), text
    for word, figure in zip(("avoidable", "lost"), spelled[1:3], strict=True):
        total = re.search(rf"^  = {word} +(.+)$", text, re.MULTILINE)
        assert total is None or total[1].strip() == figure
    page = shown("report", name, "-o", "-")
    assert tiles(page) == spelled
    assert ("Total", "", "", spelled[0], "") in set(page_rows(page))
    for said in (text, unescape(page)):
        assert news[1:] in said
    if made(name)["findings"]:
        assert news in plain.message(card_of(made(name)))["message"]
        header = slack.message(card_of(made(name)))["blocks"][0]["text"]["text"]
        assert news in unescape(header)


def test_the_sums_are_spelled_the_same_in_every_view(shown: Callable[..., str]) -> None:
    """Sums by family, owner and week, and the page."""
    total, waste = texts(TOTAL), str(TOTAL.waste)
    spelled = ("about $28.72 or more", "about $7.07", "about $4.55 to $9.11")
    assert total[:3] == spelled
    fields = FIELDS.replace("job", "jobs")
    for command in (("by", "family"), ("by", "owner"), ("by", "week")):
        name = command[1].replace("week", "period")
        listed = rows(shown(*command, "--fields", f"{name},{fields}", "--output", "markdown"))
        [found] = [cells for cells in listed.values() if cells[0] == str(len(MADE))]
        assert found[1:] == (*total, waste), command
    assert f"{waste} avoidable or lost" in shown("by", "week")
    page = shown("report", "-o", "-")
    assert tiles(page) == total
    foot = next(cells for cells in page_rows(page) if cells[0] == "All jobs")
    assert (*foot[1:4], *foot[8:10]) == total
    assert ("bert", *spelled, str(len(MADE)), "") in set(page_rows(page))
    news = account_headline(sum((sums_of(made(name)) for name in MADE), Sums()))
    assert news in unescape(page)


def test_the_ranking_of_a_scan_is_spelled_like_the_lists(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of recorded jobs, one of them at an estimated rate and one billed in part."""
    monkeypatch.setenv("COLUMNS", "200")
    recordings = Path(__file__).parents[2] / "local" / "recordings"
    path = tmp_path / "history.db"
    ranking = run("scan", "--recordings", recordings, "--history", path).stdout
    days = ("--history", path, "--since", "4000d")
    fields = ("--fields", "owner,jobs,total_usd,avoidable_usd,lost_usd", "--output", "markdown")
    for name, figures in list(rows(run("by", "owner", *days, *fields).stdout).items())[2:]:
        assert [name, *figures] in [re.split(r"\s{2,}", one) for one in ranking.splitlines()]
    page = run("report", *days, "-o", "-").stdout
    for figure, word in zip(tiles(page), ("spend", "avoidable", "lost", "possible"), strict=False):
        assert re.search(rf"^{word} +{re.escape(figure)} ", ranking, re.MULTILINE), word
    columns = ("--fields", "rule,jobs,avoidable_usd,lost_usd,possible_usd")
    rules = rows(run("by", "rule", *days, *columns, "--output", "markdown").stdout)
    by_rule = {cells[0]: cells for cells in page_rows(page)}
    shown_rule = [re.split(r"\s{2,}", line) for line in ranking.splitlines()]
    for name in ("some-gpus-unused", "gpu-underused", "failed-spend", "spot-not-used"):
        # sums of all jobs do not tell which rules rest on an estimated rate
        on_page = [cell.removeprefix("about ") for cell in by_rule[name][1:4]]
        assert on_page == [cell.removeprefix("about ") for cell in rules[name][1:4]]
        row = next(cells for cells in shown_rule if cells[0] == name)
        for cell, figure in zip(row[2:], rules[name][1:4], strict=True):
            assert cell.removeprefix("about ") in {figure.removeprefix("about "), "-"}
