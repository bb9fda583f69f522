"""Writes parameter rows as Terraform blocks and arguments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from sageaudit.output.fixes.literals import hcl
from sageaudit.output.fixes.ways import LIST, MAPPING, ParameterRow, WayStep, grouped


def resource(rows: Iterable[ParameterRow]) -> str:
    """The Terraform resource, with only the arguments that change."""
    return _block('resource "aws_sagemaker_training_job" "this"', _body(rows))


def _body(rows: Iterable[ParameterRow]) -> list[str]:
    lines: list[str] = []
    for step, inner in grouped(rows):
        if step.opens == LIST:
            lines += [_block(step.name, _element(one, rest)) for one, rest in grouped(inner)]
        elif step.opens == MAPPING:
            pairs = [_argument(hcl(one.name), rest[-1]) for one, rest in grouped(inner)]
            lines.append(_block(f"{step.name} =", pairs))
        elif step.opens:
            lines.append(_block(step.name, _body(inner)))
        else:
            lines.append(_argument(step.name, inner[-1]))
    return lines


def _element(step: WayStep, rows: list[ParameterRow]) -> list[str]:
    return [f"{step.label} = {hcl(step.name)}", *_body(rows)]


def _argument(name: str, row: ParameterRow) -> str:
    return f"# remove {name}" if row.removed else f"{name} = {hcl(row.value)}"


def _block(head: str, body: list[str]) -> str:
    return "\n".join([f"{head} {{", textwrap.indent("\n".join(body), "  "), "}"])
