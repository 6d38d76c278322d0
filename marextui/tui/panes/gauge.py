"""The context gauge: how full the budget is, where compaction comes, and what fills it (M1–M6, M22; cases 43–48)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from marextui.engine.economy import CacheState
from marextui.engine.event_values import Gauge
from marextui.engine.events import PrewarmChanged
from marextui.tui.action_types import bindings_for
from marextui.tui.glyphs import glyphs_of
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.panes import gauge_bar
from marextui.tui.panes.gauge_cache import Cache


class _Body(Widget):
    """One node for the whole picture, laid out for the width at hand, so that the bar fits from the first paint."""

    DEFAULT_CSS = "_Body { height: auto; width: 1fr; }"

    def __init__(self, gauge: Gauge | None) -> None:
        super().__init__()
        self.gauge = gauge
        self.cache = Cache()

    def show(self, gauge: Gauge | None, cache: Cache) -> None:
        self.gauge, self.cache = gauge, cache
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._content(width).get_height({}, width)

    def render(self) -> Content:
        return self._content(self.content_size.width)

    def _content(self, width: int) -> Content:
        if self.gauge is None:
            return Content("The next request is being counted.")
        return gauge_bar.body(self.gauge, width, glyphs_of(self.app), self.cache)


class GaugePane(VerticalScroll, can_focus=True):
    """The gauge in full; scrolls when the room is short. Two nodes, no timers. `gauge` None: still being counted."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "gauge")]

    DEFAULT_CSS = """
    GaugePane {
        height: auto; padding: 0 1; border: round $border-blurred; border-title-color: $foreground;
        border-title-style: bold; border-subtitle-align: left; scrollbar-size-vertical: 1;
        &:focus { border: round $border; }
    }
    """

    class StatusRequested(Message):
        """The person wants every number (`/status`)."""

    def __init__(self, gauge: Gauge | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gauge = gauge
        self.cache = Cache()
        self._body = _Body(gauge)

    def compose(self) -> Any:
        yield self._body

    def on_mount(self) -> None:
        self._write_title()

    def show(self, gauge: Gauge) -> None:
        """Draw `gauge` (`GaugeChanged`). Never takes the focus."""
        self.gauge = gauge
        self._write_title()
        self._body.show(gauge, self.cache)

    def show_cache(self, cache: CacheState) -> None:
        """Draw what the server's cache did (`CacheChanged`)."""
        self._redraw(replace(self.cache, state=cache))

    def show_prewarm(self, prewarm: PrewarmChanged) -> None:
        """Draw whether the next turn's prompt is computed (`PrewarmChanged`)."""
        self._redraw(replace(self.cache, prewarm=prewarm))

    def _redraw(self, cache: Cache) -> None:
        self.cache = cache
        self._body.show(self.gauge, cache)

    def on_resize(self) -> None:
        self._write_title()

    def _write_title(self) -> None:
        if self.gauge is None:
            self.border_title = gauge_bar.COUNTING
            return
        # corners, a line and a blank on each side of the title
        room = max(0, self.outer_size.width - 6) or 80
        self.border_title = gauge_bar.title(self.gauge, room)
        # on the frame, so that mark and budget stay in sight when the pane is too low for its rows
        self.border_subtitle = gauge_bar.subtitle(self.gauge, room)

    def action_status(self) -> None:
        self.post_message(self.StatusRequested())


class GaugeLine(Static):
    """The gauge in one line, for narrow screens; adapts from 40 to 200 columns."""

    DEFAULT_CSS = "GaugeLine { height: 1; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, gauge: Gauge | None = None, **kwargs: Any) -> None:
        super().__init__(markup=False, **kwargs)
        self.gauge = gauge

    def show(self, gauge: Gauge) -> None:
        """Draw `gauge`."""
        self.gauge = gauge
        self.refresh()

    def render(self) -> Content:
        if self.gauge is None:
            return Content(gauge_bar.COUNTING)
        return gauge_bar.one_row(self.gauge, self.content_size.width or 80, glyphs_of(self.app))
