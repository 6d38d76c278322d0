"""What an omission stands for, whole: from the store, and from the log where the store keeps less (I6, M26, M27).

An entry of the store holds 200 000 characters and gives way to newer ones; the log holds everything. So an output that
was too long for its entry, or made room for others, is read from the log. What is past its retention stays gone (M29).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from marextui.context.fold import fold
from marextui.context.marked import AnyRef, original
from marextui.context.messages import Message
from marextui.context.omission import STORE_LIMIT, expired
from marextui.engine.omitter import Omitter
from marextui.engine.session import Session
from marextui.store.database import StoreError
from marextui.store.log import LogStore


class WholeTexts(Protocol):
    """The part of the log that originals are read from (`store.log.LogStore`). All raise `StoreError`."""

    async def whole(self, conversation_id: str, message_id: str, part: int) -> str | None: ...
    async def logged(self, conversation_id: str, message_id: str) -> tuple[Message, float] | None: ...


@dataclass(slots=True)
class Originals:
    """`tools.types.OmittedReader` over store and log: what ReadOmittedContent and the screen read with (case 78)."""

    omitter: Omitter
    log: LogStore
    session: Callable[[], Session]
    _last: tuple[str, str] = ("", "")
    """The id and text last taken from the log: a reader goes through it page by page."""

    async def read(self, omission_id: str) -> str | None:
        """The complete text, None when there is none. Raises OSError."""
        text = await self.omitter.store.get(omission_id)
        if text is not None and not await self._shortened(omission_id):
            return text
        if self._last[0] == omission_id:
            return self._last[1]
        try:
            whole = await self._from_log(omission_id, gone=text is None)
        except StoreError:
            return text
        if whole is not None:
            self._last = (omission_id, whole)
        return text if whole is None else whole

    async def open(self, omission_id: str) -> str | None:
        """As `read`, for a person who looks at it whole: counted as one read-back."""
        text = await self.read(omission_id)
        if text is not None:
            await self.count_read(omission_id)
        return text

    async def count_read(self, omission_id: str) -> None:
        await self.omitter.count_read(omission_id)

    async def why_missing(self, omission_id: str) -> str:
        return await self.omitter.store.why_missing(omission_id, self.omitter.days)

    async def about(self, omission_id: str) -> str:
        return await self.omitter.store.about(omission_id, whole=self._last[0] == omission_id)

    async def _shortened(self, omission_id: str) -> bool:
        meta = await self.omitter.store.meta(omission_id)
        return meta is not None and meta.chars > STORE_LIMIT

    async def _from_log(self, omission_id: str, *, gone: bool) -> str | None:
        """The text as the log has it (without secrets). Of what is `gone` only what the open conversation refers to,
        and only as long as it would have been kept: its age is that of its message."""
        session = self.session()
        conversation_id = session.id
        ref = session.conversation.ref_of(omission_id)
        if ref is None and not gone:
            meta = await self.omitter.store.meta(omission_id)
            conversation_id = "" if meta is None else meta.conversation_id
            ref = await self._ref_elsewhere(conversation_id, omission_id)
        if ref is None:
            return None
        found = await self.log.logged(conversation_id, ref.message_id)
        if found is None or (gone and expired(found[1], self.omitter.clock.now(), self.omitter.days)):
            return None
        part = getattr(ref, "part", None)
        whole = None if part is None else await self.log.whole(conversation_id, ref.message_id, part)
        return original(found[0], ref) if whole is None else whole

    async def _ref_elsewhere(self, conversation_id: str, omission_id: str) -> AnyRef | None:
        """The place of an output of another conversation of this project (B8)."""
        records = await self.log.records(conversation_id) if conversation_id else ()
        return fold(r.entry for r in records).ref_of(omission_id)
