"""Paths as models write them, and what they really are."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from marextui.tools.workspace import PathRefused, Workspace


@pytest.fixture
def space(root: Path) -> Workspace:
    (root / "src").mkdir()
    (root / "src" / "app.py").write_text("x\n")
    return Workspace(root)


@pytest.mark.parametrize(
    "written",
    ["src/app.py", "./src/app.py", " src/app.py \n", '"src/app.py"', "`src/app.py`", "src/../src//app.py", "ABS"],
)
def test_forms_of_one_path(space: Workspace, root: Path, written: str) -> None:
    target = space.resolve(str(root / "src" / "app.py") if written == "ABS" else written)
    assert (target.real, target.inside, target.display, target.kind) == (
        Path(os.path.realpath(root / "src" / "app.py")),
        True,
        "src/app.py",
        "file",
    )


def test_home(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "home" / "notes").write_text("x")
    target = space.resolve("~/notes")
    assert (target.real, target.inside, target.kind) == (
        Path(os.path.realpath(tmp_path / "home" / "notes")),
        False,
        "file",
    )
    assert space.resolve("~/new").real == Path(os.path.realpath(tmp_path / "home" / "new"))


def test_a_name_that_exists_as_written_wins(space: Workspace, root: Path) -> None:
    (root / " odd ").write_text("x")
    (root / "odd").write_text("y")
    assert space.resolve(" odd ").real.name == " odd "
    (root / "~").mkdir()
    assert space.resolve("~").inside


def test_a_new_file_gets_the_cleaned_name(space: Workspace) -> None:
    target = space.resolve(' "new file.py" ')
    assert (target.real.name, target.kind) == ("new file.py", "missing")


def test_climbing_out_and_links_out_are_outside(space: Workspace, root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "f").write_text("x")
    os.symlink(tmp_path / "other", root / "link")
    os.symlink("link/f", root / "chain")
    for written in ("../other/f", "link/f", "chain", "src/../../other/f", str(tmp_path / "other" / "f")):
        target = space.resolve(written)
        assert not target.inside
        assert target.real == Path(os.path.realpath(tmp_path / "other" / "f"))
    assert space.resolve("link/..").real == Path(
        os.path.realpath(tmp_path)
    )  # as the kernel sees it, not by the letters


def test_a_sibling_with_the_same_beginning_is_outside(space: Workspace, root: Path) -> None:
    (root.parent / "project-2").mkdir()
    assert not space.resolve("../project-2").inside


def test_a_root_that_is_a_link_is_the_real_root(root: Path, tmp_path: Path) -> None:
    os.symlink(root, tmp_path / "alias")
    space = Workspace(tmp_path / "alias")
    assert space.resolve(str(root)).inside
    assert space.resolve(".").display == "."


@pytest.mark.parametrize("written", ["", "  ", "a\0b", "x" * 300, "\ud800"])
def test_impossible_names(space: Workspace, written: str) -> None:
    with pytest.raises(PathRefused):
        space.resolve(written)


def test_loops_pipes_sockets_and_devices_are_refused(
    space: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.symlink("b", root / "a")
    os.symlink("a", root / "b")
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        for written, why in (("a", "circle"), ("pipe", "named pipe"), ("sock", "socket"), ("/dev/zero", "device")):
            with pytest.raises(PathRefused, match=why):
                space.resolve(written)
        with pytest.raises(PathRefused, match="named pipe"):
            space.resolve(" pipe ")


def test_names_with_line_feeds_and_foreign_bytes_can_be_said_as_shown(space: Workspace, root: Path) -> None:
    for name in (b"two\nlines", b"caf\xe9"):
        os.close(os.open(os.path.join(os.fsencode(root), name), os.O_CREAT))
        shown = space.display(os.fsdecode(os.path.join(os.fsencode(space.root), name)))
        assert "\n" not in shown
        assert space.resolve(shown).kind == "file"


def test_nearest_names(space: Workspace, root: Path) -> None:
    assert space.nearest(space.resolve("src/ap.py")) == ["src/app.py"]
    assert space.nearest(space.resolve("app.py")) == ["src/app.py"]  # the right name in another directory
    assert space.nearest(space.resolve("src/App.PY")) == ["src/app.py"]
    assert space.nearest(space.resolve("nothing/like/it")) == []


def test_writes_to_git_and_to_our_own_settings_are_sensitive(space: Workspace) -> None:
    assert ".git" in space.sensitive(space.resolve(".git/hooks/pre-commit"))
    assert "settings" in space.sensitive(space.resolve(".marex/config.toml"))
    assert space.sensitive(space.resolve(".GIT/config"))
    assert space.sensitive(space.resolve(".gitignore")) == ""
