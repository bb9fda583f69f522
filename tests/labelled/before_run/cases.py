"""Job requests with a reviewer's verdict before they run; README.md explains the keys."""

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

_HERE = Path(__file__).parent
SEVERITIES = ("info", "low", "medium", "high")


class Case(Struct, frozen=True):
    """One request as its owner has it on disk, and the reviewer's verdict."""

    name: str
    form: str
    region: str
    verdict: dict[str, Any]
    """Its entry in cases.json."""

    @property
    def file(self) -> Path:
        """The path of the request."""
        return _HERE / "inputs" / f"{self.name}.json"


CASES = tuple(
    Case(case["name"], case["form"], case["region"], case)
    for case in json.loads((_HERE / "cases.json").read_text(encoding="utf-8"))["cases"]
)
