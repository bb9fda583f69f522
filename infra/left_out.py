"""Parts of the wheels that no handler reads, which the asset goes without.

Most of botocore is models of services. Those stay that our adapters call, by the permissions beside
the calls. Nothing that stays is changed; licences and notices stay. A notice at the root of the
asset says what was done, as Apache-2.0 asks.
"""

from __future__ import annotations

import pkgutil
import shutil
from importlib import import_module
from pathlib import Path

from sageaudit import adapters

NOTICE_FILE = "NOTICE-OF-CHANGES.txt"
_MODELS = "botocore/data"
_PRUNED_PATHS = (
    f"{_MODELS}/*/*/examples-1.json",
    "boto3/data",
    "boto3/examples",
    "*.dist-info/RECORD",
)
"""Examples; boto3's resources, as we use clients; lists of files that are no longer true."""
_TEXT = """\
Of the wheels in this folder, these parts were left out; no file that is here was changed.

botocore: the models of all services but {services}, and all examples
boto3: the models of its resources, and its examples
each *.dist-info: the file RECORD

The name, the version and the licence of each wheel stand in its *.dist-info folder.
"""


def called_actions() -> frozenset[str]:
    """Returns the IAM actions of all that the Lambda functions call, as listed beside the calls."""
    modules = pkgutil.walk_packages(adapters.__path__, f"{adapters.__name__}.")
    lists = (getattr(import_module(module.name), "PERMISSIONS", ()) for module in modules)
    return frozenset().union(*lists)


def called_services() -> list[str]:
    """Returns the services that are called: IAM's names for them are botocore's."""
    return sorted({action.partition(":")[0] for action in called_actions()})


def prune(folder: Path) -> None:
    """Deletes the unused parts from a folder of wheels, and writes a notice about them."""
    services = called_services()
    for models in list((folder / _MODELS).glob("*/")):
        if models.is_dir() and models.name not in services:
            shutil.rmtree(models)
    for path in [path for pattern in _PRUNED_PATHS for path in folder.glob(pattern)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    (folder / NOTICE_FILE).write_text(_TEXT.format(services=", ".join(services)), encoding="utf-8")
