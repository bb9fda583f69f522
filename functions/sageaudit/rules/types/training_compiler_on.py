"""SageMaker Training Compiler is still switched on.

What it checks: The job's hyperparameters switch SageMaker Training Compiler on.
Why it costs: AWS makes no new release of it: it works only in old containers that get no patches,
    so that the job stays on an old framework, and on the instance types of that time.
Saving: None is counted: how fast the same job is without it is not known.
When it is wrong: A job may stay as it is if it trains faster with it, and its owner checks the
    image for security.
What to do: Remove the switch (`compiler_config` in the SageMaker Python SDK v2), move to a current
    container, and try `torch.compile` there.
Sources: SageMaker guide, Training Compiler: "no new releases or versions"; its containers get no
    patches. SageMaker Python SDK, TrainingCompilerConfig: the hyperparameters that it sets.
"""

from __future__ import annotations

from sageaudit.rules import api


@api.rule(
    id="SA305",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    before_run=api.Severity.MEDIUM,
)
def check(case: api.JobCase) -> api.Outcome:
    """Looks at the switch alone."""
    if not case.job.hints.training_compiler:
        return api.Clear()
    return api.advice(
        "SageMaker Training Compiler is on: it has no new releases and gets no patches.",
        {"training_compiler": True},
        fix=(api.Parameter("HyperParameters.sagemaker_training_compiler_enabled", "true", None),),
        caution="How fast the job is without it is not known.",
    )
