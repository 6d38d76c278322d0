"""The context gauge: how full the budget is, where compaction comes, and what fills it (M1–M6, M22; cases 43–48)."""

from __future__ import annotations

from typing import Any

from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from marextui.engine.events import Gauge
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


class GaugePane(VerticalScroll):
    """The gauge in full; focusable, scrolls when the room is short."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "gauge")]

    class StatusRequested(Message):
        """The person wants every number (`/status`)."""

    def __init__(self, gauge: Gauge | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gauge = gauge or Gauge()

    def show(self, gauge: Gauge) -> None:
        self.gauge = gauge

    def action_status(self) -> None:
        self.post_message(self.StatusRequested())


class GaugeLine(Static):
    """The gauge in one line, for narrow screens; adapts from 40 to 200 columns."""

    def __init__(self, gauge: Gauge | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gauge = gauge or Gauge()

    def show(self, gauge: Gauge) -> None:
        self.gauge = gauge
        self.refresh()

    def render(self) -> Content:
        return Content("")
