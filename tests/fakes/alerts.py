"""Alerts that were sent."""

from datetime import UTC, datetime
from typing import Any

from sageaudit.domain.alert.alert import Alert, AlertKind
from sageaudit.domain.alert.audit_figures import AlertFigures

NINE = datetime(2026, 5, 20, 9, 2, tzinfo=UTC)


def alert(
    figures: AlertFigures, version: int = 1, at: datetime = NINE, run: str = "r", **more: Any
) -> Alert:
    """The first one about a run."""
    return Alert(
        run,
        **{"family": "f", "kind": AlertKind.FIRST} | more,
        version=version,
        figures=figures,
        at=at,
    )
