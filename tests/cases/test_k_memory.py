"""Long-term memory: full without silence, corrected without forgetting, and never a policy's outcome.

Cases 129–134 of the reported ones; I14; Part 2, 14.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from marextui.context.budget import Window
from marextui.context.memory import MEMORY_CAP, MemoryEntry, admissible, parse_memory
from marextui.context.memory_keeping import remember, replaces
from marextui.engine.events import CompactionFinished, Notice
from marextui.engine.ports import RandomIds
from marextui.store.memory import ARCHIVE_NAME, MemoryStore
from tests.cases.conftest import StartRig
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import ScriptedChat, say

WIDE = Window(100_000, "discovery")
ASKED = "Make src/parser.py faster; the frontend uses {choice}; keep the old API. The tests pass, then measure. "


def entry(n: int, *facts: str, date: str = "") -> MemoryEntry:
    return MemoryEntry(date or f"2026-01-{n % 28 + 1:02d}T00:00:00Z", f"c-{n}", 1, facts)


def summary(*decisions: str) -> str:
    listed = "\n".join(f"- {d}" for d in decisions)
    return (
        "## Session Intent\n- make src/parser.py faster\n## Files Modified\n- src/parser.py: the parser\n"
        f"## Decisions Made\n{listed}\n## Current State\n- the tests pass\n## Next Steps\n- measure"
    )


async def one_conversation(rig: StartRig, said: str, told: str, **kw: Any) -> Rig:
    """A conversation of its own, compacted once."""
    r = await rig(window=WIDE, ids=RandomIds(), chat=ScriptedChat(summaries=[say(told)]), **kw)
    for n in range(5):
        await r.ask(f"{said} {n} " + "x" * 2_000)
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    return r


# -- full --------------------------------------------------------------------------------------------------------------


async def test_one_line_over_the_cap_the_oldest_go_by_rule_and_by_name(rig: StartRig, tmp_path: Path) -> None:
    """Case 129: the newest is never what is cut; what went is in the archive, and people are told."""
    folder = tmp_path / "memory"
    folder.mkdir()
    old = "".join(f"## 2025-01-{n % 28 + 1:02d}T00:00:00Z · conversation c{n} · cycle 1\n- fact {n} {'x' * 950}\n\n"
                  for n in range(1_500))  # fmt: skip
    (folder / "MEMORY.md").write_text(old[: old.rindex("\n\n## ", 0, MEMORY_CAP)] + "\n")
    r = await one_conversation(rig, ASKED.format(choice="React"), summary("the frontend uses React"))
    text = (folder / "MEMORY.md").read_text()
    assert len(text.encode()) <= MEMORY_CAP
    assert text.rstrip().endswith("Decision: the frontend uses React")
    [notice] = [n for n in r.of(Notice) if "MEMORY.md is full" in n.text]
    assert notice.level == "warning"
    archive = (folder / ARCHIVE_NAME).read_text()
    assert "fact 0 " in archive
    assert "fact 0 " not in text
    everything = {f.split(" x")[0] for t in (text, archive) for e in parse_memory(t) for f in e.facts}
    assert {f"fact {n}" for n in range(len(parse_memory(old[:MEMORY_CAP])) - 1)} <= everything


def test_the_file_never_passes_its_cap_whatever_is_written() -> None:
    """I14: scripts of three bytes, entries larger than the file, notes by hand, a thousand writes."""
    text = "## by hand\n" + "我的笔记" * 50 + "\n"
    for n in range(300):
        text = remember(text, entry(n, f"事实 {n} " + "汉字" * (n % 40), "x" * (n * 37 % 2_000)), cap=20_000).text
        assert len(text.encode()) <= 20_000
        assert parse_memory(text)[-1].facts[0].startswith(f"事实 {n}"), "the newest is whole"
    assert "我的笔记" in text, "what a person wrote goes last"


# -- outcomes ----------------------------------------------------------------------------------------------------------

OUTCOMES = [
    "cannot read secrets.toml",
    "Access to /etc/shadow was blocked",
    "the sandbox prevents network access",
    "The user declined the edit of config.py",
    "user rejected the change to main.py",
    "requires approval before running make",
    "The WebFetch tool is disabled in this session",
    "Operation not permitted on /dev/kvm",
    "EACCES when opening /var/log/app.log",
    "git push is not possible here",
    "tool calls are restricted to read-only",
    "the assistant may not modify files under vendor",
    "403 Forbidden from the registry",
    "no internet access in this environment",
    "rate limit reached, try later",
    "denied: rm -rf build",
    "Plan mode is active, no edits",
    "L'utilisateur a refusé la commande",
    "pas le droit d'écrire dans /etc",
    "Zugriff auf die Datei wurde verweigert",
    "Acceso denegado a la base de datos",
    "访问被拒绝",
    "没有权限读取该文件",
    "アクセスが拒否されました",
]
DESIGN = [
    "Decision: requests without a token are rejected with 401",
    "Decision: deny anonymous access to /admin",
    "Decision: guests are not allowed to comment",
    "Decision: writes to the legacy table are forbidden",
    "Decision: rate limit of 100 requests per minute",
    "Decision: retry when the connection is refused",
    "Decision: no network calls in tests",
    "Intent: fix the bug where users cannot open the settings page",
    "Intent: make the login work when cookies are blocked",
    "Requirement: do not use curl, use httpx",
    "File: src/auth.py: added permission checks",
    "File: tools/sandbox.py: blocked sites list added",
]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_outcome_of_a_policy_is_not_remembered(outcome: str) -> None:
    """Case 130: it would stop calls that are allowed by then."""
    for label in ("", "Decision: ", "Earlier: ", "File: src/a.py: "):
        assert not admissible(label + outcome)


@pytest.mark.parametrize("fact", DESIGN)
def test_what_a_program_shall_refuse_is_remembered(fact: str) -> None:
    """The reverse of case 130: software has permissions too."""
    assert admissible(fact)


async def test_a_blocked_call_of_one_session_does_not_stop_the_next(rig: StartRig) -> None:
    """Case 130: the summary says so, memory does not, and what memory holds is to be checked."""
    told = summary("the frontend uses React", "access to src/parser.py was blocked by the user, so it cannot be read")
    r = await one_conversation(rig, ASKED.format(choice="React") + "Access to it was blocked once.", told)
    await r.engine.close()
    later = await rig(window=WIDE, ids=RandomIds())
    await later.ask("hello")
    system = texts(later.chat.turns[0])[0]
    notes = system.partition("# Notes from earlier conversations")[2]
    assert "the frontend uses React" in notes
    assert "blocked" not in notes
    assert "check before you rely on them" in notes.splitlines()[0]


# -- corrections -------------------------------------------------------------------------------------------------------

CORRECTED = [
    ("use React for the frontend", "use Svelte for the frontend"),
    ("use A", "use B"),
    ("we use Tailwind", "we switched from Tailwind to Bootstrap"),
    ("the server listens on port 8080", "the server listens on port 9090"),
    ("the retry limit is 3", "the retry limit is 5"),
    ("deploy to Heroku", "deploy to Fly.io instead of Heroku"),
    ("tests run with unittest", "tests run with pytest"),
    ("use Jenkins for CI", "use GitHub Actions for CI"),
    ("indent with tabs", "indent with 2 spaces"),
    ("the main branch is master", "the main branch is main"),
    ("target Python 3.9", "target Python 3.12"),
    ("the deadline is 2026-03-01", "the deadline is 2026-04-15"),
    ("keep the old API", "drop the old API"),
    ("do not use Docker", "use Docker"),
    ("utiliser SQLite", "utiliser Postgres"),
    ("使用 React", "改用 Svelte"),
]
SIDE_BY_SIDE = [
    ("use React for the frontend", "use Postgres for the database"),
    ("use SQLite for tests", "use Postgres in production"),
    ("the port of the API is 8080", "the port of the admin page is 9090"),
    ("never touch config/", "never touch vendor/"),
    ("src/a.py is generated", "src/b.py is generated"),
    ("fix issue 12", "fix issue 13"),
    ("tests run with pytest", "docs build with sphinx"),
    ("the app uses Redis", "the app uses Celery"),
]


@pytest.mark.parametrize(("older", "newer"), CORRECTED)
def test_a_later_choice_strikes_the_earlier_one(older: str, newer: str) -> None:
    """Cases 131, 133: only one of them holds; both stay readable, with the date."""
    text = remember("", entry(1, f"Decision: {older}")).text
    done = remember(text, entry(2, f"Decision: {newer}", date="2026-02-01T00:00:00Z"))
    assert done.superseded == (f"Decision: {older}",)
    first, second = parse_memory(done.text)
    assert (first.facts, first.superseded) == ((), (f"Decision: {older}",))
    assert second.facts == (f"Decision: {newer}",)
    assert "superseded 2026-02-01" in done.text


@pytest.mark.parametrize(("one", "other"), SIDE_BY_SIDE)
def test_what_holds_together_stays_together(one: str, other: str) -> None:
    """The reverse of case 133: a correction nobody made would forget what holds."""
    assert not replaces(one, other)
    assert not replaces(other, one)


async def test_after_three_weeks_of_changes_one_answer_is_left(rig: StartRig, tmp_path: Path) -> None:
    """Case 133: React, Svelte, Vue in three conversations: the prompt holds the last, the file all of them."""
    for choice in ("React", "Svelte", "Vue"):
        r = await one_conversation(rig, ASKED.format(choice=choice), summary(f"use {choice} for the frontend"))
        r.clock.time += 7 * 86_400
        await r.engine.close()
    fresh = await rig(window=WIDE, ids=RandomIds())
    await fresh.ask("what do we use?")
    notes = texts(fresh.chat.turns[0])[0].partition("# Notes")[2]
    assert "use Vue for the frontend" in notes
    assert "React" not in notes
    assert "Svelte" not in notes
    kept = (tmp_path / "memory" / "MEMORY.md").read_text()
    assert all(f"use {c} for the frontend" in kept for c in ("React", "Svelte", "Vue"))
    report = await fresh.engine.memory()
    assert [f for e in report.entries for f in e.facts if "frontend" in f] == ["Decision: use Vue for the frontend"]


async def test_what_was_said_twice_stands_once(rig: StartRig) -> None:
    """Case 133: compaction after compaction finds the same facts."""
    told = summary("keep the old API")
    r = await rig(window=WIDE, chat=ScriptedChat(summaries=[say(told)] * 3))
    for _ in range(3):
        mark = len(r.events)
        for n in range(5):
            await r.ask(ASKED.format(choice="React") + f"{n} " + "x" * 2_000)
        r.engine.compact()
        await r.until(lambda e: isinstance(e, CompactionFinished), after=mark)
        await r.idle()
    facts = [f for e in parse_memory(await r.memory.read()) for f in e.facts]
    assert facts.count("Decision: keep the old API") == 1
    assert len(facts) == len(set(facts))


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [40 * 1024, 400 * 1024])
async def test_rules_that_do_not_fit_are_cut_at_a_line_and_said_with_their_figures(
    rig: StartRig, project: Path, size: int
) -> None:
    """Case 134: 40 KiB of rules: what is sent, what is not, in bytes; once, not at every turn."""
    line = "- rule that matters\n"
    (project / "MAREX.md").write_text(line * (size // len(line)) + "- the last rule\n")
    r = await rig(window=WIDE)
    await r.ask("hello")
    await r.ask("again")
    notices = [n for n in r.of(Notice) if "MAREX.md" in n.text]
    assert len(notices) == 1
    assert notices[0].level == "warning"
    assert f"{(project / 'MAREX.md').stat().st_size:,} bytes" in notices[0].text
    system = texts(r.chat.turns[0])[0]
    assert "the last rule" not in system
    assert system.rstrip().endswith("- rule that matters")
    assert (await r.engine.memory()).rules_truncated


async def test_short_rules_are_sent_whole_without_a_word(rig: StartRig, project: Path) -> None:
    (project / "MAREX.md").write_text("- one rule\n" * 2_900)
    r = await rig(window=WIDE)
    await r.ask("hello")
    assert texts(r.chat.turns[0])[0].count("- one rule") == 2_900
    assert not [n for n in r.of(Notice) if "MAREX.md" in n.text]


THINGS = [
    *("parser written by hand", "lexer generated", "tests take a minute", "docs live in docs/", "CI on two cores"),
    *("release notes by hand", "icons from the designer", "logs kept a week", "colours from the theme", "no globals"),
    *("imports sorted", "names in English", "errors for people", "one writer of the log", "time through a port", "ids"),
]


async def test_two_processes_feed_one_memory_without_losing_a_fact(tmp_path: Path) -> None:
    """Neighbour of case 129: no write takes another one's facts with it."""
    stores = [MemoryStore(tmp_path / "memory", tmp_path) for _ in range(4)]
    await asyncio.gather(*(s.feed(entry(n, f"Note: {THINGS[n]}")) for n, s in enumerate(stores * 4)))
    facts = {f for e in parse_memory(await stores[0].read()) for f in e.facts}
    assert facts == {f"Note: {thing}" for thing in THINGS}
