"""A view in the request shape of a provider: OpenAI, Anthropic, Gemini, strict alternation (I1; cases 17–27).

Conversion is total: any messages, in any order, give a fragment without violations, since they are repaired first
(`validate.repair`). It is a pure function of the messages read left to right: between rewrites the fragment of a longer
view begins with that of the shorter one (I7), but for signed thinking, which only the running tool loop keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from marextui.context.messages import ImagePart, Message, OtherPart, ToolCall
from marextui.context.shape_parts import (
    ANTHROPIC_ID,
    GEMINI_IMAGES,
    MISTRAL_ID,
    OPENAI_ID,
    SUFFIXES,
    USUAL_IMAGES,
    CallIds,
    audio_of,
    call_input,
    instead,
    is_signed,
    is_thinking,
    parts_of,
    picture_of,
    plain_text,
    raw_part,
    said,
    tool_name,
    without_surrogates,
)
from marextui.context.shape_rules import shape_violations
from marextui.context.validate import EMPTY_MESSAGE, NO_REPLY, repair
from marextui.context.wire import IMAGE_FOLLOWS

Shape = Literal["openai", "anthropic", "gemini", "strict"]
"""`strict` is OpenAI's form for chat templates that insist on user and assistant in turn, as Mistral's do."""
SHAPES: tuple[Shape, ...] = get_args(Shape)

EMPTY_OUTPUT = "(no output)"
"""Text of a failed tool call that said nothing: Anthropic refuses an empty error."""


def to_shape(messages: Sequence[Message], shape: Shape) -> Any:
    """The JSON-able request fragment of `messages` for `shape`, without violations (`shape_violations`).

    openai, strict: a list of messages. anthropic: {"system"?, "messages"}. gemini: {"systemInstruction"?, "contents"}.
    The system part is the leading system message, absent when there is none. Call ids are kept where the provider takes
    them and they are new, else replaced by a digest of the id and of how often it came before. Reasoning is never sent,
    except signed Anthropic blocks (an `OtherPart`) of the tool loop at the end, verbatim (case 25).
    """
    view = repair(messages)[0]
    if shape == "anthropic":
        return _anthropic(view)
    if shape == "gemini":
        return _gemini(view)
    return _openai(view, strict=shape == "strict")


def write_shape(messages: Sequence[Message], shape: Shape) -> list[dict[str, Any]]:
    """`to_shape` as one JSON object per line of a file: the system part (if any), then each message or content."""
    value = to_shape(messages, shape)
    if isinstance(value, list):
        return list(value)
    head = [{key: part} for key, part in value.items() if key in {"system", "systemInstruction"}]
    return head + list(value.get("messages") or value.get("contents") or ())


# OpenAI and strict templates


def _openai(view: Sequence[Message], *, strict: bool) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    ids = CallIds(MISTRAL_ID, "") if strict else CallIds(OPENAI_ID)
    group: dict[str, tuple[str, str]] = {}
    moved: list[dict[str, Any]] = []

    def show_moved() -> None:
        if moved:
            if strict:  # a user message right after a tool result counts as two users in a row
                out.append({"role": "assistant", "content": NO_REPLY})
            out.append({"role": "user", "content": list(moved)})
            moved.clear()

    for message in view:
        if message.role == "tool":
            texts = []
            for part in said(message):
                block = _openai_part(part)
                if block["type"] == "image_url":
                    moved.append(block)
                    texts.append(IMAGE_FOLLOWS)
                else:
                    texts.append(block["text"] if block["type"] == "text" else instead(part))
            call_id, name = group[message.tool_call_id]
            named = {"name": name} if strict else {}
            out.append({"role": "tool", "tool_call_id": call_id, **named, "content": "\n".join(texts)})
            continue
        show_moved()
        if message.role == "assistant":
            group = {c.id: (ids.give(c.id), tool_name(c.name)) for c in message.tool_calls}
            text = plain_text(message) or (None if message.tool_calls else NO_REPLY)
            wire: dict[str, Any] = {"role": "assistant", "content": text}
            if message.tool_calls:
                wire["tool_calls"] = [_openai_call(c, *group[c.id]) for c in message.tool_calls]
            out.append(wire)
        elif message.role == "system":
            if text := plain_text(message):
                out.append({"role": "system", "content": text})
        else:
            blocks = [_openai_part(part) for part in said(message)]
            only_text = all(b["type"] == "text" for b in blocks)
            content = "\n".join(b["text"] for b in blocks) or EMPTY_MESSAGE if only_text else blocks
            out.append({"role": "user", "content": content})
    show_moved()
    return out


def _openai_call(call: ToolCall, call_id: str, name: str) -> dict[str, Any]:
    arguments = without_surrogates(call.arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _openai_part(part: ImagePart | OtherPart | str) -> dict[str, Any]:
    if isinstance(part, ImagePart) and (picture := picture_of(part, USUAL_IMAGES)):
        url = picture.url or f"data:{picture.media_type};base64,{picture.data}"
        detail = {"detail": part.detail} if part.detail in {"low", "high", "auto"} else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if isinstance(part, OtherPart):
        raw = raw_part(part)
        if audio := audio_of(raw):
            held = {"data": audio[1], "format": audio[0].removeprefix("audio/")}
            return {"type": "input_audio", "input_audio": held}
        if raw.get("type") == "file" and isinstance(raw.get("file"), Mapping):
            return {"type": "file", "file": raw["file"]}
    return {"type": "text", "text": instead(part)}


# Anthropic


def _anthropic(view: Sequence[Message]) -> dict[str, Any]:
    ids = CallIds(ANTHROPIC_ID)
    group: dict[str, str] = {}
    fragment: dict[str, Any] = {}
    out: list[dict[str, Any]] = []
    thinking_from = _thinking_from(view)

    def say(role: str, blocks: Sequence[dict[str, Any]]) -> None:
        if out and out[-1]["role"] == role:
            out[-1]["content"].extend(blocks)
        else:
            out.append({"role": role, "content": list(blocks)})

    for i, message in enumerate(view):
        if message.role == "system":
            if text := plain_text(message):
                fragment["system"] = text
        elif message.role == "assistant":
            blocks: list[dict[str, Any]] = []
            if i >= thinking_from:
                blocks.extend(
                    dict(raw_part(p)) for p in parts_of(message) if isinstance(p, OtherPart) and is_thinking(p)
                )
            blocks.extend(_text_block(instead(p)) for p in said(message))
            group = {c.id: ids.give(c.id) for c in message.tool_calls}
            blocks.extend(
                {"type": "tool_use", "id": group[c.id], "name": tool_name(c.name), "input": call_input(c)}
                for c in message.tool_calls
            )
            if all(b["type"] in {"thinking", "redacted_thinking"} for b in blocks):
                blocks.append(_text_block(NO_REPLY))
            say("assistant", blocks)
        else:
            said_blocks = [_anthropic_part(p, nested=message.role == "tool") for p in said(message)]
            if message.role == "tool":
                say("user", [_anthropic_result(group[message.tool_call_id], said_blocks, message.is_error)])
            else:
                say("user", said_blocks or [_text_block(EMPTY_MESSAGE)])
    if out and out[-1]["role"] == "assistant" and out[-1]["content"][-1]["type"] == "text":
        out[-1]["content"][-1] = _text_block(out[-1]["content"][-1]["text"].rstrip())
    fragment["messages"] = out
    return fragment


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _anthropic_result(call_id: str, blocks: list[dict[str, Any]], failed: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if failed and not blocks:
        blocks = [_text_block(EMPTY_OUTPUT)]
    if blocks:
        result["content"] = blocks
    if failed:
        result["is_error"] = True
    return result


def _anthropic_part(part: ImagePart | OtherPart | str, *, nested: bool) -> dict[str, Any]:
    if isinstance(part, ImagePart) and (picture := picture_of(part, USUAL_IMAGES)):
        if picture.url:
            source = {"type": "url", "url": picture.url}
        else:
            source = {"type": "base64", "media_type": picture.media_type, "data": picture.data}
        return {"type": "image", "source": source}
    if isinstance(part, OtherPart) and not nested:
        raw = raw_part(part)
        if raw.get("type") == "document" and isinstance(raw.get("source"), Mapping):
            return dict(raw)
    return _text_block(instead(part))


def _thinking_from(view: Sequence[Message]) -> int:
    """Where signed thinking may be sent: from the last request on, if its tool loop has it whole (cases 25, 26).

    Thinking of earlier turns is not wanted; in the running loop the first reply must open with it and every block must
    be signed and lead its message, else all of it goes.
    """
    start = max((i for i, m in enumerate(view) if m.role == "user"), default=len(view))
    first = True
    for message in view[start:]:
        if message.role != "assistant":
            continue
        marks = [is_thinking(p) for p in parts_of(message)]
        count = sum(marks)
        signed = all(is_signed(raw_part(p)) for p in parts_of(message) if isinstance(p, OtherPart) and is_thinking(p))
        if not signed or not all(marks[:count]) or (first and not count):
            return len(view)
        first = False
    return start


# Gemini


def _gemini(view: Sequence[Message]) -> dict[str, Any]:
    ids = CallIds(ANTHROPIC_ID)
    group: dict[str, tuple[str, str]] = {}
    fragment: dict[str, Any] = {}
    out: list[dict[str, Any]] = []
    aside: list[dict[str, Any]] = []

    def show_aside() -> None:
        """Images of tool results stand after all responses of their group: those are counted from the start."""
        if aside:
            out[-1]["parts"].extend(aside)
            aside.clear()

    for message in view:
        if message.role == "tool":
            call_id, name = group[message.tool_call_id]
            parts = [_gemini_part(p) for p in said(message)]
            text = "\n".join(p["text"] for p in parts if "text" in p)
            aside.extend(p for p in parts if "text" not in p)
            response = {"error": text or EMPTY_OUTPUT} if message.is_error else {"result": text}
            answer = {"functionResponse": {"id": call_id, "name": name, "response": response}}
            if out[-1]["role"] == "user":
                out[-1]["parts"].append(answer)
            else:
                out.append({"role": "user", "parts": [answer]})
            continue
        show_aside()
        if message.role == "system":
            if text := plain_text(message):
                fragment["systemInstruction"] = {"parts": [{"text": text}]}
        elif message.role == "assistant":
            parts = [{"text": instead(p)} for p in said(message)]
            group = {c.id: (ids.give(c.id), tool_name(c.name)) for c in message.tool_calls}
            for call in message.tool_calls:
                call_id, name = group[call.id]
                parts.append({"functionCall": {"id": call_id, "name": name, "args": call_input(call)}})
            out.append({"role": "model", "parts": parts or [{"text": NO_REPLY}]})
        else:
            shown = [_gemini_part(p) for p in said(message)]
            out.append({"role": "user", "parts": shown or [{"text": EMPTY_MESSAGE}]})
    show_aside()
    fragment["contents"] = out
    return fragment


def _gemini_part(part: ImagePart | OtherPart | str) -> dict[str, Any]:
    if isinstance(part, ImagePart) and (picture := picture_of(part, GEMINI_IMAGES)):
        if not picture.url:
            return {"inlineData": {"mimeType": picture.media_type, "data": picture.data}}
        kind = SUFFIXES.get(picture.url.partition("?")[0].rpartition(".")[2].lower())
        if kind:  # the type of a file must be said
            return {"fileData": {"mimeType": kind, "fileUri": picture.url}}
    if isinstance(part, OtherPart) and (audio := audio_of(raw_part(part))):
        return {"inlineData": {"mimeType": audio[0], "data": audio[1]}}
    return {"text": instead(part)}


__all__ = ["SHAPES", "Shape", "shape_violations", "to_shape", "write_shape"]
