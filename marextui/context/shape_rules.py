"""What each provider refuses, checked on JSON values alone, without the code that writes them (I1; cases 17–27).

Written from the providers' references and their error messages, not from `shapes`: a mistake there is seen here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_OPENAI_ID = re.compile(r"[\x21-\x7e]{1,40}")
_STRICT_ID = re.compile(r"[a-zA-Z0-9]{9}")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_DATA_URL = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,(.+)", re.DOTALL)
_WEB_URL = re.compile(r"https?://\S+")
_ANTHROPIC_MEDIA = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_GEMINI_MEDIA = {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "audio/wav", "audio/mp3"}


def shape_violations(value: object, shape: str) -> tuple[str, ...]:
    """Rules of `shape` that the request fragment `value` breaks, as sentences with their place; () for a valid one.

    Looks at: JSON-ability, roles and their order, the opening user, empty content, pairing and counts of calls and
    results, ids (letters, uniqueness), arguments as JSON objects, media types, thinking where none may stand. Raises
    ValueError for an unknown shape.
    """
    rules: dict[str, Callable[[Any], Iterator[str]]] = {
        "openai": lambda v: _openai(v, _OPENAI_ID),
        "strict": _strict,
        "anthropic": _anthropic,
        "gemini": _gemini,
    }
    if shape not in rules:
        raise ValueError(f"there is no shape {shape!r}; there are {', '.join(rules)}")
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        return (f"not JSON: {problem}",)
    return tuple(rules[shape](value))


def _blank(text: object) -> bool:
    return not isinstance(text, str) or not text.strip()


def _keys(where: str, value: Mapping[str, Any], allowed: str, required: str = "") -> Iterator[str]:
    yield from (f"{where}: unknown key {k}" for k in value if k not in allowed.split())
    yield from (f"{where}: {k} is missing" for k in required.split() if k not in value)


def _objects(value: object) -> list[dict[str, Any]] | None:
    """A list of objects with something in it."""
    fine = isinstance(value, list) and value and all(isinstance(v, dict) for v in value)
    return list(value) if fine and isinstance(value, list) else None


def _is_object_text(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_base64(data: object) -> bool:
    return isinstance(data, str) and len(data) % 4 == 0 and bool(_BASE64.fullmatch(data))


def _once(where: str, call_id: object, pattern: re.Pattern[str], seen: set[str]) -> Iterator[str]:
    if not isinstance(call_id, str) or not pattern.fullmatch(call_id):
        yield f"{where}: the call id {call_id!r} is not of the letters or length allowed"
    elif call_id in seen:
        yield f"{where}: the call id {call_id} was used before"
    else:
        seen.add(call_id)


# OpenAI, and templates that insist on alternation


def _openai(value: object, id_pattern: re.Pattern[str]) -> Iterator[str]:
    messages = [] if value == [] else _objects(value)
    if messages is None:
        yield "messages: not a list of objects"
        return
    seen: set[str] = set()
    waiting: list[str] = []
    opened = False
    for i, message in enumerate(messages):
        where, role = f"messages[{i}]", message.get("role")
        if role != "tool" and waiting:
            yield f"{where}: calls without a result: {', '.join(waiting)}"
            waiting = []
        if role == "system":
            if i:
                yield f"{where}: a system message after the first place"
            yield from _keys(where, message, "role content")
            if _blank(message.get("content")):
                yield f"{where}: empty system message"
            continue
        if not opened and role != "user":
            yield f"{where}: the conversation opens with {role}"
        opened = True
        if role == "user":
            yield from _keys(where, message, "role content")
            yield from _openai_content(where, message.get("content"))
        elif role == "assistant":
            yield from _keys(where, message, "role content tool_calls", "content")
            yield from _openai_assistant(where, message, id_pattern, seen)
            waiting = [str(c.get("id")) for c in _objects(message.get("tool_calls")) or ()]
        elif role == "tool":
            yield from _keys(where, message, "role content tool_call_id name", "content tool_call_id")
            if not isinstance(message.get("content"), str):
                yield f"{where}: the content of a result is not text"
            if message.get("tool_call_id") in waiting[:1]:
                waiting.pop(0)
            elif message.get("tool_call_id") in waiting:
                yield f"{where}: the result of {message.get('tool_call_id')} is not in call order"
                waiting.remove(message["tool_call_id"])
            else:
                yield f"{where}: a result without its call right before it: {message.get('tool_call_id')!r}"
        else:
            yield f"{where}: unknown role {role!r}"
    if waiting:
        yield f"the end: calls without a result: {', '.join(waiting)}"


def _openai_assistant(
    where: str, message: Mapping[str, Any], id_pattern: re.Pattern[str], seen: set[str]
) -> Iterator[str]:
    content = message.get("content")
    if content is not None and _blank(content):
        yield f"{where}: empty assistant text"
    if "tool_calls" not in message:
        if content is None:
            yield f"{where}: an assistant message without text or calls"
        return
    calls = _objects(message["tool_calls"])
    if calls is None:
        yield f"{where}: tool_calls is not a list of objects with something in it"
    for call in calls or ():
        yield from _once(where, call.get("id"), id_pattern, seen)
        function = call.get("function")
        if call.get("type") != "function" or not isinstance(function, dict):
            yield f"{where}: a call that is no function call"
            continue
        if not isinstance(function.get("name"), str) or not _NAME.fullmatch(function["name"]):
            yield f"{where}: the tool name {function.get('name')!r} is not allowed"
        if not _is_object_text(function.get("arguments")):
            yield f"{where}: arguments are not the text of a JSON object"


def _openai_content(where: str, content: object) -> Iterator[str]:
    if isinstance(content, str):
        if _blank(content):
            yield f"{where}: empty user message"
        return
    parts = _objects(content)
    if parts is None:
        yield f"{where}: content is neither text nor a list of parts"
    for part in parts or ():
        kind = part.get("type")
        held = part.get(kind) if isinstance(kind, str) else None
        if kind == "text":
            if _blank(held):
                yield f"{where}: empty text part"
        elif not isinstance(held, dict) or kind not in {"image_url", "input_audio", "file"}:
            yield f"{where}: unknown part {kind!r}"
        elif kind == "image_url":
            url = held.get("url")
            data = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
            if data is None and not (isinstance(url, str) and _WEB_URL.fullmatch(url)):
                yield f"{where}: an image that is neither an address nor data of a known media type"
            if data is not None and not _is_base64(data.group(2)):
                yield f"{where}: image data is not base64"
        elif kind == "input_audio" and (held.get("format") not in {"wav", "mp3"} or not _is_base64(held.get("data"))):
            yield f"{where}: audio that is not base64 of a known format"


def _strict(value: object) -> Iterator[str]:
    yield from _openai(value, _STRICT_ID)
    wanted = "user"
    for i, message in enumerate(_objects(value) or ()):
        role = message.get("role")
        if role == "user" or (role == "assistant" and "tool_calls" not in message):
            if role != wanted:
                yield f"messages[{i}]: {role} where the template wants {wanted}"
            wanted = "assistant" if role == "user" else "user"


# Anthropic


def _anthropic(value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "not an object"
        return
    yield from _keys("request", value, "system messages", "messages")
    if "system" in value and _blank(value["system"]):
        yield "system: empty"
    messages = [] if value.get("messages") == [] else _objects(value.get("messages"))
    if messages is None:
        yield "messages: not a list of objects"
        return
    seen: set[str] = set()
    asked: list[str] = []
    last_request = max((i for i, m in enumerate(messages) if m.get("role") == "user" and not _results(m)), default=-1)
    for i, message in enumerate(messages):
        where, role = f"messages[{i}]", message.get("role")
        if role != ("user", "assistant")[i % 2]:
            yield f"{where}: {role} where {('user', 'assistant')[i % 2]} must stand"
        yield from _keys(where, message, "role content")
        blocks = _objects(message.get("content"))
        if blocks is None:
            yield f"{where}: no content blocks"
            blocks = []
        results = [str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
        if results != asked:
            yield f"{where}: results {results} for the calls {asked} right before"
        if any(b.get("type") != "tool_result" for b in blocks[: len(results)]):
            yield f"{where}: tool results must come first"
        asked = [str(b.get("id")) for b in blocks if b.get("type") == "tool_use"] if role == "assistant" else []
        for block in blocks:
            if role == "assistant":
                yield from _anthropic_said(where, block, seen, thinking=i > last_request)
            else:
                yield from _anthropic_given(where, block, nested=False)
        kinds = [b.get("type") for b in blocks]
        if role == "assistant" and kinds and kinds[-1] in {"thinking", "redacted_thinking"}:
            yield f"{where}: thinking must not end a message"
        thoughts = sum(k in {"thinking", "redacted_thinking"} for k in kinds)
        if any(k not in {"thinking", "redacted_thinking"} for k in kinds[:thoughts]):
            yield f"{where}: thinking must lead its message"
    if asked:
        yield f"the end: calls without a result: {', '.join(asked)}"
    if messages and messages[-1].get("role") == "assistant":
        end = (_objects(messages[-1].get("content")) or [{}])[-1].get("text")
        if isinstance(end, str) and end != end.rstrip():
            yield "the end: the last assistant text ends with white space"


def _results(message: Mapping[str, Any]) -> bool:
    return any(b.get("type") == "tool_result" for b in _objects(message.get("content")) or ())


def _anthropic_said(where: str, block: Mapping[str, Any], seen: set[str], *, thinking: bool) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text":
        yield from _keys(where, block, "type text")
        if _blank(block.get("text")):
            yield f"{where}: empty text block"
    elif kind == "tool_use":
        yield from _keys(where, block, "type id name input")
        yield from _once(where, block.get("id"), _ANTHROPIC_ID, seen)
        if not isinstance(block.get("name"), str) or not _NAME.fullmatch(block["name"]):
            yield f"{where}: the tool name {block.get('name')!r} is not allowed"
        if not isinstance(block.get("input"), dict):
            yield f"{where}: input is not an object"
    elif kind in {"thinking", "redacted_thinking"}:
        if not thinking:
            yield f"{where}: thinking outside the running tool loop"
        if not block.get("signature" if kind == "thinking" else "data"):
            yield f"{where}: thinking without its signature"
    else:
        yield f"{where}: a block of type {kind!r} in an assistant message"


def _anthropic_given(where: str, block: Mapping[str, Any], *, nested: bool) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text":
        yield from _keys(where, block, "type text")
        if _blank(block.get("text")):
            yield f"{where}: empty text block"
    elif kind == "image" or (kind == "document" and not nested):
        source = block.get("source")
        if not isinstance(source, dict):
            yield f"{where}: {kind} without a source"
        elif kind == "image":
            yield from _anthropic_image(where, source)
    elif kind == "tool_result" and not nested:
        yield from _keys(where, block, "type tool_use_id content is_error")
        inner = _objects(block.get("content"))
        if "content" in block and inner is None:
            yield f"{where}: a result with empty content"
        if block.get("is_error") and not inner:
            yield f"{where}: an error that says nothing"
        for part in inner or ():
            yield from _anthropic_given(where, part, nested=True)
    else:
        yield f"{where}: a block of type {kind!r} in a user message"


def _anthropic_image(where: str, source: Mapping[str, Any]) -> Iterator[str]:
    if source.get("type") == "base64":
        if source.get("media_type") not in _ANTHROPIC_MEDIA:
            yield f"{where}: the media type {source.get('media_type')!r} is not taken"
        if not _is_base64(source.get("data")):
            yield f"{where}: image data is not base64"
    elif source.get("type") != "url" or not isinstance(source.get("url"), str) or not _WEB_URL.match(source["url"]):
        yield f"{where}: an image source that is neither base64 nor an address"


# Gemini


def _gemini(value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "not an object"
        return
    yield from _keys("request", value, "systemInstruction contents", "contents")
    if "systemInstruction" in value:
        system = value["systemInstruction"]
        parts = _objects(system.get("parts")) if isinstance(system, dict) else None
        if not parts or any(set(p) != {"text"} or _blank(p["text"]) for p in parts):
            yield "systemInstruction: not made of text"
    contents = [] if value.get("contents") == [] else _objects(value.get("contents"))
    if contents is None:
        yield "contents: not a list of objects"
        return
    seen: set[str] = set()
    asked: list[tuple[object, object]] = []
    for i, content in enumerate(contents):
        where, role = f"contents[{i}]", content.get("role")
        if role != ("user", "model")[i % 2]:
            yield f"{where}: {role} where {('user', 'model')[i % 2]} must stand"
        yield from _keys(where, content, "role parts")
        parts = _objects(content.get("parts"))
        if parts is None:
            yield f"{where}: no parts"
            parts = []
        calls = [p["functionCall"] for p in parts if isinstance(p.get("functionCall"), dict)]
        answers = [p["functionResponse"] for p in parts if isinstance(p.get("functionResponse"), dict)]
        if len(answers) != len(asked):
            yield f"{where}: {len(answers)} responses to {len(asked)} calls"
        elif [(a.get("id"), a.get("name")) for a in answers] != asked:
            yield f"{where}: responses are not to the calls right before, in their order"
        if answers:
            if any("functionResponse" not in p for p in parts[: len(answers)]):
                yield f"{where}: function responses must come first"
            if any("text" in p for p in parts):
                yield f"{where}: text beside function responses"
        asked = [(c.get("id"), c.get("name")) for c in calls]
        for part in parts:
            yield from _gemini_part(where, part, str(role))
        for call in calls:
            yield from _once(where, call.get("id"), _ANTHROPIC_ID, seen)
    if asked:
        yield f"the end: {len(asked)} calls without a response"


def _gemini_part(where: str, part: Mapping[str, Any], role: str) -> Iterator[str]:
    if len(part) != 1:
        yield f"{where}: a part must hold one thing, not {sorted(part)}"
        return
    kind, held = next(iter(part.items()))
    if kind == "text":
        if _blank(held):
            yield f"{where}: empty text"
        return
    if not isinstance(held, dict):
        yield f"{where}: {kind} is not an object"
    elif kind == "functionCall" and role == "model":
        yield from _keys(where, held, "id name args")
        if not isinstance(held.get("name"), str) or not _NAME.fullmatch(held["name"]):
            yield f"{where}: the function name {held.get('name')!r} is not allowed"
        if not isinstance(held.get("args"), dict):
            yield f"{where}: args is not an object"
    elif kind == "functionResponse" and role == "user":
        yield from _keys(where, held, "id name response")
        if not isinstance(held.get("response"), dict) or not held["response"]:
            yield f"{where}: a response that is no object"
    elif kind == "inlineData" and role == "user":
        if held.get("mimeType") not in _GEMINI_MEDIA:
            yield f"{where}: the media type {held.get('mimeType')!r} is not taken"
        if not _is_base64(held.get("data")):
            yield f"{where}: data is not base64"
    elif kind == "fileData" and role == "user":
        if held.get("mimeType") not in _GEMINI_MEDIA or not _WEB_URL.match(str(held.get("fileUri"))):
            yield f"{where}: a file without a media type that is taken, or without an address"
    else:
        yield f"{where}: {kind} in a {role} content"
