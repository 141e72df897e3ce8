"""What the API server stores of a manifest: with the CRDs' defaults. For tests without an API server."""

from __future__ import annotations

from typing import Any

from herdkeeper.api import KINDS
from herdkeeper.api.resource import Resource
from herdkeeper.schema.crd import Schema, resource_schema

KIND_OF = {kind.KIND: kind for kind in KINDS}


def stored(document: dict[str, Any], namespace: str = "default") -> Resource:
    """Returns the resource that the API server would store.

    Raises KeyError for an unknown kind, and pydantic's ValidationError for an invalid value. CEL rules are not evaluated.
    """
    kind = KIND_OF[document["kind"]]
    filled = _filled(document, resource_schema(kind))
    return kind.model_validate({**filled, "metadata": {"namespace": namespace, **document["metadata"]}})


def _filled(value: Any, schema: Schema) -> Any:
    """Returns a copy with defaults for absent fields, from the outside in, like the API server."""
    if isinstance(value, dict) and "properties" in schema:
        filled = dict(value)
        for name, field in schema["properties"].items():
            if name not in filled and "default" in field:
                filled[name] = field["default"]
            if name in filled:
                filled[name] = _filled(filled[name], field)
        return filled
    if isinstance(value, list) and "items" in schema:
        return [_filled(item, schema["items"]) for item in value]
    return value
