"""A box with text to read and scroll: what help and status are made of."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget

from marextui.tui.action_types import bindings_for
from marextui.tui.hanging import hanging
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.text import line


class _Text(Widget):
    """Wraps under the column in which a value began."""

    DEFAULT_CSS = "_Text { width: 1fr; height: auto; }"

    def __init__(self, text: Content) -> None:
        super().__init__()
        self._text = text

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return hanging(self._text, width).plain.count("\n") + 1

    def render(self) -> Content:
        return hanging(self._text, self.content_size.width)


class Reader(ModalScreen[None]):
    """Esc closes; arrows, PgUp, PgDn, Home and End scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "picker")]
    AUTO_FOCUS = "VerticalScroll"

    DEFAULT_CSS = """
    Reader { align: center middle; }
    Reader > VerticalScroll {
        width: 96%; max-width: 110; height: auto; max-height: 96%;
        border: round $border; padding: 0 1; background: $surface;
    }
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self.heading = title

    def compose(self) -> ComposeResult:
        with VerticalScroll() as frame:
            frame.border_title = line(self.heading, 100)
            frame.border_subtitle = Content("Esc closes")
            yield _Text(self.content())

    def content(self) -> Content:
        """What is shown."""
        raise NotImplementedError

    def action_cancel(self) -> None:
        self.dismiss(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There are no rows to move between here: up and down scroll."""
        return action not in ("cursor_down", "cursor_up", "page")
