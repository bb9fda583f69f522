"""The table of names: what the SageMaker SDKs call a parameter of the Create*Job requests.

In a path, `*` stands for a name chosen by the user (a channel, a variable). An argument is written
as a way that starts at the call: `ModelTrainer > compute:Compute > instance_type` means
`ModelTrainer(compute=Compute(instance_type=...))`; `[channel_name]` is a list whose elements have
that argument as their name, `{*}` a mapping. None: the dialect has no such argument.

Sources: SageMaker Python SDK, sagemaker 2.257.7 (v2), sagemaker-train 1.27.0 and sagemaker-core
2.27.0 (v3); Terraform AWS provider, the page of aws_sagemaker_training_job.
"""

from __future__ import annotations

from dataclasses import dataclass

from sageaudit.domain.job.kinds import JobKind


@dataclass(frozen=True, slots=True)
class Names:
    """The way to one parameter in each SDK; None where there is no argument."""

    v3: str | None
    v2: str | None


def _both(way: str) -> Names:
    """The same way in both SDKs: v3 kept the classes and arguments of v2."""
    return Names(way, way)


def _group(path: str, v3: str, v2: str, **members: str) -> dict[str, Names]:
    """The members of a structure: each with its argument in v3, then in v2 if that differs."""
    words = {member: names.split() for member, names in members.items()}
    return {f"{path}{member}": Names(v3 + one[0], v2 + one[-1]) for member, one in words.items()}


_V3, _V2 = "ModelTrainer > ", "Estimator > "
_COMPUTE = _V3 + "compute:Compute > "
_CHECKPOINT = _V3 + "checkpoint_config:CheckpointConfig > "
_NETWORK = _V3 + "networking:Networking > "
_STOP = _V3 + "stopping_condition:StoppingCondition > "
_CHANNEL = _V3 + "input_data_config[channel_name]:Channel > "
_SOURCE = _CHANNEL + "data_source:DataSource > s3_data_source:S3DataSource > "
_V2_INPUT = "estimator.fit > inputs{*}:TrainingInput > "
_INSTANCES = "instance_groups[instance_group_name]:InstanceGroup > "
_TRAINING = {
    **_group(
        "AlgorithmSpecification.",
        _V3,
        _V2,
        TrainingImage="training_image image_uri",
        TrainingInputMode="training_input_mode input_mode",
    ),
    **_group(
        "CheckpointConfig.",
        _CHECKPOINT,
        _V2 + "checkpoint_",
        LocalPath="local_path",
        S3Uri="s3_uri",
    ),
    "DebugHookConfig": Names(None, _V2 + "debugger_hook_config"),
    "DebugRuleConfigurations[*].InstanceType": Names(None, None),
    "ProfilerRuleConfigurations[*].InstanceType": Names(None, None),
    **_group(
        "",
        _NETWORK,
        _V2,
        EnableInterContainerTrafficEncryption="enable_inter_container_traffic_encryption"
        " encrypt_inter_container_traffic",
        EnableNetworkIsolation="enable_network_isolation",
    ),
    "EnableManagedSpotTraining": Names(
        _COMPUTE + "enable_managed_spot_training", _V2 + "use_spot_instances"
    ),
    "Environment.*": Names(_V3 + "environment{*}", _V2 + "environment{*}"),
    "HyperParameters.sagemaker_training_compiler_enabled": Names(
        _V3 + "hyperparameters{sagemaker_training_compiler_enabled}",
        "HuggingFace > compiler_config",
    ),
    "HyperParameters.*": Names(_V3 + "hyperparameters{*}", _V2 + "hyperparameters{*}"),
    **_group(
        "InputDataConfig[*].DataSource.S3DataSource.",
        _SOURCE,
        _V2_INPUT,
        S3DataDistributionType="s3_data_distribution_type distribution",
        S3DataType="s3_data_type",
        S3Uri="s3_uri s3_data",
    ),
    "InputDataConfig[*].InputMode": Names(_CHANNEL + "input_mode", _V2_INPUT + "input_mode"),
    "OutputDataConfig.CompressionType": Names(
        _V3 + "output_data_config:OutputDataConfig > compression_type",
        _V2 + "disable_output_compression",
    ),
    "ProfilerConfig.DisableProfiler": Names(None, _V2 + "disable_profiler"),
    "ProfilerConfig.S3OutputPath": Names(
        None, _V2 + "profiler_config:ProfilerConfig > s3_output_path"
    ),
    **_group(
        "ResourceConfig.",
        _COMPUTE,
        _V2,
        InstanceCount="instance_count",
        InstanceType="instance_type",
        KeepAlivePeriodInSeconds="keep_alive_period_in_seconds",
        VolumeSizeInGB="volume_size_in_gb volume_size",
    ),
    **_group(
        "ResourceConfig.InstanceGroups[*].",
        _COMPUTE + _INSTANCES,
        _V2 + _INSTANCES,
        InstanceCount="instance_count",
        InstanceType="instance_type",
    ),
    "RetryStrategy.MaximumRetryAttempts": Names(
        "model_trainer.with_retry_strategy > retry_strategy:RetryStrategy > maximum_retry_attempts",
        _V2 + "max_retry_attempts",
    ),
    **_group(
        "StoppingCondition.",
        _STOP,
        _V2,
        MaxRuntimeInSeconds="max_runtime_in_seconds max_run",
        MaxWaitTimeInSeconds="max_wait_time_in_seconds max_wait",
    ),
    "Tags[*].Value": Names(_V3 + "tags[key]:Tag > value", _V2 + "tags[Key]:{} > Value"),
}
_INPUT = "processor.run > inputs[input_name]:ProcessingInput > "
_OUTPUT = "processor.run > outputs[output_name]:ProcessingOutput > "
_PROCESSING = {
    **_group(
        "ProcessingResources.ClusterConfig.",
        "Processor > ",
        "Processor > ",
        InstanceCount="instance_count",
        InstanceType="instance_type",
        VolumeSizeInGB="volume_size_in_gb",
    ),
    "Environment.*": _both("Processor > env{*}"),
    "NetworkConfig.EnableNetworkIsolation": _both(
        "Processor > network_config:NetworkConfig > enable_network_isolation"
    ),
    **_group(
        "ProcessingInputs[*].S3Input.",
        _INPUT + "s3_input:ProcessingS3Input > ",
        _INPUT,
        S3DataDistributionType="s3_data_distribution_type",
        S3InputMode="s3_input_mode",
    ),
    "ProcessingOutputConfig.Outputs[*].S3Output.S3UploadMode": Names(
        _OUTPUT + "s3_output:ProcessingS3Output > s3_upload_mode", _OUTPUT + "s3_upload_mode"
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
_TUNER = "HyperparameterTuner > "
_CONFIG = "HyperParameterTuningJobConfig."
_DONE = f"{_CONFIG}TuningJobCompletionCriteria."
_V3_DONE = _TUNER + "completion_criteria_config:TuningJobCompletionCriteria > "
_V2_DONE = _TUNER + "completion_criteria_config:TuningJobCompletionCriteriaConfig > "
_BAND = "hyperband_strategy_config:HyperbandStrategyConfig > "
_TUNING = {
    "Tags[*].Value": _both(_TUNER + "tags[Key]:{} > Value"),
    **_group(
        f"{_CONFIG}ResourceLimits.",
        _TUNER,
        _TUNER,
        MaxNumberOfTrainingJobs="max_jobs",
        MaxParallelTrainingJobs="max_parallel_jobs",
        MaxRuntimeInSeconds="max_runtime_in_seconds",
    ),
    f"{_CONFIG}Strategy": _both(_TUNER + "strategy"),
    **_group(
        f"{_CONFIG}StrategyConfig.HyperbandStrategyConfig.",
        _TUNER + "strategy_config:HyperParameterTuningJobStrategyConfig > " + _BAND,
        _TUNER + "strategy_config:StrategyConfig > " + _BAND,
        MaxResource="max_resource",
        MinResource="min_resource",
    ),
    f"{_CONFIG}TrainingJobEarlyStoppingType": _both(_TUNER + "early_stopping_type"),
    f"{_DONE}BestObjectiveNotImproving.MaxNumberOfTrainingJobsNotImproving": Names(
        _V3_DONE + "best_objective_not_improving:BestObjectiveNotImproving > "
        "max_number_of_training_jobs_not_improving",
        _V2_DONE + "max_number_of_training_jobs_not_improving",
    ),
    f"{_DONE}ConvergenceDetected.CompleteOnConvergence": Names(
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
    for path, names in _TRAINING.items()
    if not path.startswith(_NOT_IN_A_DEFINITION)
}
"""Parameters of a tuning job's trials: the SDKs' tuners take them from an estimator or trainer."""

NAMES: dict[JobKind, dict[str, Names]] = {
    JobKind.TRAINING: _TRAINING,
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

WRITTEN: dict[str, dict[str | None, object]] = {
    _V2 + "debugger_hook_config": {None: False},
    _V2 + "disable_output_compression": {"NONE": True, "GZIP": False, None: False},
    _COMPUTE + "volume_size_in_gb": {None: None},
    _V2_DONE + "complete_on_convergence": {"Enabled": True, "Disabled": False},
}
"""Values that an argument takes instead; the key None means that the parameter is removed."""
NOTES = {_CHANNEL + "input_mode": "a Channel in place of InputData, which takes no input mode"}
NOT_IN_TERRAFORM = frozenset({"ProfilerRuleConfigurations[*].InstanceType"})
ALWAYS_SENT = {"Estimator > volume_size", "Processor > volume_size_in_gb"}
"""The SDK sends its default when the argument is absent."""
