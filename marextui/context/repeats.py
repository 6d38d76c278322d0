"""A file that is read again while its content still stands in the view is pointed at, not repeated (70, 71).

"Unchanged" is not "visible": what is compared is the text as it was read just now with the texts of the view as it is.
What was omitted, cut, compacted away or redacted is not equal, so it is shown again.
"""

from __future__ import annotations

from collections.abc import Sequence

from marextui.context.calls import arguments
from marextui.context.messages import Message, ToolCall, canonical_json
from marextui.context.omission import OMIT_OVER

_LEAD = "[Unchanged: "


def shown_already(view: Sequence[Message], call: ToolCall, text: str, *, since_turn: int) -> Message | None:
    """The newest result of the same call in `view` that is `text`, whole; None when it must be shown.

    Only results since `since_turn` count: older ones are about to leave the view. A short text is no matter.
    """
    if len(text) <= OMIT_OVER:
        return None
    asked = _asked(call)
    calls: dict[str, ToolCall] = {}
    found = None
    for message in view:
        if message.role == "assistant":
            calls.update((c.id, c) for c in message.tool_calls)
        elif message.role == "tool" and message.turn >= since_turn and message.content == text:
            before = calls.get(message.tool_call_id)
            if before is not None and not message.is_error and _asked(before) == asked:
                found = message
    return found


def _asked(call: ToolCall) -> str:
    """The call, whatever is left open in it left out."""
    given = {k: v for k, v in sorted(arguments(call).items()) if v not in (None, "", 0)}
    return canonical_json([call.name, given or call.arguments])


def unchanged(what: str, before: Message) -> str:
    """What a model is told instead of the text of `before` once more."""
    return (
        f"{_LEAD}{what} reads exactly as in the result of your earlier call {before.tool_call_id} "
        f"(message {before.id}), which stands above in full; see there.]"
    )


def is_unchanged(text: str) -> bool:
    """Whether a result only points at an earlier one."""
    return text.startswith(_LEAD)
