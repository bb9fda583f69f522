"""`make bench`: every measurement, or those named: `python -m tools.bench history bills`.

Each part is a module of this package with `rows() -> Iterator[Row]`. Times are CPU seconds of one
core; a figure and its peer take turns, and each is the median of several samples.
"""

from __future__ import annotations

import sys
from importlib import import_module

PARTS = ("core", "start", "deployed", "command_line", "bills")


def main(names: list[str]) -> int:
    """Prints each row as it is known; 2 for a part that does not exist."""
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
