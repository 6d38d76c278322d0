"""A summary without a model: sections built from the messages themselves (issue section 3; cases 31, 51, 57, 58).

Everything in it is quoted from a user, read from a tool call or result, or copied from an assistant's text, with the
ids of the messages it comes from. Deterministic: the same span gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from marextui.context.calls import TouchKind, arguments, call_command, call_files, command_files, fenced_commands
from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.facts import error_lines, sentences, test_counts, user_constraints
from marextui.context.fusion import fit
from marextui.context.language import detect_language
from marextui.context.messages import Message, ToolCall
from marextui.context.plans import plan_in_force
from marextui.context.redaction import redact
from marextui.context.section_titles import plain
from marextui.context.sections import SECTIONS, place_for, rule_of

_LABELS = {
    "created": "created",
    "modified": "modified",
    "deleted": "deleted",
    "times": "{n} times",
    "failed_edit": "change failed",
    "read": "Read, not changed",
    "answered": "answered",
    "open": "Open request",
    "todo": "To do",
    "failed": "failed",
    "tests": "Last test result",
    "no_result": "no result yet",
    "last": "Last answer",
}
_FRENCH = {
    "created": "créé",
    "modified": "modifié",
    "deleted": "supprimé",
    "times": "{n} fois",
    "failed_edit": "modification échouée",
    "read": "Lus, non modifiés",
    "answered": "répondu",
    "open": "Demande en cours",
    "todo": "À faire",
    "failed": "échec",
    "tests": "Dernier résultat des tests",
    "no_result": "pas encore de résultat",
    "last": "Dernière réponse",
}
_FIRST_REQUEST, _LATER_REQUEST, _OPEN_REQUEST = 600, 200, 1000
_CONCLUSION, _OUTCOME, _COMMAND, _DECISION = 500, 120, 140, 240
_COMMANDS, _CONSTRAINTS, _DECISIONS, _READ_FILES = 6, 15, 12, 15


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _lead(text: str, limit: int) -> str:
    """The first whole sentences of `text` within `limit`, at least one (shortened if it must be)."""
    found = sentences(text) or [text]
    lead = found[0]
    for sentence in found[1:]:
        if len(lead) + len(sentence) + 1 > limit:
            break
        lead += " " + sentence
    return _short(lead, limit)


_TOOL_ECHO = re.compile(
    r"\s*<(?:returncode|output|local-command|command-name|system-reminder|tool_result)\b|\s*diff --git "
)
_IMAGE_NOTE = re.compile(r"\s*\[Image[^\]]*\]\s*")


def _is_request(message: Message) -> bool:
    text = message.text
    return (
        message.role == "user"
        and not message.synthetic
        and bool(text.strip())
        and not _TOOL_ECHO.match(text)
        and not _IMAGE_NOTE.fullmatch(text)
    )


def _is_final(message: Message) -> bool:
    return (
        message.role == "assistant"
        and not message.tool_calls
        and bool(message.text.strip())
        and not fenced_commands(message.text)
    )


_TAG_LINE = re.compile(r"\s*</?\w+>")
_EXIT = re.compile(
    r"(?:exit(?:ed)?[ _-]?(?:with )?(?:code|status)?|return ?code|status)\W{0,4}(-?\d{1,3})\b", re.IGNORECASE
)
_FAILED = re.compile(
    r"\s*(?:error\b|failed\b|<error>|<tool_use_error>|no match|no replacement was performed|refused|denied"
    r"|\[your proposed edit has introduced)"
    r"|.{0,200}(?:not (?:been )?(?:applied|changed|modified)|string to replace not found)",
    re.IGNORECASE | re.DOTALL,
)


def _exit_code(result: Message) -> int | None:
    text = result.text
    for window in (text[:200], text[-200:]):
        if found := _EXIT.search(window):
            return int(found.group(1))
    return None


def _failed(result: Message | None) -> bool:
    return result is not None and (result.is_error or bool(_FAILED.match(result.text[:400])))


class _Reader:
    """One span, read once."""

    def __init__(self, span: Sequence[Message], cycle: int) -> None:
        self.told = [m for m in span if m.role != "system" and not m.synthetic]
        self.cycle = cycle
        self.results = {m.tool_call_id: m for m in self.told if m.role == "tool"}
        self.requests = [n for n, m in enumerate(self.told) if _is_request(m)]
        language = detect_language("\n".join(self.told[n].text for n in self.requests))
        self.labels = _FRENCH if language == "French" else _LABELS

    def item(self, text: str, *sources: str, key: str = "") -> SummaryItem:
        return SummaryItem(redact(text), key, self.cycle, self.cycle, tuple(s for s in dict.fromkeys(sources) if s))

    def answer_to(self, request: int) -> Message | None:
        """The final text that answered the request at this place, None while it is open."""
        following = [n for n in self.requests if n > request]
        turn = self.told[request + 1 : following[0] if following else len(self.told)]
        return (
            next((m for m in reversed(turn) if m.role == "assistant"), None) if turn and _is_final(turn[-1]) else None
        )

    def intents(self) -> list[SummaryItem]:
        items: list[SummaryItem] = []
        for n in self.requests:
            message, answer = self.told[n], self.answer_to(n)
            text = f"“{_short(message.text, _LATER_REQUEST if items else _FIRST_REQUEST)}”"
            if answer is not None:
                text += f" — {self.labels['answered']}: {_lead(answer.text, _OUTCOME)}"
            items.append(self.item(text, message.id, answer.id if answer else ""))
        return items

    def files(self) -> list[SummaryItem]:
        touched: dict[str, list[tuple[TouchKind, bool, str]]] = {}
        last_opened = ""
        for message in self.told:
            if message.role != "assistant":
                continue
            for call in message.tool_calls or (ToolCall("", "bash", ""),):
                files = list(dict.fromkeys(self._call_files(message, call, last_opened)))
                failed = _failed(self.results.get(call.id)) and not call_command(call)
                for path, kind in files:
                    touched.setdefault(path.removeprefix("./"), []).append((kind, failed, message.id))
                    last_opened = path
        items = []
        for path, events in touched.items():
            if any(kind != "read" for kind, _, _ in events):
                items.append(
                    self.item(f"{path}: {self._story(events)}", *(i for k, _, i in events if k != "read"), key=path)
                )
        read = [p for p, events in touched.items() if all(kind == "read" for kind, _, _ in events)]
        if read:
            more = f" (+{len(read) - _READ_FILES})" if len(read) > _READ_FILES else ""
            items.append(self.item(f"{self.labels['read']}: {', '.join(read[-_READ_FILES:])}{more}"))
        return items

    def _call_files(self, message: Message, call: ToolCall, last_opened: str) -> Iterable[tuple[str, TouchKind]]:
        if not message.tool_calls:
            return [t for command in fenced_commands(message.text) for t in command_files(command)]
        files = list(call_files(call))
        edits_open_file = re.fullmatch(r"edit|insert|append|edit_file_by_\w+", call.name.lower()) and arguments(
            call
        ).keys() & {
            "search",
            "replace",
            "text",
            "new_content",
            "content",
        }  # editors with one open file do not repeat its name
        if not files and last_opened and edits_open_file:
            return [(last_opened, "modified")]
        return files

    def _story(self, events: Sequence[tuple[TouchKind, bool, str]]) -> str:
        done = [kind for kind, failed, _ in events if kind != "read" and not failed]
        failures = sum(1 for kind, failed, _ in events if kind != "read" and failed)
        parts = []
        for kind in dict.fromkeys(done):
            times = done.count(kind)
            parts.append(self.labels[kind] + (f" {self.labels['times'].format(n=times)}" if times > 1 else ""))
        if failures:
            again = f" {self.labels['times'].format(n=failures)}" if failures > 1 else ""
            parts.append(self.labels["failed_edit"] + again)
        return ", ".join(parts)

    def demands(self, intents: Sequence[SummaryItem]) -> list[SummaryItem]:
        """What the user demanded, quoted, unless it stands in `intents`."""
        shown = "\n".join(i.text for i in intents)
        found: dict[str, SummaryItem] = {}
        for message in self.told:
            for constraint in user_constraints(message)[:_CONSTRAINTS] if _is_request(message) else ():
                if " ".join(constraint.split()) not in shown:
                    found[plain(constraint)] = self.item(f"“{_short(constraint, _DECISION)}”", message.id)
        return list(found.values())

    def decisions(self, demands: Sequence[SummaryItem]) -> list[SummaryItem]:
        """What the assistant chose, beside the user's `demands`."""
        quoted = {plain(i.text) for i in demands}
        found: dict[str, SummaryItem] = {}
        for message in self.told:
            for sentence in sentences(message.text) if message.role == "assistant" else ():
                if _DECIDED.search(sentence) and 15 <= len(sentence) <= 400 and plain(sentence) not in quoted:
                    found.setdefault(plain(sentence), self.item(_short(sentence, _DECISION), message.id))
        return list(found.values())[-max(3, _DECISIONS - len(demands)) :]

    def state(self) -> list[SummaryItem]:
        runs: dict[str, SummaryItem] = {}
        tests: SummaryItem | None = None
        for n, message in enumerate(self.told):
            if message.role == "tool" and (counts := test_counts(message.text)):
                tests = self.item(f"{self.labels['tests']}: {counts}", message.id)
            for command, result in self._runs(n, message):
                text = f"`{_short(command, _COMMAND)}` → {self._outcome(result)}"
                runs.pop(command, None)
                runs[command] = self.item(text, message.id, result.id if result else "")
        items = list(runs.values())[-_COMMANDS:]
        if tests and not any(tests.text.split(": ", 1)[1] in i.text for i in items):
            items.append(tests)
        last = next((m for m in reversed(self.told) if m.role == "assistant" and m.text.strip()), None)
        if last is not None:
            items.append(self.item(f"{self.labels['last']}: {_short(last.text, _CONCLUSION)}", last.id))
        return items

    def _runs(self, n: int, message: Message) -> list[tuple[str, Message | None]]:
        if message.role != "assistant":
            return []
        if message.tool_calls:
            return [(c, self.results.get(call.id)) for call in message.tool_calls if (c := call_command(call))]
        following = self.told[n + 1] if n + 1 < len(self.told) else None
        echo = following if following is not None and following.role == "user" and not _is_request(following) else None
        return [(c, echo) for c in fenced_commands(message.text)]

    def _outcome(self, result: Message | None) -> str:
        if result is None:
            return self.labels["no_result"]
        code, errors, counts = _exit_code(result), error_lines(result.text), test_counts(result.text)
        bad = result.is_error or code not in (None, 0) or _failed(result)
        parts = [f"exit {code}"] if code else [self.labels["failed"]] if bad else []
        if counts:
            parts.append(counts)
        if errors and (bad or not counts):
            parts.append(_short(errors[-1], 200))
        if not parts:
            lines = [
                line
                for line in result.text.splitlines()
                if line.strip() and not _EXIT.search(line) and not _TAG_LINE.match(line)
            ]
            parts.append("ok" + (f": {_short(lines[-1], 80)}" if lines else ""))
        return ", ".join(parts)

    def next_steps(self) -> list[SummaryItem]:
        items = []
        if self.requests and self.answer_to(self.requests[-1]) is None:
            message = self.told[self.requests[-1]]
            items.append(self.item(f"{self.labels['open']}: “{_short(message.text, _OPEN_REQUEST)}”", message.id))
        if (plan := plan_in_force(self.told)) is not None:
            steps = (step.text for step in plan.steps if step.state != "done")
            items.extend(
                self.item(f"{self.labels['todo']}: {_short(t, _LATER_REQUEST)}", plan.message_id) for t in steps
            )
        return items


_DECIDED = re.compile(
    r"\b(?:I['’]ll (?:use|go with|keep|store|name|put)|I will use|I['’]m going (?:to use|with)"
    r"|let['’]?s (?:use|go with)"
    r"|we['’]ll (?:use|go with)|(?:I|we)(?:['’]ve| have)? (?:decided|chose|chosen|opted|agreed|settled)|decision:"
    r"|decided to|going with|instead of using|the (?:fix|solution|root cause|cause|bug|problem|issue) (?:is|was)\b"
    r"|j['’]ai (?:choisi|décidé|opté)|nous avons (?:choisi|décidé)|on (?:utilise|garde|va utiliser)"
    r"|j['’]utilise(?:rai)?|décision :|la cause est)",
    re.IGNORECASE,
)


def offline_summary(
    span: Sequence[Message], *, cycle: int, sections: Sequence[str] = SECTIONS, max_chars: int | None = 4800
) -> Summary:
    """Summary of `span` whose rendering has at most `max_chars` characters (None: whole); items carry the ids of their
    messages.

    Session Intent: the user's requests, quoted, with what answered them. Files Modified: from tool calls, whether the
    change succeeded, read files apart. Decisions Made: constraints quoted from the user, choices stated by the
    assistant. Current State: last commands with exit code, last error line and test counts; the last answer. Next
    Steps: the request still open, verbatim, and open to-do entries. What a custom list of `sections` has no place for
    goes to the one that comes nearest (`sections.place_for`). Secrets are redacted.
    """
    reader = _Reader(span, cycle)
    intents = reader.intents()
    demands = reader.demands(intents)
    built = {
        "session intent": intents,
        "files modified": reader.files(),
        "requirements": demands,
        "decisions made": reader.decisions(demands),
        "current state": reader.state(),
        "next steps": reader.next_steps(),
    }
    placed: list[list[SummaryItem]] = [[] for _ in sections]
    for kind, items in built.items():
        placed[place_for(kind, sections)].extend(items)
    nothing_open = bool(reader.requests) and not built["next steps"]
    summary = Summary(
        tuple(
            SummarySection(title, tuple(items), settled=nothing_open and rule_of(title) == "steps")
            for title, items in zip(sections, placed, strict=True)
        )
    )
    return summary if max_chars is None else fit(summary, max_chars)[0]
