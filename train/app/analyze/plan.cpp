#include "train/app/analyze/plan.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "train/app/analyze/kinds.h"
#include "train/run/config/model_conflicts.h"
#include "train/run/loop/step.h"

namespace difftape::app {

namespace {

constexpr double kMega = 1e6, kPeta = 1e15;
constexpr const char* kSameQueries = "softmax_2h";

/// The count under a name, 0 if there is none.
Index count_of(const ModelCost::Counts& counts, const std::string& name) {
  for (const auto& [known, count] : counts) {
    if (known == name) return count;
  }
  return 0;
}

/// Names of all kinds' parts of attention: the projections first, then what only some have.
std::vector<std::string> attention_parts(const Plan& plan) {
  std::vector<std::string> parts{"q_proj", "k_proj", "v_proj", "o_proj"};
  for (const KindCost& column : plan.kinds) {
    for (const auto& [part, count] : column.cost.attention_parameters) {
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    }
  }
  return parts;
}

/// Adds rows to a table with one column a kind.
class Rows {
 public:
  Rows(const Plan& plan, system::Table& table) : plan_(plan), table_(table) {}

  template <class Cell>
  void add(const std::string& label, Cell&& cell) {
    add_column_cells(label, [&](const KindCost& column) { return cell(column.cost); });
  }
  /// Bytes as MB.
  template <class Size>
  void megabytes(const std::string& label, Size&& size) {
    add_column_cells(label, [&](const KindCost& column) {
      return fmt::format("{:.1f}", static_cast<double>(size(column)) / kMega);
    });
  }
  template <class Number>
  void numbers(const std::string& label, int digits, Number&& number) {
    add(label, [&](const ModelCost& c) { return fmt::format("{:.{}f}", number(c), digits); });
  }
  template <class Count>
  void counts(const std::string& label, Count&& count) {
    add(label, [&](const ModelCost& c) {
      const Index found = count(c);
      return found == 0 ? "-" : system::grouped(found);
    });
  }
  /// Counts in percent more or less than those of another kind, if the plan has it.
  template <class Count>
  void against(const std::string& indent, const std::string& kind, Count&& count) {
    const auto other = std::ranges::find(plan_.kinds, kind, &KindCost::kind);
    if (other == plan_.kinds.end()) return;
    const auto whole = static_cast<double>(count(other->cost));
    add(indent + "against " + kind, [&](const ModelCost& c) {
      return &c == &other->cost
                 ? "-"
                 : fmt::format("{:+.1f} %", 100 * (static_cast<double>(count(c)) / whole - 1));
    });
  }

 private:
  template <class Cell>
  void add_column_cells(const std::string& label, Cell&& cell) {
    std::vector<std::string> cells{label};
    for (const KindCost& column : plan_.kinds) cells.push_back(cell(column));
    table_.rows.push_back(cells);
  }

  const Plan& plan_;
  system::Table& table_;
};

void add_parameters(const Plan& plan, Rows& rows) {
  const auto total = [](const ModelCost& c) { return c.total_parameters; };
  rows.counts("parameters", total);
  rows.against("  ", baseline_kind(), total);
  for (const auto& [component, ignored] : plan.kinds.front().cost.parameters) {
    const auto count = [&name = component](const ModelCost& c) {
      return count_of(c.parameters, name);
    };
    rows.counts("  " + component, count);
    if (component != "attention") continue;
    for (const std::string& part : attention_parts(plan)) {
      rows.counts("    " + part,
                  [&](const ModelCost& c) { return count_of(c.attention_parameters, part); });
    }
    rows.against("    ", baseline_kind(), count);
    rows.against("    ", kSameQueries, count);
    rows.against("    q_proj + o_proj ", kSameQueries, [](const ModelCost& c) {
      return count_of(c.attention_parameters, "q_proj") +
             count_of(c.attention_parameters, "o_proj");
    });
  }
  rows.counts("d_ff", [](const ModelCost& c) { return c.d_ff; });
}

void add_work(const run::Config& config, Rows& rows) {
  const double run_tokens =
      static_cast<double>(tokens_per_step(config)) * static_cast<double>(config.train.steps);
  rows.numbers("training MFLOP per token", 3,
               [](const ModelCost& c) { return c.train_flops_per_token / kMega; });
  rows.numbers("  of it attention scores and values", 3,
               [](const ModelCost& c) { return c.attention_flops_per_token / kMega; });
  rows.numbers("  of it attention projections", 3,
               [](const ModelCost& c) { return c.attention_projection_flops_per_token / kMega; });
  rows.numbers("the whole run, PFLOP", 4,
               [&](const ModelCost& c) { return c.train_flops_per_token * run_tokens / kPeta; });
}

/// The memory of a training step at its peak, and what recomputation would make of it.
void add_memory(const run::Config& config, Rows& rows) {
  struct Part {
    const char* label;
    Index run::StepMemory::*bytes;
  };
  constexpr Part kParts[] = {{"  weights", &run::StepMemory::weights},
                             {"  gradients", &run::StepMemory::gradients},
                             {"  moments", &run::StepMemory::moments},
                             {"  activations", &run::StepMemory::activations},
                             {"  gradients of activations", &run::StepMemory::activation_gradients},
                             {"  scratch", &run::StepMemory::scratch}};
  rows.megabytes("memory of a step, MB", [](const KindCost& c) { return c.memory.total(); });
  for (const Part& part : kParts) {
    rows.megabytes(part.label, [&](const KindCost& c) { return c.memory.*part.bytes; });
  }
  if (config.train.activation_checkpointing == ActivationCheckpointing::none) {
    rows.megabytes("with train.activation_checkpointing: blocks, MB",
                   [](const KindCost& c) { return c.memory_with_checkpointing.total(); });
  }
  rows.counts("KV cache per token, bytes", [](const ModelCost& c) {
    return c.kv_cache_per_token * static_cast<Index>(sizeof(real));
  });
}

}  // namespace

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
  if (plan.kinds.empty()) {
    throw ConfigError(fmt::format("nothing is left to plan\n{}", fmt::join(plan.left_out, "\n")));
  }
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
