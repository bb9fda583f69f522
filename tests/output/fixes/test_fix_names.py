"""The table of names against the API's own model and the paths that rules give."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import botocore.session
import pytest

from sageaudit import rules
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.fixes.names import ELEMENT_NAMES, NAMES
from sageaudit.output.fixes.ways import mapped_parameter, way
from sageaudit.rules import catalogue
from sageaudit.rules.card import RequestCase

REQUESTS: dict[JobKind, str] = {
    JobKind.TRAINING: "CreateTrainingJob",
    JobKind.PROCESSING: "CreateProcessingJob",
    JobKind.TRANSFORM: "CreateTransformJob",
    JobKind.TUNING: "CreateHyperParameterTuningJob",
}


@pytest.fixture(scope="module")
def service() -> Any:
    """boto3's model of SageMaker."""
    return botocore.session.get_session().get_service_model("sagemaker")


@pytest.mark.parametrize("kind", REQUESTS)
def test_every_path_is_one_of_the_request(service: Any, kind: JobKind) -> None:
    """And the elements of its lists are told apart by a member that they have."""
    for path in NAMES[kind]:
        shape = service.operation_model(REQUESTS[kind]).input_shape
        for part in path.split("."):
            name = part.removesuffix("[*]")
            if shape.type_name == "map":
                shape = shape.value
                continue
            assert name in shape.members, path
            shape = shape.members[name]
            if part != name:
                shape = shape.member
                assert ELEMENT_NAMES[name] in shape.members, path


@pytest.mark.parametrize("kind", REQUESTS)
def test_every_way_is_written_as_ways_are(kind: JobKind) -> None:
    """A slip in the table fails here, not in somebody's terminal."""
    for names in NAMES[kind].values():
        for text in (names.v3, names.v2, names.terraform):
            assert text is None or way(text, ["x", "y", "z"])
    with pytest.raises(ValueError, match="is not a way"):
        way("ModelTrainer > compute: Compute", [])


MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}.")
    if not module.ispkg
]
OF_REQUESTS = {rule.check.__module__ for rule in catalogue.load() if rule.scope is RequestCase}
"""Rules of requests: `check` shows their fixes as the request has them, in no dialect."""
MODULES = [module for module in MODULES if module.__name__ not in OF_REQUESTS]
"""Rules and what they share."""


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_path_that_a_rule_gives_is_in_the_table(module: ModuleType) -> None:
    """So that each dialect writes it, or says that it has no argument."""
    for path in paths_of(module):
        assert any(mapped_parameter(kind, path) for kind in REQUESTS), path


def paths_of(module: ModuleType) -> Iterator[str]:
    """The paths of a module's parameters, as far as its source names them.

    A name that only the run knows stands as `x`, inside brackets or at the end of a map.
    """
    tree = ast.parse(inspect.getsource(module))
    reader = Reader(module, dict(_assigned(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Parameter", "api.Parameter"}:
            yield from reader.texts(node.args[0])


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            yield from ((ast.unparse(name), said) for name, said in pairs)


@dataclass(frozen=True)
class Reader:
    """What expressions of a module's source stand for, where that is a text."""

    module: ModuleType
    assigned: Mapping[str, ast.expr]

    def texts(self, node: ast.expr) -> list[str]:
        """Empty where only the run knows."""
        if isinstance(node, ast.Constant):
            return [str(node.value)]
        if isinstance(node, ast.Name):
            value = getattr(self.module, node.id, self.assigned.get(node.id))
            return self.texts(value) if isinstance(value, ast.expr) else _text(value)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return _text(getattr(getattr(self.module, node.value.id, None), node.attr, None))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            template = self.texts(node.func.value) if node.func.attr == "format" else []
            return [text.format("x") for text in template]
        if isinstance(node, ast.Subscript):
            return _text(getattr(self.module, ast.unparse(node.value), None))
        if isinstance(node, ast.JoinedStr):
            whole = "".join(self.part(part) for part in node.values)
            return [] if ".x" in whole.replace("HyperParameters.x", "") else [whole]
        return []

    def part(self, part: ast.expr) -> str:
        """A part of a formatted text."""
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        return next(iter(self.texts(inner)), "x")


def _text(value: object) -> list[str]:
    values = value.values() if isinstance(value, dict) else [value]
    return [text for text in values if isinstance(text, str)]


def test_the_paths_of_rules_are_found() -> None:
    """The reading above reads: constants, tables by kind, and names in brackets."""
    found = {path for module in MODULES for path in paths_of(module)}
    assert found >= {
        "EnableManagedSpotTraining",
        "TransformResources.InstanceType",
        "InputDataConfig[x].InputMode",
        "ProcessingOutputConfig.Outputs[x].S3Output.S3UploadMode",
        "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType",
        "HyperParameterTuningJobConfig.Strategy",
    }
