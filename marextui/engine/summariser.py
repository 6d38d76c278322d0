"""Makes the summary of a span: by the model, checked and repaired, or without one. Changes nothing by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from marextui.context.entries import Summary
from marextui.context.folding import parted
from marextui.context.messages import Message
from marextui.context.offline import offline_summary
from marextui.context.redaction import redact
from marextui.context.reply_check import SummaryRejected
from marextui.context.sections import SECTIONS, titles_of
from marextui.context.spoken import users_language
from marextui.context.strategies import Anchored, Strategy
from marextui.context.summary import check_reply, parse_summary, without_lumps
from marextui.context.summary_check import Checked, check_summary
from marextui.context.summary_request import estimated_tokens, summary_messages
from marextui.engine.bus import Bus
from marextui.engine.continuation import Continuation, Point, Wanted
from marextui.engine.ports import Clock, SystemClock
from marextui.engine.reply import Reply
from marextui.models.types import ChatModel, ChatRequest, ModelError, Usage

NOT_BESIDE = ("request", "third")
"""What a summary must say by itself; files, errors, tests and constraints stand beside it (context.beside)."""
SUMMARY_TEMPERATURE = 0.1
SAME_CHARS = 40
TOO_MUCH_TO_READ = frozenset({408, 413, 504, 524})
"""Statuses of servers and gateways that gave up on a request that was large rather than wrong."""
CHARS_PER_TOKEN = 4
MOST_CHARS_PER_TOKEN = 12
"""Characters of a reply for each token of its cap beyond which nobody wrote them in that many tokens."""


@dataclass(frozen=True, slots=True)
class Task:
    """A summary to make: of `span`, cut in compaction `cycle`; `earlier` stands for what was cut before.

    `cap` are the most tokens of the answer, `window` those the model can hold (None: unknown). `chat` None: no model
    is asked. `extra` goes into the request body. `conversation` is the id of the one it is for; `point` is where it may
    be gone on from (None: never, L28).
    """

    span: Sequence[Message]
    earlier: Summary | None
    cycle: int
    cap: int
    window: int | None
    chat: ChatModel | None
    extra: Mapping[str, Any]
    conversation: str = ""
    point: Point | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What one request beside the turns' steps took: the server's count and times (None, empty: not told), seconds on
    our clock."""

    how: Literal["continuation", "transcript", "ahead"]
    usage: Usage | None
    timings: Mapping[str, float]
    seconds: float


@dataclass(slots=True)
class Summariser:
    """Asks for summaries by one strategy, in `sections` as a person lists them (P7). `needs` are the kinds of facts a
    summary must tell by itself.

    `costs` is what its requests took since somebody last looked; they appear in usage, never in the trigger (cases
    11, 123). `continuation` None: never gone on with the conversation.
    """

    strategy: Strategy = field(default_factory=Anchored)
    sections: tuple[str, ...] = SECTIONS
    needs: Collection[str] = NOT_BESIDE
    clock: Clock = field(default_factory=SystemClock)
    continuation: Continuation | None = None
    costs: list[Cost] = field(default_factory=list)

    async def summarise(self, task: Task) -> Checked:
        """The summary the strategy asks for, usable as it is. Raises `ModelError`, `SummaryRejected`."""
        if task.chat is None:
            return await asyncio.to_thread(self._without_model, task)
        checked = await self._gone_on(task, task.chat) or await self._answer(task, task.chat)
        if checked.retry:  # in clearly the wrong language: asked for once more, then it is a failure (I11)
            checked = await self._answer(task, task.chat, correction=checked.retry)
        if checked.retry:
            raise SummaryRejected(f"Asked twice, the model did not keep to the user's language. {checked.retry}")
        return checked

    def _without_model(self, task: Task) -> Checked:
        titles = titles_of(self.sections)
        span = offline_summary(task.span, cycle=task.cycle, sections=titles, max_chars=None)
        whole = self.strategy.without_model(task.earlier, span, cycle=task.cycle)
        fitted = parted(whole, task.cap * CHARS_PER_TOKEN)
        return Checked(fitted.summary, folded=fitted.folded)

    async def _gone_on(self, task: Task, chat: ChatModel) -> Checked | None:
        """The summary as a continuation of the conversation; None: ask by transcript (L21)."""
        way, point = self.continuation, task.point
        if way is None or point is None:
            return None
        language = await asyncio.to_thread(users_language, task.span, task.earlier)
        earlier = task.earlier is not None
        wanted = Wanted(task.cap, task.window, earlier, self.strategy.rewrites, self.sections, language)
        request = await way.request(point, wanted)
        if request is None:
            return None
        try:
            reply = await self._send(request, chat, "continuation")
            checked = await self._read(task, reply)
        except (ModelError, SummaryRejected) as problem:
            way.failed(problem)
            return None
        usage = reply.usage or Usage()
        way.succeeded(usage.computed, usage.cache_read)
        return checked

    async def _answer(self, task: Task, chat: ChatModel, correction: str = "") -> Checked:
        """Ask by transcript; once more with half of the material where that was too much to read (cases 31, 42, 43)."""
        messages = await self._messages(task, correction)
        try:
            return await self._read(task, await self._send(self._request(task, messages), chat, "transcript"))
        except ModelError as problem:
            if problem.kind != "overflow" and problem.status not in TOO_MUCH_TO_READ:
                raise
            window = min(filter(None, (task.window, problem.n_ctx, _size(messages) + task.cap)))
            fewer = await self._messages(replace(task, window=window // 2), correction)
            if _size(fewer) >= _size(messages):
                raise
        return await self._read(task, await self._send(self._request(task, fewer), chat, "transcript"))

    async def _messages(self, task: Task, correction: str) -> Sequence[Mapping[str, Any]]:
        # Extracting and redacting a large span takes seconds: never in the loop.
        return await asyncio.to_thread(
            summary_messages,
            task.span,
            earlier=task.earlier,
            rewrite=self.strategy.rewrites,
            window=task.window,
            cap=task.cap,
            sections=self.sections,
            correction=correction,
        )

    def _request(self, task: Task, messages: Sequence[Mapping[str, Any]]) -> ChatRequest:
        return ChatRequest(
            messages=tuple(messages),
            max_tokens=task.cap,
            temperature=SUMMARY_TEMPERATURE,
            stream=False,
            extra=dict(task.extra),
            kind="compact",
            conversation=task.conversation,
        )

    async def _send(self, request: ChatRequest, chat: ChatModel, how: Literal["continuation", "transcript"]) -> Reply:
        sent_at = self.clock.monotonic()
        reply = Reply("summary", 0, Bus())
        async with aclosing(chat.stream(request)) as chunks:
            async for chunk in chunks:
                reply.feed(chunk)
        self.costs.append(Cost(how, reply.usage, reply.timings, self.clock.monotonic() - sent_at))
        return reply

    async def _read(self, task: Task, reply: Reply) -> Checked:
        """The summary in `reply`, repaired. A continuation has seen what a transcript redacts (case 137)."""
        return await asyncio.to_thread(self._checked, task, reply)  # some servers know no cap: megabytes may come

    def _checked(self, task: Task, reply: Reply) -> Checked:
        titles = titles_of(self.sections)
        text = check_reply(
            reply.body,
            reply.finish_reason,
            bool(reply.calls),
            "".join(reply.reasoning),
            sections=titles,
            most_chars=task.cap * MOST_CHARS_PER_TOKEN,
        )
        ends = (task.span[0].id, task.span[-1].id)
        parsed = without_lumps(parse_summary(redact(text), cycle=task.cycle, sections=titles, sources=ends))
        checked = check_summary(
            parsed,
            task.span,
            earlier=task.earlier,
            cycle=task.cycle,
            cap_chars=task.cap * CHARS_PER_TOKEN,
            needs=self.needs,
        )
        if not _told_by_both(parsed, checked.summary):
            raise SummaryRejected("Nothing of what the model wrote could be kept.")
        return checked


def _size(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of a summary request, roughly."""
    return sum(estimated_tokens(str(m["content"]), CHARS_PER_TOKEN) for m in messages)


def _told_by_both(written: Summary, kept: Summary) -> bool:
    """Whether anything of the model's own is among what was kept (shortened, perhaps)."""
    own = {i.text[:SAME_CHARS] for s in written.sections for i in s.items}
    return any(i.text[:SAME_CHARS] in own for s in kept.sections for i in s.items)
