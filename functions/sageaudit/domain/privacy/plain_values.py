"""Values that every job may have, and values that may be secrets."""

from __future__ import annotations

import re

from sageaudit.domain.privacy.ordinary_words import is_debugger_rule

LONG = 8
"""Characters from which on a value is no ordinary word."""
_NUMBER = re.compile(
    r"[+-]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[%fLsmhdMGTKiB]{0,3}\Z"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]{4,15}(?:Z|[+-][0-9:]{2,5})?)?\Z"
)
_NUMBER_SIGNS = re.compile(r"\s?[,;/x]\s?")
"""Between several numbers: 0.9,0.999 or [64, 128] or 224x224; blanks alone part cards' digits."""
_VERSION = re.compile(
    r"v?[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?:[._+-]?(?:a|b|rc|dev|post|cu|py|cpu|gpu)[0-9]{0,4}){0,3}\Z"
)
_INSTANCE = re.compile(
    r"(?:ml\.)?[a-z]{1,4}[0-9][a-z]{0,5}(?:-[a-z0-9]{1,6})?"
    r"\.(?:nano|micro|small|medium|[0-9]{0,3}xlarge|large|metal)\Z"
)
_REGION = re.compile(
    r"(?:af|ap|ca|cn|eu|il|me|mx|sa|us)(?:-(?:gov|iso[a-f]?))?"
    r"-(?:north|south|central)?(?:east|west|north|south|central)?-[0-9][a-f]?\Z"
)
_PIECE = r"[a-z]{2,20}(?:_[a-z]{1,20}){0,6}[0-9]{0,2}"
_MODULE = re.compile(
    rf"{_PIECE}(?:\.{_PIECE}){{1,7}}(?:\.[A-Z][a-z]{{2,20}}[A-Za-z]{{0,40}})?(?::[a-z_]{{2,40}})?\Z"
)
"""Package and module in small letters, with a class or a function: src.train:main."""
_WORDS = frozenset(
    {
        "-inf", "127.0.0.1", "adam8bit", "ascii", "auto", "bf16", "bfloat16", "cuda",
        "cuda:0", "false", "file://", "float16", "float32", "float64", "fp16", "fp32", "fp8",
        "gpu0", "http://", "https://", "inf", "infinity", "int8", "localhost", "md5", "nan", "no",
        "none", "null", "off", "on", "python3", "s3", "s3://", "sha256", "true", "utf-8", "utf8",
        "utf_8", "x86_64", "yes",
    }
)  # fmt: skip
"""Ordinary words that mix letters with digits or signs, or stand for no value."""
_FOLDERS = re.compile(
    r"/opt/ml(?:/(?:code|src|checkpoints|failure|model|input|output|processing|config|data"
    r"|intermediate|tensors|resourceconfig\.json|hyperparameters\.json|inputdataconfig\.json"
    r"|[a-z]{1,10}))*/?\Z"
)
"""SageMaker's own folders in a container."""
_NAME_SIGNS = re.compile(r"[\s._@/:+=-]+")
_NAME_NUMBER = re.compile(r"v?[0-9]{1,12}\Z")


def is_plain(value: str) -> bool:
    """A number, a date, a switch, a version, an instance type, a region, or a word or folder that
    every job may name.
    """
    text = value.strip()
    shapes = (_VERSION, _INSTANCE, _REGION, _FOLDERS)
    return (
        not text
        or text.lower() in _WORDS
        or is_debugger_rule(text)
        or all(map(_NUMBER.match, _NUMBER_SIGNS.split(text.strip("[]()"))))
        or any(shape.match(text) for shape in shapes)
    )


def is_module(value: str) -> bool:
    """The shape of a Python module. A password may have it too, so its key must not tell of one."""
    return _MODULE.match(value.strip()) is not None


def is_name(value: str) -> bool:
    """Letters and whole numbers with the signs of names: a team, a person's address, an id."""
    pieces = _NAME_SIGNS.split(value.strip())
    return all(piece.isalpha() or _NAME_NUMBER.match(piece) for piece in pieces if piece)


def looks_secret(value: str) -> bool:
    """Long, or letters mixed with digits or signs: hidden wherever it stands."""
    text = value.strip()
    mixed = any(map(str.isalpha, text)) and any(
        not char.isalpha() and not char.isspace() for char in text
    )
    return len(text) >= LONG or (mixed and len(text) > 1)
