"""Which server `marextui doctor` examines, and the examination itself (issue 4, section 6)."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from marextui.context.doctor_chart import Chart
from marextui.context.doctor_findings import Advice, advice
from marextui.context.doctor_requests import Bound, Script, bound
from marextui.engine.setup import INSTALL_COMMAND
from marextui.models.connection import EmbeddedConnection, EndpointConnection
from marextui.models.discovery import Found
from marextui.models.doctor import Doctor, Patient
from marextui.models.embedded import ALIAS
from marextui.models.endpoint import display_url, is_local, normalise_base_url, same_server
from marextui.models.hub import Hub
from marextui.models.types import Connection, ModelChoice, ModelError
from marextui.settings import Settings

REQUEST_TIMEOUT = 120.0
"""Seconds for one request: a slow machine computes 400 tokens in less."""


class NothingToExamine(Exception):
    """No server was named and none was found; the text says where it was looked for."""


@dataclass(frozen=True, slots=True)
class Address:
    """What is examined: a server that runs anyway (`patient`), or a `choice` that our own engine has to serve.

    `configured`: it is what the settings name. `note` is a sentence about what else was found.
    """

    patient: Patient | None
    choice: ModelChoice | None = None
    configured: bool = True
    note: str = ""

    @property
    def local(self) -> bool:
        """On this machine or its private network: nothing costs money."""
        return self.patient is None or self.patient.local

    @property
    def shown(self) -> str:
        """The address or the name, for people."""
        if self.patient is not None:
            return display_url(self.patient.base_url)
        return self.choice.label if self.choice is not None else ""


def address_of(url: str, settings: Settings, *, api_key: str | None = None, model: str = "") -> Address:
    """The server at `url`. The configured key goes to the configured server only; `api_key` goes where it is told to.

    Raises `ModelError` for an unusable address.
    """
    base_url = normalise_base_url(url)
    ours = bool(settings.base_url) and same_server(base_url, settings.base_url)
    key = api_key if api_key is not None else settings.api_key if ours else ""
    name = model or (settings.model if ours and not _is_ours(settings.model) else "")
    return Address(Patient(base_url, is_local(base_url), name, key), configured=ours)


async def find_address(settings: Settings, hub: Hub, *, api_key: str | None = None) -> Address:
    """What to examine when no address was given: the configured connection, what answers on loopback, our own engine.

    Raises `NothingToExamine`, `ModelError`.
    """
    choice = None if settings.base_url and not _is_ours(settings.model) else await _own(settings, hub)
    if choice is not None:
        return Address(None, choice)
    if settings.base_url:
        return address_of(settings.base_url, settings, api_key=api_key)
    facts = await hub.setup_report()
    answering = [f for f in facts.probed if f.models]
    if answering:
        first, *others = answering
        return Address(
            Patient(first.url, True, settings.model if settings.model in first.models else "", api_key or ""),
            configured=False,
            note=_also(others),
        )
    if facts.engine_installed and facts.weights_installed:
        choices = [c for c in await hub.choices() if c.kind == "embedded"]
        if choices:
            return Address(None, choices[0])
    raise NothingToExamine(_nothing(facts.probed))


def address_in_use(connection: Connection) -> Address:
    """The server behind `connection`. Raises `NothingToExamine` when there is none."""
    if isinstance(connection, EndpointConnection):
        choice = connection.choice
        return Address(Patient(connection.base_url, choice.local, choice.name, choice.api_key))
    if isinstance(connection, EmbeddedConnection):
        return Address(_embedded(connection))
    raise NothingToExamine("The model in use has no server that could be examined.")


def _embedded(connection: EmbeddedConnection) -> Patient:
    process = connection.process
    return Patient(normalise_base_url(process.url), True, ALIAS, process.api_key, connection.choice.label)


def _is_ours(model: str) -> bool:
    return model in {"embedded", "embedded-small"} or model.lower().endswith(".gguf")


async def _own(settings: Settings, hub: Hub) -> ModelChoice | None:
    """What the settings name for our own engine."""
    return await hub.default() if _is_ours(settings.model) else None


def _also(others: list[Found]) -> str:
    if not others:
        return ""
    told = ", ".join(f"{f.kind} at {display_url(f.url)}" for f in others)
    return f"Also answering: {told}; name one to have it examined."


def _nothing(probed: tuple[Found, ...]) -> str:
    silent = ", ".join(display_url(f.url) for f in probed if not f.answered)
    mute = ", ".join(display_url(f.url) for f in probed if f.answered)
    told = "No server is configured."
    if mute:
        told += f" {mute} answers, but wants a key or has no model loaded."
    if silent:
        told += f" Nothing answers at {silent}."
    return f"{told} The embedded model is not installed ({INSTALL_COMMAND}). Name a server: marextui doctor URL"


@dataclass(slots=True)
class Visit:
    """One examination. `chart` is what is known so far, also after `examine` was cancelled; None: not begun.

    `hub` starts the engine of our own for it; a server that runs needs none.
    """

    address: Address
    hub: Hub | None = None
    timeout: float = REQUEST_TIMEOUT
    nonce: str = field(default_factory=lambda: secrets.token_hex(3))
    now: Callable[[], float] = time.monotonic
    chart: Chart | None = None

    @property
    def script(self) -> Script:
        return Script(self.nonce, self.address.local)

    @property
    def limit(self) -> Bound:
        """The most that is sent."""
        return bound(self.script.plan())

    async def examine(self, progress: Callable[[str], None]) -> Chart:
        """Examine it; an engine of ours is started for it and ended after it. Raises `ModelError` when that fails."""
        if self.address.patient is not None:
            return await self._examine(self.address.patient, progress)
        assert self.hub is not None
        assert self.address.choice is not None
        connection = await self.hub.connect(self.address.choice, lambda step: progress(step.stage))
        try:
            assert isinstance(connection, EmbeddedConnection)
            return await self._examine(_embedded(connection), progress)
        finally:
            await connection.aclose()

    async def _examine(self, patient: Patient, progress: Callable[[str], None]) -> Chart:
        doctor = Doctor(patient, self.script, timeout=self.timeout, now=self.now, sleep=asyncio.sleep)
        self.chart = doctor.chart
        try:
            return await doctor.examine(progress)
        finally:
            await doctor.aclose()

    def advice(self, settings: Economy) -> tuple[Advice, ...]:
        """The settings to take; empty before anything is known."""
        if self.chart is None:
            return ()
        current = {
            "compact_continuation": settings.compact_continuation,
            "prewarm": settings.prewarm,
            "proj_snapshot": settings.proj_snapshot,
            "warm_resume": settings.warm_resume,
        }
        return advice(self.chart, current, connect=not self.address.configured)


class Economy(Protocol):
    """The settings in force: `Settings`, or the engine's policy."""

    @property
    def compact_continuation(self) -> bool: ...
    @property
    def prewarm(self) -> str: ...
    @property
    def proj_snapshot(self) -> bool: ...
    @property
    def warm_resume(self) -> str: ...


__all__ = ["Address", "ModelError", "NothingToExamine", "Visit", "address_of", "find_address"]
