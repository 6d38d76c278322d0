"""What stands in the view right beside the summary: only what code knows for certain (issue section 2; I12, I13)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from marextui.context.factindex import best_facts, index_facts, render_facts
from marextui.context.language import detect_language
from marextui.context.messages import Message
from marextui.context.orders import done_list, open_request, render_orders, render_requests, standing_orders
from marextui.context.plans import plan_in_force, render_plan
from marextui.context.quoting import code
from marextui.context.speech import own_words
from marextui.context.worklog import render_work_log, work_log

WORK_LOG, EXACT_FACTS, STANDING_ORDERS, PLAN, EARLIER_REQUESTS = (
    "Work Log",
    "Exact Facts",
    "Standing Orders",
    "Plan",
    "Earlier Requests",
)
BESIDE_SECTIONS = (WORK_LOG, EXACT_FACTS, STANDING_ORDERS, PLAN, EARLIER_REQUESTS)
"""Headings of the block, in order."""

_SHARES = {WORK_LOG: 30, EXACT_FACTS: 25, STANDING_ORDERS: 15, PLAN: 25, EARLIER_REQUESTS: 5}
"""Percent of the room each section may take; what one does not need passes on to the others."""

_PASSED_ON = (STANDING_ORDERS, PLAN, WORK_LOG, EXACT_FACTS, EARLIER_REQUESTS)
"""Who gets unused room first: to lose an order or an outcome hurts most."""

_IN_WORK_LOG = frozenset({"path", "error", "url"})
"""Facts that need no second line when the work log shows them."""

Renderer = Callable[[int, str], str]
"""Renders a section within that many characters, given the sections above it."""


class Beside:
    """What code knows of everything before the cut, looked for once and then shown in as much room as there is.

    `before` is every raw message before the cut since the beginning of the log, so that nothing decays over cycles;
    `after` are those that stay in view, which may hold a later plan or close the request it was made for. Unknown
    `sections` are passed over. Slow for long conversations, so never in the loop.
    """

    def __init__(
        self,
        before: Sequence[Message],
        *,
        after: Sequence[Message] = (),
        sections: Sequence[str] = BESIDE_SECTIONS,
    ) -> None:
        language = detect_language("\n".join(own_words(m) for m in before if m.role == "user"))
        self._wanted = [s for s in BESIDE_SECTIONS if s in sections]
        self._renderers = {s: _renderer(s, before, after, language, self._wanted) for s in self._wanted}

    def text(self, max_chars: int) -> str:
        """The block: its sections that are not empty, at most `max_chars` characters.

        Text of tools and people stands in one line each, in backticks or quotation marks, and can fake no heading
        (126). Pure and deterministic; "" when there is nothing to say.
        """
        wanted, renderers = self._wanted, self._renderers
        room = max_chars - sum(len(_headed(s, "")) + 2 for s in wanted)
        if room <= 0:
            return ""
        whole = {s: len(renderers[s](room, "")) for s in wanted}
        given = {s: min(whole[s], room * _SHARES[s] // 100) for s in wanted}
        left = room - sum(given.values())
        for section in _PASSED_ON:
            if section in given:
                more = min(left, whole[section] - given[section])
                given[section] += more
                left -= more
        blocks: list[str] = []
        for section in wanted:
            if text := renderers[section](given[section], "\n".join(blocks)):
                blocks.append(_headed(section, text))
        return "\n\n".join(blocks)


def beside(
    before: Sequence[Message],
    *,
    after: Sequence[Message] = (),
    max_chars: int,
    sections: Sequence[str] = BESIDE_SECTIONS,
) -> str:
    """`Beside(...).text(max_chars)`, for one size."""
    return Beside(before, after=after, sections=sections).text(max_chars)


def _headed(title: str, text: str) -> str:
    return f"## {title}\n{text}"


def _renderer(
    section: str, before: Sequence[Message], after: Sequence[Message], language: str, wanted: Sequence[str]
) -> Renderer:
    if section == WORK_LOG:
        log = work_log(before)
        return lambda chars, _: render_work_log(log, max_chars=chars, language=language)
    if section == STANDING_ORDERS:
        orders = standing_orders(before)
        return lambda chars, _: render_orders(orders, max_chars=chars, language=language)
    if section == PLAN:
        plan = plan_in_force(before, after)
        return lambda chars, _: render_plan(plan, max_chars=chars, language=language)
    if section == EARLIER_REQUESTS:
        done, request = done_list(before), open_request(before)
        return lambda chars, _: render_requests(done, request, max_chars=chars, language=language)
    facts = [f for f in index_facts(before) if not (f.kind == "constraint" and STANDING_ORDERS in wanted)]

    def render(chars: int, above: str) -> str:
        fresh = [f for f in facts if f.kind not in _IN_WORK_LOG or f.superseded_by or code(f.value) not in above]
        return render_facts(best_facts(fresh, max_chars=chars), max_chars=chars, language=language)

    return render
