"""JSON merge patches (RFC 7396) of a spec: the one for a file, and the one that reverts it. Pure."""

from __future__ import annotations

from typing import Any

from herdkeeper.shared.objects import Json


def asked_for(declared: Json, applied_before: Json) -> Json:
    """Returns what `kubectl apply` of a spec would change: set its fields, and remove those that were applied before but are gone."""
    patch: Json = {name: None for name in applied_before if name not in declared}
    for name, value in declared.items():
        before = applied_before.get(name)
        patch[name] = asked_for(value, before if isinstance(before, dict) else {}) if isinstance(value, dict) else value
    return patch


def back_to(earlier: Json, changed: Json, present: Json) -> Json:
    """Returns the patch that takes back what was changed, except fields that somebody else has changed since. None stands for no value."""
    patch: Json = {}
    for name in dict.fromkeys((*earlier, *changed)):
        before, then, now = (spec.get(name) for spec in (earlier, changed, present))
        if isinstance(then, dict) and isinstance(now, dict) and (isinstance(before, dict) or now != then):
            below = back_to(before if isinstance(before, dict) else {}, then, now)
            patch.update({name: below} if below else {})
        elif now == then != before:
            patch[name] = before
    return patch


def merged(stored: Any, patch: Any) -> Any:
    """Returns the result of a merge patch on a value."""
    if not isinstance(patch, dict):
        return patch
    kept = {name: value for name, value in (stored.items() if isinstance(stored, dict) else ()) if patch.get(name, value) is not None}
    return {**kept, **{name: merged(kept.get(name), value) for name, value in patch.items() if value is not None}}
