"""Asking for a summary by going on with the turn's own request, while the server still holds it (L1, L3–L24).

Decides whether that can be done now and makes the request; `engine.summariser` sends it, and asks by transcript within
the same compaction whenever this says no or what comes back is not usable (L21).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from marextui.context.continuation import (
    MISALIGNED,
    TEMPERATURE,
    Wire,
    continuation_extra,
    demand,
    no_room,
    realign,
    without_trailing_users,
)
from marextui.context.messages import Message
from marextui.context.reply_check import SummaryRejected, ToolCalled
from marextui.context.suspension import Suspension, refusal_kind
from marextui.context.tokens import TokenLedger
from marextui.context.wire import wire_messages
from marextui.engine.economy import EconomyLine
from marextui.engine.modelctl import ModelControl
from marextui.models.slots import SentStep
from marextui.models.types import ChatRequest, Connection, ModelError, Usage


@dataclass(frozen=True, slots=True)
class Point:
    """Where a conversation may be gone on from: its view as of now, and the id of the first message that is kept."""

    conversation: str
    history: Sequence[Message]
    first_kept: str
    ledger: TokenLedger


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the summary must be: `cap` most tokens, `window` those the model holds; the rest as in `demand`."""

    cap: int
    window: int | None
    earlier: bool
    rewrite: bool
    sections: tuple[str, ...]
    language: str


class _Not(Exception):
    """The continuation cannot be used now; the text is part of a sentence."""


@dataclass(slots=True)
class Continuation:
    """Continuations for the model in use. `wanted` is the key (L1); suspensions end with the process (L23)."""

    wanted: bool
    control: ModelControl
    suspension: Suspension = field(default_factory=Suspension)
    last: str = ""
    """How the last summary was asked for, in a sentence."""

    @property
    def connection(self) -> Connection | None:
        """The model in use, when continuations are wanted of it: never an external one (L1, B25)."""
        connection = self.control.connection
        return connection if self.wanted and connection is not None and connection.choice.local else None

    async def request(self, point: Point, wanted: Wanted) -> ChatRequest | None:
        """The request that goes on from `point`, to be sent at once: nothing may be awaited before (L19).

        None: ask by transcript; `last` says why. Never raises.
        """
        connection = self.connection
        if connection is None:
            return None
        try:
            step = self._held(connection, point)
            request = self._extended(step, point, wanted)
            await self._ask_server(connection, step)
            if self._held(connection, point) is not step:
                raise _Not("another step was sent meanwhile")
        except _Not as reason:
            self.last = f"The last summary was asked for by transcript: {reason}."
            return None
        return request

    def _held(self, connection: Connection, point: Point) -> SentStep:
        """The step the slot holds; looked at again right before sending (L16–L19)."""
        if why := self.suspension.why(connection.choice.name):
            raise _Not(f"going on is suspended for this model, {why}")
        step = connection.slots.held(point.conversation)
        if step is None:
            raise _Not(connection.slots.why_not(point.conversation))
        return step

    async def _ask_server(self, connection: Connection, step: SentStep) -> None:
        """Whether the server itself says that it holds something else: other programs are not in our books (B26)."""
        facts = await self.control.read_slots(connection)
        usage = step.usage or Usage()
        if facts.prompts is not None and usage.inp is not None:
            most = usage.inp + (usage.out or 0)  # a slot counts its prompt, or what it holds after the answer too
            if not any(usage.inp <= held <= most for held in facts.prompts):
                connection.slots.forget("it was restarted, or another program has used it")
        if facts.busy and facts.total == 1:
            connection.slots.forget("another program is using it")

    def _extended(self, step: SentStep, point: Point, wanted: Wanted) -> ChatRequest:
        """The step's request as it left, what was said since, and the demand (L3)."""
        request = step.request
        now = tuple(wire_messages(point.history, echo_reasoning=point.ledger.echo_reasoning))
        seen = len(request.message_ids)
        if tuple(message_id for message_id, _ in now[:seen]) != request.message_ids:
            raise _Not("the view was rewritten since the last step")
        sent = without_trailing_users((*request.messages, *(wire for _, wire in now[seen:])))
        model = without_trailing_users([wire for _, wire in now])
        if not model:
            raise _Not("there is nothing but the user's message to go on from")
        first = next((i for i, (message_id, _) in enumerate(now) if message_id == point.first_kept), None)
        boundary = MISALIGNED if first is None else realign(sent, model, min(first, len(model)))
        if boundary == MISALIGNED:
            raise _Not("the view does not match what was sent")
        text = demand(
            sent,
            boundary,
            earlier=wanted.earlier,
            rewrite=wanted.rewrite,
            sections=wanted.sections,
            language=wanted.language,
        )
        self._measure(step, point, text, wanted)
        asked: Wire = {"role": "user", "content": text}
        return replace(
            request,
            messages=(*sent, asked),
            max_tokens=wanted.cap,
            temperature=TEMPERATURE,
            stream=False,
            extra=continuation_extra(request.extra, tools=bool(request.tools)),
            kind="compact",
            message_ids=(),
        )

    def _measure(self, step: SentStep, point: Point, text: str, wanted: Wanted) -> None:
        """The margin in real tokens (L20)."""
        usage, ledger = step.usage, point.ledger
        if wanted.window is None or usage is None or usage.inp is None:
            raise _Not("the server did not count the last step")
        known = set(step.request.message_ids)
        since = [m for m in point.history if m.id not in known]
        while since and since[-1].role == "user":
            since.pop()
        if since and since[0].role == "assistant":
            del since[0]  # its tokens are in the answer that was counted
        why = no_room(
            counted=usage.inp + (usage.out or 0),
            unseen=ledger.messages(since),
            demand=ledger.text(text) + 4,
            cap=wanted.cap,
            window=wanted.window,
        )
        if why:
            raise _Not(why)

    def succeeded(self, computed: int | None, cached: int | None) -> None:
        """The continuation gave a usable summary; tokens as the server counted them (None: it did not)."""
        connection = self.connection
        if connection is not None:
            self.suspension = self.suspension.succeeded(connection.choice.name)
        told = "" if computed is None or cached is None else f": {computed} tokens computed, {cached} from the cache"
        self.last = f"The last summary went on with the conversation{told}."

    def failed(self, problem: ModelError | SummaryRejected) -> None:
        """It did not: the transcript is asked now; a model that cannot do it is not asked again (L23, L24)."""
        connection = self.connection
        if isinstance(problem, ModelError):
            kind, reason = refusal_kind(problem.status, overflow=problem.kind == "overflow"), problem.message
        else:
            kind, reason = "hard" if isinstance(problem, ToolCalled) else "soft", str(problem)
        reason = reason[:1].lower() + reason[1:].rstrip(".")
        if connection is not None:
            self.suspension = self.suspension.failed(connection.choice.name, kind, reason)
        self.last = f"The last summary went on with the conversation first, then by transcript: {reason}."

    def status(self, conversation: str) -> EconomyLine:
        """Why the next summary of `conversation` would go on with it, or not (issue 4, section 5)."""
        key, connection = "compact_continuation", self.control.connection
        if not self.wanted:
            return EconomyLine(key, "off", "Not switched on: summaries are asked for by transcript.")
        if connection is None:
            return EconomyLine(key, "on", "No model is connected yet.")
        name = connection.choice.label
        if not connection.choice.local:
            return EconomyLine(key, "off", f"{name} is not a local engine: summaries are asked for by transcript.")
        if why := self.suspension.why(connection.choice.name):
            return EconomyLine(key, "suspended", f"Not with {name} until the next start: {why}.")
        why_not = connection.slots.why_not(conversation)
        now = (
            f"A summary now would be a request of its own: {why_not}. One in a turn or at its end goes on with it."
            if why_not
            else "The server holds this conversation: a summary now would go on with it."
        )
        return EconomyLine(key, "on", f"{now} {self.last}".strip())
