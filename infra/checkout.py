"""Whether the code that runs is that of this checkout: a virtual environment has absolute paths.

In a moved checkout, Python finds no sageaudit. In a copied checkout, it finds the original's.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

_FUNCTIONS = Path(__file__).parent.parent / "functions"


def check_checkout() -> None:
    """Exits with a sentence on stderr if the installed package is not that of this checkout."""
    spec = find_spec("sageaudit")
    error = foreign_code_error(None if spec is None else spec.origin, _FUNCTIONS)
    if error is not None:
        sys.exit(error)


def foreign_code_error(module_file: str | None, functions: Path) -> str | None:
    """Returns why a module is not in the folder `functions`; None if it is.

    `module_file`: the file of the package that Python finds; None if it finds none.
    """
    if module_file and Path(module_file).resolve().is_relative_to(functions.resolve()):
        return None
    place = "no folder" if module_file is None else str(Path(module_file).parent)
    return (
        "sageaudit: this checkout was moved or copied after its .venv was made, which therefore"
        f" finds sageaudit in {place}: delete .venv, and run make again, which makes a new one"
    )
