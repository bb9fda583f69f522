"""Each finding of a linter is accepted by a row with a reason, or is a fault."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tools import linters
from tools.linters import Fault

FAULT = Fault("AwsSolutions-IAM5[Resource::*]", "AuditRole12", "plain", "has wildcards")
ROW = """
[[accepted]]
rules = ["AwsSolutions-IAM5[[]Resource::[*][]]"]
resources = ["AuditRole*"]
reason = "{reason}"
"""


def _run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rows: str, faults: Sequence[Fault] = (FAULT,)
) -> int:
    def linter(_: Sequence[Path]) -> Iterator[Fault]:
        yield from faults

    (folder / "plain.json").write_text("{}", encoding="utf-8")
    accepted = folder / "accepted.toml"
    accepted.write_text(rows, encoding="utf-8")
    monkeypatch.setattr(linters, "ACCEPTED", accepted)
    monkeypatch.setattr(linters, "LINTERS", (linter,))
    return linters.main(folder)


def test_what_a_row_accepts_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row has patterns of rules and resources."""
    assert _run(tmp_path, monkeypatch, ROW.format(reason="No resource is known.")) == 0


@pytest.mark.parametrize(
    "fault",
    [
        Fault("AwsSolutions-IAM5[Resource::a*]", "AuditRole12", "plain", "another resource"),
        Fault("AwsSolutions-IAM5[Resource::*]", "DigestRole12", "plain", "another role"),
    ],
)
def test_a_row_accepts_nothing_beside_its_pattern(
    fault: Fault,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another resource in a policy, or another role, is a new fault."""
    rows = ROW.format(reason="No resource is known.")
    assert _run(tmp_path, monkeypatch, rows, [FAULT, fault]) == 1
    assert fault.text in capsys.readouterr().err


def test_a_row_that_accepts_nothing_any_more_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So the file has no unused rows."""
    assert _run(tmp_path, monkeypatch, ROW.format(reason="No resource is known."), []) == 1
    assert "accepts nothing" in capsys.readouterr().err


def test_a_row_needs_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty reason does not count."""
    with pytest.raises(ValueError, match="without a reason"):
        _run(tmp_path, monkeypatch, ROW.format(reason=" "))


def test_every_row_of_the_project_has_its_reason() -> None:
    assert all(acceptance.reason for acceptance in linters.load_acceptances())
