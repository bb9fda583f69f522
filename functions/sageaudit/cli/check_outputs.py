"""The outputs of `sageaudit check`: one for stdout, and any number for files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.files.local_files import write_text
from sageaudit.cli.messages import escape_json, json_line
from sageaudit.cli.views.check import terminal
from sageaudit.cli.views.check.github import github_annotations
from sageaudit.cli.views.check.junit import junit_report
from sageaudit.cli.views.check.markdown import markdown_report
from sageaudit.cli.views.check.sarif import sarif_document
from sageaudit.domain.bill.finding import Severity
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import make_console
from sageaudit.workflows.check.comparison import FileCheck

_TABLE = "table"
_Text = Callable[[Sequence[FileCheck], Severity | None], str]


def _json_lines(file_checks: Sequence[FileCheck], _: Severity | None) -> str:
    return "\n".join(json_line(row) for check in file_checks if (row := check.document()))


_LINES: dict[str, _Text] = {
    "json": _json_lines,
    "github": lambda checks, _: "\n".join(filter(None, map(github_annotations, checks))),
}
"""The formats with lines for each file, which are printed as soon as it is checked."""
_DOCUMENTS: dict[str, _Text] = {
    "markdown": lambda checks, _: markdown_report(checks),
    "sarif": lambda checks, _: escape_json(to_json(sarif_document(checks))),
    "junit": junit_report,
}
"""The formats with one document about all files."""
OUTPUT_FORMATS = (_TABLE, *_LINES, *_DOCUMENTS)
_WITHOUT_GUIDES = {"github", *_DOCUMENTS}


class CheckOutput(Struct, frozen=True):
    """A format, and the file to write; None for stdout."""

    format: str
    path: Path | None = None


class OutputParameter(click.ParamType[CheckOutput]):
    """Takes `FORMAT` or `FORMAT=FILE`."""

    name = "FORMAT[=FILE]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> CheckOutput:
        """Returns the output. A table cannot be written to a file."""
        output_format, has_file, path = str(value).partition("=")
        if output_format not in OUTPUT_FORMATS:
            self.fail(f"{output_format!r} is not one of {', '.join(OUTPUT_FORMATS)}", param, ctx)
        if has_file and (output_format == _TABLE or not path):
            self.fail(f"{value!r}: a table has no file" if path else f"{value!r}: name a file")
        return CheckOutput(output_format, Path(path) if path else None)


class OutputWriter:
    """Prints and writes the results of a run."""

    def __init__(
        self,
        outputs: Sequence[CheckOutput],
        files: Sequence[str],
        fail_on: Severity | None,
        *,
        with_guides: bool,
        no_color: bool,
    ) -> None:
        """Raises BadUsage for outputs that do not go together."""
        outputs = outputs or [CheckOutput(_TABLE)]
        printed_formats = [output.format for output in outputs if output.path is None]
        if len(printed_formats) > 1:
            raise BadUsage("only one --output can be printed: give the others a file, FORMAT=FILE")
        used_paths = set(map(os.path.realpath, files))
        for output in outputs:
            if with_guides and output.format in _WITHOUT_GUIDES:
                raise BadUsage(
                    f"--guides cannot be used with --output {output.format}, which has only"
                    " findings"
                )
            if output.path is not None:
                path = os.path.realpath(output.path)
                if path in used_paths:
                    raise BadUsage(f"{output.path} is used twice: name another file for --output")
                used_paths.add(path)
        self._format_by_path = {row.path: row.format for row in outputs if row.path is not None}
        self._printed_format = printed_formats[0] if printed_formats else None
        self._fail_on = fail_on
        self._console = make_console(no_color=no_color)
        self._file_checks: list[FileCheck] = []

    def add(self, file_check: FileCheck) -> None:
        """Prints what a format prints for each file."""
        if self._printed_format == _TABLE and file_check.error is None:
            if any(earlier.error is None for earlier in self._file_checks):
                self._console.print()
            terminal.show(file_check, self._console)
        make_lines = _LINES.get(self._printed_format or "")
        if make_lines and (text := make_lines([file_check], self._fail_on)):
            click.echo(text)
        self._file_checks.append(file_check)

    def finish(self) -> None:
        """Prints and writes the documents about all files. Raises BadUsage for a bad file."""
        if make_document := _DOCUMENTS.get(self._printed_format or ""):
            click.echo(make_document(self._file_checks, self._fail_on))
        for path, output_format in self._format_by_path.items():
            text = (_LINES | _DOCUMENTS)[output_format](self._file_checks, self._fail_on)
            write_text(path, f"{text}\n" if text else "")
