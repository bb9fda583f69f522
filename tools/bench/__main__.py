"""`make bench` runs every measurement; `python -m tools.bench history bills` runs those named.

Each part is a module of this package with `rows() -> Iterator[Row]`. Times are CPU seconds of one
core. A figure and its peer are measured alternately, and each is the median of several samples.
"""

from __future__ import annotations

import sys
from importlib import import_module

PARTS = ("core", "start", "command_line", "deployed", "sweeps", "history", "bills")


def main(names: list[str]) -> int:
    """Prints each row as soon as it is measured. Returns 2 if a part does not exist."""
    if unknown := [name for name in names if name not in PARTS]:
        print(f"no part {unknown[0]}: there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    for name in names or PARTS:
        print(f"\n{name}", flush=True)
        for row in import_module(f"tools.bench.{name}").rows():
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
