"""Where toasts may stand on the main screen: above everything that asks or is written in, and beside the gauge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.screen import Screen
from textual.widget import Widget

HEAD_FROM = 5
"""Rows from which the lines at the top (panes, gauge) are left free as well."""

WIDTH = 76
"""Most columns of a toast."""


class ToastRoom:
    """Holds the toasts of `screen` above the topmost of `below`, whatever of it is shown and however tall it is.

    `head` are the lines at the top that stay free when there is room, `right` gives the columns to leave free.
    """

    def __init__(
        self, screen: Screen[None], below: Sequence[Widget], head: Sequence[Widget], right: Callable[[], int]
    ) -> None:
        self._screen = screen
        self._below = below
        self._head = head
        self._right = right
        self._placed: tuple[int, int, int] | None = None
        screen.screen_layout_refresh_signal.subscribe(screen, lambda _screen: self.fit())

    def fit(self) -> None:
        """Called after each layout; does nothing unless something moved."""
        racks = list(self._screen.query("ToastRack"))
        if not racks:
            return
        rack = racks[0]
        end = min((w.region.y for w in self._below if w.display and w.region.area), default=0)
        top = sum(w.region.height for w in self._head if w.display)
        top = top if end - top >= HEAD_FROM else 0
        right = self._right()
        place = (top, right, end - top)
        if place != self._placed:
            self._placed = place
            rack.styles.margin = (top, 0, 0, 0)
            rack.styles.padding = (0, right, 0, 0)
            rack.styles.max_height = end - top
        for toast in rack.query("Toast"):
            toast.styles.max_width = min(WIDTH, self._screen.size.width - right)
            toast.styles.max_height = end - top  # a tall one shows its beginning
