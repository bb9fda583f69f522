"""Names that the template carries and `make deploy` fills; a channel names its own secret."""

FINGERPRINT_KEY = "sageaudit/fingerprint-key"
