"""Memory through the engine: a full file is loud, what is past its end is not sent (cases 129, 130; I14)."""

from __future__ import annotations

from pathlib import Path

from marextui.context.budget import Window
from marextui.context.memory import MEMORY_CAP
from marextui.engine.events import CompactionFinished, CompactionReverted, Notice
from tests.stubs.engine_rig import Rig, texts
from tests.stubs.scripted_model import ScriptedChat, say

SUMMARY = """## Session Intent
- make the parser faster
## Files Modified
- src/parser.py: loop unrolled
## Decisions Made
- keep the old API
## Current State
- tests pass
## Next Steps
- measure"""
ABOUT = "In src/parser.py, make the parser faster and keep the old API. "


async def test_a_full_memory_moves_its_oldest_to_the_archive_and_says_so(tmp_path: Path) -> None:
    """Case 129."""
    rig = Rig(tmp_path, window=Window(100_000, "discovery"), chat=ScriptedChat(summaries=[say(SUMMARY)]))
    folder = tmp_path / "memory"
    folder.mkdir()
    old = "## 2020-01-01T00:00:00Z · conversation c · cycle 1\n- " + "x" * (MEMORY_CAP - 100)
    (folder / "MEMORY.md").write_text(old)
    r = await rig.start()
    for n in range(5):
        await r.ask(ABOUT + f"question {n} " + "x" * 4000)
    r.engine.compact()
    await r.until(lambda e: isinstance(e, CompactionFinished))
    await r.idle()
    [notice] = [n for n in r.of(Notice) if "MEMORY.md is full" in n.text]
    assert notice.level == "warning"
    assert "1 entries (from 2020-01-01) were moved to MEMORY.archive.md" in notice.text
    assert (folder / "MEMORY.archive.md").read_text().startswith("## 2020-01-01")
    assert (folder / "MEMORY.md").stat().st_size < MEMORY_CAP
    await r.engine.close()


async def test_what_is_past_its_end_is_not_sent(tmp_path: Path) -> None:
    """Case 130: the clock of the rig says 2023-11-14."""
    folder = tmp_path / "memory"
    folder.mkdir()
    head = "## 2023-01-01T00:00:00Z · conversation c · cycle"
    (folder / "MEMORY.md").write_text(
        f"{head} 1 · expires 2023-06-30\n- the old office\n\n{head} 2 · expires 2023-12-31\n- the new office\n"
    )
    r = await Rig(tmp_path).start()
    await r.ask("hello")
    system = texts(r.chat.turns[0])[0]
    assert "the new office" in system
    assert "the old office" not in system
    report = await r.engine.memory()
    assert "the old office" not in report.injected
    assert len(report.entries) == 2, "kept, and shown to people"
    await r.engine.close()


async def test_a_compaction_that_adds_nothing_writes_nothing(tmp_path: Path) -> None:
    """M32, case 133: small talk leaves no entry; after an undo the same facts are not entered again."""
    r = await Rig(tmp_path, window=Window(100_000, "discovery")).start()
    for text in (
        "Always run make lint first",
        "Never use the word foo",
        "Deadline is March 3",
        "Ok, foo is fine from now on",
    ):
        await r.ask(f"{text}\n```\n{'x' * 4000}\n```")
    await r.ask(f"Correction: deadline is March 9, not March 3\n```\n{'x' * 4000}\n```")
    await r.ask(f"hello again\n```\n{'x' * 4000}\n```")
    await r.ask(f"what time is it?\n```\n{'x' * 9000}\n```")
    for again in range(2):
        mark = len(r.events)
        r.engine.compact(offline=True)
        await r.until(lambda e: isinstance(e, CompactionFinished), after=mark)
        await r.idle()
        [entry] = (await r.engine.memory()).entries
        assert entry.facts == ("Requirement: Always run make lint first", "Value: deadline = March 9"), again
        r.engine.undo_compaction()
        await r.until(lambda e: isinstance(e, CompactionReverted), after=mark)
        await r.idle()
    assert (tmp_path / "memory" / "MEMORY.md").read_text().count("## ") == 1
    await r.engine.close()
