"""Creates the synthesized template in moto's CloudFormation."""

from __future__ import annotations

import io
import json
import logging
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

TEMPLATE = Path(__file__).parent / "template.json"
STACK = "sageaudit"
_READS_TEMPLATE = "moto.cloudformation.models.Stack.parse_template"


def create_stack(session: Any, template: str | None = None) -> dict[str, str]:
    """Creates the stack with the template's defaults; returns physical ids by logical id.

    `template`: the text of another template than the snapshot.
    """
    text = template or TEMPLATE.read_text(encoding="utf-8")
    s3 = session.client("s3")
    s3.create_bucket(Bucket="assets")
    s3.put_object(Bucket="assets", Key="functions.zip", Body=stub_asset())
    formation = session.client("cloudformation")
    with quiet_templates():
        formation.create_stack(
            StackName=STACK,
            TemplateBody=adapt_to_moto(text),
            Capabilities=["CAPABILITY_IAM"],
        )
    return stack_resources(session, STACK)


def stub_asset(content: str = "") -> bytes:
    """Returns an asset for functions that moto does not run."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as stub:
        stub.writestr("stub.py", content)
    return archive.getvalue()


def stack_resources(session: Any, stack: str) -> dict[str, str]:
    """Returns the physical ids of a stack's resources, by logical id."""
    formation = session.client("cloudformation")
    with quiet_templates():
        pages = formation.get_paginator("list_stack_resources").paginate(StackName=stack)
        return {
            summary["LogicalResourceId"]: summary["PhysicalResourceId"]
            for page in pages
            for summary in page["StackResourceSummaries"]
            if "PhysicalResourceId" in summary
        }


@contextmanager
def quiet_templates() -> Iterator[None]:
    """Lets moto read templates as JSON, without warnings about what it does not create.

    moto would parse each template as YAML first, which takes most of the start time. tests/infra
    lists what moto does not create.
    """
    logging.getLogger("moto").setLevel(logging.ERROR)
    as_json = mock.patch(_READS_TEMPLATE, staticmethod(json.loads))
    with as_json, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def adapt_to_moto(text: str) -> str:
    """Returns the template without the dashboard, which names alarms that moto does not create.

    Also replaces the newer deletion policy by "Retain", the only such policy that moto supports.
    """
    template = json.loads(text.replace("RetainExceptOnCreate", "Retain"))
    template["Resources"] = {
        name: resource
        for name, resource in template["Resources"].items()
        if resource["Type"] != "AWS::CloudWatch::Dashboard"
    }
    return json.dumps(template)
