"""The quota of stored outputs: kept, and never silently (I6, case 81)."""

from __future__ import annotations

from pathlib import Path
from random import Random

from marextui.engine.bus import Bus
from marextui.engine.events import Event, Notice
from marextui.engine.omitter import DAY
from marextui.engine.quota import WithinQuota
from marextui.store.database import StoreError
from marextui.store.omissions import OmissionStore


class Fixture:
    """A store of one megabyte whose referenced ids a test sets."""

    def __init__(self, folder: Path) -> None:
        self.time = 4e9
        self.referenced: set[str] = set()
        self.broken = False
        self.notices: list[Notice] = []
        bus = Bus()
        bus.subscribe(self.hear)
        self.store = WithinQuota(OmissionStore(folder, lambda: self.time, quota_mb=1), bus, self.in_views)

    def hear(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event)

    async def in_views(self) -> set[str]:
        if self.broken:
            raise StoreError("the log is busy")
        return self.referenced

    async def fill(self, count: int) -> list[str]:
        ids = []
        for n in range(count):
            self.time += 1
            text = Random(n + self.time).randbytes(75_000).hex()
            meta = await self.store.put(text, tool="Bash", what="x", conversation_id="c", message_id=f"m{n}")
            ids.append(meta.id)
        return ids


async def test_what_no_view_shows_goes_first_and_is_named(tmp_path: Path) -> None:
    f = Fixture(tmp_path)
    f.referenced = {"omitted-001", "omitted-003"}
    ids = await f.fill(16)
    assert f.notices
    assert all(n.level == "info" for n in f.notices)
    assert "removed: omitted-002" in f.notices[0].text
    assert await f.store.get("omitted-002") is None
    assert await f.store.get("omitted-001") is not None
    assert await f.store.get(ids[-1]) is not None
    assert await f.store.total_bytes() <= 1_000_000


async def test_referenced_ones_go_last_and_loudly(tmp_path: Path) -> None:
    f = Fixture(tmp_path)
    f.referenced = {f"omitted-{n:03d}" for n in range(1, 30)}
    await f.fill(16)
    assert [n.level for n in f.notices] == ["warning"] * len(f.notices)
    assert "still refer to were removed: omitted-001" in f.notices[0].text
    assert "omissions_quota_mb" in f.notices[0].hint


async def test_when_it_is_not_known_who_refers_to_them_nothing_goes(tmp_path: Path) -> None:
    f = Fixture(tmp_path)
    f.broken = True
    ids = await f.fill(16)
    assert all([await f.store.get(i) for i in ids])
    assert "none could be removed" in f.notices[0].text


async def test_the_retention_names_what_was_still_referred_to(tmp_path: Path) -> None:
    f = Fixture(tmp_path)
    ids = await f.fill(3)
    f.referenced = {ids[1], "omitted-999"}
    f.time += 31 * DAY
    assert sorted(await f.store.purge(30)) == ids
    [notice] = f.notices
    assert (notice.level, ids[1] in notice.text, ids[0] in notice.text) == ("warning", True, False)
    assert await f.store.purge(30) == []
    assert len(f.notices) == 1
