"""The Python versions and processors of Lambda on which the functions can run."""

from __future__ import annotations

import sys
from functools import cache

from botocore.loaders import Loader

PINNED_PYTHON = "3.13"
"""The Python of the committed template, of releases and of the benchmarks. So they do not depend on
the Python of this machine."""
_OLDEST = (3, 11)
"""The oldest Python that the code supports."""
PLATFORM_BY_ARCHITECTURE = {"arm64": "manylinux2014_aarch64", "x86_64": "manylinux2014_x86_64"}
"""The platform of the wheels for each architecture of Lambda, as pip names it."""


@cache
def lambda_pythons() -> tuple[str, ...]:
    """Returns the Python versions that Lambda has and the code supports, such as 3.13, oldest
    first.

    They are those of Lambda's model in the pinned botocore.
    """
    runtimes = Loader().load_service_model("lambda", "service-2")["shapes"]["Runtime"]["enum"]
    versions = (name.removeprefix("python") for name in runtimes if name.startswith("python"))
    parts = sorted(tuple(map(int, version.split("."))) for version in versions)
    return tuple(".".join(map(str, part)) for part in parts if part >= _OLDEST)


def running_python() -> str:
    """Returns the minor version of this process's Python, such as 3.13."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"
