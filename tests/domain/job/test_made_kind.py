"""A kind of job is a member of JobKind and its row: nothing else decides by the kind."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
ARN = "arn:aws:sagemaker:us-east-1:111122223333:study-job/nightly-study"


def test_a_row_alone_is_listed_swept_summed_and_in_the_only_message() -> None:
    """A kind that AWS does not have; its jobs are of three kinds, and get no message."""
    paths = os.pathsep.join((str(ROOT / "functions"), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.made_kind"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
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
