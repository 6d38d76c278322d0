"""Ls and Glob: bounded lists, newest first, ignored files left out, whatever names there are."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.tools import finding, listing, ls
from marextui.tools.box import Box
from marextui.tools.globs import BadPattern, compile_glob, expand_braces, split_base
from marextui.tools.listing import list_files
from tests.unit.tools.conftest import Call

GIT = shutil.which("git")


def make(root: Path, *names: str) -> None:
    """Files in the order of their age: the first is the oldest."""
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1000 + age, 1000 + age))


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True)


@pytest.fixture(params=["rg", "git", "neither"])
def helper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which helper program is on PATH."""
    wanted: str = request.param
    if wanted != "neither" and shutil.which(wanted) is None:
        pytest.skip(f"no {wanted} here")
    real = shutil.which
    monkeypatch.setattr(listing.shutil, "which", lambda name: real(name) if name == wanted else None)
    return wanted


async def test_ls_directories_first_with_sizes(call: Call, root: Path) -> None:
    make(root, "b.txt", "A.txt", ".hidden", "zdir/x", ".git/config")
    (root / "b.txt").write_bytes(b"x" * 1234)
    os.symlink("zdir", root / "link")
    os.symlink("nowhere", root / "broken")
    result = await call("Ls")
    assert result.text.splitlines() == [
        "./ (7 entries, hidden and ignored ones included)",
        ".git/",
        "link/ -> zdir",
        "zdir/",
        ".hidden  0 B",
        "A.txt  0 B",
        "b.txt  1.2 kB",
        "broken -> nowhere",
    ]
    assert result.summary == "7 entries"


async def test_ls_is_bounded(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ls, "MAX_ENTRIES", 3)
    make(root, *(f"f{n}" for n in range(10)), "z/x")
    lines = (await call("Ls", path="")).text.splitlines()
    assert lines[1:] == ["z/", "f0  0 B", "f1  0 B", "[8 more entries not shown; use Glob to narrow it down]"]


async def test_ls_of_other_things(call: Call, root: Path, box: Box) -> None:
    make(root, "src/a", "src/two\nlines")
    os.symlink("loop", root / "src" / "loop")
    os.mkfifo(root / "src" / "pipe")
    shown = (await call("Ls", path="src/")).text
    assert shown.endswith("\ntwo\\nlines  0 B")
    assert "\nloop -> loop\n" in shown
    assert "pipe  (not a regular file)" in shown
    assert "Use Read" in (await call("Ls", path="src/a")).text
    assert "Did you mean src?" in (await call("Ls", path="scr")).text
    need = await box.permission("Ls", '{"path": ".."}')
    assert need is not None
    assert need.scope == os.path.realpath(root.parent)


async def test_glob_newest_first(call: Call, root: Path) -> None:
    make(root, "a.py", "src/b.py", "src/deep/c.py", "src/d.txt", ".github/e.py")
    assert (await call("Glob", pattern="**/*.py")).text.splitlines() == [
        ".github/e.py", "src/deep/c.py", "src/b.py", "a.py",
    ]  # fmt: skip
    assert (await call("Glob", pattern="src/*.{py,txt}")).text.splitlines() == ["src/d.txt", "src/b.py"]
    assert (await call("Glob", pattern="*.py", path="src")).text == "src/b.py"
    assert (await call("Glob", pattern="src/deep/c.py")).text == "src/deep/c.py"
    assert (await call("Glob", pattern=str(root / "src" / "*.py"))).text == "src/b.py"


async def test_a_bare_pattern_that_matches_nothing_here_looks_deeper_and_says_so(call: Call, root: Path) -> None:
    make(root, "src/b.py")
    assert (await call("Glob", pattern="*.py")).text == "src/b.py\n[none directly in .; these are deeper]"


async def test_glob_is_bounded(call: Call, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MAX_MATCHES", 2)
    make(root, "a", "b", "c", "d")
    result = await call("Glob", pattern="*")
    assert result.text == "d\nc\n[2 more files not shown; use a narrower pattern or path]"
    assert result.summary == "4 files"


async def test_glob_that_finds_nothing_or_cannot_search(call: Call, root: Path) -> None:
    make(root, "a")
    nothing = await call("Glob", pattern="*.zig")
    assert (nothing.text, nothing.is_error) == ("No files match *.zig in . (ignored files are not searched).", False)
    for pattern, path, why in (
        ("*", "none", "does not exist"),
        ("*", "a", "is a file"),
        ("**/../x", ".", "after a wildcard"),
        ("src/", ".", "names no file"),
    ):
        result = await call("Glob", pattern=pattern, path=path)
        assert result.is_error
        assert why in result.text


@pytest.mark.parametrize("pattern", ["../*", "../**/*.py", "sub/../../x*", "ABS/*"])
async def test_a_pattern_that_leads_outside_is_asked(box: Box, root: Path, pattern: str) -> None:
    raw = json.dumps({"pattern": pattern.replace("ABS", str(root.parent))})
    need = await box.permission("Glob", raw)
    assert need is not None
    assert (need.kind, need.scope) == ("outside", os.path.realpath(root.parent))
    assert await box.permission("Glob", '{"pattern": "**/*.py"}') is None


@pytest.mark.usefixtures("helper")
async def test_skipped_directories_are_not_entered_unless_searched_themselves(root: Path) -> None:
    make(root, "a", "node_modules/m/x.js", ".venv/lib/y.py", "p/__pycache__/z.pyc", ".git/HEAD", ".env")
    assert sorted((await list_files(root)).files) == [".env", "a"]
    assert (await list_files(root / "node_modules")).files == ("m/x.js",)


async def test_ignored_files_are_left_out_where_a_helper_knows_them(root: Path, helper: str) -> None:
    if GIT is None:
        pytest.skip("no git here")
    make(root, "src/a.py", "build/out.o", "b.log", "two\nlines")
    (root / ".gitignore").write_text("build/\n*.log\n")
    await asyncio.to_thread(git, "init", "-q", str(root))
    files = set((await list_files(root)).files)
    assert files >= {"src/a.py", ".gitignore", "two\nlines"}
    assert files & {"build/out.o", "b.log"} == (set() if helper != "neither" else {"build/out.o", "b.log"})
    assert (await list_files(root / "build")).files == ("out.o",)  # asked for by name


@pytest.mark.usefixtures("helper")
async def test_listing_is_bounded_and_says_so(root: Path) -> None:
    make(root, *(f"f{n}" for n in range(30)))
    listed = await list_files(root, limit=10)
    assert (len(listed.files), listed.complete) == (10, False)
    assert (await list_files(root, limit=30)).complete


@pytest.mark.usefixtures("helper")
async def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    make(tmp_path, "other/secret")
    make(root, "a")
    os.symlink(tmp_path / "other", root / "out")
    os.symlink(".", root / "round")
    files = set((await list_files(root)).files)
    assert "a" in files
    assert not any("secret" in name or name.startswith("round/") for name in files)


async def test_the_projects_git_settings_run_no_program(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if GIT is None:
        pytest.skip("no git here")
    make(root, "a")
    await asyncio.to_thread(git, "init", "-q", str(root))
    await asyncio.to_thread(git, "-C", str(root), "config", "core.fsmonitor", f"touch {root}/ran; false")
    monkeypatch.setattr(listing.shutil, "which", lambda name: GIT if name == "git" else None)
    assert (await list_files(root)).files == ("a",)
    assert not (root / "ran").exists()


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", ".py"], ["a/b.py", "a.pyc"]),
        ("**/*.py", ["a.py", "x/a.py", "x/y/a.py"], ["x/a.txt"]),
        ("src/**", ["src/a", "src/x/y"], ["src", "a"]),
        ("src/**/t/*.py", ["src/t/a.py", "src/a/b/t/c.py"], ["src/a.py", "t/a.py"]),
        ("**/a/**/b", ["a/b", "x/a/y/b", "a/a/b"], ["a", "b/a"]),
        ("?[ab].{c,d{e,f}}", ["xa.c", "yb.de", "1a.df"], ["a.c", "xc.c"]),
        ("[!a]b", ["cb"], ["ab"]),
        ("./a", ["a"], ["b"]),
        ("**", ["a", "x/y"], []),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    matches = compile_glob(pattern)
    assert [path for path in yes if not matches(path)] == []
    assert [path for path in no if matches(path)] == []


def test_hostile_patterns_are_not_slow() -> None:
    assert not compile_glob("*a" * 60 + "b")("a" * 250)
    assert not compile_glob("**/a/" * 60 + "b")("a/" * 200 + "c")
    with pytest.raises(BadPattern):
        expand_braces("{a,b}" * 20)


@settings(deadline=None)
@given(st.text(alphabet="ab*?[]{},/.!-", max_size=20), st.text(alphabet="ab/.", max_size=20))
def test_any_pattern_matches_or_is_refused(pattern: str, path: str) -> None:
    try:
        split_base(pattern)
        compile_glob(pattern)(path)
    except BadPattern as error:
        assert str(error)  # noqa: PT017 - the text is what is shown


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("src/**/*.py", ("src", "**/*.py")),
        ("*.py", ("", "*.py")),
        ("/etc/*.conf", ("/etc", "*.conf")),
        ("/*", ("/", "*")),
        ("../a/b", ("../a", "b")),
        ("{a,b}/c", ("", "{a,b}/c")),
    ],
)
def test_split_base(pattern: str, parts: tuple[str, str]) -> None:
    assert split_base(pattern) == parts
