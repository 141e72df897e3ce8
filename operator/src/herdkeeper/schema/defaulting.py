"""What the API server stores of what a user wrote: the CRDs' defaults filled in. For reading manifests without an API server (tests,
`--dry-run` tools)."""

from __future__ import annotations

from typing import Any

from herdkeeper.api import KINDS
from herdkeeper.api.resource import Resource
from herdkeeper.schema.crd import Schema, resource_schema

KIND_OF = {kind.KIND: kind for kind in KINDS}


def stored(document: dict[str, Any], namespace: str = "default") -> Resource:
    """The resource that the API server would store of a manifest.

    KeyError when its kind is none of ours; pydantic's ValidationError when a field has no permitted value. CEL rules are not evaluated.
    """
    kind = KIND_OF[document["kind"]]
    filled = _filled(document, resource_schema(kind))
    return kind.model_validate({**filled, "metadata": {"namespace": namespace, **document["metadata"]}})


def _filled(value: Any, schema: Schema) -> Any:
    """A copy with absent fields at their defaults; the API server goes from the outside in as well."""
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
