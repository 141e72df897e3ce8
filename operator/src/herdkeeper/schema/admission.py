"""Where resources name images, Secrets, ServiceAccounts and annotations of pods: CEL expressions for the chart's admission policy, which
asks whether their author may do by himself what the operator would do for him. Found in the models, so that a new field is among them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from herdkeeper.api import KINDS
from herdkeeper.schema.crd import Schema, resource_schema

_SECRETS = ("SecretRef", "secretName", "imagePullSecrets")
"""Endings of fields that name Secrets."""


def policy_files() -> dict[str, str]:
    """File name -> YAML of a kind's policy: the variables `images`, `secrets`, `accounts` and `annotations` that a resource names."""
    found = {}
    for kind in KINDS:
        fields = dict(_fields(resource_schema(kind)["properties"]["spec"], "object.spec"))
        lists = {
            "images": [text for path, text in fields.items() if path.endswith(".?image")],
            "secrets": [text for path, text in fields.items() if path.endswith(_SECRETS)],
            "accounts": [text for path, text in fields.items() if path.endswith(".?serviceAccountName")],
            "annotations": [text for path, text in fields.items() if path.endswith(".?annotations")],
        }
        joined = {name: " + ".join(f"({each})" for each in found_lists) or "[]" for name, found_lists in lists.items()}
        found[f"{kind.PLURAL}.yaml"] = "".join(f"- name: {name}\n  expression: {json.dumps(each)}\n" for name, each in joined.items())
    return found


def _fields(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Each field of an object that names an image, Secrets, a ServiceAccount or annotations, with the expression of the list of its names.
    `path` leads to it; a step that is absent makes the list empty. ValueError for a list of objects of whose names no expression is known.
    """
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.?{name}"
        within = field.get("items", field).get("properties", {})
        match field.get("type"):
            case "string" if name in ("image", "secretName", "serviceAccountName"):
                yield here, f"{here}.hasValue() ? [{here}.value()] : []"
            case "object" if name.endswith("SecretRef"):
                yield here, f"{here}.hasValue() ? [{here}.value().name] : []"
            case "object" if name == "annotations":
                yield here, f"{here}.orValue({{}}).map(key, key)"
            case "object":
                yield from _fields(field, here)
            case "array" if name == "imagePullSecrets":
                yield here, f"{here}.orValue([]).map(each, each.name)"
            case "array" if "secretName" in within:
                yield f"{here}.secretName", f"{here}.orValue([]).map(each, each.secretName)"
            case "array" if list(_fields({"properties": within}, "")):
                raise ValueError(f"{here} is a list of what names images or Secrets: say how in schema/admission.py")
            case _:
                pass
