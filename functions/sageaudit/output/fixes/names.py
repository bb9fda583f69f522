"""The table of names: what each dialect calls a parameter of the Create*Job requests.

In a path, `*` stands for a name chosen by the user (a channel, a variable). An argument is written
as a way that starts at the call: `ModelTrainer > compute:Compute > instance_type` means
`ModelTrainer(compute=Compute(instance_type=...))`; `[channel_name]` is a list whose elements have
that argument as their name, `{*}` a mapping. None: the dialect has no such argument.

Sources: those of `training`.
"""

from __future__ import annotations

from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.fixes import training
from sageaudit.output.fixes.training import TRAINING, Names


def _both(way: str) -> Names:
    """The same way in both SDKs: v3 kept the classes and arguments of v2."""
    return Names(way, way)


_CLUSTER = "ProcessingResources.ClusterConfig."
_PROCESSING = {
    f"{_CLUSTER}InstanceCount": _both("Processor > instance_count"),
    f"{_CLUSTER}InstanceType": _both("Processor > instance_type"),
    f"{_CLUSTER}VolumeSizeInGB": _both("Processor > volume_size_in_gb"),
    "Environment.*": _both("Processor > env{*}"),
    "NetworkConfig.EnableNetworkIsolation": _both(
        "Processor > network_config:NetworkConfig > enable_network_isolation"
    ),
    "ProcessingInputs[*].S3Input.S3DataDistributionType": Names(
        "processor.run > inputs[input_name]:ProcessingInput > s3_input:ProcessingS3Input > "
        "s3_data_distribution_type",
        "processor.run > inputs[input_name]:ProcessingInput > s3_data_distribution_type",
    ),
    "ProcessingInputs[*].S3Input.S3InputMode": Names(
        "processor.run > inputs[input_name]:ProcessingInput > s3_input:ProcessingS3Input > "
        "s3_input_mode",
        "processor.run > inputs[input_name]:ProcessingInput > s3_input_mode",
    ),
    "ProcessingOutputConfig.Outputs[*].S3Output.S3UploadMode": Names(
        "processor.run > outputs[output_name]:ProcessingOutput > s3_output:ProcessingS3Output > "
        "s3_upload_mode",
        "processor.run > outputs[output_name]:ProcessingOutput > s3_upload_mode",
    ),
    "StoppingCondition.MaxRuntimeInSeconds": _both("Processor > max_runtime_in_seconds"),
    "Tags[*].Value": _both("Processor > tags[Key]:{} > Value"),
}
_TRANSFORM = {
    "BatchStrategy": _both("Transformer > strategy"),
    "Environment.*": _both("Transformer > env{*}"),
    "MaxConcurrentTransforms": _both("Transformer > max_concurrent_transforms"),
    "MaxPayloadInMB": _both("Transformer > max_payload"),
    "Tags[*].Value": _both("Transformer > tags[Key]:{} > Value"),
    "TransformInput.SplitType": _both("transformer.transform > split_type"),
    "TransformOutput.AssembleWith": _both("Transformer > assemble_with"),
    "TransformResources.InstanceCount": _both("Transformer > instance_count"),
    "TransformResources.InstanceType": _both("Transformer > instance_type"),
}
_CONFIG = "HyperParameterTuningJobConfig."
_DONE = "TuningJobCompletionCriteria."
_STRATEGY = "StrategyConfig.HyperbandStrategyConfig."
_V3_DONE = "HyperparameterTuner > completion_criteria_config:TuningJobCompletionCriteria > "
_V2_DONE = "HyperparameterTuner > completion_criteria_config:TuningJobCompletionCriteriaConfig > "
_V3_BAND = (
    "HyperparameterTuner > strategy_config:HyperParameterTuningJobStrategyConfig > "
    "hyperband_strategy_config:HyperbandStrategyConfig > "
)
_V2_BAND = (
    "HyperparameterTuner > strategy_config:StrategyConfig > "
    "hyperband_strategy_config:HyperbandStrategyConfig > "
)
_TUNING = {
    "Tags[*].Value": _both("HyperparameterTuner > tags[Key]:{} > Value"),
    f"{_CONFIG}ResourceLimits.MaxNumberOfTrainingJobs": _both("HyperparameterTuner > max_jobs"),
    f"{_CONFIG}ResourceLimits.MaxParallelTrainingJobs": _both(
        "HyperparameterTuner > max_parallel_jobs"
    ),
    f"{_CONFIG}ResourceLimits.MaxRuntimeInSeconds": _both(
        "HyperparameterTuner > max_runtime_in_seconds"
    ),
    f"{_CONFIG}Strategy": _both("HyperparameterTuner > strategy"),
    f"{_CONFIG}{_STRATEGY}MaxResource": Names(_V3_BAND + "max_resource", _V2_BAND + "max_resource"),
    f"{_CONFIG}{_STRATEGY}MinResource": Names(_V3_BAND + "min_resource", _V2_BAND + "min_resource"),
    f"{_CONFIG}TrainingJobEarlyStoppingType": _both("HyperparameterTuner > early_stopping_type"),
    f"{_CONFIG}{_DONE}BestObjectiveNotImproving.MaxNumberOfTrainingJobsNotImproving": Names(
        _V3_DONE + "best_objective_not_improving:BestObjectiveNotImproving > "
        "max_number_of_training_jobs_not_improving",
        _V2_DONE + "max_number_of_training_jobs_not_improving",
    ),
    f"{_CONFIG}{_DONE}ConvergenceDetected.CompleteOnConvergence": Names(
        _V3_DONE + "convergence_detected:ConvergenceDetected > complete_on_convergence",
        _V2_DONE + "complete_on_convergence",
    ),
}
_NOT_IN_A_DEFINITION = ("Debug", "Profiler", "Tags")
DEFINITION = "TrainingJobDefinition."
_TRIALS = {
    f"{DEFINITION}{path.replace('HyperParameters.', 'StaticHyperParameters.')}": Names(
        names.v3, names.v2 and names.v2.replace("estimator.fit", "tuner.fit")
    )
    for path, names in TRAINING.items()
    if not path.startswith(_NOT_IN_A_DEFINITION)
}
"""Parameters of a tuning job's trials: the SDKs' tuners take them from an estimator or trainer."""

NAMES: dict[JobKind, dict[str, Names]] = {
    JobKind.TRAINING: TRAINING,
    JobKind.PROCESSING: _PROCESSING,
    JobKind.TRANSFORM: _TRANSFORM,
    JobKind.TUNING: _TUNING | _TRIALS,
}
"""A kind without an entry has only the request's own names."""

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

WRITTEN = training.WRITTEN | {
    _V2_DONE + "complete_on_convergence": {"Enabled": True, "Disabled": False},
}
ALWAYS_SENT = {"Estimator > volume_size", "Processor > volume_size_in_gb"}
"""The SDK sends its default when the argument is absent."""
