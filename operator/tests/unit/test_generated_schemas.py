"""The generated CRDs, rules and reference: what a structural schema may hold, which defaults are stored, and that the files are up to
date."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from herdkeeper.api import KINDS, BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.api.resource import MAY_HOLD_A_SECRET, Resource, Rule
from herdkeeper.commands.generated import stale_files
from herdkeeper.schema.access import ACCESS, DRIVER_RULES, AccessRule, Scope, rule_files
from herdkeeper.schema.admission import policy_files
from herdkeeper.schema.crd import Schema, chart_manifests, manifests, resource_schema
from herdkeeper.schema.field_reference import page

REPOSITORY = Path(__file__).resolve().parents[3]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.KIND)


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[]")


@kinds
def test_a_schema_holds_nothing_that_structural_schemas_forbid(kind: type[Resource]) -> None:
    for path, schema in nodes(resource_schema(kind)):
        assert not {"$ref", "anyOf", "const", "title", "prefixItems", "examples", "exclusiveMinimum"} & schema.keys(), path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert "type" in schema, path
        values = {"boolean": bool, "string": str}
        assert all(isinstance(value, values[schema["type"]]) for value in schema.get("enum", ())), path


@kinds
def test_every_field_is_described(kind: type[Resource]) -> None:
    undescribed = [
        path
        for path, schema in nodes(resource_schema(kind))
        if path.startswith((".spec.", ".status.")) and "[]" not in path[-2:]
        if not schema.get("description")
    ]
    assert undescribed == []


@pytest.mark.parametrize("kind", [BookKeeperCluster, HerdDBCluster, ZooKeeperCluster], ids=lambda kind: kind.KIND)
def test_every_number_that_a_server_reads_has_a_maximum(kind: type[Resource]) -> None:
    unbounded = [
        path
        for path, schema in nodes(resource_schema(kind))
        if path.startswith(".spec.") and schema.get("type") == "integer" and "maximum" not in schema and "tolerations" not in path
    ]
    assert unbounded == []


@kinds
def test_the_api_server_prints_no_field_that_may_hold_a_secret(kind: type[Resource]) -> None:
    """After 1.34 it prints the value that a rule, a pattern or a format refuses, unless it is an object."""
    for path, schema in nodes(resource_schema(kind)):
        for name in schema.get("properties", {}).keys() & set(MAY_HOLD_A_SECRET):
            assert schema["properties"][name].keys() == {"description", "type", "maxLength"}, f"{path}.{name}"
            (rule,) = (rule for rule in schema["x-kubernetes-validations"] if rule.get("fieldPath") == f".{name}")
            assert f"self.{name}.matches(" in rule["rule"], path
            assert "messageExpression" not in rule, path


def test_a_log_that_is_kept_for_as_long_as_can_be_said_is_kept_for_a_time_that_can_be_computed() -> None:
    most = resource_schema(HerdDBCluster)["properties"]["spec"]["properties"]["ledgers"]["properties"]["retentionHours"]["maximum"]
    now = datetime.datetime.now(datetime.UTC)
    assert now - datetime.timedelta(hours=most) < now < now + datetime.timedelta(hours=most)


@kinds
def test_every_default_of_the_spec_is_stored_and_of_the_status_that_nobody_has_looked_at_it(kind: type[Resource]) -> None:
    schema = resource_schema(kind)["properties"]
    declared = dict(defaults(kind.model_fields["spec"].annotation))
    assert dict(stored_defaults(schema["spec"])) == declared
    assert [(path, node["default"]) for path, node in nodes(schema["status"]) if "default" in node] == [("", {"observedGeneration": -1})]


def defaults(model: Any, given: BaseModel | None = None, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path -> value of each default that a model's instance has. Nested ones count where the outer field has a default itself, is always
    there, or may be absent as a whole."""
    for name, field in model.model_fields.items():
        value = getattr(given, name) if given is not None else field.default
        here = f"{path}.{field.alias}"
        if isinstance(value, BaseModel):
            yield from defaults(type(value), value, here)
        elif value not in (None, {}, ()) and (given is not None or not field.is_required()):
            yield here, value
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from defaults(field.annotation, None, here)
        elif (inner := optional_object(field)) is not None:
            yield from defaults(inner, None, here)


def optional_object(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that may be absent as a whole; what is in it has its defaults only when it is there."""
    kinds = [kind for kind in get_args(field.annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return kinds[0] if kinds and field.default is None else None


def optional_objects(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Paths of all such fields."""
    for field in model.model_fields.values():
        if (inner := optional_object(field)) is not None:
            yield f"{path}.{field.alias}"
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            inner = field.annotation
        if inner is not None:
            yield from optional_objects(inner, f"{path}.{field.alias}")


def stored_defaults(schema: Schema) -> Iterator[tuple[str, Any]]:
    for path, node in nodes(schema):
        if "default" in node and node["default"] != {}:
            yield path, node["default"]


@kinds
def test_a_nested_default_reaches_the_store_because_its_object_has_a_default_too(kind: type[Resource]) -> None:
    may_be_absent = set(optional_objects(kind.model_fields["spec"].annotation))
    for path, node in nodes(resource_schema(kind)["properties"]["spec"]):
        for name, field in node.get("properties", {}).items():
            if any("default" in inner for _, inner in nodes(field)) and name not in node.get("required", ()):
                assert "default" in field or f"{path}.{name}" in may_be_absent, f"{path}.{name}"


@kinds
def test_every_rule_names_a_field_and_its_message_expression_matches_its_message(kind: type[Resource]) -> None:
    for rule in kind.RULES:
        assert "spec" in rule.message or "metadata.name" in rule.message
        if rule.message_expression:
            assert rule.message_expression.count("%") >= 1
            assert rule.message_expression.split("'")[1].split(" ")[0].startswith(("spec", "metadata.name"))


@kinds
def test_no_rule_uses_optional_fields_whose_cost_the_api_server_can_not_estimate(kind: type[Resource]) -> None:
    assert [rule.rule for rule in kind.RULES if ".?" in f"{rule.rule}{rule.message_expression}"] == []


def test_a_union_of_two_types_is_refused_with_what_to_do() -> None:
    class Both(BaseModel):
        value: int | str

    class Odd(Resource):
        SUMMARY = "odd"
        spec: Both
        status: Both | None = None

    with pytest.raises(ValueError, match="split the field"):
        resource_schema(Odd)


def test_a_changed_model_makes_the_generated_files_stale(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text("kind: Old\n")
    (tmp_path / "same.yaml").write_text("same\n")
    (tmp_path / "changed.yaml").write_text("before\n")
    found = stale_files(tmp_path, {"same.yaml": "same\n", "changed.yaml": "after\n", "new.yaml": "new\n"}, whole_folder=True)
    assert [sentence.split("/")[-1] for sentence in found] == [
        "changed.yaml differs from its source",
        "new.yaml is missing",
        "old.yaml has no source any more",
    ]


def test_the_generated_files_are_up_to_date() -> None:
    assert stale_files(REPOSITORY / "crds", manifests(), whole_folder=True) == ()
    assert stale_files(REPOSITORY / "charts/herdkeeper/files/crds", chart_manifests(), whole_folder=True) == ()
    assert stale_files(REPOSITORY / "charts/herdkeeper/files/rules", rule_files(), whole_folder=True) == ()
    assert stale_files(REPOSITORY / "charts/herdkeeper/files/admission", policy_files(), whole_folder=True) == ()
    assert stale_files(REPOSITORY / "docs", {"reference.md": page()}, whole_folder=False) == ()


def test_uninstalling_the_chart_keeps_the_definitions() -> None:
    for text in chart_manifests().values():
        assert yaml.safe_load(text)["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_no_gitops_tool_prunes_a_definition_with_all_resources_of_its_kind() -> None:
    """As where they move from one application to another, or `crds.install` becomes false."""
    for text in (*manifests().values(), *chart_manifests().values()):
        kept = yaml.safe_load(text)["metadata"]["annotations"]
        assert "Prune=false" in kept["argocd.argoproj.io/sync-options"].split(",")
        assert kept["kustomize.toolkit.fluxcd.io/prune"] == "disabled"


def test_the_operator_asks_for_no_wildcard_and_no_power_over_pods_contents() -> None:
    for rule in ACCESS:
        assert "*" not in (*rule.resources, *rule.verbs, rule.group)
        assert not {"pods/exec", "pods/log", "pods/attach"} & set(rule.resources)
        assert "escalate" not in rule.verbs
        assert "bind" not in rule.verbs or rule.only is not None, "one role, by its name"


def test_secrets_are_never_read_outside_of_the_watched_namespaces() -> None:
    assert {rule.scope for rule in ACCESS if "secrets" in rule.resources} == {Scope.WATCHED}


def test_the_operator_holds_no_right_for_a_driver_s_sake() -> None:
    def verbs(rules: tuple[AccessRule, ...], resource: str) -> set[str]:
        return {verb for rule in rules if resource in rule.resources for verb in rule.verbs}

    assert verbs(DRIVER_RULES, "pods") - verbs(ACCESS, "pods") == {"create", "deletecollection"}
    assert verbs(DRIVER_RULES, "configmaps") - verbs(ACCESS, "configmaps") == {"deletecollection"}
    assert verbs(DRIVER_RULES, "executors") - verbs(ACCESS, "executors") == {"drive"}


def test_the_reference_shows_every_field_of_every_kind() -> None:
    text = page()
    for kind in (ZooKeeperCluster, HerdDBCluster):
        for path, _ in nodes(resource_schema(kind)["properties"]["spec"]):
            shown = path.removesuffix("[]")  # a value of a map, or an item of a list, is shown with its field
            assert f"`spec{shown}`" in text or path == ""


def test_a_transition_rule_is_marked_in_the_reference() -> None:
    transition = [rule for kind in KINDS for rule in kind.RULES if "oldSelf" in rule.rule]
    assert all(isinstance(rule, Rule) for rule in transition)
    assert page().count("(at a change)") == len(transition)
