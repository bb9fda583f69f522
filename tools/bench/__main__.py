"""`make bench` takes every measurement: `make bench PART="core histories" BASE=../before`.

Each part is a module of `samples`, or a module beside this one whose `rows()` counts. BASE is a
checkout of an earlier version, which is measured alternately with this one. `RESULTS` keeps the
samples, from which `make docs` writes the tables of docs/performance.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tools.bench.measure import SAMPLES, Row, measure_sample
from tools.bench.parts import COUNTED, PARTS
from tools.bench.results import RESULTS, keep_row


def main() -> int:
    """Prints each row as soon as it is measured. Returns 2 if a part does not exist."""
    options = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=", ".join((*PARTS, *COUNTED)))
    options.add_argument("--base", type=Path, help="a checkout of the version before")
    options.add_argument("--only", default="", metavar="TEXT", help="labels with this text")
    options.add_argument("--keep", action="store_true", help=f"write the samples to {RESULTS.name}")
    chosen = options.parse_args()
    all_parts = (*PARTS, *COUNTED)
    if unknown := [name for name in chosen.parts if name not in all_parts]:
        print(f"no part {unknown[0]}: there are {', '.join(all_parts)}", file=sys.stderr)
        return 2
    for name in chosen.parts or all_parts:
        print(f"\n{name}", flush=True)
        for row in _rows(name, chosen.base, chosen.only):
            print(row, flush=True)
            if chosen.keep:
                keep_row(name, row, chosen.base if row.before else None)
    return 0


def _rows(name: str, base: Path | None, only: str) -> Iterator[Row]:
    if name in COUNTED:
        rows: Iterator[Row] = import_module(f"tools.bench.{name}").rows()
        return rows
    return measure_sample(SAMPLES / f"{name}.py", PARTS[name], base, only)


if __name__ == "__main__":
    sys.exit(main())
