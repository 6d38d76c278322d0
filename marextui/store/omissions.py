"""Tool outputs kept on disk so that every omission can be read back (M25–M29, M33, I6, cases 81, 83).

Per omission `omitted-NNN.json` says what is known about it and which blob holds its text; entries of equal text share
one. The blob is written first, so that metadata never promise a text that is not there. `counter` holds the last number
given out. Entries of the first version keep their text beside them in `omitted-NNN.txt`; they are read as they are and
moved over by and by.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from filelock import FileLock

from marextui.context.omission import (
    ID_PATTERN,
    STORE_LIMIT,
    expired,
    format_id,
    grouped,
    preview,
    truncate_for_store,
)
from marextui.context.redaction import redact
from marextui.private_files import ensure_private, write_private
from marextui.store.blobs import Blobs, digest
from marextui.store.file_state import file_digest, since

LOCK_SECONDS = 10
"""How long to wait for another process on the same project."""

DEFAULT_QUOTA_MB = 512
QUOTA_TARGET = 0.95
"""Share of the quota that eviction goes down to, so that a full store is not cut at each output."""

MOVED_AT_ONCE = 50
"""Entries of the first version moved over per purge, so that opening an old project does not take long."""

_ID_LENGTH = len("omitted-") + 18
_LEFTOVER = re.compile(r"omitted-\d{3,}\.(?:txt|json)|\..*\.tmp")
_SHA = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class OmissionMeta:
    """What is known about a stored output. Sizes in characters: `chars` of the original, `stored_chars` of what is kept
    (M27); `created_at` seconds since the epoch; `reads` times read back; `what` the path, command or pattern asked for.

    `sha256` is the digest of the stored text, "" in an entry of the first version. `file_path` is the file the output
    shows, `file_sha256` the digest of its bytes when it was stored; "" when it is no file's content or was not known.
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
    sha256: str = ""
    file_path: str = ""
    file_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Evicted:
    """Ids that had to go for the quota, oldest first; `referenced` ones stood as markers in a view."""

    unreferenced: tuple[str, ...] = ()
    referenced: tuple[str, ...] = ()


class OmissionStore:
    """The omissions of one project (B8). All methods may raise OSError; no id makes them raise anything else."""

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float],
        *,
        root: Path | None = None,
        quota_mb: int = DEFAULT_QUOTA_MB,
    ) -> None:
        """`directory` is made when first needed; `clock` gives seconds since the epoch. `root` is what file paths are
        relative to (None: the state of files is not looked at). `quota_mb` in megabytes on disk, 0: no limit.
        """
        self._directory = directory
        self._clock = clock
        self._root = root
        self._quota = quota_mb * 1_000_000
        self._blobs = Blobs(directory / "blobs")
        self._bytes: int | None = None  # on disk, as far as this process knows
        self._counted = False  # the files were looked through for the highest number

    async def put(
        self, text: str, *, tool: str, what: str, conversation_id: str, message_id: str, file: str = ""
    ) -> OmissionMeta:
        """Keep `text` under a new id. Secrets are taken out, and more than 200 000 characters are shortened (M27).

        `file` is the path of the file that `text` was read from just now, "" for any other output.
        """
        return await asyncio.to_thread(self._put, text, tool, what, conversation_id, message_id, file)

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
        """Remove omissions older than `days` (0: none), the leftovers of crashes and texts nobody refers to; returns
        the ids removed (M29).
        """
        return await asyncio.to_thread(self._purge, days)

    async def over_quota(self) -> bool:
        """True when the store takes more room than it may: time to `evict`."""
        return await asyncio.to_thread(self._over_quota)

    async def evict(self, referenced: Collection[str], *, keep: Collection[str] = ()) -> Evicted:
        """Make room down to the quota: oldest first, those not `referenced` by a view before all others (case 81).

        `keep` are never removed. The caller tells people what is gone (I6).
        """
        return await asyncio.to_thread(self._evict, referenced, keep)

    async def about(self, omission_id: str, *, whole: bool = False) -> str:
        """What a reader of this entry should know, as sentences for a model: that a part was not kept (M27), and
        whether the file it shows is still the same. "" when there is nothing to say. `whole`: the reader has the
        original from elsewhere.
        """
        return await asyncio.to_thread(self._about, omission_id, whole)

    async def why_missing(self, omission_id: str, days: int) -> str:
        """Why there is nothing to read under this id, as a sentence for a model; `days` is the retention (M26)."""
        return await asyncio.to_thread(self._why_missing, omission_id, days)

    async def total_bytes(self) -> int:
        """Bytes on disk of all omissions, metadata included."""
        return await asyncio.to_thread(self._measure)

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
        if counted and self._counted and not self._meta_path(format_id(counted + 1)).exists():
            return counted
        self._counted = True
        return max([counted, *(int(i[8:]) for i in self._ids(".txt")), *(int(i[8:]) for i in self._ids(".json"))])

    def _ids(self, suffix: str) -> list[str]:
        if not self._directory.is_dir():
            return []
        return [p.stem for p in self._directory.iterdir() if p.suffix == suffix and _is_id(p.stem)]

    def _put(self, text: str, tool: str, what: str, conversation_id: str, message_id: str, file: str) -> OmissionMeta:
        stored = redact(truncate_for_store(text)[0])
        if len(stored) > STORE_LIMIT:  # placeholders can be longer than the secrets they stand for
            stored, _ = truncate_for_store(stored)
        file_sha = file_digest(self._root, file) if self._root is not None and file else ""
        with self._locked():
            number = self._last_number() + 1
            write_private(self._directory / "counter", f"{number}\n".encode())
            there = self._blobs.size(digest(stored))
            # Under the lock, so that a sweep never takes the blob of an entry that is being written.
            sha = self._blobs.put(stored)
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
                sha256=sha,
                file_path=redact(file) if file_sha else "",
                file_sha256=file_sha,
            )
            self._write_meta(meta)
            if self._bytes is not None:
                self._bytes += _size(self._meta_path(meta.id)) + self._blobs.size(sha) - there
        return meta

    def _write_meta(self, meta: OmissionMeta) -> None:
        write_private(self._meta_path(meta.id), (json.dumps(asdict(meta), indent=1) + "\n").encode())

    def _get(self, omission_id: str) -> str | None:
        meta = self._meta(omission_id)
        if meta is None:
            return None
        text = self._blobs.get(meta.sha256) if meta.sha256 else None
        if text is not None:
            return text
        try:
            return self._text_path(omission_id).read_bytes().decode("utf-8", "surrogatepass")
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def _meta(self, omission_id: str) -> OmissionMeta | None:
        if not _is_id(omission_id):
            return None
        try:
            meta = _read_meta(self._meta_path(omission_id).read_bytes())
        except FileNotFoundError:
            return None
        if meta is None or meta.id != omission_id:
            return None
        has_text = (meta.sha256 and self._blobs.size(meta.sha256)) or self._text_path(omission_id).is_file()
        return meta if has_text else None

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
        if not self._directory.is_dir():
            return []
        now = self._clock()
        purged = []
        with self._locked():
            entries = self._all()
            for meta in entries:
                if expired(meta.created_at, now, days):
                    self._remove(meta)
                    purged.append(meta.id)
            kept = {meta.id: meta for meta in entries if meta.id not in purged}
            for path in self._directory.iterdir():
                # a crash leaves a text without metadata, or a temporary file: they have no other date than the disk's
                if (
                    _LEFTOVER.fullmatch(path.name)
                    and path.stem not in kept
                    and expired(path.stat().st_mtime, now, days)
                ):
                    path.unlink(missing_ok=True)
            if set(self._ids(".json")) <= kept.keys():  # damaged metadata may be all that is wrong with an entry
                self._blobs.sweep({meta.sha256 for meta in kept.values()})
        self._move_over([meta for meta in kept.values() if not meta.sha256][:MOVED_AT_ONCE])
        self._bytes = None
        return purged

    def _move_over(self, entries: Collection[OmissionMeta]) -> None:
        """Give entries of the first version a blob; a crash leaves the text where it was, or in both places."""
        for old in entries:
            with self._locked():
                meta, text = self._meta(old.id), self._get(old.id)
                if meta is not None and text is not None and not meta.sha256:
                    text = redact(text)  # more kinds of secrets are known by now
                    self._write_meta(replace(meta, stored_chars=len(text), sha256=self._blobs.put(text)))
                    self._text_path(old.id).unlink(missing_ok=True)

    def _remove(self, meta: OmissionMeta) -> None:
        """Remove an entry; its blob stays for the sweep, others may share it."""
        self._meta_path(meta.id).unlink(missing_ok=True)
        self._text_path(meta.id).unlink(missing_ok=True)

    def _over_quota(self) -> bool:
        if not self._quota:
            return False
        if self._bytes is None:
            self._bytes = self._measure()
        return self._bytes > self._quota

    def _evict(self, referenced: Collection[str], keep: Collection[str]) -> Evicted:
        with self._locked():
            self._bytes = self._measure()
            if not self._quota or self._bytes <= self._quota:
                return Evicted()
            target = int(self._quota * QUOTA_TARGET)
            entries = [m for m in reversed(self._all()) if m.id not in keep]
            sharing: dict[str, int] = {}
            for meta in self._all():
                sharing[meta.sha256] = sharing.get(meta.sha256, 0) + 1
            gone: tuple[list[str], list[str]] = ([], [])
            for meta in sorted(entries, key=lambda m: (m.id in referenced, m.created_at, int(m.id[8:]))):
                if self._bytes <= target:
                    break
                self._bytes -= _size(self._meta_path(meta.id)) + _size(self._text_path(meta.id))
                self._remove(meta)
                sharing[meta.sha256] -= 1
                if meta.sha256 and not sharing[meta.sha256]:
                    self._bytes -= self._blobs.size(meta.sha256)
                    self._blobs.remove(meta.sha256)
                gone[meta.id in referenced].append(meta.id)
        return Evicted(tuple(gone[False]), tuple(gone[True]))

    def _about(self, omission_id: str, whole: bool) -> str:
        meta = self._meta(omission_id)
        if meta is None:
            return ""
        said = []
        if meta.chars > STORE_LIMIT and not whole:
            said.append(
                f"Only {grouped(meta.stored_chars)} of {grouped(meta.chars)} characters were kept, the beginning and "
                "the end: what stood between is not here; run the tool again with a narrower question to see it."
            )
        if meta.file_sha256 and self._root is not None:
            said.append(since(self._root, meta.file_path, meta.file_sha256))
        return " ".join(said)

    def _why_missing(self, omission_id: str, days: int) -> str:
        if not _is_id(omission_id):
            return f'No such content: "{preview(omission_id, 60)}" is not an id like omitted-003.'
        if int(omission_id[8:]) > self._last_number() or format_id(int(omission_id[8:]) or 1) != omission_id:
            return f"No such content: {omission_id} was never stored for this project."
        if self._text_path(omission_id).exists() or self._meta_path(omission_id).exists():
            return f"{omission_id} is damaged on disk and cannot be read; run the tool again."
        how = f"expired after {days} days or made room for newer ones" if days > 0 else "was deleted"
        return f"{omission_id} {how} and is gone; run the tool again if its output is still needed."

    def _measure(self) -> int:
        beside = [p for i in self._ids(".json") for p in (self._text_path(i), self._meta_path(i))]
        return sum(map(_size, beside)) + sum(map(self._blobs.size, self._blobs.all()))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _is_id(text: str) -> bool:
    """True for an id that can have been given out: no path, and no number without end (M33)."""
    return len(text) <= _ID_LENGTH and ID_PATTERN.fullmatch(text) is not None


def _read_meta(data: bytes) -> OmissionMeta | None:
    """Metadata as written by this or another version; None when they are damaged."""
    try:
        raw = json.loads(data)
        sha = str(raw.get("sha256", ""))
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
            sha256=sha if _SHA.fullmatch(sha) else "",
            file_path=str(raw.get("file_path", "")),
            file_sha256=str(raw.get("file_sha256", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
