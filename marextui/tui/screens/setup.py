"""The first-run screen: what was found, what is missing, and the exact thing to do (case 28)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from textual.screen import ModalScreen

from marextui.engine.api import SetupReport
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


@dataclass(frozen=True, slots=True)
class SetupChoice:
    """ "option": select `option_id`; "endpoint": it was checked and saved already; "rescan": ask `setup()` again."""

    kind: Literal["option", "endpoint", "quit", "rescan"]
    option_id: str = ""


class SetupScreen(ModalScreen[SetupChoice]):
    """`check(base_url, api_key, model)` is `EngineApi.configure_endpoint`: "" or a sentence saying what is wrong."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "setup")]

    def __init__(self, report: SetupReport, check: Callable[[str, str, str], Awaitable[str]]) -> None:
        super().__init__()
        self.report = report
        self.check = check
