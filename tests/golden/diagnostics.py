#!/usr/bin/env python3
"""Makes diagnostics/<case>.h5: an attention layer, hidden states, and what is measured of them.

Dense maps in PyTorch float64 from the published definitions, head by head and row by row; shares
nothing with the C++ sources. Usage: diagnostics.py [CASE...]
"""

import pathlib
import sys

import h5py
import numpy as np
import torch

import attention
from spec import ModelSpec

# heads, kv_heads: the baseline's, wired as single, pairs (V1) or doubled (V2); split_half is V2's
# ablation. lambda: one number, or drawn a token and head (before the sigmoid, unless raw).
CASES = {
    "softmax_gqa": dict(wiring="single", heads=4, kv_heads=2, seq=80),
    "softmax_window_packed": dict(wiring="single", heads=2, kv_heads=2, seq=70, window=19,
                                  documents=True),
    "softmax_gated": dict(wiring="single", heads=2, kv_heads=1, seq=66, gated=True),
    "softmax1": dict(wiring="single", heads=4, kv_heads=4, seq=64, sinks="zero"),
    "sink_packed": dict(wiring="single", heads=4, kv_heads=2, seq=67, sinks="random",
                        documents=True),
    "v1_gqa": dict(wiring="pairs", heads=8, kv_heads=4, seq=71, lambda_scalar=0.7),
    "v1_large_lambda": dict(wiring="pairs", heads=4, kv_heads=4, seq=65, lambda_scalar=2.3),
    "v2_gqa": dict(wiring="doubled", heads=4, kv_heads=2, seq=72, lambda_std=1.0),
    "v2_raw": dict(wiring="doubled", heads=2, kv_heads=1, seq=64, lambda_std=3.0, raw=True),
    "v2_split_half_sinks": dict(wiring="split_half", heads=4, kv_heads=2, seq=68, lambda_std=1.0,
                                sinks="random", window=23, documents=True),
    "v2_lambda_one_short": dict(wiring="doubled", heads=1, kv_heads=1, seq=5, batch=1,
                                lambda_scalar=1.0),
    "v2_blocks_separately": dict(wiring="doubled", heads=4, kv_heads=2, seq=70, lambda_std=1.0,
                                 documents=True, blocks=(16, 2, True)),
}
HEAD_DIM, FEATURES, BATCH, SEED = 8, 12, 2, 20260301


def routes(case):
    """(query heads, key heads, value heads) and for each output head its maps (q, k, v)."""
    heads, kv = case["heads"], case["kv_heads"]
    group = heads // kv
    if case["wiring"] == "single":
        return (heads, kv, kv), [[(i, i // group, i // group)] for i in range(heads)]
    if case["wiring"] == "pairs":
        return (heads, kv, kv // 2), [[(2 * i + m, 2 * (i // group) + m, i // group)
                                       for m in (0, 1)] for i in range(heads // 2)]
    both = []
    for i in range(heads):
        queries = (i, i + heads) if case["wiring"] == "split_half" else (2 * i, 2 * i + 1)
        both.append([(q, q // (2 * group), q // (2 * group)) for q in queries])
    return (2 * heads, kv, kv), both


def draw(name):
    """Float32 numbers in float64, so that both precisions start from the same."""
    case = CASES[name]
    rng = np.random.default_rng([SEED, list(CASES).index(name)])
    (nq, nk, nv), wired = routes(case)
    batch, seq = case.get("batch", BATCH), case["seq"]
    width = HEAD_DIM * (2 if case["wiring"] == "pairs" else 1)
    x = dict(q=rng.normal(0, 1.2, (batch, seq, nq, HEAD_DIM)),
             k=rng.normal(0, 1.2, (batch, seq, nk, HEAD_DIM)),
             v=rng.normal(0, 1.3, (batch, seq, nv, width)),
             hidden=rng.standard_t(2, (batch, seq, FEATURES)))
    x["k"][:, 0] += 2.5 * rng.normal(0, 1, (batch, nk, HEAD_DIM))
    x["q"][:, :, 0] += 0.8 * x["k"][:, :1, 0]  # the first query head looks at the first token
    if case["wiring"] != "single":
        x["q"][:, :, wired[0][1][0]] *= 0.2
    if "lambda_scalar" in case:
        x["lambda"] = np.array(case["lambda_scalar"])
    if "lambda_std" in case:
        raw = rng.normal(0.3, case["lambda_std"], (batch, seq, len(wired)))
        x["lambda"] = raw if case.get("raw") else 1 / (1 + np.exp(-raw))
    if "sinks" in case:
        x["sinks"] = rng.normal(0, 1, nq) if case["sinks"] == "random" else np.zeros(nq)
    x = {key: np.float32(value).astype(np.float64) for key, value in x.items()}
    if case.get("documents"):
        ends = rng.random((batch, seq)) < 0.06
        starts = np.zeros((batch, seq), np.int32)
        for t in range(1, seq):
            starts[:, t] = np.where(ends[:, t - 1], t, starts[:, t - 1])
        x["document_starts"] = starts
    return case, wired, x


def visible(case, x, b, seq):
    i, j = np.arange(seq)[:, None], np.arange(seq)[None, :]
    mask = j <= i
    if case.get("window"):
        mask &= i - j < case["window"]
    if "document_starts" in x:
        mask &= j >= x["document_starts"][b][:, None]
    return torch.from_numpy(mask)


def keys_read(case, wired, t, masks):
    """For each output head and map (B, T, T): visible keys of the blocks that are read."""
    size, selected, separately = case.get("blocks", (0, 0, False))
    spec = ModelSpec(block_size=size, num_selected_blocks=selected,
                     block_selection="separately" if separately else "averaged")
    heads_read = [[attention.Map(*m) for m in maps] for maps in wired]
    return attention.keys_read(spec, heads_read, t["q"], t["k"], masks)


def layer(case, wired, x):
    """Maps (B, heads, maps, T, T), logits alike, masks (B, T, T), lambda (B, T, heads), context."""
    t = {key: torch.from_numpy(np.asarray(value)) for key, value in x.items()}
    batch, seq = x["q"].shape[:2]
    maps = torch.zeros(batch, len(wired), len(wired[0]), seq, seq, dtype=torch.float64)
    logits = torch.zeros_like(maps)
    masks = torch.stack([visible(case, x, b, seq) for b in range(batch)])
    read = keys_read(case, wired, t, masks)
    lam = None if "lambda" not in x else t["lambda"].expand(batch, seq, len(wired))
    context = torch.zeros(batch, seq, len(wired), x["v"].shape[-1], dtype=torch.float64)
    for b in range(batch):
        for h, heads in enumerate(wired):
            for m, (q, k, v) in enumerate(heads):
                s = t["q"][b, :, q] @ t["k"][b, :, k].T / HEAD_DIM ** 0.5
                logits[b, h, m] = s.masked_fill(~read[h][m][b] & masks[b], 0)  # not read
                s = s.masked_fill(~read[h][m][b], float("-inf"))
                if "sinks" in x:
                    s = torch.cat([s, t["sinks"][q].expand(seq, 1)], 1)
                maps[b, h, m] = torch.softmax(s, -1)[:, :seq]
                weight = 1.0 if m == 0 else -lam[b, :, h:h + 1]
                context[b, :, h] += weight * (maps[b, h, m] @ t["v"][b, :, v])
    if case.get("gated"):
        context = context * 0.4
    context = context.to(torch.float32).to(torch.float64)
    return maps, logits, masks, lam, context


def expected_attention(case, wired, x):
    maps, logits, masks, lam, context = layer(case, wired, x)
    batch, heads, count, seq, _ = maps.shape
    early = min(64, seq)
    if count == 1:
        whole = maps[:, :, 0]
    else:
        whole = (maps[:, :, 0] - lam.permute(0, 2, 1)[..., None] * maps[:, :, 1]).abs()
        total = whole.sum(-1, keepdim=True)
        whole = torch.where(total == 0, whole, whole / total)
    shares = whole / whole.sum(-1, keepdim=True).clamp_min(1e-300)
    entropy = torch.special.entr(shares).sum(-1).mean((0, 2))
    small = (whole < 1e-3)[masks[:, None].expand_as(whole)]  # of the visible pairs
    first = whole[:, :, :early, 0].mean((0, 2))
    rms = context.square().mean(-1).sqrt()  # (B, T, heads)
    out = {
        "context_rms": rms.mean(), "context_rms_max": rms.max(),
        "sink_rate": (first > 0.3).double().mean(), "first_token_mass": first.mean(),
        "entropy": entropy.mean(), "sparsity": small.double().mean(),
        "logit_max": logits[masks[:, None, None].expand_as(logits)].abs().max(),
    }
    if count == 2:
        out |= {"lambda": lam.mean(), "lambda_std": np.std(lam.numpy()), "lambda_min": lam.min(),
                "lambda_max": lam.max()}
        if np.ndim(x["lambda"]) > 0:  # a token and head
            pairs = [np.corrcoef(lam[..., h].flatten(), rms[..., h].flatten())
                     for h in range(heads)]
            out["lambda_rms_correlation"] = np.mean([pair[0, 1] for pair in pairs])
        for m in (0, 1):
            paid = maps[:, :, m, :early, 0].mean((0, 2))
            out[f"map{m + 1}/sink_rate"] = (paid > 0.3).double().mean()
    kept = torch.stack([*maps[0].unbind(1)] + ([whole[0]] if count == 2 else []), 1)
    return {"attn/" + key: value for key, value in out.items()}, kept[..., :early, :early], context


def expected_activations(hidden):
    flat = hidden.reshape(-1, hidden.shape[-1])
    second = np.diag(flat.T @ flat / len(flat))  # of the feature Gram matrix (He et al. 2024)
    magnitudes = np.abs(hidden)
    return {"act/max": magnitudes.max(), "act/max_over_median": magnitudes.max() / np.median(magnitudes),
            "act/kurtosis": np.mean(second ** 2) / np.mean(second) ** 2,
            "act/rms": np.sqrt(np.mean(hidden ** 2))}


def main(names):
    folder = pathlib.Path(__file__).parent / "diagnostics"
    folder.mkdir(exist_ok=True)
    for name in names or CASES:
        case, wired, x = draw(name)
        expected, maps, context = expected_attention(case, wired, x)
        expected |= expected_activations(x["hidden"])
        with h5py.File(folder / f"{name}.h5", "w") as file:
            for key, value in (x | {"context": context.numpy(), "maps": maps.numpy()}).items():
                options = dict(compression=9, shuffle=True) if np.ndim(value) else {}
                data = value if key == "document_starts" else np.float32(value)
                file.create_dataset(key, data=data, **options)
            for key, value in expected.items():
                file[f"expected/{key}"] = np.asarray(value, np.float64)
            if "blocks" in case:
                file["blocks"] = np.int32(case["blocks"])
            file.attrs["metrics"] = np.int64(len(expected))
            file.attrs["wiring"] = case["wiring"]
            for key in ("heads", "kv_heads"):
                file.attrs[key] = np.int64(case[key])
            file.attrs["window"] = np.int64(case.get("window", 0))
            file.attrs["gated"] = np.int64(case.get("gated", False))
        print(name, {key: round(float(expected["attn/" + key]), 3)
                     for key in ("sink_rate", "entropy", "logit_max")})


if __name__ == "__main__":
    main(sys.argv[1:])
