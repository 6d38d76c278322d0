"""The line under the composer that says what is happening, and the line of keys. Words, no spinner: nothing moves when
nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rich.cells import cell_len
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from marextui.engine.event_values import Phase
from marextui.engine.events import PromptProcessed
from marextui.tui import formats, prompt_progress
from marextui.tui.action_types import Action, Scope
from marextui.tui.actions import key_label
from marextui.tui.glyphs import ASCII, glyphs_of
from marextui.tui.status import Status
from marextui.tui.text import line

WORDS: dict[Phase, str] = {
    "starting": "starting",
    "idle": "ready",
    "loading": "loading model",
    "preparing": "preparing",
    "connecting": "connecting",
    "prompt": "reading the prompt",
    "streaming": "answering",
    "tools": "running tools",
    "permission": "waiting for your answer",
    "compacting": "compacting",
    "probing": "asking what it remembers",
    "examining": "examining the server",
    "interrupting": "stopping",
}
UNSTOPPABLE: frozenset[Phase] = frozenset(("idle", "starting", "loading", "interrupting"))


class StatusLine(Static):
    """Phase, detail, seconds so far; model; usage of the last turn. The clock ticks once a second, only while busy."""

    def __init__(self, monotonic: Callable[[], float], stop_key: Callable[[str], str]) -> None:
        super().__init__("", id="status", markup=False)
        self._monotonic = monotonic
        self._key_label = stop_key
        self._status = Status()
        self._since = 0.0
        self._told_at = 0.0
        self._timer: Timer | None = None

    @property
    def ticking(self) -> bool:
        return self._timer is not None

    def show(self, status: Status) -> None:
        was_idle = self._status.phase == "idle"
        if status.progress is not self._status.progress:
            self._told_at = self._monotonic()
        self._status = replace(status)
        busy = status.phase != "idle"
        if busy and was_idle:
            self._since = self._monotonic()
        if busy and self._timer is None:
            self._timer = self.set_interval(1.0, self._redraw)
        elif not busy and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        s, width = self._status, self.size.width
        dot = glyphs_of(self.app).dot
        took = f" {dot} {int(self._monotonic() - self._since)} s" if s.phase != "idle" else ""
        stops = f" {dot} {self._key_label('app.escape')} stops" if s.phase not in UNSTOPPABLE else ""
        start = f" {WORDS.get(s.phase, s.phase)}"
        if s.progress is not None:
            left = self._with_progress(f"{start} {dot} ", s.progress, took, stops)
        else:
            left = start + (f" {dot} {line(s.detail, 80).plain}" if s.detail else "") + took + stops
        model = line(s.model, 40).plain if s.model else "no model" if s.phase != "starting" else ""
        if s.model and s.local:
            model += " (local)"
        usage = f"{formats.usage_line(s.usage)} {dot} " if s.usage is not None else ""
        last = "" if s.progress is not None else f"{model} "  # how far the prompt is comes before the name of a model
        right = next((r for r in (f"{usage}{model} ", f"{model} ") if cell_len(left + r) < width), last)
        gap = max(1, width - cell_len(left + right))
        self.update(Content.assemble((left, "bold"), " " * gap, (right, "$foreground-muted")))

    def _with_progress(self, start: str, progress: PromptProcessed, took: str, stops: str) -> str:
        """The richest wording that fits; where the room is short, the time left comes before the time spent."""
        since = self._monotonic() - self._told_at
        *whole, drawn, bare = prompt_progress.wordings(progress, since, glyphs_of(self.app))
        said = [*(words + took for words in whole), *whole, drawn + took, drawn, bare + took, bare]
        lines = [f"{start}{words}{stops}" for words in said]
        return next((text for text in lines if cell_len(text) < self.size.width), lines[-1])


class KeyBar(Static):
    """The footer: keys of the focused pane, then of the app, as the registry and the person's keymap say."""

    def __init__(self, actions: tuple[Action, ...], keys: Mapping[str, str]) -> None:
        super().__init__("", id="keys", markup=False)
        self._actions = actions
        self._keys = keys
        self.scope: Scope = "app"

    def show(self, scope: Scope) -> None:
        self.scope = scope
        ascii_only = glyphs_of(self.app) is ASCII
        rows = [a for a in self._actions if a.footer and a.scope == scope]
        if scope in ("conversation", "gauge", "omissions", "memory"):
            rows += [a for a in self._actions if a.id == "app.focus_composer"]
        if scope != "app":
            rows += [a for a in self._actions if a.footer and a.scope == "app"]
        parts: list[Content] = []
        room = self.size.width or 80
        for a in rows:
            part = Content.assemble(" ", (key_label(a, self._keys, ascii_only=ascii_only), "bold"), f" {a.title} ")
            room -= part.cell_length
            if room < 0:
                break
            parts.append(part)
        self.update(Content("").join(parts))

    def on_resize(self) -> None:
        self.show(self.scope)
