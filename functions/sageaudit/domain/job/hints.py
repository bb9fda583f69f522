"""Derives flags from hyperparameters, environment, command line and image.

These may contain secrets, so only flags, one small number and words of fixed lists are returned.

Names, as public sources spell them: the SDK's switches (aws/sagemaker-python-sdk: estimator.py,
pytorch/estimator.py, and `mp_parameters` of
modules/distributed.py), Hugging Face's TrainingArguments, PyTorch Lightning's `precision` and
`strategy`, DeepSpeed's configuration, `precision_dtype` of the built-in image algorithms. Images:
the SDK's image_uri_config and aws/deep-learning-containers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from sageaudit.domain.job import fields
from sageaudit.domain.job.addresses import repository
from sageaudit.domain.job.hints import UserSetting, user_settings
from sageaudit.domain.job.job import Hints

_MOST_WORKERS = 1024
_DEEP_LEARNING = re.compile(
    r"(?:huggingface-|stabilityai-)?(?:pytorch|tensorflow|mxnet|autogluon)"
    r"(?:-[a-z]+)?-(?:training|inference)(?:-\w+)?"
    r"|djl-[\w-]+|smdistributed-modelparallel"
    r"|sagemaker-(?:tensorflow|pytorch|mxnet|chainer)(?:-[\w-]+)?"
    r"|image-classification(?:-neo)?|object-detection|semantic-segmentation|seq2seq|blazingtext"
    r"|forecasting-deepar|object2vec|ntm"
)
_SWITCHES = {
    "sagemaker_distributed_dataparallel_enabled": "smddp",
    "mp_parameters": "smp",
    "sagemaker_torch_distributed_enabled": "ddp",
    "sagemaker_pytorch_ddp_enabled": "ddp",
    "sagemaker_multi_worker_mirrored_strategy_enabled": "mirrored",
    "sagemaker_pytorch_xla_multi_worker_enabled": "xla",
    "sagemaker_parameter_server_enabled": "parameter_server",
    "sagemaker_mpi_enabled": "mpi",
}
_LIBRARIES = {"horovod": "horovod", "horovodrun": "horovod", "deepspeed": "deepspeed",
              "fsdp": "fsdp", "ddp": "ddp", "torchrun": "ddp", "mpirun": "mpi",
              "mirroredstrategy": "mirrored", "multiworkermirroredstrategy": "mirrored",
              "accelerate": "accelerate"}  # fmt: skip
_IN_A_TEXT = frozenset({"accelerate"})
"""In a name it is the library's, which a single process uses as well."""
DISTRIBUTIONS = ("smddp", "smp", "horovod", "deepspeed", "fsdp", "ddp", "mirrored", "xla",
                 "accelerate", "parameter_server", "mpi")  # fmt: skip
"""The most specific first: Horovod, SMP and DeepSpeed are launched through MPI or torchrun."""
_OTHER_SENSE = frozenset({"no", "disable", "without", "eval", "backend", "level", "loss", "scale"})
"""Words that reverse a name's meaning, or make it a detail that depends on the main switch."""
_HALF_NAMES = frozenset({"fp16", "bf16", "fp8", "float16", "bfloat16", "amp", "apex"})
_HALF_WORDS = frozenset({"fp16", "bf16", "float16", "bfloat16"})
_HALF_PRECISION = re.compile(
    r"(?<![\w.])(?:torch\.)?(?:b?float|b?fp?)?16(?![0-9])|half|mixed|\bamp\b|fp8"
)
_FLASH = re.compile(r"flash[_-]?att(?:n|ention)")
_CHECKPOINTS = frozenset({"checkpoint", "checkpoints", "ckpt", "ckpts", "snapshot", "resume"})
_NOT_SAVED = frozenset(
    {"gradient", "activation", "grad", "pretrained", "init", "initial", "base", "no", "disable"}
    | {"load", "teacher", "eval", "download"}
)
_MODEL_NAMES = frozenset({"checkpoint", "ckpt", "model_checkpoint", "model_ckpt"})
"""Names that may mean a published model as well as a folder of the user's."""
_SAVES = re.compile(r"save_(?:steps|strategy|interval|total_limit|epochs?|every\w*|freq\w*)\Z")
_CHECKPOINT_PLACE = re.compile(r"/opt/ml/checkpoints|s3://\S{0,200}(?:checkpoint|ckpt)")
_OUTPUT_PLACES = frozenset({"output_dir", "save_dir", "default_root_dir", "output_s3_uri"})
"""Where Transformers, Lightning and scripts of AWS's examples write, under these very names. In S3
it is an output of the script's own, which SageMaker neither makes nor reports."""
_NOT_LOADING = frozenset({"preprocessing", "ray", "ps", "env", "rollout", "mirrored"})
_PRETRAINED = frozenset({"pretrained", "finetune", "finetuning", "lora", "qlora", "peft"})
_PRETRAINED_NAMES = frozenset(
    {"model_name_or_path", "model_id", "hf_model_id", "base_model", "base_model_name", "init_model"}
    | {"init_checkpoint", "warm_start_model", "from_pretrained"}
)
"""Names whose value is a trained model: Hugging Face's scripts, JumpStart, BERT's first scripts."""
_TRAINING_COMPILER = "sagemaker_training_compiler_enabled"
_DECLINES = frozenset({"decay", "annealing", "schedule", "scheduler"})
_NOT_A_RATE = frozenset({"noise", "beta", "eval", "save", "logging", "batch"})
_SCHEDULES = {
    "cosine": re.compile(r"cos(?:ine|_|\b)"),
    "linear": re.compile(r"linear|warmup_?decay"),
}
"""Those that gain late."""


def of_answer(answer: Mapping[str, Any]) -> Hints:
    """The hints of a whole Describe answer. Raises Malformed when a field has the wrong type."""
    software = fields.section(answer, "AlgorithmSpecification")
    software = software or fields.section(answer, "AppSpecification")
    image = fields.text(software, "TrainingImage") or fields.text(software, "ImageUri")
    hyperparameters = fields.section(answer, "HyperParameters")
    environment = fields.section(answer, "Environment")
    command = [software.get("ContainerEntrypoint"), software.get("ContainerArguments")]
    settings = tuple(user_settings(hyperparameters, environment, command))
    distribution = _distribution(settings)
    workers = [count for count in map(_workers, settings) if count is not None]
    name = (repository(image) or "").rpartition("/")[2]
    return Hints(
        deep_learning=_DEEP_LEARNING.fullmatch(name) is not None,
        mixed_precision=any(map(_is_half, settings)),
        fp8=any(map(_is_fp8, settings)),
        flash_attention=any(map(_is_flash, settings)),
        own_checkpoints=any(map(_saves, settings)),
        distributed_sampler=distribution not in {None, "parameter_server"}
        or any(map(_says_sampler, settings)),
        distribution=distribution,
        loader_workers=max(workers, default=None),
        schedule=next(filter(None, map(_schedule, settings)), None),
        pretrained=any(map(_is_pretrained, settings)),
        training_compiler=any(one.name == _TRAINING_COMPILER and one.on for one in settings),
    )


def kept(found: Hints) -> dict[str, Any]:
    """The hints as a kept answer has them: only those that differ from their default."""
    plain = asdict(Hints())
    return {name: value for name, value in asdict(found).items() if value != plain[name]}


def restored(section: Mapping[str, Any]) -> Hints:
    """The hints of a kept answer. Raises Malformed when a field has the wrong type."""
    distribution, schedule = fields.text(section, "distribution"), fields.text(section, "schedule")
    flags = [name for name, plain in asdict(Hints()).items() if plain is False]
    return Hints(
        **{name: fields.flag_or_false(section, name) for name in flags},
        distribution=distribution if distribution in DISTRIBUTIONS else None,
        loader_workers=fields.count(section, "loader_workers", most=_MOST_WORKERS),
        schedule=schedule if schedule in _SCHEDULES else None,
    )


def _distribution(settings: tuple[UserSetting, ...]) -> str | None:
    found = set()
    for setting in settings:
        if not setting.on:
            continue
        found.add(_SWITCHES.get(setting.name.partition(".")[0]))
        if not setting.name.startswith("sagemaker_"):
            named = frozenset() if setting.words & _OTHER_SENSE else setting.words - _IN_A_TEXT
            signs = (named | setting.text_words) & _LIBRARIES.keys()
            found |= {_LIBRARIES[word] for word in signs}
        if "strategy" in setting.words and "mirrored" in setting.text_words:
            found.add("mirrored")
    return next((name for name in DISTRIBUTIONS if name in found), None)


def _is_half(setting: UserSetting) -> bool:
    """True for signs of 16 bits: a switch, a precision, or a configuration file.

    DeepSpeed and Accelerate set the precision in that file, and both are made for 16 bits.
    """
    if not setting.on or setting.words & _OTHER_SENSE or setting.name.startswith("sagemaker_"):
        return False
    named = setting.words & _HALF_NAMES or setting.words >= {"mixed", "precision"}
    if named or setting.text_words & _HALF_WORDS:
        return True
    if setting.words & {"precision", "dtype"}:
        return _HALF_PRECISION.search(setting.text) is not None
    file = setting.text.endswith((".json", ".yaml", ".yml"))
    return file and bool(setting.words & {"deepspeed", "accelerate"})


def _is_fp8(setting: UserSetting) -> bool:
    said = "fp8" in setting.words | setting.text_words
    return setting.on and said and not setting.words & _OTHER_SENSE


def _is_flash(setting: UserSetting) -> bool:
    if not setting.on or setting.words & _OTHER_SENSE:
        return False
    return _FLASH.search(setting.name) is not None or _FLASH.search(setting.text) is not None


def _is_pretrained(setting: UserSetting) -> bool:
    if not setting.on or setting.words & _OTHER_SENSE or setting.name.startswith("sagemaker_"):
        return False
    if setting.leaf in _PRETRAINED_NAMES or setting.words >= {"fine", "tune"}:
        return True
    return bool(setting.words & _PRETRAINED)


def _saves(setting: UserSetting) -> bool:
    if not setting.on or setting.words & _NOT_SAVED:
        return False
    if _CHECKPOINT_PLACE.search(setting.text) or _SAVES.search(setting.name):
        return True
    if setting.leaf in _OUTPUT_PLACES and setting.text.startswith("s3://"):
        return True
    if setting.leaf in _MODEL_NAMES:
        return setting.text == "true" or setting.text.startswith("/")
    return bool(setting.words & _CHECKPOINTS)


def _says_sampler(setting: UserSetting) -> bool:
    named = "sampler" in setting.words | setting.text_words
    return setting.on and (named or "distributedsampler" in setting.text)


def _workers(setting: UserSetting) -> int | None:
    loads = setting.leaf.endswith(("workers", "num_worker")) and not setting.words & _NOT_LOADING
    if not loads or not re.fullmatch(r"[0-9]{1,4}", setting.text):
        return None
    count = int(setting.text)
    return count if count <= _MOST_WORKERS else None


def _schedule(setting: UserSetting) -> str | None:
    if not setting.on or setting.words & _NOT_A_RATE:
        return None
    rate = bool(setting.words & {"lr", "learning"})
    if "cosine" in setting.words and (rate or setting.words & _DECLINES):
        return "cosine"
    named = setting.words & {"scheduler", "schedule", "sched"}
    if not named and not (rate and setting.words & {"policy", "mode", "style", "decay"}):
        return None
    return next((name for name, word in _SCHEDULES.items() if word.search(setting.text)), None)
