from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, REQUESTED, asked, told
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, row

RULE = "request-conflict"
IMAGE, NAME = "AlgorithmSpecification.TrainingImage", "AlgorithmSpecification.AlgorithmName"
GROUPS = [{"InstanceGroupName": "a", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1}]
SIZE, KEY = "ResourceConfig.VolumeSizeInGB", "ResourceConfig.VolumeKmsKeyId"
NVME = {"ResourceConfig.InstanceType": "ml.g5.2xlarge"}
PAYLOAD, AT_A_TIME = "MaxPayloadInMB", "MaxConcurrentTransforms"
CONFIG = "HyperParameterTuningJobConfig"
PARALLEL = f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs"


test_cases = cases(
    RULE,
    "An image or a name but not both. One of them is needed.",
    row(finds("…both…"), {NAME: "mine"}),
    row(finds("…neither…"), {IMAGE: None}),
    row(CLEAR, {IMAGE: None, NAME: "mine"}),
    "A value that is known later counts as set. The image of a plan that builds it.",
    row(CLEAR, {IMAGE: LATER}),
    "Instances are asked for in one way. None is no way, and groups beside a type are two.",
    row(finds("…no instance type…"), {"ResourceConfig.InstanceType": None}),
    row(finds("…InstanceType and InstanceGroups…"), {"ResourceConfig.InstanceGroups": GROUPS}),
    "A serverless job needs none of them. AWS chooses.",
    row("not applicable: …", {"ServerlessJobConfig": {"BaseModelArn": "arn:aws:x"}, IMAGE: None}),
    "A type without local storage needs a size. Local storage needs none.",
    row(finds(paths=[SIZE]), {SIZE: None}),
    row(CLEAR, NVME | {SIZE: None}),
    "Local storage takes no key. A volume does.",
    row(finds(paths=[KEY]), NVME | {KEY: "key"}),
    row(CLEAR, {KEY: "key"}),
    "A type that is known later is not judged. It may be of either kind.",
    row(CLEAR, {"ResourceConfig.InstanceType": LATER, SIZE: None}),
    "A healthy request of each kind is clear. Processing must give a size anyway.",
    *(row(CLEAR, kind=kind) for kind in REQUESTED),
    "More than 100 MB at a time is refused. The fix keeps the payload.",
    row(finds(paths=[AT_A_TIME], fix=[5]), {PAYLOAD: 20, AT_A_TIME: 6}, kind=JobKind.TRANSFORM),
    "Exactly 100 MB are taken. A payload that is not set is 6 MB.",
    row(CLEAR, {PAYLOAD: 20, AT_A_TIME: 5}, kind=JobKind.TRANSFORM),
    row(CLEAR, {AT_A_TIME: 16}, kind=JobKind.TRANSFORM),
    row(FOUND, {AT_A_TIME: 17}, kind=JobKind.TRANSFORM),
    "A size or a strategy that is known later is not judged. It may be taken.",
    row(CLEAR, {PAYLOAD: LATER, AT_A_TIME: 50}, kind=JobKind.TRANSFORM),
    row(CLEAR, {f"{CONFIG}.Strategy": LATER}, kind=JobKind.TUNING),
    "What AWS refuses of a search is found. Each with the parameter to change.",
    row(finds("…Hyperband…"), {f"{CONFIG}.Strategy": "Hyperband"}, kind=JobKind.TUNING),
    row(finds("…no definition…"), {"TrainingJobDefinition": None}, kind=JobKind.TUNING),
    row(finds("…TrainingJobDefinitions…"),
        {"TrainingJobDefinitions": [{"DefinitionName": "a"}]}, kind=JobKind.TUNING),
    row(finds("…in parallel…"), {PARALLEL: 9}, kind=JobKind.TUNING),
    "As many training jobs in parallel as there are is no mistake.",
    row(CLEAR, {PARALLEL: 8}, kind=JobKind.TUNING),
    ask=asked,
)  # fmt: skip


def test_all_conflicts_are_told_at_once() -> None:
    """Each with its own fix."""
    channel = {
        "ChannelName": "train",
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x",
                                        "InstanceGroupNames": ["b"]}},
    }  # fmt: skip
    finding = told(
        RULE,
        {
            "ResourceConfig.InstanceType": None,
            "ResourceConfig.InstanceGroups": GROUPS,
            "ResourceConfig.KeepAlivePeriodInSeconds": 60,
            "InputDataConfig": [channel],
        },
    )
    assert [fix.path.rpartition(".")[2] for fix in finding.found.fix] == [
        "KeepAlivePeriodInSeconds",
        "InstanceGroupNames[0]",
    ]
