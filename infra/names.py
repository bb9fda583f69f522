"""Secrets that the template names and `make deploy` creates; a channel names its own secret."""

FINGERPRINT_KEY = "sageaudit/fingerprint-key"
