"""llama.cpp's own HTTP server as a child process: `python -m marextui.models.llama_child --model file.gguf`.

It listens on 127.0.0.1, on a port the kernel chooses. The first line on stdout is JSON: {"url", "pid", "load_s"}, or
{"error", "hint"} when it cannot start. The API key comes in the environment variable of `KEY_VARIABLE`, never in the
arguments, where any user of the machine could read it. The process ends on SIGTERM and when its stdin closes: a parent
that holds the other end and dies, even by SIGKILL, leaves no orphan. llama.cpp's log goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

KEY_VARIABLE = "MAREXTUI_CHILD_API_KEY"

PROMPT_BATCH = 256
"""Tokens of a prompt between two words on its progress, and before a cancelled one stops. llama.cpp's 2048 take half a
minute on two old cores; 256 cost no more time for a token there (measured: +0.2 %)."""

_SMALL_MACHINE = 4
"""Below this many cores OpenMP's spinning threads would starve the screen, or be starved by it (trap 2)."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m marextui.models.llama_child")
    parser.add_argument("--model", required=True, help="path of the GGUF file")
    parser.add_argument("--alias", default="local", help="model id that the server answers to")
    parser.add_argument("--ctx", type=int, default=8192, help="window in tokens; 0: as trained")
    parser.add_argument("--template-file", default="", help="Jinja chat template instead of the model's own")
    parser.add_argument("--cache-ram", type=int, default=1024, help="MiB for prompts parked in memory")
    parser.add_argument("--slot-folder", default="", help="folder for states of the slot; empty: none is saved")
    parser.add_argument("--threads", type=int, default=0, help="0: chosen from the number of cores")
    return parser.parse_args(argv)


def threads_for(cores: int) -> tuple[int, int]:
    """(decoding, prompt) threads: one core stays free for the screen, two from 4 cores on; at most 8."""
    if cores < _SMALL_MACHINE:
        return max(1, cores - 1), max(1, cores)
    threads = min(8, cores - 2)
    return threads, threads


def calm_openmp(env: MutableMapping[str, str], cores: int) -> None:
    """Make OpenMP's threads sleep at barriers on small machines; must happen before the engine is imported."""
    if cores < _SMALL_MACHINE:
        env.setdefault("OMP_WAIT_POLICY", "passive")


def import_failure(error: ImportError) -> Mapping[str, str]:
    """What a person reads when the engine cannot be imported."""
    if "libgomp" in str(error):
        return {
            "error": "The local engine needs the system library libgomp, and it is missing.",
            "hint": "Install it, for example with: apt install libgomp1",
        }
    return {
        "error": f"The local engine cannot be loaded: {error}.",
        "hint": "Install it with: pip install 'marextui[local]'",
    }


def _params(engine: Any, options: argparse.Namespace, api_key: str, cores: int) -> Any:
    params = engine.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [api_key] if api_key else []
    params.n_ctx = options.ctx
    params.n_parallel = 1
    params.n_batch = PROMPT_BATCH
    decode, prompt = threads_for(cores)
    params.cpuparams.n_threads = options.threads or decode
    params.cpuparams_batch.n_threads = options.threads or prompt
    params.cache_ram_mib = options.cache_ram
    params.checkpoint_min_step = 1024  # llama.cpp's 8192 helps no chat with a sliding-window model (trap 6)
    params.use_jinja = True
    params.endpoint_props = False
    params.endpoint_slots = True
    params.ui = False
    params.offline = True
    params.fit_params = False
    if options.slot_folder:
        params.slot_save_path = os.path.join(options.slot_folder, "")  # llama.cpp appends the file's name as it is
        os.umask(0o077)  # a state holds all of a conversation
    if options.template_file:
        params.chat_template = Path(options.template_file).read_text(encoding="utf-8")
    return params


def serve(options: argparse.Namespace) -> int:
    """Run until told to stop; returns the exit status of a failed start."""
    answer = os.dup(1)
    os.dup2(2, 1)  # llama.cpp prints to stdout too; our one line must stay alone there

    def say(line: Mapping[str, object]) -> None:
        os.write(answer, (json.dumps(line) + "\n").encode())

    api_key = os.environ.pop(KEY_VARIABLE, "")
    cores = os.cpu_count() or 1
    calm_openmp(os.environ, cores)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl+c belongs to the parent, which closes stdin when it is done
    threading.Thread(target=_watch_stdin, args=(stop,), daemon=True).start()

    try:
        import xllamacpp
    except ImportError as error:
        say(import_failure(error))
        return 3
    started = time.monotonic()
    try:
        server = xllamacpp.Server(_params(xllamacpp, options, api_key, cores))
    except (RuntimeError, OSError, ValueError, MemoryError) as error:
        say(
            {
                "error": f"The local engine could not load {Path(options.model).name} ({error}).",
                "hint": "The file may be damaged or of a kind this engine does not know; too little memory is the other"
                " usual reason.",
            }
        )
        return 4
    say({"url": server.listening_address, "pid": os.getpid(), "load_s": round(time.monotonic() - started, 3)})
    stop.wait()
    os._exit(0)  # nothing to save; tearing the engine down can take seconds


def _watch_stdin(stop: threading.Event) -> None:
    try:
        while os.read(0, 4096):
            pass
    except OSError:
        pass
    stop.set()


if __name__ == "__main__":
    sys.exit(serve(arguments()))
