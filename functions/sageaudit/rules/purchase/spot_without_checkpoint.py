"""A long run on managed spot keeps no checkpoints.

What it checks: A training job on managed spot took more than an hour without CheckpointConfig, and
    nothing in its hyperparameters, environment or command is a sign of checkpoints of its own.
Why it costs: An interruption ends the containers. Without checkpoints the run starts again from the
    beginning, and what was billed before is wasted.
Saving: None is counted: how often this run will be interrupted is not known, and AWS does not state
    how the seconds of an interrupted run are billed.
When it is wrong: Code that writes checkpoints to S3 itself, under a name that does not show it.
What to do: Set CheckpointConfig.S3Uri, write to its LocalPath (default /opt/ml/checkpoints) and
    load from there at the start: SageMaker copies both ways.
Sources: SageMaker guide, managed spot training: use checkpoints; without them MaxWait is limited to
    3,600 s for built-in and marketplace algorithms.
"""

from __future__ import annotations

from sageaudit.rules import api

OVER = api.Threshold(
    "over_s", 3600, "seconds", "the longest wait without checkpoints", "SageMaker spot guide"
)


@api.rule(
    id="SA402",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(OVER,),
    not_applicable=(api.on_demand, api.never_started),
)
def check(case: api.JobCase) -> api.Outcome:
    """A sign of checkpoints clears it, as CheckpointConfig does."""
    job = case.job
    if job.checkpointed or job.hints.own_checkpoints:
        return api.Clear()
    if job.elapsed_s is None:
        return api.TIMES_MISSING
    if job.elapsed_s <= case.limit(OVER):
        return api.Clear()
    return api.advice(
        f"{api.duration(job.elapsed_s)} on managed spot without checkpoints: each interruption "
        f"starts the run again ({job.interruptions or 'none'} so far).",
        {"elapsed_s": job.elapsed_s, "interruptions": job.interruptions},
        fix=(api.CHECKPOINTS,),
        caution="How often it will be interrupted is not known.",
    )
