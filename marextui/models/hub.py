"""Finds models and makes them ready: endpoint, embedded weights, GGUF files, loopback servers (issue 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from marextui.models.discovery import PROBE_PORTS, Found
from marextui.models.types import Connection, LoadProgress, ModelChoice


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
    ) -> None:
        raise NotImplementedError

    async def choices(self) -> list[ModelChoice]:
        """Everything usable now, best first."""
        raise NotImplementedError

    async def default(self) -> ModelChoice | None:
        """What to use when nothing was picked; None: first-run screen."""
        raise NotImplementedError

    async def connect(self, choice: ModelChoice, progress: Callable[[LoadProgress], None]) -> Connection:
        """Make `choice` ready. Raises `ModelError`."""
        raise NotImplementedError

    async def setup_report(self) -> SetupFacts:
        """Facts for the first-run screen; probes loopback servers unless `probe` is off."""
        raise NotImplementedError

    def configure(self, *, base_url: str, api_key: str, model: str) -> None:
        """Take another endpoint (the settings changed); open connections stay as they are."""
        raise NotImplementedError


async def check_endpoint(base_url: str, api_key: str, model: str) -> tuple[str, list[str]]:
    """Ask an endpoint for its models: ("" or a sentence saying what is wrong, model ids)."""
    raise NotImplementedError
