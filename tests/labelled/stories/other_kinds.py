"""Processing and transform jobs."""

from tests.labelled.machine import Batchwork, Doing, alike
from tests.labelled.story import story

STORIES = (
    story(
        "one-request-at-a-time",
        Batchwork("Transform", "ml.m5.4xlarge", alike(1, Doing(100, cores=1.0, gib=9, jitter=0.02)),
            {"MaxConcurrentTransforms": 1, "BatchStrategy": "MultiRecord",
                "TransformInput": {"SplitType": "Line",
                    "DataSource": {
                        "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}}}}),
        "transform-serial",
        either=("serial-code", "cpu-underused", "memory-oversized", "transform-single-record"),
    ),
    story(
        "one-record-a-request",
        Batchwork("Transform", "ml.m5.4xlarge", alike(1, Doing(100, cores=2.4, gib=9, jitter=0.2)),
            {"MaxConcurrentTransforms": 16, "BatchStrategy": "SingleRecord",
                "TransformInput": {"SplitType": "Line",
                    "DataSource": {
                        "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}}}}),
        "transform-single-record", either=("cpu-underused", "memory-oversized"),
    ),
    story("two-old-hosts-score-with-little-of-their-gpus",
        Batchwork("Transform", "ml.p3.2xlarge",
            alike(2, Doing(80, cores=1.6, gpus=(0.06,), gib=6, gpu_gib=(3.4,))),
            {"MaxConcurrentTransforms": 8, "BatchStrategy": "MultiRecord"}),
        "old-generation", "gpu-too-big",
        either=("gpu-underused", "poor-scaling", "transform-serial")),
    story("a-transform-at-work",
        Batchwork("Transform", "ml.m5.4xlarge", alike(1, Doing(100, cores=14, gib=40)),
            {"MaxConcurrentTransforms": 16, "BatchStrategy": "MultiRecord"})),
    story(
        "results-sent-at-the-end",
        Batchwork("Processing", "ml.m5.4xlarge",
            alike(1, Doing(60, cores=14, gib=40), Doing(45, cores=0.1, gib=6, jitter=0.2)),
            {
                "ProcessingOutputConfig": {
                    "Outputs": [
                        {"OutputName": "features",
                            "S3Output": {"S3Uri": "s3://bucket/features",
                                "LocalPath": "/opt/ml/processing/out",
                                "S3UploadMode": "EndOfJob"}}]}}),
        "processing-upload-at-end", either=("idle-tail",),
    ),
    story("a-processing-job-at-work",
        Batchwork("Processing", "ml.m5.4xlarge", alike(2, Doing(80, cores=13.5, gib=44)))),
)  # fmt: skip
