"""The policy of a try."""

from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import OWN_TOPIC, ChannelConfig

POLICY = Policy(channels={OWN_TOPIC: ChannelConfig("sns", job_lines=True)}, digest=None, watch=None)
"""Sends one line about each job that ends, since the job is too cheap for other messages."""
