"""Fragments of tool calls put together, whatever the server does with index, id and arguments (section C)."""

from __future__ import annotations

from typing import Any

import pytest

from marextui.models.reply import Reply
from marextui.models.types import Chunk, Finished, PromptProgress, ReasoningChunk, TextChunk, ToolCallChunk, Usage


def run(*chunks: dict[str, Any], taken: tuple[str, ...] = ()) -> list[Chunk]:
    reply = Reply(taken)
    return [c for chunk in chunks for c in reply.feed(chunk)] + list(reply.close())


def deltas(*values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"choices": [{"index": 0, "delta": v}]} for v in values]


def calls(chunks: list[Chunk]) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of each call, put together as the engine does; id and name may come once only."""
    out: dict[int, list[str]] = {}
    for c in chunks:
        if isinstance(c, ToolCallChunk):
            call = out.setdefault(c.index, ["", "", ""])
            assert not (c.id and call[0]), "an id comes once"
            assert not (c.name and call[1]), "a name comes once"
            call[0], call[1], call[2] = call[0] or c.id, call[1] or c.name, call[2] + c.arguments
    assert list(out) == list(range(len(out))), "indices are dense and in order of appearance"
    return [(a, b, c) for a, b, c in out.values()]


def fn(name: str | None = None, arguments: Any = None, **rest: Any) -> dict[str, Any]:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return {**rest, "function": function}


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [
                [fn("Read", "", index=0, id="a"), fn("Ls", "", index=1, id="b")],
                [fn(arguments='{"x"', index=1), fn(arguments='{"p"', index=0)],
                [fn(arguments=":1}", index=0), fn(arguments=":2}", index=1)],
            ],
            [("a", "Read", '{"p":1}'), ("b", "Ls", '{"x":2}')],
            id="interleaved-by-index",
        ),
        pytest.param(
            [[fn("Read", '{"p":1}', id="a"), fn("Ls", "{}", id="b")]],
            [("a", "Read", '{"p":1}'), ("b", "Ls", "{}")],
            id="whole-calls-without-index",
        ),
        pytest.param(
            [[fn("Read", '{"p"', id="a")], [fn(arguments=":1}")], [fn("Ls", "{}", id="b")]],
            [("a", "Read", '{"p":1}'), ("b", "Ls", "{}")],
            id="missing-index-goes-on-with-the-last",
        ),
        pytest.param(
            [[fn("Read", '{"p":1}', index=0, id="a")], [fn("Ls", "{}", index=0, id="b")]],
            [("a", "Read", '{"p":1}'), ("b", "Ls", "{}")],
            id="every-whole-call-numbered-0",
        ),
        pytest.param(
            [[fn("Read", {"p": "é"}, index=0), fn("Ls", {}, index=1)]],
            [("call_1", "Read", '{"p":"é"}'), ("call_2", "Ls", "{}")],
            id="arguments-as-objects-and-no-ids",
        ),
        pytest.param(
            [[fn("Read", None, index=3, id="a")], [fn("Read", '{"p":1}', index=3, id="a")]],
            [("a", "Read", '{"p":1}')],
            id="name-and-id-repeated-in-every-fragment",
        ),
        pytest.param(
            [[fn("Read", "{}")], [fn("Read", "{}")]],
            [("call_1", "Read", "{}"), ("call_2", "Read", "{}")],
            id="nothing-but-names",
        ),
        pytest.param([[{}, "x", None, fn()]], [], id="empty-fragments-are-no-calls"),
        pytest.param(
            [[{"index": "1.0", "id": "a", "name": "Ls", "arguments": "{}"}]],
            [("a", "Ls", "{}")],
            id="flat-and-lenient-index",
        ),
    ],
)
def test_tool_call_fragments(fragments: list[list[Any]], expected: list[tuple[str, str, str]]) -> None:
    assert calls(run(*deltas(*({"tool_calls": f} for f in fragments)))) == expected


def test_generated_ids_never_repeat_one_of_the_conversation() -> None:
    got = calls(
        run(*deltas({"tool_calls": [fn("A", "{}", index=0), fn("B", "{}", index=1)]}), taken=("call_1", "call_3"))
    )
    assert [c[0] for c in got] == ["call_2", "call_4"]


def test_text_reasoning_and_think_tags() -> None:
    got = run(
        *deltas(
            {"role": "assistant", "content": None},
            {"reasoning_content": "hm", "reasoning": "hm"},
            {"reasoning": "so"},
            {"content": "<think>raw</think>"},
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]},
                    {"type": "text", "text": "x"},
                ]
            },
            {"refusal": "No."},
        )
    )
    assert got == [
        ReasoningChunk("hm"),
        ReasoningChunk("so"),
        TextChunk("<think>raw</think>"),
        ReasoningChunk("t"),
        TextChunk("x"),
        TextChunk("No."),
        Finished("", None),
    ]


def test_end_of_a_stream_with_usage_timings_and_progress() -> None:
    got = run(
        {"choices": [], "prompt_progress": {"total": 900, "cache": 100, "processed": 512.0, "time_ms": 3}},
        {"choices": [], "prompt_progress": {"total": 10, "processed": 12}},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {
            "choices": [],
            "usage": {"prompt_tokens": 900, "completion_tokens": 4},
            "timings": {"cache_n": 100, "predicted_per_second": 20.5},
        },
        {"choices": [], "usage": None},
    )
    assert got == [
        PromptProgress(900, 100, 512, 0.003),
        PromptProgress(10, 0, 10),
        Finished("stop", Usage(900, 4, 100), {"cache_n": 100.0, "predicted_per_second": 20.5}),
    ]


def test_a_whole_message_counts_only_when_no_deltas_came() -> None:
    whole = {
        "choices": [
            {"index": 0, "message": {"content": "Hi", "tool_calls": [fn("Ls", "{}", id="a")]}, "finish_reason": "stop"}
        ]
    }
    assert run(whole)[0] == TextChunk("Hi")
    assert calls(run(whole)) == [("a", "Ls", "{}")]
    assert [c for c in run(*deltas({"content": "Hi"}), whole) if isinstance(c, TextChunk)] == [TextChunk("Hi")]


def test_other_choices_and_odd_shapes_are_ignored() -> None:
    got = run(
        {"choices": [{"index": 1, "delta": {"content": "second"}}, None, "x"]},
        {"choices": "none"},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": "no", "reasoning": ["r"]}}]},
        {"choices": [], "usage": {"prompt_tokens": 3}, "x_groq": {"usage": {"prompt_tokens": 9}}},
    )
    assert got == [Finished("", Usage(3))]
