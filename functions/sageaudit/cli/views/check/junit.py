"""The output of `sageaudit check` as a JUnit report, which GitLab, Jenkins and others show.

A file is a test suite, a job is a test case, and the case fails if the job has findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from sageaudit.cli.views.check.lines import finding_lines, findings_summary, refusal_text
from sageaudit.domain.bill.finding import Severity
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.workflows.check.comparison import FileCheck, counted_findings


def junit_report(file_checks: Sequence[FileCheck], fail_on: Severity | None) -> str:
    """Returns the report on all files that exist.

    A case fails if a finding is at or above `fail_on` or, if that is None, if it has any. A
    file or job that cannot be judged is an error.
    """
    root = ET.Element("testsuites", name="sageaudit check")
    for file_check in file_checks:
        if file_check.checked is None and file_check.error is None:
            continue
        suite = ET.SubElement(root, "testsuite", name=for_terminal(file_check.name))
        if file_check.checked is None:
            _add_case(suite, file_check.name, file_check.name, error=file_check.error)
        names: Counter[str] = Counter()
        for job in file_check.checked["jobs"] if file_check.checked else ():
            name = f"{job['name']} ({job['label']})" if job["name"] else str(job["label"])
            names[name] += 1
            name = name if names[name] == 1 else f"{name} ({names[name]})"
            _add_job(suite, file_check.name, name, job, fail_on)
    for element in (*root, root):
        for key, tag in {"tests": "testcase", "failures": "failure", "errors": "error"}.items():
            element.set(key, str(len(list(element.iter(tag)))))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'


def _add_job(
    suite: ET.Element, file: str, name: str, job: dict[str, Any], fail_on: Severity | None
) -> None:
    case = _add_case(suite, file, name, error=job["unreadable"])
    lowest_rank = fail_on.rank if fail_on else 0
    failing: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for row in counted_findings(job):
        is_failing = Severity(row["severity"]).rank >= lowest_rank
        (failing if is_failing else others).append(row)
    if failing:
        summary = f"{refusal_text([job])}{findings_summary(failing)}"
        failure = ET.SubElement(case, "failure", message=summary, type=failing[0]["severity"])
        failure.text = _text(failing)
    if others:
        ET.SubElement(case, "system-out").text = _text(others)


def _add_case(suite: ET.Element, file: str, name: str, *, error: str | None) -> ET.Element:
    file_name = for_terminal(file)
    case = ET.SubElement(
        suite,
        "testcase",
        name=for_terminal(name),
        classname=file_name,
        file=file_name,
        time="0",
    )
    if error is not None:
        message = for_terminal(error)
        ET.SubElement(case, "error", message=message, type="not checked").text = message
    return case


def _text(rows: Sequence[dict[str, Any]]) -> str:
    return "\n\n".join(
        "\n".join(for_terminal(f"{line.prefix}{line.text}") for line in finding_lines(row))
        for row in rows
    )
