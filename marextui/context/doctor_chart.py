"""What an examination of a server has found so far (issue 4, section 6). None always means: not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

ToolUse = Literal["called", "as text", "not called", "refused", "thinking"]
"""What came of a question for a tool: a call, a call written as text, words, a refusal; "thinking": cut before that."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One streamed request: prompt tokens computed and taken from the cache, seconds to the first token."""

    computed: int | None
    cached: int | None
    first_token: float


@dataclass(slots=True)
class Chart:
    """Filled while the server is examined. Texts that come from the server are raw: they are sanitised when shown.

    `local`: on this machine or its private network. `problem` is why the server cannot be used, in sentences; `ended`
    why the examination is not complete ("" when it is).
    """

    url: str
    local: bool
    label: str = ""
    """What people call it when that is not its address: a model of the embedded engine."""
    model: str = ""
    models: int = 0
    """How many models the server lists."""
    kind: str = ""
    version: str = ""
    window: int | None = None
    window_from: str = ""
    """The route and the field that told it."""
    trained: bool = False
    """The window is only the most the model was trained for."""
    slots: int | None = None
    save_path: bool | None = None
    tools_told: bool | None = None
    """What the server says of its template; what the model did is `tool_use`."""
    tool_use: ToolUse | None = None
    tools_said: str = ""
    """Why they were refused, in the server's words."""
    tool_none: ToolUse | None = None
    """With `tool_choice` "none"; "not called" is as it should be."""
    tools_kept: bool | None = None
    """With `tool_choice` "none" the tools stay in the prompt, so that it goes on with what is cached (D9)."""
    two_users: bool | None = None
    two_users_said: str = ""
    answers: bool = False
    streams: bool = False
    usage_plain: bool | None = None
    usage_stream: bool | None = None
    cached_told: bool | None = None
    progress: bool | None = None
    timings: bool | None = None
    speed: float | None = None
    """Prompt tokens a second, by the server's own timings of one prompt."""
    cancels: bool | None = None
    cancel_words: str = ""
    """How that was seen, as part of a sentence."""
    measured: dict[str, Measured] = field(default_factory=dict)
    """By the name of the request: opening, continuation, separate, back, prewarmed."""
    measure_said: str = ""
    """Why something could not be measured, in the server's words."""
    counted: int = 0
    """Prompt tokens of all requests as the server counted them."""
    requests: int = 0
    problem: str = ""
    ended: str = ""

    @property
    def name(self) -> str:
        """What the report calls it."""
        return self.label or self.url

    @property
    def usable(self) -> bool:
        """It answers, whole and streamed."""
        return self.answers and self.streams and not self.problem
