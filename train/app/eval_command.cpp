// `difftape eval`: measures the loss of a model.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/app/commands.h"
#include "train/run/config/config.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/inference/model.h"
#include "train/run/inference/validation.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::app {
namespace {

using Json = nlohmann::ordered_json;

struct EvalArguments {
  std::string model;
  std::vector<std::string> data, overrides;
  std::optional<Index> batches;
  bool json = false, positions = false;
};

/// Opens the model with the data to evaluate: all of --data, or the validation split of its run.
run::NamedModel open_with_data(const EvalArguments& a) {
  run::NamedModel named = run::open_model(a.model, a.overrides);
  if (a.data.empty()) return named;
  run::DataConfig& data = named.config.data;
  throw_if<UsageError>(
      is_task(data.type),
      "--data: {0} data is generated, not read; set its sizes with --set data.{0}.KEY=N",
      to_string(data.type));
  data.path.clear();
  for (const std::string& path : a.data) data.path.push_back(system::absolute_path(path));
  return named;
}

/// Opens the data; by default the data on which the checkpoint was trained.
std::unique_ptr<run::ValidationData> data_of(const EvalArguments& a, const run::NamedModel& named) {
  const run::Config& config = named.config;
  std::unique_ptr<run::ValidationData> data;
  if (a.data.empty())
    data = make_dataset(config.data, config.model, config.run.seed);
  else
    data = make_whole_data(config.data, config.model, named.tokens.tokenizer);
  const bool others = !a.data.empty() || std::ranges::any_of(a.overrides, [](const auto& text) {
    return text.starts_with("data.") || text.starts_with("data=");
  });
  if (!others && !named.data.is_null()) require_same_data(*data, named.data, named.checkpoint);
  require_same_tokenizer(named.checkpoint, named.tokens, data->tokenizer());
  return data;
}

/// Returns the number of batches: of one validation for generated data, else all.
Index batches_of(const EvalArguments& a, const run::Config& config, Index available) {
  throw_if<UsageError>(a.batches && *a.batches < 1,
                       "--batches: expected an integer of at least 1, got {}",
                       a.batches.value_or(0));
  if (a.batches) return std::min(*a.batches, available);
  return is_task(config.data.type) ? batches_to_validate(config, config.train.steps, available)
                                   : available;
}

Json evaluate(const EvalArguments& a) {
  const run::NamedModel named = open_with_data(a);
  const run::Config& config = named.config;
  const auto data = data_of(a, named);
  for (const std::string& note : data->notes()) say(note);
  const bool knows_no_data = named.data.is_null() && config.data.path.empty();
  if (knows_no_data && config.data.type == run::DataKind::text)
    say("the model names no data, so the Eigen headers are read; choose other data with --data");
  const Index batches = batches_of(a, config, data->val_batches());
  say(fmt::format("{} batches", batches));
  const run::Evaluation found = evaluate(*named.model, *data,
                                         {.batches = batches,
                                          .eos_token_id = config.data.eos_token_id,
                                          .precision = precision_of(config),
                                          .positions = a.positions});
  throw_if<DataError>(!std::isfinite(found.loss),
                      "{}: the loss is {}: the weights have diverged, use an earlier "
                      "checkpoint",
                      named.checkpoint.string(), std::abs(found.loss));
  if (!found.no_bits_per_byte.empty()) say("no bits per byte: " + found.no_bits_per_byte);
  Json result{{"checkpoint", named.checkpoint.string()},
              {"step", named.step},
              {"data", data->info()},
              {"tokens", found.tokens},
              {"loss", found.loss},
              {"perplexity", std::exp(found.loss)}};
  if (!std::isnan(found.bits_per_byte)) result["bits_per_byte"] = found.bits_per_byte;
  if (const auto best = data->best()) result["best_loss"] = best->loss;
  for (const auto& [name, value] : found.metrics) result[name] = value;
  if (a.positions) result["loss_by_position"] = found.loss_by_position;
  result["tokens_per_sec"] = found.tokens_per_sec;
  return result;
}

/// Prints means over the positions 0, 1, 2 and 3, 4 to 7 and so on.
void print_positions(const std::vector<Json>& losses) {
  system::Table table{{{"", "positions", true}, {"", "loss"}}, {}};
  for (size_t first = 0; first < losses.size(); first = std::max<size_t>(1, 2 * first)) {
    const size_t end = std::min(std::max<size_t>(1, 2 * first), losses.size());
    double sum = 0;
    size_t count = 0;
    for (size_t at = first; at < end; ++at) {
      if (losses[at].is_null()) continue;
      sum += losses[at].get<double>();
      ++count;
    }
    table.rows.push_back(
        {end - first == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, end - 1),
         count > 0 ? fmt::format("{:.4f}", sum / static_cast<double>(count)) : "-"});
  }
  fmt::print("\n{}", to_text(table));
}

/// Prints "loss 1.2345 nats per byte, perplexity 3.4367, 1.7810 bits per byte" and further
/// metrics.
void print_evaluation(const Json& result) {
  const std::string checkpoint = result["checkpoint"];
  fmt::print("{}\n", checkpoint.empty() ? "initial weights"
                                        : fmt::format("{}, step {}", system::printable(checkpoint),
                                                      result["step"].get<Index>()));
  const auto type = from_string<run::DataKind>(result["data"]["type"].get<std::string>());
  fmt::print("loss {:.4f} {}, perplexity {:.4f}", result["loss"].get<double>(),
             run::loss_unit(type.value_or(run::DataKind::tokens)),
             result["perplexity"].get<double>());
  if (result.contains("bits_per_byte"))
    fmt::print(", {:.4f} bits per byte", result["bits_per_byte"].get<double>());
  fmt::print("\n{} tokens, {:.0f} tokens/s\n", result["tokens"].get<Index>(),
             result["tokens_per_sec"].get<double>());
  for (const auto& [key, value] : result.items())
    if (key.starts_with("val/") || key.starts_with("task/"))
      fmt::print("{:<32} {:.4f}\n", key, value.get<double>());
  if (result.contains("loss_by_position")) print_positions(result["loss_by_position"]);
}

}  // namespace

void eval_command(CLI::App& program, Context&) {
  auto a = std::make_shared<EvalArguments>();
  CLI::App& command =
      add_command(program, "eval", "Measure loss, perplexity, bits per byte and accuracy",
                  {"eval runs/mine", "eval runs/mine --data text.txt --json"});
  add_option(command, "RUN_OR_CKPT", a->model, kModelHelp)->required();
  add_option(command, "--data", a->data,
             "File, folder or glob to evaluate in full; text is tokenized like the training data "
             "(default: the run's validation data)");
  add_option(command, "--batches", a->batches,
             "Number of batches (default: all; for a generated task, one validation)");
  command.add_flag("--positions", a->positions,
                   "Also print the loss by position; for longer sequences add --set "
                   "data.seq_len=512 --set model.max_seq_len=512");
  command.add_flag("--json", a->json, "Print one JSON object");
  add_set(command, a->overrides);
  command.callback([a] {
    const Json result = evaluate(*a);
    if (a->json)
      fmt::print("{}\n", system::json_text(result));
    else
      print_evaluation(result);
  });
}

}  // namespace difftape::app
