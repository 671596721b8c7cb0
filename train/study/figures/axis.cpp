#include "train/study/figures/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace difftape::study::svg {

namespace {

constexpr double kLegendLine = 14;
constexpr double kCharacter = 10 * kCharacterWidth;
constexpr std::size_t kLongestName = 40;

}  // namespace

bool fits_axis(double value) {
  return std::abs(value) <= 1e300;  // differences and margins of such are numbers
}

void Range::add(double value) {
  if (!fits_axis(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

std::string short_number(double value, int digits) {
  const double size = std::abs(value);
  if (value == 0 || (size >= 0.01 && size < 1e6)) {
    return size >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, digits);
  }
  std::string text = fmt::format("{:.{}e}", value, digits - 1);
  const std::size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;  // not finite
  std::string mantissa = text.substr(0, exponent), power = text.substr(exponent + 1);
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return fmt::format("{}e{}", mantissa, std::stoi(power));
}

Axis::Axis(Range values, double from, double to, bool log) : from_(from), to_(to), log_(log) {
  if (values.empty()) values = {0, 1};
  if (values.low <= 0) log_ = false;
  low_ = log_ ? std::log10(values.low) : values.low;
  high_ = log_ ? std::log10(values.high) : values.high;
  if (high_ - low_ < 1e-12 * std::max(1.0, std::abs(low_))) {
    const double margin = log_ ? 0.3 : std::max(0.5 * std::abs(low_), 1e-3);
    low_ -= margin;
    high_ += margin;
  }
}

double Axis::place(double value) const { return log_ ? std::log10(value) : value; }

double Axis::at(double value) const {
  return from_ + (to_ - from_) * (place(value) - low_) / (high_ - low_);
}

Axis Axis::padded(double share) const {
  Axis wider = *this;
  wider.low_ = low_ - share * (high_ - low_);
  wider.high_ = high_ + share * (high_ - low_);
  return wider;
}

std::vector<double> Axis::ticks(int wanted) const {
  std::vector<double> ticks;
  if (log_ && high_ - low_ > 0.8) {
    // With few decades also 2 and 5; with many only some of them.
    const double decades = high_ - low_;
    const int stride = std::max(1, static_cast<int>(std::ceil(decades / wanted)));
    for (int power = static_cast<int>(std::floor(low_)); power <= high_; power += stride) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor > 1 && decades > 0.5 * wanted) continue;
        const double place = power + std::log10(factor);
        if (place >= low_ && place <= high_) ticks.push_back(std::pow(10.0, place));
      }
    }
    return ticks;
  }
  const double low = log_ ? std::pow(10.0, low_) : low_,
               high = log_ ? std::pow(10.0, high_) : high_;
  const double rough = (high - low) / wanted, power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  for (double k = std::ceil(low / step); k * step <= high * (1 + 1e-12); ++k) {
    ticks.push_back(k * step);
  }
  return ticks;
}

void draw_axes(Drawing& drawing, const Axis& x, const Axis& y, const Labels& labels,
               std::span<const double> x_ticks) {
  const std::vector<double> round = x.ticks(6), rows = y.ticks(y.log() ? 8 : 5);
  if (x_ticks.empty()) x_ticks = round;
  drawing.open(kGrid);
  for (const double tick : rows) drawing.line({x.from(), y.at(tick)}, {x.to(), y.at(tick)});
  drawing.close();
  drawing.open(kFrame);
  drawing.line({x.from(), y.from()}, {x.to(), y.from()});
  for (const double tick : x_ticks)
    drawing.line({x.at(tick), y.from()}, {x.at(tick), y.from() + 3});
  drawing.close();
  drawing.open(kMuted);
  for (const double tick : rows) {
    drawing.text({x.from() - 5, y.at(tick) + 3.5}, short_number(tick), "text-anchor=\"end\"");
  }
  for (const double tick : x_ticks) {
    drawing.text({x.at(tick), y.from() + 13}, short_number(tick), "text-anchor=\"middle\"");
  }
  drawing.text({0.5 * (x.from() + x.to()), y.from() + 27}, labels.x, "text-anchor=\"middle\"");
  const Point middle{x.from() - 39, 0.5 * (y.from() + y.to())};
  if (!labels.y.empty()) {
    drawing.text(middle, labels.y,
                 fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"",
                             number(middle.x), number(middle.y)));
  }
  drawing.close();
}

double legend(Drawing& drawing, Point at, double right, std::span<const std::string> names) {
  double x = at.x, y = at.y;
  for (std::size_t arm = 0; arm < names.size(); ++arm) {
    const std::string label = shortened(names[arm], kLongestName);
    const auto characters = std::count_if(label.begin(), label.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    });
    const double width = 30 + kCharacter * static_cast<double>(characters);
    if (x > at.x && x + width > right) x = at.x, y += kLegendLine;
    drawing.line({x, y}, {x + 14, y}, stroke(arm) + " stroke-width=\"1.6\"");
    drawing.marker(marker(arm), {x + 7, y}, 2.8, fill(arm));
    drawing.text({x + 18, y + 3.5}, label, kText);
    x += width;
  }
  return y - at.y + kLegendLine;
}

}  // namespace difftape::study::svg
