"""Generates the pages, and parts of pages, of docs/: `make docs`.

In a page that people write, `<!-- made: alarms -->` begins the generated part `alarms`, and `<!--
end -->` ends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_PART = re.compile(r"(<!-- made: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def replace_parts(page: str, parts: Mapping[str, str]) -> str:
    """Returns the page with the text of its marked parts replaced. `parts` is by name.

    Raises ValueError if the names differ from those of the page.
    """
    names = [name for _, name, _ in _PART.findall(page)]
    if sorted(names) != sorted(parts):
        raise ValueError(f"the page has the parts {names}, and made are {[*parts]}")
    return _PART.sub(lambda match: f"{match[1]}{parts[match[2]]}\n{match[3]}", page)
