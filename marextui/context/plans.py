"""The plan an agent works by, as structured state: taken from the list it wrote last, never re-summarised (54, 63)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from marextui.context.beside_labels import labels
from marextui.context.calls import arguments
from marextui.context.messages import Message, ToolCall
from marextui.context.quoting import fitting, inert, quoted
from marextui.context.speech import is_request, tame

StepState = Literal["open", "doing", "done"]

_LEAST_BOXES = 3
"""Check boxes that make a list in a text a plan."""
_STEP_CHARS, _REQUEST_CHARS = 200, 100
_PLANS = re.compile(r"todo|plan|task", re.IGNORECASE)
_CHECKBOX = re.compile(
    r"^[^\S\n]*+(?:[-*+]|\d++[.)])?[^\S\n]*+\[([^\]\n]?)\][^\S\n]*+(\S.*)$",  # possessive: linear on runs of blanks
    re.MULTILINE,
)
_CLOSED = frozenset({"completed", "complete", "done", "finished", "cancelled", "canceled", "skipped"})
_DOING = frozenset({"in_progress", "in progress", "in-progress", "doing", "active", "started", "running"})
_WORDING = ("content", "step", "text", "title", "task", "description", "name")

_FINISHED = re.compile(
    r"\b(?:done|finished|completed?|ready|terminée?s?|finie?s?|fait|fertig|erledigt|listo|hecho|terminad[oa]s?)\b",
    re.IGNORECASE,
)
_MORE_TO_COME = re.compile(
    r"\d|\b(?:next|then|still|remain(?:s|ing)?|rest|left|continu(?:e|ing)|going on|later|pending|partly|half|except"
    r"|some|first|second|third|but|reste(?:nt)?|ensuite|encore|suite|sauf|mais|noch|weiter|dann|queda|falta|luego)\b",
    re.IGNORECASE,
)
_GO_ON = re.compile(
    r"\W*(?:(?:ok|okay|yes|please|good|fine|thanks|oui|ja|s[ií]|bien)\W+)*(?:continuez?|go (?:on|ahead)|proceed"
    r"|next|carry on|keep going|resume|poursuis|suite|weiter|mach weiter|sigue|adelante|follow the plan)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Step:
    """An entry of a plan, as it was written."""

    text: str
    state: StepState


@dataclass(frozen=True, slots=True)
class Plan:
    """The latest list, in the message `message_id`, made for `request` (None: no request before it)."""

    message_id: str
    steps: tuple[Step, ...]
    request: Message | None


def steps_of_call(call: ToolCall) -> tuple[Step, ...] | None:
    """The to-do list that a call writes whole, None when it writes none."""
    if not _PLANS.search(call.name):
        return None
    for value in arguments(call).values():
        if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            return tuple(map(_step, value))
        if isinstance(value, str) and (steps := _boxes(value)):
            return steps
    return None


def _step(entry: Mapping[str, Any]) -> Step:
    text = next((str(entry[k]) for k in _WORDING if entry.get(k)), "?")
    status = str(entry.get("status") or entry.get("state") or ("done" if entry.get("done") is True else "")).lower()
    return Step(text, "done" if status in _CLOSED else "doing" if status in _DOING else "open")


def _boxes(text: str) -> tuple[Step, ...]:
    state: Mapping[str, StepState] = {"x": "done", "✓": "done", "✔": "done", "~": "doing", "-": "done", ">": "doing"}
    return tuple(Step(told.strip(), state.get(mark.lower(), "open")) for mark, told in _CHECKBOX.findall(text))


def _written(message: Message) -> tuple[Step, ...] | None:
    """The list that stands in `message`, as a call or as check boxes of its text."""
    if message.role != "assistant" or message.synthetic:
        return None
    for call in reversed(message.tool_calls):
        if (steps := steps_of_call(call)) is not None:
            return steps
    boxes = _boxes(tame(message.text))
    return boxes if len(boxes) >= _LEAST_BOXES else None


def plan_in_force(messages: Sequence[Message], after: Sequence[Message] = ()) -> Plan | None:
    """The latest plan of `messages` with something still open, None when there is none.

    It is over when `after` holds a later one, or when the request it was made for is closed: the answer said that the
    work is finished, and the user then asked for something else (case 63).
    """
    if any(_written(m) is not None for m in after):
        return None
    for place in range(len(messages) - 1, -1, -1):
        steps = _written(messages[place])
        if steps is None:
            continue
        if all(s.state == "done" for s in steps):
            return None
        asked = next((m for m in reversed(messages[:place]) if is_request(m)), None)
        if _closed((*messages[place + 1 :], *after)):
            return None
        return Plan(messages[place].id, steps, asked)
    return None


def plan_finished(messages: Sequence[Message]) -> bool:
    """Whether the list written last has nothing open any more: its task has ended (P14)."""
    steps = next((s for m in reversed(messages) if (s := _written(m)) is not None), None)
    return bool(steps) and all(s.state == "done" for s in steps or ())


def _closed(following: Sequence[Message]) -> bool:
    """Whether what came after a plan says that its request is done, and goes on with another."""
    told: list[Message] = []
    for message in following:
        if is_request(message):
            answer = next((m for m in reversed(told) if m.role == "assistant" and not m.tool_calls), None)
            if answer is not None and _says_finished(answer.text) and not _GO_ON.match(message.text):
                return True
            told = []
        else:
            told.append(message)
    return False


def _says_finished(text: str) -> bool:
    told = tame(text[:2000])
    return bool(_FINISHED.search(told)) and not _MORE_TO_COME.search(told)


def render_plan(plan: Plan | None, *, max_chars: int, language: str = "English") -> str:
    """Its head and its open steps, verbatim, the one in work first; at most `max_chars` characters, "" for no plan."""
    if plan is None:
        return ""
    words = labels(language)
    done = sum(s.state == "done" for s in plan.steps)
    asked = "—" if plan.request is None else quoted(plan.request.text, _REQUEST_CHARS)
    head = f"{words['plan'].format(done=done, all=len(plan.steps), id=plan.message_id)} {asked}"
    return fitting([f"- {head}", *_lines(plan.steps, words)], max_chars, words["more steps"])


def _lines(steps: Sequence[Step], words: Mapping[str, str]) -> Iterator[str]:
    for state in ("doing", "open"):
        for step in steps:
            if step.state == state:
                yield f"- {words[f'step {state}']}: {inert(step.text, _STEP_CHARS)}"


__all__ = ["Plan", "Step", "StepState", "plan_finished", "plan_in_force", "render_plan", "steps_of_call"]
