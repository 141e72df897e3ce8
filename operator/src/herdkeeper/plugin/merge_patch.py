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


def back_to(earlier: Json, present: Json) -> Json:
    """Returns the patch that restores the earlier spec."""
    patch: Json = {name: None for name in present if name not in earlier}
    for name, value in earlier.items():
        now = present.get(name)
        if isinstance(value, dict) and isinstance(now, dict):
            below = back_to(value, now)
            patch.update({name: below} if below else {})
        elif value != now:
            patch[name] = value
    return patch


def merged(stored: Any, patch: Any) -> Any:
    """Returns the result of a merge patch on a value."""
    if not isinstance(patch, dict):
        return patch
    kept = {name: value for name, value in (stored.items() if isinstance(stored, dict) else ()) if patch.get(name, value) is not None}
    return {**kept, **{name: merged(kept.get(name), value) for name, value in patch.items() if value is not None}}
