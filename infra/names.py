"""Names and numbers that the stack shares with `make deploy` and tests, which do not import CDK."""

STACK = "SageAudit"
FINGERPRINT_KEY = "sageaudit/fingerprint-key"
"""The secret with the key of job fingerprints, which `make deploy` creates."""
ALARMS_TOPIC = "AlarmsTopicArn"
NOTICES_TOPIC = "NoticesTopicArn"
MEMBER_REGIONS = "MemberRegions"
"""Output of the stack: the other regions that forward events, separated by commas."""
PLACEHOLDER_CODE = {"S3Bucket": "assets", "S3Key": "functions.zip"}
"""The functions' code in the committed template; the local AWS puts a stub there."""
AUDIT_TIMEOUT_S = 180
VISIBILITY_FACTOR = 6
"""The visibility timeout in function timeouts. AWS recommends at least six, so that throttled
invocations do not repeat a batch."""
MAX_RECEIVES = 120
"""A function abandons a message with a reason at an age of 3.5 days (`batch.py`). This limit is for
messages that crash the process each time; an outage ends before it is reached."""
POLL_QUEUE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
POLL_STREAM = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)
SEND_MESSAGES = ("sqs:SendMessage",)
"""Permissions to poll queues and streams, and to send messages."""
