"""What a server's refusal means: status and body → `ModelError` (section C "Overflow detection", D7, case 105)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx

from marextui.context.redaction import redact as without_secrets
from marextui.models.lenient import as_int, as_positive, as_text, at, parse_json
from marextui.models.types import ErrorKind, ModelError

_QUOTE = 300
"""Characters of a server's own words that are shown."""

_OVERFLOW = re.compile(
    r"exceed_context_size_error|exceeds? the available context size|context[_ ]length[_ ]exceeded"
    r"|maximum context length|prompt is too long|input token count.{0,40}exceeds|too many tokens|context window"
    r"|prompt contains .{0,40}tokens|exceeds? (?:the )?(?:model'?s? )?(?:maximum )?(?:context|model length)"
    r"|(?:longer|greater) than the (?:model'?s? )?(?:maximum )?(?:context|model length)|context (?:the )?overflow"
    r"|maximum (?:prompt|model|allowed|sequence) length|max_seq_len|input is too long|reduce the length of"
    r"|tokens_limit_reached|max size: \d+ tokens|(?:inputs?|prompt)\b[^.]{0,60} must be <= \d+"
    r"|must have less than \d+ tokens|input length .{0,60}exceeds?|request \(\d+\) exceeds|model token limit"
    r"|(?:prompt|input) token(?:s| count)\b.{0,30}exceed|prompt tokens limit|range of input length"
    r"|reached (?:its|the) context length|more than max tokens allowed|exceed max message tokens"
    r"|context_window_exceeded|prompt_tokens_exceeded",
    re.IGNORECASE | re.DOTALL,
)
_BYTES = re.compile(
    r"(?:request|payload|entity|body|content)[\s_.-]{0,3}(?:entity |body |size |is |was |length )*too[\s_.]?large"
    r"|request exceeds the maximum size|(?:body|request|content.length).{0,40}exceed\w* .{0,40}"
    r"(?:\d ?[kmg]i?b\b|bytes|size limit|maximum size)|maximum (?:request|body|payload) size",
    re.IGNORECASE,
)
"""The request has too many bytes; that is not a matter of tokens (case 105)."""
_IMAGES = re.compile(
    r"image.{0,80}(?:too (?:large|big|many)|exceeds?|larger than|not supported|unsupported|invalid|could not be)"
    r"|(?:too many|at most \d+|unsupported|invalid|(?:could not|cannot|unable to|failed to) (?:process|identify|load"
    r"|decode|open|read|fetch|download))[ \w]{0,20} (?:image|picture|media)"
    r"|media (?:exceeds|is too large|type is not supported)|image/\w{3,5} media type|image appears to be"
    r"|no endpoints? .{0,40}support image"
    r"|does(?: not|n't) (?:support|accept|take) (?:image|vision|multimodal)|no (?:image|vision) support|mmproj"
    r"|image_url.{0,60}(?:not|only|unsupported|invalid)|unknown variant .?image_url|not a (?:multimodal|vision) model",
    re.IGNORECASE,
)
"""A picture is in the way: its size, their number, or that the model takes none (neighbours of case 102)."""
_REASONING = re.compile(
    r"reasoning_content.{0,80}(?:missing|required|must be|passed back|not (?:allowed|permitted|supported)|unsupported"
    r"|extra|unexpected|unknown)|(?:missing|require\w*|must|unexpected|unknown|unsupported|extra).{0,80}reasoning_content",
    re.IGNORECASE | re.DOTALL,
)
"""A server wants past reasoning sent back, or does not want it: some refuse a conversation without, some one with."""
_RATE = re.compile(
    r"rate[_ -]?limit|tokens per (?:min|hour|day)|requests per (?:min|hour|day)|\b[tr]p[md]\b|insufficient_quota|quota"
    r"|too many requests|resource_exhausted",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(
    r"jinja|roles must alternate|chat template|conversation roles|unknown role|cannot have 2 or more assistant",
    re.IGNORECASE,
)
_PASSING = frozenset({429, 500, 502, 503, 529})
"""Statuses of a server that may well answer the same request in a moment."""
_SPENT = re.compile(r"insufficient_quota|per day|billing|credit", re.IGNORECASE)
"""Refused for longer than anybody waits."""
_NUMBER = r"(\d[\d,_]*)"
_WINDOW_NUMBERS = tuple(
    re.compile(p, re.IGNORECASE | re.DOTALL)
    for p in (
        rf"available context size \({_NUMBER}",
        rf"maximum context length (?:is|of|:)?\s*{_NUMBER}",
        rf"{_NUMBER} maximum context length",
        rf"{_NUMBER} tokens > {_NUMBER} maximum",
        rf"maximum number of tokens(?: allowed)?(?: is)?[ (:]*{_NUMBER}",
        rf"context window (?:of|is|size)?\s*\(?{_NUMBER}",
        rf"context length of only {_NUMBER}",
        rf"maximum (?:model|prompt|allowed|sequence) length (?:of|is|\()\s*{_NUMBER}",
        rf"max_seq_len (?:of )?{_NUMBER}",
        rf"tokens? {_NUMBER} > {_NUMBER}",
        rf"exceed context limit: .{{0,40}}> {_NUMBER}",
        rf"max size: {_NUMBER}",
        rf"(?:inputs?|prompt)\b[^.]{{0,60}} must be <= {_NUMBER}",
        rf"model token limit: {_NUMBER}",
        rf"exceeds? the (?:configured )?limit of {_NUMBER}",
        rf"tokens limit exceeded: {_NUMBER} > {_NUMBER}",
        rf"range of input length should be \[\d+, {_NUMBER}\]",
        rf"context length of {_NUMBER}",
        rf"context length \({_NUMBER}",
        rf"n_ctx: {_NUMBER}",
        rf"must have less than {_NUMBER}",
        rf"cannot exceed {_NUMBER}",
        rf"exceeds \({_NUMBER}\)",
    )
)
_PROMPT_NUMBERS = tuple(
    re.compile(p, re.IGNORECASE | re.DOTALL)
    for p in (
        rf"request \({_NUMBER}(?: tokens)?\)",
        rf"exceed context limit: {_NUMBER} \+",
        rf"prompt \(length {_NUMBER}\)",
        rf"input length \({_NUMBER} tokens\)",
        rf"contains {_NUMBER} tokens",
        rf"prompt length {_NUMBER}",
        rf"prompt token count of {_NUMBER}",
        rf"\(requested: {_NUMBER}",
        rf"limit exceeded: {_NUMBER} >",
        rf"n_keep: {_NUMBER}",
        rf"input \({_NUMBER} tokens\)",
        rf"requested tokens \({_NUMBER}\)",
        rf"given: {_NUMBER}",
        rf"{_NUMBER} in the messages",
        rf"{_NUMBER} (?:tokens )?(?:of text|in your prompt|in the prompt|from the input|input tokens)",
        rf"{_NUMBER} tokens > ",
        rf"messages resulted in {_NUMBER} tokens",
        rf"prompt (?:contains|is|has)(?: at least)? {_NUMBER}",
        rf"input token count \({_NUMBER}",
        rf"requested (?:about )?{_NUMBER} tokens",
        rf"is {_NUMBER} tokens",
    )
)


_LEAST_WINDOW = 128
"""Tokens: a smaller number in the words of a refusal is about something else than a window."""


def _number(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(text):
            return as_int(found.group(found.lastindex or 1))
    return None


def redact(text: str, api_key: str) -> str:
    """`text` without the key, for servers that echo it, and without any other that they quote."""
    key = api_key.strip()
    return without_secrets(text.replace(key, "…") if len(key) >= 4 else text)


def error_text(body: object) -> str:
    """The sentence inside an error body, whatever its shape; "" when there is none."""
    if isinstance(body, str):
        return body.strip()
    if isinstance(body, list) and body:
        return error_text(body[0])
    if not isinstance(body, Mapping):
        return ""
    error = body.get("error", body)
    if isinstance(error, str):
        return error.strip()
    inner = as_text(at(error, "metadata", "raw"))  # OpenRouter wraps the real provider's words
    parts = [as_text(at(error, k)) for k in ("message", "detail", "msg")] + [inner]
    if isinstance(at(error, "detail"), list):
        parts.append(as_text(at(error, "detail", 0, "msg")))
    return " ".join(p.strip() for p in parts if p.strip())


def classify(
    status: int | None, raw: str, *, api_key: str = "", retry_after: str = "", in_stream: bool = False
) -> ModelError:
    """The `ModelError` for an error answer. `status` None: an error object inside a stream that gave no code."""
    body = parse_json(raw)
    said = redact(error_text(body) if body is not None else re.sub(r"<[^>]{0,500}>|\s+", " ", raw).strip(), api_key)
    type_and_code = f"{as_text(at(body, 'error', 'type'))} {as_text(at(body, 'error', 'code'))}"
    if status is None:
        status = as_int(at(body, "error", "code")) or as_int(at(body, "error", "status_code"))
    everything = f"{said} {type_and_code}"
    quote = said[:_QUOTE] + ("…" if len(said) > _QUOTE else "")
    told = f" It said: {quote}" if quote else ""

    passing = status in _PASSING and not _SPENT.search(everything)
    after = float(retry_after) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", retry_after.strip()) else None
    rate_text = bool(_RATE.search(everything))
    if _OVERFLOW.search(everything) and not rate_text and status in {None, 400, 413, 422, 500}:
        n_ctx = as_positive(at(body, "error", "n_ctx")) or _number(_WINDOW_NUMBERS, said)
        n_ctx = n_ctx if n_ctx is not None and n_ctx >= _LEAST_WINDOW else None
        n_prompt = as_positive(at(body, "error", "n_prompt_tokens")) or _number(_PROMPT_NUMBERS, said)
        size = f"{n_prompt:,} tokens" if n_prompt else "more tokens"
        room = f"{n_ctx:,}" if n_ctx else "the model's window"
        return ModelError(
            "overflow",
            f"The request is too long for the model: {size}, and there is room for {room}.",
            hint="/compact shortens the conversation; a shorter message or a model with a larger window helps too.",
            status=status,
            n_ctx=n_ctx,
            n_prompt=n_prompt,
        )
    if status == 429 or (rate_text and status in {None, 400, 402, 403, 500, 503, 529}):
        wait = f" Wait {retry_after} s first." if retry_after.isdigit() else ""
        return ModelError(
            "rate_limit",
            f"The provider refuses more requests for now.{told}",
            hint=f"Retry later.{wait} If it stays, look at the quota and credit of the account.",
            status=status,
            passing=passing,
            retry_after=after,
        )
    if _BYTES.search(everything) and status in {None, 400, 413, 422, 500}:
        kind, message, hint = _by_status(413, everything, in_stream)
        return ModelError(kind, message + told, hint=hint, status=status, about="bytes")
    if _IMAGES.search(everything) and status in {None, 400, 404, 413, 415, 422, 500}:
        return ModelError(
            "bad_request",
            f"The server does not take a picture of the conversation.{told}",
            hint="Another model may take it; smaller or fewer pictures may do.",
            status=status,
            about="images",
        )
    if _REASONING.search(everything) and status in {None, 400, 422}:
        return ModelError(
            "bad_request",
            f"The server and this program disagree on whether past reasoning is sent back.{told}",
            hint="It was tried both ways; another model may take the conversation.",
            status=status,
            about="reasoning",
        )
    if _TEMPLATE.search(everything):
        return ModelError(
            "template",
            f"The model's chat template refused the conversation.{told}",
            hint="This model wants another order of messages; another model or another chat template helps.",
            status=status,
        )
    kind, message, hint = _by_status(status, everything, in_stream)
    return ModelError(
        kind,
        message + told,
        hint=hint,
        status=status,
        about="bytes" if status == 413 else "",
        passing=passing and kind in {"server", "loading"},
        retry_after=after,
    )


def _by_status(status: int | None, text: str, in_stream: bool) -> tuple[ErrorKind, str, str]:
    lower = text.lower()
    if status == 503 and ("loading" in lower or "unavailable_error" in lower):
        return "loading", "The server is still loading its model.", "Retry in a moment."
    if status in {401, 403} or "authentication_error" in lower or "invalid_api_key" in lower:
        return (
            "auth",
            f"The server refused the API key ({status or 'no status'}).",
            "Check the key and the base URL of this endpoint.",
        )
    if status == 402:
        return "auth", "The account has no credit left (402).", "Top up the account or pick another model."
    if status == 404:
        return (
            "bad_request",
            "The server does not know this model or address (404).",
            "Check the model's name and that the base URL is the API root (often ending in /v1).",
        )
    if status == 413:
        return (
            "bad_request",
            "The request has too many bytes for the server; that is not a matter of tokens.",
            "Images and very long outputs weigh most; a proxy in between may have a limit of its own.",
        )
    if status is not None and 300 <= status < 400:
        return (
            "bad_request",
            f"The server sends the request elsewhere ({status}).",
            "Redirects are not followed; set the final address as base URL.",
        )
    if "context size has been exceeded" in lower:
        return (
            "server",
            "The server ran out of context memory while answering.",
            "Retry; if it happens again, /compact or a server with a larger context helps.",
        )
    if status == 504 or status == 408:
        return (
            "server",
            f"A gateway gave up waiting for the model ({status}).",
            "Retry; a shorter conversation answers sooner (/compact).",
        )
    if status is not None and 400 <= status < 500:
        return "bad_request", f"The server refused the request ({status}).", "Its words above name the reason."
    where = "while answering" if in_stream else "before answering"
    code = f" ({status})" if status is not None else ""
    return "server", f"The server failed {where}{code}.", "Retry; if it stays, the server's own log has the reason."


def network_error(error: httpx.RequestError, url: str, *, silence: float, answering: bool) -> ModelError:
    """The `ModelError` for a transport failure. `url` is already fit for display; `silence` in seconds."""
    kept = "What arrived is kept. Retry asks again."
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)):
        words = str(error)
        hint = "Is the server running, and is the address right? Then retry."
        if "CERTIFICATE" in words.upper():
            reason = "its certificate is not trusted"
        elif "SSL" in words.upper() or (url.startswith("https://") and not words):  # hung up during the handshake
            reason = "it does not speak TLS (https)"
            hint = "If it is a local server, its address probably begins with http://, not https://."
        elif "name" in words.lower() or "resolve" in words.lower() or "address" in words.lower():
            reason = "its name cannot be resolved"
        elif isinstance(error, httpx.ConnectTimeout):
            reason = "nothing answered within 15 seconds"
        elif isinstance(error, httpx.ProxyError):
            reason = "the proxy refused"
        else:
            reason = "nothing listens there"
        return ModelError(
            "network",
            f"No connection to {url}: {reason}.",
            hint=hint,
        )
    if isinstance(error, httpx.ReadTimeout):
        return ModelError(
            "network",
            f"{url} sent nothing for {silence:g} seconds.",
            hint=(
                kept
                if answering
                else "Retry; a server that is loading a model may need longer (setting request_timeout)."
            ),
        )
    if answering:
        return ModelError(
            "network", f"The connection to {url} broke while the answer was arriving.", hint=kept, passing=True
        )
    return ModelError(
        "network",
        f"{url} closed the connection without an answer.",
        hint="Retry; the server may have restarted.",
        passing=True,
    )
