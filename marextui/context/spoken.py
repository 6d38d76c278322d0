"""The language the user writes, from their own words (I11)."""

from __future__ import annotations

from collections.abc import Sequence

from marextui.context.entries import Summary
from marextui.context.language import detect_language
from marextui.context.messages import Message
from marextui.context.speech import own_words


def users_language(span: Sequence[Message], earlier: Summary | None) -> str:
    """An English name such as "French"; "" when there is too little to tell.

    From what the user said in `span`; when that is nothing (a tool loop), from the first section noted earlier.
    """
    said = "\n".join(own_words(m) for m in span if m.role == "user")
    noted = next((s.items for s in earlier.sections if s.items), ()) if earlier is not None else ()
    return detect_language(said) or detect_language("\n".join(i.text for i in noted))
