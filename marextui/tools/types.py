"""The port to the tools: what a tool is, what it may need, what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from marextui.context.messages import Part

Answer = Literal["once", "conversation", "deny"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Name, one-paragraph description and JSON schema of the parameters, as the model is told."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def wire(self) -> dict[str, Any]:
        """OpenAI `tools` element."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": dict(self.parameters)},
        }


@dataclass(frozen=True, slots=True)
class PermissionNeed:
    """What a person is asked before a call runs.

    `scope` is the text that "for this conversation" would allow again (a command, a path); equal scope of equal
    `kind` is not asked twice. `diff` is a unified diff for Edit and Write, "" otherwise.
    """

    kind: Literal["edit", "write", "bash", "outside", "memory"]
    title: str
    detail: str
    scope: str
    diff: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave: `text` goes to the model (raw), `summary` is one short line for the card."""

    text: str
    is_error: bool = False
    summary: str = ""
    diff: str = ""
    parts: tuple[Part, ...] = ()
    """A multi-part output (images); when given it is what the model gets instead of `text`."""
    exempt_from_omission: bool = False
    """True for ReadOmittedContent: its result is not itself replaced by a marker in its turn (M26)."""


class OmittedReader(Protocol):
    """Reads stored omissions back; given to the tool by the engine (the tools room does not know the store)."""

    async def read(self, omission_id: str) -> str | None:
        """The complete stored text, or None when there is none. Raises OSError."""
        ...

    async def count_read(self, omission_id: str) -> None:
        """Some of that text was shown: one read-back more."""
        ...

    async def why_missing(self, omission_id: str) -> str:
        """One sentence for the model: unknown id, or expired after N days."""
        ...

    async def about(self, omission_id: str) -> str:
        """What to know when reading it: a part that was not kept, a file that changed since; "" for nothing."""
        ...


@dataclass(frozen=True, slots=True)
class RecallHit:
    """A place in the conversation: its message, when it was said, by whom, the text around what was found.

    `note` says what a reader must know, for example that a value in it was changed later; "" for nothing.
    """

    message_id: str
    when: str
    role: str
    text: str
    note: str = ""


class Recaller(Protocol):
    """Searches the whole conversation; given to the tool by the engine."""

    async def search(self, query: str, *, max_chars: int = 2_000) -> tuple[RecallHit, ...]:
        """At most three places for `query`, best first, each text of at most `max_chars` characters."""
        ...


@dataclass(slots=True)
class ToolContext:
    """What a running call may use. `emit` streams output to the screen as it comes (Bash)."""

    emit: Callable[[str], None] = field(default=lambda _text: None)
    omitted: OmittedReader | None = None
    recaller: Recaller | None = None
    limit_chars: int = 30_000
    """The cap of M30 in characters, for tools that page by themselves (ReadOmittedContent)."""


class Tool(Protocol):
    """One tool. `run` never raises for bad input: it returns an error result the model can act on."""

    @property
    def spec(self) -> ToolSpec: ...

    async def permission(self, args: Mapping[str, Any]) -> PermissionNeed | None:
        """What must be asked first, or None when the call may run at once."""
        ...

    async def run(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Do it. Cancelling the awaiting task must end whatever was started (children too)."""
        ...


class ToolBox(Protocol):
    """The set of tools a model is offered, in a stable order (prefix stability, I7)."""

    def specs(self) -> tuple[ToolSpec, ...]: ...

    async def permission(self, name: str, arguments: str) -> PermissionNeed | None:
        """For a call as the model wrote it; malformed or unknown calls need none (they fail in `run`)."""
        ...

    async def run(self, name: str, arguments: str, ctx: ToolContext) -> ToolResult: ...
