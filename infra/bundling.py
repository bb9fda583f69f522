"""Builds the Lambda asset, without Docker.

The asset has our code without the command line, pinned wheels without unused parts, the validated
policy, and the version of the rules. It has byte code for all modules if this machine has the
Python of the functions. CDK gets a finished folder, so the functions share one asset. The wheels
and the asset are cached under build/ by the hash of their inputs, so an unchanged project is not
built twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from infra import byte_code, file_tree, left_out
from infra.runtimes import PLATFORM_BY_ARCHITECTURE
from sageaudit.adapters.files import policy_file, stored_policy
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadPolicy
from sageaudit.rules import version

ROOT = Path(__file__).parent.parent
FUNCTIONS = ROOT / "functions"
REQUIREMENTS = FUNCTIONS / "requirements.txt"
BUILD_FOLDER = ROOT / "build"
_BUILDERS = tuple(
    Path(path) for path in (__file__, byte_code.__file__, file_tree.__file__, left_out.__file__)
)
NOT_ON_LAMBDA = (
    "__main__.py",
    "api",
    "cli",
    "output/terminal",
    "output/text/check_text.py",
    "output/text/guard_text.py",
    "adapters/aws/client_events.py",
    "adapters/billing",
    "adapters/files/lambda_asset.py",
    "adapters/history/sqlite",
    "workflows/recordings",
    "workflows/check_files.py",
    "workflows/check_write.py",
    "workflows/preview.py",
    "workflows/live.py",
    "workflows/scan",
    "workflows/example",
    "workflows/redrive.py",
    "workflows/backfill.py",
    "workflows/pack.py",
    "workflows/doctor",
)
"""The parts of the package that no handler imports: the command line, and modules that only the
command line uses."""


_SUFFIXES = frozenset({".py", ".json", ".css", ".js"})
"""Suffixes of files that are code or package data."""
POLICY = ROOT / "policy.toml"


def load_policy(path: Path) -> Policy:
    """Loads the policy to deploy. An invalid policy stops the deployment, not later a function."""
    try:
        return policy_file.load_policy(path)
    except BadPolicy as error:
        raise SystemExit(str(error)) from error


@dataclass(frozen=True, slots=True)
class Target:
    """The platform and Python of the wheels; None for both means this machine's."""

    name: str
    platform: str | None
    python: str | None

    def pip_options(self) -> tuple[str, ...]:
        """Returns the options with which pip downloads wheels for this target."""
        if self.platform is None or self.python is None:
            return ()
        return (
            *("--platform", self.platform),
            *("--python-version", self.python),
            *("--implementation", "cp"),
        )

    def interpreter(self) -> byte_code.Interpreter | None:
        """Returns the interpreter that compiles for the target; None for this machine, or if none
        is found.
        """
        return byte_code.find_interpreter(self.python) if self.python is not None else None


@dataclass(frozen=True, slots=True)
class Asset:
    """A finished asset folder. `tree_hash`: the hash of paths, modes and contents, including byte
    code.

    `compiled_by`: the version of the Python that wrote the byte code; None without byte code.
    """

    folder: Path
    tree_hash: str
    compiled_by: str | None


THIS_MACHINE = Target("this-machine", platform=None, python=None)


def lambda_target(python: str, architecture: str) -> Target:
    """Returns the target of functions on a Python such as 3.13, and on `arm64` or `x86_64`."""
    # Without a dot: CDK would take what follows it for a suffix of the asset's name.
    name = f"lambda-python{python.replace('.', '')}-{architecture}"
    return Target(name, platform=PLATFORM_BY_ARCHITECTURE[architecture], python=python)


def build_lambda_asset(policy: Policy, python: str, architecture: str) -> Asset:
    """Builds Lambda's asset; warns on stderr if no interpreter here can compile it."""
    asset = build_asset(lambda_target(python, architecture), policy)
    if asset.compiled_by is None:
        print(f"sageaudit: {byte_code.no_interpreter_warning(python)}.", file=sys.stderr)
    return asset


def build_asset(target: Target, policy: Policy) -> Asset:
    """Builds the folder to deploy, if an input has changed."""
    wheels, interpreter = _wheels(target), target.interpreter()
    our_files = sorted(source_files())
    generated_files = {
        stored_policy.FILE_NAME: stored_policy.to_text(policy),
        f"sageaudit/{version.BUILT_VERSION_FILE}": version.version_file_text(
            FUNCTIONS / "sageaudit"
        ),
    }
    compiled_by = interpreter.version if interpreter else None
    digest = _digest(
        wheels.name, *our_files, *generated_files.values(), f"compiled by {compiled_by}", *_BUILDERS
    )

    def build(folder: Path) -> None:
        _assemble(folder, wheels, our_files, generated_files)
        if interpreter is not None:
            byte_code.compile_folder(folder, interpreter)
        file_tree.set_modes(folder)

    asset_folder = _build_once(f"asset-{target.name}", digest, build)
    file_tree.set_modes(asset_folder)  # a cached folder may have been copied with another umask
    return Asset(asset_folder, file_tree.tree_hash(asset_folder), compiled_by)


def _wheels(target: Target) -> Path:
    options = target.pip_options()
    digest = _digest(*options, sys.version, REQUIREMENTS, *left_out.called_services(), *_BUILDERS)

    def build(folder: Path) -> None:
        _install(folder, options)
        left_out.prune(folder)

    return _build_once(f"wheels-{target.name}", digest, build)


def _install(folder: Path, options: tuple[str, ...]) -> None:
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--quiet"),
        *("--disable-pip-version-check", "--no-compile", "--no-deps", "--require-hashes"),
        *("--only-binary", ":all:", *options),
        *("--target", str(folder), "--requirement", str(REQUIREMENTS)),
    ]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(
            "sageaudit: pip could not install the functions' packages; its output is above. If a"
            " package has no wheel for this Python yet, set runtime in cdk.json to an older one."
        )
    shutil.rmtree(folder / "bin", ignore_errors=True)


def source_files() -> Iterator[Path]:
    """Yields our files that a handler may import, or read as package data."""
    excluded = [FUNCTIONS / "sageaudit" / part for part in NOT_ON_LAMBDA]
    for path in FUNCTIONS.rglob("*"):
        is_needed = not any(path.is_relative_to(part) for part in excluded)
        if is_needed and path.is_file() and path.suffix in _SUFFIXES:
            yield path


def _assemble(
    folder: Path, wheels: Path, code: list[Path], generated_files: Mapping[str, str]
) -> None:
    shutil.copytree(wheels, folder)
    for path in code:
        copy = folder / path.relative_to(FUNCTIONS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for name, text in generated_files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _build_once(kind: str, digest: str, build: Callable[[Path], None]) -> Path:
    """Builds build/KIND-DIGEST if the folder is missing; deletes the folders of older digests."""
    folder = BUILD_FOLDER / f"{kind}-{digest}"
    if folder.exists():
        return folder
    BUILD_FOLDER.mkdir(exist_ok=True)
    old_folders = list(BUILD_FOLDER.glob(f"{kind}-*"))
    with tempfile.TemporaryDirectory(dir=BUILD_FOLDER) as temporary:
        new_folder = Path(temporary, "new")
        build(new_folder)
        with contextlib.suppress(OSError):  # another process was faster: its folder is the same
            new_folder.rename(folder)
    for path in old_folders:
        shutil.rmtree(path, ignore_errors=True)
    return folder


def _digest(*parts: str | Path) -> str:
    """Returns a hash of texts, and of files with their paths."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            digest.update(f"{part.relative_to(ROOT)}\0".encode())
            digest.update(hashlib.sha256(part.read_bytes()).digest())
        else:
            digest.update(f"{part}\0".encode())
    return digest.hexdigest()[:16]
