"""Finds the request or definition in a document that only wraps it.

| document | what is in it |
|---|---|
| JSON in a string | a request or a definition |
| an event of CloudTrail, alone or in an EventBridge event | `requestParameters` |
| a Kubernetes resource of ACK or of the SageMaker operator | `spec` |
| a request or answer about a state machine | `definition` |
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sageaudit.domain.request.definitions import parse_definition
from sageaudit.domain.request.placeholders import mark_unknown
from sageaudit.domain.request.request import Origin, Request, text
from sageaudit.structs import replace


class UnwrappedDocument(Struct, frozen=True):
    """A document, and what the document around it says.

    `has_places`: the parts of the document have lines in the file.
    """

    document: object
    has_places: bool = True
    region: str | None = None
    name_source: str | None = None

    def finish(self, request: Request) -> Request:
        """Returns the request with what is around it, and its unknown parts marked."""
        return replace(
            request,
            body=mark_unknown(request.body),
            origin=request.origin if self.has_places else Origin(is_inline=False),
            region=request.region or self.region,
            name_source=request.name_source or self.name_source,
        )


def unwrap(document: object) -> UnwrappedDocument:
    """Returns the request or definition in a document that only wraps it, or the document."""
    if isinstance(document, str):
        return UnwrappedDocument(parse_definition(document), has_places=False)
    if not isinstance(document, Mapping):
        return UnwrappedDocument(document)
    event = detail if isinstance(detail := document.get("detail"), Mapping) else document
    if "eventName" in event and isinstance(event.get("requestParameters"), Mapping):  # CloudTrail
        region = text(event.get("awsRegion")) or None
        return UnwrappedDocument(event["requestParameters"], has_places=False, region=region)
    spec = document.get("spec")
    if "sagemaker" in text(document.get("apiVersion")) and isinstance(spec, Mapping):  # Kubernetes
        request = {key: value for key, value in spec.items() if key != "region"}
        region = text(spec.get("region")) or None
        return UnwrappedDocument(request, has_places=False, region=region, name_source="Kubernetes")
    definition = document.get("definition")
    if isinstance(definition, str) and '"States"' in definition:  # a state machine's request
        return UnwrappedDocument(parse_definition(definition), has_places=False)
    return UnwrappedDocument(document)
