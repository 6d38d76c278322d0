"""A 1 MB GGUF whose replies a test chooses, for the real llama.cpp server (section 7 of the local-engine notes).

Embeddings are one-hot and blocks add nothing, so the next token follows from the last one alone; the output matrix
spells the replies. Each reply is a chain of tokens of its own, about one for each word. The default reply answers every
prompt; a last message that holds the phrase PHRASE gets `phrases[PHRASE]`, else one that holds `#KEY` gets `says[KEY]`.
In prompts one byte of text is one token, so budgets are easy to compute; the KV cache, streaming, usage, tool-call
parsing and overflow are the real server's.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from marextui.models.embedded import EmbeddedServer
from marextui.models.types import LoadProgress

DEFAULT_REPLY = "Hello from the tiny model. All is well."

_CHATML = r"""{%- if tools -%}{{- '<|im_start|>system\n# Tools\n' -}}
{%- for tool in tools -%}{{- (tool | tojson) + '\n' -}}{%- endfor -%}
{{- 'Call one with <tool_call>\n{"name": ..., "arguments": ...}\n</tool_call><|im_end|>\n' -}}{%- endif -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\n' + (message.content or '') -}}
{%- for item in (message.tool_calls or []) -%}
{%- set call = item.function if item.function is defined else item -%}
{{- '<tool_call>\n{"name": "' + call.name + '", "arguments": ' -}}
{{- (call.arguments | tojson) + '}\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}
{%- set last = messages[-1].content or '' -%}@CHOOSE@{%- endif -%}"""


def call_text(name: str, arguments: str) -> str:
    """The text of a tool call in the tiny model's format; `arguments` is JSON."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def _printable() -> dict[int, str]:
    """Byte → the printable character that stands for it in byte-level vocabularies."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = (256 + i for i in range(256))
    return {b: chr(b) if b in plain else chr(next(spare)) for b in range(256)}


class _Vocabulary:
    """Tokens in order, with the chain "after this token comes that one"."""

    def __init__(self) -> None:
        self._map = _printable()
        self.tokens = [self._map[b] for b in range(256)] + [self._encode(" t")]
        self.control: set[int] = set()
        self.follows: dict[int, int] = {}

    def _encode(self, text: str) -> str:
        return "".join(self._map[b] for b in text.encode())

    def add_control(self, text: str) -> int:
        self.tokens.append(text)
        self.control.add(len(self.tokens) - 1)
        return len(self.tokens) - 1

    def _pieces(self, text: str) -> list[str]:
        """`text` word by word; a word that is a token already is glued to its neighbour, so that the text stays exact
        (a grammar for tool calls accepts nothing else)."""
        pieces: list[str] = []

        def taken(piece: str) -> bool:
            return piece in pieces or self._encode(piece) in self.tokens

        words = re.findall(r"\s*\S+|\s+\Z", text)
        while words:
            piece = words.pop(0)
            while taken(piece) and words:
                piece += words.pop(0)
            while taken(piece) and pieces:
                piece = pieces.pop() + piece
            pieces.append(piece)
        return pieces

    def add_chain(self, text: str, end: int | None, start: int | None = None) -> int:
        """Tokens for the words of `text`, ending in `end` (None: they go round for ever), put after `start`.

        Returns the first token of the chain.
        """
        first = previous = start
        for piece in self._pieces(text):
            token = self._encode(piece)
            while token in self.tokens:
                token += self._encode("\u200b")  # the same word elsewhere must be another token
            self.tokens.append(token)
            here = len(self.tokens) - 1
            if previous is not None:
                self.follows[previous] = here
            first = here if first is None else first
            previous = here
        assert first is not None
        assert previous is not None
        self.follows[previous] = end if end is not None else self.follows.get(first, first)
        return first


def tiny_gguf(
    path: Path,
    reply: str = DEFAULT_REPLY,
    says: Mapping[str, str] | None = None,
    *,
    phrases: Mapping[str, str] | None = None,
    endless: Collection[str] = (),
    trained: int = 32768,
    sliding: int = 0,
) -> Path:
    """Write the model and return `path`. Replies must differ: equal ones are told apart by zero-width spaces (`clean`).

    The replies of the keys and phrases in `endless` start again for ever, so that a test can interrupt them: only
    `max_tokens` or the window ends them. `trained` is the trained window in tokens. `sliding` tokens are all that most
    layers look back at (Gemma 3's sliding window); 0: none does so.
    """
    import numpy as np
    from gguf import GGUFWriter, TokenType

    phrased = enumerate((phrases or {}).items())
    replies = [(phrase, f"say_phrase_{n}", text, phrase in endless) for n, (phrase, text) in phrased]
    replies += [(f"#{key}", f"say_{key}", text, key in endless) for key, text in (says or {}).items()]
    vocabulary = _Vocabulary()
    text_end = vocabulary.add_control("<|endoftext|>")
    vocabulary.add_control("<|im_start|>")
    turn_end = vocabulary.add_control("<|im_end|>")
    default = vocabulary.add_chain(reply, turn_end)
    for _, start, text, goes_on in replies:
        vocabulary.add_chain(text, None if goes_on else turn_end, vocabulary.add_control(f"<|{start}|>"))
    size = len(vocabulary.tokens)
    head = 64
    width = -(-size // head) * head

    conditions = [f"'{sought}' in last -%}}{{{{- '<|{start}|>' -}}}}" for sought, start, _, _ in replies]
    choose = "{%- if " + "{%- elif ".join(conditions) + "{%- endif -%}" if conditions else ""

    layers = 6 if sliding else 1  # every sixth of Gemma's looks at everything
    writer = GGUFWriter(path, "gemma3" if sliding else "llama")
    writer.add_name("tiny scripted model")
    writer.add_context_length(trained)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(head)
    writer.add_head_count(width // head)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(head)
    writer.add_key_length(head)
    writer.add_value_length(head)
    if sliding:
        writer.add_sliding_window(sliding)
    writer.add_vocab_size(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([t.encode() for t in vocabulary.tokens])
    writer.add_token_types([TokenType.CONTROL if i in vocabulary.control else TokenType.NORMAL for i in range(size)])
    writer.add_token_merges([f"{_printable()[32]} t"])
    writer.add_bos_token_id(text_end)
    writer.add_eos_token_id(turn_end)
    writer.add_add_bos_token(False)
    writer.add_chat_template(_CHATML.replace("@CHOOSE@", choose))

    def random(*shape: int) -> Any:
        return (generator.standard_normal(shape) * 0.05).astype(np.float16)

    generator = np.random.default_rng(7)
    embedding = np.zeros((size, width), np.float16)
    output = np.zeros((size, width), np.float16)
    for token in range(size):
        embedding[token, token] = 1.0
        output[vocabulary.follows.get(token, default), token] = 1.0
    ones, zeros = np.ones(width, np.float32), np.zeros
    tensors: dict[str, Any] = {"token_embd": embedding, "output": output, "output_norm": ones}
    for layer in range(layers):
        block = {
            "attn_norm": ones,
            "attn_q": random(width, width),
            "attn_k": random(head, width),
            "attn_v": random(head, width),
            "attn_output": zeros((width, width), np.float16),
            "ffn_norm": ones,
            "ffn_gate": zeros((head, width), np.float16),
            "ffn_up": zeros((head, width), np.float16),
            "ffn_down": zeros((width, head), np.float16),
        }
        if sliding:
            each = np.ones(head, np.float32)
            block |= {"attn_q_norm": each, "attn_k_norm": each}
            block |= {"post_attention_norm": ones, "post_ffw_norm": ones}
        tensors |= {f"blk.{layer}.{name}": tensor for name, tensor in block.items()}
    for name, tensor in tensors.items():
        writer.add_tensor(f"{name}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def clean(text: str) -> str:
    """A reply without the zero-width spaces that tell equal words apart."""
    return text.replace("\u200b", "")


@asynccontextmanager
async def tiny_server(
    folder: Path,
    reply: str = DEFAULT_REPLY,
    says: Mapping[str, str] | None = None,
    *,
    phrases: Mapping[str, str] | None = None,
    endless: Collection[str] = (),
    ctx: int = 8192,
) -> AsyncIterator[EmbeddedServer]:
    """The real child process on a tiny model made in `folder`: `server.url`, `server.api_key`; model id "local"."""
    server = EmbeddedServer(
        tiny_gguf(folder / "tiny.gguf", reply, says, phrases=phrases, endless=endless),
        ctx=ctx,
        log_path=folder / "local-engine-test.log",
    )
    await server.start(ignore_progress)
    try:
        yield server
    finally:
        await server.aclose()


def ignore_progress(step: LoadProgress) -> None:
    """A progress listener for tests that do not look at it."""
