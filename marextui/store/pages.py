"""Pages of long-term memory: `pages/*.md` beside MEMORY.md, written by people and by the model (B11, L51)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from marextui.context.project import INDEX_NAME, Page, page_of, plain_name
from marextui.context.redaction import redact
from marextui.private_files import ensure_private, write_private
from marextui.store.project_folder import Stamp, changed_at, named_file, named_files, read_bounded, stamp_of

MAX_PAGES = 200
MAX_PAGE_BYTES = 64 * 1024
HEAD_BYTES = 4 * 1024
"""What of a page is looked at for its title and first line."""
DELETED = ".deleted"
"""Folder beside the pages that keeps the last deleted page of each name."""


class PageStore:
    """Pages of one project. Names are made safe (`context.project.plain_name`); methods may raise OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[tuple[int, int], Page]] = {}

    async def all(self) -> tuple[Page, ...]:
        """All pages by name; a file that did not change is not read again."""
        return await asyncio.to_thread(self._all)

    async def index(self) -> str:
        """What a person wrote above the index (`index.md`), "" for nothing."""
        return await asyncio.to_thread(lambda: read_bounded(self.folder / f"{INDEX_NAME}.md", MAX_PAGE_BYTES) or "")

    async def stamp(self) -> Stamp:
        """Changes when any page does."""
        return await asyncio.to_thread(self._stamp)

    async def read(self, name: str) -> str | None:
        """The text of a page; None: there is none of that name."""
        return await asyncio.to_thread(self._read, name)

    async def write(self, name: str, text: str) -> str:
        """Make or replace a page, without secrets. Returns "" or, when it was not written, why."""
        return await asyncio.to_thread(self._write, name, text)

    async def delete(self, name: str) -> bool:
        """Take a page out of memory; the file is kept in `.deleted`. False: there is none of that name."""
        return await asyncio.to_thread(self._delete, name)

    def path_of(self, name: str) -> Path | None:
        """Where the page `name` lies or would lie; None when the name cannot be one."""
        return None if plain_name(name) == INDEX_NAME else named_file(self.folder, name, ".md")

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        return named_files(self.folder, ".md")[: MAX_PAGES + 1]

    def _stamp(self) -> Stamp:
        return stamp_of(self._files())

    def _all(self) -> tuple[Page, ...]:
        pages: dict[str, tuple[tuple[int, int], Page]] = {}
        for path, stat in self._files():
            name, stamp = path.stem, (stat.st_mtime_ns, stat.st_size)
            known = self._known.get(name)
            if name == INDEX_NAME:
                continue
            if known is None or known[0] != stamp:
                text = read_bounded(path, HEAD_BYTES)
                if text is None:
                    continue
                known = (stamp, page_of(name, text))
            pages[name] = known
        self._known = pages
        return tuple(page for _, page in pages.values())

    def _read(self, name: str) -> str | None:
        path = self.path_of(name)
        if path is None or path.is_symlink():
            return None
        return read_bounded(path, MAX_PAGE_BYTES)

    def _write(self, name: str, text: str) -> str:
        path = self.path_of(name)
        if path is None:
            return f"{name[:80]!r} cannot be the name of a page: use letters, digits and dashes"
        data = (redact(text).strip() + "\n").encode("utf-8", "replace")
        if len(data) > MAX_PAGE_BYTES:
            return f"the page has {len(data):,} bytes, {MAX_PAGE_BYTES:,} are the most; split it"
        if changed_at(path) is None and len(self._files()) >= MAX_PAGES:
            return f"there are {MAX_PAGES} pages already; delete or join some first"
        if path.is_symlink():
            return f"{path.name} is a link and was left alone"
        ensure_private(self.folder)
        write_private(path, data)
        return ""

    def _delete(self, name: str) -> bool:
        path = self.path_of(name)
        if path is None or changed_at(path) is None:
            return False
        kept = ensure_private(self.folder / DELETED) / path.name
        os.replace(path, kept)
        return True
