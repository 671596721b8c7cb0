// Commands that use a trained model: how well it predicts, and what it writes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "train/app/commands.h"
#include "train/run/inference/generate.h"
#include "train/run/inference/model.h"
#include "train/run/inference/validation.h"
#include "train/run/loop/train_state.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::app {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kModelHelp =
    "Checkpoint or run directory; or a configuration, with its initial weights";

struct EvalArguments {
  std::string model;
  std::vector<std::string> data, overrides;
  Index batches = 0;
  bool json = false;
};

/// The model with the data it is asked about: all of --data, or what its run held out.
run::NamedModel open_with_data(const EvalArguments& a) {
  run::NamedModel named = run::open_model(a.model, a.overrides);
  for (const std::string& path : a.data) {
    const auto absolute = std::filesystem::absolute(path).lexically_normal();
    named.config.data.val_path.push_back(path.starts_with('~') ? path : absolute.string());
  }
  if (!a.data.empty()) {
    if (is_task(named.config.data.kind))
      throw UsageError(fmt::format("--data: the data of {} are generated; use --set data.{}.KEY",
                                   to_string(named.config.data.kind),
                                   to_string(named.config.data.kind)));
    named.config.data.path = named.config.data.val_path;
  }
  return named;
}

Json evaluate(const EvalArguments& a) {
  const run::NamedModel named = open_with_data(a);
  const run::Config& config = named.config;
  const auto data = make_dataset(config.data, config.model, config.run.seed);
  const Index all = is_task(config.data.kind) && a.batches == 0
                        ? batches_to_validate(config, config.train.steps, data->val_batches())
                        : data->val_batches();
  const auto begin = std::chrono::steady_clock::now();
  const run::Validation found =
      validate(*named.model, *data,
               {.batches = a.batches > 0 ? std::min(a.batches, data->val_batches()) : all,
                .eos_token_id = config.data.eos_token_id,
                .precision = precision_of(config)});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  Json result{{"checkpoint", named.checkpoint.string()},
              {"step", named.step},
              {"data", data->info()},
              {"tokens", found.tokens},
              {"loss", found.loss},
              {"perplexity", std::exp(found.loss)}};
  if (config.data.kind == run::DataKind::text) result["bits_per_byte"] = found.loss / std::log(2.0);
  if (const auto best = data->best()) result["best_loss"] = best->loss;
  for (const auto& [name, value] : found.metrics) result[name] = value;
  result["tokens_per_sec"] = static_cast<double>(found.tokens) / seconds.count();
  return result;
}

/// "loss 1.2345 nats a token, perplexity 3.4367, 1.7810 bits a byte" and what else there is.
void print_evaluation(const Json& result) {
  const std::string checkpoint = result["checkpoint"];
  fmt::print("{}\n", checkpoint.empty()
                         ? "initial weights"
                         : fmt::format("{}, step {}", checkpoint, result["step"].get<Index>()));
  fmt::print("loss {:.4f} nats per token, perplexity {:.4f}", result["loss"].get<double>(),
             result["perplexity"].get<double>());
  if (result.contains("bits_per_byte"))
    fmt::print(", {:.4f} bits per byte", result["bits_per_byte"].get<double>());
  fmt::print("\n{} tokens, {:.0f} tokens/s\n", result["tokens"].get<Index>(),
             result["tokens_per_sec"].get<double>());
  for (const auto& [key, value] : result.items()) {
    if (key.starts_with("val/") || key.starts_with("task/"))
      fmt::print("{:<32} {:.4f}\n", key, value.get<double>());
  }
}

}  // namespace

Command eval_command(Context&) {
  auto a = std::make_shared<EvalArguments>();
  return {.name = "eval",
          .help = "How well a model predicts: loss, perplexity, bits per byte, accuracy",
          .options =
              {{.name = "RUN_OR_CKPT", .target = &a->model, .help = kModelHelp, .required = true},
               {"--data", &a->data,
                "File, folder or glob to evaluate on as a whole (default: what the run held "
                "out)"},
               {"--batches", &a->batches, "Only so many batches (default: all)"},
               {"--json", &a->json, "Print one JSON object"},
               set_option(a->overrides)},
          .run = [a] {
            const Json result = evaluate(*a);
            if (a->json) {
              fmt::print("{}\n", system::json_text(result));
            } else {
              print_evaluation(result);
            }
          }};
}

namespace {

struct GenerateArguments {
  std::string model, prompt, prompts;
  std::vector<Index> tokens;
  std::vector<std::string> stop;
  run::GenerateRequest request;
  Index seed = 1;
  bool has_prompt = false, json = false;
};

std::vector<std::int32_t> bytes_of(const std::string& text) {
  std::vector<std::int32_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string text_of(std::span<const std::int32_t> tokens) {
  std::string text;
  for (const std::int32_t token : tokens) text += static_cast<char>(token);
  return text;
}

/// Whether the tokens of a model are bytes.
bool writes_text(const run::NamedModel& named) {
  return named.config.data.kind == run::DataKind::text;
}

/// The prompts, one text each.
std::vector<std::vector<std::int32_t>> prompts_of(const GenerateArguments& a,
                                                  const run::NamedModel& named) {
  const bool of_text = a.has_prompt || !a.prompts.empty();
  if (of_text == !a.tokens.empty())
    throw UsageError("say what to begin with: --prompt TEXT, --prompts FILE or --tokens 1,2,3");
  if (of_text && !writes_text(named))
    throw UsageError("--prompt: the tokens of this model are no bytes; give them with --tokens");
  if (!a.tokens.empty()) return {{a.tokens.begin(), a.tokens.end()}};
  if (a.has_prompt) return {bytes_of(a.prompt)};
  std::vector<std::vector<std::int32_t>> prompts;
  std::istringstream lines(system::read_text(a.prompts));
  for (std::string line; std::getline(lines, line);) prompts.push_back(bytes_of(line));
  return prompts;
}

void require_sampling(const run::Sampling& sampling, Index max_tokens) {
  const auto require = [](bool holds, const char* option, const char* need) {
    if (!holds) throw UsageError(fmt::format("{}: need {}", option, need));
  };
  require(sampling.temperature >= 0, "--temperature", "0, which takes the likeliest, or more");
  require(sampling.top_k >= 0, "--top-k", "0, which takes all, or more");
  require(sampling.top_p > 0 && sampling.top_p <= 1, "--top-p", "a share above 0, at most 1");
  require(sampling.min_p >= 0 && sampling.min_p <= 1, "--min-p", "a share from 0 to 1");
  require(max_tokens >= 1, "--max-tokens", "at least 1");
}

const char* words_of(run::TextEnd end) {
  switch (end) {
    case run::TextEnd::max_tokens:
      return "max_tokens";
    case run::TextEnd::context:
      return "context";
    case run::TextEnd::stop:
      return "stop";
    case run::TextEnd::cancelled:
      break;
  }
  return "cancelled";
}

/// Prints the text while it is written; false if nobody reads it any more.
bool print_token(std::int32_t token, bool as_text, bool first) {
  if (as_text) {
    std::putchar(token);
  } else {
    fmt::print("{}{}", first ? "" : " ", token);
  }
  return std::fflush(stdout) == 0;
}

void write_texts(GenerateArguments& a) {
  require_sampling(a.request.sampling, a.request.max_tokens);
  const run::NamedModel named = run::open_model(a.model);
  const bool as_text = writes_text(named);
  a.request.eos_token_id = named.config.data.eos_token_id;
  a.request.seed = static_cast<std::uint64_t>(a.seed);
  for (const std::string& stop : a.stop) a.request.stop.push_back(bytes_of(stop));
  const auto prompts = prompts_of(a, named);
  for (size_t i = 0; i < prompts.size(); ++i) {
    a.request.prompt = prompts[i];
    a.request.stream = i;
    bool first = true;
    if (!a.json) {
      for (const std::int32_t token : prompts[i])
        print_token(token, as_text, std::exchange(first, false));
      a.request.on_token = [&](std::int32_t token) {
        return print_token(token, as_text, std::exchange(first, false));
      };
    }
    const run::Generated found = generate(*named.model, a.request);
    if (!a.json) {
      std::putchar('\n');
      continue;
    }
    Json line{{"prompt", prompts[i]}, {"tokens", found.tokens}, {"end", words_of(found.end)}};
    if (as_text) {
      line["prompt"] = text_of(prompts[i]);
      line["text"] = text_of(found.tokens);
    }
    fmt::print("{}\n", system::json_text(line));
  }
}

}  // namespace

Command generate_command(Context&) {
  auto a = std::make_shared<GenerateArguments>();
  run::GenerateRequest& request = a->request;
  const auto shown = [](const char* name, Target target, const char* help) {
    return Option{.name = name, .target = target, .help = help, .show_default = true};
  };
  return {.name = "generate",
          .help = "Let a model write on: text after a prompt",
          .options =
              {{.name = "RUN_OR_CKPT", .target = &a->model, .help = kModelHelp, .required = true},
               {.name = "--prompt",
                .target = &a->prompt,
                .help = "Text to begin with",
                .given = &a->has_prompt},
               {"--prompts", &a->prompts, "File with a prompt a line"},
               list_option("--tokens", &a->tokens, "Tokens to begin with"),
               shown("--max-tokens", &request.max_tokens, "Tokens to write at most"),
               shown("--temperature", &request.sampling.temperature,
                     "Logits are divided by it; 0: the likeliest token"),
               shown("--top-k", &request.sampling.top_k, "So many likeliest tokens; 0: all"),
               shown("--top-p", &request.sampling.top_p,
                     "The likeliest tokens that together have this probability"),
               shown("--min-p", &request.sampling.min_p,
                     "Tokens of this share of the largest probability or more"),
               shown("--seed", &a->seed, "Another seed is another text"),
               {"--stop", &a->stop, "Text that ends it; may be repeated"},
               {"--json", &a->json, "Print one JSON object a prompt"}},
          .run = [a] { write_texts(*a); }};
}

}  // namespace difftape::app
