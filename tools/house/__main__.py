"""Measures how complex the code is: types that repeat each other, calls of one flow, and sizes.

`python -m tools.house` prints one line for each measure, with its goal. `--list` also prints what
was counted. The tool reads the code and runs none of it. The docstring of a function that counts
defines its measure: `forms.py` counts types and tables, `calls.py` follows calls, `sizes.py` counts
lines and files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.house import forms, sizes
from tools.house.calls import Call, CallTrace, follow
from tools.house.code import Code

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
PACKAGE = FUNCTIONS / "sageaudit"
NOTIFY = "notify.handler.Notifier.handle_change"
"""The entry of a stored audit into `notify`: a record of the table's stream."""
AUDIT = "audit.handler.AuditFunction.process"
"""The entry of an event into `audit`: a message of the queue."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measure: its count, its goal, and the names of what was counted."""

    label: str
    count: str
    goal: str = ""
    counted: Sequence[str] = ()

    @classmethod
    def of_list(cls, label: str, counted: Sequence[str], goal: str = "") -> Row:
        """Returns a measure that is the length of a list."""
        return cls(label, f"{len(counted):,}", goal, counted)


def main() -> None:
    """Prints the measures."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print what was counted, too")
    with_lists = parser.parse_args().list
    code = Code.read(FUNCTIONS)
    for row in (*form_rows(code), *trace_rows(code), *size_rows(code)):
        by_hand = f" (by hand: {row.counted[0]})" if row in BY_HAND else ""
        print(f"{row.label:<62}{row.count:>16}  {row.goal}{by_hand}".rstrip())
        for name in row.counted if with_lists and not by_hand else ():
            print(f"    {name}")


def form_rows(code: Code) -> Iterator[Row]:
    """Yields the measures of types and tables that repeat each other."""
    trace, summaries = follow(code, NOTIFY), forms.summaries(code)
    yield Row(
        "types for a run without its document",
        f"{len(summaries)} ({sum(summaries.values())} fields)",
        "1, and 1 of sums",
        [f"{name}: {count}" for name, count in summaries.items()],
    )
    readers = forms.document_readers(trace)
    yield Row.of_list("functions that read the document for one message", readers, "1")
    yield Row.of_list(
        "message kinds", forms.message_kinds(code), "7, with running jobs and budgets"
    )
    yield Row.of_list("amounts that are never added", forms.amounts(code), "2")
    yield Row.of_list("states that decisions depend on", forms.states(trace), "4")
    yield Row.of_list("files that a new field of a job touches", forms.field_modules(code), "2")
    yield Row.of_list("silent ways to lose a field of a job", forms.silent_losses(code), "0")


def trace_rows(code: Code) -> Iterator[Row]:
    """Yields the measures of the calls that follow one event."""
    yield from _trace_rows(
        "a stored audit through notify", follow(code, NOTIFY), max_modules=8, max_upward_calls=5
    )
    yield from _trace_rows(
        "one event through audit", follow(code, AUDIT), max_modules=30, max_upward_calls=15
    )


def _trace_rows(
    label: str, trace: CallTrace, *, max_modules: int, max_upward_calls: int
) -> Iterator[Row]:
    yield Row.of_list(
        f"modules entered by {label}", trace.entered_modules(), f"at most {max_modules}"
    )
    yield Row.of_list(
        f"upward calls of {label}",
        list(map(_arrow, trace.upward_calls())),
        f"at most {max_upward_calls}",
    )


def _arrow(call: Call) -> str:
    return f"{call.caller}:{call.line} -> {call.callee}"


def size_rows(code: Code) -> Iterator[Row]:
    """Yields the measures of size."""
    trees = code.modules()
    whole = sizes.lines(FUNCTIONS)
    fakes = ROOT / "tests" / "fakes"
    folder, max_modules = sizes.largest_folder(PACKAGE)
    alert_classes = sizes.alert_classes(trees)
    yield Row("lines of functions/", f"{whole:,}", "about 53,000, then about 50,000")
    yield Row("lines of tests/", f"{sizes.lines(ROOT / 'tests'):,}")
    yield Row("files of the package", f"{len(sizes.files(PACKAGE))}", "at most 330")
    yield Row("classes of functions/", f"{sizes.classes(trees)}", "at most 420")
    yield Row("percent of lines that import", f"{sizes.import_share(trees, whole):.1f}", "about 6")
    yield Row("comments # fmt: skip in tests/", f"{sizes.skips(ROOT / 'tests')}", "0")
    yield Row(
        "lines of fakes and builders: tests/fakes/", f"{sizes.lines(fakes):,}", "at most 5,000"
    )
    top = len(list(sizes.modules(PACKAGE)))
    yield Row("modules directly in sageaudit/", f"{top}", "at most 5")
    yield Row(f"largest folder: {folder}", f"{max_modules}", "at most 20")
    lone = sizes.lone_modules(trees)
    yield Row.of_list("modules with exactly one importer", lone, "at most 60")
    ambiguous = sizes.ambiguous_names(trees)
    yield Row.of_list("class names that stand for several things", ambiguous, "at most 0")
    yield Row.of_list("classes for one decision to alert", alert_classes, "at most 8")
    yield from BY_HAND


BY_HAND = (
    Row(
        "make test on two cores",
        "3 min 26 s",
        "at most 3 min 30 s",
        ("CONTRIBUTING.md, 2026-11-29",),
    ),
    Row(
        "start of the functions, times boto3 with their clients",
        "0.91 to 1.20",
        "at most 1.15",
        ("docs/performance.md, 2026-11-30: make bench PART=starts",),
    ),
)
"""Measures that are entered by hand, with the page that has them and its date."""


if __name__ == "__main__":
    main()
