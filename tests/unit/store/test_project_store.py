"""What the files of a project say of it (L51)."""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.context.project import Page, Tracker
from marextui.store.project import ProjectStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project" / "web" / "css").mkdir(parents=True)
    return tmp_path / "project"


def store(root: Path, cwd: Path | None = None) -> ProjectStore:
    return ProjectStore(root, cwd or root, root / ".marex", root.parent / "memory")


async def test_a_project_with_only_rules_is_empty(root: Path) -> None:
    """L51: MAREX.md stands in the system part already; by itself it makes no block."""
    (root / "MAREX.md").write_text("# Shop\n\nSells things.\n")
    assert (await store(root).read()).empty


async def test_the_heading_of_the_rules_describes_a_project_that_tells_something_else(root: Path) -> None:
    (root / "MAREX.md").write_text("# Shop\n\nSells things.\n")
    (root / "AGENTS.md").write_text("Use tabs.")
    sources = await store(root).read()
    assert (sources.description, sources.agents) == ("Shop: Sells things.", (("AGENTS.md", "Use tabs."),))
    (root / ".marex").mkdir()
    (root / ".marex" / "project.md").write_text("My own words.")
    assert (await store(root).read()).description == "My own words."


async def test_the_nearest_agents_file_comes_first(root: Path) -> None:
    (root / "AGENTS.md").write_text("far")
    (root / "web" / "AGENTS.md").write_text("near")
    (root.parent / "AGENTS.md").write_text("not of this project")
    sources = await store(root, root / "web" / "css").read()
    assert sources.agents == (("web/AGENTS.md", "near"), ("AGENTS.md", "far"))
    assert (await store(root, root.parent).read()).agents == (("AGENTS.md", "far"),)


async def test_pages_and_trackers_are_part_of_it(root: Path) -> None:
    project = store(root)
    await project.pages.write("a", "# A\nabout a")
    await project.trackers.set(Tracker("w", "1"))
    sources = await project.read()
    assert (sources.pages, sources.trackers) == ((Page("a", "A", "about a"),), (Tracker("w", "1"),))


async def test_the_stamp_changes_with_every_kind_of_file_and_only_then(root: Path) -> None:
    project = store(root)
    seen = [await project.stamp()]

    async def changed() -> bool:
        seen.append(await project.stamp())
        return seen[-1] != seen[-2]

    assert not await changed()
    (root / "AGENTS.md").write_text("x")
    assert await changed()
    (root / "MAREX.md").write_text("# x")
    assert await changed()
    await project.pages.write("a", "# A")
    assert await changed()
    await project.trackers.set(Tracker("w", "1"))
    assert await changed()
    (root / ".marex" / "project.md").write_text("x")
    assert await changed()
    await project.read()
    assert not await changed()


async def test_a_link_out_of_the_project_is_not_followed_and_said(root: Path) -> None:
    (root.parent / "secret").write_text("private")
    (root / "AGENTS.md").symlink_to(root.parent / "secret")
    project = store(root)
    assert (await project.read()).empty
    assert project.notices == ("AGENTS.md is a link to a file outside the project, so it is not used.",)
