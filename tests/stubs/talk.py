"""Small conversations for tests of what stands beside the summary: who said what, calls with their results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from marextui.context.messages import Message, ToolCall


@dataclass(frozen=True)
class Call:
    """A call and its result; `result` None for a call that never got one."""

    name: str
    args: dict[str, Any] | str
    result: str | None = "ok"
    is_error: bool = False


def user(text: str) -> tuple[str, str]:
    return "user", text


def assistant(text: str) -> tuple[str, str]:
    return "assistant", text


def bash(command: str, result: str | None = "", *, is_error: bool = False) -> Call:
    return Call("Bash", {"command": command}, result, is_error)


def talk(*said: tuple[str, str] | Call, start: int = 1) -> list[Message]:
    """Messages `m1`, `m2`, … of a conversation; a call makes two of them."""
    messages: list[Message] = []

    def new_id() -> str:
        return f"m{len(messages) + start}"

    for item in said:
        if isinstance(item, Call):
            arguments = item.args if isinstance(item.args, str) else json.dumps(item.args, ensure_ascii=False)
            call = ToolCall(f"c{len(messages) + start}", item.name, arguments)
            messages.append(Message(new_id(), "assistant", "", (call,), origin="model"))
            if item.result is not None:
                messages.append(
                    Message(
                        new_id(),
                        "tool",
                        item.result,
                        tool_call_id=call.id,
                        name=item.name,
                        is_error=item.is_error,
                        origin="tool",
                    )
                )
        elif item[0] == "user":
            messages.append(Message(new_id(), "user", item[1]))
        else:
            messages.append(Message(new_id(), "assistant", item[1], origin="model"))
    return messages
