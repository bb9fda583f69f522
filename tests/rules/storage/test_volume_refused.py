from __future__ import annotations

from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, asked
from tests.fakes.rule_cases import CLEAR, cases, finds, row

RULE = "volume-refused"
SIZE, KEY = "ResourceConfig.VolumeSizeInGB", "ResourceConfig.VolumeKmsKeyId"
NVME = {"ResourceConfig.InstanceType": "ml.g5.2xlarge"}


test_cases = cases(
    RULE,
    "A type without local storage needs a size. Local storage needs none.",
    row(finds(paths=[SIZE]), {SIZE: None}),
    row(CLEAR, NVME | {SIZE: None}),
    "Local storage takes no key. A volume does.",
    row(finds(paths=[KEY]), NVME | {KEY: "key"}),
    row(CLEAR, {KEY: "key"}),
    "A type that is known later is not judged. It may be of either kind.",
    row("unknown: …", {"ResourceConfig.InstanceType": LATER, SIZE: None}),
    "A healthy request of each kind is clear. Processing must give a size anyway.",
    row(CLEAR, kind=JobKind.TRAINING),
    row(CLEAR, kind=JobKind.PROCESSING),
    row(CLEAR, kind=JobKind.TRANSFORM),
    ask=asked,
)  # fmt: skip
