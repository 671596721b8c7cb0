#include "train/study/compare/lr_optima.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "train/system/files.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

constexpr std::array kColumns{"arm",  "model.d_model", "parameters", "lr_star", "low",
                              "high", "loss",          "seeds",      "reason"};
enum Place : std::size_t { kArm, kDModel, kParameters, kLr, kLow, kHigh, kLoss, kSeeds, kReason };

std::string digits(double value) { return std::isnan(value) ? "" : fmt::format("{:.3g}", value); }

/// Whether another curve would have the same line.
const LrCurve* double_of(std::span<const LrCurve> curves, const LrCurve& curve) {
  for (const LrCurve& other : curves) {
    if (&other != &curve && other.ladder.size() > 1 && other.name == curve.name &&
        other.d_model == curve.d_model)
      return &other;
  }
  return nullptr;
}

template <class T>
T number_of(const std::string& text, const std::string& where) {
  const auto value = system::read_number<T>(text);
  if (value && *value > T{0}) return *value;
  throw DataError(
      fmt::format("{} is \"{}\", but must be a number above 0; write the file again "
                  "with difftape report",
                  where, text));
}

OwnRate rate_of(const std::vector<std::string>& fields, const std::string& line) {
  OwnRate rate{fields[kArm], fields[kDModel], kNaN, {}, fields[kReason]};
  if (rate.reason.empty()) rate.lr = number_of<double>(fields[kLr], line + ": lr_star");
  std::size_t begin = 0;
  while (begin < fields[kSeeds].size()) {
    const std::size_t end = std::min(fields[kSeeds].find(' ', begin), fields[kSeeds].size());
    const std::string seed = fields[kSeeds].substr(begin, end - begin);
    rate.seeds.push_back(seed == "0" ? 0 : number_of<std::uint64_t>(seed, line + ": a seed"));
    begin = end + 1;
  }
  return rate;
}

}  // namespace

std::string lr_optima_csv(std::span<const LrCurve> curves) {
  std::string csv = fmt::format("{}\n", fmt::join(kColumns, ","));
  for (const LrCurve& curve : curves) {
    if (curve.ladder.size() < 2) continue;
    const LrCurve* other = double_of(curves, curve);
    const std::string reason =
        other == nullptr ? curve.optimum.reason
                         : fmt::format(
                               "the runs have two ladders of this arm and size, {} and {}; "
                               "report them apart",
                               curve.arm, other->arm);
    const stats::LrOptimum found = reason.empty() ? curve.optimum : stats::LrOptimum{};
    csv += system::csv_line(
        std::vector<std::string>{curve.name, curve.d_model, fmt::to_string(curve.parameters),
                                 digits(found.lr), digits(found.low), digits(found.high),
                                 std::isnan(found.loss) ? "" : fmt::format("{:.4f}", found.loss),
                                 fmt::format("{}", fmt::join(curve.seeds, " ")), reason});
  }
  return csv;
}

const OwnRate& OwnRates::of(std::string_view arm, std::string_view d_model) const {
  const auto found = std::ranges::find_if(
      rates, [&](const OwnRate& rate) { return rate.arm == arm && rate.d_model == d_model; });
  if (found == rates.end()) {
    throw DataError(
        fmt::format("{}: has no learning rate of arm {} at model.d_model {}; run its ladder and "
                    "write the file again with difftape report",
                    file.string(), arm, d_model));
  }
  if (!found->reason.empty()) {
    throw DataError(
        fmt::format("{}: arm {} at model.d_model {} has no learning rate of its own: {}",
                    file.string(), arm, d_model, found->reason));
  }
  return *found;
}

OwnRates read_own_rates(const std::filesystem::path& file) {
  const auto lines = system::read_csv(system::read_text(file));
  if (lines.empty() || !std::ranges::equal(lines.front(), kColumns)) {
    throw DataError(fmt::format("{}: is no lr_optimum.csv: its first line must be {}",
                                file.string(), fmt::join(kColumns, ",")));
  }
  OwnRates own{file, {}};
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string line = fmt::format("{}:{}", file.string(), i + 1);
    if (lines[i].size() != kColumns.size()) {
      throw DataError(
          fmt::format("{}: has {} fields, but must have {}; write the file again with "
                      "difftape report",
                      line, lines[i].size(), kColumns.size()));
    }
    const OwnRate rate = rate_of(lines[i], line);
    const bool twice = std::ranges::any_of(own.rates, [&](const OwnRate& other) {
      return other.arm == rate.arm && other.d_model == rate.d_model;
    });
    if (twice) {
      throw DataError(fmt::format("{}: names arm {} at model.d_model {} twice; keep one of the two",
                                  line, rate.arm, rate.d_model));
    }
    own.rates.push_back(rate);
  }
  return own;
}

}  // namespace difftape::study
