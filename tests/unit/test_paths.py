"""Where things are kept (B11, M33)."""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui import paths
from marextui.private_files import write_private


@pytest.mark.parametrize("mark", [".git/", ".git", ".marex/", "MAREX.md"])
def test_project_root_is_the_nearest_marked_folder(tmp_path: Path, mark: str) -> None:
    root = tmp_path / "outer" / "project"
    inside = root / "a" / "b"
    inside.mkdir(parents=True)
    (tmp_path / "outer" / ".git").mkdir()
    if mark.endswith("/"):
        (root / mark).mkdir()
    else:
        (root / mark).write_text("gitdir: elsewhere")
    assert paths.project_root(inside) == root
    assert paths.project_root(root) == root


def test_project_root_without_marks_is_where_one_stands(tmp_path: Path) -> None:
    assert paths.project_root(tmp_path) == tmp_path.resolve()


def test_the_home_of_marextui_does_not_make_the_home_folder_a_project(
    private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAREX_HOME")
    (private_home / ".marex").mkdir()
    inside = private_home / "notes"
    inside.mkdir()
    assert paths.project_root(inside) == inside
    (inside / ".marex").mkdir()
    assert paths.project_root(inside / "deeper") == inside


def test_slug_names_the_folder_and_tells_clones_apart(tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "my app!", tmp_path / "two" / "my app!"
    one.mkdir(parents=True)
    two.mkdir(parents=True)
    first, second = paths.project_slug(one), paths.project_slug(two)
    assert first != second
    assert first.startswith("my-app-")
    assert len(first) == len("my-app-") + 8
    link = tmp_path / "link"
    link.symlink_to(one)
    assert paths.project_slug(link) == first, "one real folder, one memory"


@pytest.mark.parametrize("name", ["...", "-", "проект", "x" * 200, " a\nb\x1b[31m "])
def test_slug_is_a_safe_file_name(tmp_path: Path, name: str) -> None:
    slug = paths.project_slug(tmp_path / name)
    assert len(slug) <= 49
    assert not slug.startswith((".", "-"))
    assert not set(slug) & set("/\\\n\x1b[ ")


def test_folder_of_the_file_system_root_has_a_slug() -> None:
    assert paths.project_slug(Path("/")).startswith("project-")


def test_marex_home(private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAREX_HOME", "~/elsewhere")
    assert paths.marex_home() == private_home / "elsewhere"
    monkeypatch.setenv("MAREX_HOME", " ")
    assert paths.marex_home() == private_home / ".marex"


def test_folders_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAREX_HOME", str(tmp_path / "mh"))
    root = tmp_path / "app"
    memory = tmp_path / "mh" / "memory" / paths.project_slug(root)
    assert paths.memory_dir(root) == memory
    assert paths.omissions_dir(root) == memory / "omissions"
    assert paths.project_marex(root) == root / ".marex"
    assert not (tmp_path / "mh").exists(), "asking for a path makes nothing"


def test_platform_folders(private_home: Path) -> None:
    for path in (paths.data_dir(), paths.cache_dir(), paths.config_file(), paths.conversations_db()):
        assert path.is_relative_to(private_home)
        assert "marextui" in path.parts
    assert paths.config_file().name == "config.toml"
    assert paths.conversations_db().parent == paths.data_dir()


def test_ensure_private_makes_folders_for_the_owner_only(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    made = paths.ensure_private(shared / "a" / "b")
    assert made == shared / "a" / "b"
    assert made.stat().st_mode & 0o777 == 0o700
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert shared.stat().st_mode & 0o777 == 0o755, "what was there keeps its mode"
    assert paths.ensure_private(made) == made


def test_write_private_replaces_the_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "real.txt"
    target.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    write_private(link, b"new")
    assert target.read_bytes() == b"new"
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600


def test_write_private_leaves_nothing_behind_when_it_fails(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError):
        write_private(target, b"new")
    assert sorted(tmp_path.iterdir()) == before
