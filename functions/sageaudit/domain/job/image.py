"""What the name of an image says of its CUDA toolkit."""

from __future__ import annotations

import re

from sageaudit.domain.job.family import repository

Version = tuple[int, int]
"""Major and minor number."""
_SHORT = re.compile(r"(?<![a-z])cu(?:(\d\d)(\d)|([89])(\d))(?!\d)")
"""cu121 is 12.1, cu92 is 9.2."""
_LONG = re.compile(r"(?<![a-z])cuda[-_]?v?(\d{1,2})[._-](\d)(?!\d)")
"""cuda11.1, cuda-12-4, cuda_11.8."""
_NVIDIA = re.compile(r"\Anvidia/cuda:(\d{1,2})\.(\d)")
_LEADING = re.compile(r"(\d{1,2})\.(\d{1,2})(?:\.\d+)?-(?:transformers[\d.]+-)?gpu-")
_OF_FRAMEWORK: dict[str, dict[Version, Version]] = {
    "pytorch": {
        (1, 2): (10, 0),
        **dict.fromkeys([(1, 3), (1, 4), (1, 5)], (10, 1)),
        (1, 7): (11, 0),
        **dict.fromkeys([(1, 8), (1, 9)], (11, 1)),
        **dict.fromkeys([(1, 10), (1, 11), (1, 12)], (11, 3)),
        (1, 13): (11, 7),
        (2, 0): (11, 8),
        **dict.fromkeys([(2, 1), (2, 2), (2, 3)], (12, 1)),
        (2, 5): (12, 4),
        (2, 7): (12, 8),
        (2, 8): (12, 9),
        **dict.fromkeys([(2, 9), (2, 11)], (13, 0)),
    },
    "tensorflow": {
        **dict.fromkeys([(1, 14), (1, 15), (2, 0)], (10, 0)),
        **dict.fromkeys([(2, 1), (2, 2)], (10, 1)),
        (2, 4): (11, 0),
        **dict.fromkeys([(2, 5), (2, 6)], (11, 2)),
        **dict.fromkeys([(2, 12), (2, 13)], (11, 8)),
        (2, 21): (12, 9),
    },
    "mxnet": {(1, 4): (10, 0), (1, 6): (10, 1)},
}
"""The toolkit of AWS's training containers by framework version, for tags that leave it out, such
as 2.1-gpu-py310. A version that came with two toolkits is absent. Sources: tags in
aws/deep-learning-containers (available_images.md, release notes, image lists) and in the SageMaker
Python SDK's image_uri_config/huggingface.json."""
_TRAINS = re.compile(r"(?:huggingface-)?(pytorch|tensorflow|mxnet)-training")


def tag(image: str | None) -> str:
    """An image's tag; empty without one."""
    last = (image or "").split("@", 1)[0].rpartition("/")[2]
    return last.partition(":")[2]


def cuda(image: str | None) -> Version | None:
    """The image's CUDA toolkit, (12, 1) for cu121; None where its name does not say it."""
    path, label = repository(image) or "", tag(image)
    name = f"{path}:{label}".lower()
    if match := _SHORT.search(name):
        major, minor = (part for part in match.groups() if part)
        return int(major), int(minor)
    if match := _LONG.search(name) or _NVIDIA.match(name):
        return int(match[1]), int(match[2])
    framework = _TRAINS.fullmatch(path)
    version = _LEADING.match(label)
    if framework is None or version is None:
        return None
    return _OF_FRAMEWORK[framework[1]].get((int(version[1]), int(version[2])))


def pytorch(image: str | None) -> Version | None:
    """The PyTorch version of a PyTorch image by its tag, or None."""
    match = re.match(r"(\d{1,2})\.(\d{1,2})", tag(image))
    named = "pytorch" in (repository(image) or "").lower()
    return (int(match[1]), int(match[2])) if named and match else None
