"""Reference values of tests/train/stats, from definitions alone: mpmath for Student's t (through the incomplete
beta function), numpy for quantiles, bootstrap-free sums by hand. Run it; the tests hold what it prints.

    python tests/train/stats/reference.py        # needs numpy and mpmath
"""
import mpmath
import numpy

mpmath.mp.dps = 30


def two_sided(t, degrees):
    """P(|T| >= |t|) = I_x(degrees / 2, 1 / 2) at x = degrees / (degrees + t^2)."""
    x = mpmath.mpf(degrees) / (degrees + mpmath.mpf(t) ** 2)
    return mpmath.betainc(mpmath.mpf(degrees) / 2, mpmath.mpf(1) / 2, 0, x, regularized=True)


def quantile_975(degrees):
    return mpmath.findroot(lambda t: two_sided(t, degrees) - mpmath.mpf("0.05"), 2.5)


def paired(a, b):
    d = [mpmath.mpf(str(x)) - mpmath.mpf(str(y)) for x, y in zip(a, b)]
    n = len(d)
    mean = sum(d) / n
    error = mpmath.sqrt(sum((x - mean) ** 2 for x in d) / (n - 1) / n)
    return mean, quantile_975(n - 1) * error, two_sided(mean / error, n - 1)


def holm(p):
    order, largest, result = sorted(range(len(p)), key=lambda i: p[i]), 0.0, [0.0] * len(p)
    for rank, i in enumerate(order):
        largest = max(largest, (len(p) - rank) * p[i])
        result[i] = min(largest, 1.0)
    return result


def show(name, *values):
    print(name, *(mpmath.nstr(value, 12) for value in values))


show("two_sided(2, 3), (-2.5, 7), (0, 4), (30, 2)", two_sided(2, 3), two_sided(-2.5, 7), two_sided(0, 4), two_sided(30, 2))
# "Student" (1908), table of Cushny and Peebles: additional hours of sleep by two drugs.
SLEEP = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
show("sleep: mean, half width, p", *paired(*SLEEP))
show("three seeds", *paired([2.31, 2.305, 2.32], [2.33, 2.34, 2.335]))
print("holm", holm([0.01, 0.04, 0.03, 0.005]), holm([0.5, 0.6, 0.02, 0.02]))
steps = numpy.array([10.0, 20.0, 40.0, 50.0])
norms = numpy.array([1.0, 1.7, 2.9, 3.1])
print("growth", repr(float(numpy.polyfit(numpy.log(steps), numpy.log(norms), 1)[0])))
values = [3.1, -2.0, 7.5, 0.25, 4.0]
print("quantiles", [float(numpy.quantile(values, q)) for q in (0.025, 0.1, 0.5, 0.975)])
for rates, means in (([1e-3, 2e-3, 8e-3], [1.8, 1.5, 1.6]), ([4e-3, 8e-3, 1.6e-2, 3.2e-2], [1.736, 1.652, 1.644, 1.693])):
    lowest = int(numpy.argmin(means))
    near = slice(lowest - 1, lowest + 2)
    a, b, c = numpy.polyfit(numpy.log(rates[near]), means[near], 2)
    print("lr_optimum", repr(float(numpy.exp(-b / (2 * a)))), repr(float(c - b * b / (4 * a))))
