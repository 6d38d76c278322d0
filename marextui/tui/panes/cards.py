"""The blocks of the conversation. All but answers are one widget each, whatever they hold, expanded or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.content import Content
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Static

from marextui.context.phrases import sentence
from marextui.tui import formats
from marextui.tui.glyphs import glyphs_of, said
from marextui.tui.items import (
    AssistantItem,
    CompactionItem,
    Item,
    NoticeItem,
    ReductionItem,
    ToolItem,
    TurnItem,
    UserItem,
    ordered_sections,
    told,
)
from marextui.tui.text import line, plain
from marextui.tui.windowing import is_long

if TYPE_CHECKING:
    from marextui.context.entries import CompactionChecked

HEAD, TAIL = 10, 4
"""Lines shown of a long tool output when its card is open."""
LONG_HEAD, LONG_TAIL = 30, 10
"""Lines shown of a text too long for live Markdown."""
LINE_CHARS = 500
"""Characters shown of one line of a shortened text."""

KeyLabel = Callable[[str], str]
"""Action id to the key people press for it now."""

DIM = "$foreground-muted"


def shorten(text: str, head: int, tail: int) -> tuple[list[str], int, list[str]]:
    """(first lines, number of lines left out, last lines); nothing is left out to save fewer than two lines."""
    lines = text.splitlines()
    if len(lines) <= head + tail + 1:
        return lines, 0, []
    return lines[:head], len(lines) - head - tail, lines[-tail:]


def hidden(item: Item) -> int:
    """Lines (at least 1) that stay hidden even when the block is expanded; 0 when all of it can be seen."""
    if isinstance(item, ToolItem):
        body = item.diff or str(item.output)
        out = shorten(body, HEAD, TAIL)[1]
        if out or any(len(text) > LINE_CHARS for text in body.splitlines()):
            return max(out, 1)
        return 1 if item.omitted or (item.omission_id and item.chars > len(str(item.output))) else 0
    if isinstance(item, CompactionItem):
        return 1 if item.entry is not None else 0
    if isinstance(item, ReductionItem):
        return len(item.rows)
    if is_long(item):
        return max(shorten(item.source, LONG_HEAD, LONG_TAIL)[1], 1)
    return 0


def opens_at_once(item: Item) -> bool:
    """Whether Enter opens the block without expanding it first: Space still expands it."""
    return isinstance(item, CompactionItem)


def expandable(item: Item) -> bool:
    """Whether folding or expanding the block changes anything: no hint where nothing is hidden (case 52)."""
    match item:
        case ToolItem():
            return bool(item.diff or item.output or item.arguments.strip() not in ("", "{}"))
        case AssistantItem():
            return bool(item.reasoning)
        case CompactionItem():
            return bool(item.entry and ordered_sections(item.entry.summary))
        case ReductionItem():
            return bool(item.rows)
    return False


def fold_glyph(app: App[Any], expanded: bool) -> str:
    """The sign before a block that can be expanded or folded."""
    glyphs = glyphs_of(app)
    return glyphs.unfolded if expanded else glyphs.folded


class Block(Widget):
    """What the conversation mounts for an item. `version` is the item's when it was last drawn."""

    item: Item
    expanded: bool
    version: int = -1

    @property
    def outgrown(self) -> bool:
        """The item became something that another kind of block has to show."""
        return False

    async def refresh_item(self) -> None:
        """Draw what changed in the item."""
        self.redraw()

    def redraw(self) -> None:
        raise NotImplementedError


class Card(Static, Block):
    """A block drawn as one piece of text."""

    def __init__(self, item: Item, *, expanded: bool, key_label: KeyLabel) -> None:
        super().__init__(markup=False)
        self.item = item
        self.expanded = expanded
        self.key_label = key_label

    def on_mount(self) -> None:
        self.redraw()

    def redraw(self) -> None:
        self.version = self.item.version
        self.update(self.build())

    def build(self) -> Content:
        return Content("")

    def fold_mark(self) -> str:
        if not expandable(self.item):
            return "  "
        return f"{fold_glyph(self.app, self.expanded)} "

    def cut_lines(self, text: str, head: int, tail: int, *, diff: bool = False) -> list[Content]:
        """Lines of `text`, its middle left out when long, with how many and the key that opens it in full."""
        first, out, last = shorten(text, head, tail)
        rows = [_body_line(row, diff) for row in first]
        if out:
            key = self.key_label("conversation.open")
            rows.append(Content.styled(f"  {formats.tokens(out)} more lines, {key} to open", DIM))
            rows += [_body_line(row, diff) for row in last]
        return rows


def _body_line(text: str, diff: bool) -> Content:
    shown = said(plain(text[:LINE_CHARS]))
    if diff and text[:1] == "+":
        return shown.stylize("$text-success")
    if diff and text[:1] == "-":
        return shown.stylize("$text-error")
    return shown


class UserCard(Card):
    item: UserItem

    def build(self) -> Content:
        if is_long(self.item):
            return Content("\n").join(self.cut_lines(self.item.text, LONG_HEAD, LONG_TAIL))
        return said(plain(self.item.text))


class ToolCard(Card):
    """One line until expanded; then head and tail of the output (or the change it made)."""

    item: ToolItem

    def build(self) -> Content:
        item = self.item
        self.set_class(item.state in ("error", "stopped"), "-failed")
        dot = glyphs_of(self.app).dot
        facts = [_STATES[item.state]] if item.state in _STATES else []
        if item.summary:
            facts.append(item.summary)
        elif item.state == "done" and item.chars:
            facts.append(f"{formats.chars(item.chars)}")
        if item.seconds is not None and item.seconds >= 0.1:
            facts.append(f"{item.seconds:.1f} s")
        if item.omitted:
            facts.append(f"omitted as {item.omission_id}")
        head = Content.assemble(
            self.fold_mark(),
            line(item.title or item.name or "tool call", 160).stylize("bold"),
            *(Content.assemble(f" {dot} ", line(f, 120)).stylize(DIM) for f in facts if f),
        )
        if not self.expanded:
            return head
        rows = [head]
        output = item.diff or str(item.output)
        if output:
            rows += [Content("    ") + row for row in self.cut_lines(output, HEAD, TAIL, diff=bool(item.diff))]
        elif item.arguments.strip() not in ("", "{}"):
            rows.append(Content("    ") + line(item.arguments, 400))
        if item.omission_id and not shorten(output, HEAD, TAIL)[1] and hidden(item):
            key = self.key_label("conversation.open")
            rows.append(
                Content.styled(f"    stored as {item.omission_id}: {formats.chars(item.chars)}, {key} to open", DIM)
            )
        return Content("\n").join(rows)


_STATES = {"waiting": "waiting", "running": "running", "error": "failed", "stopped": "stopped"}


class CompactionCard(Card):
    """What a compaction did, where it happened: before → after, the cut, the sections."""

    item: CompactionItem

    def build(self) -> Content:
        item = self.item
        glyphs = glyphs_of(self.app)
        if item.entry is None:
            word = {
                "running": f"Compacting {item.messages} messages, {formats.tokens(item.tokens)} tokens",
                "failed": "Compaction failed, nothing changed",
                "skipped": "Not compacted",
            }.get(item.state, "Compaction")
            return Content.assemble(
                "  ",
                (f"{word} ({item.trigger})" if item.state == "running" else word, "bold"),
                Content(". ") + line(sentence(item.reason), 400) if item.reason else "",
            )
        e = item.entry
        first = Content.assemble(
            self.fold_mark(),
            (f"Compaction {e.cycle}", "bold"),
            (f" {glyphs.dot} undone", "bold $text-warning") if item.undone else "",
            Content.styled(f" {glyphs.dot} {e.trigger}", DIM),
            f" {glyphs.dot} {formats.tokens(e.tokens_before)} {glyphs.arrow} {formats.tokens(e.tokens_after)} tokens",
            f" {glyphs.dot} {e.messages_before} {glyphs.arrow} {e.messages_after} messages",
        )
        kept = f"Kept from message {e.cut}" if e.cut else "Nothing kept but the summary"
        how = f"by {line(e.summarizer, 60).plain} in {formats.duration(e.seconds)}"
        sections = ordered_sections(e.summary)
        names = f" {glyphs.dot} ".join(f"{s.title} {len(s.items)}" for s in sections)
        rows = [first, Content("  ") + line(f"{names}. {kept}, {how}.", 300).stylize(DIM)]
        if item.checked is not None:
            rows.append(_check_line(item.checked))
        if self.expanded:
            for section in sections:
                rows.append(Content("  ") + line(section.title, 80).stylize("bold"))
                rows += [Content(f"    {glyphs.dot} ") + line(text, 300) for text in told(section)]
        return Content("\n").join(rows)


def _check_line(checked: CompactionChecked) -> Content:
    """What of the facts looked for survived: lost ones stand out."""
    told = Content.styled(f"  Checked: {formats.probes(checked)}", DIM)
    if not checked.lost:
        return told
    return Content.assemble(told, ("; open to see which", "$text-warning"))


class ReductionCard(Card):
    """One line for a rewrite of the view; expanded, what was put aside, each row a link to the whole text."""

    item: ReductionItem

    def build(self) -> Content:
        from marextui.context.omission import ID_PATTERN
        from marextui.tui.reductions import headline

        item = self.item
        glyphs = glyphs_of(self.app)
        freed = f": {glyphs.minus}{formats.tokens(item.freed)} tokens" if item.freed > 0 else ""
        head = Content.assemble(self.fold_mark(), (f"{headline(item)}{freed}", DIM))
        if not self.expanded:
            return head
        rows = [head]
        for row in item.rows:
            ours = ID_PATTERN.fullmatch(row.omission_id)  # nothing else gets into the action
            link = Style.from_meta({"@click": f"app.open_omission({row.omission_id!r})"}) + Style(underline=True)
            rows.append(
                Content.assemble(
                    "    ",
                    Content.styled(row.omission_id, link) if ours else line(row.omission_id or "not stored", 40),
                    f" {glyphs.dot} ",
                    line(row.title, 100) if row.title else "an earlier message",
                    (f" {glyphs.dot} {formats.chars(row.chars)}", DIM),
                )
            )
        rows.append(Content.styled(f"    {self.key_label('conversation.open')} opens them in full", DIM))
        return Content("\n").join(rows)


class NoticeCard(Card):
    """A sentence for people: what happened, what to do, and the key for it where there is one."""

    item: NoticeItem

    def build(self) -> Content:
        item = self.item
        word, style = {
            "info": ("Note", DIM),
            "warning": ("Warning", "bold $text-warning"),
            "error": ("Error", "bold $text-error"),
        }[item.level]
        rows = [Content.assemble((f"{word}: ", style), plain(item.text[:4_000]))]
        if item.hint:
            rows.append(plain(item.hint[:1_000]))
        if item.action == "retry":
            rows.append(Content.styled(f"{self.key_label('app.retry')} tries again", DIM))
        elif item.action == "compact":
            rows.append(Content.styled("/compact summarises the conversation", DIM))
        return Content("\n").join(rows)


class TurnLine(Card):
    """The usage of a turn, and how it ended when not well."""

    item: TurnItem

    def build(self) -> Content:
        word = {"done": "", "interrupted": "Interrupted. ", "error": "Ended with an error. ", "refused": "Refused. "}
        return Content.assemble(
            "  ", (word[self.item.end], "bold"), plain(formats.usage_line(self.item.usage)).stylize(DIM)
        )


class LongAnswerCard(Card):
    """An answer too big for live Markdown: head and tail of its source, in full in the viewer."""

    item: AssistantItem

    def build(self) -> Content:
        return Content("\n").join(self.cut_lines(str(self.item.text), LONG_HEAD, LONG_TAIL))


def make_block(item: Item, *, expanded: bool, key_label: KeyLabel) -> Block:
    """The widget for an item."""
    if isinstance(item, AssistantItem) and (item.streaming or not is_long(item)):
        from marextui.tui.panes.answer import AnswerBlock  # with the Markdown parser: there is no answer at the start

        return AnswerBlock(item, expanded=expanded, key_label=key_label)
    kinds: dict[type[Item], type[Card]] = {
        UserItem: UserCard,
        ToolItem: ToolCard,
        CompactionItem: CompactionCard,
        ReductionItem: ReductionCard,
        NoticeItem: NoticeCard,
        TurnItem: TurnLine,
        AssistantItem: LongAnswerCard,
    }
    return kinds[type(item)](item, expanded=expanded, key_label=key_label)
