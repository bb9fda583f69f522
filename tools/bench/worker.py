"""Takes the samples that another process requests: `python worker.py MODULE.py`.

It runs as a script, with the measured checkout on PYTHONPATH, and imports nothing from `tools`.
First it prints the labels and units of the module as JSON, then a figure for each label on stdin.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def main(path: Path) -> None:
    """Serves until stdin ends. What a sample prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a module")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    units = {label: unit for label, (unit, _) in module.MEASURED.items()}
    print(json.dumps(units), file=answers, flush=True)
    for line in sys.stdin:
        print(module.MEASURED[line.strip()][1](), file=answers, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
