"""Examines a server: what it is, what it can do, what its cache saves (issue 4, section 6). Fills a `Chart`.

Every request is one of `Script.plan`, within the bound that was stated before. A request that fails leaves its finding
unknown; a server that stops answering ends the examination with what is known so far.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from marextui.context.doctor_chart import Chart, Measured, ToolUse
from marextui.context.doctor_requests import Asked, Script, bound
from marextui.context.reply_check import writes_call
from marextui.models.discovery import ASK_TIMEOUT, can_chat, fetch, fetch_json, inspect, list_models, read_slots
from marextui.models.doctor_wire import Answer, OverBound, Sender
from marextui.models.endpoint import display_url, server_root
from marextui.models.lenient import as_text, at, items
from marextui.models.types import ModelError, Usage

Progress = Callable[[str], None]
Sleep = Callable[[float], Awaitable[None]]

FREE_AFTER = 1.5
"""Seconds after hanging up until a server is asked whether its slot is free: asked sooner, or all the time, it would
not notice that nobody listens (trap 5 of the local engine)."""
_FREE_AGAIN = 2.5
LONGEST = 8
"""Limits of one request that a whole examination may take, however slowly the server drips."""
_STRANGE_NAME = "/"
"""No file can be called that, so nothing is saved; but a server without a save path refuses earlier, and says so."""


@dataclass(frozen=True, slots=True)
class Patient:
    """The server to examine. `base_url` is normalised; `model` "" takes the first loaded one, else the first."""

    base_url: str
    local: bool
    model: str = ""
    api_key: str = ""
    label: str = ""
    """What people call it when that is not its address."""


class _GaveUp(Exception):
    """The server cannot be examined any further; the chart says why."""


class Doctor:
    """One examination. `chart` is what is known so far, also when `examine` is cancelled or fails.

    `timeout` is seconds for one request; `now` a clock in seconds.
    """

    def __init__(
        self, patient: Patient, script: Script, *, timeout: float, now: Callable[[], float], sleep: Sleep
    ) -> None:
        """Raises `ModelError` for a key that cannot stand in a header."""
        self.chart = Chart(display_url(patient.base_url), patient.local, patient.label, patient.model)
        self._patient = patient
        self._script = script
        self._root = server_root(patient.base_url)
        self._timeout = timeout
        self._now = now
        self._sleep = sleep
        self._sender = Sender(
            patient.base_url,
            patient.model,
            api_key=patient.api_key,
            bound=bound(script.plan()),
            timeout=timeout,
            now=now,
        )

    async def examine(self, progress: Progress) -> Chart:
        """Ask everything there is to ask; `progress` hears what is asked now."""
        chart, longest = self.chart, LONGEST * self._timeout
        try:
            async with asyncio.timeout(longest):
                await self._ask_everything(progress)
        except _GaveUp:
            pass
        except OverBound:
            chart.ended = "the rest would have sent more than was stated"
        except TimeoutError:
            chart.ended = f"it took more than {longest:g} seconds"
        except asyncio.CancelledError:
            chart.ended = "it was stopped"
            raise
        finally:
            chart.requests = self._sender.requests
        return chart

    async def _ask_everything(self, progress: Progress) -> None:
        progress("asking for its models")
        await self._find_model()
        progress("asking for one word; a model may have to be loaded first")
        await self._hello()
        progress("asking what it is")
        await self._look()
        progress("streaming an answer")
        await self._stream()
        await self._manners(progress)
        if self._patient.local:
            await self._measure(progress)
            progress("hanging up on an answer")
            await self._cancel()

    async def aclose(self) -> None:
        """Close the sockets."""
        await self._sender.aclose()

    async def _find_model(self) -> None:
        """A list of models is not needed when the model is named; an address where nobody answers is the end."""
        chart, patient = self.chart, self._patient
        try:
            ids = await list_models(
                self._sender.http, patient.base_url, api_key=patient.api_key, timeout=min(10.0, self._timeout)
            )
        except ModelError as error:
            if patient.model and error.kind not in {"network", "auth", "loading"}:
                return
            raise self._hopeless(error) from None
        chart.models = len(ids)
        chatting = [i for i in ids if can_chat(i)]
        if not chart.model and not chatting:
            chart.problem = "The server answers, but lists no model that can chat. Load one there, or give its name."
            raise _GaveUp
        chart.model = chart.model or await self._loaded(chatting)
        self._sender.model = chart.model

    async def _loaded(self, ids: list[str]) -> str:
        """The first model that is loaded already, where a server tells that of several; else the first."""
        if len(ids) == 1 or not self._patient.local:
            return ids[0]
        running, studio = await asyncio.gather(self._get("/api/ps"), self._get("/api/v0/models"))
        names = [as_text(at(m, "name")) for m in items(at(running, "models"))]
        names += [as_text(at(m, "id")) for m in items(at(studio, "data")) if at(m, "state") == "loaded"]
        return next((n for n in names if n in ids), ids[0])

    async def _hello(self) -> None:
        chart = self.chart
        try:
            answer = await self._sender.ask(self._script.hello())
        except ModelError as error:
            raise self._hopeless(error) from None
        chart.answers = True
        chart.usage_plain = _counted(answer.usage)
        self._count(answer)

    async def _look(self) -> None:
        """What the server tells of itself, now that its model is loaded."""
        chart, patient = self.chart, self._patient
        facts = await inspect(self._sender.http, patient.base_url, chart.model, api_key=patient.api_key)
        chart.kind, chart.tools_told = facts.kind, facts.supports_tools
        chart.window, chart.window_from, chart.trained = facts.window, facts.window_from, facts.trained
        if not patient.local:
            return
        if facts.kind == "llama.cpp":
            slots = await read_slots(self._sender.http, self._root, chart.model, api_key=patient.api_key)
            chart.slots = slots.total
            chart.version = as_text(at(await self._get("/props"), "build_info"))
            chart.save_path = await self._can_save()
        elif facts.kind == "Ollama":
            chart.version = as_text(at(await self._get("/api/version"), "version"))
        elif facts.kind == "vLLM":
            chart.version = as_text(at(await self._get("/version"), "version"))

    async def _can_save(self) -> bool | None:
        """Whether slots can be saved to disk; a name that no file can have finds out without saving one."""
        try:
            async with asyncio.timeout(ASK_TIMEOUT):
                status, raw = await fetch(
                    self._sender.http,
                    f"{self._root}/slots/0?action=save",
                    self._patient.api_key,
                    {"filename": _STRANGE_NAME},
                )
        except (TimeoutError, httpx.HTTPError):
            return None
        if status == 400 and b"filename" in raw.lower():
            return True
        return False if status == 501 else None

    async def _stream(self) -> None:
        """A streamed answer and what is told with it."""
        chart, extra = self.chart, {"return_progress": True} if self._patient.local else {}
        refusal, answer = await self._try(self._script.stream(), extra)
        if refusal is not None or answer is None:
            chart.problem = f"It answers, but does not stream its answers. {refusal.message if refusal else ''}".strip()
            raise _GaveUp
        chart.streams = True
        chart.usage_stream = _counted(answer.usage)
        chart.cached_told = answer.usage is not None and answer.usage.cache_read is not None
        chart.timings = "prompt_n" in answer.timings
        if self._patient.local:
            chart.progress = answer.progress

    async def _manners(self, progress: Progress) -> None:
        """Two users in a row, tools, and tools that may not be called."""
        chart = self.chart
        progress("sending two user messages in a row")
        refusal, _ = await self._try(self._script.two_users())
        chart.two_users = refusal is None
        chart.two_users_said = refusal.message if refusal is not None else ""
        calm = {"chat_template_kwargs": {"enable_thinking": False}} if chart.kind in {"llama.cpp", "vLLM"} else {}
        progress("offering a tool")
        refusal, offered = await self._try(self._script.tool("auto"), calm)
        chart.tool_use = _tool_use(refusal, offered)
        chart.tools_said = refusal.message if refusal is not None else ""
        if "tool_choice" in self._sender.refused:
            chart.tool_none = "refused"
            return
        progress("offering a tool that may not be called")
        refusal, forbidden = await self._try(self._script.tool("none"), calm)
        chart.tool_none = _tool_use(refusal, forbidden)
        sizes = [a.usage.inp for a in (offered, forbidden) if a is not None and a.usage is not None]
        if len(sizes) == 2 and None not in sizes:
            chart.tools_kept = sizes[0] == sizes[1]

    async def _measure(self, progress: Progress) -> None:
        """What the cache saves: the same summary asked for in two ways, and a turn whose prompt was sent ahead."""
        script = self._script
        progress("opening a conversation of some 400 tokens")
        opening = await self._timed(script.opening())
        if opening is None:
            return
        self.chart.speed = opening.timings.get("prompt_per_second")
        progress("asking for a summary by going on with it")
        summary = await self._timed(script.continuation(opening.text))
        progress("asking for a summary by a request of its own")
        await self._timed(script.separate())
        if summary is not None:
            progress("going on with the conversation")
            await self._timed(script.back(opening.text, summary.text))
        progress("sending a rewritten conversation ahead")
        refusal, _ = await self._try(script.prewarm())
        if refusal is None:
            await self._timed(script.prewarmed())

    async def _timed(self, asked: Asked) -> Answer | None:
        refusal, answer = await self._try(asked)
        if refusal is not None:
            self.chart.measure_said = refusal.message
        if answer is not None and answer.first is not None:
            usage = answer.usage or Usage()
            self.chart.measured[asked.name] = Measured(usage.computed, usage.cache_read, answer.first)
        return answer

    async def _cancel(self) -> None:
        """Hang up in the middle of an answer and see whether the server goes on."""
        try:
            begun = await self._sender.ask(self._script.count(), hang_up=True)
        except ModelError as error:
            self._lost(error)
            return
        if begun.first is None:
            return
        if self.chart.kind == "llama.cpp":
            await self._slots_free()
            return
        _, answer = await self._try(self._script.after())
        if answer is not None and answer.first is not None:
            self.chart.cancel_words = f"the next request had its first word after {answer.first:.2f} s"

    async def _slots_free(self) -> None:
        chart, hung_up = self.chart, self._now()
        for pause in (FREE_AFTER, _FREE_AGAIN):
            await self._sleep(pause)
            states = items(await self._get("/slots"))
            if not states:
                return
            waited = f"{self._now() - hung_up:.1f} s after we hung up"
            if not any(at(s, "is_processing") is True for s in states):
                # a slot that has more to say and is idle was stopped; not every version tells
                cut = any(at(s, "next_token", 0, "has_next_token") is True for s in states)
                chart.cancels = True if cut else None
                more = "" if cut else "; whether the answer was stopped or had ended is not told"
                chart.cancel_words = f"every slot is idle {waited}{more}"
                return
        chart.cancels = False
        chart.cancel_words = f"a slot is still at work {waited}"

    async def _try(self, asked: Asked, extra: dict[str, Any] | None = None) -> tuple[ModelError | None, Answer | None]:
        """(refusal, answer): one of them is None. Ends the examination when the server does not answer any more."""
        try:
            answer = await self._sender.ask(asked, extra=extra)
        except ModelError as error:
            self._lost(error)
            return error, None
        self._count(answer)
        return None, answer

    def _lost(self, error: ModelError) -> None:
        """A server that is gone or does not end is not asked for more."""
        if error.kind in {"network", "auth", "rate_limit"}:
            self.chart.ended = f"{error.message} {error.hint}".strip()
            raise _GaveUp from error

    def _hopeless(self, error: ModelError) -> _GaveUp:
        hint = error.hint
        if error.kind == "auth" and not self._patient.api_key:
            hint = "No key was sent: marextui doctor takes the name of the variable that holds it, --api-key-env NAME."
        self.chart.problem = f"{error.message} {hint}".strip()
        return _GaveUp()

    def _count(self, answer: Answer) -> None:
        self.chart.counted += (answer.usage.inp or 0) if answer.usage is not None else 0

    async def _get(self, route: str) -> Any:
        return await fetch_json(self._sender.http, f"{self._root}{route}", api_key=self._patient.api_key)


def _counted(usage: Usage | None) -> bool:
    return usage is not None and usage.inp is not None and usage.out is not None


def _tool_use(refusal: ModelError | None, answer: Answer | None) -> ToolUse | None:
    if answer is None:
        return "refused" if refusal is not None and refusal.kind != "network" else None
    if answer.calls:
        return "called"
    if writes_call(answer.text.strip()):
        return "as text"
    return "not called" if answer.text.strip() or not answer.reasoning else "thinking"
