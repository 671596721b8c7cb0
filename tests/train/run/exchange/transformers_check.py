#!/usr/bin/env python3
"""Checks `difftape export` and `import` with the transformers package, and writes the models that the
tests read.

  transformers_check.py check DIFFTAPE [CASE...]  trains a tiny run of each case, exports it and
      compares logits in double (DIFFTAPE-f64) and single precision, greedy text over a KV cache,
      and reimported weights. For models of documents it runs the code of the exported README.
      Exits 1 above the tolerance, which is the rounding of single precision
      if that is larger, for example with lambda 1.
  transformers_check.py make                     writes llama/, mixtral/ and diffllama/ of this folder
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch
import transformers
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).parent
TOLERANCE = 1e-5  # of the largest logit
CASES = {
    "softmax": {},
    "softmax_gqa_tied": {"num_kv_heads": 2, "tie_word_embeddings": True, "rope_theta": 500},
    "softmax_head_dim": {"head_dim": 16, "norm_eps": 1e-3},
    "softmax_2h_gqa": {"attention.kind": "softmax_2h", "num_kv_heads": 2},
    "diff_v1": {"attention.kind": "diff_v1"},
    "diff_v1_gqa_tied": {"attention.kind": "diff_v1", "num_kv_heads": 2, "tie_word_embeddings": True},
    "diff_v1_gqa_wide": {"attention.kind": "diff_v1", "num_kv_heads": 4, "head_dim": 10},
    "diff_v2": {"attention.kind": "diff_v2"},
    "diff_v2_gqa_tied": {"attention.kind": "diff_v2", "num_kv_heads": 2, "tie_word_embeddings": True},
    "diff_v2_mqa": {"attention.kind": "diff_v2", "num_kv_heads": 1},
    "diff_v2_split_half": {"attention.kind": "diff_v2", "attention.pairing": "split_half",
                           "num_kv_heads": 4},
    "diff_v2_raw": {"attention.kind": "diff_v2", "attention.lambda": "raw"},
    "softmax_linear": {"rope_scaling": {"rope_type": "linear", "factor": 2.5}},
    "softmax_ntk": {"rope_scaling": {"rope_type": "ntk", "factor": 4}, "rope_theta": 100},
    "diff_v1_yarn": {"attention.kind": "diff_v1",
                     "rope_scaling": {"rope_type": "yarn", "factor": 4, "original_seq_len": 16}},
    "diff_v2_yarn": {"attention.kind": "diff_v2", "num_kv_heads": 2, "head_dim": 16,
                     "rope_scaling": {"rope_type": "yarn", "factor": 2, "attention_factor": 1.2}},
    "mixtral_gqa": {"num_kv_heads": 2, "moe": {"num_experts": 4, "num_experts_per_tok": 2,
                                               "moe_intermediate_size": 40,
                                               "router_aux_loss_coef": 0.01}},
    "diff_v2_none": {"attention.kind": "diff_v2", "attention.lambda": "none", "match_params": True},
}
DOCUMENTS = {
    "softmax_documents": {"num_kv_heads": 2},
    "diff_v1_documents": {"attention.kind": "diff_v1"},
    "diff_v2_documents": {"attention.kind": "diff_v2", "num_kv_heads": 2},
}
MODEL = {"d_model": 48, "num_layers": 3, "num_heads": 8, "d_ff": 72, "max_seq_len": 64}


def difftape(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def train(program, run, model, more=None):
    settings = (more or {}) | {f"model.{key}": value for key, value in (MODEL | model).items()}
    settings |= {"data.seq_len": 64, "data.batch_size": 8, "train.steps": 40, "optim.lr": 0.02,
                 "optim.warmup_steps": 5, "train.eval_interval": 0, "log.diagnostics_interval": 0}
    config = run.parent / "config.yaml"
    config.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items()))
    difftape(program, "train", config, "--out", run)


def logits_of(program, model, batch, out):
    difftape(program, "dump-grads", model, "--batch", batch, "--out", out)
    with h5py.File(out) as file:
        return file["logits"][:]


def opened(directory, dtype=None):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        directory, trust_remote_code=True, dtype=dtype,
        experts_implementation="eager")  # the default has no double precision
    return model.eval()


def difference(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max())


def weights_of(checkpoint):
    with h5py.File(checkpoint) as file:
        return {name: file["model"][name][:] for name in file["model"]}


def same_weights(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@torch.no_grad()
def check(program, name, folder):
    """Returns relative differences of logits, the difference of f32 and f64, and passed checks."""
    run, batch = folder / "run", folder / "tokens.h5"
    train(program, run, CASES[name])
    tokens = np.random.default_rng(1).integers(0, 256, (3, 65), dtype=np.int32)
    with h5py.File(batch, "w") as file:
        file["tokens"] = tokens
    ours, precise = (logits_of(each, run, batch, folder / "grads.h5")
                     for each in (program, f"{program}-f64"))
    trained = weights_of(run / "checkpoints/step-00000040.h5")

    difftape(program, "export", run, "--format", "hf", "--out", folder / "hf")
    model = opened(folder / "hf")
    inputs = torch.from_numpy(tokens[:, :-1].astype(np.int64))
    theirs = model(inputs).logits.numpy()
    theirs_precise = opened(folder / "hf", torch.float64)(inputs).logits.numpy()
    errors = {"f64": difference(theirs_precise, precise), "f32": difference(theirs, ours)}
    rounding = difference(theirs, theirs_precise) + difference(ours, precise)

    prompt = inputs[:1, :8]
    written = model.generate(prompt, do_sample=False, max_new_tokens=50, use_cache=True)
    own = json.loads(difftape(program, "generate", run, "--temperature", 0, "--max-tokens", 50,
                              "--tokens", ",".join(map(str, prompt[0].tolist())), "--json"))
    facts = {"text": written[0, 8:].tolist() == own["tokens"]}

    difftape(program, "import", folder / "hf", "--out", folder / "hf.h5")
    facts["import hf"] = same_weights(weights_of(folder / "hf.h5"), trained)
    difftape(program, "export", run, "--format", "safetensors", "--out", folder / "m.safetensors")
    facts["safetensors"] = same_weights(load_file(folder / "m.safetensors"), trained)
    difftape(program, "import", folder / "m.safetensors", "--out", folder / "m.h5")
    facts["import safetensors"] = same_weights(weights_of(folder / "m.h5"), trained)

    model.save_pretrained(folder / "saved")
    difftape(program, "import", folder / "saved", "--out", folder / "saved.h5")
    saved = logits_of(program, folder / "saved.h5", batch, folder / "saved_grads.h5")
    errors["saved by transformers"] = difference(saved, ours)
    facts |= {which: error <= max(TOLERANCE, rounding if which == "f32" else 0)
              for which, error in errors.items()}
    return errors, rounding, facts


@torch.no_grad()
def check_documents(program, name, folder):
    """Checks the code of the exported README that keeps the documents of a row apart."""
    run, batch, end = folder / "run", folder / "tokens.h5", 10
    train(program, run, DOCUMENTS[name], {"data.eos_token_id": end})
    tokens = np.random.default_rng(1).integers(11, 256, (3, 65), dtype=np.int32)
    for row, ends in enumerate(([7, 8, 40], [0, 63], [30])):
        tokens[row, ends] = end
    with h5py.File(batch, "w") as file:
        file["tokens"] = tokens
    ours = logits_of(program, run, batch, folder / "grads.h5")
    difftape(program, "export", run, "--format", "hf", "--out", folder / "hf")
    model = opened(folder / "hf")
    inputs = torch.from_numpy(tokens[:, :-1].astype(np.int64))
    code = (folder / "hf/README.md").read_text().split("```python\n")[-1].split("```")[0]
    example, code = code.split("\n", 1)
    assert example.startswith("tokens = "), example
    names = {"torch": torch, "model": model, "tokens": inputs}
    exec(code, names)
    errors = {"README": difference(names["logits"].numpy(), ours)}
    across = difference(model(inputs).logits.numpy(), ours)
    facts = {"README": errors["README"] <= TOLERANCE, "documents matter": across > 100 * TOLERANCE}
    return errors, 0.0, facts


def run_checks(program, names):
    failed = 0
    for name in names or [*CASES, *DOCUMENTS]:
        with tempfile.TemporaryDirectory() as folder:
            which = check_documents if name in DOCUMENTS else check
            errors, rounding, facts = which(program, name, pathlib.Path(folder))
        wrong = [fact for fact, holds in facts.items() if not holds]
        failed += bool(wrong)
        numbers = ", ".join(f"{which} {error:.1e}" for which, error in errors.items())
        print(f"{name:<20} {numbers}, rounding {rounding:.1e}: "
              f"{'FAILED ' + ', '.join(wrong) if wrong else 'ok'}", flush=True)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}: "
          f"{failed} failed, tolerance {TOLERANCE}")
    return 1 if failed else 0


@torch.no_grad()
def make(name, config, dtype):
    """Saves a model with random weights with transformers, and its logits."""
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter_name, parameter in model.named_parameters():
        is_norm = parameter_name.endswith("norm.weight")
        parameter.copy_(is_norm + torch.randn_like(parameter) / 4)
    model = model.to(dtype)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        folder, target = pathlib.Path(folder), HERE / name
        target.mkdir(exist_ok=True)
        for file in ("config.json", "model.safetensors"):
            (target / file).write_bytes((folder / file).read_bytes())
        tokens = np.random.default_rng(1).integers(0, config.vocab_size, (2, 21), dtype=np.int32)
        logits = opened(folder, torch.float32)(torch.from_numpy(tokens[:, :-1].astype(np.int64)))
    with h5py.File(target / "logits.h5", "w") as file:
        file["tokens"] = tokens
        file["logits"] = logits.logits.numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("check", "make"))
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    if arguments.command == "check":
        sys.exit(run_checks(arguments.words[0], arguments.words[1:]))
    sizes = dict(vocab_size=40, hidden_size=24, intermediate_size=20, num_hidden_layers=2,
                 num_attention_heads=8, num_key_value_heads=4, head_dim=6,
                 max_position_embeddings=32, rope_theta=300.0)
    make("llama", transformers.LlamaConfig(**sizes), torch.bfloat16)
    make("mixtral", transformers.MixtralConfig(**sizes, num_local_experts=3, num_experts_per_tok=2,
                                               sliding_window=None), torch.float32)
    make("diffllama", transformers.DiffLlamaConfig(**sizes, rms_norm_eps=1e-5), torch.float32)


if __name__ == "__main__":
    main()
