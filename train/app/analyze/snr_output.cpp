#include "train/app/analyze/snr_output.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "train/run/records/h5.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::app {

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

std::string describe_snr(const SnrResult& result) {
  const SnrRequest& r = result.request;
  std::string text = fmt::format(
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
  return text + to_text(by_noise(result)) + "\n" + to_text(by_correlation(result));
}

void write_snr_csv(const std::filesystem::path& path, const SnrResult& result) {
  std::string text = fmt::format("{}\n", kSnrHeader);
  for (const SnrPoint& p : result.points) {
    for (size_t i = 0; i < result.lambdas.size(); ++i) {
      const stats::Ratio &snr = p.snr[i], &gain = p.gain[i];
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", p.correlation, p.noise, result.lambdas[i],
                          snr.value, snr.low, snr.high, gain.value, gain.low, gain.high);
    }
  }
  system::replace_text(path, text);
}

void write_snr_h5(const std::filesystem::path& path, const SnrResult& result) {
  run::h5::File file = run::h5::File::create(path);
  file.set_attribute("/", "request", describe(result.request).dump());
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
