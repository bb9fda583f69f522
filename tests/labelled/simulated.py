"""Counted waste of simulated jobs by an author who had not seen the code.

`simulated_jobs/README.md` says where they come from and what their dollars mean.
"""

import json
import lzma
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from sageaudit.domain.audit.document import AuditDocument
from tests.labelled.audits import audit_file, audit_in_turn

_JOBS = Path(__file__).parent / "simulated_jobs" / "jobs.jsonl.xz"
_MEASURED_AGAIN = Decimal("1.05")
"""Tolerance: more than this factor above what the author tolerates is claimed too much."""
_ONE_NAME = "k05-two-runs-one-name"
"""A history takes two runs with the same name and time as one job, so these are audited alone."""


class Counted(Struct, frozen=True):
    """One case, or a sum of cases, in USD. `right_usd`: counted, up to what is proven."""

    cases: int
    proven_usd: Decimal
    tolerated_usd: Decimal
    counted_usd: Decimal
    right_usd: Decimal
    possible_usd: Decimal
    above_usd: Decimal

    def row(self, kind: str) -> str:
        """Returns its row of the table."""
        figures = (self.proven_usd, self.right_usd, self.possible_usd, self.above_usd)
        return f"{kind:<28}{self.cases:>5}" + "".join(f"{usd:>12.2f}" for usd in figures)


@cache
def by_kind() -> dict[str, Counted]:
    """Returns the sums by kind of waste; `together` comes last."""
    counted = list(_counted())
    kinds = sorted({kind for kind, _ in counted})
    sums = {
        kind: _sum([case for case_kind, case in counted if case_kind == kind]) for kind in kinds
    }
    return {**sums, "together": _sum([case for _, case in counted])}


def cases() -> Iterator[dict[str, Any]]:
    """Yields the cases as their author wrote them; the README explains their keys."""
    yield from map(json.loads, lzma.decompress(_JOBS.read_bytes()).decode().splitlines())


def documents(case: dict[str, Any]) -> list[AuditDocument]:
    """Returns the audits of a case's runs, in order."""
    recordings = case["recordings"]
    alone = len(recordings) == 1 or case["name"] == _ONE_NAME
    return [*map(audit_file, recordings)] if alone else audit_in_turn(recordings)


def _counted() -> Iterator[tuple[str, Counted]]:
    for case in cases():
        audited = documents(case)
        counted, possible = (
            sum((document[key] or Decimal(0) for document in audited for key in keys), Decimal(0))
            for keys in (("avoidable_usd", "lost_usd"), ("possible_usd",))
        )
        proven = Decimal(str(case["proven_usd"]))
        most = max(proven, Decimal(str(case["tolerated_usd"])))
        over = counted - most if counted > most * _MEASURED_AGAIN else Decimal(0)
        right = min(counted, proven)
        yield case["kind"], Counted(1, proven, most, counted, right, possible, over)


def _sum(counted: list[Counted]) -> Counted:
    parts = zip(*map(astuple, counted), strict=True)
    return Counted(*map(sum, parts))  # type: ignore[arg-type]


def table() -> str:
    """Returns a table of counted and proven dollars by kind of waste, as text."""
    heads = ("proven", "counted", "a trial", "above")
    rows = [f"{'kind':<28}{'cases':>5}" + "".join(f"{head:>12}" for head in heads)]
    rows += [sums.row(kind) for kind, sums in by_kind().items()]
    whole = by_kind()["together"]
    rows.append(f"of the proven dollars {whole.right_usd / whole.proven_usd:.0%} are counted")
    return "\n".join(rows) + "\n"
