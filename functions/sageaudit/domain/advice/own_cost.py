"""What a deployment itself costs, in USD: the table of docs/before-you-deploy.md."""

from decimal import Decimal

OWN_MONTH_USD = Decimal("6.47")
OWN_JOB_USD = Decimal("0.00068")
OWN_AUDIT_USD = Decimal("0.00036")
"""Of a job that was not watched while it ran."""
OWN_WRITE_USD = Decimal("0.00013")
"""What of a job's cost is for DynamoDB: its writes, and a year of storage."""
