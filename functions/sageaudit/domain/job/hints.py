"""Derives flags from hyperparameters, environment, command line and image.

These sources may contain secrets, so only flags, one small number and words of fixed lists are
returned.

Settings are read as pairs of name and text, in lower case and of limited number and length. The SDK
writes each hyperparameter as JSON (`"cosine"` with its quotes, `true`, `16`). For a tuning job, it
writes JSON inside JSON. Configurations may be nested.

Sources of the names: the SDK's switches (aws/sagemaker-python-sdk: estimator.py,
pytorch/estimator.py, and `mp_parameters` of modules/distributed.py), Hugging Face's
TrainingArguments, PyTorch Lightning's `precision` and `strategy`, DeepSpeed's configuration,
`precision_dtype` of the built-in image algorithms. Images: the SDK's image_uri_config and
aws/deep-learning-containers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from sageaudit.domain.job import fields
from sageaudit.domain.job.addresses import repository
from sageaudit.domain.job.job import Hints

_MAX_SETTINGS = 500
"""At most this many settings are read; the API allows 100 hyperparameters and 100 variables."""
_MAX_CHARACTERS = 10_000
_MAX_TEXT_LENGTH = 1000
_MAX_SHORT_TEXT = 200
_MAX_DEPTH = 5
_MAX_DECODINGS = 3
_LAUNCHERS = frozenset({"torchrun", "mpirun", "horovodrun", "deepspeed", "accelerate"})
_OFF_VALUES = frozenset(
    {"", "0", "0.0", "-1", "false", "no", "none", "off", "null", "auto", "disabled", "never",
     "fp32", "float32", "o0"}
)  # fmt: skip
_WORD = re.compile(r"[a-z0-9]+")

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
_TEXT_ONLY_LIBRARIES = frozenset({"accelerate"})
"""Libraries that show distributed training only if the text of a setting names them. In the name of
a setting, they may also be used by single processes."""
DISTRIBUTIONS = ("smddp", "smp", "horovod", "deepspeed", "fsdp", "ddp", "mirrored", "xla",
                 "accelerate", "parameter_server", "mpi")  # fmt: skip
"""The kinds of distributed training, the most specific first, because MPI or torchrun may also
launch Horovod, SMP and DeepSpeed."""
_REVERSING_WORDS = frozenset(
    {"no", "disable", "without", "eval", "backend", "level", "loss", "scale"}
)
"""A setting whose name has one of these words shows no feature. The word reverses the name's
meaning, or makes it a detail of another setting."""
_HALF_PRECISION_NAMES = frozenset({"fp16", "bf16", "fp8", "float16", "bfloat16", "amp", "apex"})
_HALF_WORDS = frozenset({"fp16", "bf16", "float16", "bfloat16"})
_HALF_PRECISION = re.compile(
    r"(?<![\w.])(?:torch\.)?(?:b?float|b?fp?)?16(?![0-9])|half|mixed|\bamp\b|fp8"
)
_FLASH = re.compile(r"flash[_-]?att(?:n|ention)")
_CHECKPOINTS = frozenset({"checkpoint", "checkpoints", "ckpt", "ckpts", "snapshot", "resume"})
_NOT_CHECKPOINT_WORDS = frozenset(
    {"gradient", "activation", "grad", "pretrained", "init", "initial", "base", "no", "disable"}
    | {"load", "teacher", "eval", "download"}
)
_MODEL_NAMES = frozenset({"checkpoint", "ckpt", "model_checkpoint", "model_ckpt"})
"""Names of settings whose value may be a published model, or a folder of the user."""
_SAVE_SETTINGS = re.compile(
    r"save_(?:steps|strategy|interval|total_limit|epochs?|every\w*|freq\w*)\Z"
)
_CHECKPOINT_PLACE = re.compile(r"/opt/ml/checkpoints|s3://\S{0,200}(?:checkpoint|ckpt)")
_OUTPUT_PLACES = frozenset({"output_dir", "save_dir", "default_root_dir", "output_s3_uri"})
"""Settings that say where Transformers, Lightning and AWS's example scripts write. SageMaker does
not know of such an output in S3."""
_NOT_LOADER_WORDS = frozenset({"preprocessing", "ray", "ps", "env", "rollout", "mirrored"})
_PRETRAINED = frozenset({"pretrained", "finetune", "finetuning", "lora", "qlora", "peft"})
_PRETRAINED_NAMES = frozenset(
    {"model_name_or_path", "model_id", "hf_model_id", "base_model", "base_model_name", "init_model"}
    | {"init_checkpoint", "warm_start_model", "from_pretrained"}
)
"""Names of settings whose value is a trained model: Hugging Face's scripts, JumpStart, BERT's first
scripts."""
_TRAINING_COMPILER = "sagemaker_training_compiler_enabled"
_DECAY_WORDS = frozenset({"decay", "annealing", "schedule", "scheduler"})
_NOT_A_RATE = frozenset({"noise", "beta", "eval", "save", "logging", "batch"})
_SCHEDULES = {
    "cosine": re.compile(r"cos(?:ine|_|\b)"),
    "linear": re.compile(r"linear|warmup_?decay"),
}
"""Learning-rate schedules with which training improves late."""


class UserSetting(Struct, frozen=True):
    """One setting of the user's code, such as `fp16` with the text `true`.

    A nested name is joined with dots.
    """

    name: str
    text: str

    @property
    def is_enabled(self) -> bool:
        """Whether the text switches the setting on. "auto" counts as off."""
        return self.text not in _OFF_VALUES

    @property
    def last_name_part(self) -> str:
        """The part of a nested name after the last dot."""
        return self.name.rpartition(".")[2]

    @property
    def words(self) -> frozenset[str]:
        """The words of the setting's name."""
        return frozenset(_WORD.findall(self.name))

    @property
    def text_words(self) -> frozenset[str]:
        """The words of a short text. Empty for a long text, or an address."""
        is_long = len(self.text) > _MAX_SHORT_TEXT or "://" in self.text
        return frozenset() if is_long else frozenset(_WORD.findall(self.text))


def user_settings(
    hyperparameters: Mapping[str, Any], environment: Mapping[str, Any], command: Iterable[Any]
) -> Iterator[UserSetting]:
    """Yields the first 500 settings of a job.

    `command` has lists of words. Anything else in it is ignored.
    """
    pairs = chain(hyperparameters.items(), environment.items())
    flat = chain.from_iterable(_flatten(name, value, _MAX_DEPTH) for name, value in pairs)
    parts = [part for words in command if isinstance(words, list) for part in words]
    text = " ".join(part for part in parts if isinstance(part, str))
    return islice(chain(flat, _options(text[:_MAX_CHARACTERS].split())), _MAX_SETTINGS)


def _flatten(name: str, value: Any, remaining_depth: int) -> Iterator[UserSetting]:
    value = _decode(value)
    if isinstance(value, Mapping):
        for key, item in value.items() if remaining_depth else ():
            yield from _flatten(f"{name}.{key}", item, remaining_depth - 1)
    elif isinstance(value, list):
        for item in value if remaining_depth else ():
            yield from _flatten(name, item, remaining_depth - 1)
    else:
        yield _setting(name, "" if value is None else str(value))


def _decode(value: Any) -> Any:
    for _ in range(_MAX_DECODINGS):
        if not isinstance(value, str) or not value.startswith(('"', "{", "[")):
            break
        if len(value) > _MAX_CHARACTERS:
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def _options(words: list[str]) -> Iterator[UserSetting]:
    """Yields the launcher and options such as `--num-workers 4` and `trainer.precision=16`."""
    for position, word in enumerate(words):
        name, assigned, value = word.partition("=")
        following = words[position + 1] if position + 1 < len(words) else "-"
        if assigned:
            yield _setting(name, value)
        elif word.startswith("--"):
            yield _setting(name, "true" if following.startswith("-") else following)
        elif word.rpartition("/")[2] in _LAUNCHERS:
            yield _setting("launcher", word.rpartition("/")[2])


def _setting(name: str, text: str) -> UserSetting:
    plain = text[:_MAX_TEXT_LENGTH].strip().strip("'\"").lower()
    return UserSetting(name[:_MAX_SHORT_TEXT].lstrip("-_").replace("-", "_").lower(), plain)


def from_answer(answer: Mapping[str, Any]) -> Hints:
    """Returns the hints of AWS's own Describe answer.

    Raises MalformedData if a field has the wrong type.
    """
    software = fields.section(answer, "AlgorithmSpecification")
    software = software or fields.section(answer, "AppSpecification")
    image = fields.text(software, "TrainingImage") or fields.text(software, "ImageUri")
    hyperparameters = fields.section(answer, "HyperParameters")
    environment = fields.section(answer, "Environment")
    command = [software.get("ContainerEntrypoint"), software.get("ContainerArguments")]
    settings = tuple(user_settings(hyperparameters, environment, command))
    distribution = _distribution(settings)
    workers = [count for count in map(_loader_workers, settings) if count is not None]
    name = (repository(image) or "").rpartition("/")[2]
    return Hints(
        deep_learning=_DEEP_LEARNING.fullmatch(name) is not None,
        mixed_precision=any(map(_is_half_precision, settings)),
        fp8=any(map(_is_fp8, settings)),
        flash_attention=any(map(_is_flash, settings)),
        own_checkpoints=any(map(_has_checkpoints, settings)),
        distributed_sampler=distribution not in {None, "parameter_server"}
        or any(map(_has_sampler, settings)),
        distribution=distribution,
        loader_workers=max(workers, default=None),
        schedule=next(filter(None, map(_learning_rate_schedule, settings)), None),
        pretrained=any(map(_is_pretrained, settings)),
        training_compiler=any(
            item.name == _TRAINING_COMPILER and item.is_enabled for item in settings
        ),
    )


def to_stored(hints: Hints) -> dict[str, Any]:
    """Returns the hints in their stored form, which leaves out default values."""
    plain = asdict(Hints())
    return {name: value for name, value in asdict(hints).items() if value != plain[name]}


def from_stored(section: Mapping[str, Any]) -> Hints:
    """Returns the hints from their stored form.

    Raises MalformedData if a field has the wrong type.
    """
    distribution, schedule = fields.text(section, "distribution"), fields.text(section, "schedule")
    flags = [name for name, plain in asdict(Hints()).items() if plain is False]
    return Hints(
        **{name: fields.flag(section, name) for name in flags},
        distribution=distribution if distribution in DISTRIBUTIONS else None,
        loader_workers=fields.count(section, "loader_workers", maximum=_MOST_WORKERS),
        schedule=schedule if schedule in _SCHEDULES else None,
    )


def _distribution(settings: tuple[UserSetting, ...]) -> str | None:
    names = set()
    for setting in settings:
        if not setting.is_enabled:
            continue
        names.add(_SWITCHES.get(setting.name.partition(".")[0]))
        if not setting.name.startswith("sagemaker_"):
            words = (
                frozenset()
                if setting.words & _REVERSING_WORDS
                else setting.words - _TEXT_ONLY_LIBRARIES
            )
            signs = (words | setting.text_words) & _LIBRARIES.keys()
            names |= {_LIBRARIES[word] for word in signs}
        if "strategy" in setting.words and "mirrored" in setting.text_words:
            names.add("mirrored")
    return next((name for name in DISTRIBUTIONS if name in names), None)


def _is_half_precision(setting: UserSetting) -> bool:
    """Returns whether a setting selects 16-bit numbers.

    A configuration file of DeepSpeed or Accelerate counts, since it usually sets 16 bits.
    """
    if (
        not setting.is_enabled
        or setting.words & _REVERSING_WORDS
        or setting.name.startswith("sagemaker_")
    ):
        return False
    is_named = setting.words & _HALF_PRECISION_NAMES or setting.words >= {"mixed", "precision"}
    if is_named or setting.text_words & _HALF_WORDS:
        return True
    if setting.words & {"precision", "dtype"}:
        return _HALF_PRECISION.search(setting.text) is not None
    is_file = setting.text.endswith((".json", ".yaml", ".yml"))
    return is_file and bool(setting.words & {"deepspeed", "accelerate"})


def _is_fp8(setting: UserSetting) -> bool:
    is_fp8 = "fp8" in setting.words | setting.text_words
    return setting.is_enabled and is_fp8 and not setting.words & _REVERSING_WORDS


def _is_flash(setting: UserSetting) -> bool:
    if not setting.is_enabled or setting.words & _REVERSING_WORDS:
        return False
    return _FLASH.search(setting.name) is not None or _FLASH.search(setting.text) is not None


def _is_pretrained(setting: UserSetting) -> bool:
    if (
        not setting.is_enabled
        or setting.words & _REVERSING_WORDS
        or setting.name.startswith("sagemaker_")
    ):
        return False
    if setting.last_name_part in _PRETRAINED_NAMES or setting.words >= {"fine", "tune"}:
        return True
    return bool(setting.words & _PRETRAINED)


def _has_checkpoints(setting: UserSetting) -> bool:
    if not setting.is_enabled or setting.words & _NOT_CHECKPOINT_WORDS:
        return False
    if _CHECKPOINT_PLACE.search(setting.text) or _SAVE_SETTINGS.search(setting.name):
        return True
    if setting.last_name_part in _OUTPUT_PLACES and setting.text.startswith("s3://"):
        return True
    if setting.last_name_part in _MODEL_NAMES:
        return setting.text == "true" or setting.text.startswith("/")
    return bool(setting.words & _CHECKPOINTS)


def _has_sampler(setting: UserSetting) -> bool:
    has_word = "sampler" in setting.words | setting.text_words
    return setting.is_enabled and (has_word or "distributedsampler" in setting.text)


def _loader_workers(setting: UserSetting) -> int | None:
    is_loader_setting = (
        setting.last_name_part.endswith(("workers", "num_worker"))
        and not setting.words & _NOT_LOADER_WORDS
    )
    if not is_loader_setting or not re.fullmatch(r"[0-9]{1,4}", setting.text):
        return None
    count = int(setting.text)
    return count if count <= _MOST_WORKERS else None


def _learning_rate_schedule(setting: UserSetting) -> str | None:
    if not setting.is_enabled or setting.words & _NOT_A_RATE:
        return None
    is_rate = bool(setting.words & {"lr", "learning"})
    if "cosine" in setting.words and (is_rate or setting.words & _DECAY_WORDS):
        return "cosine"
    words = setting.words & {"scheduler", "schedule", "sched"}
    if not words and not (is_rate and setting.words & {"policy", "mode", "style", "decay"}):
        return None
    return next((name for name, word in _SCHEDULES.items() if word.search(setting.text)), None)
