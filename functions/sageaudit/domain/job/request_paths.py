"""Where a Create*Job request says what it runs on, by the kind of job (botocore's model)."""

from __future__ import annotations

from sageaudit.domain.job.ref import JobKind

TYPE_PATHS = {
    JobKind.TRAINING: "ResourceConfig.InstanceType",
    JobKind.PROCESSING: "ProcessingResources.ClusterConfig.InstanceType",
    JobKind.TRANSFORM: "TransformResources.InstanceType",
}
COUNT_PATHS = {
    JobKind.TRAINING: "ResourceConfig.InstanceCount",
    JobKind.PROCESSING: "ProcessingResources.ClusterConfig.InstanceCount",
    JobKind.TRANSFORM: "TransformResources.InstanceCount",
}
VOLUME_PATHS = {
    JobKind.TRAINING: "ResourceConfig.VolumeSizeInGB",
    JobKind.PROCESSING: "ProcessingResources.ClusterConfig.VolumeSizeInGB",
}
