"""Clipboard, editor and pager: never "copied" on hope (case 18), nothing lost when an editor fails (case 42)."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.app import App, SuspendNotSupported

from marextui.tui import ports
from marextui.tui.ports import CopyOutcome, SystemClipboard, TerminalEditor, TerminalPager
from tests.stubs.mini_app import MiniApp


class Tools:
    """Clipboard tools that end as told; remembers what they were given."""

    def __init__(self, **results: str) -> None:
        self.results = results
        self.calls: list[tuple[list[str], bytes]] = []

    async def run(self, command: Sequence[str], data: bytes) -> str:
        self.calls.append((list(command), data))
        return self.results.get(command[0].replace("-", "_"), "")

    def clipboard(self, env: dict[str, str], have: set[str], sent: list[str] | None, platform: str = "linux"):  # type: ignore[no-untyped-def]
        def send(text: str) -> bool:
            if sent is None:
                return False
            sent.append(text)
            return True

        return SystemClipboard(
            send, run=self.run, env=env, which=lambda n: f"/bin/{n}" if n in have else None, platform=platform
        )


async def test_the_tool_of_the_session_is_used_and_verified_by_its_exit_code() -> None:
    tools = Tools()
    sent: list[str] = []
    out = await tools.clipboard({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, {"wl-copy", "xclip"}, sent).copy("héllo")
    assert (out.ok, out.verified) == (True, True)
    assert "wl-copy" in out.how
    assert tools.calls == [(["wl-copy"], "héllo".encode())]
    assert sent == []


async def test_a_failing_tool_is_not_believed() -> None:
    tools = Tools(wl_copy="wl-copy failed with exit code 1", xclip="xclip failed with exit code 1")
    env = {"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}
    out = await tools.clipboard(env, {"wl-copy", "xclip", "xsel"}, []).copy("x")
    assert [c[0][0] for c in tools.calls] == ["wl-copy", "xclip", "xsel"]
    assert "xsel" in out.how


async def test_tmux_then_osc52_which_is_sent_but_not_verified() -> None:
    sent: list[str] = []
    out = await Tools(tmux="tmux failed").clipboard({"TMUX": "1"}, {"tmux"}, sent).copy("x")
    assert (out.ok, out.verified, sent) == (True, False, ["x"])
    inside = await Tools().clipboard({"TMUX": "1"}, {"tmux"}, sent).copy("x")
    assert "tmux buffer" in inside.how


@pytest.mark.parametrize(
    ("env", "platform", "advice"),
    [
        ({"WAYLAND_DISPLAY": "w"}, "linux", "wl-clipboard"),
        ({"DISPLAY": ":0"}, "linux", "xclip"),
        ({}, "linux", "tmux"),
        ({}, "darwin", "pbcopy"),
    ],
)
async def test_when_all_fail_it_says_what_to_install(env: dict[str, str], platform: str, advice: str) -> None:
    out = await Tools().clipboard(env, set(), None, platform).copy("x")
    assert not out.ok
    assert advice in out.problem


async def test_a_text_too_long_for_the_terminal_is_not_sent() -> None:
    sent: list[str] = []
    out = await Tools().clipboard({}, set(), sent).copy("x" * (ports.OSC52_LIMIT + 1))
    assert (out.ok, sent) == (False, [])
    assert "too long" in out.problem


async def test_lone_surrogates_do_not_break_a_copy() -> None:
    sent: list[str] = []
    assert (await Tools().clipboard({}, set(), sent).copy("a\ud800b")).ok
    assert sent == ["a?b"]


async def test_real_tools_are_run_and_their_failure_told() -> None:
    assert await ports.run_tool([sys.executable, "-c", "import sys; sys.exit(sys.stdin.read() != 'x')"], b"x") == ""
    assert "exit code 3" in await ports.run_tool([sys.executable, "-c", "raise SystemExit(3)"], b"x")
    assert "did not start" in await ports.run_tool(["/nonexistent/tool"], b"x")


async def test_a_tool_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "TOOL_TIMEOUT", 0.05)
    problem = await ports.run_tool([sys.executable, "-c", "import signal; signal.pause()"], b"x")
    assert "did not answer" in problem


async def test_people_are_told_the_truth_about_a_copy() -> None:
    app = MiniApp()
    async with app.run_test():
        await ports.copy_and_tell(app, "t", "the id")
        app.fakes.clipboard.outcome = CopyOutcome(True, "the terminal (OSC 52)", verified=False)
        await ports.copy_and_tell(app, "t", "the id")
        app.fakes.clipboard.outcome = CopyOutcome(False, "", "install xclip.")
        await ports.copy_and_tell(app, "lost? [/]", "the id")
    assert app.notes[0].startswith("Copied the id")
    assert "cannot be verified" in app.notes[1]
    assert "Copied" not in app.notes[1]
    assert "install xclip" in app.notes[2]
    saved = Path(app.notes[2].split("Saved to ")[1].split(" instead")[0])
    try:
        assert saved.read_text() == "lost? [/]"
        assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    finally:
        saved.unlink()


# --- editor and pager


@contextmanager
def no_terminal() -> Iterator[None]:
    yield


def script(tmp_path: Path, code: str) -> str:
    """A command that runs `code` with `path` as the file it is given."""
    file = tmp_path / "fake_editor.py"
    file.write_text(f"import sys, os, stat, pathlib\npath = pathlib.Path(sys.argv[1])\n{code}\n")
    return f"{sys.executable} {file}"


async def test_an_edit_comes_back_and_its_file_is_private_and_gone(tmp_path: Path) -> None:
    note = tmp_path / "note"
    command = script(
        tmp_path,
        f"pathlib.Path({str(note)!r}).write_text(f'{{path}} {{stat.S_IMODE(os.stat(path).st_mode):o}}')\n"
        "path.write_bytes(path.read_bytes() + b' world\\n')",
    )
    out = await TerminalEditor(no_terminal, command).edit("hello\r\n é")
    assert (out.text, out.problem) == ("hello\r\n é world", "")
    path, mode = note.read_text().split()
    assert mode == "600"
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("path.write_text('half done'); raise SystemExit(1)", "exit code 1"),
        ("path.write_bytes(b'\\xff\\xfe half done')", "could not be read"),
    ],
)
async def test_nothing_is_lost_when_the_editor_fails(tmp_path: Path, code: str, cause: str) -> None:
    """Case 42: the draft stays, and what was written is where the sentence says."""
    out = await TerminalEditor(no_terminal, script(tmp_path, code)).edit("draft")
    assert out.text is None
    assert cause in out.problem
    assert out.path is not None
    assert str(out.path) in out.problem
    assert b"half done" in out.path.read_bytes()
    out.path.unlink()


async def test_commands_that_cannot_run_are_sentences(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for command in ("/nonexistent/editor", "'unclosed", "   "):
        out = await TerminalEditor(no_terminal, command).edit("draft")
        assert out.text is None
        assert out.problem
        assert out.path is not None
        assert out.path.read_text() == "draft"
        out.path.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "set $EDITOR" in await TerminalEditor(no_terminal).open(tmp_path / "x")
    assert "set $PAGER" in await TerminalPager(no_terminal).show("x")


async def test_settings_then_visual_then_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDITOR", "/nonexistent/from-editor")
    assert "from-editor" in await TerminalEditor(no_terminal).open(tmp_path)
    monkeypatch.setenv("VISUAL", "/nonexistent/from-visual")
    assert "from-visual" in await TerminalEditor(no_terminal).open(tmp_path)
    assert "from-settings" in await TerminalEditor(no_terminal, "/nonexistent/from-settings").open(tmp_path)


async def test_a_pager_gets_no_escape_and_leaves_no_file(tmp_path: Path) -> None:
    note = tmp_path / "note"
    command = script(tmp_path, f"pathlib.Path({str(note)!r}).write_text(str(path) + chr(10) + path.read_text())")
    assert await TerminalPager(no_terminal, command).show("a\x1b]0;T\x07b\n" + "x" * 3000) == ""
    path, text = note.read_text().split("\n", 1)
    assert text == "ab\n" + "x" * 3000
    assert not Path(path).exists()


async def test_a_terminal_that_cannot_be_handed_over_is_said(tmp_path: Path) -> None:
    @contextmanager
    def refuse() -> Iterator[None]:
        raise SuspendNotSupported("no")
        yield

    assert "cannot be handed over" in await TerminalEditor(refuse, "vi").open(tmp_path / "x")
    app: App[None] = App()
    async with app.run_test():
        problem = await ports.real_ports(app, pager="cat").pager.show("x")
    assert "cannot be handed over" in problem


async def test_an_interrupt_meant_for_the_pager_does_not_reach_the_app(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with ports._no_interrupt():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


async def test_an_app_without_ports_gets_real_ones_that_do_not_pretend() -> None:
    app: App[None] = App()
    async with app.run_test():
        real = ports.ports_of(app)
        assert real.clock.now() > 1_700_000_000
        assert real.clock.monotonic() <= real.clock.monotonic()
