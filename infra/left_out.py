"""Removes the parts of wheels that no handler reads from the asset.

Most of botocore is models of services. Only the models of services that our adapters call are kept,
according to the adapters' lists of permissions. No remaining file is changed; licences and notices
stay. A notice at the root of the asset says what was removed, as Apache-2.0 requires.
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
    "aws_lambda_powertools/event_handler",
    "aws_lambda_powertools/middleware_factory",
)
"""Patterns of removed paths: examples; boto3's resources, as only clients are used; lists of files
that are no longer correct; parts of Powertools that its Logger and Metrics do not import."""
_UTILITIES = "aws_lambda_powertools/utilities"
_USED_UTILITIES = ("__init__.py", "jmespath_utils")
"""The utilities of Powertools that its Logger imports."""
_TEXT = """\
These parts of the wheels were removed from this folder; no remaining file was changed.

botocore: the models of all services except {services}, and all examples
boto3: the models of its resources, and its examples
aws-lambda-powertools: the folders event_handler and middleware_factory, and all of the folder
    utilities except jmespath_utils
each *.dist-info: the file RECORD

Each wheel's name, version and licence are in its *.dist-info folder.
"""


def called_actions() -> frozenset[str]:
    """Returns the IAM actions of all calls, from the adapters' lists of permissions."""
    modules = pkgutil.walk_packages(adapters.__path__, f"{adapters.__name__}.")
    lists = (getattr(import_module(module.name), "PERMISSIONS", ()) for module in modules)
    return frozenset().union(*lists)


def called_services() -> list[str]:
    """Returns the services that adapters call. IAM's names for them are also botocore's."""
    return sorted({action.partition(":")[0] for action in called_actions()})


def prune(folder: Path) -> None:
    """Deletes the unused parts from a folder of wheels, and writes the notice about them."""
    services = called_services()
    for models in list((folder / _MODELS).glob("*/")):
        if models.is_dir() and models.name not in services:
            shutil.rmtree(models)
    utilities = (folder / _UTILITIES).glob("*")
    unused_utilities = [path for path in utilities if path.name not in _USED_UTILITIES]
    paths = [path for pattern in _PRUNED_PATHS for path in folder.glob(pattern)]
    for path in (*paths, *unused_utilities):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    (folder / NOTICE_FILE).write_text(_TEXT.format(services=", ".join(services)), encoding="utf-8")
