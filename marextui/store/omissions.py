"""Tool outputs kept on disk so that every omission can be read back (M25–M29, M33, I6).

Per omission two files, `omitted-NNN.txt` (the text) and `omitted-NNN.json` (what is known about it); the text is
written first, so that metadata never promise a text that is not there. `counter` holds the last number given out.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from filelock import FileLock

from marextui.context.omission import ID_PATTERN, STORE_LIMIT, expired, format_id, preview, truncate_for_store
from marextui.context.redaction import redact
from marextui.private_files import ensure_private, write_private

LOCK_SECONDS = 10
"""How long to wait for another process on the same project."""

_ID_LENGTH = len("omitted-") + 18

_LEFTOVER = re.compile(r"omitted-\d{3,}\.(?:txt|json)|\..*\.tmp")


@dataclass(frozen=True, slots=True)
class OmissionMeta:
    """What is known about a stored output. Sizes in characters: `chars` of the original, `stored_chars` of what is kept
    (M27); `created_at` seconds since the epoch; `reads` times read back; `what` the path, command or pattern asked for.
    """

    id: str
    tool: str
    what: str
    chars: int
    stored_chars: int
    created_at: float
    reads: int
    preview: str
    conversation_id: str
    message_id: str


class OmissionStore:
    """The omissions of one project (B8). All methods may raise OSError; no id makes them raise anything else."""

    def __init__(self, directory: Path, clock: Callable[[], float]) -> None:
        """`directory` is made when first needed; `clock` gives seconds since the epoch."""
        self._directory = directory
        self._clock = clock

    async def put(self, text: str, *, tool: str, what: str, conversation_id: str, message_id: str) -> OmissionMeta:
        """Keep `text` under a new id. Secrets are taken out, and more than 200 000 characters are shortened (M27)."""
        return await asyncio.to_thread(self._put, text, tool, what, conversation_id, message_id)

    async def get(self, omission_id: str) -> str | None:
        """The stored text; None for an id that is unknown, purged or damaged. Does not count as a read."""
        return await asyncio.to_thread(self._get, omission_id)

    async def meta(self, omission_id: str) -> OmissionMeta | None:
        """What is known about an omission; None as in `get`."""
        return await asyncio.to_thread(self._meta, omission_id)

    async def all(self) -> list[OmissionMeta]:
        """All omissions, newest first; one whose text or metadata are missing or damaged is left out (M33)."""
        return await asyncio.to_thread(self._all)

    async def mark_read(self, omission_id: str) -> int:
        """Count one read-back; returns the new count, 0 for an omission that is not there."""
        return await asyncio.to_thread(self._mark_read, omission_id)

    async def purge(self, days: int) -> list[str]:
        """Remove omissions older than `days` (0: none) and the leftovers of crashes; returns the ids removed (M29)."""
        return await asyncio.to_thread(self._purge, days)

    async def why_missing(self, omission_id: str, days: int) -> str:
        """Why there is nothing to read under this id, as a sentence for a model; `days` is the retention (M26)."""
        return await asyncio.to_thread(self._why_missing, omission_id, days)

    async def total_bytes(self) -> int:
        """Bytes on disk of all omissions, metadata included."""
        return await asyncio.to_thread(self._total_bytes)

    def _text_path(self, omission_id: str) -> Path:
        return self._directory / f"{omission_id}.txt"

    def _meta_path(self, omission_id: str) -> Path:
        return self._directory / f"{omission_id}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        ensure_private(self._directory)
        with FileLock(self._directory / ".lock", timeout=LOCK_SECONDS):
            yield

    def _last_number(self) -> int:
        """The last number given out. The counter outlives purges; the files outlive a damaged counter (M25)."""
        try:
            text = (self._directory / "counter").read_bytes().decode("ascii", "replace").strip()
        except FileNotFoundError:
            text = ""
        counted = int(text) if re.fullmatch(r"\d{1,18}", text, re.ASCII) else 0
        return max([counted, *(int(i[8:]) for i in self._ids(".txt")), *(int(i[8:]) for i in self._ids(".json"))])

    def _ids(self, suffix: str) -> list[str]:
        if not self._directory.is_dir():
            return []
        return [p.stem for p in self._directory.iterdir() if p.suffix == suffix and _is_id(p.stem)]

    def _put(self, text: str, tool: str, what: str, conversation_id: str, message_id: str) -> OmissionMeta:
        stored = redact(truncate_for_store(text)[0])
        if len(stored) > STORE_LIMIT:  # placeholders can be longer than the secrets they stand for
            stored, _ = truncate_for_store(stored)
        with self._locked():
            number = self._last_number() + 1
            write_private(self._directory / "counter", f"{number}\n".encode())
        meta = OmissionMeta(
            id=format_id(number),
            tool=tool,
            what=redact(what),
            chars=len(text),
            stored_chars=len(stored),
            created_at=self._clock(),
            reads=0,
            preview=preview(stored),
            conversation_id=conversation_id,
            message_id=message_id,
        )
        write_private(self._text_path(meta.id), stored.encode("utf-8", "surrogatepass"))
        self._write_meta(meta)
        return meta

    def _write_meta(self, meta: OmissionMeta) -> None:
        write_private(self._meta_path(meta.id), (json.dumps(asdict(meta), indent=1) + "\n").encode())

    def _get(self, omission_id: str) -> str | None:
        if self._meta(omission_id) is None:
            return None
        try:
            return self._text_path(omission_id).read_bytes().decode("utf-8", "surrogatepass")
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def _meta(self, omission_id: str) -> OmissionMeta | None:
        if not _is_id(omission_id) or not self._text_path(omission_id).is_file():
            return None
        try:
            meta = _read_meta(self._meta_path(omission_id).read_bytes())
        except FileNotFoundError:
            return None
        return meta if meta is not None and meta.id == omission_id else None

    def _all(self) -> list[OmissionMeta]:
        found = [self._meta(i) for i in sorted(self._ids(".json"), key=lambda i: int(i[8:]), reverse=True)]
        return [meta for meta in found if meta is not None]

    def _mark_read(self, omission_id: str) -> int:
        if self._meta(omission_id) is None:
            return 0
        with self._locked():
            meta = self._meta(omission_id)
            if meta is None:  # purged while waiting
                return 0
            self._write_meta(replace(meta, reads=meta.reads + 1))
            return meta.reads + 1

    def _purge(self, days: int) -> list[str]:
        if days <= 0 or not self._directory.is_dir():
            return []
        now = self._clock()
        purged = []
        with self._locked():
            for meta in self._all():
                if expired(meta.created_at, now, days):
                    self._meta_path(meta.id).unlink(missing_ok=True)
                    self._text_path(meta.id).unlink(missing_ok=True)
                    purged.append(meta.id)
            kept = {meta.id for meta in self._all()}
            for path in self._directory.iterdir():
                # a crash leaves a text without metadata, or a temporary file: they have no other date than the disk's
                if (
                    _LEFTOVER.fullmatch(path.name)
                    and path.stem not in kept
                    and expired(path.stat().st_mtime, now, days)
                ):
                    path.unlink(missing_ok=True)
        return purged

    def _why_missing(self, omission_id: str, days: int) -> str:
        if not _is_id(omission_id):
            return f'No such content: "{preview(omission_id, 60)}" is not an id like omitted-003.'
        if int(omission_id[8:]) > self._last_number() or format_id(int(omission_id[8:]) or 1) != omission_id:
            return f"No such content: {omission_id} was never stored for this project."
        if self._text_path(omission_id).exists() or self._meta_path(omission_id).exists():
            return f"{omission_id} is damaged on disk and cannot be read; run the tool again."
        how = f"expired after {days} days" if days > 0 else "was deleted"
        return f"{omission_id} {how} and is gone; run the tool again if its output is still needed."

    def _total_bytes(self) -> int:
        paths = [p for i in self._ids(".txt") for p in (self._text_path(i), self._meta_path(i))]
        return sum(p.stat().st_size for p in paths if p.exists())


def _is_id(text: str) -> bool:
    """True for an id that can have been given out: no path, and no number without end (M33)."""
    return len(text) <= _ID_LENGTH and ID_PATTERN.fullmatch(text) is not None


def _read_meta(data: bytes) -> OmissionMeta | None:
    """Metadata as written by this or another version; None when they are damaged."""
    try:
        raw = json.loads(data)
        return OmissionMeta(
            id=str(raw["id"]),
            tool=str(raw["tool"]),
            what=str(raw["what"]),
            chars=int(raw["chars"]),
            stored_chars=int(raw["stored_chars"]),
            created_at=float(raw["created_at"]),
            reads=int(raw["reads"]),
            preview=str(raw["preview"]),
            conversation_id=str(raw["conversation_id"]),
            message_id=str(raw["message_id"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
