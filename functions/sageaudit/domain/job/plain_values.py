"""Values that every job may have, and values that may be secrets."""

from __future__ import annotations

import re

LONG = 8
"""Characters from which on a value is no ordinary word."""
_NUMBER = re.compile(
    r"[+-]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[%fLsmhdMGTKiB]{0,3}\Z"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]{4,15}(?:Z|[+-][0-9:]{2,5})?)?\Z"
)
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


def is_plain(value: str) -> bool:
    """A number, a date, a switch, or a word or folder that every job may name."""
    text = value.strip()
    return (
        not text
        or _NUMBER.match(text) is not None
        or text.lower() in _WORDS
        or _FOLDERS.match(text) is not None
    )


def looks_secret(value: str) -> bool:
    """Long, or letters mixed with digits or signs: hidden wherever it stands."""
    text = value.strip()
    mixed = any(map(str.isalpha, text)) and any(
        not char.isalpha() and not char.isspace() for char in text
    )
    return len(text) >= LONG or (mixed and len(text) > 1)
