"""The IAM actions that CloudFormation needs for each type of resource of the templates.

They are those of `handlers` (create, read, update, delete) in CloudFormation's schemas of August
2026, as `aws cloudformation describe-type --type RESOURCE --type-name NAME` prints them.
"""

from collections.abc import Iterator, Mapping

HANDLERS: Mapping[str, str] = {
    "AWS::CloudFormation::WaitConditionHandle": "",
    "AWS::CloudWatch::Alarm": """cloudwatch: DeleteAlarms DescribeAlarms ListTagsForResource
        PutMetricAlarm TagResource UntagResource""",
    "AWS::CloudWatch::Dashboard": """cloudwatch: DeleteDashboards GetDashboard ListTagsForResource
        PutDashboard TagResource UntagResource""",
    "AWS::DynamoDB::Table": """dynamodb: AssociateTableReplica BatchWriteItem CreateTable
        CreateTableReplica DeleteItem DeleteResourcePolicy DeleteTable DescribeContinuousBackups
        DescribeContributorInsights DescribeImport DescribeKinesisStreamingDestination DescribeTable
        DescribeTimeToLive DisableKinesisStreamingDestination EnableKinesisStreamingDestination
        GetItem GetResourcePolicy ImportTable ListTagsOfResource PutItem PutResourcePolicy Query
        Scan TagResource UntagResource UpdateContinuousBackups UpdateContributorInsights UpdateItem
        UpdateKinesisStreamingDestination UpdateTable UpdateTimeToLive
        iam: CreateServiceLinkedRole kinesis: DescribeStream PutRecords
        kms: CreateGrant Decrypt DescribeKey Encrypt ListAliases RevokeGrant
        logs: CreateLogGroup CreateLogStream DescribeLogGroups DescribeLogStreams PutLogEvents
        PutRetentionPolicy s3: GetObject GetObjectMetadata ListBucket""",
    "AWS::Events::EventBus": """events: CreateEventBus DeleteEventBus DescribeEventBus
        ListTagsForResource PutPermission RemovePermission TagResource UntagResource UpdateEventBus
        kms: Decrypt DescribeKey Encrypt GenerateDataKey GenerateDataKeyWithoutPlaintext ReEncrypt
        ReEncryptFrom ReEncryptTo""",
    "AWS::Events::EventBusPolicy": "events: DescribeEventBus PutPermission RemovePermission",
    "AWS::Events::Rule": """events: DeleteRule DescribeRule ListTagsForResource ListTargetsByRule
        PutRule PutTargets RemoveTargets TagResource UntagResource iam: PassRole""",
    "AWS::IAM::ManagedPolicy": """iam: AttachGroupPolicy AttachRolePolicy AttachUserPolicy
        CreatePolicy CreatePolicyVersion DeletePolicy DeletePolicyVersion DetachGroupPolicy
        DetachRolePolicy DetachUserPolicy GetPolicy GetPolicyVersion ListEntitiesForPolicy
        ListPolicyVersions""",
    "AWS::IAM::Policy": """iam: DeleteGroupPolicy DeleteRolePolicy DeleteUserPolicy GetGroupPolicy
        GetRolePolicy GetUserPolicy PutGroupPolicy PutRolePolicy PutUserPolicy""",
    "AWS::IAM::Role": """iam: AttachRolePolicy CreateRole DeleteRole DeleteRolePermissionsBoundary
        DeleteRolePolicy DetachRolePolicy GetRole GetRolePolicy ListAttachedRolePolicies
        ListRolePolicies PutRolePermissionsBoundary PutRolePolicy TagRole UntagRole
        UpdateAssumeRolePolicy UpdateRole UpdateRoleDescription""",
    "AWS::Lambda::EventInvokeConfig": """lambda: DeleteFunctionEventInvokeConfig
        GetFunctionEventInvokeConfig PutFunctionEventInvokeConfig
        UpdateFunctionEventInvokeConfig""",
    "AWS::Lambda::EventSourceMapping": """kms: Decrypt DescribeKey GenerateDataKey
        lambda: CreateEventSourceMapping DeleteEventSourceMapping GetEventSourceMapping ListTags
        TagResource UntagResource UpdateEventSourceMapping""",
    "AWS::Lambda::Function": """ec2: DescribeNetworkInterfaces DescribeSecurityGroups
        DescribeSubnets DescribeVpcs elasticfilesystem: DescribeMountTargets iam: PassRole
        kms: CreateGrant Decrypt DescribeKey Encrypt GenerateDataKey
        lambda: CreateFunction DeleteFunction DeleteFunctionCodeSigningConfig
        DeleteFunctionConcurrency GetCodeSigningConfig GetFunction GetFunctionCodeSigningConfig
        GetFunctionRecursionConfig GetFunctionScalingConfig GetLayerVersion
        GetRuntimeManagementConfig PassCapacityProvider PublishVersion
        PutFunctionCodeSigningConfig PutFunctionConcurrency PutFunctionRecursionConfig
        PutFunctionScalingConfig PutRuntimeManagementConfig TagResource UntagResource
        UpdateFunctionCode UpdateFunctionConfiguration
        s3: GetObject GetObjectVersion s3files: ListMountTargets""",
    "AWS::Logs::LogGroup": """firehose: TagDeliveryStream logs: AssociateKmsKey CreateLogDelivery
        CreateLogGroup DeleteDataProtectionPolicy DeleteIndexPolicy DeleteLogGroup
        DeleteResourcePolicy DeleteRetentionPolicy DescribeIndexPolicies DescribeLogGroups
        DescribeResourcePolicies DisassociateKmsKey GetDataProtectionPolicy ListTagsForResource
        PutBearerTokenAuthentication PutDataProtectionPolicy PutIndexPolicy
        PutLogGroupDeletionProtection PutResourcePolicy PutRetentionPolicy TagResource
        UntagResource s3: REST.PUT.OBJECT""",
    "AWS::Logs::QueryDefinition": """logs: DeleteQueryDefinition DescribeQueryDefinitions
        PutQueryDefinition""",
    "AWS::SNS::Topic": """iam: GetRole PassRole sns: CreateTopic DeleteTopic
        GetDataProtectionPolicy GetTopicAttributes ListSubscriptionsByTopic ListTagsForResource
        PutDataProtectionPolicy SetTopicAttributes Subscribe TagResource Unsubscribe
        UntagResource""",
    "AWS::SNS::TopicPolicy": "sns: SetTopicAttributes",
    "AWS::SQS::Queue": """sqs: CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags
        SetQueueAttributes TagQueue UntagQueue""",
    "AWS::SQS::QueuePolicy": "sqs: SetQueueAttributes",
    "AWS::Scheduler::Schedule": """iam: PassRole scheduler: CreateSchedule DeleteSchedule
        GetSchedule UpdateSchedule""",
    "AWS::Scheduler::ScheduleGroup": """scheduler: CreateScheduleGroup DeleteSchedule
        DeleteScheduleGroup GetScheduleGroup ListTagsForResource TagResource UntagResource""",
}
UNUSED: Mapping[str, Mapping[str, str]] = {
    "AWS::DynamoDB::Table": {
        "ContributorInsightsSpecification": "dynamodb: UpdateContributorInsights",
        "ImportSourceSpecification": """dynamodb: DescribeImport ImportTable logs: CreateLogGroup
            CreateLogStream DescribeLogStreams PutLogEvents PutRetentionPolicy
            s3: GetObject GetObjectMetadata ListBucket""",
        "KinesisStreamSpecification": """dynamodb: DisableKinesisStreamingDestination
            EnableKinesisStreamingDestination UpdateKinesisStreamingDestination
            kinesis: DescribeStream PutRecords""",
        "Replicas": """dynamodb: AssociateTableReplica BatchWriteItem CreateTableReplica DeleteItem
            GetItem PutItem Query Scan UpdateItem iam: CreateServiceLinkedRole""",
        "ResourcePolicy": "dynamodb: DeleteResourcePolicy PutResourcePolicy",
        "KeyAlias": "kms: ListAliases",
    },
    "AWS::Events::EventBus": {
        "KmsKeyIdentifier": """kms: Decrypt DescribeKey Encrypt GenerateDataKey
            GenerateDataKeyWithoutPlaintext ReEncrypt ReEncryptFrom ReEncryptTo""",
    },
    "AWS::IAM::ManagedPolicy": {
        "Groups": "iam: AttachGroupPolicy DetachGroupPolicy",
        "Users": "iam: AttachUserPolicy DetachUserPolicy",
    },
    "AWS::IAM::Policy": {
        "Groups": "iam: DeleteGroupPolicy GetGroupPolicy PutGroupPolicy",
        "Users": "iam: DeleteUserPolicy GetUserPolicy PutUserPolicy",
    },
    "AWS::IAM::Role": {"ManagedPolicyArns": "iam: AttachRolePolicy DetachRolePolicy"},
    "AWS::Lambda::EventSourceMapping": {"KmsKeyArn": "kms: Decrypt DescribeKey GenerateDataKey"},
    "AWS::Lambda::Function": {
        "CapacityProviderConfig": "lambda: PassCapacityProvider",
        "CodeSigningConfigArn": """lambda: DeleteFunctionCodeSigningConfig GetCodeSigningConfig
            PutFunctionCodeSigningConfig""",
        "FileSystemConfigs": "elasticfilesystem: DescribeMountTargets s3files: ListMountTargets",
        "FunctionScalingConfig": "lambda: PutFunctionScalingConfig",
        "Layers": "lambda: GetLayerVersion",
        "PublishToLatestPublished": "lambda: PublishVersion",
        "ReservedConcurrentExecutions": "lambda: DeleteFunctionConcurrency PutFunctionConcurrency",
        "RuntimeManagementConfig": "lambda: PutRuntimeManagementConfig",
    },
    "AWS::Logs::LogGroup": {
        "BearerTokenAuthenticationEnabled": "logs: PutBearerTokenAuthentication",
        "DataProtectionPolicy": """firehose: TagDeliveryStream logs: CreateLogDelivery
            PutDataProtectionPolicy s3: REST.PUT.OBJECT""",
        "DeletionProtectionEnabled": "logs: PutLogGroupDeletionProtection",
        "FieldIndexPolicies": "logs: DeleteIndexPolicy PutIndexPolicy",
        "ResourcePolicyDocument": "logs: DeleteResourcePolicy PutResourcePolicy",
    },
    "AWS::SNS::Topic": {
        "DataProtectionPolicy": "sns: PutDataProtectionPolicy",
        "DeliveryStatusLogging": "iam: GetRole PassRole",
        "Subscription": "sns: Subscribe Unsubscribe",
    },
}
"""The actions that CloudFormation needs only for a property that no template sets. `Replicas` and
`KeyAlias` are not properties of this type: the handler shares code with another one, and the key is
always given by its ARN."""


def needed_actions(resource_type: str) -> set[str]:
    """Returns the actions for a type without those of unused properties."""
    unused = UNUSED.get(resource_type, {}).values()
    return {*_parse(HANDLERS[resource_type])} - {
        action for text in unused for action in _parse(text)
    }


def _parse(text: str) -> Iterator[str]:
    service = ""
    for word in text.split():
        if word.endswith(":"):
            service = word
        else:
            yield f"{service}{word}"
