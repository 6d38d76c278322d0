"""Pages on disk: private, whole, without secrets, never outside their folder (L51, B11; I5, I10)."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from marextui.context.project import Page
from marextui.store import pages
from marextui.store.pages import DELETED, MAX_PAGE_BYTES, MAX_PAGES, PageStore


@pytest.fixture
def store(tmp_path: Path) -> PageStore:
    return PageStore(tmp_path / "memory" / "pages")


async def test_a_page_is_written_listed_read_and_deleted(store: PageStore) -> None:
    assert await store.all() == ()
    assert await store.write("Build Steps.md", "# How to build\n\nRun make.\n") == ""
    assert await store.all() == (Page("build-steps", "How to build", "Run make."),)
    assert await store.read("build steps") == "# How to build\n\nRun make.\n"
    assert await store.delete("build-steps")
    assert (await store.all(), await store.read("build-steps")) == ((), None)
    assert not await store.delete("build-steps")


async def test_what_was_deleted_is_kept_beside_the_pages(store: PageStore) -> None:
    """Nothing a person wrote is lost by one wrong key, or one wrong call."""
    await store.write("a", "old text")
    await store.delete("a")
    assert (store.folder / DELETED / "a.md").read_text() == "old text\n"
    assert await store.all() == ()


async def test_files_and_folders_are_for_their_owner_alone(store: PageStore) -> None:
    await store.write("a", "x")
    assert stat.S_IMODE((store.folder / "a.md").stat().st_mode) == 0o600
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


async def test_secrets_do_not_reach_the_disk(store: PageStore) -> None:
    """I10."""
    await store.write("keys", "api_key = sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")
    assert "abcdefghijklmnopqrstuvwxyz" not in (store.folder / "keys.md").read_text()


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/passwd", "a/b", "..", "con:x", "x\x00y", "INDEX", "index.md", "", "---"]
)
async def test_no_name_leads_out_of_the_folder(store: PageStore, name: str) -> None:
    problem = await store.write(name, "text")
    written = sorted(p.relative_to(store.folder).as_posix() for p in store.folder.rglob("*")) if not problem else []
    assert all("/" not in w and w.endswith(".md") for w in written)
    assert not (store.folder.parent / "x.md").exists()
    assert await store.read("../MEMORY") is None


async def test_the_index_of_a_person_is_no_page(store: PageStore) -> None:
    await store.write("a", "x")
    (store.folder / "index.md").write_text("Read a first.")
    assert [p.name for p in await store.all()] == ["a"]
    assert await store.index() == "Read a first."
    assert "cannot be the name" in await store.write("index", "mine")


async def test_limits_are_told_and_nothing_is_cut(store: PageStore) -> None:
    assert "split it" in await store.write("big", "x" * (MAX_PAGE_BYTES + 1))
    assert await store.read("big") is None
    store.folder.mkdir(parents=True)
    for n in range(MAX_PAGES):
        (store.folder / f"p{n}.md").write_text("x")
    assert "pages already" in await store.write("one-more", "x")
    assert await store.write("p7", "again") == ""


async def test_a_link_is_neither_read_nor_written_through(store: PageStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("private")
    await store.write("a", "x")
    (store.folder / "link.md").symlink_to(outside)
    assert [p.name for p in await store.all()] == ["a"]
    assert await store.read("link") is None
    assert "link" in await store.write("link", "over it")
    assert outside.read_text() == "private"


async def test_a_file_is_read_again_only_when_it_changed(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing costs what changed, and the stamp says whether anything did."""
    await store.write("a", "# A")
    await store.write("b", "# B")
    before = await store.stamp()
    await store.all()
    read: list[str] = []
    real = pages.read_bounded
    monkeypatch.setattr(pages, "read_bounded", lambda path, limit: read.append(path.name) or real(path, limit))
    await store.all()
    assert (read, await store.stamp()) == ([], before)
    await store.write("b", "# B, longer")
    assert await store.stamp() != before
    await store.all()
    assert read == ["b.md"]


async def test_a_page_made_by_hand_with_capitals_is_found_by_its_own_name(store: PageStore) -> None:
    store.folder.mkdir(parents=True)
    (store.folder / "My_Notes.md").write_text("# Mine")
    assert [p.name for p in await store.all()] == ["My_Notes"]
    assert await store.read("My_Notes") == "# Mine"
    assert await store.write("My_Notes", "# Ours") == ""
    assert [p.name for p in await store.all()] == ["My_Notes"]
