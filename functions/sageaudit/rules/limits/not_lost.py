"""Why a run that ended early is not judged lost."""

from __future__ import annotations

from sageaudit.domain.job.failure import is_trial, kept, limit_hit
from sageaudit.rules import api


def not_lost(job: api.Job) -> api.NotApplicable | api.Unknown | None:
    """Why a run that was stopped, or reached its limit, is not judged lost, or None.

    A run that failed by itself is lost whatever it left before.
    """
    stopped = job.status == "Stopped"
    if not stopped and limit_hit(job) is None:
        return None
    if stopped and is_trial(job):
        return api.NotApplicable("stopped by or with its tuning job")
    if left := kept(job):
        return api.NotApplicable(f"it ended early, but it left {left}")
    if stopped and job.left_artifact is None:
        reason = "whether the stopped job left anything is not recorded"
        return api.Unknown("artifact_unknown", reason)
    return None
