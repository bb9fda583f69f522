"""A local AWS: runs the deployed handlers and template with recorded jobs.

Importing this package removes all AWS credentials and settings from the process's environment.
"""

import os

ACCOUNT = "111122223333"
REGION = "us-east-1"

for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]
os.environ |= {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    # moto's DynamoDB streams do not support account endpoints
    "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
    "MOTO_ACCOUNT_ID": ACCOUNT,
}
