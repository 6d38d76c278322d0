"""The first-run screen: what was found, what is missing, and the exact thing to do (case 28)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Footer, Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from marextui.engine.api import SetupReport
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.ports import copy_and_tell
from marextui.tui.screens.models import option_row
from marextui.tui.text import line, plain

FIELDS = ("setup-url", "setup-key", "setup-model")


@dataclass(frozen=True, slots=True)
class SetupChoice:
    """ "option": select `option_id`; "endpoint": it was checked and saved already; "rescan": ask `setup()` again.

    `typed` are the fields (URL, key, model) as they were left, for the screen that comes after a rescan.
    """

    kind: Literal["option", "endpoint", "quit", "rescan"]
    option_id: str = ""
    typed: tuple[str, str, str] = field(default=("", "", ""), repr=False)


def local_text(report: SetupReport) -> Content:
    """Way 1: the local model; what of it is there, and the command for what is missing."""
    if report.engine_installed and report.weights_installed:
        return Content("Installed. Choose it in the list below.")
    missing = {
        (False, False): "Runs on this machine, no key and no network needed afterwards. Leave with Esc and run:",
        (True, False): "The engine is installed, the model is not. Leave with Esc and run:",
        (False, True): "The model is installed, the engine is not. Leave with Esc and run:",
    }[report.engine_installed, report.weights_installed]
    return Content.assemble(missing, "\n  ", (line(report.install_command, 400).plain, "bold $text-accent"))


def probed_text(report: SetupReport) -> Content:
    """Way 2: who answered on this machine."""
    rows = []
    for kind, url, answered in report.probed:
        sign = ("answers", "$text-success") if answered else ("no answer", "$text-secondary")
        rows.append(Content.assemble(line(kind, 30), " at ", line(url, 100), ": ", sign))
    if not rows:
        rows.append(Content("No server was looked for."))
    if not any(answered for _, _, answered in report.probed):
        rows.append(Content("Start llama.cpp, Ollama or LM Studio, then press F5 to look again."))
    return Content("\n").join(rows)


class SetupScreen(ModalScreen[SetupChoice]):
    """`check(base_url, api_key, model)` is `EngineApi.configure_endpoint`: "" or a sentence saying what is wrong.

    `before` is the choice that led here again: what was typed stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for(PANE_ACTIONS, "setup")]

    DEFAULT_CSS = """
    SetupScreen { background: $background; }
    SetupScreen > VerticalScroll { height: 1fr; padding: 0 1; }
    SetupScreen Static { height: auto; }
    SetupScreen .setup--head { text-style: bold; color: $text-primary; margin-top: 1; }
    SetupScreen OptionList { height: auto; max-height: 8; border: none; padding: 0; }
    SetupScreen OptionList:focus { border: none; background-tint: $foreground 5%; }
    SetupScreen Input { margin-bottom: 0; background: $panel; }
    SetupScreen Input:focus { background: $primary-muted; }
    SetupScreen .setup--wrong { color: $text-error; }
    SetupScreen Button { margin-top: 0; }
    """

    def __init__(
        self,
        report: SetupReport,
        check: Callable[[str, str, str], Awaitable[str]],
        before: SetupChoice | None = None,
    ) -> None:
        super().__init__()
        self.report = report
        self.check = check
        self._before = before
        self._checking: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        report = self.report
        with VerticalScroll(can_focus=False):
            yield Static(Content("marextui needs a model to talk to. There are three ways."), markup=False)
            yield Static(Content("1. Install the local model"), markup=False, classes="setup--head")
            yield Static(local_text(report), markup=False)
            yield Static(Content("2. Use what is on this machine"), markup=False, classes="setup--head")
            yield Static(probed_text(report), markup=False)
            if report.options:
                yield Static(Content("Found; Enter chooses:"), markup=False)
                options = {option.id: Option(option_row(option), id=option.id) for option in report.options}
                yield OptionList(*options.values(), markup=False)
            yield Static(Content("3. Use an OpenAI-compatible server"), markup=False, classes="setup--head")
            hints = (
                "Base URL, like http://127.0.0.1:8080/v1",
                "API key (leave empty if it needs none)",
                "Model name (leave empty for the server's own)",
            )
            typed = self._before.typed if self._before is not None else ("", "", "")
            for field_id, hint, value in zip(FIELDS, hints, typed, strict=True):
                entry = Input(
                    value,
                    placeholder=hint,
                    password=field_id == "setup-key",
                    id=field_id,
                    select_on_focus=False,
                    compact=True,
                )
                entry.cursor_blink = False
                yield entry
            yield Button("Check and use", id="setup-check", compact=True)
            yield Static(markup=False, id="setup-result")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        lists = self.query(OptionList)
        if lists:
            lists.first().focus()
        else:
            self.query_one("#setup-url", Input).focus(scroll_visible=False)
        if self._before is not None:
            found = len(self.report.options)
            self._say(f"Looked again: {found or 'nothing'} found.", wrong=False)

    def _typed(self) -> tuple[str, str, str]:
        url, key, model = (self.query_one(f"#{name}", Input).value.strip() for name in FIELDS)
        return url, key, model

    def _say(self, text: str, *, wrong: bool) -> None:
        result = self.query_one("#setup-result", Static)
        result.set_class(wrong, "setup--wrong")
        result.update(plain(text))
        self.call_after_refresh(result.scroll_visible, animate=False)

    @on(OptionList.OptionSelected)
    def _option_chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(SetupChoice("option", event.option_id or ""))

    @on(Input.Submitted)
    @on(Button.Pressed)
    def _submit(self, event: Input.Submitted | Button.Pressed) -> None:
        event.stop()
        url, key, model = self._typed()
        if not url:
            self._say("Not checked: give a base URL first, like http://127.0.0.1:8080/v1.", wrong=True)
            self.query_one("#setup-url", Input).focus()
        elif not url.startswith(("http://", "https://")):
            self._say("Not checked: the base URL must begin with http:// or https://.", wrong=True)
            self.query_one("#setup-url", Input).focus()
        elif self._checking is None:
            self._say("Checking... Esc stops it.", wrong=False)
            self._checking = self.run_worker(self._check(url, key, model), group="setup-check", exit_on_error=False)

    async def _check(self, url: str, key: str, model: str) -> None:
        try:
            problem = await self.check(url, key, model)
        finally:
            self._checking = None
        if problem:
            self._say(f"Not usable: {problem}", wrong=True)
        else:
            self.dismiss(SetupChoice("endpoint"))

    async def action_copy_command(self) -> None:
        await copy_and_tell(self.app, self.report.install_command, "the install command")

    def action_rescan(self) -> None:
        self.dismiss(SetupChoice("rescan", typed=self._typed()))

    def action_quit(self) -> None:
        """Leave; a check that is under way is stopped first, and the form stays."""
        if self._checking is not None:
            self._checking.cancel()
            self._say("The check was stopped; nothing was saved.", wrong=False)
        else:
            self.dismiss(SetupChoice("quit"))
