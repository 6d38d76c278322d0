"""The omissions browser: everything stored can be found and opened (M23–M29, case 50)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from marextui.engine.event_values import OmissionInfo
from marextui.tui.panes.omissions import CHUNK, EMPTY, OmissionsPane, matches, row
from tests.stubs.frames import frame
from tests.stubs.mini_app import MiniApp

NOW = 1_700_000_000.0
N = "\u00a0"


def omission(i: int, **changes: Any) -> OmissionInfo:
    base = OmissionInfo(
        id=f"om{i:04d}",
        tool="Bash" if i % 2 else "Read",
        what=f"src/app{i}.py",
        chars=1200 * i + 700,
        stored_chars=1200 * i + 700,
        created_at=NOW - i * 3600,
        days_left=29.4,
        reads=i % 3,
        preview=f"first line of {i}",
        conversation_id="c",
        in_view=i < 2,
    )
    return replace(base, **changes)


async def settle(pilot: Pilot[Any], pane: OmissionsPane, count: int) -> None:
    """Until the chunks have been added; each pause lets the loop run."""
    for _ in range(50):
        await pilot.pause()
        if pane.query_one(OptionList).option_count == count:
            return
    raise AssertionError(f"{pane.query_one(OptionList).option_count} rows instead of {count}")


def test_a_row_says_everything() -> None:
    info = omission(5)
    short = row(info, NOW).plain
    assert short.split("\n") == ["om0005 Bash src/app5.py", f"omitted 6.7k · 5{N}h · 29{N}d{N}left · 2×"]
    assert len(short.split("\n")[1]) <= 36
    wide = row(replace(info, in_view=True, reads=1, stored_chars=10), NOW, wide=True).plain
    assert wide.split("\n")[1] == (
        f"in view · 6{N}700{N}chars · 10{N}chars of them stored · 5{N}h old · 29{N}days{N}left · read back 1 time"
    )
    assert "kept" in row(omission(1, days_left=None), NOW).plain


def test_filtering_looks_at_every_field_and_all_words() -> None:
    info = omission(7, preview="Traceback (most recent call last)")
    for query in ("", "om0007", "bash", "APP7", "traceback", "omitted", "bash recent app7"):
        assert matches(info, query)
    for query in ("read", "bash absent", "in view"):
        assert not matches(info, query)


async def test_an_empty_pane_teaches() -> None:
    pane = OmissionsPane()
    app = MiniApp(pane)
    async with app.run_test(size=(40, 16)) as pilot:
        await pilot.pause()
        text = " ".join(frame(app).replace("│", " ").split())
        assert EMPTY in text
        assert "Omissions: none" in text
        pane.focus()
        await pilot.press("slash", "c", "escape", "enter")
        assert app.focused is pane
        assert app.fakes.clipboard.copied == []


async def test_open_copy_and_order() -> None:
    pane = OmissionsPane([omission(i) for i in (3, 1, 2)])
    app = MiniApp(pane, watch=[OmissionsPane.Opened])
    async with app.run_test(size=(40, 16)) as pilot:
        await settle(pilot, pane, 3)
        pane.focus()
        await pilot.press("down", "c", "enter")
        await pilot.pause()
        assert app.fakes.clipboard.copied == ["om0002"]
        assert [m.omission_id for m in app.messages] == ["om0002"]
        assert frame(app).index("om0001") < frame(app).index("om0002") < frame(app).index("om0003")


async def test_filter_as_you_type() -> None:
    pane = OmissionsPane([omission(i) for i in range(30)])
    app = MiniApp(pane, watch=[OmissionsPane.Opened])
    async with app.run_test(size=(40, 16)) as pilot:
        await settle(pilot, pane, 30)
        pane.focus()
        await pilot.press("slash", *"app1")
        await settle(pilot, pane, 11)
        assert "11 of 30" in frame(app)
        await pilot.press(*"7x")
        await settle(pilot, pane, 0)
        assert "Nothing matches app17x" in frame(app)
        await pilot.press("backspace")
        await settle(pilot, pane, 1)
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert [m.omission_id for m in app.messages] == ["om0017"]
        await pilot.press("escape")
        await settle(pilot, pane, 30)
        assert pane.query_one(Input).value == ""


async def test_escape_without_a_filter_goes_to_the_app() -> None:
    pane = OmissionsPane([omission(1)])
    app = MiniApp(pane)
    async with app.run_test(size=(40, 16)) as pilot:
        await settle(pilot, pane, 1)
        pane.focus()
        assert pane.check_action("leave_filter", ()) is False
        await pilot.press("slash")
        assert pane.check_action("leave_filter", ()) is True


async def test_changes_arrive() -> None:
    pane = OmissionsPane([omission(1)])
    app = MiniApp(pane)
    async with app.run_test(size=(40, 16)) as pilot:
        await settle(pilot, pane, 1)
        pane.upsert(omission(0))
        await settle(pilot, pane, 2)
        pane.mark_read("om0001", 41)
        pane.mark_read("unknown", 5)
        pane.mark_omitted(["om0001", "unknown"])
        await pilot.pause()
        text = frame(app)
        assert "41×" in text
        assert "1 omitted" in text
        assert text.count("in view") == 1
        pane.show([])
        await settle(pilot, pane, 0)
        assert "Omissions: none" in frame(app)


async def test_the_highlight_survives_a_new_row() -> None:
    pane = OmissionsPane([omission(i) for i in range(1, 5)])
    app = MiniApp(pane)
    async with app.run_test(size=(40, 16)) as pilot:
        await settle(pilot, pane, 4)
        pane.focus()
        await pilot.press("down", "down")
        pane.upsert(omission(0))
        await settle(pilot, pane, 5)
        await pilot.press("c")
        await pilot.pause()
        assert app.fakes.clipboard.copied == ["om0003"]


async def test_a_thousand_rows_come_in_chunks_and_a_burst_rebuilds_once() -> None:
    pane = OmissionsPane()
    app = MiniApp(pane)
    sizes: list[int] = []
    async with app.run_test(size=(40, 16)) as pilot:
        await pilot.pause()
        rows = pane.query_one(OptionList)
        add, rebuild, rebuilds = rows.add_options, pane._rebuild, []

        def counted(options: Any) -> Any:
            options = list(options)
            sizes.append(len(options))
            return add(options)

        def counted_rebuild() -> None:
            rebuilds.append(1)
            rebuild()

        rows.add_options = counted  # type: ignore[method-assign]
        pane._rebuild = counted_rebuild  # type: ignore[method-assign]
        for i in range(1000):
            pane.upsert(omission(i))
        await settle(pilot, pane, 1000)
    assert max(sizes) <= CHUNK
    assert sum(sizes) == 1000
    assert len(rebuilds) == 1


async def test_it_needs_few_nodes() -> None:
    pane = OmissionsPane([omission(i) for i in range(500)])
    app = MiniApp(pane)
    async with app.run_test(size=(40, 16)) as pilot:
        await settle(pilot, pane, 500)
        assert len(list(pane.walk_children())) < 10


async def test_a_wide_pane_writes_it_out() -> None:
    pane = OmissionsPane([omission(5)])
    app = MiniApp(pane)
    async with app.run_test(size=(100, 12)) as pilot:
        await settle(pilot, pane, 1)
        await pilot.pause()
        assert f"29{N}days{N}left · read back 2 times" in frame(app)
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        await settle(pilot, pane, 1)
        assert "2×" in frame(app)
