"""Creates the history table, or refers to an existing table."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from sageaudit.adapters.history.dynamo import keys as schema


class HistoryTable(Construct):
    """The history table, with the keys and indexes of the adapter.

    The table is kept if the stack is deleted. With `existing_table` (its name and its stream's ARN)
    the stack uses the existing table and does not change it. `make deploy` checks whether the table
    fits. It also protects both kinds of table from deletion, which the template does not:
    CloudFormation could not roll back a first deployment with a protected table.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, existing_table: tuple[str, str] | None
    ) -> None:
        super().__init__(scope, construct_id)
        if existing_table is None:
            self.table = self._create_table()
            return
        name, stream = existing_table
        self.table = dynamodb.Table.from_table_attributes(
            self, "Table", table_name=name, table_stream_arn=stream
        )

    def _create_table(self) -> dynamodb.ITable:
        table = dynamodb.Table(
            self,
            "Table",
            partition_key=_text(schema.PARTITION_KEY),
            sort_key=_text(schema.SORT_KEY),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            stream=dynamodb.StreamViewType.NEW_IMAGE,
            time_to_live_attribute=schema.TTL_ATTRIBUTE,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        for index in schema.INDEXES:
            table.add_global_secondary_index(
                index_name=index.name,
                partition_key=_text(index.partition_key),
                sort_key=_text(index.sort_key),
                projection_type=dynamodb.ProjectionType.ALL,
            )
        return table

    @property
    def stream_arn(self) -> str:
        """The ARN of the table's stream of new images."""
        arn = self.table.table_stream_arn
        if arn is None:
            raise ValueError("the history table has no stream")
        return arn


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
