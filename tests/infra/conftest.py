"""Synthesis is slow: the template is made once."""

from __future__ import annotations

from typing import Any

import pytest

from infra.template import from_stub, normalized

OTHER_ACCOUNT = "444455556666"
OTHER_ROLE = f"arn:aws:iam::{OTHER_ACCOUNT}:role/sageaudit-reader"


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    """The stack with every channel and no further account."""
    return normalized(from_stub({}, channels="on"))


@pytest.fixture(scope="session")
def quiet_template() -> dict[str, Any]:
    """The stack without Slack and with one further account."""
    return normalized(from_stub({OTHER_ACCOUNT: OTHER_ROLE}, channels="off"))
