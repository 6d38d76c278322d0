"""A call's arguments as the model wrote them, made into checked values or a sentence it can act on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from marextui.tools.types import ToolSpec

ALIASES: dict[str, tuple[str, ...]] = {
    "file_path": ("path", "filename", "file", "filepath", "file_name", "target_file", "absolute_path"),
    "path": ("file_path", "dir", "directory", "dir_path", "directory_path", "folder", "filename", "file", "root"),
    "command": ("cmd", "script", "bash_command", "shell_command"),
    "cwd": ("workdir", "working_directory", "working_dir", "directory"),
    "timeout": ("timeout_seconds", "timeout_s"),
    "old_string": ("old_str", "old_text", "old", "search"),
    "new_string": ("new_str", "new_text", "new", "replace", "replacement"),
    "replace_all": ("all", "global"),
    "content": ("contents", "text", "file_text", "file_content"),
    "pattern": ("query", "regex", "glob_pattern", "search"),
    "glob": ("include", "file_pattern"),
    "ignore_case": ("case_insensitive", "-i", "i"),
    "context": ("context_lines", "-C", "C"),
    "offset": ("start", "start_line", "line_offset"),
    "limit": ("line_count", "num_lines", "max_lines"),
    "length": ("limit", "count"),
    "content_id": ("id", "omitted_id", "omission_id", "contentId"),
    "query": ("search", "pattern"),
    "name": ("slug", "page", "tracker", "title", "file", "file_path", "path"),
}
"""Other names models use for a parameter; one is taken only when the tool has no parameter of that very name."""

CHATTER = frozenset({"description", "explanation", "reason", "thought", "toolSummary"})
"""Keys that only explain the call to people: dropped without a word where the tool has no such parameter."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INTEGER = re.compile(r"[+-]?\d{1,18}")


class ArgumentError(ValueError):
    """The arguments cannot be used; the text says why and what is expected, for the model."""


def expected(spec: ToolSpec) -> str:
    """One line like `{file_path: string, offset?: integer}`."""
    required = set(spec.parameters.get("required", ()))
    parts = [
        f"{key}{'' if key in required else '?'}: {schema.get('type', 'any')}"
        for key, schema in spec.parameters.get("properties", {}).items()
    ]
    return "{" + ", ".join(parts) + "}"


def load_object(raw: str) -> dict[str, Any]:
    """The JSON object in `raw`. Empty text and `null` are `{}`; a JSON string that holds an object is unwrapped once.

    Nothing else is guessed (no single quotes, no trailing commas). Raises `ArgumentError` with the reason.
    """
    if not raw.strip():
        return {}
    value = _loads(raw)
    if isinstance(value, str):
        value = _loads(value) if value.strip() else {}
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ArgumentError(f"the arguments must be a JSON object, not {_kind(value)}")
    return value


def _loads(raw: str) -> Any:
    try:
        # A raw newline or tab inside a string is what small models write most; it has one meaning only.
        return json.loads(raw, strict=False)
    except json.JSONDecodeError as error:
        raise ArgumentError(f"the arguments are not valid JSON ({error.msg}, at character {error.pos + 1})") from None
    except RecursionError:
        raise ArgumentError("the arguments are nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise ArgumentError(f"the arguments are not valid JSON ({error})") from None


def parse(spec: ToolSpec, raw: str) -> dict[str, Any]:
    """Checked arguments of a call of `spec`. Raises `ArgumentError` whose text starts with the tool's name."""
    try:
        given = load_object(raw)
        return _check(spec, given)
    except ArgumentError as error:
        raise ArgumentError(f"{spec.name}: {error}. Expected {expected(spec)}.") from None


def _check(spec: ToolSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Mapping[str, Any]] = spec.parameters.get("properties", {})
    named: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in given.items():
        name = key if key in properties else _canonical(key, properties, given)
        if name is None:
            if key not in CHATTER:
                unknown.append(key)
        elif name not in named:
            named[name] = value
        elif named[name] != value:
            raise ArgumentError(f"{name} is given twice with different values")
    # null is how many models leave an optional parameter out
    named = {key: value for key, value in named.items() if value is not None}
    problems: list[str] = []
    missing = [key for key in spec.parameters.get("required", ()) if key not in named]
    if missing:
        problems.append(f"missing {', '.join(missing)}")
    if unknown:
        problems.append(f"unknown {', '.join(sorted(unknown))}")
    checked: dict[str, Any] = {}
    for key in properties:  # the schema's order, so that equal calls are equal texts
        if key in named:
            try:
                checked[key] = _value(named[key], str(properties[key].get("type", "")))
            except ArgumentError as error:
                problems.append(f"{key} {error}")
    if problems:
        raise ArgumentError("; ".join(problems))
    return checked


def _canonical(key: str, properties: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    snake = _CAMEL.sub("_", key).lower()
    if snake in properties:
        return snake
    for name in properties:
        if name not in given and (snake in ALIASES.get(name, ()) or key in ALIASES.get(name, ())):
            return name
    return None


def _value(value: Any, kind: str) -> Any:
    if kind == "string":
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)  # small models write a number bare
        raise ArgumentError(f"must be a string, not {_kind(value)}")
    if kind == "integer":
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            return int(value)
        if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
            return int(value)
        raise ArgumentError(f"must be an integer, not {_kind(value)}")
    if kind == "boolean":
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
            return value.strip().lower() == "true"
        raise ArgumentError(f"must be true or false, not {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return "null"
