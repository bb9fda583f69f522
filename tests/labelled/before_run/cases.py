"""What a reviewer says of job requests before they run. README.md tells how to read a case."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
SEVERITIES = ("info", "low", "medium", "high")


@dataclass(frozen=True)
class Case:
    """One request, as its owner has it on disk, and what is said of it, as the file has it."""

    name: str
    form: str
    region: str
    said: dict[str, Any]

    @property
    def file(self) -> Path:
        """The request."""
        return _HERE / "inputs" / f"{self.name}.json"


CASES = tuple(
    Case(one["name"], one["form"], one["region"], one)
    for one in json.loads((_HERE / "cases.json").read_text(encoding="utf-8"))["cases"]
)
