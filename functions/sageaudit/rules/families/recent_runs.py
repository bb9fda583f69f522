"""The runs of a family in the days before a run."""

from __future__ import annotations

from datetime import timedelta

from sageaudit.rules import api


def recent_runs(case: api.FamilyCase, within_days: float) -> list[api.EarlierRun] | None:
    """Those that ended in these days before this run started; None when its start is not known."""
    started_at = case.job.started_at or case.job.created_at
    if started_at is None:
        return None
    days = timedelta(days=within_days)
    return [run for run in case.runs if timedelta(0) <= started_at - run.ended_at <= days]
