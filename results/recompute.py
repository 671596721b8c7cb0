"""Recompute the primary verdicts of a study from its runs.csv, without difftape.

    python3 recompute.py STUDY CLAIMS      # needs scipy and PyYAML

Prints a line per primary claim of CLAIMS that STUDY/verdicts.csv tests, and fails if the estimate,
its error or the verdict differ.
"""

import csv
import sys
from collections import defaultdict
from math import isclose, log10, sqrt
from pathlib import Path
from statistics import fmean, variance

import yaml
from scipy.stats import t

study, path = Path(sys.argv[1]), Path(sys.argv[2])
claims = yaml.safe_load(path.read_text())
runs = list(csv.DictReader((study / "runs.csv").open(newline="")))
star = {}
if "learning_rates" in claims:
    for row in csv.DictReader((path.parent / claims["learning_rates"]).open(newline="")):
        star[row["arm"], row["model.d_model"]] = float(row["lr_star"])


def seeds_of(items):
    for item in items:
        first, _, last = str(item).partition("..")
        yield from range(int(first), int(last or first) + 1)


def matches(row, where):
    """Return whether each key of the row has one of its values; numbers compare as numbers."""

    def same(a, b):
        try:
            return float(a) == float(b)
        except ValueError:
            return a == str(b)

    lists = {k: v if isinstance(v, list) else [v] for k, v in where.items()}
    return all(any(same(row[k], v) for v in values) for k, values in lists.items())


def value(arm, seed, size, claim):
    """Return the metric of one arm and seed, reduced over its learning rates, and its size."""
    where = dict(claim.get("where", {}), **({"model.d_model": size} if size else {}))
    kept = [r for r in runs if r["arm"] == arm and int(r["seed"]) == seed and matches(r, where)]
    if "lr" in claim:
        names = claim["lr"] if isinstance(claim["lr"], list) else [claim["lr"]]
        factors = [1 if name == "own" else float(name.split(" x ")[0]) for name in names]
        own = {r["model.d_model"]: star[arm, r["model.d_model"]] for r in kept}
        times = {id(r): float(r["lr"]) / own[r["model.d_model"]] for r in kept}
        kept = [r for r in kept if any(isclose(times[id(r)], f, rel_tol=1e-5) for f in factors)]
    kept.sort(key=lambda row: float(row["lr"]))
    over_rates = claim["metric"] in ("lr_sensitivity", "lr_penalty")
    values = [float(r["final_loss" if over_rates else claim["metric"]]) for r in kept]
    if claim["metric"] == "lr_penalty":
        return values[-1] - values[0], float(kept[0]["parameters"])
    if claim["metric"] == "lr_sensitivity":
        return fmean(values) - min(values), float(kept[0]["parameters"])
    return fmean(values), float(kept[0]["parameters"])


def estimate(claim):
    """Return the estimate, its standard error and its degrees of freedom."""
    seeds = claim.get("seeds", claims.get("seeds"))
    sizes = seeds if isinstance(seeds, dict) else {None: seeds}
    gaps = {}  # by size: by seed
    place = {}  # by size: log10 of the parameters of the reference
    for size, items in sizes.items():
        pairs = {
            s: (value(claim["arm"], s, size, claim), value(claim["reference"], s, size, claim))
            for s in seeds_of(items)
        }
        gaps[size] = {s: a[0] - b[0] for s, (a, b) in pairs.items()}
        place[size] = log10(next(iter(pairs.values()))[1][1])
    counts = {size: len(each) for size, each in gaps.items()}
    weights = {size: 1 / len(sizes) / n for size, n in counts.items()}
    if "slope_over" in claim:
        middle = sum(n * place[s] for s, n in counts.items()) / sum(counts.values())
        squares = sum(n * (place[s] - middle) ** 2 for s, n in counts.items())
        weights = {s: (place[s] - middle) / squares for s in sizes}
    parts = defaultdict(list)  # contributions of seeds, by the sizes at which they ran
    for seed in {s for each in gaps.values() for s in each}:
        ran = tuple(size for size in sizes if seed in gaps[size])
        parts[ran].append(sum(weights[size] * gaps[size][seed] for size in ran))
    errors = [(len(each) * variance(each), len(each) - 1) for each in parts.values()]
    total = sum(v for v, _ in errors)
    degrees = total**2 / sum(v**2 / d for v, d in errors)
    return sum(map(sum, parts.values())), sqrt(total), degrees


def verdict(claim, found, error, degrees, margin, level):
    """Return the word: where one interval lies."""
    half, one_sided = (t.ppf(1 - p, degrees) * error for p in (level / 2, level))
    within = abs(found) + one_sided <= margin
    if claim["expect"] in ("lower", "higher"):
        if abs(found) > half:
            right = (found < 0) == (claim["expect"] == "lower")
            return "supported" if right else "contradicted"
        return "equivalent" if within else "inconclusive"
    if claim["expect"] == "equivalent":
        beyond = abs(found) - half > margin
        return "supported" if within else "contradicted" if beyond else "inconclusive"
    if found + one_sided <= margin:
        return "supported"
    return "contradicted" if found - one_sided > margin else "inconclusive"


primaries = {k: c for k, c in claims["claims"].items() if c.get("endpoint") == "primary"}
checked = 0
for row in csv.DictReader((study / "verdicts.csv").open(newline="")):
    if row["claim"] not in primaries or row["verdict"] == "not tested":
        continue
    claim = primaries[row["claim"]]
    found, error, degrees = estimate(claim)
    level = claims.get("alpha", 0.05) / len(primaries)
    word = verdict(claim, found, error, degrees, float(row["margin"] or "nan"), level)
    print(f"{row['claim']}: {found:+.6f}, error {error:.6f}, {degrees:.2f} degrees, {word}")
    same = isclose(found, float(row["difference"]), rel_tol=1e-9, abs_tol=1e-12)
    same = same and isclose(error, float(row["error"]), rel_tol=1e-9)
    assert same and word == row["verdict"], f"verdicts.csv has {row}"
    checked += 1
assert checked > 0, "verdicts.csv tests no primary claim"
