#include <fmt/core.h>

#include <memory>

#include "layers/cost.h"
#include "train/cli/commands.h"
#include "train/config/reader.h"
#include "train/log/table.h"
#include "train/loop/step.h"

namespace difftape::cli {

namespace {

constexpr double kMegabyte = 1e6;

/// The cost of every kind for the rest of the configuration, and which kind it names.
void print_plan(const Config& config) {
  std::vector<std::pair<std::string, ModelCost>> kinds;
  for (const std::string& kind : attention_kinds()) {
    ModelConfig model = config.model;
    model.attention.kind = kind;
    if (!attention_errors(model).empty()) continue;  // no pairs to make
    kinds.emplace_back(kind + (kind == config.model.attention.kind ? " *" : ""),
                       model_cost(model, config.data.seq_len));
  }
  Table table{{{"", "", true}}, {}};
  for (const auto& [name, cost] : kinds) table.columns.push_back({"", name});
  const auto row = [&](const std::string& label, auto&& cell) {
    std::vector<std::string> cells{label};
    for (const auto& [name, cost] : kinds) cells.push_back(cell(cost));
    table.rows.push_back(cells);
  };
  const auto batch_tokens = static_cast<double>(config.data.batch_size * config.data.seq_len);
  row("parameters", [](const ModelCost& c) { return grouped(c.total_parameters); });
  for (size_t i = 0; i < kinds.front().second.parameters.size(); ++i) {
    row("  " + kinds.front().second.parameters[i].first,
        [i](const ModelCost& c) { return grouped(c.parameters[i].second); });
  }
  row("d_ff", [](const ModelCost& c) { return grouped(c.d_ff); });
  row("training MFLOP per token",
      [](const ModelCost& c) { return fmt::format("{:.3f}", c.train_flops_per_token / 1e6); });
  row("  of it attention scores and values",
      [](const ModelCost& c) { return fmt::format("{:.3f}", c.attention_flops_per_token / 1e6); });
  row("weights, gradients, moments, MB", [](const ModelCost& c) {
    return fmt::format("{:.1f}",
                       4.0 * sizeof(real) * static_cast<double>(c.total_parameters) / kMegabyte);
  });
  row("activations of a batch, MB", [&](const ModelCost& c) {
    return fmt::format("{:.1f}", c.activations_per_token * batch_tokens * sizeof(real) / kMegabyte);
  });
  row("KV cache per token, bytes", [](const ModelCost& c) {
    return grouped(c.kv_cache_per_token * static_cast<Index>(sizeof(real)));
  });
  row("the whole run, PFLOP", [&](const ModelCost& c) {
    return fmt::format("{:.4f}", c.train_flops_per_token *
                                     static_cast<double>(tokens_per_step(config)) *
                                     static_cast<double>(config.train.steps) / 1e15);
  });
  fmt::print("{}\n* the kind of this configuration. Sequences of {}, batches of {}, {}.\n",
             to_text(table), config.data.seq_len, config.data.batch_size, kRealName);
}

}  // namespace

void add_plan(CLI::App& app, Context&) {
  struct Arguments {
    std::string config;
    std::vector<std::string> overrides;
  };
  CLI::App* command = app.add_subcommand(
      "plan", "Parameters, FLOPs, memory and KV cache of each attention kind; trains nothing");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("CONFIG", arguments->config, "Configuration file (YAML)")->required();
  add_set_option(*command, arguments->overrides);
  command->callback(
      [arguments] { print_plan(load_config(arguments->config, arguments->overrides).config); });
}

}  // namespace difftape::cli
