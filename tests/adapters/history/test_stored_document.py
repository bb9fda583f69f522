"""An audit that is too large for one item is stored all the same, and says what is left out."""

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.files.exact_json import read_gzip_json
from sageaudit.adapters.history import record_steps
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RecordOutcome
from tests.fakes.documents import phase
from tests.fakes.entries import document, entry, finding


def stored(**changes: Any) -> dict[str, Any]:
    """The document as it is stored and read."""
    return dict(read_gzip_json(record_steps.to_stored_bytes(document(**changes), 1)))


def notes(document: dict[str, Any]) -> list[str]:
    """What the document says was left out."""
    missing: list[str] = document["audit"]["coverage"]["missing"]
    return missing


def test_hundreds_of_phases_are_stored_as_they_are() -> None:
    """A spot job that was interrupted 300 times needs no trim."""
    phases = [
        phase(name, 3000, "0.10")
        for name in ("Downloading", "Training", "Interrupted")
        for _ in range(300)
    ]
    got = stored(phases=phases)
    assert len(got["phases"]) == 900
    assert notes(got) == []


def test_too_much_evidence_is_left_out() -> None:
    """The finding, its fix and its dollars stay."""
    series = [Decimal("1.5")] * 100_000
    got = stored(findings=[finding(evidence={"series": series})])

    assert got["findings"] == [finding(evidence={})]
    assert notes(got)[-1] == "The evidence of the findings was too large to store."


@pytest.mark.parametrize("children", [120, 500])
def test_a_tuning_job_of_many_children_is_stored(children: int) -> None:
    """Children lose their bodies first, then they are left out: each has its own audit."""
    child = document(phases=[phase("Training", 3000, "0.10") for _ in range(30)])
    got = stored(rollup=True, children=[child] * children)

    assert len(got["children"]) == (children if children == 120 else 0)
    assert got["bill"] == document()["bill"]
    assert len(notes(got)) == (1 if children == 120 else 2)


def test_long_texts_are_cut_at_last() -> None:
    """A text that nothing else shortens still does not keep the audit out."""
    findings = [finding(summary="😀" * 200_000, caution="x" * 300)]
    got = stored(findings=findings, unknown=[{"rule": "r", "code": "c", "reason": "r"}] * 99)

    assert len(got["findings"][0]["summary"]) == 300
    assert got["findings"][0]["summary"].endswith("😀…")
    assert got["findings"][0]["caution"] == "x" * 300
    assert len(got["unknown"]) == 50


def test_a_trimmed_audit_delivered_again_is_a_duplicate() -> None:
    """The comparison is over all that was said, not over what was kept."""
    big, changed = ([finding(evidence={"text": sign * 400_000})] for sign in "xy")
    history = SqliteHistory()
    history.record(entry(findings=big))
    assert history.record(entry(findings=big)).outcome is RecordOutcome.DUPLICATE
    assert history.record(entry(modified_s=60, findings=changed)).version == 2
