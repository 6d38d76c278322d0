"""Asking a server what it is, which models it has and how much they hold (section C, M3). Two seconds a question."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from marextui.context.budget import UNKNOWN_WINDOW, Window
from marextui.models.endpoint import auth_headers, display_url, is_local, join, normalise_base_url, server_root
from marextui.models.errors import classify, network_error
from marextui.models.lenient import as_int, as_positive, as_text, at, items, parse_json
from marextui.models.slots import SlotFacts
from marextui.models.types import ModelError
from marextui.models.windows import known_window

ASK_TIMEOUT = 2.0
"""Seconds for one question."""
PROBE_TIMEOUT = 0.5
"""Seconds for a server on loopback to show itself."""
_MAX_BYTES = 4 << 20
_MAX_MODELS = 2000

ServerKind = Literal["llama.cpp", "Ollama", "LM Studio", "vLLM", "OpenAI-compatible"]

PROBE_PORTS: tuple[tuple[str, int], ...] = (("llama.cpp", 8080), ("Ollama", 11434), ("LM Studio", 1234), ("vLLM", 8000))
"""What usually listens where; only a first place to look, never an assumption."""

_OWNERS: Mapping[str, ServerKind] = {
    "llamacpp": "llama.cpp",
    "library": "Ollama",
    "vllm": "vLLM",
    "organization_owner": "LM Studio",
}


@dataclass(frozen=True, slots=True)
class Found:
    """One loopback address that was asked: what usually lives there, and what answered.

    `answered` without models means that something is there that wants a key or has no model loaded.
    """

    kind: str
    url: str
    models: tuple[str, ...]
    answered: bool


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server tells about itself and one model. `window` is in tokens; `window_from` the route that told it.

    `supports_tools` None: it does not say. `trained` marks a window that is only the most the model was trained for.
    `loading`: it says that its model is still being loaded; the rest is then unknown.
    """

    kind: ServerKind
    window: int | None
    trained: bool
    supports_tools: bool | None
    window_from: str = ""
    loading: bool = False


@dataclass(slots=True)
class _Answers:
    """Asks one server; `loading` once an answer said that its model is still being loaded."""

    http: httpx.AsyncClient
    api_key: str
    loading: bool = False

    async def ask(self, url: str) -> Any:
        """As `fetch_json`."""
        try:
            async with asyncio.timeout(ASK_TIMEOUT):
                status, raw = await fetch(self.http, url, self.api_key)
        except (TimeoutError, httpx.HTTPError):
            return None
        if status == 503 and classify(status, raw[:65536].decode("utf-8", errors="replace")).kind == "loading":
            self.loading = True
        return parse_json(raw) if status == 200 else None


async def fetch_json(
    http: httpx.AsyncClient, url: str, *, api_key: str = "", body: object = None, timeout: float = ASK_TIMEOUT
) -> Any:
    """The JSON a question is answered with; None for any failure, since the next question may fare better."""
    try:
        async with asyncio.timeout(timeout):
            status, raw = await fetch(http, url, api_key, body)
    except (TimeoutError, httpx.HTTPError):
        return None
    return parse_json(raw) if status == 200 else None


async def fetch(http: httpx.AsyncClient, url: str, api_key: str = "", body: object = None) -> tuple[int, bytes]:
    """Status and body (four megabytes of it at most) of a GET, or of a POST of `body`. Raises `httpx.HTTPError`."""
    method = "GET" if body is None else "POST"
    async with http.stream(method, url, headers=auth_headers(api_key), json=body) as response:
        raw = bytearray()
        async for part in response.aiter_bytes():
            raw += part
            if len(raw) > _MAX_BYTES:
                break
        return response.status_code, bytes(raw)


def model_ids(listing: object) -> list[str]:
    """Ids of a `/v1/models` answer, in its order; at most two thousand."""
    ids = (as_text(at(entry, "id")) for entry in items(at(listing, "data")))
    return [i for i in ids if i][:_MAX_MODELS]


def can_chat(model_id: str) -> bool:
    """False for ids that name an embedder, a voice or a picture model."""
    return not re.search(r"embed|whisper|tts|dall-e|moderation|rerank|image|bge-|transcribe", model_id, re.IGNORECASE)


def server_kind(listing: object, props: object = None, lm_studio: object = None) -> ServerKind:
    """Which server answers like this."""
    if at(props, "default_generation_settings") is not None:
        return "llama.cpp"
    if items(at(lm_studio, "models")):
        return "LM Studio"
    owner = as_text(at(listing, "data", 0, "owned_by"))
    if at(listing, "data", 0, "max_model_len") is not None:
        return "vLLM"
    return _OWNERS.get(owner, "OpenAI-compatible")


async def inspect(http: httpx.AsyncClient, base_url: str, model: str, *, api_key: str = "") -> ServerFacts:
    """Ask everything section C knows, once. Public hosts are asked for their model list only.

    What is loaded now comes before what the model was trained for; Ollama and LM Studio load far less than that.
    """
    root, server = server_root(base_url), _Answers(http, api_key)
    listing = server.ask(join(base_url, "models"))
    if not is_local(base_url):
        entry = _entry(await listing, model)
        listed = _listed_window(entry)
        return ServerFacts("OpenAI-compatible", listed, False, None, "/v1/models" if listed else "", server.loading)
    answers = await asyncio.gather(
        listing,
        server.ask(f"{root}/props"),
        fetch_json(http, f"{root}/api/v1/models", api_key=api_key),
        fetch_json(http, f"{root}/api/v0/models", api_key=api_key),
        fetch_json(http, f"{root}/api/ps", api_key=api_key),
        fetch_json(http, f"{root}/api/show", api_key=api_key, body={"model": model}),
    )
    models, props, studio, studio_old, loaded, show = answers
    kind = server_kind(models, props, studio)
    if kind == "OpenAI-compatible" and items(at(loaded, "models")) + items(at(show, "capabilities")):
        kind = "Ollama"
    if kind == "llama.cpp" and as_positive(at(props, "default_generation_settings", "n_ctx")) is None:
        url = str(httpx.URL(f"{root}/props").copy_add_param("model", model))  # router mode: props are per model
        props = await fetch_json(http, url, api_key=api_key) or props
    entry = _entry(models, model)
    running, where = _first_told(
        ("/props (n_ctx)", at(props, "default_generation_settings", "n_ctx")),
        ("/api/ps (context_length)", _ollama_loaded(loaded, model)),
        ("/api/v1/models (loaded context_length)", _studio_loaded(studio, model)),
        ("/api/v0/models (loaded_context_length)", _old_studio(studio_old, model, "loaded_context_length")),
        ("/v1/models (max_model_len)", at(entry, "max_model_len")),
        ("/v1/models (meta.n_ctx)", at(entry, "meta", "n_ctx")),
        ("/api/show (num_ctx)", _ollama_num_ctx(show)),
    )
    trained, trained_where = _first_told(
        ("/v1/models", _listed_window(entry)),
        ("/api/v1/models (max_context_length)", at(_studio(studio, model), "max_context_length")),
        ("/api/v0/models (max_context_length)", _old_studio(studio_old, model, "max_context_length")),
        ("/v1/models (meta.n_ctx_train)", at(entry, "meta", "n_ctx_train")),
        ("/api/show (context_length)", _ollama_trained(show)),
    )
    tools, where = _tools(props, show), where or trained_where
    return ServerFacts(kind, running or trained, running is None, tools, where, server.loading)


def _first_told(*told: tuple[str, object]) -> tuple[int | None, str]:
    """The first window that is a number above 0, and where it was told; (None, "") when there is none."""
    return next(((n, where) for where, value in told if (n := as_positive(value))), (None, ""))


def _entry(listing: object, model: str) -> Any:
    """The entry of `model`; of a server with one model only, that one, whatever it is called."""
    entries = items(at(listing, "data"))
    for entry in entries:
        if at(entry, "id") == model or model in items(at(entry, "aliases")):
            return entry
    return entries[0] if len(entries) == 1 else None


def _listed_window(entry: object) -> int | None:
    """The window in a model-list entry of vLLM, OpenRouter, Mistral, Anthropic and others."""
    numbers = (
        at(entry, "max_model_len"),
        at(entry, "top_provider", "context_length"),
        at(entry, "context_length"),
        at(entry, "max_context_length"),
        at(entry, "context_window"),
        at(entry, "max_input_tokens"),
        at(entry, "inputTokenLimit"),
    )
    return next((n for n in map(as_positive, numbers) if n), None)


def _named(entries: object, model: str, *keys: str) -> Any:
    wanted = {model, f"{model}:latest", model.removesuffix(":latest")}
    return next((e for e in items(entries) if any(at(e, k) in wanted for k in keys)), None)


def _ollama_loaded(loaded: object, model: str) -> int | None:
    return as_positive(at(_named(at(loaded, "models"), model, "name", "model"), "context_length"))


def _ollama_num_ctx(show: object) -> int | None:
    found = re.search(r"^\s*num_ctx\s+(\S+)", as_text(at(show, "parameters")), re.MULTILINE)
    return as_positive(found[1]) if found else None


def _ollama_trained(show: object) -> int | None:
    info = at(show, "model_info")
    if not isinstance(info, Mapping):
        return None
    return next((as_positive(v) for k, v in info.items() if str(k).endswith(".context_length")), None)


def _studio(studio: object, model: str) -> Any:
    return _named(at(studio, "models"), model, "key", "id", "selected_variant")


def _studio_loaded(studio: object, model: str) -> int | None:
    instances = items(at(_studio(studio, model), "loaded_instances"))
    return next((s for i in instances if (s := as_positive(at(i, "config", "context_length")))), None)


def _old_studio(old: object, model: str, key: str) -> Any:
    return at(_named(at(old, "data"), model, "id"), key)


def _tools(props: object, show: object) -> bool | None:
    caps = at(props, "chat_template_caps")
    if isinstance(caps, Mapping):
        return caps.get("supports_tools") is True or caps.get("supports_tool_calls") is True
    told = at(show, "capabilities")
    return "tools" in told if isinstance(told, list) else None


async def discover_window(
    http: httpx.AsyncClient,
    base_url: str,
    model: str,
    *,
    api_key: str = "",
    cache: MutableMapping[tuple[str, str], Window] | None = None,
) -> Window:
    """The window of `model` at `base_url`: runtime value, then trained maximum, then the table of hosted models.

    Known windows are kept in `cache` for (base URL, model); drop the entry after a restart or a change of model. A
    local server's model is never looked up in the table (case 7: "foo-local" is unknown, not 8k).
    """
    key = (base_url, model)
    if cache is not None and key in cache:
        return cache[key]
    facts = await inspect(http, base_url, model, api_key=api_key)
    window = window_of(facts, base_url, model)
    if cache is not None and window.tokens is not None:
        cache[key] = window
    return window


def window_of(facts: ServerFacts, base_url: str, model: str) -> Window:
    """The window that follows from `facts`; see `discover_window`."""
    if facts.window is not None:
        return Window(facts.window, "discovery")
    if not is_local(base_url) and (known := known_window(model)) is not None:
        return Window(known, "known default")
    return UNKNOWN_WINDOW


async def read_slots(http: httpx.AsyncClient, root: str, model: str, *, api_key: str = "") -> SlotFacts:
    """What a llama.cpp server at `root` tells of its slots (`/props`, `/slots`); nothing, from any other server.

    Both are pure reads: they wake no server and take no slot (D1). Asked before a request only, never in a loop: a
    server that is asked all the time does not notice closed connections (trap 5).
    """
    props, slots = await asyncio.gather(
        fetch_json(http, f"{root}/props", api_key=api_key), fetch_json(http, f"{root}/slots", api_key=api_key)
    )
    if at(props, "default_generation_settings") is not None and at(props, "total_slots") is None:
        url = str(httpx.URL(f"{root}/props").copy_add_param("model", model))  # router mode: props are per model
        props = await fetch_json(http, url, api_key=api_key) or props
    states = [at(s, "is_processing") for s in items(slots)]
    prompts = [as_int(at(s, "n_prompt_tokens")) for s in items(slots)]
    return SlotFacts(
        total=as_positive(at(props, "total_slots")),
        sleeping=at(props, "is_sleeping") is True,
        busy=any(s is True for s in states) if states else None,
        prompts=tuple(n for n in prompts if n is not None) if any(n is not None for n in prompts) else None,
        window=as_positive(at(props, "default_generation_settings", "n_ctx")),
        model=as_text(at(props, "model_alias")) or re.split(r"[/\\]", as_text(at(props, "model_path")))[-1],
    )


async def list_models(http: httpx.AsyncClient, base_url: str, *, api_key: str = "", timeout: float = 10.0) -> list[str]:
    """Model ids of an endpoint. Raises `ModelError` when it cannot be reached, refuses or is no such endpoint."""
    shown = display_url(base_url)
    try:
        async with asyncio.timeout(timeout):
            status, raw = await fetch(http, join(base_url, "models"), api_key, None)
    except httpx.RequestError as error:
        raise network_error(error, shown, silence=timeout, answering=False) from error
    except TimeoutError as error:
        raise ModelError(
            "network", f"{shown} did not answer within {timeout:g} seconds.", hint="Is it the right address?"
        ) from error
    if status != 200:
        raise classify(status, raw[:65536].decode("utf-8", errors="replace"), api_key=api_key)
    listing = parse_json(raw)
    if not isinstance(at(listing, "data"), list):
        raise ModelError(
            "protocol",
            f"{shown} answers, but not with a list of models.",
            hint="Is the base URL the API root of the server (often ending in /v1)?",
        )
    return model_ids(listing)


async def probe_loopback(ports: Sequence[tuple[str, int]] = PROBE_PORTS) -> list[Found]:
    """Ask the usual ports of this machine, all at once, half a second each. Nothing leaves the machine."""
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(limits=limits, trust_env=False, follow_redirects=False) as http:
        return list(await asyncio.gather(*(_probe(http, kind, port) for kind, port in ports)))


async def _probe(http: httpx.AsyncClient, kind: str, port: int) -> Found:
    base = normalise_base_url(f"http://127.0.0.1:{port}")
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            status, raw = await fetch(http, join(base, "models"), "", None)
    except (TimeoutError, httpx.HTTPError):
        return Found(kind, base, (), False)
    if status in {401, 403}:
        return Found(kind, base, (), True)
    listing = parse_json(raw) if status == 200 else None
    if at(listing, "object") != "list" and not items(at(listing, "data")):
        return Found(kind, base, (), False)  # some other program has the port
    told = server_kind(listing)
    models = tuple(i for i in model_ids(listing) if can_chat(i))
    return Found(kind if told == "OpenAI-compatible" else told, base, models, True)
