#include "train/app/plan.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "layers/language_model.h"
#include "train/run/config/reader.h"
#include "train/run/loop/step.h"
#include "train/system/suggest.h"

namespace difftape::app {
namespace {

constexpr double kMega = 1e6, kGiga = 1e9, kPeta = 1e15;
constexpr const char *kBaseline = "softmax", *kSameQueries = "softmax_2h";
constexpr const char* kConfigured = "configured";

/// Returns the name of the configuration's own attention: its kind, or kConfigured if other fields
/// differ from the preset of the kind.
std::string name_of_configured(const ModelConfig& model) {
  const AttentionKind kind = model.attention.kind;
  const bool is_plain = fields_of(model.attention) == fields_of(plain_kind(kind, model.attention));
  return std::string(is_plain ? kind.name() : kConfigured);
}

/// Throws UsageError unless all are unique and in attention_kinds() or kConfigured.
void require_kinds(const std::vector<std::string>& kinds) {
  std::vector<std::string> known = attention_kinds();
  known.push_back(kConfigured);
  for (auto kind = kinds.begin(); kind != kinds.end(); ++kind) {
    throw_if<UsageError>(std::find(known.begin(), known.end(), *kind) == known.end(),
                         "--kinds: '{}' is not one of {}{}", *kind, fmt::join(known, ", "),
                         system::did_you_mean(*kind, known));
    throw_if<UsageError>(std::find(kinds.begin(), kind, *kind) != kind,
                         "--kinds: {} appears twice; remove one", *kind);
  }
}

/// Returns the count of a name, or 0.
Index count_of(const ModelCost::Counts& counts, const std::string& name) {
  const auto found = std::ranges::find(counts, name, &ModelCost::Counts::value_type::first);
  return found == counts.end() ? 0 : found->second;
}

/// Returns the parts of attention of all kinds: the projections first, then parts that only some
/// kinds have.
std::vector<std::string> attention_parts(const Plan& plan) {
  std::vector<std::string> parts{"q_proj", "k_proj", "v_proj", "o_proj"};
  for (const KindCost& column : plan.kinds) {
    for (const auto& [part, count] : column.cost.attention_parameters)
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  return parts;
}

/// Adds rows to a table with one column per kind.
class Rows {
 public:
  Rows(const Plan& plan, system::Table& table) : plan_(plan), table_(table) {}

  /// Adds a row of numbers; a count of 0 is shown as a dash.
  template <class Number>
  void add(const std::string& label, Number&& number, int digits = 0) {
    std::vector<std::string> cells{label};
    for (const KindCost& column : plan_.kinds) {
      const auto value = number(column);
      if constexpr (std::is_same_v<decltype(value), const Index>)
        cells.push_back(value == 0 ? "-" : system::grouped(value));
      else
        cells.push_back(fmt::format("{:.{}f}", value, digits));
    }
    table_.rows.push_back(std::move(cells));
  }
  /// Adds a row of counts relative to another kind, in percent, if the plan has that kind.
  template <class Count>
  void against(const std::string& label, const std::string& kind, Count&& count) {
    const auto other = std::ranges::find(plan_.kinds, kind, &KindCost::kind);
    if (other == plan_.kinds.end()) return;
    const auto whole = static_cast<double>(count(*other));
    std::vector<std::string> cells{label + kind};
    for (const KindCost& column : plan_.kinds) {
      cells.push_back(
          &column == &*other
              ? "-"
              : fmt::format("{:+.1f} %", 100 * (static_cast<double>(count(column)) / whole - 1)));
    }
    table_.rows.push_back(std::move(cells));
  }

 private:
  const Plan& plan_;
  system::Table& table_;
};

void add_parameters(const Plan& plan, Rows& rows) {
  const auto total = [](const KindCost& c) { return c.cost.total_parameters; };
  rows.add("parameters", total);
  rows.against("  against ", kBaseline, total);
  const bool experts = plan.kinds.front().cost.active_parameters != total(plan.kinds.front());
  if (experts)
    rows.add("  active per token", [](const KindCost& c) { return c.cost.active_parameters; });
  for (const auto& [component, ignored] : plan.kinds.front().cost.parameters) {
    const auto count = [&name = component](const KindCost& c) {
      return count_of(c.cost.parameters, name);
    };
    rows.add("  " + component, count);
    if (component != "attention") continue;
    const auto part_of = [](const KindCost& c, const std::string& part) {
      return count_of(c.cost.attention_parameters, part);
    };
    for (const std::string& part : attention_parts(plan))
      rows.add("    " + part, [&](const KindCost& c) { return part_of(c, part); });
    rows.against("    against ", kBaseline, count);
    rows.against("    against ", kSameQueries, count);
    rows.against("    q_proj + o_proj against ", kSameQueries,
                 [&](const KindCost& c) { return part_of(c, "q_proj") + part_of(c, "o_proj"); });
  }
  rows.add(experts ? "moe_intermediate_size" : "d_ff",
           [](const KindCost& c) { return c.cost.mlp_width; });
}

void add_work(const run::Config& config, Rows& rows) {
  const double run_tokens =
      static_cast<double>(tokens_per_step(config)) * static_cast<double>(config.train.steps);
  const std::pair<const char*, double ModelCost::*> parts[] = {
      {"training MFLOP per token", &ModelCost::train_flops_per_token},
      {"  of which attention scores and values", &ModelCost::attention_flops_per_token},
      {"  of which attention projections", &ModelCost::attention_projection_flops_per_token}};
  for (const auto& [label, flops] : parts)
    rows.add(
        label, [&of = flops](const KindCost& c) { return c.cost.*of / kMega; }, 3);
  rows.add(
      fmt::format("prefill of {} tokens, GFLOP", config.data.seq_len),
      [](const KindCost& c) { return c.cost.prefill_flops / kGiga; }, 3);
  rows.add(
      "the whole run, PFLOP",
      [&](const KindCost& c) { return c.cost.train_flops_per_token * run_tokens / kPeta; }, 4);
}

/// Adds the peak memory of a training step, as configured and with recomputation.
void add_memory(const run::Config& config, Rows& rows) {
  using Memory = run::StepMemory;
  const std::pair<const char*, Index Memory::*> parts[] = {
      {"  weights", &Memory::weights},
      {"  gradients", &Memory::gradients},
      {"  moments", &Memory::moments},
      {"  activations", &Memory::activations},
      {"  gradients of activations", &Memory::activation_gradients},
      {"  scratch", &Memory::scratch}};
  const auto megabytes = [](Index bytes) { return static_cast<double>(bytes) / kMega; };
  rows.add(
      "memory of a step, MB", [&](const KindCost& c) { return megabytes(c.memory.total()); }, 1);
  for (const auto& [label, bytes] : parts)
    rows.add(
        label, [&, of = bytes](const KindCost& c) { return megabytes(c.memory.*of); }, 1);
  if (config.train.activation_checkpointing == ActivationCheckpointing::none) {
    rows.add(
        "with train.activation_checkpointing: blocks, MB",
        [&](const KindCost& c) { return megabytes(c.memory_with_checkpointing.total()); }, 1);
  }
  rows.add("KV cache per token, bytes",
           [](const KindCost& c) -> Index { return c.cost.kv_cache_per_token * sizeof(real); });
}

}  // namespace

ModelConfig with_kind(const ModelConfig& model, const std::string& kind) {
  if (kind == kConfigured) return model;
  ModelConfig other = model;
  other.attention = plain_kind(kind, model.attention);
  return other;
}

Plan make_plan(const run::Config& config, std::vector<std::string> kinds) {
  require_kinds(kinds);
  const std::string own = name_of_configured(config.model);
  if (kinds.empty()) {
    kinds = attention_kinds();
    if (own == kConfigured) kinds.push_back(own);
  }
  Plan plan;
  for (const std::string& kind : kinds) {
    run::Config of_kind = config;
    of_kind.model = with_kind(config.model, kind);
    const std::string why_invalid = run::unsupported_reason(of_kind.model);
    if (why_invalid.empty()) {
      KindCost cost{kind, model_cost(of_kind.model, config.data.seq_len),
                    run::step_memory(of_kind)};
      of_kind.train.activation_checkpointing = ActivationCheckpointing::blocks;
      cost.memory_with_checkpointing = run::step_memory(of_kind);
      plan.kinds.push_back(std::move(cost));
    } else if (kind == own) {
      throw ConfigError(why_invalid);
    } else {
      plan.left_out.push_back(fmt::format("left out {}: {}", kind, why_invalid));
    }
  }
  throw_if<ConfigError>(plan.kinds.empty(), "plan: no kind can be built\n{}",
                        fmt::join(plan.left_out, "\n"));
  return plan;
}

system::Table plan_table(const Plan& plan, const run::Config& config) {
  system::Table table{{{"", "", true}}, {}};
  for (const KindCost& column : plan.kinds) {
    const bool configured = column.kind == name_of_configured(config.model);
    table.columns.push_back({"", column.kind + (configured ? " *" : "")});
  }
  Rows rows(plan, table);
  add_parameters(plan, rows);
  add_work(config, rows);
  add_memory(config, rows);
  return table;
}

}  // namespace difftape::app
