"""What each dialect calls a parameter of CreateTrainingJob. `names` explains the notation.

Sources: SageMaker Python SDK, sagemaker 2.257.7 (v2), sagemaker-train 1.27.0 and sagemaker-core
2.27.0 (v3); Terraform AWS provider, the page of aws_sagemaker_training_job.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """The way to one parameter in each dialect; None where there is no argument."""

    v3: str | None
    v2: str | None
    terraform: str | None = None


_COMPUTE = "ModelTrainer > compute:Compute > "
_STOP = "ModelTrainer > stopping_condition:StoppingCondition > "
_GROUPS = "instance_groups[instance_group_name]:InstanceGroup > "
_CHANNEL = "ModelTrainer > input_data_config[channel_name]:Channel > "
_V3_SOURCE = _CHANNEL + "data_source:DataSource > s3_data_source:S3DataSource > "
_V2_INPUT = "estimator.fit > inputs{*}:TrainingInput > "
_INPUT = "input_data_config[channel_name] > "

TRAINING = {
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
    "ProfilerRuleConfigurations[*].InstanceType": Names(None, None, None),
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
        _V3_SOURCE + "s3_data_distribution_type",
        _V2_INPUT + "distribution",
        _INPUT + "data_source > s3_data_source > s3_data_distribution_type",
    ),
    "InputDataConfig[*].DataSource.S3DataSource.S3DataType": Names(
        _V3_SOURCE + "s3_data_type",
        _V2_INPUT + "s3_data_type",
        _INPUT + "data_source > s3_data_source > s3_data_type",
    ),
    "InputDataConfig[*].DataSource.S3DataSource.S3Uri": Names(
        _V3_SOURCE + "s3_uri",
        _V2_INPUT + "s3_data",
        _INPUT + "data_source > s3_data_source > s3_uri",
    ),
    "InputDataConfig[*].InputMode": Names(
        _CHANNEL + "input_mode",
        _V2_INPUT + "input_mode",
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
    "Tags[*].Value": Names(
        "ModelTrainer > tags[key]:Tag > value", "Estimator > tags[Key]:{} > Value", "tags{*}"
    ),
}

WRITTEN: dict[str, dict[str | None, object]] = {
    "Estimator > debugger_hook_config": {None: False},
    "Estimator > disable_output_compression": {"NONE": True, "GZIP": False, None: False},
    _COMPUTE + "volume_size_in_gb": {None: None},
}
"""Values that an argument takes instead; the key None means that the parameter is removed."""
NOTES = {_CHANNEL + "input_mode": "a Channel in place of InputData, which takes no input mode"}
