"""What each dialect calls a parameter of the Create*Job requests: the one mapping table.

A path's `*` stands for a name of the user's (a channel, a variable). An argument is written as the
way to it, from what is called: `ModelTrainer > compute:Compute > instance_type` is
`ModelTrainer(compute=Compute(instance_type=...))`; `[channel_name]` is a list whose elements bear
that name, `{*}` a mapping. None: there is no such argument.

Sources: SageMaker Python SDK, sagemaker 2.257.7 (v2), sagemaker-train 1.27.0 and sagemaker-core
2.27.0 (v3); Terraform AWS provider, the page of aws_sagemaker_training_job; boto3's model of
CreateTrainingJob, CreateProcessingJob, CreateTransformJob and CreateHyperParameterTuningJob.
"""

from __future__ import annotations

from dataclasses import dataclass

from sageaudit.domain.document import Kind


@dataclass(frozen=True, slots=True)
class Names:
    """The ways to one parameter."""

    v3: str | None
    v2: str | None
    terraform: str | None = None


_COMPUTE = "ModelTrainer > compute:Compute > "
_STOP = "ModelTrainer > stopping_condition:StoppingCondition > "
_GROUPS = "instance_groups[instance_group_name]:InstanceGroup > "
_CHANNEL = "ModelTrainer > input_data_config[channel_name]:"
_INPUT = "input_data_config[channel_name] > "

_TRAINING = {
    "AlgorithmSpecification.TrainingImage": Names(
        "ModelTrainer > training_image",
        "Estimator > image_uri",
        "algorithm_specification > training_image",
    ),
    "AlgorithmSpecification.TrainingInputMode": Names(
        "ModelTrainer > training_input_mode",
        "Estimator > input_mode",
        "algorithm_specification > training_input_mode",
    ),
    "CheckpointConfig.LocalPath": Names(
        "ModelTrainer > checkpoint_config:CheckpointConfig > local_path",
        "Estimator > checkpoint_local_path",
        "checkpoint_config > local_path",
    ),
    "CheckpointConfig.S3Uri": Names(
        "ModelTrainer > checkpoint_config:CheckpointConfig > s3_uri",
        "Estimator > checkpoint_s3_uri",
        "checkpoint_config > s3_uri",
    ),
    "DebugHookConfig": Names(None, "Estimator > debugger_hook_config", "debug_hook_config"),
    "DebugRuleConfigurations[*].InstanceType": Names(
        None, None, "debug_rule_configurations[rule_configuration_name] > instance_type"
    ),
    "EnableInterContainerTrafficEncryption": Names(
        "ModelTrainer > networking:Networking > enable_inter_container_traffic_encryption",
        "Estimator > encrypt_inter_container_traffic",
        "enable_inter_container_traffic_encryption",
    ),
    "EnableManagedSpotTraining": Names(
        _COMPUTE + "enable_managed_spot_training",
        "Estimator > use_spot_instances",
        "enable_managed_spot_training",
    ),
    "EnableNetworkIsolation": Names(
        "ModelTrainer > networking:Networking > enable_network_isolation",
        "Estimator > enable_network_isolation",
        "enable_network_isolation",
    ),
    "Environment.*": Names(
        "ModelTrainer > environment{*}", "Estimator > environment{*}", "environment{*}"
    ),
    "HyperParameters.sagemaker_training_compiler_enabled": Names(
        "ModelTrainer > hyperparameters{sagemaker_training_compiler_enabled}",
        "HuggingFace > compiler_config",
        "hyper_parameters{sagemaker_training_compiler_enabled}",
    ),
    "HyperParameters.*": Names(
        "ModelTrainer > hyperparameters{*}",
        "Estimator > hyperparameters{*}",
        "hyper_parameters{*}",
    ),
    "InputDataConfig[*].DataSource.S3DataSource.S3DataDistributionType": Names(
        _CHANNEL + "InputData > data_source:S3DataSource > s3_data_distribution_type",
        "estimator.fit > inputs{*}:TrainingInput > distribution",
        _INPUT + "data_source > s3_data_source > s3_data_distribution_type",
    ),
    "InputDataConfig[*].InputMode": Names(
        _CHANNEL + "Channel > input_mode",
        "estimator.fit > inputs{*}:TrainingInput > input_mode",
        _INPUT + "input_mode",
    ),
    "OutputDataConfig.CompressionType": Names(
        "ModelTrainer > output_data_config:OutputDataConfig > compression_type",
        "Estimator > disable_output_compression",
        "output_data_config > compression_type",
    ),
    "ProfilerConfig.DisableProfiler": Names(
        None, "Estimator > disable_profiler", "profiler_config > disable_profiler"
    ),
    "ProfilerConfig.S3OutputPath": Names(
        None,
        "Estimator > profiler_config:ProfilerConfig > s3_output_path",
        "profiler_config > s3_output_path",
    ),
    "ResourceConfig.InstanceCount": Names(
        _COMPUTE + "instance_count",
        "Estimator > instance_count",
        "resource_config > instance_count",
    ),
    "ResourceConfig.InstanceGroups[*].InstanceCount": Names(
        _COMPUTE + _GROUPS + "instance_count",
        "Estimator > " + _GROUPS + "instance_count",
        "resource_config > instance_groups[instance_group_name] > instance_count",
    ),
    "ResourceConfig.InstanceGroups[*].InstanceType": Names(
        _COMPUTE + _GROUPS + "instance_type",
        "Estimator > " + _GROUPS + "instance_type",
        "resource_config > instance_groups[instance_group_name] > instance_type",
    ),
    "ResourceConfig.InstanceType": Names(
        _COMPUTE + "instance_type",
        "Estimator > instance_type",
        "resource_config > instance_type",
    ),
    "ResourceConfig.KeepAlivePeriodInSeconds": Names(
        _COMPUTE + "keep_alive_period_in_seconds",
        "Estimator > keep_alive_period_in_seconds",
        "resource_config > keep_alive_period_in_seconds",
    ),
    "ResourceConfig.VolumeSizeInGB": Names(
        _COMPUTE + "volume_size_in_gb",
        "Estimator > volume_size",
        "resource_config > volume_size_in_gb",
    ),
    "RetryStrategy.MaximumRetryAttempts": Names(
        "model_trainer.with_retry_strategy > retry_strategy:RetryStrategy > maximum_retry_attempts",
        "Estimator > max_retry_attempts",
        "retry_strategy > maximum_retry_attempts",
    ),
    "StoppingCondition.MaxRuntimeInSeconds": Names(
        _STOP + "max_runtime_in_seconds",
        "Estimator > max_run",
        "stopping_condition > max_runtime_in_seconds",
    ),
    "StoppingCondition.MaxWaitTimeInSeconds": Names(
        _STOP + "max_wait_time_in_seconds",
        "Estimator > max_wait",
        "stopping_condition > max_wait_time_in_seconds",
    ),
}


def _both(way: str) -> Names:
    """SDK v3 kept v2's classes and arguments."""
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
}
_TRANSFORM = {
    "BatchStrategy": _both("Transformer > strategy"),
    "Environment.*": _both("Transformer > env{*}"),
    "MaxConcurrentTransforms": _both("Transformer > max_concurrent_transforms"),
    "MaxPayloadInMB": _both("Transformer > max_payload"),
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
_NOT_IN_A_DEFINITION = ("Debug", "Profiler")
DEFINITION = "TrainingJobDefinition."
_TRIALS = {
    f"{DEFINITION}{path.replace('HyperParameters.', 'StaticHyperParameters.')}": Names(
        names.v3, names.v2 and names.v2.replace("estimator.fit", "tuner.fit")
    )
    for path, names in _TRAINING.items()
    if not path.startswith(_NOT_IN_A_DEFINITION)
}
"""What a tuning job's trials take: the SDKs' tuners are given an estimator or a trainer."""

NAMES: dict[Kind, dict[str, Names]] = {
    "training": _TRAINING,
    "processing": _PROCESSING,
    "transform": _TRANSFORM,
    "tuning": _TUNING | _TRIALS,
}

CALLS: dict[Kind, str] = {
    "training": "client.create_training_job",
    "processing": "client.create_processing_job",
    "transform": "client.create_transform_job",
    "tuning": "client.create_hyper_parameter_tuning_job",
}
ELEMENT_NAMES = {
    "DebugRuleConfigurations": "RuleConfigurationName",
    "InputDataConfig": "ChannelName",
    "InstanceGroups": "InstanceGroupName",
    "Outputs": "OutputName",
    "ProcessingInputs": "InputName",
}
"""What tells the elements of a request's list apart."""
TEXT_MAPS = frozenset({"Environment", "HyperParameters", "StaticHyperParameters"})
"""Maps of texts in a request."""

WRITTEN: dict[str, dict[str | None, object]] = {
    "Estimator > debugger_hook_config": {None: False},
    "Estimator > disable_output_compression": {"NONE": True, "GZIP": False, None: False},
    _COMPUTE + "volume_size_in_gb": {None: None},
    _V2_DONE + "complete_on_convergence": {"Enabled": True, "Disabled": False},
}
"""What an argument takes in place of a value; None on the left is a parameter that is removed."""
ALWAYS_SENT = {"Estimator > volume_size", "Processor > volume_size_in_gb"}
"""The SDK sends its default where the argument lacks."""
NOTES = {
    _CHANNEL + "Channel > input_mode": "a Channel in place of InputData, which takes no input mode"
}
