"""The Lambda asset: what is in it, for which machine, and that it runs with nothing beside it."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape
from botocore.regions import EndpointResolver

from infra import bundling, byte_code, left_out
from infra.bundling import (
    FUNCTIONS,
    NOT_ON_LAMBDA,
    REQUIREMENTS,
    THIS_MACHINE,
    Target,
    build_asset,
    lambda_target,
)
from infra.runtimes import PLATFORM_BY_ARCHITECTURE, running_python
from sageaudit.adapters.files import policy_file, stored_policy
from sageaudit.rules import catalogue, version
from tools.bench.samples import starts

POLICY = policy_file.load_policy(FUNCTIONS.parent / "policy.toml")
HANDLERS = ("audit", "notify", "deliver", "sweep", "watch", "digest")
PYTHON = running_python()
TAG = f"cp{PYTHON.replace('.', '')}"
RUNS_ON_LAMBDA = re.compile(rf"(py2\.py3|py3|{TAG})-(none|abi3|{TAG})-(any|manylinux\w*_aarch64)")
TARGET = lambda_target(PYTHON, "arm64")

EMPTY_BATCH = """
import sys
asset, name, *services = sys.argv[1:]
sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry] + [asset]

def refuse(event, args):
    if event in {"socket.connect", "socket.getaddrinfo"}:
        raise SystemExit(f"the handler reached for the network: {event} {args}")

sys.addaudithook(refuse)
from importlib import import_module
from types import SimpleNamespace
module = import_module(f"{name}.handler")
assert module.__file__.startswith(asset), module.__file__
context = SimpleNamespace(
    function_name=name, memory_limit_in_mb=256, aws_request_id="request-1",
    invoked_function_arn=f"arn:aws:lambda:us-east-1:111122223333:function:{name}",
    get_remaining_time_in_millis=lambda: 60_000,
)
if name not in {"sweep", "watch", "digest"}:
    answer = module.handler({"Records": []}, context)
    assert not (answer or {}).get("batchItemFailures"), answer
rules = sorted(module for module in sys.modules if module.startswith("sageaudit.rules"))
assert (name in {"audit", "watch"}) == bool(rules), rules
pages = sorted(module for module in sys.modules if module.startswith("sageaudit.output.html"))
for_few_events = {"difflib", "zoneinfo", "sageaudit.adapters.aws.probes", *pages}
for_no_event = {"sageaudit.domain.request.validity"}
unneeded = {*for_few_events, *for_no_event} & set(sys.modules)
assert not unneeded, unneeded
import boto3
for service in services:
    boto3.client(service)
"""


@pytest.fixture(scope="module")
def lambda_asset() -> Path:
    """What `make deploy` uploads."""
    return build_asset(TARGET, POLICY).folder


@pytest.fixture(scope="module")
def local_asset() -> Path:
    """The same for this machine's processor and Python."""
    return build_asset(THIS_MACHINE, POLICY).folder


def test_the_wheels_are_the_pinned_ones_of_lambda(lambda_asset: Path) -> None:
    """Every pin with its hash, and nothing that is not pinned.

    Pure, or for arm64 and the Python that synthesizes: a wheel for another machine would fail at
    its first call.
    """
    pinned = re.findall(r"^([\w-]+)==(\S+)", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    installed = {path.name: path / "WHEEL" for path in lambda_asset.glob("*.dist-info")}
    assert set(installed) == {f"{name.replace('-', '_')}-{v}.dist-info" for name, v in pinned}
    for name, wheel in installed.items():
        tags = re.findall(r"^Tag: (.+)$", wheel.read_text(encoding="utf-8"), re.MULTILINE)
        assert any(RUNS_ON_LAMBDA.fullmatch(tag) for tag in tags), name


@pytest.mark.parametrize(("architecture", "machine"), [("arm64", "aarch64"), ("x86_64", "x86_64")])
def test_the_wheels_are_for_the_python_and_architecture_of_the_functions(
    architecture: str, machine: str
) -> None:
    """pip refuses a wheel for another one."""
    options = lambda_target("3.14", architecture).pip_options()
    assert options[1::2] == (f"manylinux2014_{machine}", "3.14", "cp")
    assert set(PLATFORM_BY_ARCHITECTURE) == {"arm64", "x86_64"}


def test_it_holds_what_the_handlers_import_and_no_command_line(lambda_asset: Path) -> None:
    """Handlers at the root, the shared package beside them, in 20 MB; Lambda takes 250 MB.

    The version of the rules is computed at the build, and read at the start.
    """
    package = lambda_asset / "sageaudit"
    assert stored_policy.load(lambda_asset / stored_policy.FILE_NAME) == POLICY
    assert (package / "workflows" / "audit" / "run.py").exists()
    assert list((package / "data").glob("*.json"))
    assert not [folder for folder in NOT_ON_LAMBDA if (package / folder).exists()]
    assert not [*package.rglob("example*")], "the example company"
    assert (package / version.BUILT_VERSION_FILE).is_file()
    assert version.read_version(package) == catalogue.version()
    size = sum(path.stat().st_size for path in lambda_asset.rglob("*") if path.is_file())
    assert size < 20_000_000


@pytest.fixture(scope="module")
def asset_models(lambda_asset: Path) -> Loader:
    """The models of the asset, without those of this machine."""
    return Loader(
        extra_search_paths=[str(lambda_asset / "botocore" / "data")],
        include_default_search_paths=False,
    )


def test_the_models_have_the_operations_that_adapters_call_and_no_others(
    asset_models: Loader,
) -> None:
    """The others would be parsed at each start."""
    code = [path.read_text(encoding="utf-8") for path in bundling.source_files()]
    called_services = set(
        re.findall(r'(?:client\(\w*(?:\.\w+)?,? ?|client_factory\()"(\w+)"', "".join(code))
    )
    assert (
        called_services
        == set(asset_models.list_available_services("service-2"))
        == set(left_out.called_services())
    )
    for name in called_services:
        model = ServiceModel(asset_models.load_service_model(name, "service-2"), name)
        assert set(model.operation_names) == left_out.called_operations(name), name


@pytest.mark.parametrize("service", left_out.called_services())
def test_a_kept_operation_has_the_parameters_answers_and_errors_of_the_whole_model(
    asset_models: Loader, service: str
) -> None:
    """Down to the members of each shape, and how each is sent."""
    kept, whole = (
        ServiceModel(models.load_service_model(service, "service-2"), service)
        for models in (asset_models, Loader())
    )
    assert kept.metadata == whole.metadata
    for name in left_out.called_operations(service):
        operations = [model.operation_model(name) for model in (kept, whole)]
        assert operations[0].http == operations[1].http
        for part in ("input_shape", "output_shape"):
            assert_same_shape(*(getattr(operation, part) for operation in operations))
        for pair in zip(*(operation.error_shapes for operation in operations), strict=True):
            assert_same_shape(*pair)


def assert_same_shape(kept: Shape | None, whole: Shape | None) -> None:
    """Compares shapes and their parts, each once."""
    pairs, seen = [(kept, whole)], set()
    while pairs:
        ours, theirs = pairs.pop()
        if ours is None or theirs is None:
            assert ours is theirs
            continue
        assert (ours.name, ours.type_name) == (theirs.name, theirs.type_name)
        assert ours.serialization == theirs.serialization
        assert ours.metadata == theirs.metadata
        if ours.name in seen:
            continue
        seen.add(ours.name)
        if ours.type_name == "structure":
            assert ours.members.keys() == theirs.members.keys()
            pairs += [(part, theirs.members[name]) for name, part in ours.members.items()]
        for name in ("member", "key", "value"):
            if hasattr(ours, name):
                pairs.append((getattr(ours, name), getattr(theirs, name)))


@pytest.mark.parametrize("service", left_out.called_services())
def test_a_service_has_the_same_address_and_signature_in_every_region(
    asset_models: Loader, service: str
) -> None:
    """Also in China and GovCloud."""
    kept, whole = (
        EndpointResolver(models.load_data("endpoints")) for models in (asset_models, Loader())
    )
    prefix = asset_models.load_service_model(service, "service-2")["metadata"]["endpointPrefix"]
    for partition in whole.get_available_partitions():
        regions = whole.get_available_endpoints(prefix, partition, allow_non_regional=True)
        assert kept.get_available_endpoints(prefix, partition, allow_non_regional=True) == regions
        for region in regions:
            assert kept.construct_endpoint(prefix, region) == whole.construct_endpoint(
                prefix, region
            )


def test_a_notice_says_what_was_left_out_and_licences_stay(lambda_asset: Path) -> None:
    """Apache-2.0 asks for both; each wheel keeps its name and version beside its licence."""
    notice = (lambda_asset / left_out.NOTICE_FILE).read_text(encoding="utf-8")
    services = ", ".join(left_out.called_services())
    assert f"all services except {services};" in notice
    changed = [
        path
        for path in (lambda_asset / "botocore" / "data").rglob("*.json")
        if "changed by sageaudit" in path.read_text(encoding="utf-8")
    ]
    assert {path.name for path in changed} == {"service-2.json", "endpoints.json"}
    assert len(changed) == 1 + len(left_out.called_services())
    for wheel in lambda_asset.glob("*.dist-info"):
        assert [path for path in wheel.rglob("*") if path.name.startswith("LICENSE")], wheel
        assert (wheel / "METADATA").is_file()
    assert len(list(lambda_asset.glob("boto*.dist-info/NOTICE"))) == 2


def test_every_module_is_compiled(lambda_asset: Path) -> None:
    """The functions run on the Python that synthesizes them: a cold start compiles nothing."""
    tag = sys.implementation.cache_tag
    expected = {
        path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc"
        for path in lambda_asset.rglob("*.py")
    }
    assert set(lambda_asset.rglob("*.pyc")) == expected


def test_no_module_of_powertools_needs_one_that_was_left_out(lambda_asset: Path) -> None:
    """As it is imported. One function imports a removed part: for models of pydantic, which our
    logs and metrics have none of.
    """
    missing = {
        (path.relative_to(lambda_asset).as_posix(), name)
        for path in (lambda_asset / "aws_lambda_powertools").rglob("*.py")
        for name in _imported(path)
        if name.startswith("aws_lambda_powertools.") and not _is_there(lambda_asset, name)
    }
    assert missing == {
        (
            "aws_lambda_powertools/shared/functions.py",
            "aws_lambda_powertools.event_handler.openapi.compat",
        )
    }


def _imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, but for those of type checkers alone."""
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            nodes += node.orelse
            continue
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        nodes += ast.iter_child_nodes(node)


def _is_there(asset: Path, module: str) -> bool:
    path = asset.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


@pytest.fixture
def small_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of builds of its own, in which one file stands for all wheels, and a few for our
    code.
    """
    few_files = [
        path
        for number, path in enumerate(sorted(bundling.source_files()))
        if number % 20 == 0 or path.parent.name == "data"
    ]

    def wheel(folder: Path, _options: tuple[str, ...]) -> None:
        folder.mkdir()
        (folder / "wheel.py").write_text("WHEEL = 1\n", encoding="utf-8")
        models = folder / "botocore" / "data"
        models.mkdir(parents=True)
        (models / "endpoints.json").write_text('{"partitions": []}', encoding="utf-8")

    monkeypatch.setattr(bundling, "BUILD_FOLDER", tmp_path / "build")
    monkeypatch.setattr(bundling, "_install", wheel)
    monkeypatch.setattr(bundling, "source_files", lambda: iter(few_files))
    return tmp_path / "build"


def test_the_umask_changes_neither_modes_nor_hash(small_builds: Path) -> None:
    """Under umask 077 Lambda could read no file, and the hash said that nothing had changed.

    A kept folder gets its modes back: a cache may be unpacked under another umask.
    """
    hashes, modes = set(), set()
    for umask in (0o022, 0o077):
        before = os.umask(umask)
        try:
            asset = build_asset(TARGET, POLICY)
        finally:
            os.umask(before)
        hashes.add(asset.tree_hash)
        for path in asset.folder.rglob("*.py"):
            path.chmod(0o600)
        assert build_asset(TARGET, POLICY) == asset
        modes |= {
            (path.is_dir(), path.stat().st_mode & 0o7777)
            for path in (asset.folder, *asset.folder.rglob("*"))
        }
        shutil.rmtree(small_builds)
    assert len(hashes) == 1
    assert modes == {(True, 0o755), (False, 0o644)}


def test_the_hash_says_whether_the_asset_is_compiled(
    small_builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a machine with the interpreter deploys over one without."""
    here = byte_code.Interpreter(sys.executable, "3.13.0")
    monkeypatch.setattr(Target, "interpreter", lambda _: here)
    compiled = build_asset(TARGET, POLICY)
    monkeypatch.setattr(Target, "interpreter", lambda _: None)
    plain = build_asset(TARGET, POLICY)
    assert (compiled.compiled_by, plain.compiled_by) == ("3.13.0", None)
    assert compiled.tree_hash != plain.tree_hash
    assert not list(plain.folder.rglob("*.pyc"))


@pytest.mark.usefixtures("small_builds")
@pytest.mark.parametrize("found", [True, False])
def test_synth_says_when_the_interpreter_is_missing(
    found: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence: what is missing, what it costs, how to get it."""
    here = byte_code.Interpreter(sys.executable, "3.13.0")
    monkeypatch.setattr(Target, "interpreter", lambda _: here if found else None)
    bundling.build_lambda_asset(POLICY, "3.13", "arm64")
    said = capsys.readouterr().err
    assert ("no Python 3.13 is on this machine's path" in said) is not found
    if not found:
        [line] = said.splitlines()
        assert "0.5 s more CPU time" in line
        assert "uv python install 3.13" in line


@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_runs_with_nothing_beside_its_asset(local_asset: Path, name: str) -> None:
    """A clean interpreter starts it, gives it an empty batch, and makes each service's client; no
    network is touched.

    Only `audit` and `watch` load rules, and none loads what few or none of its events need: the
    pages of reports, data of time zones, suggestions for mistyped names, checks of members and of
    requests. There is no fingerprint key, which `audit` would read from Secrets Manager as it
    starts.
    """
    result = subprocess.run(
        [
            *(sys.executable, "-I", "-S", "-B", "-c", EMPTY_BATCH, str(local_asset), name),
            *left_out.called_services(),
        ],
        env=starts.ENVIRONMENT | {"LAMBDA_TASK_ROOT": str(local_asset)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr


SEND_EACH = """
import sys
asset, *actions = sys.argv[1:]
sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry] + [asset]
import boto3
from botocore import xform_name
from botocore.config import Config

class Sent(Exception):
    pass

def stop(**_):
    raise Sent

PARAMETERS = {
    "s3": {"Bucket": "bucket", "Key": "key", "Body": b"text"},
    "sqs": {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/111122223333/queue"},
}
for region in ("us-east-1", "cn-north-1", "us-gov-west-1"):
    for action in actions:
        service, _, operation = action.partition(":")
        config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
        client = boto3.client(service, region, config=config)
        client.meta.events.register("before-send", stop)
        try:
            getattr(client, xform_name(operation))(**PARAMETERS.get(service, {}))
        except Sent:
            continue
        raise AssertionError(action)
"""


def test_each_called_operation_is_sent_with_the_models_of_the_asset(local_asset: Path) -> None:
    """In all partitions. The SDK reads some parts of a model only when a request is made."""
    actions = [
        f"{service}:{operation}"
        for service in left_out.called_services()
        for operation in sorted(left_out.called_operations(service))
    ]
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", SEND_EACH, str(local_asset), *actions],
        env=starts.ENVIRONMENT | {"LAMBDA_TASK_ROOT": str(local_asset)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
