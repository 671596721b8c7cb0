#include "train/app/analyze/snr.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/parallel.h"
#include "core/random.h"
#include "train/run/records/h5.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

using Logs = Eigen::Array<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void require(bool holds, const std::string& message) {
  if (!holds) throw UsageError(message);
}

/// ln of the signal-to-noise ratios, (lambdas, trials).
Logs measure_logs(const SnrRequest& request, const std::vector<double>& lambdas, double noise,
                  double correlation) {
  Logs logs(static_cast<Index>(lambdas.size()), request.trials);
  parallel_for(request.trials, [&](Index trial) {
    const TwoMaps maps = draw_maps(request.needle, noise, correlation,
                                   static_cast<std::uint64_t>(request.seed), trial);
    Eigen::ArrayXd difference(request.needle.tokens);
    for (Index i = 0; i < logs.rows(); ++i) {
      difference = maps.first - lambdas[static_cast<size_t>(i)] * maps.second;
      logs(i, trial) = std::log(signal_to_noise(difference));
    }
  });
  return logs;
}

SnrPoint measure_point(const SnrRequest& request, const std::vector<double>& lambdas, double noise,
                       double correlation) {
  const Logs logs = measure_logs(request, lambdas, noise, correlation);
  SnrPoint point{correlation, noise, {}, {}, 0};
  std::vector<double> gains(static_cast<size_t>(request.trials));
  for (Index i = 0; i < logs.rows(); ++i) {
    const std::span<const double> row(logs.row(i).data(), gains.size()),
        softmax(logs.row(0).data(), gains.size());
    std::ranges::transform(row, softmax, gains.begin(), std::minus<>());
    point.snr.push_back(stats::geometric_mean(row));
    point.gain.push_back(stats::geometric_mean(gains));
    const auto at = static_cast<size_t>(i);
    if (point.snr[at].value > point.snr[point.best].value) point.best = at;
  }
  return point;
}

Crossover crossover_of(const SnrRequest& request, std::span<const SnrPoint> points) {
  std::vector<double> softmax, differential;
  for (const SnrPoint& point : points) {
    softmax.push_back(point.snr.front().value);
    differential.push_back(point.snr[point.best].value);
  }
  return {points.front().correlation, find_crossover(request.noise, softmax, request.threshold),
          find_crossover(request.noise, differential, request.threshold)};
}

}  // namespace

Eigen::ArrayXd softmax_row(const Eigen::ArrayXd& scores) {
  Eigen::ArrayXd weights = (scores - scores.maxCoeff()).exp();
  weights /= weights.sum();
  return weights;
}

double signal_to_noise(const Eigen::ArrayXd& weights) {
  return std::abs(weights[0]) / weights.tail(weights.size() - 1).abs().mean();
}

TwoMaps draw_maps(const Needle& needle, double noise, double correlation, std::uint64_t seed,
                  Index trial) {
  const RandomStream shared(seed, "snr/first map"), own(seed, "snr/second map");
  const double rest = std::sqrt(1 - correlation * correlation);
  Eigen::ArrayXd first(needle.tokens), second(needle.tokens);
  first[0] = needle.signal;
  second[0] = needle.second_signal;
  for (Index j = 1; j < needle.tokens; ++j) {
    const auto index = static_cast<std::uint64_t>(trial * needle.tokens + j);
    const double n = shared.normal(index);
    first[j] = noise * n;
    second[j] = noise * (correlation * n + rest * own.normal(index));
  }
  return {softmax_row(first), softmax_row(second)};
}

void require_measurable(const SnrRequest& r) {
  const auto within = [](double low, double high) {
    return [=](double x) { return x >= low && x <= high; };  // false for NaN
  };
  constexpr double kLargest = 100;
  require(r.needle.tokens >= 2 && r.needle.tokens <= 1 << 20,
          fmt::format("--tokens is {}; need 2 to 1048576: the needle and others", r.needle.tokens));
  require(within(-kLargest, kLargest)(r.needle.signal) &&
              within(-kLargest, kLargest)(r.needle.second_signal),
          "--signal and --second-signal are scores; need -100 to 100");
  require(!r.noise.empty() && std::ranges::all_of(r.noise, within(0, kLargest)) &&
              std::ranges::adjacent_find(r.noise, std::greater_equal<>()) == r.noise.end(),
          "--noise lists standard deviations of scores; need 0 to 100, ascending");
  require(!r.correlation.empty() && std::ranges::all_of(r.correlation, within(0, 1)),
          "--correlation lists what the noise of the two maps shares; need 0 to 1");
  require(r.lambdas >= 2 && r.lambdas <= 1001,
          fmt::format("--lambdas is {}; need 2 to 1001 values from 0 to 1", r.lambdas));
  require(r.trials >= 2 && r.trials <= 100000,
          fmt::format("--trials is {}; need 2 to 100000: one trial has no interval", r.trials));
  require(r.seed >= 0, fmt::format("--seed is {}; need an integer from 0", r.seed));
  require(std::isfinite(r.threshold) && r.threshold > 0,
          fmt::format("--threshold is {}; need a ratio above 0", r.threshold));
}

SnrResult measure_snr(const SnrRequest& request) {
  require_measurable(request);
  SnrResult result{request, {}, {}, {}};
  for (Index i = 0; i < request.lambdas; ++i) {
    result.lambdas.push_back(static_cast<double>(i) / static_cast<double>(request.lambdas - 1));
  }
  for (const double correlation : request.correlation) {
    const size_t first = result.points.size();
    for (const double noise : request.noise) {
      result.points.push_back(measure_point(request, result.lambdas, noise, correlation));
    }
    result.crossovers.push_back(crossover_of(request, std::span(result.points).subspan(first)));
  }
  return result;
}

double find_crossover(std::span<const double> noise, std::span<const double> ratios,
                      double threshold) {
  size_t below = ratios.size();  // the first of the amplitudes from which on all are below
  while (below > 0 && ratios[below - 1] < threshold) --below;
  if (below == ratios.size()) return kInfinity;
  if (below == 0) return -kInfinity;
  const double high = std::log(ratios[below - 1] / threshold),
               low = std::log(ratios[below] / threshold);
  const double share = std::isfinite(high) && std::isfinite(low) ? high / (high - low) : 1;
  return noise[below - 1] + share * (noise[below] - noise[below - 1]);
}

namespace {

/// Four digits that matter: "54.60", "1234", "1.2e+06".
std::string number(double value) {
  if (std::isnan(value)) return "-";
  const double size = std::abs(value);
  if (std::isinf(value) || size >= 1e6 || (size > 0 && size < 1e-2))
    return fmt::format("{:.1e}", value);
  return fmt::format("{:.{}f}", value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

std::string with_interval(const stats::Ratio& ratio) {
  if (std::isnan(ratio.low)) return number(ratio.value);
  return fmt::format("{} ({}-{})", number(ratio.value), number(ratio.low), number(ratio.high));
}

std::string crossing(double noise, const std::vector<double>& measured) {
  if (noise > measured.back()) return fmt::format("above {}", measured.back());
  if (noise < measured.front()) return fmt::format("below {}", measured.front());
  return fmt::format("{:.2f}", noise);
}

system::Table by_noise(const SnrResult& result) {
  system::Table table{{{"", "correlation"},
                       {"", "noise"},
                       {"softmax", "SNR (95 %)"},
                       {"lambda 1", "SNR (95 %)"},
                       {"best lambda", "lambda"},
                       {"best lambda", "SNR (95 %)"},
                       {"best lambda", "gain over softmax (95 %)"}},
                      {}};
  for (const SnrPoint& p : result.points) {
    table.rows.push_back({fmt::format("{}", p.correlation), fmt::format("{}", p.noise),
                          with_interval(p.snr.front()), with_interval(p.snr.back()),
                          fmt::format("{:.3g}", result.lambdas[p.best]),
                          with_interval(p.snr[p.best]), with_interval(p.gain[p.best])});
  }
  return table;
}

system::Table by_correlation(const SnrResult& result) {
  const std::string below = fmt::format("SNR below {} from noise", result.request.threshold);
  system::Table table{{{"", "correlation"},
                       {below, "softmax"},
                       {below, "best lambda"},
                       {"largest gain", "times"},
                       {"largest gain", "noise"},
                       {"largest gain", "lambda"}},
                      {}};
  const std::vector<double>& noise = result.request.noise;
  for (size_t c = 0; c < result.crossovers.size(); ++c) {
    const auto points = std::span(result.points).subspan(c * noise.size(), noise.size());
    const auto gain = [](const SnrPoint& p) { return p.gain[p.best].value; };
    const SnrPoint& top = *std::ranges::max_element(points, {}, gain);
    const Crossover& crossover = result.crossovers[c];
    table.rows.push_back(
        {fmt::format("{}", crossover.correlation), crossing(crossover.softmax, noise),
         crossing(crossover.differential, noise), number(gain(top)), fmt::format("{}", top.noise),
         fmt::format("{:.3g}", result.lambdas[top.best])});
  }
  return table;
}

nlohmann::ordered_json describe(const SnrRequest& r) {
  return {{"tokens", r.needle.tokens},
          {"signal", r.needle.signal},
          {"second_signal", r.needle.second_signal},
          {"trials", r.trials},
          {"seed", r.seed},
          {"threshold", r.threshold}};
}

}  // namespace

std::string describe_snr(const SnrRequest& r) {
  return fmt::format(
      "Needle in noise: a row of {} attention scores, of which the needle's is {} in the first "
      "map\n"
      "and {} in the second; all others are normal, with mean 0 and standard deviation `noise`, "
      "and\n"
      "`correlation` between the maps. SNR = |weight on the needle| / mean |weight| elsewhere, for "
      "the\n"
      "first map alone (lambda 0: softmax) and for first - lambda x second. Geometric means of {}\n"
      "trials (seed {}) with 95 % t-intervals; gains compare the same trials. The best of {} "
      "lambdas\n"
      "is chosen for each row with these trials: what a perfectly set lambda could reach. Where "
      "noise\n"
      "is 0 or correlation 1 the maps can cancel exactly, and the SNR says how near a lambda is to "
      "it.\n\n",
      system::grouped(r.needle.tokens), r.needle.signal, r.needle.second_signal, r.trials, r.seed,
      r.lambdas);
}

std::string snr_tables(const SnrResult& result) {
  return to_text(by_noise(result)) + "\n" + to_text(by_correlation(result));
}

void write_snr_csv(const std::filesystem::path& path, const SnrResult& result) {
  std::string text = fmt::format("{}\n", kSnrHeader);
  for (const SnrPoint& p : result.points) {
    for (size_t i = 0; i < result.lambdas.size(); ++i) {
      const stats::Ratio &snr = p.snr[i], &gain = p.gain[i];
      std::vector<std::string> fields;
      for (const double value : {p.correlation, p.noise, result.lambdas[i], snr.value, snr.low,
                                 snr.high, gain.value, gain.low, gain.high}) {
        fields.push_back(fmt::to_string(value));
      }
      text += system::csv_line(fields);
    }
  }
  system::replace_text(path, text);
}

void write_snr_h5(const std::filesystem::path& path, const SnrResult& result) {
  run::h5::File file = run::h5::File::create(path);
  file.set_attribute("/", "request", system::json_text(describe(result.request)));
  const auto column = [&](const std::string& name, const std::vector<double>& values) {
    file.write<double>(name, {static_cast<Index>(values.size())}, values);
  };
  column("correlation", result.request.correlation);
  column("noise", result.request.noise);
  column("lambda", result.lambdas);
  const Shape shape{static_cast<Index>(result.request.correlation.size()),
                    static_cast<Index>(result.request.noise.size()),
                    static_cast<Index>(result.lambdas.size())};
  const auto cube = [&](const std::string& name, std::vector<stats::Ratio> SnrPoint::*ratios,
                        double stats::Ratio::*member) {
    std::vector<double> values;
    for (const SnrPoint& p : result.points) {
      for (const stats::Ratio& ratio : p.*ratios) values.push_back(ratio.*member);
    }
    file.write<double>(name, shape, values);
  };
  const std::pair<const char*, double stats::Ratio::*> members[] = {
      {"value", &stats::Ratio::value}, {"low", &stats::Ratio::low}, {"high", &stats::Ratio::high}};
  for (const auto& [name, member] : members) {
    cube(fmt::format("snr/{}", name), &SnrPoint::snr, member);
    cube(fmt::format("gain/{}", name), &SnrPoint::gain, member);
  }
  std::vector<double> softmax, differential;
  for (const Crossover& crossover : result.crossovers) {
    softmax.push_back(crossover.softmax);
    differential.push_back(crossover.differential);
  }
  column("crossover/softmax", softmax);
  column("crossover/differential", differential);
  file.save();
}

}  // namespace difftape::app
