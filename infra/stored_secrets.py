"""Writes secrets, and gives them the tags and the key of the deployment."""

from __future__ import annotations

from typing import Any

from infra.names import FINGERPRINT_KEY
from infra.settings import Settings, tag_list
from sageaudit.domain.policy.routes import CHANNEL_SECRETS


def put_secret(store: Any, name: str, value: str, description: str, settings: Settings) -> None:
    """Creates a secret, or stores a new value of it. Raises ClientError.

    A new secret gets its tags and key in the same request, which policies of an organization may
    require.
    """
    try:
        store.create_secret(
            Name=name,
            SecretString=value,
            Description=description,
            Tags=tag_list(settings.all_tags),
            **({"KmsKeyId": settings.kms_key_arn} if settings.kms_key_arn else {}),
        )
    except store.exceptions.ResourceExistsException:
        store.put_secret_value(SecretId=name, SecretString=value)


def protect_secret(store: Any, name: str, settings: Settings) -> None:
    """Gives a secret the tags and the key of the settings, if it lacks them. Raises ClientError.

    A secret under another name than ours belongs to others, and stays as it is.
    """
    if name != FINGERPRINT_KEY and not name.startswith(CHANNEL_SECRETS):
        return
    secret = store.describe_secret(SecretId=name)
    tags, present = tag_list(settings.all_tags), secret.get("Tags", [])
    if not all(tag in present for tag in tags):
        store.tag_resource(SecretId=name, Tags=tags)
    if settings.kms_key_arn and secret.get("KmsKeyId") != settings.kms_key_arn:
        store.update_secret(SecretId=name, KmsKeyId=settings.kms_key_arn)
