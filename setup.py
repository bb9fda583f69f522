"""Writes the version of the rules into a built package; all else is in pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "functions"))

from sageaudit.rules import version


class BuildWithVersion(build_py):
    """An editable install is a source checkout: it has no such file."""

    def run(self) -> None:
        """Copies the package, then adds the file."""
        super().run()
        if not self.editable_mode:
            package = Path(self.build_lib, "sageaudit")
            built = package / version.BUILT_VERSION_FILE
            built.write_text(version.version_file_text(package), encoding="utf-8")


setup(cmdclass={"build_py": BuildWithVersion})
