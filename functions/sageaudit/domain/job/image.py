"""What the name of an image says: its CUDA toolkit, and the built-in algorithm in it.

Built-in algorithms and the GPU families that SageMaker's guide names for them: developer guide
(awsdocs/amazon-sagemaker-developer-guide at a869fa5, June 2023, the last public text), one page an
algorithm; for XGBoost and k-means a later public copy too. A repository of the same name in an
account that is not AWS's is somebody's own image.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from sageaudit.domain.job.addresses import AWS_REGISTRIES, repository

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
_KEPT = 32
"""Names of images that are taken apart once, as each type that a run is tried on asks again."""
_TRAINS = re.compile(r"(?:huggingface-)?(pytorch|tensorflow|mxnet)-training")
_CLUSTER_FRAMEWORKS = {"spark": "Spark", "ray": "Ray", "dask": "Dask"}
_GENERAL = frozenset({"p2", "p3", "g4dn", "g5"})
"""What the guide says of most algorithms."""


def tag(image: str | None) -> str:
    """An image's tag; empty without one."""
    last = (image or "").split("@", 1)[0].rpartition("/")[2]
    return last.partition(":")[2]


def cluster_framework(image: str | None, entry_point: str | None = None) -> str | None:
    """The framework that makes one cluster of several instances and splits work itself, by a name.

    A name that only contains such a word counts too.
    """
    names = f"{image or ''} {entry_point or ''}".lower()
    return next((name for word, name in _CLUSTER_FRAMEWORKS.items() if word in names), None)


@lru_cache(maxsize=_KEPT)
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


@lru_cache(maxsize=_KEPT)
def pytorch(image: str | None) -> Version | None:
    """The PyTorch version of a PyTorch image by its tag, or None."""
    match = re.match(r"(\d{1,2})\.(\d{1,2})", tag(image))
    named = "pytorch" in (repository(image) or "").lower()
    return (int(match[1]), int(match[2])) if named and match else None


class BuiltInAlgorithm(Struct, frozen=True):
    """One algorithm. `families`: those of its GPU instances; none where it trains on CPUs only.

    `gpu_only`: it does not train on a CPU type.
    """

    name: str
    families: frozenset[str] = _GENERAL
    gpu_only: bool = False

    @property
    def cpu_only(self) -> bool:
        """Whether the guide knows no GPU for it."""
        return not self.families


_CPU_ONLY = frozenset[str]()
_BY_REPOSITORY = {
    "blazingtext": BuiltInAlgorithm("BlazingText"),
    "factorization-machines": BuiltInAlgorithm("Factorization Machines"),
    "forecasting-deepar": BuiltInAlgorithm("DeepAR"),
    "image-classification": BuiltInAlgorithm("Image Classification", gpu_only=True),
    "ipinsights": BuiltInAlgorithm("IP Insights"),
    "kmeans": BuiltInAlgorithm("k-means"),
    "knn": BuiltInAlgorithm("k-NN"),
    "lda": BuiltInAlgorithm("LDA", _CPU_ONLY),
    "linear-learner": BuiltInAlgorithm("Linear Learner"),
    "ntm": BuiltInAlgorithm("NTM"),
    "object-detection": BuiltInAlgorithm("Object Detection", gpu_only=True),
    "object2vec": BuiltInAlgorithm("Object2Vec"),
    "pca": BuiltInAlgorithm("PCA"),
    "randomcutforest": BuiltInAlgorithm("Random Cut Forest", _CPU_ONLY),
    "semantic-segmentation": BuiltInAlgorithm("Semantic Segmentation", gpu_only=True),
    "seq2seq": BuiltInAlgorithm("Sequence to Sequence", gpu_only=True),
}
"""DeepAR's page names no family, so that the general statement counts."""
_XGBOOST = frozenset({"xgboost", "sagemaker-xgboost"})
_XGBOOST_VERSION = re.compile(r"(\d+)\.(\d+)-(\d+)")


@lru_cache(maxsize=_KEPT)
def builtin_algorithm(image: str | None) -> BuiltInAlgorithm | None:
    """The algorithm whose image this is; None for any other image."""
    name = repository(image)
    if name is None or (image or "").partition(".")[0] not in AWS_REGISTRIES:
        return None
    return _xgboost(tag(image)) if name in _XGBOOST else _BY_REPOSITORY.get(name)


def _xgboost(label: str) -> BuiltInAlgorithm:
    """By version: no GPU until 1.0-1, P2 and P3 in 1.2-1, no P2 from 1.7-1."""
    match = _XGBOOST_VERSION.match(label)
    # The tags 1 and latest are release 0.72.
    version = tuple(int(part) for part in match.groups()) if match else (0, 72, 1)
    families = _GENERAL - {"p2"} if version >= (1, 7, 1) else _GENERAL
    if version <= (1, 2, 1):
        families = frozenset({"p2", "p3"}) if version == (1, 2, 1) else _CPU_ONLY
    return BuiltInAlgorithm(f"XGBoost {label}", families)
