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
    if shared == len(old) > 4 and old[:-1] == new[: shared - 1]:  # what was sent last may go on
        old_end, new_end = before.messages[-1], after.messages[shared - 4]
        texts = [m["content"] for m in (old_end, new_end)]
        if all(isinstance(t, str) for t in texts) and texts[1].startswith(texts[0]):
            old[-1] = canonical_json({**old_end, "content": texts[1]})
    assert (first_break(before, after, no_turn) == "") == (old[:shared] == new[:shared])


@given(prompts(), st.text(min_size=1))
def test_a_last_message_that_goes_on_breaks_nothing_and_any_other_does(p: Prompt, more: str) -> None:
    """Case 19, I7: two messages in a row are joined; the text that was sent stays the beginning."""
    asked = replace(p, messages=(*p.messages, {"role": "user", "content": "Why?"}), ids=(*p.ids, "u"))
    joined = replace(asked, messages=(*p.messages, {"role": "user", "content": f"Why?{more}"}))
    assert first_break(asked, joined, no_turn) == ""
    answered = replace(asked, messages=(*asked.messages, {"role": "user", "content": "x"}), ids=(*asked.ids, "v"))
    assert first_break(answered, joined, no_turn) != ""


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
