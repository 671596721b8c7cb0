"""Predict block C of the size ladder from the smaller sizes, before its runs begin.

    python3 predict.py RESULTS PARAMETERS SEEDS

RESULTS is results/size_ladder, PARAMETERS the size of block C, SEEDS the number of its pairs. Needs
numpy and scipy. Prints, with the least-squares line over log10(parameters) of all pairs of block B:

- V2's gap to softmax at PARAMETERS, each arm at its own lr*, with a 95 % interval for the mean of
  SEEDS new pairs. Its error has three parts: the line, which follows the claim v2_gap_slope (seeds
  that all sizes share are correlated); the held-out text, by groups; and the new pairs, with the
  variance of the largest measured size. Degrees of freedom are Satterthwaite's. It does not cover
  a curved trend, or the error of each lr*.
- lr* of both arms, by a least-squares line of log(lr*) of lr_star.csv over log(parameters).
"""

import csv
import sys
from collections import defaultdict
from math import exp, log, log10, sqrt
from pathlib import Path

import numpy as np
from scipy.stats import t

SEEDS_OF_SIZE = {32: range(201, 217), 64: range(201, 225), 112: range(201, 207)}
ARMS = ("v2", "softmax")
HERE = Path(__file__).parent


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def lr_star():
    rates = {}
    for row in read(HERE / "lr_star.csv"):
        if row["arm"] in ARMS and row["lr_star"]:
            size = float(row["parameters"])
            rates[row["arm"], int(row["model.d_model"])] = size, float(row["lr_star"])
    return rates


def gaps(results, width, rates):
    """Return softmax's parameters and the gap per seed."""
    runs = {}
    for row in read(results / "runs.csv"):
        part, arm, seed = row["dir"].split("/")[0], row["arm"], int(row["seed"])
        if not part.startswith(f"b_d{width}") or part.endswith("_4x"):
            continue
        if arm in ARMS and row["state"] == "finished" and seed in SEEDS_OF_SIZE[width]:
            assert float(row["lr"]) == rates[arm, width][1], row["name"]
            runs[arm, seed] = float(row["val_loss"])
    seeds = [s for s in SEEDS_OF_SIZE[width] if all((arm, s) in runs for arm in ARMS)]
    if len(seeds) < len(SEEDS_OF_SIZE[width]):
        pairs = f"{len(seeds)} of {len(SEEDS_OF_SIZE[width])} pairs"
        sys.exit(f"d_model {width}: has {pairs}; complete block B at this size first")
    return (
        rates["softmax", width][0],
        {s: runs["v2", s] - runs["softmax", s] for s in seeds},
    )


def main():
    results, target, new_pairs = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    rates = lr_star()
    widths = [w for w in SEEDS_OF_SIZE if all((arm, w) in rates for arm in ARMS)]
    measured = {width: gaps(results, width, rates) for width in widths}

    x = np.array([log10(n) for n, by_seed in measured.values() for _ in by_seed])
    spread = ((x - x.mean()) ** 2).sum()
    slopes = {w: (log10(n) - x.mean()) / spread for w, (n, _) in measured.items()}
    weights = {w: 1 / len(x) + (log10(target) - x.mean()) * slopes[w] for w in measured}

    parts = defaultdict(list)
    slope = 0
    for seed in sorted({s for _, by_seed in measured.values() for s in by_seed}):
        sizes = [w for w in measured if seed in measured[w][1]]
        parts[tuple(sizes)].append(sum(weights[w] * measured[w][1][seed] for w in sizes))
        slope += sum(slopes[w] * measured[w][1][seed] for w in sizes)
    estimate = sum(map(sum, parts.values()))
    errors = [(len(each) * np.var(each, ddof=1), len(each) - 1) for each in parts.values()]
    largest = list(measured[max(measured)][1].values())
    errors.append((np.var(largest, ddof=1) / new_pairs, len(largest) - 1))
    variance = sum(v for v, _ in errors)
    degrees = variance**2 / sum(v**2 / d for v, d in errors)
    half = t.ppf(0.975, degrees) * sqrt(variance)

    for width, (n, by_seed) in measured.items():
        each = list(by_seed.values())
        print(f"{n:9,.0f} parameters: gap {np.mean(each):+.4f}, n {len(each)}", end="")
        print(f", SD {np.std(each, ddof=1):.4f}")
    print(f"slope per decade {slope:+.4f}")
    print(f"{target:9,.0f} parameters: predicted gap {estimate:+.4f}", end=" ")
    print(f"({estimate - half:+.4f} to {estimate + half:+.4f})", end="")
    print(f", {new_pairs} pairs, {degrees:.1f} degrees of freedom")
    for arm in ARMS:
        sizes, best = zip(*(rates[arm, w] for w in measured))
        line = np.polyfit(np.log(sizes), np.log(best), 1)
        print(f"lr* of {arm}: {exp(np.polyval(line, log(target))):.3g} (exponent {line[0]:+.2f})")


if __name__ == "__main__":
    main()
