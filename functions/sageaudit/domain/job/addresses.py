"""Facts from the addresses of a job's image and inputs.

AWS's own registries and repositories: image_uri_config of aws/sagemaker-python-sdk at a248126
(2026-08), all files and regions. Built-in algorithms and their GPU families: SageMaker developer
guide (awsdocs/amazon-sagemaker-developer-guide at a869fa5, June 2023, the last public text); for
XGBoost and k-means also a later public copy. In other accounts than AWS's, a repository with the
name of an algorithm has a user's own image.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind

_ACCOUNTS = """
000907499111 001633400207 007051062584 007439368137 010526262399 010972774902 017069133835
021081402939 022667117163 024640144536 048378556238 048819808253 053634841547 054986407534
057415533634 064688005998 081189585635 081325390199 089933028263 094389454867 098760798382
102112518831 102471314380 103105715889 104374241257 105495057255 106583098589 107072934176
107173498710 108575199400 110948597952 117516905037 119527597002 121021644041 122526803553
122578899357 124985052026 126357580389 127363102723 131013547314 131546521161 136845547031
137914896644 141502667606 142351485170 143210264188 148761635175 151534178276 153931337802
156387875391 156813124566 159807026194 167761179201 173754725891 174368400705 174872318107
175620155138 184798709955 190319476487 199566480951 204133271717 204372634319 204538143572
205493899709 205585389593 211125459255 211330385671 216881608335 217643126080 224300973850
226302683700 227234621604 236514542706 237065988967 238384257742 243637512696 245090515133
245179582081 245545462676 245909111842 246618743249 246785580436 249157047649 249704162688
250201462417 254080097072 257386234256 257758044811 258307448986 260923028637 263625296855
263933020539 266724342769 271483468897 272398656194 275950707576 276181064229 281123927165
286214385809 293181348795 297031611018 301217895009 303241398832 306415355426 306986355934
309385258863 310906938811 313743910680 314341159256 314815235551 314864569078 324986816169
330188676905 341280168497 341593696636 351501993468 353608530281 354813040037 355873309152
358593528301 364406365360 366743142698 370607712162 371248457586 376037874950 377024640650
380164790875 380420809688 382416733822 387376663083 390048526115 390780980154 390948362332
394103062818 395420993607 396913743851 404615174143 406031935815 406833011540 408426139102
411392592546 411782140378 414596584902 415577184552 422173101802 422961961927 423003514399
424196993095 429704687514 430734990657 433757028032 437450045455 438346466558 440695851116
440796970383 442386744353 446045086412 446299261295 447278800020 450853457545 451049120500
452307495513 452832661640 453000072557 453252182341 453391408702 454834333376 455444449433
457447274322 462105765813 464438896020 467912361380 468650794304 469771592824 470317259841
471112967968 472730292857 474822919863 475088953585 479947661362 481561238223 482524230118
488287956546 490574956308 492215442770 492261229750 493642496378 495149712605 501404015308
503227376785 503895931360 510948584623 514117268639 515509971035 519511493484 520018980103
520713654638 522234722520 523751269255 523774347010 528757812139 533267296287 536280801234
539772159869 542918446943 544295431143 545423591354 550225433462 557239378090 559312083959
563025443158 563282790590 564864627153 566113047672 567556641782 569303640362 571004829621
574779866223 578805364391 579539705040 588750061953 590183813437 590183933784 592751261982
598674086554 601324751636 607024016150 615547856133 618459771430 623308166672 626614931356
628508329040 632365934929 633353088612 633930458069 637423239942 638885417683 644912444149
648430277019 649008135260 651117190479 658645717510 658757709296 659782779980 662702820516
663277389841 664544806723 667973535471 669540362728 669576153137 671472414489 675030665977
680080141114 680994064768 683313688378 685385470294 685455198987 692866216735 705930551576
707077482487 709848358524 710691900526 712309505854 712779665605 720646828776 724002660598
727897471807 730335477804 732049463269 737130764395 737474898029 740489534195 742091327244
744548109606 746233611703 746614075791 749696950732 749857270468 750251592176 751086301963
753923664805 756306329178 759080221371 763008648453 763104351884 763603941244 764974769150
765400339828 766337827248 772153158452 774647643957 777275614652 780543022126 782484402741
783357654285 785573368785 792733760839 800295151634 801668240914 802834080501 806072073708
807237891255 810671768855 811284229777 811711786498 813361260812 818342061345 819679513684
819792524951 825641698319 833128469047 833944533722 834264404009 835164637446 835444307964
836651553127 836785723513 840123138293 841784149062 843974653677 844356804704 853188333426
855470959533 856416204555 860869212795 867004704886 871362719292 873151114052 875698925577
883091641454 885854791233 886529160074 890145073186 894491911112 895015795356 895741380848
898809789911 904829902805 906073651304 907027046896 912233562940 913387583493 914824155844
915447279597 925152966179 926135532090 929884845733 933208885752 935523707064 936697816551
938034419563 941853720454 951798379941 966458181534 972752614525 975050140332 978288397137
986000313247 990339680094 991648021394 999678624901 999911452149
"""
_REPOSITORIES = """
autogluon-inference autogluon-training blazingtext detailed-profiler-processing djl-inference
factorization-machines forecasting-deepar huggingface-llamacpp huggingface-pytorch-inference
huggingface-pytorch-inference-neuron huggingface-pytorch-inference-neuronx
huggingface-pytorch-tgi-inference huggingface-pytorch-training
huggingface-pytorch-training-neuronx huggingface-pytorch-trcomp-training huggingface-sglang
huggingface-tensorflow-inference huggingface-tensorflow-training
huggingface-tensorflow-trcomp-training huggingface-vllm huggingface-vllm-inference-neuronx
huggingface-vllm-omni image-classification image-classification-neo ipinsights kmeans knn lda
linear-learner mxnet-inference mxnet-inference-eia mxnet-training ntm object-detection object2vec
pca pytorch-inference pytorch-inference-eia pytorch-inference-graviton pytorch-training
pytorch-training-neuron pytorch-training-neuronx pytorch-trcomp-training randomcutforest
sagemaker-base-python sagemaker-chainer sagemaker-clarify-processing
sagemaker-data-wrangler-container sagemaker-debugger-rules sagemaker-distribution-prod
sagemaker-geospatial-v1-0 sagemaker-inference-mxnet sagemaker-inference-pytorch
sagemaker-inference-tensorflow sagemaker-inspect-ai sagemaker-model-monitor-analyzer
sagemaker-mxnet sagemaker-mxnet-eia sagemaker-mxnet-serving sagemaker-mxnet-serving-eia
sagemaker-neo-mxnet sagemaker-neo-pytorch sagemaker-neo-tensorflow sagemaker-pytorch
sagemaker-rl-coach-container sagemaker-rl-mxnet sagemaker-rl-ray-container
sagemaker-rl-tensorflow sagemaker-rl-vw-container sagemaker-scikit-learn
sagemaker-spark-processing sagemaker-sparkml-serving sagemaker-tensorflow
sagemaker-tensorflow-eia sagemaker-tensorflow-scriptmode sagemaker-tensorflow-serving
sagemaker-tensorflow-serving-eia sagemaker-tritonserver sagemaker-xgboost semantic-segmentation
seq2seq smdistributed-modelparallel stabilityai-pytorch-inference tei tei-cpu
tensorflow-inference tensorflow-inference-eia tensorflow-inference-graviton tensorflow-training
xgboost xgboost-neo
"""
AWS_REGISTRIES = frozenset(_ACCOUNTS.split())
"""The accounts in which AWS hosts its images. They differ by region and kind of image."""
AWS_REPOSITORIES = frozenset(_REPOSITORIES.split())
"""The names of AWS's repositories. Copies of its images elsewhere often have the same names."""
Version = tuple[int, int]
"""The major and minor number of a version."""
_SHORT_CUDA = re.compile(r"(?<![a-z])cu(?:(\d\d)(\d)|([89])(\d))(?!\d)")
"""A CUDA version in short form: cu121 is 12.1, cu92 is 9.2."""
_LONG_CUDA = re.compile(r"(?<![a-z])cuda[-_]?v?(\d{1,2})[._-](\d)(?!\d)")
"""A CUDA version in long form: cuda11.1, cuda-12-4, cuda_11.8."""
_NVIDIA_CUDA = re.compile(r"\Anvidia/cuda:(\d{1,2})\.(\d)")
_LEADING_VERSION = re.compile(r"(\d{1,2})\.(\d{1,2})(?:\.\d+)?-(?:transformers[\d.]+-)?gpu-")
_CUDA_BY_FRAMEWORK: dict[str, dict[Version, Version]] = {
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
"""The CUDA toolkit of AWS's training containers by framework version, for tags without it, such as
2.1-gpu-py310. A version that was released with two toolkits is absent. Sources: tags in
aws/deep-learning-containers (available_images.md, release notes, image lists) and in the SageMaker
Python SDK's image_uri_config/huggingface.json."""
_IMAGE_CACHE_SIZE = 32
"""The number of images whose parsed name is cached. The bill of a run is computed for many types,
and each computation needs the parsed name."""
_TRAINING_REPOSITORY = re.compile(r"(?:huggingface-)?(pytorch|tensorflow|mxnet)-training")
_CLUSTER_FRAMEWORKS = {"spark": "Spark", "ray": "Ray", "dask": "Dask"}
_USUAL_FAMILIES = frozenset({"p2", "p3", "g4dn", "g5"})
"""The families of GPU instance types that AWS's guide names for most algorithms."""

_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_IP_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}\Z")
_NOT_BUCKETS = ("-s3alias", "--x-s3", "--ol-s3", "--table-s3")
"""Endings of names that `bucket_name` rejects: of access point aliases, and of directory, Object
Lambda and table buckets."""
_DAY = re.compile(
    r"(?<!\d)(?:19|20)\d\d"
    r"(?:[-_/.]|/month=)?(?:0[1-9]|1[0-2])"
    r"(?:[-_/.]|/day=)?(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?(?!\d)"
)
"""A day in an address: alone, with a time of day, or as year=2026/month=05/day=20. A month does not
match, because a month's data still grows."""
_EPOCH = re.compile(r"(?<!\d)1[4-9]\d{8}(?:\d{3})?(?!\d)")
_DATA_VERSION = re.compile(r"(?:\A|/)(?:dataset_?)?version[=_-]?[\w.-]{0,40}\d[\w.-]*(?=/|\Z)")
"""A version of data in an address. A bare `v1` does not match: it usually is the version of a
directory layout. The data under such an address still changes."""
_CONTENT_HASH = re.compile(r"(?<![0-9a-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}(?![0-9a-z])")
_EXECUTION = re.compile(r"(?:\A|/|/pipelines-)(?=[a-z0-9]*\d[a-z])[a-z0-9]{12}(?=[/-]|\Z)")
"""A pipeline execution's id: twelve mixed letters and digits. A word followed by a number does not
match."""
_OBJECT_VERSION = re.compile(r"\?(?:\S*&)?versionid=\w", re.IGNORECASE)
_MUTABLE_ADDRESS = re.compile(r"(?:\A|[/=_-])(?:latest|current|newest|live)(?=[/._-]|\Z)")
CODE_INPUTS = frozenset({"code", "entrypoint", "sm_drivers", "jars", "py-files", "flow"})
"""Inputs that the SageMaker SDK and Data Wrangler create for scripts and their settings."""
_LONGEST_ADDRESS = 1024
"""The most characters of an S3 address (S3UriType)."""


def repository(image: str | None) -> str | None:
    """Returns an image's repository path, without registry, tag and digest."""
    if image is None:
        return None
    path = image.split("@", 1)[0]
    registry, slash, rest = path.partition("/")
    if slash and ("." in registry or ":" in registry):
        path = rest
    return path.rsplit(":", 1)[0] if ":" in path.rsplit("/", 1)[-1] else path


def tag(image: str | None) -> str:
    """Returns an image's tag; empty if there is none."""
    last = (image or "").split("@", 1)[0].rpartition("/")[2]
    return last.partition(":")[2]


def cluster_framework(image: str | None, entry_point: str | None = None) -> str | None:
    """Returns the framework, such as Spark, that joins instances and splits the work between them.

    A word in the image's or the script's name shows it; None without such a word.
    """
    names = f"{image or ''} {entry_point or ''}".lower()
    return next((name for word, name in _CLUSTER_FRAMEWORKS.items() if word in names), None)


@lru_cache(maxsize=_IMAGE_CACHE_SIZE)
def cuda(image: str | None) -> Version | None:
    """Returns the image's CUDA toolkit, such as (12, 1) for cu121; None if unknown."""
    path, label = repository(image) or "", tag(image)
    name = f"{path}:{label}".lower()
    if match := _SHORT_CUDA.search(name):
        major, minor = (part for part in match.groups() if part)
        return int(major), int(minor)
    if match := _LONG_CUDA.search(name) or _NVIDIA_CUDA.match(name):
        return int(match[1]), int(match[2])
    framework = _TRAINING_REPOSITORY.fullmatch(path)
    version = _LEADING_VERSION.match(label)
    if framework is None or version is None:
        return None
    return _CUDA_BY_FRAMEWORK[framework[1]].get((int(version[1]), int(version[2])))


@lru_cache(maxsize=_IMAGE_CACHE_SIZE)
def pytorch(image: str | None) -> Version | None:
    """Returns the PyTorch version in the tag of a PyTorch image; None for other images."""
    match = re.match(r"(\d{1,2})\.(\d{1,2})", tag(image))
    is_torch = "pytorch" in (repository(image) or "").lower()
    return (int(match[1]), int(match[2])) if is_torch and match else None


class BuiltInAlgorithm(Struct, frozen=True):
    """A built-in algorithm of SageMaker.

    `families` are the GPU instance families that it trains on, empty if it trains on CPUs only.
    `is_gpu_only` means that it does not train on a CPU type.
    """

    name: str
    families: frozenset[str] = _USUAL_FAMILIES
    is_gpu_only: bool = False

    @property
    def is_cpu_only(self) -> bool:
        """Whether the algorithm trains on CPUs only: AWS's guide names no GPU for it."""
        return not self.families


_CPU_ONLY = frozenset[str]()
_BY_REPOSITORY = {
    "blazingtext": BuiltInAlgorithm("BlazingText"),
    "factorization-machines": BuiltInAlgorithm("Factorization Machines"),
    "forecasting-deepar": BuiltInAlgorithm("DeepAR"),
    "image-classification": BuiltInAlgorithm("Image Classification", is_gpu_only=True),
    "ipinsights": BuiltInAlgorithm("IP Insights"),
    "kmeans": BuiltInAlgorithm("k-means"),
    "knn": BuiltInAlgorithm("k-NN"),
    "lda": BuiltInAlgorithm("LDA", _CPU_ONLY),
    "linear-learner": BuiltInAlgorithm("Linear Learner"),
    "ntm": BuiltInAlgorithm("NTM"),
    "object-detection": BuiltInAlgorithm("Object Detection", is_gpu_only=True),
    "object2vec": BuiltInAlgorithm("Object2Vec"),
    "pca": BuiltInAlgorithm("PCA"),
    "randomcutforest": BuiltInAlgorithm("Random Cut Forest", _CPU_ONLY),
    "semantic-segmentation": BuiltInAlgorithm("Semantic Segmentation", is_gpu_only=True),
    "seq2seq": BuiltInAlgorithm("Sequence to Sequence", is_gpu_only=True),
}
"""The built-in algorithms by repository. DeepAR's page in AWS's guide names no GPU instance types.
So DeepAR has those that the guide names for most algorithms."""
_XGBOOST = frozenset({"xgboost", "sagemaker-xgboost"})
_XGBOOST_VERSION = re.compile(r"(\d+)\.(\d+)-(\d+)")


@lru_cache(maxsize=_IMAGE_CACHE_SIZE)
def builtin_algorithm(image: str | None) -> BuiltInAlgorithm | None:
    """Returns the built-in algorithm of an image; None for other images."""
    name = repository(image)
    if name is None or (image or "").partition(".")[0] not in AWS_REGISTRIES:
        return None
    return _xgboost(tag(image)) if name in _XGBOOST else _BY_REPOSITORY.get(name)


def _xgboost(label: str) -> BuiltInAlgorithm:
    """Returns the XGBoost algorithm of an image tag.

    It has no GPU instance family before XGBoost 1.2-1, P2 and P3 in 1.2-1, and no P2 from 1.7-1 on.
    """
    match = _XGBOOST_VERSION.match(label)
    # The tags 1 and latest are release 0.72.
    version = tuple(int(part) for part in match.groups()) if match else (0, 72, 1)
    families = _USUAL_FAMILIES - {"p2"} if version >= (1, 7, 1) else _USUAL_FAMILIES
    if version <= (1, 2, 1):
        families = frozenset({"p2", "p3"}) if version == (1, 2, 1) else _CPU_ONLY
    return BuiltInAlgorithm(f"XGBoost {label}", families)


class S3Input(NamedTuple):
    """One input of a job. `address` is None if the data is not in S3."""

    name: str | None
    address: str | None


def bucket_name(address: str | None) -> str | None:
    """Returns the bucket of an `s3://` address; None for any other address."""
    scheme, separator, rest = (address or "").partition("://")
    name = re.split("[/?#]", rest, maxsplit=1)[0]
    is_bucket = (
        _BUCKET_NAME.match(name) and not _IP_ADDRESS.match(name) and not name.endswith(_NOT_BUCKETS)
    )
    return name if separator and scheme.lower() == "s3" and is_bucket else None


def s3_inputs(kind: JobKind, answer: Mapping[str, Any]) -> Iterator[S3Input]:
    """Yields the data inputs of a job, in the order of the answer."""
    inputs = kind.spec.inputs
    if inputs is None:
        return
    address = fields.nested_reader(inputs.address, fields.text)
    if inputs.list_key is None or inputs.name_key is None:
        yield S3Input("input", address(answer))
        return
    for item in fields.items(answer, inputs.list_key):
        yield S3Input(fields.text(item, inputs.name_key), address(item))


def is_data_pinned(inputs: Iterable[tuple[str | None, str | None]]) -> bool | None:
    """Returns whether every input names a version of its data; None if that is unknown.

    `inputs` are pairs of name and S3 address. The result is None if an input is not in S3, or if
    there is no data input because the job's code fetches its data itself. True is a convention, not
    a proof, since an object may have been overwritten.
    """
    pairs = list(inputs)
    pinned = [_has_version(address) for _, address in pairs if address is not None]
    if not all(pinned):
        return False
    has_data_input = any(name not in CODE_INPUTS for name, _ in pairs)
    return True if has_data_input and len(pinned) == len(pairs) else None


def _has_version(address: str) -> bool:
    path = address[:_LONGEST_ADDRESS].partition("://")[2].partition("/")[2]
    if _OBJECT_VERSION.search(path):
        return True
    plain = path.lower()
    if _MUTABLE_ADDRESS.search(plain):
        return False
    return any(
        sign.search(plain) for sign in (_DAY, _EPOCH, _DATA_VERSION, _CONTENT_HASH, _EXECUTION)
    )
