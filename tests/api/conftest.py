"""Fixtures of guarded calls."""

from typing import Any

import pytest

from tests.fakes.guarded import Aws


@pytest.fixture
def aws() -> Aws:
    return Aws()


@pytest.fixture
def client(aws: Aws) -> Any:
    """Returns a SageMaker client whose calls are noted in `aws.sent`."""
    return aws.client()


@pytest.fixture
def written() -> list[str]:
    """Returns an empty list, for the texts of a guard."""
    return []
