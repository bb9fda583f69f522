"""A name that the template carries and `make deploy` fills; a channel's secret is named by it."""

FINGERPRINT_KEY = "sageaudit/fingerprint-key"
