"""A kind of job is a member of JobKind and its row. No other code decides by the kind."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
ARN = "arn:aws:sagemaker:us-east-1:111122223333:study-job/nightly-study"


ALL_KINDS = re.compile(r"(?:in|=) JobKind\b(?![.:])|[(,] ?\*?JobKind\)")
"""The code of a file that loops over all kinds."""
COLLECT = """
import sys
from tests.fakes.made_kind import with_made_kind
with_made_kind()
import pytest
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs a process of this Python with the packages of the repository."""
    paths = os.pathsep.join((str(ROOT / "functions"), str(ROOT)))
    return subprocess.run(
        [sys.executable, *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
    )


def test_tests_are_collected_with_one_more_kind() -> None:
    """Every test file that loops over the kinds reads their rows, so their number does not
    matter.
    """
    files = [
        item for item in (ROOT / "tests").rglob("test_*.py") if ALL_KINDS.search(item.read_text())
    ]
    result = run("-c", COLLECT, *map(str, files))
    assert result.returncode == 0, result.stdout[-2000:]


def test_a_new_kind_needs_only_its_row() -> None:
    """A kind that AWS does not have. Its jobs are of three kinds, and get no message."""
    result = run("-m", "tests.fakes.made_kind")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "listed": ["nightly-study"],
        "found": 0,
        "sent_first": 1,
        "families": [ARN],
        "child_messages": ["child of a study job"] * 3,
        "message": None,
        "is_sum": True,
        "lost": True,
        "missing": [],
        "kinds": ["processing", "training", "transform"],
        "words": "study job nightly-study",
    }
