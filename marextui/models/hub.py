"""Finds models and makes them ready: endpoint, embedded weights, GGUF files, loopback servers (issue 2)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path

import httpx

from marextui.models.connection import EmbeddedConnection, EndpointConnection
from marextui.models.discovery import PROBE_PORTS, Found, can_chat, list_models, probe_loopback
from marextui.models.embedded import EmbeddedServer, template_path
from marextui.models.endpoint import display_url, http_client, is_local, is_loopback, normalise_base_url
from marextui.models.gguf_files import GgufFile, find_gguf
from marextui.models.types import Connection, LoadProgress, ModelChoice, ModelError
from marextui.models.weights import WEIGHTS, installed, join, joined

EMBEDDED, EMBEDDED_SMALL = "qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"
_SETTING_NAMES = {"embedded": EMBEDDED, "embedded-small": EMBEDDED_SMALL}
_TOOL_ROUNDS = 3
"""A turn of the embedded models ends after this many rounds: they repeat themselves (issue 2, section 1)."""


@dataclass(frozen=True, slots=True)
class SetupFacts:
    """What the first-run screen needs to know about this machine."""

    engine_installed: bool
    """The llama.cpp wheel of the extra `local` is installed."""
    weights_installed: bool
    """The embedded weights (either size) are installed or already joined."""
    probed: tuple[Found, ...]


class Hub:
    """The `ModelHub` of the product. Values only; no settings file is read here.

    `window_override` and `local_window` are tokens, `silence_timeout` is seconds without a byte from the server.
    `model` is "", "embedded", "embedded-small", a path ending in .gguf, or a model id of the endpoint.
    """

    def __init__(
        self,
        *,
        cache_dir: Path,
        log_dir: Path,
        home: Path,
        env: Mapping[str, str],
        base_url: str = "",
        api_key: str = "",
        model: str = "",
        window_override: int | None = None,
        local_window: int = 8192,
        silence_timeout: float = 120.0,
        probe: bool = True,
        probe_ports: Sequence[tuple[str, int]] = PROBE_PORTS,
        keep_states: bool = False,
    ) -> None:
        self._cache_dir = cache_dir / "models"
        self._slot_folder = cache_dir / "slots" if keep_states else None
        self._log_dir = log_dir
        self._home = home
        self._env = env
        self._base_url = base_url.strip()
        self._api_key = api_key.strip()
        self._model = model.strip()
        self._override = window_override
        self._local_window = local_window
        self._silence = silence_timeout
        self._probe_wanted = probe
        self._probe_ports = probe_ports

    def configure(self, *, base_url: str, api_key: str, model: str) -> None:
        """Take another endpoint or model (the settings changed); open connections stay as they are."""
        self._base_url, self._api_key, self._model = base_url.strip(), api_key.strip(), model.strip()

    async def choices(self) -> list[ModelChoice]:
        """Everything usable now, best first: endpoint and its models, given GGUF, embedded, loopback, GGUF files."""
        endpoint, found, files = await asyncio.gather(
            self._endpoint_choices(), self._probe(), find_gguf(self._home, self._env)
        )
        out = [*endpoint, *self._given_gguf(), *await asyncio.to_thread(self._embedded_choices)]
        out += [c for server in found for c in _server_choices(server)]
        if engine_installed():
            out += [_file_choice(f) for f in files]
        unique: dict[tuple[str, str, str], ModelChoice] = {}
        for choice in out:
            unique.setdefault((choice.kind, choice.base_url, choice.name), choice)
        return list(unique.values())

    async def default(self) -> ModelChoice | None:
        """What to use when nothing was picked; None: first-run screen. Asks the network only when it must.

        The setting `model` decides when it names embedded weights or a GGUF; else endpoint, a loopback server that
        has the model named, 1.5B, 0.5B, the first loopback server with a model.
        """
        if self._model in _SETTING_NAMES:
            return self._embedded_choice(_SETTING_NAMES[self._model])
        if given := self._given_gguf():
            return given[0]
        if self._base_url:
            return self._endpoint_choice(self._model)
        embedded = await asyncio.to_thread(self._embedded_choices)
        if embedded and not self._model:
            return embedded[0]
        served = [c for server in await self._probe() for c in _server_choices(server)]
        named = [c for c in served if self._model and c.name == self._model]
        return next(iter((*named, *embedded, *served)), None)

    async def connect(self, choice: ModelChoice, progress: Callable[[LoadProgress], None]) -> Connection:
        """Make `choice` ready. Raises `ModelError`; then nothing of it is left running."""
        if choice.kind == "endpoint":
            return await self._connect_endpoint(choice, progress)
        if choice.kind == "embedded":
            path = await join(choice.name, self._cache_dir, progress)
            return await self._connect_file(choice, path, progress)
        path = self._gguf_path(choice.name)
        if not path.is_file():
            raise ModelError(
                "bad_request", f"There is no model file {path}.", hint="Pick another model, or correct the path."
            )
        return await self._connect_file(choice, path, progress)

    async def setup_report(self) -> SetupFacts:
        """Facts for the first-run screen; probes loopback servers unless `probe` is off."""
        weights = await asyncio.to_thread(lambda: any(self._weights_here(name) for name in WEIGHTS))
        return SetupFacts(engine_installed(), weights, tuple(await self._probe()))

    async def _connect_endpoint(
        self, choice: ModelChoice, progress: Callable[[LoadProgress], None]
    ) -> EndpointConnection:
        base_url = normalise_base_url(choice.base_url)
        name = choice.name
        if not name:
            progress(LoadProgress(f"Asking {display_url(base_url)} for its models"))
            async with http_client(base_url, silence_timeout=self._silence) as http:
                ids = [i for i in await list_models(http, base_url, api_key=choice.api_key) if can_chat(i)]
            if not ids:
                raise ModelError(
                    "bad_request",
                    f"{display_url(base_url)} has no model that can chat.",
                    hint="Load one there, or name it in the setting model.",
                )
            name = ids[0]
            choice = _endpoint(base_url, choice.api_key, name, choice.detail)
        progress(LoadProgress(f"Asking {display_url(base_url)} how much {name} holds"))
        connection = EndpointConnection(choice, base_url, override=self._override, silence_timeout=self._silence)
        try:
            await connection.open()
        except BaseException:
            await connection.aclose()
            raise
        return connection

    async def _connect_file(
        self, choice: ModelChoice, path: Path, progress: Callable[[LoadProgress], None]
    ) -> EmbeddedConnection:
        if not engine_installed():
            raise ModelError(
                "server", "The local engine is not installed.", hint="Install it with: pip install 'marextui[local]'"
            )
        qwen_coder = choice.kind == "embedded" or "qwen2.5-coder" in path.name.lower()
        server = EmbeddedServer(
            path,
            ctx=self._override or self._local_window,
            log_path=self._log_dir / f"local-engine-{os.getpid()}.log",
            template=template_path() if qwen_coder else None,
            slot_folder=self._slot_folder,
        )
        await server.start(progress)
        connection = EmbeddedConnection(choice, server, override=self._override, silence_timeout=self._silence)
        if choice.kind == "embedded":
            connection.supports_tools = choice.name == EMBEDDED
            connection.max_tool_rounds = _TOOL_ROUNDS
        try:
            await connection.open(ask_tools=choice.kind != "embedded")
        except BaseException:
            await connection.aclose()
            raise
        return connection

    async def _endpoint_choices(self) -> list[ModelChoice]:
        """The configured endpoint's models; the configured one first, and alone when the list cannot be had."""
        if not self._base_url:
            return []
        first = self._endpoint_choice("" if self._local_model() else self._model)
        try:
            base_url = normalise_base_url(self._base_url)
            async with http_client(base_url, silence_timeout=self._silence) as http:
                ids = await list_models(http, base_url, api_key=self._api_key, timeout=2.0)
        except ModelError:
            return [first]
        rest = [self._endpoint_choice(i) for i in ids if can_chat(i) and i != first.name]
        return [first, *rest] if first.name or not rest else rest

    def _endpoint_choice(self, name: str) -> ModelChoice:
        try:
            base_url = normalise_base_url(self._base_url)
        except ModelError:
            base_url = self._base_url  # connecting says what is wrong with it
        return _endpoint(base_url, self._api_key, name, "configured endpoint")

    def _local_model(self) -> bool:
        return self._model in _SETTING_NAMES or bool(self._given_gguf())

    def _given_gguf(self) -> list[ModelChoice]:
        """The GGUF named by the setting, even when it is missing: connecting says so. But with an endpoint a file that
        is not there is a model id of its: llama.cpp calls a model by its file if it has no other name."""
        if not self._model.lower().endswith(".gguf"):
            return []
        path = self._gguf_path(self._model)
        if self._base_url and not path.is_file():
            return []
        return [ModelChoice("gguf", str(path), path.stem, detail=f"given: {path.parent}")]

    def _gguf_path(self, name: str) -> Path:
        if name == "~" or name.startswith("~/"):
            return self._home / name[2:]
        return Path(name).absolute()

    def _weights_here(self, name: str) -> bool:
        return installed(name) or joined(name, self._cache_dir) is not None

    def _embedded_choices(self) -> list[ModelChoice]:
        if not engine_installed():
            return []
        return [self._embedded_choice(n) for n in (EMBEDDED, EMBEDDED_SMALL) if self._weights_here(n)]

    def _embedded_choice(self, name: str) -> ModelChoice:
        spec = WEIGHTS[name]
        ready = joined(name, self._cache_dir) is not None
        note = "chat and file tools" if name == EMBEDDED else "chat only"
        detail = f"{spec.size / 1e9:.1f} GB, {note}, no network" + ("" if ready else ", prepared at first use")
        return ModelChoice("embedded", name, spec.label, detail=detail)

    async def _probe(self) -> list[Found]:
        """What answers on loopback now."""
        if not self._probe_wanted:
            return []
        ports = list(self._probe_ports)
        if (port := _ollama_port(self._env)) is not None and all(p != port for _, p in ports):
            ports.append(("Ollama", port))
        return await probe_loopback(ports)


def engine_installed() -> bool:
    """Whether the llama.cpp wheel is installed (it is not imported: that would load 100 MB)."""
    return util.find_spec("xllamacpp") is not None


def _endpoint(base_url: str, api_key: str, name: str, detail: str) -> ModelChoice:
    shown = display_url(base_url)
    local = not base_url or is_local(base_url)
    return ModelChoice("endpoint", name, name or shown, base_url, api_key, f"{shown} · {detail}", local)


def _server_choices(server: Found) -> list[ModelChoice]:
    return [_endpoint(server.url, "", name, server.kind) for name in server.models]


def _file_choice(file: GgufFile) -> ModelChoice:
    return ModelChoice("gguf", str(file.path), file.name, detail=f"{file.size / 1e9:.1f} GB · {file.source}")


def _ollama_port(env: Mapping[str, str]) -> int | None:
    """The port in OLLAMA_HOST when it names this machine."""
    host = env.get("OLLAMA_HOST", "").strip()
    if not host:
        return None
    try:
        base = normalise_base_url(host if "://" in host else f"http://{host}")
    except ModelError:
        return None
    url = httpx.URL(base)
    return url.port if url.port and (is_loopback(base) or url.host == "0.0.0.0") else None


async def check_endpoint(base_url: str, api_key: str, model: str) -> tuple[str, list[str]]:
    """Ask an endpoint for its models: ("" or a sentence saying what is wrong, model ids that can chat)."""
    try:
        base = normalise_base_url(base_url)
        async with http_client(base, silence_timeout=10.0) as http:
            ids = [i for i in await list_models(http, base, api_key=api_key) if can_chat(i)]
    except ModelError as error:
        return f"{error.message} {error.hint}".strip(), []
    if model and ids and model not in ids:
        close = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        return f"The server has no model “{model}”. It has: {close}", ids
    if not ids and not model:
        return "The server answers, but lists no model that can chat. Load one there, or give its name.", ids
    return "", ids
