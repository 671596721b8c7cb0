#include "train/study/sweep/sweep_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "train/run/config/writer.h"

namespace difftape::study {
namespace {

constexpr size_t kMostRuns = 10000;
constexpr size_t kLongestName = 200;  ///< bytes; file systems take 255

class RunMaker {
 public:
  RunMaker(const RunListSource& source, run::ConfigErrors& errors)
      : source_(source), errors_(errors), swept_(swept_keys(source.axes)) {
    mark_varied(source.axes.lr);
    for (const Axis& axis : source.axes.others) mark_varied(axis);
    for (const run::Assignment& given : source.all.all()) {
      if (given.location.line == 0) refuse_swept(given);
    }
    for (const ArmSource& arm : source.arms) values_.push_back(values_of(arm));
  }

  std::vector<SweepRun> make() {
    std::vector<SweepRun> runs;
    const Axes& axes = source_.axes;
    const std::vector<SweptPoint> points = points_of_grid();
    for (const Index seed : source_.seeds) {
      for (const SweptPoint& lr : axes.lr) {
        for (size_t arm = 0; arm < source_.arms.size(); ++arm) {
          for (const SweptPoint& point : points) runs.push_back(resolve(arm, seed, lr, point));
        }
      }
    }
    return runs;
  }

 private:
  void mark_varied(const Axis& axis) {
    for (const SweptValue& value : axis.front()) {
      if (axis.size() > 1) varied_.insert(value.key);
    }
  }

  std::vector<SweptPoint> points_of_grid() {
    const Axes& axes = source_.axes;
    size_t runs = std::max<size_t>(source_.arms.size(), 1) * source_.seeds.size() * axes.lr.size();
    for (const Axis& axis : axes.others) runs = std::min(runs, kMostRuns + 1) * axis.size();
    if (runs <= kMostRuns) return combinations(axes.others);
    errors_.add(source_.top,
                fmt::format("sweep: the number of runs exceeds {}; sweep fewer values", kMostRuns));
    return {};
  }

  run::Assignments values_of(const ArmSource& arm) {
    run::Assignments values = source_.file;
    const size_t before = values.all().size();
    values.add_map(arm.values);
    for (size_t i = before; i < values.all().size(); ++i) {
      const run::Assignment& given = values.all()[i];
      if (given.location.source != arm.location.source) continue;
      refuse_decided(given, true, true, errors_);
      refuse_swept(given);
    }
    values.remove_extra();
    return values;
  }

  SweepRun resolve(size_t i, Index seed, const SweptPoint& lrs, const SweptPoint& point) {
    const ArmSource& arm = source_.arms[i];
    run::Assignments values = values_[i];
    SweepRun run{arm.name, true, {}};
    for (const std::string& text : source_.overrides) values.add_override(text);
    std::string lr, others;
    const auto add = [&](const SweptValue& value) {
      values.add_node(value.key, value.node);
      if (varied_.contains(value.key)) {
        (value.key == "optim.lr" ? lr : others) += name_part(value);
      }
    };
    for (const SweptValue& value : point) add(value);
    for (const SweptValue& value : lrs) {
      if (!source_.axes.own) {
        add(value);
      } else if (const auto rate = own_rate({arm.name + others, arm.name}, values, value)) {
        add(*rate);
      }
    }
    const bool several_seeds = source_.seeds.size() > 1;
    const std::string name =
        arm.name + lr + others + (several_seeds ? fmt::format("-seed{}", seed) : "");
    check_name(name, arm);
    values.add_value("run.name", name, arm.location);
    values.add_value("run.arm", arm.name + others, arm.location);
    values.add_value("run.seed", fmt::format("{}", seed), seed_location(arm));
    values.add_value("run.out", (std::filesystem::path(source_.out) / name).string(), arm.location);
    if (!source_.claims.empty()) values.add_value("run.claims", source_.claims, arm.location);
    run.resolved = values.resolve();
    return run;
  }

  /// Returns the learning rate for a multiple of an arm's own, at the model size in `values`: of
  /// the first of its names, run.arm and the one in sweep.arms, that has one. It has six digits,
  /// because claims find runs by this product. Returns nothing after reporting to `errors`.
  std::optional<SweptValue> own_rate(const std::array<std::string, 2>& names,
                                     const run::Assignments& values, SweptValue factor) {
    const run::Field& d_model = *run::find_field("model.d_model");
    const run::Assignment* given = values.find(d_model.key);
    const std::string size = given ? given->value.text : run::yaml_text(d_model.spec.initial);
    try {
      const study::OwnRates& own = *source_.axes.own;
      const double lr = own.of(names[own.has(names[0], size) ? 0 : 1], size).lr;
      factor.text = fmt::format("{:.6g}", lr * std::stod(factor.text));
      factor.node.text = factor.text;
      return factor;
    } catch (const DataError& error) {
      errors_.add(source_.axes.own_named_at, fmt::format("sweep.lr: {}", error.what()));
      return std::nullopt;
    }
  }

  void check_name(const std::string& name, const ArmSource& arm) {
    if (!names_.insert(name).second && !errors_.any()) {  // equal values are another error
      errors_.add(arm.location,
                  fmt::format("sweep.arms: two runs would be called '{}'; rename this arm", name));
    }
    if (name.size() > kLongestName) {
      errors_.add(arm.location,
                  fmt::format("sweep.arms: the name of a run would have {} bytes, but must have "
                              "at most {}; write the values as arms with short names",
                              name.size(), kLongestName));
    }
  }

  run::SourceLocation seed_location(const ArmSource& arm) const {
    for (const char* key : {"sweep.seeds", "run.seed"}) {
      if (const run::Assignment* given = source_.all.find(key)) return given->location;
    }
    return arm.location;
  }

  /// Rejects a swept value that an arm or --set fixes; runs with different names would be equal.
  void refuse_swept(const run::Assignment& given) {
    if (std::ranges::find(swept_, given.key) == swept_.end()) return;
    errors_.add(given.location,
                fmt::format("{}: this sweep varies the key, so it cannot be set here; "
                            "change sweep.lr, sweep.grid or sweep.zip instead",
                            given.key));
  }

  const RunListSource& source_;
  run::ConfigErrors& errors_;
  std::vector<std::string> swept_;
  std::vector<run::Assignments> values_;  ///< per arm
  std::set<std::string> varied_;          ///< swept keys with several values, which names include
  std::set<std::string> names_;           ///< names of the runs so far
};

}  // namespace

std::vector<SweepRun> make_runs(const RunListSource& source, run::ConfigErrors& errors) {
  return RunMaker(source, errors).make();
}

void refuse_decided(const run::Assignment& given, bool in_arm, bool has_seeds,
                    run::ConfigErrors& errors) {
  const std::string& key = given.key;
  const auto refuse = [&](bool decided, const std::string& why) {
    if (decided) errors.add(given.location, fmt::format("{}: {}", key, why));
  };
  refuse(key == "run.name" || key == "run.arm",
         "a sweep names its runs after its arms; remove this key");
  refuse(key == "run.claims", "a sweep sets this key; use sweep.claims instead");
  refuse(key == "run.out", "a sweep writes to runs/<sweep.name>; use --out instead");
  refuse(key == "run.seed" && (in_arm || has_seeds),
         "all arms have the same seeds; use sweep.seeds instead");
  refuse(in_arm && key.starts_with("sweep."), "an arm cannot contain a sweep; remove this key");
}

}  // namespace difftape::study
