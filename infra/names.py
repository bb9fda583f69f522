"""Names that the template and `make deploy` share; a channel names its own secret."""

STACK = "SageAudit"
METRICS_NAMESPACE = "sageaudit"
FINGERPRINT_KEY = "sageaudit/fingerprint-key"
"""The secret with the key of job fingerprints, which `make deploy` creates."""
ALARMS_TOPIC = "AlarmsTopicArn"
NOTICES_TOPIC = "NoticesTopicArn"
"""Outputs of the stack."""


def queue_output(channel: str) -> str:
    """The output with the URL of a channel's queue; only a channel that is on has one."""
    return f"NoticesQueueUrl{channel.capitalize()}"
