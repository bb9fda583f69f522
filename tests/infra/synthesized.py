"""Writes the templates that tests read: `python -m tests.infra.synthesized FOLDER`.

In a process of its own, once a test run: CDK's start takes longer than all of these together.
"""

import json
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from aws_cdk import aws_lambda as lambda_

from infra import assembly
from infra.bundling import load_policy
from infra.release_template import released_template
from infra.template import (
    POLICY,
    normalize,
    synthesize_template,
    synthesize_with_placeholder,
    to_text,
)
from sageaudit.domain.policy.budgets import Budget
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.structs import replace
from sageaudit.workflows.pack import TEMPLATE_CHANNELS
from tests.infra.reading import (
    ACCOUNTS,
    CDK_CONTEXT,
    KEPT_STREAM,
    KEPT_TABLE,
    MANY_CHANNELS,
    ORGANIZATION,
    OTHER_ACCOUNT,
    OTHER_ROLE,
    REFUSED,
    TOO_MANY,
    WITH_KEYS,
    read,
)
from tools.combinations import CHANNELS, DIGESTS, MEMBERS, STRICT


def main(folder: Path) -> None:
    """The app as it deploys in `assembly`; templates and refusals beside it."""
    (folder / "stub").mkdir()

    def synthesize_for(**context: str) -> dict[str, Any]:
        stub = str(folder / "stub")
        out = str(folder / "out")
        policy = replace(WITH_KEYS, members=TOO_MANY if "too_many" in context else MemberAccounts())
        return assembly.synthesize(
            build_code=lambda _: lambda_.Code.from_asset(stub),
            policy=policy,
            outdir=out,
            context=context,
        )

    def refusal(key: str, value: str) -> str:
        try:
            synthesize_for(**{key: value})
        except ValueError as error:
            return str(error)
        return ""

    os.environ["CDK_OUTDIR"] = str(folder / "assembly")
    assembly.assemble()
    documents: dict[str, Any] = {
        "deployed": normalize(read(folder, "assembly/SageAudit.template.json")),
        "every-channel": synthesize_template(),
        "quiet": normalize(
            synthesize_with_placeholder(Policy(members=MemberAccounts({OTHER_ACCOUNT: OTHER_ROLE})))
        ),
        "budgets": normalize(
            synthesize_with_placeholder(
                Policy(watch=None, budgets=(Budget("all jobs", Decimal(100)),))
            )
        ),
        # The same Python as in the assembly: the one that runs here.
        "plain": normalize(synthesize_with_placeholder(Policy(), runtime="")),
        "organization": normalize(synthesize_with_placeholder(Policy(members=ORGANIZATION))),
        "many-channels": normalize(synthesize_with_placeholder(Policy(channels=MANY_CHANNELS))),
        "accounts": normalize(synthesize_with_placeholder(Policy(members=ACCOUNTS))),
        "adopted": normalize(
            synthesize_with_placeholder(
                load_policy(POLICY), table_name=KEPT_TABLE, table_stream_arn=KEPT_STREAM
            )
        ),
        "tuned": normalize(
            synthesize_with_placeholder(Policy(), tracing="on", audits_at_once="20", stack="Mine")
        ),
        "strict": normalize(
            synthesize_with_placeholder(
                Policy(
                    channels=CHANNELS["all"],
                    digest=DIGESTS["report"],
                    members=MEMBERS["organization"],
                ),
                **STRICT,
            )
        ),
        **{
            name.removesuffix(".json"): released_template(channels, "1.2.3")
            for name, channels in TEMPLATE_CHANNELS.items()
        },
        "cdk-context": synthesize_with_placeholder(Policy(), **CDK_CONTEXT),
        "own-keys": synthesize_for(),
        "refused": [refusal(key, value) for key, value in REFUSED],
        "too-many": refusal("too_many", "accounts"),
    }
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "snapshot.json").write_text(to_text(documents["every-channel"]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
