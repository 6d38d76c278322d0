"""The child's decisions that need no engine: threads, OpenMP, errors in words (traps 2, 3, 7)."""

from __future__ import annotations

import pytest

from marextui.models.embedded import template_path
from marextui.models.llama_child import KEY_VARIABLE, arguments, calm_openmp, import_failure, threads_for


@pytest.mark.parametrize(
    ("cores", "threads"), [(1, (1, 1)), (2, (1, 2)), (3, (2, 3)), (4, (2, 2)), (8, (6, 6)), (64, (8, 8))]
)
def test_threads_leave_room_for_the_screen(cores: int, threads: tuple[int, int]) -> None:
    assert threads_for(cores) == threads


def test_openmp_sleeps_on_small_machines_unless_the_person_says_otherwise() -> None:
    env: dict[str, str] = {}
    calm_openmp(env, 4)
    assert env == {}
    calm_openmp(env, 2)
    assert env == {"OMP_WAIT_POLICY": "passive"}
    env = {"OMP_WAIT_POLICY": "active"}
    calm_openmp(env, 2)
    assert env == {"OMP_WAIT_POLICY": "active"}


def test_a_missing_libgomp_names_the_package_to_install() -> None:
    told = import_failure(ImportError("libgomp.so.1: cannot open shared object file"))
    assert "apt install libgomp1" in told["hint"]
    assert "marextui[local]" in import_failure(ImportError("No module named 'xllamacpp'"))["hint"]


def test_the_key_is_no_argument() -> None:
    options = vars(arguments(["--model", "x.gguf"]))
    assert not [name for name in options if "key" in name]
    assert KEY_VARIABLE.startswith("MAREXTUI_")


def test_the_template_declares_the_fence_as_the_call_format() -> None:
    """Trap 4: llama.cpp derives its tool-call parser from these words."""
    text = template_path().read_text(encoding="utf-8")
    assert '```json\\n{"name": ' in text
    assert "add_generation_prompt" in text
