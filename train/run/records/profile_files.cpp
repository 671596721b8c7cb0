#include "train/run/records/profile_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::run {

namespace {

using Json = nlohmann::ordered_json;
using profile::Category;

Json arguments_of(const profile::Event& event) {
  if (event.scope.empty()) return Json::object();
  return {{event.category == Category::step ? "step" : "layer", event.scope}};
}

/// Cells of one row of the table, per step.
class Cells {
 public:
  explicit Cells(const profile::Table& table)
      : steps_(static_cast<double>(table.steps)), total_(table.ms) {}

  std::vector<std::string> op(const profile::Row& row) const {
    return with_total(row.name, row.ms(), cost(row.forward), cost(row.backward));
  }
  std::vector<std::string> phase(const profile::Row& row) const {
    return with_total(row.name, row.ms(), {calls(row.forward), ""}, {"", ""});
  }
  std::vector<std::string> sum(const std::string& name, double ms) const {
    return with_total(name, ms, {"", ""}, {"", ""});
  }

 private:
  using Pair = std::array<std::string, 2>;

  std::string calls(const profile::Cost& cost) const {
    return fmt::format("{:.4g}", static_cast<double>(cost.calls) / steps_);
  }
  Pair cost(const profile::Cost& cost) const {
    return cost.calls == 0 ? Pair{"-", "-"}
                           : Pair{calls(cost), fmt::format("{:.3f}", cost.ms / steps_)};
  }
  std::vector<std::string> with_total(const std::string& name, double ms, const Pair& forward,
                                      const Pair& backward) const {
    return {name,
            forward[0],
            forward[1],
            backward[0],
            backward[1],
            fmt::format("{:.3f}", ms / steps_),
            fmt::format("{:.1f}", 100 * ms / total_)};
  }

  double steps_, total_;
};

}  // namespace

std::string trace_json(std::span<const profile::Event> events) {
  Json all = Json::array();
  const auto name_thread = [&](const char* what, const char* name) {
    all.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", name}}}});
  };
  name_thread("process_name", "difftape");
  name_thread("thread_name", "main");
  for (const profile::Event& event : events) {
    all.push_back({{"name", event.name},
                   {"cat", to_string(event.category)},
                   {"ph", "X"},
                   {"ts", static_cast<double>(event.begin) / 1e3},
                   {"dur", static_cast<double>(event.end - event.begin) / 1e3},
                   {"pid", 1},
                   {"tid", 1},
                   {"args", arguments_of(event)}});
  }
  return system::json_text(Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(all)}}) + "\n";
}

std::string profile_text(const profile::Table& table, double step_tokens, double step_flops) {
  const Cells cells(table);
  system::Table text{{{"", "op", true},
                      {"forward", "calls"},
                      {"forward", "ms"},
                      {"backward", "calls"},
                      {"backward", "ms"},
                      {"", "ms a step"},
                      {"", "%"}},
                     {}};
  for (const profile::Row& op : table.ops) text.rows.push_back(cells.op(op));
  for (const profile::Row& phase : table.phases) text.rows.push_back(cells.phase(phase));
  text.rows.push_back(cells.sum("rest", table.rest_ms));
  text.rows.push_back(cells.sum("step", table.ms));
  const double seconds = table.ms / 1e3 / static_cast<double>(table.steps);
  return fmt::format("profile of {} steps: {} tokens/s, {:.1f} GFLOP/s\n{}", table.steps,
                     system::grouped(static_cast<Index>(step_tokens / seconds)),
                     step_flops / seconds / 1e9, to_text(text));
}

}  // namespace difftape::run
