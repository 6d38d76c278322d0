"""marextui on a real terminal: started, used, resized, interrupted, killed and left (issue 2, section 5)."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stubs.fake_server import FakeServer, Gate, Reply, delta, finish, stream_reply, text_reply, usage_chunk
from tests.stubs.terminal import CTRL_C, ENTER, ESCAPE, F9, Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

READY = "Write a message"
PRODUCT = (sys.executable, "-m", "marextui")
BARE = """\
import sys
from marextui.models import hub

async def nobody(ports):
    return []

hub.engine_installed = lambda: False
hub.installed = lambda name: False
hub.probe_loopback = nobody
from marextui.cli import main
sys.exit(main())
"""
"""The product as it starts where neither the extra `local` nor a server is there, whatever this machine has."""


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer(n_ctx=32_768) as fake:
        yield fake


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def marextui(
    server: FakeServer, project: Path, *arguments: str, columns: int = 120, lines: int = 40, new: bool = False
) -> Terminal:
    """The product, as who uses it already; a `new` user has chosen nothing yet."""
    env = {"MAREX_BASE_URL": server.base_url, "MAREX_MODEL": "fake", **({} if new else {"MAREX_PREWARM": "off"})}
    return Terminal([*PRODUCT, *arguments], cwd=project, columns=columns, lines=lines, env=env)


def held_reply(first: str, gate: Gate, rest: str) -> Reply:
    """Streams `first`, waits at the gate, streams `rest`."""
    return stream_reply(delta(content=first), gate, delta(content=rest), finish(), usage_chunk(100, 10))


def check_restored(term: Terminal) -> None:
    """The terminal is as it was found (case 31): screen, cursor, mouse, paste and key modes, line discipline."""
    screen = term.screen
    assert not screen.alternate
    assert not screen.cursor.hidden
    assert [m for m in (1000, 1002, 1003, 1006, 1015, 1004, 2004) if screen.on(m)] == []
    text = term.text.replace("\n", "")  # a narrow terminal wraps the line
    rest = re.sub(r"To go on with this conversation: marextui --resume \S+", "", text)
    assert rest.strip() == "", "nothing but how to go on stays on the screen"
    echo = termios.ECHO | termios.ICANON | termios.ISIG
    assert term.cooked[3] & echo == echo
    assert screen.on(7), "lines wrap again"
    raw = bytes(term.raw)
    pushed, popped = re.findall(rb"\x1b\[>\d+u", raw), raw.count(b"\x1b[<u")
    assert popped >= len(pushed) > 0, "the kitty keyboard mode is left"
    assert b"Traceback" not in raw


async def leave(term: Terminal) -> None:
    term.type(CTRL_C)
    await term.until("Press ctrl+c")
    term.type(CTRL_C)
    assert await term.exited() == 0
    check_restored(term)


async def test_the_first_paint_has_composer_and_gauge_and_leaving_restores_the_terminal(
    server: FakeServer, project: Path
) -> None:
    async with marextui(server, project) as term:
        await term.until(READY)
        assert "Context" in term.text, "the gauge is there with the composer"
        await term.until("Window 32 768")
        assert term.screen.alternate
        assert term.screen.on(1003), "the mouse is used"
        await leave(term)


async def test_without_the_mouse_it_is_never_switched_on(server: FakeServer, project: Path) -> None:
    async with marextui(server, project, "--no-mouse") as term:
        await term.until(READY)
        term.type("/quit" + ENTER)
        assert await term.exited() == 0
        check_restored(term)
        assert b"\x1b[?1003h" not in term.raw
        assert b"\x1b[?1000h" not in term.raw


async def test_an_answer_is_seen_while_it_streams(server: FakeServer, project: Path) -> None:
    gate = Gate()
    server.script(held_reply("The answer begins", gate, " and ends."))
    async with marextui(server, project) as term:
        await term.until(READY)
        term.type("a question" + ENTER)
        await term.until("The answer begins")
        assert "and ends." not in term.text
        gate.open()
        await term.until("The answer begins and ends.")
        await term.until("ready")
        assert server.chats[0].json()["messages"][-1] == {"role": "user", "content": "a question"}
        await leave(term)


async def test_keys_typed_ahead_keep_their_order(server: FakeServer, project: Path) -> None:
    """Everything arrives at once, as on a busy machine: Enter must not overtake the text before it."""
    server.fallback = text_reply("Noted.")
    async with marextui(server, project) as term:
        await term.until(READY)
        burst = "one" + ENTER + "two" + ENTER + "\x1b[200~three, pasted\x1b[201~" + ENTER + "rest"
        term.type(burst)
        await term.until(lambda: len(server.chats) == 3 and term.text.count("Noted.") == 3)
        said = [m["content"] for m in server.chats[2].json()["messages"] if m["role"] == "user"]
        assert said == ["one", "two", "three, pasted"]
        await term.until("rest")
        await leave_with_draft(term)


async def test_escape_stops_an_answer_keeps_what_came_and_the_next_message_works(
    server: FakeServer, project: Path
) -> None:
    gate = Gate()
    server.script(held_reply("Half of an answer", gate, " never seen"), text_reply("The second answer."))
    async with marextui(server, project) as term:
        await term.until(READY)
        term.type("first" + ENTER)
        await term.until("Half of an answer")
        term.type(ESCAPE)
        await asyncio.wait_for(server.hung_up(), 20)
        await term.until("ready")
        assert "Half of an answer" in term.text
        term.type("second" + ENTER)
        await term.until("The second answer.")
        assert "Half of an answer" in term.text
        assert [m["content"] for m in server.chats[1].json()["messages"][1:]] == [
            "first",
            "Half of an answer",
            "second",
        ]
        await leave(term)


async def test_resizing_in_the_middle_of_an_answer(server: FakeServer, project: Path) -> None:
    gate = Gate()
    server.script(held_reply("A long answer: " + "words " * 60, gate, "till the end."))
    async with marextui(server, project) as term:
        await term.until(READY)
        term.type("go" + ENTER)
        await term.until("A long answer")
        term.type("my draft")
        await term.until("my draft")
        for columns, lines in ((80, 24), (60, 20), (20, 6), (120, 40), (60, 20)):
            term.resize(columns, lines)
            await term.until(lambda: "my draft" in term.text)
        gate.open()
        await term.until("till the end.")
        assert "my draft" in term.text
        assert "[Conversation]" in term.text, "a narrow screen has tabs"
        await leave_with_draft(term)


async def test_a_new_user_is_offered_once_to_save_the_machine_work(server: FakeServer, project: Path) -> None:
    """Issue 4, section 5: under the first answer, by keyboard alone, on a small screen; never again after an answer."""
    server.script(text_reply("The first answer."), text_reply("The second answer."))
    async with marextui(server, project, columns=80, lines=24, new=True) as term:
        await term.until(READY)
        term.type("go" + ENTER)
        await term.until("/economy on or /economy off")
        assert "The first answer." in term.text
        term.type("/economy off" + ENTER)
        await term.until("Saved in your settings")
        await leave(term)
    async with marextui(server, project, columns=80, lines=24, new=True) as term:
        await term.until(READY)
        term.type("go" + ENTER)
        await term.until("The second answer.")
        await term.until("inp 100 / out 10")
        await leave(term)
        assert b"/economy" not in bytes(term.raw)


async def leave_with_draft(term: Terminal) -> None:
    term.type(CTRL_C)
    await term.until("The draft is cleared")
    await leave(term)


async def test_killed_in_the_middle_of_an_answer_it_goes_on_where_it_was(server: FakeServer, project: Path) -> None:
    """Case 31: kill -9 leaves a log that opens, says what happened and offers the retry that answers the message."""
    server.script(held_reply("Half an answer", Gate(), ""), text_reply("The whole answer."))
    async with marextui(server, project) as term:
        await term.until(READY)
        term.type("a question to survive" + ENTER)
        await term.until("Half an answer")
        term.kill(signal.SIGKILL)
        assert await term.exited() == -signal.SIGKILL
    async with marextui(server, project, "--continue") as term:
        await term.until("a question to survive")
        await term.until("interrupted by a crash")
        term.type(F9)
        await term.until("The whole answer.")
        await leave(term)
    assert [m["content"] for m in server.chats[-1].json()["messages"][1:]] == ["a question to survive"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_it_cleanly_even_in_the_middle_of_an_answer(
    server: FakeServer, project: Path, number: signal.Signals
) -> None:
    server.script(held_reply("Half an answer", Gate(), ""))
    async with marextui(server, project) as term:
        await term.until(READY)
        term.type("a question" + ENTER)
        await term.until("Half an answer")
        term.kill(number)
        assert await term.exited() == 0
        check_restored(term)
    if number == signal.SIGHUP:
        return
    async with marextui(server, project, "--continue") as term:
        await term.until("Half an answer")
        assert "crash" not in term.text, "the turn was closed in order"
        await leave(term)


async def test_a_machine_with_nothing_gets_the_first_run_screen(project: Path) -> None:
    for keys in (ESCAPE, CTRL_C + CTRL_C):
        async with Terminal([sys.executable, "-c", BARE], cwd=project, columns=100, lines=30) as term:
            await term.until("There are three ways")
            assert "pip install 'marextui[local]'" in term.text
            term.type(keys)
            assert await term.exited() == 0
            check_restored(term)


DAMAGED = {
    "no token table": """
from marextui.models import tokenizer
def refuse(path):
    raise tokenizer.TokenizerError("The token table is missing; install marextui again.")
tokenizer.load_ranks = refuse
""",
    "no screen": """
from marextui.tui import run
def refuse(*args, **options):
    raise RuntimeError("no screen")
run.MarexApp = refuse
""",
}


@pytest.mark.parametrize("damage", DAMAGED)
async def test_what_fails_before_the_first_paint_ends_with_its_reason(project: Path, damage: str) -> None:
    """Not in silence for ever, waiting for the thread of a log that nobody closes."""
    code = f"{DAMAGED[damage]}\nimport sys\nfrom marextui.cli import main\nsys.exit(main())"
    async with Terminal([sys.executable, "-c", code], cwd=project) as term:
        assert await term.exited() == 1
        assert damage.removeprefix("no ") in term.text
        assert not term.screen.alternate


async def test_a_server_that_does_not_answer_is_a_sentence_with_a_way_on(project: Path) -> None:
    async with FakeServer() as gone:
        pass
    async with marextui(gone, project) as term:
        await term.until(READY)
        term.type("hello" + ENTER)
        await term.until("F9 tries again")
        assert "hello" in term.text
        await leave(term)


@pytest.mark.parametrize("arguments", [(), ("--continue",), ("--resume",)])
async def test_without_a_terminal_it_says_so(project: Path, arguments: tuple[str, ...]) -> None:
    process = await asyncio.create_subprocess_exec(
        *PRODUCT,
        *arguments,
        cwd=project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 2
    assert out == b""
    assert b"needs a terminal" in err
    assert b"marextui -p" in err
    assert b"Traceback" not in err


async def test_a_megabyte_is_pasted_as_one_line_and_sent_whole(project: Path) -> None:
    """Case 36: the paste is collapsed in the draft; not a character of it is lost on the way to the model."""
    pasted = "".join(f"paste line {n}\n" for n in range(60_000)) + "the very end"
    assert len(pasted) > 1_000_000
    async with FakeServer(n_ctx=2_000_000) as server, marextui(server, project) as term:
        server.script(text_reply("Received."))
        await term.until("Window 2 000 000")
        await term.paste(pasted)
        await term.until("60 001 lines]")
        assert "the very end" not in term.text
        term.type(ENTER)
        await term.until("Received.")
        assert server.chats[0].json()["messages"][-1]["content"] == pasted
        await leave(term)


HOSTILE = {
    "OSC 52, the clipboard": ("\x1b]52;c;SE9TVElMRQ==\x07", b"SE9TVElMRQ"),
    "OSC 0, the title": ("\x1b]0;stolen-title\x07", b"stolen-title"),
    "OSC 8, a link": ("\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\", b"evil.example"),
    "CSI 2J, clearing": ("\x1b[2J\x1b[3J\x1b[H", b"\x1b[2J"),
    "the same in 8 bits": ("\x9b2J\x9d52;c;RUlHSFQ=\x9c", b"RUlHSFQ"),
    "leaving the alternate screen": ("\x1b[?1049l", b"\x1b[?1049l"),
    "a device report": ("\x1b[6n\x1b[c\x1bP$q\x1b\\", b"\x1b[6n"),
    "a reset": ("\x1bc", b"\x1bc"),
    "bidi override": ("\u202egnp.exe\u202c", "\u202e".encode()),
    "a bell": ("\x07", b"\x07"),
    "C1 in UTF-8": ("\u009b31m", "\u009b".encode()),
}


def without_pointer_shapes(raw: bytes | bytearray) -> bytes:
    """What Textual itself writes with a BEL in it."""
    return re.sub(rb"\x1b\]22;[a-z-]*\x07", b"", bytes(raw))


async def test_hostile_bytes_of_an_answer_never_reach_the_terminal(server: FakeServer, project: Path) -> None:
    """Case 26, on the bytes themselves; pieces are split inside the sequences, as a stream may."""
    pieces: list[str] = []
    for name, (attack, _) in HOSTILE.items():
        half = len(attack) // 2
        pieces += [f"\n\n{name}: [", attack[:half], attack[half:], "]"]
    reply = stream_reply(
        *(delta(content=p) for p in pieces), delta(content="\n\nthe end is reached"), finish(), usage_chunk(100, 10)
    )
    server.script(reply)
    async with marextui(server, project) as term:
        await term.until("Window 32 768")
        begin = len(term.raw)
        term.type("attack" + ENTER)
        await term.until("the end is reached")
        written = without_pointer_shapes(term.raw[begin:])
        for name, (_, needle) in HOSTILE.items():
            assert name in term.text
            assert needle not in written, name
        assert "⇄gnp.exe" in term.text, "made visible, not dropped"
        await leave(term)
    reopened = marextui(server, project, "--continue")
    async with reopened as term:  # the log keeps the text raw: the way back to the screen is another one
        await term.until("the end is reached")
        for name, (_, needle) in HOSTILE.items():
            assert needle not in without_pointer_shapes(term.raw), name
        await leave(term)
