"""What the SageMaker SDKs call a parameter of the Create*Job requests.

The table is `data/fix_names.json`: for each path its way in the SDK's version 3, then in 2; null
where there is no argument. In a path, `*` stands for a name chosen by the user (a channel, a
variable). A way starts at the call: `ModelTrainer > compute:Compute > instance_type` means
`ModelTrainer(compute=Compute(instance_type=...))`; `[channel_name]` is a list whose elements have
that argument as their name, `{*}` a mapping.

Sources: SageMaker Python SDK, sagemaker 2.257.7 (v2), sagemaker-train 1.27.0 and sagemaker-core
2.27.0 (v3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from sageaudit.domain.job.kinds import JobKind

TABLE = "fix_names.json"
"""In `sageaudit.data`."""
_NOT_IN_A_DEFINITION = ("Debug", "Profiler", "Tags")
DEFINITION = "TrainingJobDefinition."
ELEMENT_NAMES = {
    "DebugRuleConfigurations": "RuleConfigurationName",
    "ProfilerRuleConfigurations": "RuleConfigurationName",
    "InputDataConfig": "ChannelName",
    "InstanceGroups": "InstanceGroupName",
    "Outputs": "OutputName",
    "ProcessingInputs": "InputName",
    "Tags": "Key",
}
"""The members that identify an element of a request's list."""
TEXT_MAPS = frozenset({"Environment", "HyperParameters", "StaticHyperParameters"})
"""Maps of texts in a request."""
_CRITERIA = "completion_criteria_config:TuningJobCompletionCriteriaConfig"
WRITTEN: dict[str, dict[str | None, object]] = {
    "Estimator > debugger_hook_config": {None: False},
    "Estimator > disable_output_compression": {"NONE": True, "GZIP": False, None: False},
    "ModelTrainer > compute:Compute > volume_size_in_gb": {None: None},
    f"HyperparameterTuner > {_CRITERIA} > complete_on_convergence": {
        "Enabled": True,
        "Disabled": False,
    },
}
"""Values that an argument takes instead; the key None means that the parameter is removed."""
NOTES = {
    "ModelTrainer > input_data_config[channel_name]:Channel > input_mode": (
        "a Channel in place of InputData, which takes no input mode"
    )
}
ALWAYS_SENT = {"Estimator > volume_size", "Processor > volume_size_in_gb"}
"""The SDK sends its default when the argument is absent."""


class Names(NamedTuple):
    """The way to one parameter in each SDK; None where there is no argument."""

    v3: str | None
    v2: str | None


@cache
def names_of(kind: JobKind) -> Mapping[str, Names]:
    """By path; of a tuning job also the parameters of its trials, which the SDKs' tuners take from
    an estimator or trainer.
    """
    text = resources.files("sageaudit.data").joinpath(TABLE).read_text(encoding="utf-8")
    table = {path: Names(*ways) for path, ways in json.loads(text).get(kind.value, {}).items()}
    if kind is JobKind.TUNING:
        for path, (v3, v2) in names_of(JobKind.TRAINING).items():
            if not path.startswith(_NOT_IN_A_DEFINITION):
                of_trial = path.replace("HyperParameters.", "StaticHyperParameters.")
                of_tuner = v2 and v2.replace("estimator.fit", "tuner.fit")
                table[f"{DEFINITION}{of_trial}"] = Names(v3, of_tuner)
    return table
