"""Trackers on disk (L51, L57, L71)."""

from __future__ import annotations

import stat
from itertools import permutations
from pathlib import Path

import pytest

from marextui.context.project import Tracker
from marextui.store.trackers import MAX_TRACKERS, TrackerStore

WEIGHT = Tracker("weight", "72.4", "kg", "2026-10-01")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def store(root: Path) -> TrackerStore:
    return TrackerStore(root / ".marex", root)


async def test_a_tracker_is_set_read_set_again_and_deleted(store: TrackerStore) -> None:
    assert await store.set(WEIGHT) == ""
    assert await store.all() == (WEIGHT,)
    assert await store.set(Tracker("Weight", "73", "kg", "2026-10-02")) == ""
    assert await store.all() == (Tracker("weight", "73", "kg", "2026-10-02"),)
    assert await store.delete("weight")
    assert await store.all() == ()
    assert not await store.delete("weight")


async def test_the_order_does_not_depend_on_when_they_were_made(tmp_path: Path) -> None:
    """L71."""
    orders = []
    for n, slugs in enumerate(permutations(("a", "c", "b"))):
        root = tmp_path / str(n)
        store = TrackerStore(root / ".marex", root)
        for slug in slugs:
            await store.set(Tracker(slug, "1"))
        orders.append([t.slug for t in await store.all()])
    assert orders == [["a", "b", "c"]] * len(orders)


async def test_values_written_by_hand_are_read_as_they_stand(store: TrackerStore) -> None:
    store.folder.mkdir(parents=True)
    (store.folder / "by_hand.toml").write_text('value = 73.0\ndate = 2026-10-02\nnote = "mine"\nunit = [1]\n')
    (store.folder / "done.toml").write_text("value = true")
    assert await store.all() == (Tracker("by_hand", "73.0", "", "2026-10-02"), Tracker("done", "yes"))
    await store.set(Tracker("by_hand", "74"))
    assert 'note = "mine"' in (store.folder / "by_hand.toml").read_text()


async def test_a_file_that_is_no_toml_is_named_and_left_out(store: TrackerStore) -> None:
    await store.set(WEIGHT)
    (store.folder / "bad.toml").write_text("value = = 1")
    assert await store.all() == (WEIGHT,)
    assert "bad.toml" in store.notice
    (store.folder / "bad.toml").unlink()
    await store.all()
    assert store.notice == ""


async def test_what_is_written_is_private_ignored_by_git_and_without_secrets(store: TrackerStore, root: Path) -> None:
    await store.set(Tracker("key", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"))
    path = store.folder / "key.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (root / ".marex" / ".gitignore").read_text() == "*\n"
    assert "abcdefghijklmnopqrstuvwxyz" not in path.read_text()


@pytest.mark.parametrize("slug", ["../../x", "", "/", "a/../../b"])
async def test_no_slug_leads_out_of_the_folder(store: TrackerStore, root: Path, slug: str) -> None:
    await store.set(Tracker(slug, "1"))
    found = [p for p in root.parent.rglob("*.toml") if p.parent != store.folder]
    assert found == []


async def test_a_linked_folder_or_file_of_a_cloned_repository_is_refused(store: TrackerStore, tmp_path: Path) -> None:
    """A repository must not lead us to write, or read, a file of the user's."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "weight.toml").write_text("value = 1")
    store.folder.parent.mkdir(parents=True)
    store.folder.symlink_to(outside)
    assert await store.all() == ()
    assert "leads out" in await store.set(WEIGHT)
    assert not await store.delete("weight")
    store.folder.unlink()
    store.folder.mkdir()
    (store.folder / "weight.toml").symlink_to(outside / "weight.toml")
    assert await store.all() == ()
    assert "leads out" in await store.set(WEIGHT)
    assert (outside / "weight.toml").read_text() == "value = 1"


async def test_limits_are_told(store: TrackerStore) -> None:
    assert "at most" in await store.set(Tracker("long", "x" * 200))
    store.folder.mkdir(parents=True)
    for n in range(MAX_TRACKERS):
        (store.folder / f"t{n}.toml").write_text("value = 1")
    assert "already" in await store.set(WEIGHT)
    assert await store.set(Tracker("t1", "2")) == ""
