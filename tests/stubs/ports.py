"""Ports that do what a test says and remember what they were asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from marextui.tui.ports import CopyOutcome, EditOutcome, Ports


@dataclass
class FakeClock:
    """Time stands still until `advance`; keys arrive `gap` seconds apart.

    What is to happen `after` some time happens at once; with `hold` it waits in `due`.
    """

    at: float = 1_700_000_000.0
    ticks: float = 1000.0
    gap: float = 1.0
    arrived: float = 0.0
    hold: bool = False
    due: list[Callable[[], object]] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.ticks

    def arrival(self, stamp: float) -> float:
        self.arrived += self.gap
        return self.arrived

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        if self.hold:
            self.due.append(call)
        else:
            call()

    def advance(self, seconds: float) -> None:
        self.at += seconds
        self.ticks += seconds


@dataclass
class FakeClipboard:
    """`outcome` is what every copy ends with."""

    outcome: CopyOutcome = field(default_factory=lambda: CopyOutcome(True, "the clipboard (fake)"))
    copied: list[str] = field(default_factory=list)

    async def copy(self, text: str) -> CopyOutcome:
        self.copied.append(text)
        return self.outcome


@dataclass
class FakeEditor:
    """`result` is the text after an edit (None: as it was); with `problem` every edit fails."""

    result: str | None = None
    problem: str = ""
    edited: list[str] = field(default_factory=list)
    opened: list[Path] = field(default_factory=list)

    async def edit(self, text: str, *, suffix: str = ".md") -> EditOutcome:
        self.edited.append(text)
        if self.problem:
            return EditOutcome(None, self.problem)
        return EditOutcome(text if self.result is None else self.result)

    async def open(self, path: Path) -> str:
        self.opened.append(path)
        return self.problem


@dataclass
class FakePager:
    problem: str = ""
    shown: list[str] = field(default_factory=list)

    async def show(self, text: str, *, title: str = "") -> str:
        self.shown.append(text)
        return self.problem


@dataclass
class FakePorts:
    """The fakes by name, and `bundle` to give to an app."""

    clock: FakeClock = field(default_factory=FakeClock)
    clipboard: FakeClipboard = field(default_factory=FakeClipboard)
    editor: FakeEditor = field(default_factory=FakeEditor)
    pager: FakePager = field(default_factory=FakePager)

    @property
    def bundle(self) -> Ports:
        return Ports(self.clock, self.clipboard, self.editor, self.pager)
