"""Processing and transform jobs."""

from tests.labelled.machine import Doing, identical_hosts, one_host
from tests.labelled.made_up_job import Batchwork
from tests.labelled.story import story

INPUT_OF_LINES = {
    "SplitType": "Line",
    "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}},
}
OUTPUT_AT_THE_END = {
    "OutputName": "features",
    "S3Output": {
        "S3Uri": "s3://bucket/features",
        "LocalPath": "/opt/ml/processing/out",
        "S3UploadMode": "EndOfJob",
    },
}

STORIES = (
    story(
        "one-request-at-a-time",
        Batchwork(
            kind="Transform",
            instance="ml.m5.4xlarge",
            hosts=one_host(Doing(minutes=100, cores=1.0, gib=9, jitter=0.02)),
            describe={
                "MaxConcurrentTransforms": 1,
                "BatchStrategy": "MultiRecord",
                "TransformInput": INPUT_OF_LINES,
            },
        ),
        must_find=("transform-serial",),
        may_find=("serial-code", "cpu-underused", "memory-oversized", "transform-single-record"),
    ),
    story(
        "one-record-a-request",
        Batchwork(
            kind="Transform",
            instance="ml.m5.4xlarge",
            hosts=one_host(Doing(minutes=100, cores=2.4, gib=9, jitter=0.2)),
            describe={
                "MaxConcurrentTransforms": 16,
                "BatchStrategy": "SingleRecord",
                "TransformInput": INPUT_OF_LINES,
            },
        ),
        must_find=("transform-single-record",),
        may_find=("cpu-underused", "memory-oversized"),
    ),
    story(
        "two-old-hosts-score-with-little-of-their-gpus",
        Batchwork(
            kind="Transform",
            instance="ml.p3.2xlarge",
            hosts=identical_hosts(
                2, Doing(minutes=80, cores=1.6, gpus=(0.06,), gib=6, gpu_gib=(3.4,))
            ),
            describe={"MaxConcurrentTransforms": 8, "BatchStrategy": "MultiRecord"},
        ),
        must_find=("old-generation", "gpu-too-big"),
        may_find=("gpu-underused", "poor-scaling", "transform-serial"),
    ),
    story(
        "a-transform-at-work",
        Batchwork(
            kind="Transform",
            instance="ml.m5.4xlarge",
            hosts=one_host(Doing(minutes=100, cores=14, gib=40)),
            describe={"MaxConcurrentTransforms": 16, "BatchStrategy": "MultiRecord"},
        ),
    ),
    story(
        "results-sent-at-the-end",
        Batchwork(
            kind="Processing",
            instance="ml.m5.4xlarge",
            hosts=one_host(
                Doing(minutes=60, cores=14, gib=40),
                Doing(minutes=45, cores=0.1, gib=6, jitter=0.2),
            ),
            describe={"ProcessingOutputConfig": {"Outputs": [OUTPUT_AT_THE_END]}},
        ),
        must_find=("processing-upload-at-end",),
        may_find=("idle-tail",),
    ),
    story(
        "a-processing-job-at-work",
        Batchwork(
            kind="Processing",
            instance="ml.m5.4xlarge",
            hosts=identical_hosts(2, Doing(minutes=80, cores=13.5, gib=44)),
        ),
    ),
)
