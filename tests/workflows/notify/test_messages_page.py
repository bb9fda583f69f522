"""docs/message-rule.md: each row of its table is replayed, and its message compared."""

import re
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from tests.fakes.family import MORNING, FamilyStory, is_sent, is_suppressed, run_document
from tests.fakes.markdown_tables import table_rows

PAGE = Path(__file__).parents[3] / "docs" / "message-rule.md"
ROWS = table_rows(PAGE.read_text(encoding="utf-8"), "Corrections as a table")
THIS = "train-bert-0412"
MONEY = re.compile(
    r"(?P<severity>[A-Z]+) (?P<perhaps>up to )?(?P<usd>unknown|\$[\d,.]+) (?P<bucket>[a-z]+)"
)
NOTHING = re.compile(r"nothing(?:, \$(?P<exempt>[\d,.]+) exempt)?")


class Rows:
    """Replays the cells of one row: each audit comes ten minutes after the one before."""

    def __init__(self) -> None:
        self.story = FamilyStory()
        self.versions = 0
        self.others = 0

    def audited(self, cell: str, at: datetime) -> Any:
        """Decides about the audit that a cell describes."""
        who, _, what = cell.partition(": ")
        if "this run" in who:
            self.versions += 1
            return self.story.write_and_decide(
                audit_from_cell(what, THIS), at, version=self.versions
            )
        self.others += 1
        return self.story.write_and_decide(
            audit_from_cell(what, f"train-bert-{self.others:04d}"), at
        )


def audit_from_cell(what: str, name: str) -> AuditDocument:
    """The audit of `HIGH $412.00 lost` or `nothing`."""
    if nothing := NOTHING.fullmatch(what):
        exempt = plain(nothing["exempt"]) if nothing["exempt"] else None
        return run_document(name, exempt=exempt, whole="100000")
    money = MONEY.fullmatch(what)
    assert money, what
    severity = money["severity"].lower()
    if money["usd"] == "unknown":
        return run_document(name, severity=severity, avoidable=None, lost=None)
    usd = plain(money["usd"])
    if money["perhaps"]:
        return run_document(name, severity=severity, lost_up_to=usd, whole="100000")
    if money["bucket"] == "lost":
        return run_document(name, severity=severity, whole="100000", lost=usd)
    return run_document(name, severity=severity, whole="100000", avoidable=usd)


def plain(amount: str) -> str:
    """A number without its signs."""
    return str(Decimal(amount.replace(",", "").removeprefix("$")))


@pytest.mark.parametrize(("before", "then", "message"), ROWS)
def test_a_row_of_the_page_is_what_is_sent(before: str, then: str, message: str) -> None:
    """The first line, or the reason why there is none."""
    replay = Rows()
    at = MORNING
    for cell in before.split("; "):
        day = timedelta(days=1) if cell.startswith("yesterday") else timedelta(0)
        assert is_sent(replay.audited(cell, at - day))
        at += timedelta(minutes=10)
    replay.story.messages.clear()
    outcome = replay.audited(then, at)
    if message.startswith("none: "):
        assert is_suppressed(outcome)
        assert message.removeprefix("none: ") in outcome.suppressed_because
        return
    assert is_sent(outcome)
    [sent] = replay.story.messages
    if message == "first":
        assert sent.first_line.startswith("train-bert wasted about $")
    else:
        assert sent.first_line == message


def test_the_page_has_rows_of_each_kind() -> None:
    """So that a table which is not found is no green test."""
    kinds = {message.split(" ")[0].rstrip(":") for _, _, message in ROWS}
    assert kinds == {"none", "first", "Correction"}
    assert len(ROWS) > 20
