"""Print the exploratory tables of docs/results.md from the committed runs.

    python3 logits.py RESULTS

RESULTS is the folder results/. Needs Python alone. Runs are paired by seed. Intervals are 95 %
t-intervals: of differences, or of logarithms of ratios, whose means are geometric.
"""

import csv
import sys
from collections import defaultdict
from fnmatch import fnmatch
from math import exp, log, sqrt
from pathlib import Path

T = {1: 12.706, 3: 3.1824, 5: 2.5706, 11: 2.2010, 15: 2.1314, 23: 2.0687}  # 97.5 % quantiles
# Files of results/, and parts of the study in them: patterns of the column `dir`.
LADDER = "size_ladder/runs.csv"
SIZES = {
    "0.067": (LADDER, "b_d32/*"),
    "0.23": (LADDER, "b_d64_[1-4]/*"),
    "0.67": (LADDER, "b_d112_*"),
}
FLOPS = (0.645 / 0.547, 1.886 / 1.696, 4.849 / 4.516)  # of V2 / softmax, per token: difftape plan
E = ("conditions/*.csv", "e_*")
EXPERTS = ("experts/runs.csv", "*")
RUNS = ("runs", "lower_rates")
# Name, parts, arms, rate, and softmax's lr* by lr_star.csv, experts/lr_optimum.csv and question 7.
AT_ONE_RATE = [
    ("0.067 M", (LADDER, "a1_*"), "v2", "softmax", 0.032, 0.0123),
    ("0.23 M", (LADDER, "a2_*"), "v2", "softmax", 0.016, 0.00593),
    ("0.67 M", (LADDER, "a3_*"), "v2", "softmax", 0.008, 0.00324),
    ("experts study, dense, 0.067 M", EXPERTS, "v2", "softmax", 0.032, 0.0113),
    ("experts study, with experts", EXPERTS, "v2_experts", "softmax_experts", 0.032, 0.0113),
    ("0.23 M, GPT-2's initialization", E, "v2", "softmax", 0.016, 0.0020),
]


def read(part):
    files = [path for path in Path(sys.argv[1]).glob(part[0]) if path.stem in RUNS]
    rows = [row for file in files for row in csv.DictReader(file.open(newline=""))]
    return [row for row in rows if row["state"] == "finished" and fnmatch(row["dir"], part[1])]


def of(rows, arm, column, rate=None):
    """Return the column by seed."""
    chosen = [r for r in rows if r["arm"] == arm and (rate is None or float(r["lr"]) == rate)]
    return {row["seed"]: float(row[column]) for row in chosen}


def mean(values):
    return sum(values) / len(values)


def paired(rows, arm, reference, column, rate=None, ratio=False, digits=3):
    """Return the text "mean (low to high)", and the number of pairs."""
    a, b = of(rows, arm, column, rate), of(rows, reference, column, rate)
    each = [log(a[s] / b[s]) if ratio else a[s] - b[s] for s in a.keys() & b.keys()]
    n, middle = len(each), mean(each)
    half = T[n - 1] * sqrt(sum((x - middle) ** 2 for x in each) / (n - 1) / n)
    ends = middle, middle - half, middle + half
    text = [f"{exp(x):.2f}" if ratio else f"{x:+.{digits}f}" for x in ends]
    return f"{text[0]} ({text[1]} to {text[2]})", n


def at_one_rate():
    for name, parts, arm, reference, rate, best in AT_ONE_RATE:
        rows = read(parts)
        loss, n = paired(rows, arm, reference, "val_loss", rate)
        logit, _ = paired(rows, arm, reference, "attention_logit", rate, ratio=True)
        print(f"| {name} | {rate}, {rate / best:.1f} | {n} | {loss} | {logit} |")


def by_rate():
    rows = read((LADDER, "a2_*"))
    for rate in (0.002, 0.004, 0.008, 0.016, 0.032):
        cells = [f"{rate}"]
        for arm in ("v2_no_lambda", "v2", "softmax", "v1", "gated"):
            logit = exp(mean([log(x) for x in of(rows, arm, "attention_logit", rate).values()]))
            loss = mean(list(of(rows, arm, "val_loss", rate).values()))
            cells.append(f"{logit:,.0f}, {loss:.3f}")
        print("| " + " | ".join(cells) + " |")


def at_own_rate():
    quantities = [
        ("largest attention logit", "v2", "attention_logit", True),
        ("largest hidden state", "v2", "hidden_state", True),
        ("kurtosis of the hidden states", "v2", "kurtosis", True),
        ("rounding error of attention in bf16", "v2", "rounding_error", True),
        ("median gradient norm", "v2", "grad_norm_median", True),
        ("median gradient norm, V1 / softmax", "v1", "grad_norm_median", True),
        ("attention entropy, difference in nats", "v2", "attention_entropy", False),
    ]
    for name, arm, column, ratio in quantities:
        runs = [read(parts) for parts in SIZES.values()]
        cells = [paired(r, arm, "softmax", column, ratio=ratio, digits=2)[0] for r in runs]
        print(f"| {name} | " + " | ".join(cells) + " |")


def equal_flops():
    """Print what softmax gains if it trains longer, by as many FLOPs as V2 has more."""
    d, g = read(("training_length/runs.csv", "*")), read(("conditions/runs.csv", "g_2/*"))

    def loss(rows, **where):
        kept = [r for r in rows if all(float(r[k]) == v for k, v in where.items())]
        return mean(list(of(kept, "softmax", "val_loss").values()))

    a1, b = loss(read((LADDER, "a1_*")), lr=0.008), loss(read(SIZES["0.23"]))
    short = (loss(d, steps=572) - b) / log(2286 / 572)
    longer = (b - loss(d, steps=9143)) / log(9143 / 2286)
    small = (a1 - loss(g)) / log(6528 / 653)
    print(f"nats/byte per e-fold of tokens: {small:.3f}; 0.23 M: {short:.3f}, {longer:.3f}")
    slopes = [(small, small)] + 2 * [(longer, (short + longer) / 2)]
    for size, flops, (low, high) in zip(SIZES, FLOPS, slopes):
        print(f"{size} M: {low * log(flops):.3f} to {high * log(flops):.3f}", end="; ")
        print("V2 - softmax", *paired(read(SIZES[size]), "v2", "softmax", "val_loss"))


def loss_spikes():
    """Print which part of the variance of the counts the seed and the arm explain."""
    for parts in [*SIZES.values(), (LADDER, "b_d32_4x/*"), (LADDER, "b_d64_4x/*")]:
        rows = read(parts)
        counts = [float(row["loss_spikes"]) for row in rows]
        middle, explained = mean(counts), {}
        for key in ("seed", "arm"):
            groups = defaultdict(list)
            for row, count in zip(rows, counts):
                groups[row[key]].append(count)
            groups = groups.values()
            explained[key] = sum(len(g) * (mean(g) - middle) ** 2 for g in groups)
        total = sum((x - middle) ** 2 for x in counts)
        print(parts[1], {key: f"{100 * part / total:.0f} %" for key, part in explained.items()})


if __name__ == "__main__":
    for table in (at_one_rate, by_rate, at_own_rate, equal_flops, loss_spikes):
        print(f"\n{table.__name__}")
        table()
