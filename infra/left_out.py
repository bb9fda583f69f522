"""Removes the parts of wheels that no handler reads from the asset.

Most of botocore is models of services, which a function parses at its start. The asset has only the
operations that our adapters call, according to their lists of permissions, and only the endpoints
of those services. Licences and notices stay. Changed files, and a notice at the root of the asset,
say what was removed, as Apache-2.0 requires.
"""

from __future__ import annotations

import gzip
import json
import pkgutil
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

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
_CHANGE_NOTICE = "changed by sageaudit: parts that its functions do not read were removed"
_OPERATION_BY_ACTION = {"dynamodb:ConditionCheckItem": "TransactWriteItems"}
"""The operation that needs an action, if the action is not an operation."""
_TEXT = """\
These parts of the wheels were removed from this folder. Each file that lacks a part begins with a
notice; no other file was changed.

botocore: the models and endpoints of all services except {services};
    of these, the operations except {operations};
    all examples and descriptions
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


def called_operations(service: str) -> frozenset[str]:
    """Returns the operations of a service that adapters call."""
    names = (
        _OPERATION_BY_ACTION.get(action, action)
        for action in called_actions()
        if action.startswith(f"{service}:")
    )
    return frozenset(name.rpartition(":")[2] for name in names)


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
    operations = _prune_models(folder / _MODELS, services)
    text = _TEXT.format(services=", ".join(services), operations=", ".join(operations))
    (folder / NOTICE_FILE).write_text(text, encoding="utf-8")


def _prune_models(models: Path, services: Sequence[str]) -> list[str]:
    """Shortens the models and the list of endpoints. Returns the remaining operations."""
    endpoint_prefixes, operations = set(), set[str]()
    for service in services:
        for packed in (models / service).glob("*/service-2.json.gz"):
            model = pruned_model(
                json.loads(gzip.decompress(packed.read_bytes())), called_operations(service)
            )
            endpoint_prefixes.add(model["metadata"]["endpointPrefix"])
            operations.update(model["operations"])
            # Unpacked: the asset is packed as a whole, and a start need not unpack it.
            _write(packed.with_suffix(""), model)
            packed.unlink()
    endpoints = models / "endpoints.json"
    _write(endpoints, pruned_endpoints(json.loads(endpoints.read_bytes()), endpoint_prefixes))
    return sorted(operations)


def pruned_model(model: Mapping[str, Any], operation_names: Collection[str]) -> dict[str, Any]:
    """Returns a model of these operations and the shapes that they use, without descriptions."""
    operations = {name: model["operations"][name] for name in sorted(operation_names)}
    shapes: dict[str, Any] = {}
    unread = list(_shape_names(operations))
    while unread:
        name = unread.pop()
        if name not in shapes:
            shapes[name] = model["shapes"][name]
            unread += _shape_names(shapes[name])
    # The SDK requires the descriptions of other parts, such as `clientContextParams`.
    return {
        **model,
        "operations": _without_descriptions(operations),
        "shapes": _without_descriptions(shapes),
    }


def pruned_endpoints(endpoints: Mapping[str, Any], prefixes: Collection[str]) -> dict[str, Any]:
    """Returns the endpoints of the services with these prefixes, in all partitions."""
    partitions = [
        {
            **partition,
            "services": {
                name: service for name, service in partition["services"].items() if name in prefixes
            },
        }
        for partition in endpoints["partitions"]
    ]
    return {**endpoints, "partitions": partitions}


def _shape_names(part: Any) -> Iterator[str]:
    """Yields the names of shapes in a part of a model."""
    if isinstance(part, dict):
        if isinstance(name := part.get("shape"), str):
            yield name
        part = list(part.values())
    if isinstance(part, list):
        for value in part:
            yield from _shape_names(value)


def _without_descriptions(part: Any) -> Any:
    if isinstance(part, dict):
        return {
            key: _without_descriptions(value)
            for key, value in part.items()
            if not (key == "documentation" and isinstance(value, str))
        }
    return [_without_descriptions(value) for value in part] if isinstance(part, list) else part


def _write(path: Path, part: Mapping[str, Any]) -> None:
    text = json.dumps({"notice": _CHANGE_NOTICE, **part}, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
