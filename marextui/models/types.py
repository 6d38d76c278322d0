"""The port to a chat model: requests, streamed chunks, errors. Implemented by `models.openai_chat` and by fakes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from marextui.context.budget import Window
from marextui.context.slot_ledger import RequestKind

if TYPE_CHECKING:
    from marextui.models.slots import SlotFacts, Slots


@dataclass(frozen=True, slots=True)
class Usage:
    """Provider-reported tokens of one request: `inp` is the total input including cached. None: not told."""

    inp: int | None = None
    out: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cached_apart: int | None = field(default=None, compare=False)
    """Cached tokens as told when they are more than the input told: some servers leave the cache out of the input, and
    some count wrongly. `inp` and `cache_read` are clamped; who knows the size of the prompt can tell which it was."""

    @property
    def computed(self) -> int | None:
        """Input tokens that were not taken from a cache; None when the provider does not say."""
        return None if self.inp is None or self.cache_read is None else max(0, self.inp - self.cache_read)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One model call. `messages` and `tools` are in OpenAI wire form; `extra` goes last into the body, as it is.

    `kind`, `conversation` and `message_ids` (of the messages after the system one, in order) are for our own books:
    they are never sent.
    """

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    stream: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    kind: RequestKind = "foreign"
    conversation: str = ""
    message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """HTTP 200 arrived: the server works on it."""


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """Prompt processing (llama.cpp `return_progress`): tokens in all, from cache, done so far (cache included).

    `seconds` spent on it, by the server's clock; None: it does not say.
    """

    total: int
    cached: int
    done: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TextChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A fragment of the call at `index`; id and name come once, arguments accumulate."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply ended. `finish_reason` as the provider says ("stop", "length", "tool_calls", …); "" when it did not."""

    finish_reason: str
    usage: Usage | None
    timings: Mapping[str, float] = field(default_factory=dict)


Chunk = Accepted | PromptProgress | TextChunk | ReasoningChunk | ToolCallChunk | Finished

ErrorKind = Literal[
    "overflow", "auth", "rate_limit", "network", "loading", "template", "bad_request", "server", "protocol"
]


class ModelError(Exception):
    """A model call failed. `message` says what happened, `hint` what to do; both are plain text, not yet sanitised.

    `n_ctx` and `n_prompt` are tokens, given when an overflow names them (M4). `about` says what of a request was in the
    way when it was not its tokens: its bytes, or its pictures (cases 102, 105). `passing`: the same request may well be
    answered in a moment; `retry_after` is when, in seconds, where the server says.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        hint: str = "",
        status: int | None = None,
        n_ctx: int | None = None,
        n_prompt: int | None = None,
        about: Literal["", "bytes", "images", "reasoning"] = "",
        passing: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.hint = hint
        self.status = status
        self.n_ctx = n_ctx
        self.n_prompt = n_prompt
        self.about: Literal["", "bytes", "images", "reasoning"] = about
        self.passing = passing
        self.retry_after = retry_after


class ChatModel(Protocol):
    """A model that can be asked. Closing the iterator closes the connection (cancels)."""

    def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """Chunks of one reply, ending in exactly one `Finished`. Raises `ModelError`."""
        ...


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Something a person can pick. `name` is the model id, or the path of a GGUF for kind "gguf"."""

    kind: Literal["embedded", "gguf", "endpoint"]
    name: str
    label: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    detail: str = ""
    """One line for the picker: size, where it was found, server kind."""
    local: bool = True


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """Progress while a model is made ready: stage in words, `done` of `total` in bytes (0 of 0: unknown)."""

    stage: str
    done: int = 0
    total: int = 0


class SlotStates(Protocol):
    """What a server can write to disk of what it has computed, and read again. Nothing here raises."""

    @property
    def folder(self) -> Path | None:
        """Where the files lie; None: on a disk of the server's."""
        ...

    async def engine(self) -> str:
        """A digest of everything a state depends on; "" when the server does not tell."""
        ...

    async def save(self, file: str) -> tuple[int, int] | None:
        """Write the state as `file`: (tokens, bytes); None when that cannot be."""
        ...

    async def restore(self, file: str) -> int | None:
        """Read `file`: its tokens; None when that cannot be."""
        ...


class Connection(Protocol):
    """A model ready to answer."""

    choice: ModelChoice
    chat: ChatModel
    """Enters every request in `slots`."""
    slots: Slots
    states: SlotStates | None
    """None: no server whose work can be kept."""
    window: Window
    supports_tools: bool
    max_tool_rounds: int | None
    """Most tool rounds a turn should take with this model (None: the setting's)."""

    @property
    def alive(self) -> bool:
        """False once the engine behind it is known to have died; connecting again starts a new one."""
        ...

    async def refresh_window(self) -> Window:
        """Ask the server again (after a restart or model change)."""
        ...

    async def read_slots(self) -> SlotFacts:
        """What the server tells of its slots now; never makes it compute, wakes it or raises (L17, L38)."""
        ...

    async def aclose(self) -> None:
        """Close sockets and end a child process started for it."""
        ...


class ModelHub(Protocol):
    """Finds models and connects to them."""

    async def choices(self) -> list[ModelChoice]:
        """Everything usable now, best first: configured endpoint, embedded, loopback servers, GGUF files."""
        ...

    async def default(self) -> ModelChoice | None:
        """What to use when nothing was picked; None when there is nothing (first-run screen)."""
        ...

    async def connect(self, choice: ModelChoice, progress: Callable[[LoadProgress], None]) -> Connection:
        """Make `choice` ready. Raises `ModelError`."""
        ...
