"""A summary without a model: sections built from the messages themselves (issue section 3; cases 31, 51, 57, 58).

Everything in it is quoted from a user, read from a tool call or result, or copied from an assistant's text, with the
ids of the messages it comes from. Deterministic: the same span gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from marextui.context.beside_labels import labels
from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.facts import sentences
from marextui.context.fusion import fit
from marextui.context.language import detect_language
from marextui.context.messages import Message
from marextui.context.orders import order_history
from marextui.context.plans import plan_in_force
from marextui.context.quoting import code, inert, quoted
from marextui.context.redaction import redact
from marextui.context.requests import closing_answer, lead_of, open_request, request_spans
from marextui.context.section_titles import plain
from marextui.context.sections import SECTIONS, place_for, rule_of
from marextui.context.speech import own_words, tame
from marextui.context.work_records import FileTouch, Run
from marextui.context.worklog import work_log

_ENGLISH = {
    "modified": "modified",
    "times": "{n} times",
    "read only": "Read, not changed",
    "to do": "To do",
    "last answer": "Last answer",
}
_FRENCH = {
    "times": "{n} fois",
    "read only": "Lus, non modifiés",
    "to do": "À faire",
    "last answer": "Dernière réponse",
}
_FIRST_REQUEST, _LATER_REQUEST, _OPEN_REQUEST = 600, 200, 1000
_CONCLUSION, _OUTCOME, _COMMAND, _DECISION, _ERROR, _SAID = 500, 120, 140, 240, 200, 80
_COMMANDS, _CONSTRAINTS, _DECISIONS, _READ_FILES = 6, 15, 12, 15


class _Reader:
    """One span, read once."""

    def __init__(self, span: Sequence[Message], cycle: int) -> None:
        self.told = [m for m in span if m.role != "system" and not m.synthetic]
        self.cycle = cycle
        self.log = work_log(self.told)
        self.requests = request_spans(self.told)
        language = detect_language("\n".join(own_words(m) for m, _ in self.requests))
        self.words: Mapping[str, str] = {**labels(language), **(_FRENCH if language == "French" else _ENGLISH)}

    def item(self, text: str, *sources: str, key: str = "") -> SummaryItem:
        return SummaryItem(redact(text), key, self.cycle, self.cycle, tuple(s for s in dict.fromkeys(sources) if s))

    def intents(self) -> list[SummaryItem]:
        """Each request, quoted, with what answered it."""
        items: list[SummaryItem] = []
        for message, following in self.requests:
            text = quoted(_asked(message), _LATER_REQUEST if items else _FIRST_REQUEST)
            answer = closing_answer(following)
            if answer is not None:
                text += f" — {self.words['answered']}: {inert(lead_of(answer.text), _OUTCOME)}"
            items.append(self.item(text, message.id, answer.id if answer is not None else ""))
        return items

    def files(self) -> list[SummaryItem]:
        """Changed files with what became of each change, then the ones that were only read."""
        items, read = [], []
        for record in self.log.files:
            path = inert(record.path.removeprefix("./"))
            changes = [t for t in record.touches if t.kind != "read"]
            if changes:
                items.append(self.item(f"{path}: {self._story(changes)}", *(t.message_id for t in changes), key=path))
            else:
                read.append(path)
        if read:
            more = f" (+{len(read) - _READ_FILES})" if len(read) > _READ_FILES else ""
            items.append(self.item(f"{self.words['read only']}: {', '.join(read[-_READ_FILES:])}{more}"))
        return items

    def _story(self, changes: Sequence[FileTouch]) -> str:
        told = [self._told(t) for t in changes]
        counts = {text: told.count(text) for text in dict.fromkeys(told)}
        return ", ".join(t + (f" {self.words['times'].format(n=n)}" if n > 1 else "") for t, n in counts.items())

    def _told(self, touch: FileTouch) -> str:
        """A change as it ended: only what was done is said to be (case 58)."""
        kind = self.words[touch.kind]
        if touch.status == "done":
            return kind
        if touch.status == "failed":
            return f"{kind} {self.words['failed command']}" if touch.in_command else self.words["change failed"]
        return f"{kind}: {self.words[touch.status]}"

    def demands(self, intents: Sequence[SummaryItem]) -> list[SummaryItem]:
        """What the user demanded, quoted, unless it stands in `intents` or was taken back."""
        shown = "\n".join(i.text for i in intents)
        found: dict[str, SummaryItem] = {}
        for order in order_history(self.told):
            lasting = order.kind in ("constraint", "toggle") and not order.superseded_by
            if lasting and " ".join(order.text.split()) not in shown:
                found[plain(order.text)] = self.item(quoted(order.text, _DECISION), order.message_id)
        return list(found.values())[-_CONSTRAINTS:]

    def decisions(self, demands: Sequence[SummaryItem]) -> list[SummaryItem]:
        """What the assistant chose, beside the user's `demands`."""
        known = {plain(i.text) for i in demands}
        found: dict[str, SummaryItem] = {}
        for message in self.told:
            for sentence in sentences(tame(message.text)) if message.role == "assistant" else ():
                if 15 <= len(sentence) <= 400 and _DECIDED.search(sentence) and plain(sentence) not in known:
                    found.setdefault(plain(sentence), self.item(inert(sentence, _DECISION), message.id))
        return list(found.values())[-max(3, _DECISIONS - len(demands)) :]

    def state(self) -> list[SummaryItem]:
        """The last commands and how they ended, the last test result, the last words of the assistant."""
        runs: dict[str, Run] = {}
        for run in self.log.runs:
            if not run.lookup:
                runs.pop(run.text, None)
                runs[run.text] = run
        shown = list(runs.values())[-_COMMANDS:]
        items = [self.item(f"{code(r.text, _COMMAND)} → {self._outcome(r)}", r.message_id, r.result_id) for r in shown]
        tests = self.log.last_tests
        if tests is not None and tests.tests is not None and tests not in shown:
            items.append(
                self.item(f"{self.words['tests']}: {inert(tests.tests.text)}", tests.message_id, tests.result_id)
            )
        last = next((m for m in reversed(self.told) if m.role == "assistant" and m.text.strip()), None)
        if last is not None:
            items.append(self.item(f"{self.words['last answer']}: {inert(last.text, _CONCLUSION)}", last.id))
        return items

    def _outcome(self, run: Run) -> str:
        if run.status not in ("done", "failed"):
            return self.words[run.status]
        parts = [self.words["exit"].format(code=run.exit_code)] if run.exit_code else []
        if run.status == "failed" and not parts:
            parts.append(self.words["failed"])
        if run.tests is not None:
            parts.append(inert(run.tests.text))
        if run.error:
            parts.append(inert(run.error, _ERROR))
        if parts:
            return ", ".join(parts)
        return f"{self.words['ok']}: {inert(run.said, _SAID)}" if run.said else self.words["ok"]

    def next_steps(self) -> list[SummaryItem]:
        """The request that is still open, then what is open of the plan."""
        items = []
        request = open_request(self.told)
        if request is not None:
            said = quoted(_asked(request), _OPEN_REQUEST)
            items.append(self.item(f"{self.words['open request']}: {said}", request.id))
        if (plan := plan_in_force(self.told)) is not None:
            steps = (step.text for step in plan.steps if step.state != "done")
            items += [self.item(f"{self.words['to do']}: {inert(t, _LATER_REQUEST)}", plan.message_id) for t in steps]
        return items


def _asked(request: Message) -> str:
    """What a user asked for, all of it: a task may stand in a tagged block or in code."""
    return request.text.strip() or "(image)"


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
    Steps: the request still open, and open to-do entries. What a custom list of `sections` has no place for
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
    answered = bool(reader.requests) or closing_answer(reader.told) is not None  # one from before this span, perhaps
    nothing_open = answered and not built["next steps"]
    summary = Summary(
        tuple(
            SummarySection(title, tuple(items), settled=nothing_open and rule_of(title) == "steps")
            for title, items in zip(sections, placed, strict=True)
        )
    )
    return summary if max_chars is None else fit(summary, max_chars)[0]
