"""`sageaudit pack`: copies a release's Lambda zip with a policy, to deploy without a clone."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from sageaudit.adapters.files import policy_file
from sageaudit.cli.messages import print_message
from sageaudit.exits import Exit
from sageaudit.workflows.pack import PackedAsset
from sageaudit.workflows.pack import pack as pack_asset

_EPILOG = """\b
Examples:
  sageaudit pack sageaudit-lambda-0.1.0.zip --policy policy.toml
  sageaudit pack sageaudit-lambda-0.1.0.zip --policy policy.toml > deploy.sh"""


@click.command(epilog=_EPILOG)
@click.argument("asset", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "policy_path",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Policy file (TOML) to deploy.",
)
@click.option(
    "--bucket", default="BUCKET", help="S3 bucket in the stack's region, for the printed commands."
)
@click.option("--stack", default="SageAudit", show_default=True, help="Name of the stack.")
def pack(asset: Path, policy_path: Path, bucket: str, stack: str) -> Exit:
    """Writes a copy of the release's Lambda zip with your policy.

    ASSET is sageaudit-lambda-VERSION.zip of a release. The copy is written to the current folder.
    It prints the commands of the AWS CLI that deploy the copy with the release's template. It sends
    no request to AWS.
    """
    packed = pack_asset(asset, policy_file.load_policy(policy_path), Path())
    click.echo(_commands(packed, bucket, stack))
    print_message(f"{packed.path} contains your policy; the commands above deploy it")
    return Exit.DONE


def _commands(packed: PackedAsset, bucket: str, stack: str) -> str:
    name = shlex.quote(packed.path.name)
    parameters = {"AssetBucket": bucket, "AssetKey": packed.path.name, **packed.parameters}
    assignments = [shlex.quote(f"{key}={value}") for key, value in parameters.items()]
    options = [
        f"--template-file {packed.template}",
        f"--s3-bucket {shlex.quote(bucket)} --stack-name {shlex.quote(stack)}",
        "--capabilities CAPABILITY_NAMED_IAM",
        "--parameter-overrides",
    ]
    return "\n".join(
        [
            "# Once for each account and region; a webhook's address is in webhook.txt:",
            "aws secretsmanager create-secret --name sageaudit/fingerprint-key \\",
            '  --secret-string "$(openssl rand -hex 32)"',
            *(
                f"aws secretsmanager create-secret --name {secret} \\\n"
                "  --secret-string file://webhook.txt"
                for secret in packed.secrets
            ),
            "# For each deployment:",
            f"aws s3 cp {name} {shlex.quote(f's3://{bucket}/')}",
            " \\\n  ".join(["aws cloudformation deploy", *options, *assignments]),
        ]
    )
