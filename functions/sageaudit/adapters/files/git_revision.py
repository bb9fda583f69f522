"""Reads earlier versions of files from git."""

from __future__ import annotations

import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from sageaudit.errors import BadUsage


class GitRevision:
    """The files at a revision, or where the current branch left it.

    A file that was renamed in git since then (committed or staged) has its earlier content. That of
    a link is its target's.
    """

    def __init__(self, revision: str) -> None:
        """Raises BadUsage if git is missing, or has no such revision here."""
        git = shutil.which("git")
        if git is None:
            raise BadUsage("--base needs git, which is not installed")
        self._git = git
        self.name = revision
        top = self._run("rev-parse", "--show-toplevel")
        if top.returncode:
            raise BadUsage("--base: this folder is not in a git repository")
        self._top = Path(top.stdout.decode(errors="surrogateescape").strip())
        verified = self._run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )
        if verified.returncode:
            raise BadUsage(f"--base: git has no revision {revision} here: fetch it first")
        commit = verified.stdout.decode().strip()
        fork_point = self._run("merge-base", commit, "HEAD")  # fails in a shallow clone
        self._commit = fork_point.stdout.decode().strip() or commit

    def content(self, path: str) -> bytes | None:
        """Returns the earlier content of a file; None if the revision has no such file."""
        name = self._name_in_repository(path)
        for candidate in (name, self._old_names.get(name or "")):
            if candidate:
                shown = self._run("cat-file", "blob", f"{self._commit}:{candidate}")
                if not shown.returncode:
                    return shown.stdout
        return None

    def _name_in_repository(self, path: str) -> str | None:
        file = Path(path)
        place = file.resolve() if file.exists() else file.parent.resolve() / file.name
        top = self._top.resolve()
        return place.relative_to(top).as_posix() if place.is_relative_to(top) else None

    @cached_property
    def _old_names(self) -> dict[str, str]:
        """The earlier name of each renamed file, by its name now."""
        found = self._run(
            *("diff", "--no-relative", "--name-status", "-z", "--find-renames"),
            *("--diff-filter=R", self._commit),
        )
        words = found.stdout.decode(errors="surrogateescape").split("\0")
        return {words[n + 2]: words[n + 1] for n in range(0, len(words) - 2, 3)}

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # noqa: S603 - git, with arguments that cannot be options
            [self._git, *arguments], capture_output=True, check=False
        )
