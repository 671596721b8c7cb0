#include "train/study/sweep/sweep_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/run/config/value.h"
#include "train/system/files.h"
#include "train/system/number.h"
#include "train/system/suggest.h"

namespace difftape::study {
namespace {

constexpr const char* kLr = "optim.lr";

std::string text_of(const run::ConfigValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>) {
          return fmt::format("{}", v);
        } else {
          return fmt::format("{}", fmt::join(v, ","));
        }
      },
      value);
}

class AxesReader {
 public:
  AxesReader(const run::SweepSettings& settings, run::ConfigErrors& errors)
      : settings_(settings), errors_(errors) {}

  Axes read() {
    Axes axes;
    axes.lr = read_lr(axes);
    for (const run::Assignment& values : lists_of("sweep.grid", settings_.grid)) {
      Axis axis;
      for (SweptValue& value : read_list("sweep.grid", values)) axis.push_back({std::move(value)});
      refuse_repeated(axis);
      if (!axis.empty()) axes.others.push_back(std::move(axis));
    }
    if (Axis zip = read_zip(); !zip.empty()) axes.others.push_back(std::move(zip));
    return axes;
  }

 private:
  Axis read_lr(Axes& axes) {
    if (!settings_.lr) return {{}};
    const run::YamlNode& node = *settings_.lr;
    run::Assignment lrs{kLr, node, node.location};
    if (node.kind == run::YamlNode::Kind::map) {
      read_own(node, lrs.value, axes);
      if (!axes.own) return {{}};
    }
    const run::YamlNode& values = lrs.value;
    if (values.kind == run::YamlNode::Kind::scalar && values.text == run::kWortsman) {
      lrs.value.kind = run::YamlNode::Kind::list;
      for (const std::string& lr : run::wortsman_lrs()) {
        lrs.value.items.push_back(node);
        lrs.value.items.back().text = lr;
      }
    } else if (values.kind != run::YamlNode::Kind::list) {
      errors_.add(
          node.location,
          fmt::format(
              "sweep.lr: expected learning rates such as [1.0e-3, 3.0e-3], or wortsman, got "
              "{}{}",
              values.describe(), system::did_you_mean(node.text, {run::kWortsman})));
      return {{}};
    }
    if (!may_be_swept("sweep.lr", lrs)) return {{}};
    Axis axis;
    for (SweptValue& value : read_list("sweep.lr", lrs)) axis.push_back({std::move(value)});
    refuse_repeated(axis);
    return axis.empty() ? Axis{{}} : axis;
  }

  /// Reads {own: FILE, times: FACTORS}: the file, and the factors as the list of learning rates.
  void read_own(const run::YamlNode& map, run::YamlNode& times, Axes& axes) {
    const run::YamlNode* file = nullptr;
    times.kind = run::YamlNode::Kind::scalar;
    times.text = "1";
    for (const auto& [key, value] : map.pairs) {
      if (key.text == "own") {
        file = &value;
      } else if (key.text == "times") {
        times = value;
      } else {
        errors_.add(key.location,
                    fmt::format("sweep.lr: unknown key '{}'{}; the keys are own and times",
                                key.text, system::did_you_mean(key.text, {"own", "times"})));
      }
    }
    if (times.kind == run::YamlNode::Kind::scalar) {
      const run::YamlNode one = times;
      times.kind = run::YamlNode::Kind::list;
      times.items = {one};
    }
    if (file == nullptr) {
      errors_.add(map.location, "sweep.lr: expected {own: FILE, times: FACTORS}; name the file");
      return;
    }
    axes.own_named_at = file->location;
    try {
      axes.own = read_own_rates(named_path(file->text, file->location));
    } catch (const Error& error) {
      errors_.add(file->location, fmt::format("sweep.lr: {}", error.what()));
    }
  }

  Axis read_zip() {
    std::vector<std::vector<SweptValue>> columns;
    const std::vector<run::Assignment> lists = lists_of("sweep.zip", settings_.zip);
    bool equal = true;
    for (const run::Assignment& values : lists) {
      const size_t length = lists.front().value.items.size(), own = values.value.items.size();
      if (own != length && own != 0 && length != 0) {
        errors_.add(values.value.location,
                    fmt::format("sweep.zip: {} has {} values, {} has {}; need lists of equal "
                                "length",
                                values.key, own, lists.front().key, length));
        equal = false;
      }
      columns.push_back(read_list("sweep.zip", values));
      equal = equal && columns.back().size() == columns.front().size();
    }
    Axis axis;
    if (columns.empty() || !equal) return axis;
    axis.resize(columns.front().size());
    for (const auto& column : columns) {
      for (size_t i = 0; i < column.size(); ++i) axis[i].push_back(column[i]);
    }
    refuse_repeated(axis);
    return axis;
  }

  /// Returns the keys below sweep.grid or sweep.zip that may be swept.
  std::vector<run::Assignment> lists_of(const std::string& section,
                                        const std::optional<run::YamlNode>& lists) {
    if (!lists || lists->kind == run::YamlNode::Kind::null) return {};
    run::YamlNode map = *lists;
    if (map.kind != run::YamlNode::Kind::map) {
      errors_.add(map.location, fmt::format("{}: expected keys and their values, such as "
                                            "{{model.d_ff: [64, 128]}}, got {}",
                                            section, map.describe()));
      return {};
    }
    std::erase_if(map.pairs, [&](const run::YamlPair& pair) {
      if (pair.key.text != "base") return false;
      errors_.add(pair.key.location, fmt::format("{}: base cannot be swept; use arms", section));
      return true;
    });
    run::Assignments keys(errors_, run::sweep_keys());
    keys.add_map(map);
    std::vector<run::Assignment> allowed;
    for (const run::Assignment& values : keys.all()) {
      if (may_be_swept(section, values)) allowed.push_back(values);
    }
    return allowed;
  }

  bool may_be_swept(const std::string& section, const run::Assignment& values) {
    const std::string& key = values.key;
    if (run::has_flag(key, run::kOfSweep)) {
      errors_.add(values.location,
                  fmt::format("{}: {} cannot be swept here{}", section, key,
                              key == "run.seed" ? "; use sweep.seeds" : "; remove it"));
      return false;
    }
    if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) {
      errors_.add(values.location,
                  fmt::format("{}: {} is swept twice; leave it in one of sweep.lr, "
                              "sweep.grid and sweep.zip",
                              section, key));
      return false;
    }
    keys_.push_back(key);
    return true;
  }

  std::vector<SweptValue> read_list(const std::string& section, const run::Assignment& values) {
    std::vector<SweptValue> read;
    if (values.value.kind != run::YamlNode::Kind::list || values.value.items.empty()) {
      const bool list = values.value.kind == run::YamlNode::Kind::list;
      errors_.add(values.value.location,
                  fmt::format("{}: {} needs a list of values, got {}", section, values.key,
                              list ? "an empty list" : values.value.describe()));
      return read;
    }
    for (const run::YamlNode& item : values.value.items) {
      const auto value = read_value(item, values.key, run::find_field(values.key)->spec, errors_);
      if (value) read.push_back({values.key, item, text_of(*value)});
    }
    return read;
  }

  void refuse_repeated(const Axis& axis) {
    const auto equal = [](const SweptPoint& a, const SweptPoint& b) {
      return std::ranges::equal(a, b, {}, &SweptValue::text, &SweptValue::text);
    };
    for (auto point = axis.begin(); point != axis.end(); ++point) {
      if (std::none_of(axis.begin(), point, [&](const auto& p) { return equal(p, *point); }))
        continue;
      const auto words =
          mapped(*point, [](const SweptValue& value) { return value.key + " " + value.text; });
      errors_.add(point->front().node.location,
                  fmt::format("sweep: {} is given twice; remove one", fmt::join(words, " with ")));
    }
  }

  const run::SweepSettings& settings_;
  run::ConfigErrors& errors_;
  std::vector<std::string> keys_;  ///< keys swept so far
};

}  // namespace

Axes read_axes(const run::SweepSettings& settings, run::ConfigErrors& errors) {
  return AxesReader(settings, errors).read();
}

std::filesystem::path named_path(const std::string& path, const run::SourceLocation& named_at) {
  const std::filesystem::path source = named_at.source;
  return system::here_or_shared(path, named_at.line > 0 ? source.parent_path() : "");
}

std::vector<std::string> swept_keys(const Axes& axes) {
  std::vector<std::string> keys;
  for (const SweptValue& value : axes.lr.front()) keys.push_back(value.key);
  for (const Axis& axis : axes.others) {
    for (const SweptValue& value : axis.front()) keys.push_back(value.key);
  }
  return keys;
}

std::vector<SweptPoint> combinations(const std::vector<Axis>& axes) {
  std::vector<SweptPoint> all{{}};
  for (const Axis& axis : axes) {
    std::vector<SweptPoint> longer;
    for (const SweptPoint& prefix : all) {
      for (const SweptPoint& point : axis) {
        longer.push_back(prefix);
        longer.back().insert(longer.back().end(), point.begin(), point.end());
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::string name_part(const SweptValue& value) {
  if (value.key == kLr)
    return "-lr" + system::scientific_number(*system::read_number<double>(value.text));
  std::string part = fmt::format("-{}{}", value.key.substr(value.key.rfind('.') + 1), value.text);
  std::ranges::replace_if(
      part, [](unsigned char c) { return c == '/' || c <= ' '; }, '_');
  return part;
}

}  // namespace difftape::study
