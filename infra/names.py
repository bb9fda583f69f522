"""Names and numbers that the stack shares with `make deploy` and tests, which do not import CDK."""

STACK = "SageAudit"
TAG = "sageaudit"
"""The tag of every resource, with the stack's name. In Cost Explorer it shows what the auditor
itself costs."""
FINGERPRINT_KEY = "sageaudit/fingerprint-key"
"""The secret with the key of job fingerprints, which `make deploy` creates."""
ALARMS_TOPIC = "AlarmsTopicArn"
NOTICES_TOPIC = "NoticesTopicArn"
MEMBER_REGIONS = "MemberRegions"
"""The stack's output with the other regions that forward events, separated by commas."""
ASSET_BUCKET, ASSET_KEY = "AssetBucket", "AssetKey"
"""The parameters of a release's template with the bucket and key of the functions' code."""
PLACEHOLDER_CODE = {"S3Bucket": "assets", "S3Key": "functions.zip"}
"""The functions' code in the committed template; the local AWS puts a stub there."""
AUDIT_TIMEOUT_S = 180
VISIBILITY_FACTOR = 6
"""A queue's visibility timeout, as a multiple of the function's timeout. AWS recommends at least
six, so that throttled invocations do not repeat a batch."""
MAX_RECEIVES = 120
"""The most receives of a message before it becomes a dead letter. A function abandons a message at
an age of 3.5 days (`batch.py`), so this limit is for messages that crash the process each time."""
POLL_QUEUE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
"""The permissions to poll a queue."""
POLL_STREAM = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)
"""The permissions to poll a table's stream."""
SEND_MESSAGES = ("sqs:SendMessage",)
"""The permission to send messages to a queue."""
