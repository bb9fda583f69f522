"""Names that the template carries and `make deploy` fills."""

FINGERPRINT_KEY = "sageaudit/fingerprint-key"
SLACK_WEBHOOK = "sageaudit/slack-webhook"
