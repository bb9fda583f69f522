"""What is installed: pinned, the same everywhere, and new enough."""

import re
from pathlib import Path

import boto3
import pytest

ROOT = Path(__file__).parents[2]
LISTS = (ROOT / "requirements.txt", ROOT / "functions" / "requirements.txt")
PIN = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.parent.name)
def test_every_requirement_is_pinned(path: Path) -> None:
    """Transitive requirements are pinned too, so that the same commit is the same program next
    year.
    """
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    requirements = [line for line in lines if not line.lstrip().startswith(("#", "--hash"))]
    assert requirements
    assert all(PIN.match(line) for line in requirements)


def test_the_lambdas_run_what_was_tested() -> None:
    """Their list has the same versions, with hashes."""
    tested, bundled = (dict(PIN.findall(path.read_text(encoding="utf-8"))) for path in LISTS)
    assert bundled.items() <= tested.items()


def test_the_sagemaker_model_knows_instance_preferences() -> None:
    """An older boto3 silently drops the fields that name the type for which a job was billed."""
    client = boto3.client("sagemaker")
    shapes = ("ResourceConfig", "ProcessingClusterConfig")
    for shape in shapes:
        members = client.meta.service_model.shape_for(shape).members
        assert {"SelectedInstanceType", "SelectedInstanceCount"} <= members.keys()
