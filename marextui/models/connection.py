"""Connections: a chat model with its window, tied to what must be closed with it."""

from __future__ import annotations

from marextui.context.budget import UNKNOWN_WINDOW, Window
from marextui.models.discovery import ServerFacts, fetch_json, inspect, read_slots, window_of
from marextui.models.embedded import ALIAS, EmbeddedChat, EmbeddedServer
from marextui.models.endpoint import http_client, server_root
from marextui.models.openai_chat import OpenAIChat
from marextui.models.slot_states import LlamaSlotStates
from marextui.models.slots import SlotFacts, Slots, TrackedChat
from marextui.models.types import ChatModel, ModelChoice, ModelError, SlotStates

_PRELOAD = 120.0
"""Seconds given to Ollama to load a model before its window is asked for."""


class EndpointConnection:
    """A `Connection` to a server that runs anyway. `override` is tokens and wins over what the server says (M3)."""

    max_tool_rounds: int | None = None

    def __init__(self, choice: ModelChoice, base_url: str, *, override: int | None, silence_timeout: float) -> None:
        self.choice = choice
        self.base_url = base_url
        self.server = "OpenAI-compatible"
        self._chat = OpenAIChat(base_url, choice.name, api_key=choice.api_key, silence_timeout=silence_timeout)
        self.slots = Slots()
        self.states: SlotStates | None = None
        self.chat: ChatModel = TrackedChat(self._chat, self.slots)
        self.window = UNKNOWN_WINDOW
        self.supports_tools = True
        self._override = override
        self._http = http_client(base_url, silence_timeout=silence_timeout)

    @property
    def alive(self) -> bool:
        """Always true: the server is not ours to watch."""
        return True

    async def open(self) -> None:
        """Learn window, tools and kind of server. A server that tells nothing is no error.

        Raises `ModelError` ("loading") while the server says that it is loading its model.
        """
        facts = await self._inspect()
        if facts.loading:
            raise ModelError("loading", "The server is still loading its model.", hint="Retry in a moment.", status=503)
        if facts.kind == "Ollama" and facts.trained:
            # Not loaded yet: only a loaded model has a real window there, often a small part of the trained one.
            body = {"model": self.choice.name}
            await fetch_json(self._http, f"{server_root(self.base_url)}/api/generate", body=body, timeout=_PRELOAD)
            facts = await self._inspect()
        self.server = facts.kind
        self.supports_tools = facts.supports_tools is not False
        if facts.kind == "llama.cpp":
            self.states = LlamaSlotStates(self.base_url, self.choice.name, self.choice.api_key)
        self._take(facts)

    async def refresh_window(self) -> Window:
        """Ask the server again."""
        self._take(await self._inspect())
        return self.window

    async def read_slots(self) -> SlotFacts:
        """What the server tells of its slots; one that sleeps has lost what it held."""
        facts = await read_slots(self._http, server_root(self.base_url), self.choice.name, api_key=self.choice.api_key)
        return _seen(facts, self.slots)

    async def aclose(self) -> None:
        """Close the sockets."""
        await self._chat.aclose()
        await self._http.aclose()

    async def _inspect(self) -> ServerFacts:
        return await inspect(self._http, self.base_url, self.choice.name, api_key=self.choice.api_key)

    def _take(self, facts: ServerFacts) -> None:
        if self._override is not None:
            self.window = Window(self._override, "override")
        else:
            self.window = window_of(facts, self.base_url, self.choice.name)


class EmbeddedConnection:
    """A `Connection` to a child process of ours; closing it ends the child."""

    def __init__(
        self, choice: ModelChoice, server: EmbeddedServer, *, override: int | None, silence_timeout: float
    ) -> None:
        self.choice = choice
        self.server = "llama.cpp"
        self.process = server
        self._chat = EmbeddedChat(server, silence_timeout=silence_timeout)
        self.slots = Slots()
        self.states: SlotStates | None = (
            None
            if server.slot_folder is None
            else LlamaSlotStates(f"{server.url}/v1", ALIAS, server.api_key, server.slot_folder, server.model)
        )
        self.chat: ChatModel = TrackedChat(self._chat, self.slots)
        self.window = UNKNOWN_WINDOW
        self.supports_tools = True
        self.max_tool_rounds: int | None = None
        self._override = override
        self._silence = silence_timeout

    @property
    def alive(self) -> bool:
        """False once the child is known to have died; connecting again starts a new one."""
        return self.process.alive

    async def open(self, *, ask_tools: bool) -> None:
        """Read the window, and whether the chat template knows tools when `ask_tools`, from `/props`."""
        facts = await self._inspect()
        if ask_tools:
            self.supports_tools = facts.supports_tools is True
        self._take(facts)

    async def refresh_window(self) -> Window:
        """Ask the child again; keeps the last answer when it does not reply."""
        facts = await self._inspect()
        if facts.window is not None:
            self._take(facts)
        return self.window

    async def read_slots(self) -> SlotFacts:
        """What the child tells of its slots."""
        base_url = f"{self.process.url}/v1"
        async with http_client(base_url, silence_timeout=self._silence) as http:
            facts = await read_slots(http, self.process.url, ALIAS, api_key=self.process.api_key)
        return _seen(facts, self.slots)

    async def aclose(self) -> None:
        """Close the sockets and end the child process."""
        await self._chat.aclose()
        await self.process.aclose()

    async def _inspect(self) -> ServerFacts:
        base_url = f"{self.process.url}/v1"
        async with http_client(base_url, silence_timeout=self._silence) as http:
            return await inspect(http, base_url, ALIAS, api_key=self.process.api_key)

    def _take(self, facts: ServerFacts) -> None:
        if self._override is not None:
            self.window = Window(self._override, "override")
        elif facts.window is not None:
            self.window = Window(facts.window, "discovery")


def _seen(facts: SlotFacts, slots: Slots) -> SlotFacts:
    if facts.sleeping:
        slots.forget("the server went to sleep and dropped its cache")
    return facts
