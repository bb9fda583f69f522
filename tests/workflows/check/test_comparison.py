"""Which job of a file now is which one before."""

from typing import Any

import pytest

from sageaudit.workflows.check.comparison import FileCheck, compare_jobs


def job(label: str, name: str | None = None, rules: tuple[str, ...] = (), **more: Any) -> Any:
    """Returns a job of a document."""
    findings = [{"rule": rule, "path": "", "not_counted": None} for rule in rules]
    return (
        {"kind": "training", "trial": False, "label": label, "name": name}
        | more
        | {"findings": findings}
    )


def file_check(now: Any, before: Any) -> FileCheck:
    """Returns the check of a file with these jobs."""
    documents: Any = ({"jobs": now}, {"jobs": before})
    return FileCheck("f", documents[0], base=documents[1])


def compare(now: list[Any], before: list[Any]) -> list[tuple[Any, Any]]:
    """Returns the indexes of the pairs."""
    return [
        (
            now.index(pair.now) if pair.now else None,
            before.index(pair.before) if pair.before else None,
        )
        for pair in compare_jobs(file_check(now, before))
    ]


@pytest.mark.parametrize(
    ("now", "before", "pairs"),
    [
        pytest.param([job("a")], [], [(0, None)], id="a new job"),
        pytest.param([], [job("a")], [(None, 0)], id="a removed job"),
        pytest.param([job("x", "n2")], [job("x", "n1")], [(0, 0)], id="a new name"),
        pytest.param([job("step B")], [job("step A")], [(0, 0)], id="a renamed step, the only one"),
        pytest.param(
            [job("A"), job("B")], [job("B"), job("A")], [(0, 1), (1, 0)], id="another order"
        ),
        pytest.param(
            [job("A"), job("C"), job("D")],
            [job("A"), job("B")],
            [(0, 0), (1, None), (2, None), (None, 1)],
            id="which one was renamed is not known",
        ),
        pytest.param(
            [job("A", kind="processing")], [job("A")], [(0, None), (None, 0)], id="another kind"
        ),
        pytest.param(
            [job("A"), job("A, T", trial=True)],
            [job("B"), job("B, T", trial=True)],
            [(0, 0), (1, 1)],
            id="a tuning job and its training jobs",
        ),
    ],
)  # fmt: skip
def test_jobs_are_matched_by_name_then_place_then_kind(
    now: list[Any], before: list[Any], pairs: list[Any]
) -> None:
    assert compare(now, before) == pairs


def test_a_finding_is_new_fixed_or_unchanged() -> None:
    """A finding that does not count is none of them."""
    now, before = job("a", None, ("new", "old")), job("a", None, ("old", "gone"))
    now["findings"].append({"rule": "exempt", "path": "", "not_counted": "exempt by ana"})
    [pair] = compare_jobs(file_check([now], [before]))
    rows = (pair.new_findings, pair.fixed_findings, pair.unchanged_findings)
    assert [[row["rule"] for row in part] for part in rows] == [["new"], ["gone"], ["old"]]
