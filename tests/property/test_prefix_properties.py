"""What broke the prefix, for any two requests: nothing is blamed while it is whole, and always the first difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from marextui.context.messages import canonical_json, to_wire
from marextui.context.prefix import FORGOT_BELOW, SERVER_FORGOT, Given, Prompt, first_break, why_computed
from tests.property.histories import any_messages

NAMES = st.lists(st.sampled_from(["Bash", "Edit", "Look", "Read"]), unique=True, max_size=4)


@st.composite
def prompts(draw: st.DrawFn) -> Prompt:
    view = draw(any_messages())
    return Prompt(
        model=draw(st.sampled_from(["m", "n"])),
        conversation="c",
        messages=({"role": "system", "content": draw(st.sampled_from(["Base.", "Other."]))}, *map(to_wire, view)),
        ids=tuple(m.id for m in view),
        tools=tuple({"type": "function", "function": {"name": n}} for n in draw(NAMES)),
        rendering=draw(st.sampled_from([{}, {"reasoning_effort": "low"}])),
    )


def pieces(p: Prompt) -> list[str]:
    """All that is rendered, in its order, as bytes: what the function has to agree with."""
    head: list[Any] = [p.model, p.rendering, list(p.tools)]
    return [canonical_json(x) for x in (*head, *p.messages)]


def no_turn(message_id: str) -> int:
    return 0


@given(prompts(), prompts())
def test_something_is_blamed_exactly_when_a_byte_differs(before: Prompt, after: Prompt) -> None:
    """I7: whichever of them is longer."""
    old, new = pieces(before), pieces(after)
    shared = min(len(old), len(new))
    assert (first_break(before, after, no_turn) == "") == (old[:shared] == new[:shared])


@given(prompts(), st.integers(0, 20), st.integers(0, 2_000), st.sampled_from(["", "a check was sent in between"]))
def test_an_extension_is_never_blamed_on_what_we_sent(p: Prompt, more: int, cached: int, since: str) -> None:
    """Only the server can have lost it, and only when its count says so."""
    grown = replace(
        p,
        messages=(*p.messages, *({"role": "user", "content": str(n)} for n in range(more))),
        ids=(*p.ids, *(f"new-{n}" for n in range(more))),
    )
    why = why_computed(Given(p, 1_000, since), grown, cached, no_turn)
    assert why == ("" if cached >= FORGOT_BELOW * 1_000 else since or SERVER_FORGOT)


def changed(p: Prompt, place: int) -> Prompt:
    """`p` with the piece at `place` sent otherwise (0 model, 1 rendering, 2 tools, then the messages)."""
    if place == 0:
        return replace(p, model=p.model + "'")
    if place == 1:
        return replace(p, rendering={"reasoning_effort": "high"})
    if place == 2:
        return replace(p, tools=(*p.tools, {"type": "function", "function": {"name": "New"}}))
    messages = [*p.messages]
    messages[place - 3] = {**messages[place - 3], "content": "changed"}
    return replace(p, messages=tuple(messages))


@given(prompts(), st.data())
def test_what_differs_behind_the_first_difference_changes_no_word(p: Prompt, data: st.DataObject) -> None:
    """The first difference is what made the server compute."""
    first = data.draw(st.integers(0, len(p.messages) + 1))
    later = data.draw(st.integers(first + 1, len(p.messages) + 2))
    once = changed(p, first)
    assert first_break(p, changed(once, later), no_turn) == first_break(p, once, no_turn)
    assert first_break(p, once, no_turn) != ""
