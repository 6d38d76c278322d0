"""The embedded engine: a `llama_child` process owned by this one, with a random key, watched for its death."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import IO

from marextui.models.lenient import as_float, as_text, at, parse_json
from marextui.models.llama_child import KEY_VARIABLE
from marextui.models.openai_chat import OpenAIChat
from marextui.models.types import ChatRequest, Chunk, LoadProgress, ModelError
from marextui.private_files import ensure_private

ALIAS = "local"
"""Model id that the child answers to."""

_LOG_TAIL = 4096
_KEPT_LOGS = 5
"""Logs of engines that died stay for a while; the log of one that ended in order goes with it."""
_RESTART = "Retry starts it again."


def template_path() -> Path:
    """The chat template for Qwen2.5-Coder that comes with this package (trap 4)."""
    return Path(__file__).parent / "templates" / "qwen_coder.jinja"


class EmbeddedServer:
    """One child process with one model. `ctx` is tokens, `start_timeout` and `stop_timeout` are seconds.

    `slot_folder` is where it may keep what it has computed (None: nowhere).
    `url` and `api_key` are set once `start` has returned. Not restartable: a new one is made instead.
    """

    def __init__(
        self,
        model: Path,
        *,
        ctx: int,
        log_path: Path,
        template: Path | None = None,
        slot_folder: Path | None = None,
        start_timeout: float = 300.0,
        stop_timeout: float = 5.0,
        python: str = sys.executable,
    ) -> None:
        self.model = model
        self.slot_folder = slot_folder
        self.api_key = secrets.token_urlsafe(24)
        self.url = ""
        self.load_s = 0.0
        self._ctx = ctx
        self._log_path = log_path
        self._template = template
        self._start_timeout = start_timeout
        self._stop_timeout = stop_timeout
        self._python = python
        self._process: Process | None = None
        self._closing = False

    @property
    def pid(self) -> int | None:
        """Process id of the child; None before `start`."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether the child runs and has not been told to end."""
        return self._process is not None and self._process.returncode is None and not self._closing

    async def start(self, progress: Callable[[LoadProgress], None]) -> None:
        """Start the child and wait until its model is loaded. Raises `ModelError` ("server"); then nothing runs."""
        progress(LoadProgress(f"Loading {self.model.name}"))
        try:
            self._process = await self._spawn()
            async with asyncio.timeout(self._start_timeout):
                line = await self._first_line(self._process)
        except TimeoutError as error:
            await self.aclose()
            raise ModelError(
                "server",
                f"The local engine did not load {self.model.name} within {self._start_timeout:g} seconds.",
                hint=f"The machine may be short of memory. {_RESTART} Log: {self._log_path}",
            ) from error
        except OSError as error:
            await self.aclose()
            raise ModelError(
                "server", f"The local engine could not be started: {error.strerror or error}.", hint=_RESTART
            ) from error
        except BaseException:
            await self.aclose()
            raise
        told = parse_json(line)
        self.url = as_text(at(told, "url"))
        self.load_s = as_float(at(told, "load_s")) or 0.0
        if not self.url:
            reason, hint = as_text(at(told, "error")), as_text(at(told, "hint"))
            if not reason:
                reason = await self.death()
            await self.aclose()
            raise ModelError("server", reason, hint=f"{hint} Log: {self._log_path}".strip())

    async def _spawn(self) -> Process:
        command = [self._python, "-P", "-m", "marextui.models.llama_child", "--model", str(self.model)]
        command += ["--alias", ALIAS, "--ctx", str(self._ctx)]
        if self._template is not None:
            command += ["--template-file", str(self._template)]
        if self.slot_folder is not None:
            await asyncio.to_thread(ensure_private, self.slot_folder)
            command += ["--slot-folder", str(self.slot_folder)]
        log = await asyncio.to_thread(self._open_log)
        try:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                env={**os.environ, KEY_VARIABLE: self.api_key},
                start_new_session=True,  # ctrl+c and a hang-up of the terminal are ours to handle, not the child's
            )
        finally:
            log.close()

    def _open_log(self) -> IO[bytes]:
        folder = self._log_path.parent
        folder.mkdir(parents=True, exist_ok=True)
        logs = [(p.stat().st_mtime_ns, p) for p in folder.glob("local-engine-*.log")]
        for _, old in sorted(logs)[: -_KEPT_LOGS or None]:
            old.unlink(missing_ok=True)
        return self._log_path.open("wb")

    async def _first_line(self, process: Process) -> bytes:
        assert process.stdout is not None
        return await process.stdout.readline()

    async def death(self, wait: float = 1.0) -> str:
        """Why the child is gone, in a sentence with its last words; "" when it still runs after `wait` seconds."""
        if self._process is None:
            return "The local engine is not running."
        try:
            async with asyncio.timeout(wait):
                code = await self._process.wait()
        except TimeoutError:
            return ""
        words = await asyncio.to_thread(self._last_words)
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        return f"The local engine {how}." + (f" Its last words: {words}" if words else "")

    def _last_words(self) -> str:
        try:
            with self._log_path.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL))
                lines = log.read().decode("utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        telling = [line.strip() for line in lines if line.strip()]
        errors = [line for line in telling if " E " in line or "error" in line.lower()]
        return " / ".join((errors or telling)[-2:])[:400]

    async def aclose(self) -> None:
        """End the child: close its stdin, then kill it when that is not enough."""
        was_well = self.alive and bool(self.url)
        self._closing = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(self._stop_timeout):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        if was_well:
            await asyncio.to_thread(self._log_path.unlink, missing_ok=True)


class EmbeddedChat:
    """`ChatModel` of an `EmbeddedServer`: a dead engine is a `ModelError` ("server") that says how to go on."""

    def __init__(self, server: EmbeddedServer, *, silence_timeout: float) -> None:
        self._server = server
        self._inner = OpenAIChat(server.url, ALIAS, api_key=server.api_key, silence_timeout=silence_timeout)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """As `OpenAIChat.stream`."""
        if not self._server.alive:
            raise await self._gone()
        try:
            async with aclosing(self._inner.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ModelError as error:
            if error.kind == "network" and await self._server.death():
                raise await self._gone() from error
            raise

    async def _gone(self) -> ModelError:
        reason = await self._server.death(0) or "The local engine has been stopped."
        return ModelError("server", reason, hint=f"What arrived is kept. {_RESTART}")

    async def aclose(self) -> None:
        """Close the sockets; the server is closed by its owner."""
        await self._inner.aclose()
