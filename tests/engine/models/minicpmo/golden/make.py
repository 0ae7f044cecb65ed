"""Makes the golden values: runs the released MiniCPM-o 4.5 code, unmodified, on our tiny random checkpoint.

    python -m tests.engine.models.minicpmo.golden.make RELEASED CHECKPOINT

``RELEASED`` is the folder of the released ``modeling_minicpmo.py``; ``CHECKPOINT`` was written by ``python -m
duologue.engine.models.minicpmo.random CHECKPOINT --seed 3``. Wants transformers 4.51.0, torch and Pillow. What the
released code needs and has not on a CPU is patched from outside; README.md says what and why.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tests.engine.models.minicpmo.golden.inputs import (
    FORCED,
    INTERRUPTED,
    RATE,
    SYSTEM,
    UNITS,
    caller,
    reference,
    samples,
)

HERE = Path(__file__).parent

Array = npt.NDArray[Any]


def assemble(released: Path, checkpoint: Path, folder: Path) -> None:
    """Join our weights and the released code into the folder that its loader wants."""
    for file in (*checkpoint.glob("*.safetensors*"), checkpoint / "tokenizer.json"):
        (folder / file.name).symlink_to(file.resolve())
    for file in (*released.glob("*.py"), released / "preprocessor_config.json"):
        shutil.copy(file, folder)
    config = json.loads((checkpoint / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "configuration_minicpmo.MiniCPMOConfig",
                          "AutoModel": "modeling_minicpmo.MiniCPMO"}
    config["tts_config"] |= {"top_p": 0.85, "top_k": 25, "repetition_penalty": 1.05}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((checkpoint / "tokenizer_config.json").read_text())
    tokenizer["tokenizer_class"] = "MiniCPMOTokenizerFast"
    tokenizer["auto_map"] = {"AutoTokenizer": [None, "tokenization_minicpmo_fast.MiniCPMOTokenizerFast"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))


class Mute:
    """Stands for ``Token2wav``, which wants a GPU: takes codes, gives nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cache = None


def open_duplex(released: Path, folder: Path) -> Any:
    """Open the released session object, float32, greedy in what it cannot be asked to be greedy in."""
    sys.modules["stepaudio2"] = types.SimpleNamespace(Token2wav=Mute)  # type: ignore[assignment]
    sys.path.insert(0, str(released.parent))
    module: Any = __import__(f"{released.name}.modeling_minicpmo", fromlist=["MiniCPMODuplex"])
    plain = module.MiniCPMO.to

    def move(model: Any, *args: Any, **kwargs: Any) -> Any:
        return model if args == (torch.bfloat16,) else plain(model, *args, **kwargs)

    def likeliest(scores: torch.Tensor, num_samples: int) -> torch.Tensor:
        return scores.argmax(-1, keepdim=True)

    module.MiniCPMO.to = move
    torch.multinomial = likeliest  # type: ignore[assignment]
    return module.MiniCPMODuplex.from_pretrained(str(folder), device="cpu", attn_implementation="eager",
                                                 force_listen_count=FORCED)


class Tape:
    """What the released session computes on its way, as it computes it."""

    def __init__(self, duplex: Any) -> None:
        self.mels: list[Array] = []
        self.rows: list[Array] = []
        self.logits: list[Array] = []
        self.chosen: list[int] = []
        self.states: list[Array] = []
        self.conditions: list[Array] = []
        self.code_logits: list[Array] = []
        self.codes: list[Array] = []
        model = duplex.model
        after(duplex.processor, "process_audio_streaming",
              lambda made: self.mels.append(made["audio_features"][0].numpy()))
        after(model, "get_audio_embedding_streaming", lambda made: self.rows.append(made[0][0].numpy().copy()))
        after(model.tts, "generate_chunk", lambda made: self.codes.append(made[0][0, :, 0].numpy()))
        after(duplex, "_convert_results_to_tts_input", lambda made: self.conditions.append(made[0].numpy()))
        model.tts.head_code[0].register_forward_hook(
            lambda head, given, made: self.code_logits.append(made[0, -1].detach().numpy().copy()))
        choose = duplex.decoder.decode

        def decode(logits: torch.Tensor, **options: Any) -> Any:
            self.logits.append(logits[0].numpy().copy())
            choice = choose(logits=logits, **options)
            self.chosen.append(int(choice))
            return choice

        duplex.decoder.decode = decode


def after(target: Any, name: str, record: Callable[[Any], object]) -> None:
    """Have ``record`` called with what ``target``'s method ``name`` returns."""
    plain = getattr(target, name)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        made = plain(*args, **kwargs)
        record(made)
        return made

    setattr(target, name, recorded)


def ragged(name: str, parts: Sequence[Any]) -> dict[str, Array]:
    """Join arrays that differ in length; ``NAME_counts`` are the lengths."""
    return {name: np.concatenate([np.asarray(part) for part in parts]),
            f"{name}_counts": np.array([len(part) for part in parts])}


def interrupt(duplex: Any) -> None:
    """The caller has interrupted: the reply is over, and what was to be spoken of it is dropped."""
    duplex.current_turn_ended = True
    duplex.tts_text_start_pos = 0
    duplex.tts_past_key_values = None
    duplex.tts_current_turn_start_time = None


def record(duplex: Any) -> None:
    """Run the session and write ``hearing.npz``, ``decisions.npz`` and ``talker.npz``."""
    tape = Tape(duplex)
    clips: list[Array] = []
    after(duplex.model, "get_audio_embedding", lambda made: clips.append(torch.cat(made[0]).numpy()))
    duplex.prepare(*SYSTEM, ref_audio=samples(reference()))
    answers, said, states, spoken = [], [], [], []
    pcm = samples(caller())
    for unit in range(UNITS):
        if unit in INTERRUPTED:
            interrupt(duplex)
        told, decided, told_codes = len(duplex.total_ids), len(tape.chosen), len(tape.codes)
        assert duplex.streaming_prefill(audio_waveform=pcm[unit * RATE:(unit + 1) * RATE])["success"]
        done = duplex.streaming_generate(decode_mode="greedy")
        answers.append(duplex.total_ids[told:-1])
        said.append((done["is_listen"], done["end_of_turn"], len(tape.chosen) - decided))
        kept = duplex.total_hidden[-1]
        states.append(np.concatenate([state[0].numpy() for _, state, _ in kept]) if kept else np.zeros((0, 128)))
        if len(tape.codes) > told_codes:
            spoken.append(unit)
        print(unit, "listens" if done["is_listen"] else "speaks", answers[-1], "ends" if done["end_of_turn"] else "",
              done["n_tts_tokens"])
    write("hearing", rows=np.stack(tape.rows), clip=clips[0],
          **ragged("mel", [np.ascontiguousarray(mel[::10].T) for mel in tape.mels]))
    logits = np.stack(tape.logits)
    print("closest choice:", margin(logits))
    encode = partial(duplex.tokenizer.encode, add_special_tokens=False)
    write("decisions", before=np.array(encode(SYSTEM[0])), behind=np.array(encode(SYSTEM[1])),
          listens=np.array([each[0] for each in said]), ends=np.array([each[1] for each in said]),
          decided=np.array([each[2] for each in said]), chosen=np.array(tape.chosen), logits=logits,
          **ragged("answers", answers), **ragged("states", states))
    code_logits = np.stack(tape.code_logits)
    top = np.argsort(-code_logits, axis=1)[:, :8]
    write("talker", units=np.array(spoken), top=top, top_logits=np.take_along_axis(code_logits, top, 1),
          every=code_logits[:, ::128], **ragged("codes", tape.codes), **ragged("conditions", tape.conditions))


def margin(logits: Array) -> float:
    """How much the likeliest tokens are apart at least."""
    two = np.sort(logits, axis=1)[:, -2:]
    return float((two[:, 1] - two[:, 0]).min())


def write(name: str, **arrays: Array) -> None:
    """Write ``NAME.npz``, floats in single precision."""
    small: dict[str, Any] = {key: value.astype(np.float32) if value.dtype.kind == "f" else value
                             for key, value in arrays.items()}
    np.savez_compressed(HERE / f"{name}.npz", **small)


def main() -> None:
    """Make all of it."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    released, checkpoint = (Path(argument).resolve() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        assemble(released, checkpoint, Path(name))
        duplex = open_duplex(released, Path(name))
    record(duplex)


if __name__ == "__main__":
    main()
