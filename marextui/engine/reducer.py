"""Climbs down the ladder: makes a view smaller without a model, one announced rewrite at a time (Part 2, 5; I2, I7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from marextui.context.entries import ReasoningDropped
from marextui.context.ladder import LEAST_BUDGET, Ladder, Piece, enough
from marextui.context.triggers import THRESHOLD, goal_of
from marextui.engine.bus import Bus
from marextui.engine.compactor import Compactor
from marextui.engine.events import Notice, ViewReduced
from marextui.engine.meter import Meter, Reading
from marextui.engine.omitter import Omitter
from marextui.engine.prompt import SystemPart
from marextui.engine.session import Session

TURN_SHARE = 0.9
"""Share of the room that is aimed at inside the newest turn: the next step should not have to rewrite again."""
REQUEST_SHARE = 3
"""A request that leaves no room for anything else is cut to one part in this many of the room."""


class Desk(Protocol):
    """What the reducer asks of the engine around it."""

    def system_part(self) -> SystemPart: ...

    def may_summarise(self) -> bool: ...

    def today(self) -> str: ...


def _key(piece: Piece) -> tuple[object, ...]:
    return piece.message_id, piece.part, piece.call, piece.path


def _distinct(*rungs: Iterable[Piece]) -> list[Piece]:
    """The pieces of `rungs` in order; what an earlier rung has taken is not taken twice."""
    seen: dict[tuple[object, ...], Piece] = {}
    for rung in rungs:
        for piece in rung:
            seen.setdefault(_key(piece), piece)
    return list(seen.values())


@dataclass(slots=True)
class Reducer:
    """Reduces the view of `session` during one turn."""

    session: Session
    host: Desk
    meter: Meter
    omitter: Omitter
    compactor: Compactor
    bus: Bus
    _told: bool = False

    def reading(self) -> Reading:
        return self.meter.read(self.session, self.host.system_part())

    def ladder(self, turn: int) -> Ladder:
        return Ladder(self.session.conversation, self.session.ledger, turn)

    def _estimate(self) -> int:
        """H as it will be read once the view was rewritten: then no measure holds any more."""
        return self.session.ledger.tally(self.session.history()).total

    # -- before a summary ----------------------------------------------------------------------------------------------

    async def relieve(self, turn: int, reading: Reading) -> bool:
        """Rungs a–d, if they alone end at 0.8 of the threshold (P22): then no summary is needed. True when done."""
        if reading.threshold is None:
            return False
        ladder = self.ladder(turn)
        excess = int(self._estimate() - goal_of(reading.threshold)) + 1
        repeats = ladder.repeats()
        pieces = _distinct(repeats, ladder.outputs(), ladder.inputs())
        before, bare = ladder.old_reasoning()
        chosen, freed = enough(pieces, max(excess, sum(p.saves for p in repeats)))
        if freed + bare < excess:
            return False
        await self._mask(turn, chosen)
        if freed < excess:
            await self._drop_reasoning(turn, before, bare)
        return True

    async def clear_for_cut(self, turn: int, reading: Reading, *, mid_turn: bool) -> None:
        """Where no cut helps enough as the view is, but one would with old bulk gone from what it keeps: let it go."""
        if self.compactor.cut(self.session, reading, trigger=THRESHOLD, mid_turn=mid_turn) is not None:
            return
        kept = self.session.conversation.shown()
        counts = [self.session.ledger.message(m) for m in kept]
        ladder = self.ladder(turn)
        pieces = _distinct(ladder.repeats(), ladder.outputs(), ladder.inputs())
        at = {m.id: i for i, m in enumerate(kept)}
        for piece in pieces:
            counts[at[piece.message_id]] -= piece.saves
        cut = self.compactor.cut(self.session, reading, trigger=THRESHOLD, counts=counts, mid_turn=mid_turn)
        if cut is not None:
            await self._mask(turn, [p for p in pieces if at[p.message_id] >= cut.index])

    # -- when the request would not be sent otherwise ------------------------------------------------------------------

    async def shed(self, turn: int, room: int) -> None:
        """Rungs a–d as far as they go towards `room`, and old images."""
        ladder = self.ladder(turn)
        pieces = _distinct(ladder.repeats(), ladder.outputs(), ladder.inputs())
        excess = self._estimate() - room
        chosen, freed = enough(pieces, excess)
        await self._mask(turn, chosen)
        if freed < excess:
            await self._drop_reasoning(turn, *ladder.old_reasoning())
        excess = self._estimate() - room
        if excess > 0:
            await self.omitter.replace(self.session, enough(ladder.old_images(), excess)[0], turn, "images")

    async def fit(self, turn: int, room: int) -> None:
        """Bring the history to `room` tokens or less, whatever it takes; a caller finds out by measuring (I2, I3).

        Old bulk first, then a summary without a model, then what lies inside the newest turn, its newest round last;
        at the very end long texts and the request itself. Raises `StoreError`, OSError.
        """
        if room < LEAST_BUDGET or self.reading().used <= room:
            return
        await self.shed(turn, room)
        if self._over(room) and await self._force(room):
            return
        excess = self._over(room, TURN_SHARE)
        if excess:
            await self.omitter.replace(self.session, enough(self.ladder(turn).in_turn(), excess)[0], turn)
        if over := self._over(room):
            await self._cut_round(turn, self.ladder(turn).newest_round(over))
        if self._over(room) and await self._force(room):
            return
        if over := self._over(room):
            await self.omitter.replace(self.session, self.ladder(turn).texts(over), turn)
        if self._over(room) and not await self._force(room):
            await self._cut_request(turn, room)
        if over := self._over(room):
            await self._cut_round(turn, self.ladder(turn).newest_outputs(over))
        if self._over(room):  # the newest round is shorter now, and leaves room for a summary of what precedes it
            await self._force(room)

    def _over(self, room: int, share: float = 1.0) -> int:
        """Tokens above `share` of `room`, 0 when the history is within `room`."""
        used = self.reading().used
        return 0 if used <= room else int(used - room * share) + 1

    async def _force(self, room: int) -> bool:
        """A summary without a model; True when the history then fits."""
        if not self.host.may_summarise():
            return False
        await self.compactor.force(self.session, self.reading(), room=room, dated=self.host.today())
        return not self._over(room)

    async def _cut_round(self, turn: int, pieces: Sequence[Piece]) -> None:
        if not pieces:
            return
        await self.omitter.replace(self.session, pieces, turn)
        if not self._told:
            self._told = True
            text = "What the latest tool calls gave is too large for this window: the model sees it shortened."
            self.bus.emit(Notice("info", text, "The whole is stored; the model can read it piece by piece."))

    async def _cut_request(self, turn: int, room: int) -> None:
        """The last rung: the person's own message as head and tail. It must be told (I2)."""
        ladder = self.ladder(turn)
        excess = max(self._over(room), ladder.request_tokens() - room // REQUEST_SHARE)
        pieces = ladder.request(excess)
        if not pieces:
            return
        ids = await self.omitter.replace(self.session, pieces, turn)
        text = (
            f"Your message is too long for what this model can take ({room} tokens of conversation): "
            f"only its beginning and end are sent. The whole is kept as {', '.join(dict.fromkeys(ids))}."
        )
        self.bus.emit(Notice("warning", text, "A model with a larger window takes it whole (/model)."))
        if self._over(room):
            await self._force(room)

    # -- images and bytes ----------------------------------------------------------------------------------------------

    async def thin_images(self, turn: int, keep: int, *, starts: bool) -> None:
        """Images beyond the newest `keep` become descriptions: at a turn's start, later only when there are twice as
        many, so that not every new picture rewrites the prefix (cases 103, 110)."""
        count = self.session.ledger.tally(self.session.history()).images
        if count > keep and (starts or count > 2 * keep):
            await self.omitter.replace(self.session, self.ladder(turn).old_images(keep), turn, "images")

    async def spare_images(self, turn: int) -> None:
        """A server refused a picture: the older ones become descriptions, the next time those just sent as well.

        Else the picture would stand in every later request, and none would be answered any more.
        """
        old = self.ladder(turn).old_images()
        pieces = old or self.ladder(turn).newest_payloads()
        if await self.omitter.replace(self.session, pieces, turn, "images") and not old:
            text = "The server does not take the newest pictures: the model gets a description instead."
            self.bus.emit(Notice("warning", text, "They are kept; a model that takes pictures can be chosen (/model)."))

    async def lighten(self, turn: int, excess: int) -> None:
        """Free `excess` bytes: images oldest first, then bulk anywhere, the pictures of the newest request last (case
        102)."""
        excess = await self._by_weight(turn, self.ladder(turn).old_images(), excess, "images")
        ladder = self.ladder(turn)
        bulk = _distinct(ladder.outputs(), ladder.inputs(), ladder.in_turn())
        excess = await self._by_weight(turn, sorted(bulk, key=lambda p: -len(p.text)), excess, "room")
        if excess > 0 and (pictures := self.ladder(turn).newest_payloads()):
            await self._by_weight(turn, pictures, excess, "images")
            text = "The newest pictures are too large for one request: the model gets a description instead."
            self.bus.emit(Notice("warning", text, "Send smaller ones, or raise max_request_mb if the server takes it."))

    async def _by_weight(self, turn: int, pieces: Sequence[Piece], excess: int, why: Literal["images", "room"]) -> int:
        """Replace the first of `pieces` that free `excess` bytes; returns what is then still in excess."""
        chosen: list[Piece] = []
        for piece in pieces:
            if excess <= 0:
                break
            chosen.append(piece)
            excess -= len(piece.text.encode("utf-8", "surrogatepass"))
        await self.omitter.replace(self.session, chosen, turn, why)
        return excess

    # -- entries -------------------------------------------------------------------------------------------------------

    async def _mask(self, turn: int, pieces: Iterable[Piece]) -> None:
        """Let `pieces` of the first rungs leave the view, repeats told apart from other bulk."""
        pieces = list(pieces)
        await self.omitter.replace(self.session, [p for p in pieces if p.rung == "repeats"], turn, "repeat")
        await self.omitter.replace(self.session, [p for p in pieces if p.rung != "repeats"], turn)

    async def _drop_reasoning(self, turn: int, before: str, freed: int) -> None:
        if before:
            await self.session.append(ReasoningDropped(turn, before, freed))
            self.bus.emit(ViewReduced(turn, "reasoning", (), freed))
