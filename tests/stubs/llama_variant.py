"""The real llama.cpp server with options that the embedded engine does not have: several slots, a save path."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_CODE = """
import os, sys, threading
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
said = os.dup(1)
os.dup2(2, 1)
import xllamacpp
model, slots, save_path, window = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = model, {"tiny"}
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_ctx, params.n_parallel = int(window), int(slots)
params.use_jinja = params.endpoint_slots = params.offline = True
params.ui = params.fit_params = False
params.cpuparams.n_threads, params.cpuparams_batch.n_threads = 1, 2
if save_path:
    params.slot_save_path = save_path
server = xllamacpp.Server(params)
os.write(said, (server.listening_address + "\\n").encode())
sys.stdin.read()
os._exit(0)
"""


@asynccontextmanager
async def llama_variant(
    model: Path, *, slots: int = 1, save_path: Path | None = None, window: int = 8192
) -> AsyncIterator[str]:
    """The server's root address; it ends with the block, or with the test run (its stdin closes)."""
    folder = f"{save_path}/" if save_path else ""
    command = [sys.executable, "-c", _CODE, str(model), str(slots), folder, str(window)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()
