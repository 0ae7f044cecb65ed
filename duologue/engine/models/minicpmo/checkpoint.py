"""Opens a MiniCPM-o 4.5 checkpoint, stored or random: its config, its tokenizer, its tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.models.minicpmo import layout, random
from duologue.engine.models.minicpmo.config import MiniCPMOConfig
from duologue.engine.models.minicpmo.layout import PARTS, PREFIX, Part
from duologue.engine.models.minicpmo.token2wav import layout as token2wav_layout
from duologue.engine.models.minicpmo.token2wav.config import Token2wavConfig
from duologue.engine.models.minicpmo.tokens import SpecialTokens, read_tokenizer, special_tokens
from duologue.engine.models.stored import SourceOptions, Tensors, checked, json_object, read


class CheckpointOptions(SourceOptions):
    """Where a MiniCPM-o 4.5 checkpoint comes from."""

    size: random.Size = "tiny"
    """Of random weights; ``released`` has the dimensions of the release."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An open checkpoint. ``folder`` is None when its weights are random."""

    config: MiniCPMOConfig
    tokenizer: Tokenizer
    tokens: SpecialTokens
    folder: Path | None
    _token2wav: Callable[[], Token2wavConfig]
    _tensors: Callable[[Part, torch.device], Tensors]
    _token2wav_tensors: Callable[[torch.device], Tensors]

    @property
    def thinker(self) -> DecoderConfig:
        """The language model."""
        return self.config.llm

    @property
    def talker(self) -> DecoderConfig:
        """The Llama that writes codes."""
        return self.config.tts.decoder

    @property
    def token2wav(self) -> Token2wavConfig:
        """The codec. Raises ``ConfigError`` where the folder has none: the other stages do without."""
        return self._token2wav()

    def tensors(self, part: Part, device: torch.device | str = "cpu") -> Tensors:
        """Give every tensor of ``part`` on ``device``, one at a time, in the type it is stored in.

        The names are those of ``layout.tensors``: without the prefix that the checkpoint has for the part. So those of
        the thinker are ``Qwen3ForCausalLM``'s. Raises ``ConfigError`` when one is absent or of another shape, or the
        checkpoint has one that belongs nowhere.
        """
        return self._tensors(part, torch.device(device))

    def token2wav_tensors(self, device: torch.device | str = "cpu") -> Tensors:
        """Give every tensor of the codec likewise, by the names of ``token2wav.layout.tensors``."""
        return self._token2wav_tensors(torch.device(device))


def load(options: CheckpointOptions) -> Checkpoint:
    """Open the checkpoint that ``options`` name; raises ``ConfigError`` with the file and what was expected."""
    if options.checkpoint is None:
        made = random.shape(options.size)
        return Checkpoint(made.config, random.tokenizer(made), made.tokens, None, lambda: made.token2wav,
                          lambda part, device: random.tensors(part, made, options.seed, device),
                          lambda device: random.token2wav_tensors(made, options.seed, device))
    folder = options.checkpoint
    file = folder / "config.json"
    config = checked(file, json_object(file, "a MiniCPM-o 4.5 checkpoint"), MiniCPMOConfig)
    tokenizer = read_tokenizer(folder)
    tokens = special_tokens(tokenizer, folder)
    if max(ids := tokens.all) >= config.llm.vocab_size:
        raise ConfigError(f"{folder}: its tokenizer gives {tokenizer.id_to_token(max(ids))} the id {max(ids)}, but "
                          f"vocab_size in config.json is {config.llm.vocab_size}")
    return Checkpoint(config, tokenizer, tokens, folder, lambda: _token2wav(folder, config),
                      lambda part, device: _read(folder, part, config, device),
                      lambda device: _read_token2wav(folder, _token2wav(folder, config), device))


def _read(folder: Path, part: Part, config: MiniCPMOConfig, device: torch.device) -> Tensors:
    """Read one part; tensors of the others, and of modules that nothing here runs, are passed over."""
    full = {each: {PREFIX[each] + name: shape for name, shape in layout.tensors(each, config).items()}
            for each in PARTS}
    others = set().union(*full.values(), layout.unread(config))
    prefix = len(PREFIX[part])
    for name, tensor in read(folder / "model.safetensors", device, full[part],
                             lambda name: name in others or name.startswith(layout.SIGHT)):
        yield name[prefix:], tensor


def _token2wav(folder: Path, config: MiniCPMOConfig) -> Token2wavConfig:
    file = folder / "token2wav" / "config.json"
    if not file.exists():
        raise ConfigError(f"{file}: absent. The release has its codec as pickles in assets/token2wav; make safetensors "
                          f"of them once: `python -m duologue.engine.models.minicpmo.token2wav.convert "
                          f"{folder / 'assets' / 'token2wav'} {folder / 'token2wav'}`")
    codec = checked(file, json_object(file, "a token2wav folder"), Token2wavConfig)
    if codec.flow.vocab_size != config.tts.eos:
        raise ConfigError(f"{file}: flow.vocab_size is {codec.flow.vocab_size}, but the talker writes "
                          f"{config.tts.eos} codes (tts_config.num_audio_tokens less their end)")
    return codec


def _read_token2wav(folder: Path, config: Token2wavConfig, device: torch.device) -> Tensors:
    for file in token2wav_layout.FILES:
        for name, tensor in read(folder / "token2wav" / f"{file}.safetensors", device,
                                 token2wav_layout.file_tensors(file, config)):
            yield f"{file}.{name}", tensor
