#include "train/run/config/sweep_settings.h"

namespace difftape::run {
namespace {

template <class T>
SweepField field(const char* key, T SweepSettings::*member, Constraint constraint,
                 const char* help) {
  return {{key, {T{}, std::move(constraint)}, "", help}, member};
}

/// Returns a key whose value the sweep reads itself; `type` describes it.
SweepField structured(const char* key, std::optional<YamlNode> SweepSettings::*member,
                      Constraint constraint, const char* type, const char* help) {
  return {{key, {std::string{}, std::move(constraint), 0, type}, "", help}, member};
}

}  // namespace

const std::vector<SweepField>& sweep_fields() {
  using S = SweepSettings;
  static const std::vector<SweepField> all{
      field("sweep.name", &S::name, any_value(),
            "Name of the sweep, used as a folder name; empty means the name of the file."),
      field("sweep.baseline", &S::baseline, any_value(),
            "Reference arm; empty means the first arm."),
      field("sweep.claims", &S::claims, any_value(),
            "File with the preregistered claims, relative to this file; empty means none."),
      field("sweep.only", &S::only, any_value(), "Arms to train; empty means all."),
      field("sweep.seeds", &S::seeds, at_least(0), "Seeds of every arm; empty means run.seed."),
      structured("sweep.lr", &S::lr, above(0), "list of numbers",
                 "Values of optim.lr; or wortsman, the seven of Wortsman et al. 2023; or {own: "
                 "FILE, times: [1, 4]}, the lr_star of each arm in a CSV file times each factor."),
      structured("sweep.grid", &S::grid, any_value(), "lists by key",
                 "Values of other keys; every combination is trained."),
      structured("sweep.zip", &S::zip, any_value(), "lists by key",
                 "Values of other keys, combined by position in their lists."),
      structured("sweep.arms", &S::arms, any_value(), "settings by arm",
                 "Settings of each arm; without arms there is one, named after the sweep."),
  };
  return all;
}

std::vector<std::string> sweep_keys() {
  std::vector<std::string> keys;
  for (const SweepField& field : sweep_fields()) keys.push_back(field.key);
  return keys;
}

SweepSettings read_sweep_settings(const Assignments& given, SweepSettings settings,
                                  ConfigErrors& errors) {
  for (const SweepField& field : sweep_fields()) {
    const Assignment* found = given.find(field.key);
    if (!found) continue;
    std::visit(
        [&]<class T>(T SweepSettings::*member) {
          if constexpr (std::is_same_v<T, std::optional<YamlNode>>)
            settings.*member = found->value;
          else if (auto value = read_value(found->value, field.key, field.spec, errors))
            settings.*member = std::get<T>(*value);
        },
        field.member);
  }
  return settings;
}

const std::vector<std::string>& wortsman_lrs() {
  static const std::vector<std::string> lrs{"3e-4", "1e-3", "3e-3", "1e-2", "3e-2", "1e-1", "3e-1"};
  return lrs;
}

}  // namespace difftape::run
