"""What hyperparameters, environment, options and image show, and that nothing else is kept."""

import json
import time
from typing import Any

import pytest

from sageaudit.domain.job.describe import parse, sanitize_answer
from sageaudit.domain.job.hints import from_answer
from sageaudit.domain.job.job import Hints, Job
from sageaudit.errors import MalformedData
from tests.fakes.jobs import training_answer

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
OWN = "111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer:7"


def hints_of(
    hyperparameters: dict[str, Any] | None = None, image: str = OWN, **answer: Any
) -> Hints:
    """Returns the hints of a training answer."""
    algorithm = {"TrainingImage": image, **answer.pop("algorithm", {})}
    changes = {"AlgorithmSpecification": algorithm, **answer}
    if hyperparameters is not None:
        changes["HyperParameters"] = hyperparameters
    return from_answer(training_answer(**changes))


def test_an_empty_answer_has_no_hints() -> None:
    """An own image without hyperparameters has no hints."""
    assert hints_of() == Hints()
    assert from_answer({}) == Hints()


DEEP = """
pytorch-training:2.0 tensorflow-training:2.11 mxnet-training:1.9 sagemaker-pytorch:1.0.0-gpu-py3
huggingface-pytorch-training:1.9-transformers4.12-gpu-py38-cu111-ubuntu20.04
huggingface-pytorch-training-neuronx:2.1.2 huggingface-pytorch-trcomp-training:1.11.0
pytorch-training-neuronx:1.13 autogluon-training:1.3.0 djl-inference:0.28.0-lmi10.0.0-cu124
smdistributed-modelparallel:2.4.1-gpu-py311 image-classification:1 object-detection:latest
semantic-segmentation:1 seq2seq:1 blazingtext:1 forecasting-deepar:1
"""
OTHER = """
sagemaker-xgboost:1.5-1 xgboost:latest linear-learner:1 kmeans:1 pca:1 factorization-machines:1
sagemaker-scikit-learn:1.2-1-cpu-py3 randomcutforest:1 team/pytorch-training-of-ours-2:1
sagemaker-data-wrangler-container:2.x
"""


@pytest.mark.parametrize(
    ("repository", "deep"),
    [*((item, True) for item in DEEP.split()), *((item, False) for item in OTHER.split())],
)
def test_deep_learning_images_are_known_by_their_repository(repository: str, *, deep: bool) -> None:
    """These are AWS's containers and algorithms that train networks. An own image may be for
    anything.
    """
    assert hints_of(image=f"{REGISTRY}/{repository}").deep_learning is deep


SIGNS: dict[tuple[str, object], list[str]] = {
    # a switch, a precision, a word in a value, a file with it; also twice encoded
    ("mixed_precision", True): [
        "fp16=true",
        'fp16="True"',
        "fp16=1",
        "bf16=true",
        "use-amp=true",
        "mixed_precision=true",
        'amp="O1"',
        'mixed_precision="fp16"',
        "precision=16",
        'precision="16-mixed"',
        'precision="bf16-true"',
        "precision_dtype=float16",
        'torch_dtype="torch.bfloat16"',
        'dtype="half"',
        'policy="mixed_float16 and bfloat16"',
        'args="--epochs 3 --fp16"',
        'deepspeed="ds_config.json"',
        'accelerate_config_file="fsdp.yaml"',
        'deepspeed={"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}',
        'trainer={"precision": "bf16"}',
        'fp16="\\"true\\""',
    ],
    # switched off, a detail that works only with the switch, or another sense of the word
    ("mixed_precision", False): [
        "fp16=false",
        'fp16="False"',
        "fp16=0",
        "bf16=null",
        "no-amp=true",
        'amp="O0"',
        'mixed_precision="no"',
        "precision=32",
        'precision="32-true"',
        "precision=0.16",
        'dtype="int16"',
        "precision_dtype=float32",
        "fp16_full_eval=true",
        "batch_size=16",
        'half_precision_backend="auto"',
        'data="s3://bucket/fp16/train"',
        "example=true",
        'sagemaker_job_name="try-fp16-2026"',
        "sampler=true",
        'deepspeed={"fp16": {"enabled": "auto", "loss_scale": 64}}',
    ],
    ("fp8", True): ["fp8=true", "mixed_precision=fp8"],
    ("fp8", False): ["fp8=false", "no_fp8=true", "fp16=true", "precision=bf16"],
    ("flash_attention", True): [
        "use_flash_attention_2=true",
        'attn_implementation="flash_attention_2"',
        "flash-attn=1",
    ],
    ("flash_attention", False): [
        "use_flash_attention_2=false",
        "disable_flash_attn=true",
        'attn_implementation="sdpa"',
    ],
    # a folder, an interval, a resumption
    ("own_checkpoints", True): [
        'output_dir="/opt/ml/checkpoints"',
        'model_dir="s3://bucket/run/checkpoints/"',
        'checkpoint-dir="/tmp/out"',
        "checkpoint_frequency=2",
        'ckpt_path="/opt/ml/x"',
        "save_steps=500",
        'save_strategy="epoch"',
        "save_every_n_epochs=1",
        "checkpoint=true",
        "resume_from_checkpoint=true",
        "auto_resume=true",
        # a folder in S3, under the names of Transformers, Lightning and AWS's examples
        'output_dir="s3://bucket/run7"',
        'args={"output_dir": "s3://bucket/run7"}',
        'save_dir="s3://bucket/"',
        'trainer={"default_root_dir": "s3://bucket/x"}',
        'output-s3-uri="S3://bucket/out"',
    ],
    # activations and published models are called checkpoints too
    ("own_checkpoints", False): [
        'save_strategy="no"',
        "save_steps=0",
        "resume_from_checkpoint=false",
        "gradient_checkpointing=true",
        "gradient_checkpoint=true",
        'output_dir="/opt/ml/model"',
        'model_checkpoint="bert-base-uncased"',
        'checkpoint="distilbert-base-cased"',
        'pretrained_checkpoint="/opt/ml/input/data/model"',
        'teacher_checkpoint="s3://b/ckpt/t"',
        'load_checkpoint="s3://b/checkpoints/1"',
        "resume_download=true",
        'save_dir="/opt/ml/model"',
        'output_s3_uri=""',
        'data_dir="s3://bucket/data"',
        'eval_output_dir="s3://bucket/eval"',
        'output_dir="out/s3://x"',
    ],
    # a published model by its name, or a method that needs one
    ("pretrained", True): [
        'model_name_or_path="bert-base-uncased"',
        'model_id="meta/llama"',
        "pretrained=true",
        "use_pretrained_model=1",
        'pretrained_weights="imagenet"',
        "fine_tune=true",
        "lora_r=8",
        'base_model="s3://b/m"',
        'model={"init_checkpoint": "/opt/ml/input/data/ckpt"}',
    ],
    ("pretrained", False): [
        "pretrained=false",
        "use_pretrained_model=0",
        "no_pretrained=true",
        "model_type=resnet",
        'model_name="churn"',
        'sagemaker_job_name="fine-tune-1"',
        "lr_tune=1",
        "epochs=3",
    ],
    ("training_compiler", True): ["sagemaker_training_compiler_enabled=true"],
    ("training_compiler", False): [
        "sagemaker_training_compiler_enabled=false",
        "sagemaker_training_compiler_debug_mode=true",
        "torch_compile=true",
    ],
    ("distribution", "smddp"): ["sagemaker_distributed_dataparallel_enabled=true"],
    ("distribution", "mpi"): ["sagemaker_mpi_enabled=true"],
    ("distribution", "ddp"): [
        "sagemaker_torch_distributed_enabled=true",
        "sagemaker_pytorch_ddp_enabled=true",
        'strategy="ddp"',
    ],
    ("distribution", "fsdp"): ['fsdp="full_shard auto_wrap"'],
    ("distribution", "deepspeed"): ['strategy="deepspeed_stage_2"'],
    ("distribution", "mirrored"): [
        "sagemaker_multi_worker_mirrored_strategy_enabled=true",
        'strategy="MirroredStrategy"',
        'distribution_strategy="mirrored"',
    ],
    ("distribution", "accelerate"): [
        'launcher="accelerate launch"',
        'command="accelerate launch --num_processes 4 train.py"',
    ],
    ("distribution", "xla"): ["sagemaker_pytorch_xla_multi_worker_enabled=true"],
    ("distribution", "parameter_server"): ["sagemaker_parameter_server_enabled=true"],
    ("distribution", None): [
        "sagemaker_distributed_dataparallel_enabled=false",
        "no_ddp=true",
        'sagemaker_program="train_ddp.py"',
        "use_accelerate=true",
        'padding="mirrored"',
    ],
    # every data-parallel launch may have a sampler; a parameter server has none
    ("distributed_sampler", True): [
        "sagemaker_pytorch_ddp_enabled=true",
        "distributed_sampler=true",
        'data={"sampler": "torch.utils.data.DistributedSampler"}',
        'loading="torch.utils.data.DistributedSampler"',
    ],
    ("distributed_sampler", False): [
        "sagemaker_parameter_server_enabled=true",
        "distributed_sampler=false",
        "epochs=3",
    ],
    # 0 is one: the main process loads
    ("loader_workers", 0): ["dataloader_num_workers=0"],
    ("loader_workers", 4): ['workers="4"'],
    ("loader_workers", 6): ['data={"num_workers": 6}'],
    ("loader_workers", 8): ["num_workers=8"],
    ("loader_workers", None): [
        "num_workers=many",
        "num_workers=-1",
        "num_workers=5000",
        "num_workers=true",
        "num_workers=2.5",
        "preprocessing_num_workers=8",
        'coworkers_email="a@b"',
    ],
    # words of a fixed list; any other word of the user's stays out
    ("schedule", "cosine"): [
        'lr_scheduler_type="cosine"',
        'lr_scheduler_type="cosine_with_restarts"',
        'scheduler="CosineAnnealingLR"',
        "cosine_decay=true",
        'lr_decay_style="cosine"',
    ],
    ("schedule", "linear"): [
        'lr_scheduler_type="linear"',
        'deepspeed={"scheduler": {"type": "WarmupDecayLR"}}',
    ],
    ("schedule", None): [
        "lr_scheduler=poly",
        'lr-schedule="OneCycleLR"',
        "lr_scheduler=step",
        "lr_scheduler_step=10,20",
        "use_lr_scheduler=true",
        'noise_scheduler="linear"',
        'loss="cosine"',
        "cosine_similarity=true",
        'lr_scheduler_type="my-secret-thing"',
    ],
}
"""Hyperparameters by the hint that each gives alone."""


@pytest.mark.parametrize(
    ("hint", "value", "setting"),
    [(*given, setting) for given, settings in SIGNS.items() for setting in settings],
)
def test_a_hyperparameter_gives_its_hint(hint: str, value: object, setting: str) -> None:
    """By its name, its value or both, in the forms of public sources."""
    name, _, text = setting.partition("=")
    assert getattr(hints_of({name: text}), hint) == value


def test_the_most_specific_sign_counts() -> None:
    """A framework counts before MPI or torchrun, which launches it. The highest number of workers
    counts.
    """
    mpi, torchrun = "sagemaker_mpi_enabled", "sagemaker_torch_distributed_enabled"
    assert hints_of({mpi: "true", "mp_parameters": '{"partitions": 2}'}).distribution == "smp"
    assert hints_of({mpi: "true", "backend": '"horovod"'}).distribution == "horovod"
    assert hints_of({torchrun: "true", "deepspeed": '"ds.json"'}).distribution == "deepspeed"
    assert hints_of({"num-workers": "4", "eval_num_workers": "2"}).loader_workers == 4


def test_the_environment_counts_as_well() -> None:
    """Accelerate, TensorFlow and plain variables."""
    assert hints_of(Environment={"ACCELERATE_MIXED_PRECISION": "bf16"}).mixed_precision
    assert hints_of(Environment={"TF_ENABLE_AUTO_MIXED_PRECISION": "1"}).mixed_precision
    assert hints_of(Environment={"NUM_WORKERS": "3"}).loader_workers == 3
    assert hints_of(Environment={"HOROVOD_FUSION_THRESHOLD": "1024"}).distribution == "horovod"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            {
                "ContainerEntrypoint": ["torchrun", "train.py"],
                "ContainerArguments": ["--fp16", "--num-workers", "4", "--save_steps=500"],
            },
            id="as a list",
        ),
        pytest.param(
            {
                "ContainerEntrypoint": ["bash", "-c"],
                "ContainerArguments": [
                    "/bin/torchrun train.py --num-workers 4 --fp16 --save_steps 5"
                ],
            },
            id="in one line for a shell",
        ),
    ],
)
def test_options_of_the_command_count(command: dict[str, list[str]]) -> None:
    """As a list, or in one line for a shell."""
    assert hints_of(algorithm=command) == Hints(
        mixed_precision=True,
        own_checkpoints=True,
        distributed_sampler=True,
        distribution="ddp",
        loader_workers=4,
    )


def test_a_processing_jobs_arguments_count() -> None:
    """They are in its AppSpecification."""
    answer = {
        "ProcessingJobName": "p",
        "ProcessingJobStatus": "Completed",
        "AppSpecification": {
            "ImageUri": f"{REGISTRY}/pytorch-training:2.0",
            "ContainerEntrypoint": ["python3", "embed.py"],
            "ContainerArguments": ["--precision", "16"],
        },
    }
    told_of = parse(answer, {}).hints
    assert told_of == Hints(deep_learning=True, mixed_precision=True)
    assert parse(sanitize_answer(answer), {}).hints == told_of


RICH = {
    "fp16": "true",
    "attn_implementation": '"flash_attention_2"',
    "output_dir": '"s3://acme-models/run7"',
    "sagemaker_pytorch_ddp_enabled": "true",
    "num_workers": "8",
    "lr_scheduler_type": '"cosine"',
    "hub_token": '"hunter2"',
}


def test_a_stored_job_has_the_same_hints() -> None:
    """Flags are stored, and stay the same if the stored answer is stored again."""
    answer = training_answer(HyperParameters=RICH, Environment={"TOKEN": "hunter2"})
    live_hints = parse(answer, {}).hints
    assert live_hints == Hints(
        deep_learning=True,
        mixed_precision=True,
        flash_attention=True,
        own_checkpoints=True,
        distributed_sampler=True,
        distribution="ddp",
        loader_workers=8,
        schedule="cosine",
    )
    once = json.loads(json.dumps(sanitize_answer(answer)))
    assert parse(once, {}).hints == live_hints
    assert parse(sanitize_answer(once), {}).hints == live_hints
    assert "hunter2" not in json.dumps(once)
    assert "acme-models" not in json.dumps(once)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mixed_precision", "yes"),
        ("loader_workers", -1),
        ("loader_workers", 10**6),
        ("schedule", 5),
        ("distribution", []),
    ],
)
def test_an_invalid_stored_flag_is_refused_with_its_key(key: str, value: object) -> None:
    """A stored answer is checked like any other."""
    with pytest.raises(MalformedData) as caught:
        parse(training_answer(Derived={"Hints": {key: value}}), {})
    assert caught.value.key == key


def test_unknown_words_in_stored_flags_are_dropped() -> None:
    """Only words of the fixed lists are read back."""
    kept = {"schedule": "hunter2", "distribution": "hunter2", "deep_learning": True}
    assert parse(training_answer(Derived={"Hints": kept}), {}).hints == Hints(deep_learning=True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        True,
        [],
        {},
        [[]],
        {"a": None},
        '{"a": ',
        '"',
        "[" * 5000,
        "{" * 5000,
        1e308,
        "\x00",
        "s3://" * 2000,
        '"' * 9999,
        float("nan"),
        [1, "fp16", None],
    ],
    ids=lambda value: str(value)[:12],
)
def test_invalid_values_do_not_raise(value: object) -> None:
    """The API's values are strings, but a recording may have anything."""
    answer = training_answer(HyperParameters={"fp16": value, "num_workers": value})
    job: Job = parse(answer, {})
    assert job.hints.loader_workers in {None, 1, 5}


@pytest.mark.parametrize("command", ["torchrun", 5, [None, 5], {"a": 1}])
def test_an_invalid_command_is_ignored(command: object) -> None:
    """Only lists of words are read."""
    assert hints_of(algorithm={"ContainerArguments": command}) == Hints()


def test_a_very_large_configuration_takes_bounded_time() -> None:
    """At most 500 settings of 1,000 characters are read."""
    many = {f"name_{n}": "s3://" * 400 + "checkpoint" for n in range(5000)}
    begun = time.process_time()
    hints_of(many)
    assert time.process_time() - begun < 5
