"""Measures what byte code saves at a cold start: the CPU to import each handler, with and without.

`PYTHONPATH=functions .venv/bin/python -m tools.cold_start` needs the Python of Lambda on this
machine. Machines differ: compare the quotient. Each figure is the median of several processes, and
the two kinds take turns.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from infra import byte_code
from infra.bundling import LAMBDA, LAMBDA_PYTHON, POLICY, checked_policy, stage

RUNS = 9
_IMPORT = (
    "import sys, importlib;"
    " sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [sys.argv[1]];"
    " importlib.import_module(sys.argv[2] + '.handler')"
)


def import_cpu_s(python: str, asset: Path, name: str) -> float:
    """The CPU seconds of a process that imports one handler and writes no byte code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [python, "-I", "-S", "-B", "-c", _IMPORT, str(asset), name],
        check=True,
        env={"PATH": os.defpath, "POWERTOOLS_SERVICE_NAME": name, "AWS_REGION": "us-east-1"},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Prints one line for each handler."""
    found = byte_code.find(LAMBDA_PYTHON)
    if found is None:
        raise SystemExit(byte_code.missing(LAMBDA_PYTHON))
    compiled = stage(LAMBDA, checked_policy(POLICY)).folder
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain")
        shutil.copytree(compiled, plain, ignore=shutil.ignore_patterns("__pycache__"))
        files = [len(list(asset.rglob("*.py*"))) for asset in (plain, compiled)]
        print(f"{files[0]} modules; {files[1] - files[0]} of them compiled by {found.version}")
        for handler in sorted(compiled.glob("*/handler.py")):
            name = handler.parent.name
            seconds: dict[Path, list[float]] = {plain: [], compiled: []}
            for _ in range(RUNS):
                for asset, taken in seconds.items():
                    taken.append(import_cpu_s(found.path, asset, name))
            without, with_it = (statistics.median(taken) for taken in seconds.values())
            print(
                f"{name:8} {without:.2f} s without, {with_it:.2f} s with: {without / with_it:.1f}x"
            )


if __name__ == "__main__":
    main()
