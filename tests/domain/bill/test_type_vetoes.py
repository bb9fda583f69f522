"""Which types a run cannot move to, whatever they cost, and what its owner has to check."""

from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.job import Hints, InstanceGroup, Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import DataSource, InputChannel
from sageaudit.domain.resize.type_vetoes import (
    algorithm_refusal,
    has_bf16,
    has_tensor_cores,
    move_caveats,
    type_refusal,
)
from sageaudit.structs import replace
from tests.fakes.jobs import job

TYPES = packaged.instance_types()
JOB = job(image=None)
DLC = "763104351884.dkr.ecr.us-east-1.amazonaws.com/"
XGBOOST = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:"


def refusal_of_move(
    current_name: str,
    other_name: str,
    count: int = 1,
    hints: Hints | None = None,
    image: str | None = None,
) -> str | None:
    """Returns why a job with this many instances cannot change its type, or None."""
    run = replace(
        JOB, groups=(InstanceGroup(current_name, count),), hints=hints or Hints(), image=image
    )
    return type_refusal(run, TYPES[current_name], TYPES[other_name])


TOGETHER = Hints(distribution="ddp")
FLASH = Hints(flash_attention=True)
HALF = Hints(mixed_precision=True)
EIGHT = Hints(mixed_precision=True, fp8=True)


@pytest.mark.parametrize(
    ("current_name", "other_name", "count", "hints", "reason"),
    [
        # GPUs with NVLink keep it; ratios are not valid between GPUs with and without it
        pytest.param(
            "p3.8xlarge",
            "g5.12xlarge",
            1,
            None,
            "NVLink",
            id="GPUs joined by NVLink do not move to GPUs without it",
        ),
        pytest.param("p4d.24xlarge", "g6e.48xlarge", 1, None, "NVLink", id="nor do eight of them"),
        pytest.param(
            "g6e.48xlarge",
            "p4d.24xlarge",
            1,
            None,
            "NVLink",
            id="GPUs without NVLink do not move to GPUs that have it",
        ),
        pytest.param("p3.16xlarge", "p4d.24xlarge", 1, None, None, id="NVLink to NVLink"),
        pytest.param("g5.12xlarge", "g6e.12xlarge", 1, None, None, id="no NVLink to no NVLink"),
        # one GPU, or one after, needs no link
        pytest.param("p3.2xlarge", "g5.2xlarge", 1, None, None, id="one GPU to one GPU"),
        pytest.param("p3.8xlarge", "g5.16xlarge", 1, None, None, id="four GPUs to one"),
        pytest.param("g6e.16xlarge", "p4d.24xlarge", 1, None, None, id="one GPU to eight"),
        # of several instances the network is not known on another GPU
        pytest.param(
            "g5.2xlarge",
            "g6.2xlarge",
            2,
            None,
            "may exchange data, as nothing splits it",
            id="the network of several instances is not known on another GPU",
        ),
        pytest.param(
            "p4d.24xlarge",
            "p4de.24xlarge",
            2,
            TOGETHER,
            "exchange data as they work (ddp)",
            id="nor is it for the same GPU with more memory",
        ),
        # on the same GPU, EFA matters if they train together
        pytest.param(
            "g5.48xlarge",
            "g5.4xlarge",
            2,
            TOGETHER,
            "EFA",
            id="on the same GPU several instances that train together need EFA",
        ),
        pytest.param(
            "g5.48xlarge",
            "g5.4xlarge",
            2,
            None,
            None,
            id="instances that do not train together need no EFA",
        ),
        pytest.param(
            "g5.48xlarge", "g5.4xlarge", 1, TOGETHER, None, id="one instance needs no EFA"
        ),
        pytest.param(
            "g5.48xlarge", "g5.24xlarge", 2, TOGETHER, None, id="a type with EFA keeps it"
        ),
        # bf16 and FlashAttention need Ampere; a run on a GPU without cannot have used them
        *(
            (*types, 1, hints, reason)
            for hints in (FLASH, HALF)
            for *types, reason in (
                ("g5.xlarge", "g4dn.xlarge", "too old"),
                ("g5.2xlarge", "p3.2xlarge", "too old"),
                ("g5.xlarge", "g6.xlarge", None),
                ("p3.2xlarge", "g4dn.2xlarge", None),
            )
        ),
        pytest.param(
            "g5.xlarge",
            "g4dn.xlarge",
            1,
            None,
            None,
            id="a run without a sign may move to an older GPU",
        ),
        # fp8 from Ada on; the README of FlashAttention does not name Blackwell
        pytest.param("p5.4xlarge", "g5.2xlarge", 1, EIGHT, "fp8", id="fp8 needs Ada"),
        pytest.param("p5.4xlarge", "g6e.2xlarge", 1, EIGHT, None, id="fp8 runs on Ada"),
        pytest.param(
            "g6e.2xlarge",
            "g7e.2xlarge",
            1,
            FLASH,
            "not documented",
            id="FlashAttention does not name Blackwell",
        ),
        pytest.param("g7e.4xlarge", "g7e.2xlarge", 1, FLASH, None, id="Blackwell to Blackwell"),
    ],
)
def test_a_run_cannot_lose_a_feature_of_its_gpus(
    current_name: str, other_name: str, count: int, hints: Hints | None, reason: str | None
) -> None:
    """It depends on links, network and precision."""
    result = refusal_of_move(f"ml.{current_name}", f"ml.{other_name}", count, hints)
    assert result is None if reason is None else reason in (result or "")


SHARD = (InputChannel("data", DataSource.S3, "File", "ShardedByS3Key"),)
WHOLE = (InputChannel("data", DataSource.S3, "File", "FullyReplicated"),)
SPARK = "173754725891.dkr.ecr.us-east-1.amazonaws.com/sagemaker-spark-processing:3.1-cpu-py37-v1.0"
CLASSIFIER = "811284229777.dkr.ecr.us-east-1.amazonaws.com/image-classification:1"


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        # SageMaker gives each transform instance its own objects, whatever the model does inside
        (JobKind.TRANSFORM, {"channels": WHOLE}, None),
        (JobKind.TRANSFORM, {"channels": WHOLE, "hints": TOGETHER}, None),
        # a processing or training job by its data, unless something joins its instances
        (JobKind.PROCESSING, {"channels": SHARD}, None),
        (JobKind.PROCESSING, {"channels": (*WHOLE, *SHARD)}, None),
        (JobKind.PROCESSING, {"channels": WHOLE}, "may exchange data, as nothing splits it"),
        (JobKind.PROCESSING, {"channels": ()}, "may exchange data, as nothing splits it"),
        (JobKind.PROCESSING, {"channels": SHARD, "image": SPARK}, "(Spark)"),
        (JobKind.PROCESSING, {"channels": SHARD, "entry_point": "run_ray.py"}, "(Ray)"),
        (JobKind.PROCESSING, {"channels": SHARD, "hints": TOGETHER}, "(ddp)"),
        (JobKind.TRAINING, {"channels": SHARD}, None),
        (JobKind.TRAINING, {"channels": WHOLE}, "may exchange data, as nothing splits it"),
        (JobKind.TRAINING, {"channels": SHARD, "hints": TOGETHER}, "(ddp)"),
        (JobKind.TRAINING, {"channels": SHARD, "image": CLASSIFIER}, "built-in algorithm"),
    ],
)
def test_instances_that_work_alone_may_move(
    kind: JobKind, changes: dict[str, Any], reason: str | None
) -> None:
    """Two p3.2xlarge move to g5.2xlarge."""
    current_type, other_type = TYPES["ml.p3.2xlarge"], TYPES["ml.g5.2xlarge"]
    run = replace(JOB, kind=kind, groups=(InstanceGroup(current_type.name, 2),), **changes)
    result = type_refusal(run, current_type, other_type)
    assert result is None if reason is None else reason in (result or "")


def test_training_instances_with_parts_of_the_data_must_be_checked() -> None:
    """A script may join them without a sign. The instances of a processing job do not train."""
    current_type, other_type = TYPES["ml.g5.2xlarge"], TYPES["ml.g6.2xlarge"]
    run = replace(JOB, groups=(InstanceGroup(current_type.name, 2),), channels=SHARD)
    check = "Each instance gets a part of the data: check that they exchange none as they train."
    assert check in [*move_caveats(run, current_type, other_type)]
    assert check not in [
        *move_caveats(replace(run, kind=JobKind.PROCESSING), current_type, other_type)
    ]
    assert check not in [
        *move_caveats(replace(run, groups=run.groups[:0]), current_type, other_type)
    ]


def test_what_each_gpu_can_do() -> None:
    """K80 has neither feature. V100 and T4 have tensor cores without bf16. A CPU type has no
    GPU.
    """
    names = ("p2.xlarge", "p3.2xlarge", "g4dn.xlarge", "g5.xlarge", "m5.xlarge")
    able = [(has_tensor_cores(TYPES[f"ml.{n}"]), has_bf16(TYPES[f"ml.{n}"])) for n in names]
    assert able == [(False, False), (True, False), (True, False), (True, True), (False, False)]


@pytest.mark.parametrize(
    ("current_name", "other_name", "tag", "reason"),
    [
        ("ml.p3.2xlarge", "ml.g5.2xlarge", "1.4.0-gpu-py36-cu101-ubuntu16.04", "11.1 or later"),
        ("ml.p3.2xlarge", "ml.g5.2xlarge", "1.4-gpu-py3", "has CUDA 10.1, and the A10G needs"),
        ("ml.p3.2xlarge", "ml.g5.2xlarge", "1.7.1-gpu-py36-cu110", "11.1 or later"),
        ("ml.p3.2xlarge", "ml.g5.2xlarge", "1.9.1-gpu-py38-cu111", None),
        ("ml.p3.2xlarge", "ml.g6.2xlarge", "1.13.1-gpu-py39-cu117", "11.8 or later"),
        ("ml.p3.2xlarge", "ml.g6e.2xlarge", "2.0.1-gpu-py310-cu118", None),
        ("ml.p3.2xlarge", "ml.g4dn.2xlarge", "1.2.0-gpu-py3-cu92", "10.0 or later"),
        ("ml.p3.2xlarge", "ml.g7e.2xlarge", "2.5.1-gpu-py311-cu124", "12.8 or later"),
        ("ml.g5.2xlarge", "ml.p3.2xlarge", "2.9.0-gpu-py312-cu130", "has dropped the V100"),
        ("ml.g5.2xlarge", "ml.g4dn.2xlarge", "2.9.0-gpu-py312-cu130", None),
        ("ml.g5.2xlarge", "ml.p3.2xlarge", "2.11.0-gpu-py312-cu128", "PyTorch 2.11 for CUDA 12.8"),
        ("ml.g5.2xlarge", "ml.p3.2xlarge", "2.11.0-gpu-py312-cu126", None),
        ("ml.p3.2xlarge", "ml.p2.xlarge", "2.1.0-gpu-py310-cu121", "has dropped the K80"),
        ("ml.p3.2xlarge", "ml.g5.2xlarge", "latest", None),
    ],
)
def test_the_images_cuda_must_have_code_for_the_gpu(
    current_name: str, other_name: str, tag: str, reason: str | None
) -> None:
    """The first toolkit of each architecture, and those that CUDA 12 and 13 dropped. Unknown ones
    pass.
    """
    result = refusal_of_move(current_name, other_name, image=f"{DLC}pytorch-training:{tag}")
    assert result is None if reason is None else reason in (result or "")


@pytest.mark.parametrize(
    ("current_name", "other_name", "image", "reason"),
    [
        ("ml.p3.2xlarge", "ml.g5.2xlarge", f"{XGBOOST}1.7-1", None),
        ("ml.p3.2xlarge", "ml.g6e.2xlarge", f"{XGBOOST}1.7-1", "is not documented"),
        ("ml.g5.2xlarge", "ml.p2.xlarge", f"{XGBOOST}1.7-1", "names g4dn, g5, p3"),
        ("ml.g5.2xlarge", "ml.p2.xlarge", f"{XGBOOST}1.5-1", None),
        ("ml.p3.2xlarge", "ml.g5.2xlarge", f"{XGBOOST}1.2-1", "names p2, p3"),
        ("ml.p3.2xlarge", "ml.g5.2xlarge", f"{XGBOOST}1.0-1", "on a GPU is not documented"),
        ("ml.g6.8xlarge", "ml.g6.2xlarge", f"{XGBOOST}1.7-1", None),
        (
            "ml.p3.2xlarge",
            "ml.g6e.2xlarge",
            "438346466558.dkr.ecr.eu-west-1.amazonaws.com/semantic-segmentation:1",
            "Semantic Segmentation on g6e is not documented",
        ),
        (
            "ml.p3.2xlarge",
            "ml.g6e.2xlarge",
            "111122223333.dkr.ecr.us-east-1.amazonaws.com/xgboost:1",
            None,
        ),
    ],
)
def test_a_built_in_algorithm_stays_on_documented_families(
    current_name: str, other_name: str, image: str, reason: str | None
) -> None:
    """The job's own family is accepted in any size. A copy in the user's account is an own
    image.
    """
    result = refusal_of_move(current_name, other_name, image=image)
    assert result is None if reason is None else reason in (result or "")


def test_an_algorithm_for_gpus_does_not_move_to_a_cpu_type() -> None:
    """However idle its GPU is. XGBoost may move."""
    current_type, other_type = TYPES["ml.p3.2xlarge"], TYPES["ml.m5.2xlarge"]
    seq2seq = replace(JOB, image="811284229777.dkr.ecr.us-east-1.amazonaws.com/seq2seq:1")
    assert algorithm_refusal(seq2seq, current_type, other_type) == (
        "Sequence to Sequence trains on GPU instances only"
    )
    assert (
        algorithm_refusal(replace(JOB, image=f"{XGBOOST}1.7-1"), current_type, other_type) is None
    )


def checks(current_name: str, other_name: str, run: Job = JOB) -> list[str]:
    """Returns what must be checked before a move."""
    return list(move_caveats(run, TYPES[current_name], TYPES[other_name]))


def test_what_no_recording_shows_must_be_checked() -> None:
    """An unknown toolkit that matters, bf16, FlashAttention-3, an A100 with less bandwidth."""
    assert checks("ml.p3.2xlarge", "ml.g5.2xlarge") == [
        "The CUDA version of its image is not known: the A10G needs 11.1 or later."
    ]
    known = replace(JOB, image=f"{DLC}pytorch-training:1.9.1-gpu-py38-cu111")
    assert checks("ml.p3.2xlarge", "ml.g5.2xlarge", known) == []
    assert checks("ml.g5.2xlarge", "ml.g5.xlarge") == []
    assert checks("ml.g5.2xlarge", "ml.p3.2xlarge") == [
        "The CUDA version of its image is not known: CUDA 13 has dropped the V100.",
        "The V100 has no bf16: check that the code does not use it.",
    ]
    assert checks("ml.g5.2xlarge", "ml.g4dn.xlarge") == [
        "The T4 has no bf16: check that the code does not use it."
    ]
    flash = replace(JOB, hints=Hints(flash_attention=True))
    assert checks("ml.p5.48xlarge", "ml.p4de.24xlarge", flash) == [
        "FlashAttention-3 runs on Hopper only: check which version it uses."
    ]
    [narrow] = checks("ml.p5.48xlarge", "ml.p4d.24xlarge")
    assert "80 GiB" in narrow
