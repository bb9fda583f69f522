"""No command ends as a bug because of one odd value in a file that it is given."""

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command_line import Run
from tests.properties.odd_values import ABSENT, ODD_VALUES, paths, replaced, some_of

ROOT = Path(__file__).parents[2]
RECORDINGS, REQUESTS = ROOT / "local" / "recordings", ROOT / "tests" / "cli" / "requests"
INPUTS = ROOT / "tests" / "labelled" / "before_run" / "inputs"
RECORDING_COMMANDS = (
    ("audit", "--recording"),
    ("what-if", "--instance-type", "ml.g5.xlarge", "--recording"),
    ("notify", "--recording"),
)
"""`record` and `report` read recordings by the same function as these."""
FILES: dict[Path, tuple[tuple[str, ...], ...]] = {
    **{
        RECORDINGS / f"{name}.json": RECORDING_COMMANDS
        for name in ("processing-051-completed", "composed-g4dn-12xlarge")
    },
    **dict.fromkeys(sorted(REQUESTS.glob("*.json")), (("check",),)),
    **{
        INPUTS / f"{name}.json": (("check",),)
        for name in ("training_plan", "pipeline_other_steps", "terraform_pipeline_inside")
    },
}
STEP = 97
"""Of the many cases, `make test-all` tries each 97th of a file."""


def odd_versions(path: Path) -> Iterator[tuple[str, str]]:
    """Yields texts of the file in which one part is odd, each with the name of what is odd."""
    whole = json.loads(path.read_text())
    for leaf, value in some_of(product(paths(whole), (*ODD_VALUES, ABSENT)), each=STEP):
        odd = replaced(whole, leaf, value)
        yield f"{leaf} = {value!r}", json.dumps(odd, default=as_number)


def as_number(value: Any) -> float:
    """Returns a decimal as JSON has it."""
    assert isinstance(value, Decimal)
    return float(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_odd_value_ends_no_command_as_a_bug(run: Run, tmp_path: Path, path: Path) -> None:
    """Each command audits what it can, or says in a sentence what is wrong with the file."""
    odd, failed = tmp_path / path.name, []
    for place, text in odd_versions(path):
        odd.write_text(text)
        for words in FILES[path]:
            done = run(*words, odd)
            if "a bug in sageaudit" in done.stderr or "Traceback" in done.stderr:
                failed.append((place, words[0], done.stderr[-200:]))
    assert failed == []
