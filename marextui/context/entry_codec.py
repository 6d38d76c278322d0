"""Log entries as plain JSON values, and back; an entry of a newer version is told from a damaged one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, get_args

from marextui.context.entries import (
    CompactionChecked,
    CompactionCommitted,
    Entry,
    FileSeen,
    FilesSeen,
    Folded,
    InputRef,
    InputsOmitted,
    MessageAdded,
    OmissionRef,
    OutputsOmitted,
    OutputStored,
    ShortenedRef,
    Summary,
    SummaryItem,
    SummarySection,
    TextsShortened,
)
from marextui.context.messages import Message, Part, ToolCall, part_from_wire, part_to_wire
from marextui.context.project_entries import decode_project

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Entry)}


class UnknownEntry(ValueError):
    """The log holds an entry kind this version does not know (written by a newer one)."""


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return part_to_wire(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def encode(entry: Entry) -> tuple[str, dict[str, Any]]:
    """(kind, JSON-able payload) of `entry`."""
    payload: dict[str, Any] = _plain(entry)
    return type(entry).__name__, payload


def _message(raw: dict[str, Any]) -> Message:
    content = raw["content"]
    return Message(
        id=raw["id"],
        role=raw["role"],
        content=content if isinstance(content, str) else tuple(part_from_wire(p) for p in content),
        tool_calls=tuple(ToolCall(**c) for c in raw["tool_calls"]),
        tool_call_id=raw["tool_call_id"],
        name=raw["name"],
        reasoning=raw["reasoning"],
        is_error=raw["is_error"],
        origin=raw["origin"],
        turn=raw["turn"],
    )


def _summary(raw: dict[str, Any]) -> Summary:
    return Summary(
        tuple(
            SummarySection(
                s["title"],
                tuple(SummaryItem(**{**i, "sources": tuple(i["sources"])}) for i in s["items"]),
                tuple(Folded(**f) for f in s.get("folded", ())),
            )
            for s in raw["sections"]
        )
    )


def decode(kind: str, payload: dict[str, Any]) -> Entry:
    """Inverse of `encode`. Raises `UnknownEntry` for a kind of a newer version."""
    cls = _KINDS.get(kind)
    if cls is None:
        raise UnknownEntry(kind)
    known = {f.name for f in fields(cls)}
    data = {k: v for k, v in payload.items() if k in known}
    if cls is MessageAdded:
        data["message"] = _message(data["message"])
    elif cls is OutputStored:
        data["ref"] = OmissionRef(**data["ref"])
    elif cls is OutputsOmitted:
        data["refs"] = tuple(OmissionRef(**r) for r in data["refs"])
    elif cls is InputsOmitted:
        data["refs"] = tuple(InputRef(**{**r, "path": tuple(r["path"])}) for r in data["refs"])
    elif cls is TextsShortened:
        data["refs"] = tuple(ShortenedRef(**r) for r in data["refs"])
    elif cls is CompactionChecked:
        data["lost"] = tuple(data["lost"])
    elif cls is FilesSeen:
        data["files"] = tuple(FileSeen(**f) for f in data["files"])
    elif cls is CompactionCommitted:
        data["summary"] = _summary(data["summary"])
    else:
        data = decode_project(cls, data)
    entry: Entry = cls(**data)
    return entry
