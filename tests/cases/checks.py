"""What must hold after any conversation, whatever models, tools and people did (I1–I8), judged from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from marextui.context.entries import CompactionCommitted, MessageAdded
from marextui.context.fold import fold
from marextui.context.messages import Message
from marextui.context.omission import marker
from marextui.context.recording import read_recording
from marextui.context.redacted import redacted_message
from marextui.context.shapes import SHAPES, shape_violations, to_shape
from marextui.context.validate import strict_violations
from marextui.engine.events import (
    CompactionFinished,
    CompactionReverted,
    GaugeChanged,
    OutputsReplaced,
    StepRefused,
    StepStarted,
    ViewReduced,
)
from tests.stubs.engine_rig import Rig, four

REWRITES = (OutputsReplaced, ViewReduced, CompactionFinished, CompactionReverted)
_MARKED = re.compile(r'content_id=\\?"(omitted-\d+)')


def sent_tokens(messages: Sequence[Any], tools: Sequence[Any]) -> int:
    """A count of a request of our own: every text of it, nothing else; always below what an estimate must say."""
    total = four(json.dumps(list(tools), ensure_ascii=False)) if tools else 0
    for m in messages:
        content = m.get("content")
        texts = [content] if isinstance(content, str) else [p.get("text", "") for p in content or ()]
        texts += [c["function"]["name"] + c["function"]["arguments"] for c in m.get("tool_calls") or ()]
        total += sum(len(t) for t in texts) // 4
    return total


def as_messages(wire: Sequence[Any]) -> tuple[Message, ...]:
    return read_recording("".join(json.dumps(m) + "\n" for m in wire).encode(), name="a view").messages


def views_are_valid(r: Rig) -> None:
    """I1: each request, as it left, in the strict form and in the shape of every provider."""
    for request, later in zip_longest(r.chat.turns, r.chat.turns[1:]):
        assert request.messages[0]["role"] == "system"
        assert request.messages[-1]["role"] in {"user", "tool"}
        view = as_messages(request.messages)
        assert strict_violations(view) == ()
        if later is not None and later.messages[: len(request.messages)] == request.messages:
            continue  # what is wrong with a shape of this one is wrong with that of the next
        for shape in SHAPES:
            assert shape_violations(to_shape(view, shape), shape) == ()


def nothing_is_over_its_budget(r: Rig) -> None:
    """Case 2: what was sent fits the window with room for the answer, by the engine's count and by ours."""
    refused = {(e.turn, e.step) for e in r.of(StepRefused)}
    for s in r.of(StepStarted):
        if s.budget is not None and (s.turn, s.step) not in refused:
            assert s.used <= s.budget, s
    window = r.window.tokens
    if window is not None and r.policy.reserve_override is None:
        reserve = r.engine.state.meter.reserve()
        for request in r.chat.turns:
            assert sent_tokens(request.messages, request.tools) <= window - reserve


def compactions_pay(r: Rig) -> None:
    """I3: each frees something; an automatic one ends at 0.8 of the threshold or less."""
    threshold = None
    for event in r.events:
        if isinstance(event, GaugeChanged):
            threshold = event.gauge.threshold
        elif isinstance(event, CompactionFinished):
            entry = event.entry
            assert entry.tokens_after < entry.tokens_before
            if entry.trigger == "threshold" and threshold is not None:
                assert entry.tokens_after <= 0.8 * threshold, (entry.tokens_after, threshold)


def prefixes_hold(r: Rig) -> None:
    """I7: between announced rewrites each request starts with the bytes of the one before."""
    requests = iter(r.chat.turns)
    refused = {(e.turn, e.step) for e in r.of(StepRefused)}
    last: list[Any] = []
    rewritten = True
    for event in r.events:
        if isinstance(event, REWRITES):
            rewritten = True
        elif isinstance(event, StepStarted) and (event.turn, event.step) not in refused:
            request = next(requests, None)
            if request is None:
                return
            body = list(request.messages)[1:]
            if not rewritten and last:
                assert body[: len(last) - 1] == last[:-1]
                old, now = last[-1], body[len(last) - 1]
                grown = old["role"] == now["role"] == "user" and str(now["content"]).startswith(str(old["content"]))
                assert now == old or grown, "only words of a person that were never answered may grow"
            last, rewritten = body, False


async def omissions_are_readable(r: Rig) -> None:
    """I6: every id that a request shows gives back what stood there."""
    shown = {i for q in r.chat.turns for i in _MARKED.findall(json.dumps(list(q.messages)))}
    said = {m.id: m for x in await r.records() if isinstance(x.entry, MessageAdded) for m in (x.entry.message,)}
    for omission_id in sorted(shown):
        text = await r.engine.read_omission(omission_id)
        assert text, omission_id
    state = r.engine.session.conversation
    for (message_id, part), ref in state.omitted.items():
        if part == -1 and marker(ref.omission_id, ref.chars, ref.label) != said[message_id].text:
            assert len(await r.engine.read_omission(ref.omission_id) or "") >= min(ref.chars, 199_000)


def one_compaction_per_content(r: Rig, compactions: Sequence[CompactionCommitted]) -> None:
    """I4: two automatic compactions never follow each other without a message between them."""
    last = -1
    added = 0
    for event in r.events:
        name = type(event).__name__
        if name == "MessageAppended":
            added += 1
        elif isinstance(event, CompactionFinished) and event.entry.trigger != "manual":
            assert added > last, "compacted twice on the same content"
            last = added


async def a_crash_would_lose_nothing(r: Rig) -> None:
    """I5: the log alone, entry after entry, gives the view that stands."""
    records = await r.records()
    assert [x.seq for x in records] == sorted({x.seq for x in records})
    again = fold(x.entry for x in records)
    assert (again.cycle, again.open_turn) == (r.engine.session.conversation.cycle, False)
    assert [*map(redacted_message, again.history())] == [*map(redacted_message, r.history())]


async def figures_add_up(r: Rig) -> None:
    """I8: the rows of /context are the header of the last gauge, and what they do not explain has a row of its own."""
    report = await r.engine.context()
    rows, gauges = report.breakdown, r.of(GaugeChanged)
    assert sum(s.tokens for s in rows.shares) + rows.residual == rows.total == rows.system_part + rows.used
    assert all(s.tokens >= 0 for s in rows.shares)
    assert (report.gauge.used, report.gauge.system_part) == (rows.used, rows.system_part)
    if gauges:
        assert (gauges[-1].gauge.used, gauges[-1].gauge.system_part) == (rows.used, rows.system_part)
    if report.measured is None:
        assert rows.residual == 0


async def all_holds(r: Rig) -> None:
    """Every invariant that can be judged from outside, once the engine has come to rest."""
    await r.idle()
    views_are_valid(r)
    nothing_is_over_its_budget(r)
    compactions_pay(r)
    prefixes_hold(r)
    await omissions_are_readable(r)
    one_compaction_per_content(r, [e.entry for e in r.of(CompactionFinished)])
    await a_crash_would_lose_nothing(r)
    await figures_add_up(r)
    r.check_log()
