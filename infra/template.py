"""The stack's template as data, without the parts that differ between builds.

`local/template.json` is its committed snapshot. The local AWS creates exactly this template, and a
test compares it with the stack. `make golden` rewrites the snapshot.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import aws_lambda as lambda_

from infra.assembly import synthesize
from infra.bundling import ROOT, load_policy
from infra.names import PLACEHOLDER_CODE
from infra.runtimes import PINNED_PYTHON
from sageaudit.domain.policy.policy import Policy

SNAPSHOT, POLICY = ROOT / "local" / "template.json", ROOT / "local" / "policy.toml"


def synthesize_template() -> dict[str, Any]:
    """Returns the normalized template with the local AWS's policy, which has channels of all
    services.
    """
    return normalize(synthesize_with_placeholder(load_policy(POLICY)))


def synthesize_with_placeholder(policy: Policy, **context: Any) -> dict[str, Any]:
    """Returns a template with a stub for the asset, whose build would take longer.

    The functions' Python does not depend on this machine's, unless `context` has a `runtime`.
    """
    with tempfile.TemporaryDirectory() as folder:
        stub = Path(folder, "stub")
        stub.mkdir()
        (stub / "stub.py").touch()
        return synthesize(
            build_code=lambda _: lambda_.Code.from_asset(str(stub)),
            policy=policy,
            outdir=str(Path(folder, "out")),
            context={"runtime": f"python{PINNED_PYTHON}", **context},
        )


def normalize(template: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the template without the asset's hash and its key in the bootstrap bucket."""
    copy: dict[str, Any] = json.loads(json.dumps(template))
    # Removes the check of the bootstrap version, which moto does not support.
    copy.pop("Rules", None)
    copy["Parameters"].pop("BootstrapVersion", None)
    for resource in copy["Resources"].values():
        resource.pop("Metadata", None)
        if resource["Type"] == "AWS::Lambda::Function":
            resource["Properties"]["Code"] = PLACEHOLDER_CODE
    return copy


def to_text(template: Mapping[str, Any]) -> str:
    """Returns the text of the snapshot."""
    return json.dumps(template, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    SNAPSHOT.write_text(to_text(synthesize_template()), encoding="utf-8")
