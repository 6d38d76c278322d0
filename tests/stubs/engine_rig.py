"""An engine over scripted parts, with every event recorded: what most engine tests start from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from marextui.context.budget import Window
from marextui.context.entries import Record
from marextui.context.messages import Message
from marextui.context.tokens import CountText
from marextui.context.validate import violations
from marextui.engine.api import NEW
from marextui.engine.build import Parts, assemble
from marextui.engine.engine import Engine
from marextui.engine.events import Event, PhaseChanged, TurnFinished
from marextui.engine.permissions import Decision
from marextui.engine.policy import Policy
from marextui.engine.ports import CalibrationFile, CountingIds
from marextui.engine.setup import Setup
from marextui.engine.toolrun import SeenFiles
from marextui.store.log import LogStore
from marextui.store.memory import MemoryStore
from marextui.store.omissions import OmissionStore
from marextui.store.open_elsewhere import OpenConversations
from marextui.store.project import ProjectStore
from marextui.store.usage import UsageJournal
from marextui.tools import titles
from marextui.tools.types import ToolBox
from tests.stubs.scripted_model import ScriptedChat, ScriptedConnection, ScriptedHub, ScriptedTools

E = TypeVar("E")


class ManualClock:
    """Time that stands still until a test moves it."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.time = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


class PlainTitles:
    def title(self, name: str, arguments: str) -> str:
        return f"{name} {arguments}"

    def subject(self, name: str, arguments: str) -> str:
        return titles.subject(name, arguments) or arguments


def four(text: str) -> int:
    """The tests' token: four characters, rounded up."""
    return -(-len(text) // 4)


@dataclass
class Rig:
    folder: Path
    chat: ScriptedChat = field(default_factory=ScriptedChat)
    tools: ToolBox = field(default_factory=ScriptedTools)
    window: Window = field(default_factory=lambda: Window(None, "unknown"))
    policy: Policy = field(default_factory=Policy)
    clock: ManualClock = field(default_factory=ManualClock)
    wanted: str = NEW
    events: list[Event] = field(default_factory=list)
    ids: Any = field(default_factory=CountingIds)
    unattended: dict[str, Decision] | None = None
    calibration: CalibrationFile | None = None
    seen: SeenFiles | None = None
    log: LogStore | None = None
    opened: OpenConversations | None = None
    quota_mb: int = 512
    count: CountText = four

    def __post_init__(self) -> None:
        self.hub = ScriptedHub(ScriptedConnection(self.chat, self.window))
        self._heard = asyncio.Event()
        self.engine: Engine

    async def start(self, *, connect: bool = True) -> Rig:
        project = self.folder / "project"
        project.mkdir(exist_ok=True)
        self.memory = MemoryStore(self.folder / "memory", project)
        self.omissions = OmissionStore(
            self.folder / "memory" / "omissions", self.clock.now, root=project, quota_mb=self.quota_mb
        )
        self.journal = UsageJournal(project / ".marex")
        self.about = ProjectStore(project, project, project / ".marex", self.folder / "memory")
        parts = Parts(
            hub=self.hub,
            log=self.log or await LogStore.open(self.folder / "log.db"),
            omissions=self.omissions,
            memory=self.memory,
            journal=self.journal,
            box=self.tools,
            titles=PlainTitles(),
            count=self.count,
            clock=self.clock,
            ids=self.ids,
            calibration=self.calibration,
            project=self.about,
            seen=self.seen,
            opened=self.opened,
        )
        self.engine = assemble(
            parts,
            self.policy,
            project="p",
            root=project,
            setup=Setup(None, project, self.folder / "config.toml"),
            wanted=self.wanted,
            unattended=self.unattended,
        )
        self.engine.subscribe(self._hear)
        await self.engine.start(connect=connect)
        return self

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._heard.set()

    async def until(self, test: Callable[[Event], bool], *, after: int = 0) -> Event:
        """The first event since index `after` that passes `test`; waits until it comes, 20 s at most."""
        async with asyncio.timeout(20):
            while True:
                for event in self.events[after:]:
                    if test(event):
                        return event
                after = len(self.events)
                self._heard.clear()
                await self._heard.wait()

    async def ask(self, text: str) -> TurnFinished:
        """Submit and wait for the end of that turn and of the engine's activity."""
        mark = len(self.events)
        self.engine.submit(text)
        finished = await self.until(lambda e: isinstance(e, TurnFinished), after=mark)
        await self.idle()
        assert isinstance(finished, TurnFinished)
        return finished

    async def idle(self) -> None:
        """Wait until the engine does nothing and checks nothing: it changes that with an event, or as a task ends."""
        while self.engine.busy or self.engine.checking:
            self._heard.clear()
            heard = asyncio.create_task(self._heard.wait())
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
            heard.cancel()

    def of(self, kind: type[E]) -> list[E]:
        return [e for e in self.events if isinstance(e, kind)]

    def phases(self) -> list[str]:
        return [e.phase for e in self.of(PhaseChanged)]

    async def records(self) -> tuple[Record, ...]:
        return await self.engine.state.archive.store.records(self.engine.session.id)

    def history(self) -> tuple[Message, ...]:
        return self.engine.session.history()

    def check_log(self) -> None:
        """The log, folded, is a view a provider would accept."""
        assert violations(self.history(), with_system=False) == ()

    async def usage_lines(self) -> list[dict[str, Any]]:
        return await self.journal.read()


def texts(request: Any) -> list[str]:
    """Contents of a request's messages, for short asserts."""
    return [m["content"] if isinstance(m["content"], str) else json.dumps(m["content"]) for m in request.messages]


async def full_disk(*_args: Any, **_kw: Any) -> Any:
    """Stands for a method that writes, on a disk without room."""
    raise OSError(28, "No space left on device")
