"""Reference values of tests/train/stats/interval_test.cpp, from statsmodels and scipy. Run it; the test holds
what it prints.

    /tmp/golden/bin/python size_trend.py        # needs statsmodels
"""
import numpy
import pandas
import statsmodels.api as sm
from scipy import stats

SIZES = [67000.0, 230000.0, 670000.0]
# Differences in loss. EVERYWHERE: eight seeds, each at all three sizes; APART: other seeds at each size.
EVERYWHERE = [[-0.0412, -0.0350, -0.0521, -0.0298, -0.0467, -0.0389, -0.0445, -0.0333],
              [-0.0301, -0.0288, -0.0352, -0.0297, -0.0361, -0.0270, -0.0338, -0.0312],
              [-0.0189, -0.0243, -0.0201, -0.0312, -0.0222, -0.0154, -0.0265, -0.0301]]
APART = [[-0.0412, -0.0350, -0.0521, -0.0298, -0.0467],
         [-0.0301, -0.0188, -0.0352, -0.0297, -0.0361, -0.0270, -0.0338],
         [-0.0189, -0.0343, -0.0101, -0.0412]]


def frame(gaps, shared):
    rows = [(numpy.log10(size), gap, j if shared else 100 * i + j)
            for i, (size, of_size) in enumerate(zip(SIZES, gaps)) for j, gap in enumerate(of_size)]
    return pandas.DataFrame(rows, columns=["x", "gap", "seed"])


def show(name, *values):
    print(name, " ".join(f"{value:.12g}" for value in values))


# A line for each seed, with random intercept and slope: with all seeds at all sizes REML gives the mean slope the
# error of the mean of the lines' slopes.
data = frame(EVERYWHERE, True)
data["x"] -= data["x"].mean()
fit = sm.MixedLM.from_formula("gap ~ x", data, groups="seed", re_formula="~x").fit(reml=True, gtol=1e-12, maxiter=5000)
assert fit.converged
show("slope, error (MixedLM, REML)", fit.params["x"], fit.bse["x"])
per_seed = [numpy.polyfit(numpy.log10(SIZES), gaps, 1)[0] for gaps in zip(*EVERYWHERE)]
show("slope, error (a line for each seed)", numpy.mean(per_seed), stats.sem(per_seed))

# Other seeds at each size, each size with its own variance: the slope of ordinary least squares, as a contrast of
# the sizes' means whose errors weighted least squares knows.
data = frame(APART, False)
design = sm.add_constant(data["x"])
slope = sm.OLS(data["gap"], design).fit().params["x"]
cells = pandas.get_dummies(data["x"]).astype(float)
counts = cells.sum().to_numpy()
weights = data.groupby("x")["gap"].transform(lambda gaps: 1 / gaps.var())
deviation = numpy.log10(SIZES) - data["x"].mean()
contrast = counts * deviation / (counts * deviation**2).sum()
test = sm.WLS(data["gap"], cells, weights=weights).fit().t_test(contrast)
show("slope, effect, error (WLS)", slope, test.effect[0], test.sd[0][0])

# The mean over two sizes is half of a difference whose second sample has the other sign.
first, second = numpy.array(APART[0]), numpy.array(APART[1])
welch = stats.ttest_ind(first, -second, equal_var=False)
error = (first.mean() + second.mean()) / 2 / welch.statistic
show("mean, error, degrees, p (Welch)", (first.mean() + second.mean()) / 2, error, welch.df, welch.pvalue)
