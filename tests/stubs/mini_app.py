"""A small app around the widget under test: fake ports, a shipped theme, and every message the widget posts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual import on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.widget import Widget

from marextui.tui.themes import DEFAULT_THEME, load_themes
from tests.stubs.ports import FakePorts


class MiniApp(App[None]):
    """`messages` has what the widgets posted, in order, for the types in `watch`."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        *widgets: Widget,
        watch: Sequence[type[Message]] = (),
        screen: Any = None,
        theme: str = DEFAULT_THEME,
        css: str = "",
    ) -> None:
        self.CSS = css
        super().__init__()
        self.widgets = widgets
        self.watched = tuple(watch)
        self.messages: list[Any] = []
        self.answers: list[Any] = []
        self.fakes = FakePorts()
        self.ports = self.fakes.bundle
        self.animation_level = "none"
        self._first_screen = screen
        self.notes: list[str] = []
        for shipped in load_themes(None)[0]:
            self.register_theme(shipped)
        self.theme = theme

    def compose(self) -> ComposeResult:
        yield from self.widgets

    async def on_mount(self) -> None:
        if self._first_screen is not None:
            await self.push_screen(self._first_screen, self.answers.append)

    def notify(self, message: str, **kwargs: Any) -> None:  # type: ignore[override]
        assert kwargs.get("markup") is False, "a toast must not read markup"
        self.notes.append(message)

    @on(Message)
    def _record(self, message: Message) -> None:
        if isinstance(message, self.watched):
            self.messages.append(message)
