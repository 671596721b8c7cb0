// `difftape generate`: what a model writes.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "train/app/commands.h"
#include "train/run/data/sources.h"
#include "train/run/inference/generate.h"
#include "train/run/inference/model.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::app {

namespace {

using Json = nlohmann::ordered_json;

struct GenerateArguments {
  std::string model, prompt, prompts;
  std::vector<Index> tokens;
  std::vector<std::string> stop;
  run::GenerateRequest request;
  Index seed = 1;
  bool has_prompt = false, json = false;
};

/// Whether the tokens of a model are bytes.
bool writes_text(const run::NamedModel& named) {
  return named.config.data.kind == run::DataKind::text;
}

/// A prompt, and how errors call it.
struct Prompt {
  std::vector<std::int32_t> tokens;
  std::string name;
};

std::vector<Prompt> lines_of(const std::string& path) {
  std::vector<Prompt> prompts;
  std::istringstream lines(system::read_text(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    prompts.push_back({run::bytes_of(line), fmt::format("{}:{}", path, prompts.size() + 1)});
  }
  if (prompts.empty()) throw DataError(fmt::format("{}: is empty; need a prompt a line", path));
  return prompts;
}

Prompt prompt_of_tokens(const std::vector<Index>& tokens, Index vocab_size) {
  Prompt prompt{{}, "--tokens"};
  for (const Index token : tokens) {
    // What no std::int32_t can hold is as unknown as the first that the model does not know.
    const bool known = token >= 0 && token < vocab_size;
    prompt.tokens.push_back(static_cast<std::int32_t>(known ? token : vocab_size));
  }
  return prompt;
}

/// The prompts, one text each, all of which the model can read.
std::vector<Prompt> prompts_of(const GenerateArguments& a, const run::NamedModel& named) {
  const bool of_text = a.has_prompt || !a.prompts.empty();
  if (int{a.has_prompt} + int{!a.prompts.empty()} + int{!a.tokens.empty()} != 1)
    throw UsageError("say what to begin with: --prompt TEXT, --prompts FILE or --tokens 1,2,3");
  if ((of_text || !a.stop.empty()) && !writes_text(named))
    throw UsageError(
        "the tokens of this model are no bytes: --prompt, --prompts and --stop are "
        "for text; begin with --tokens");
  std::vector<Prompt> prompts;
  if (a.has_prompt) prompts = {{run::bytes_of(a.prompt), "--prompt"}};
  if (!a.prompts.empty()) prompts = lines_of(a.prompts);
  const ModelConfig& model = named.config.model;
  if (!a.tokens.empty()) prompts = {prompt_of_tokens(a.tokens, model.vocab_size)};
  for (const Prompt& prompt : prompts) {
    const NameScope scope(prompt.name);
    run::require_prompt(prompt.tokens, model);
  }
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

/// Prints the text while it is written; false if it cannot be printed.
bool print_token(std::int32_t token, bool as_text, bool first) {
  if (as_text) {
    std::putchar(token);
  } else {
    fmt::print("{}{}", first ? "" : " ", token);
  }
  return std::fflush(stdout) == 0;
}

/// Prompt and text as they come; false if they cannot be printed.
bool stream_text(LanguageModel& model, run::GenerateRequest request, bool as_text) {
  bool first = true;
  const auto print = [&](std::int32_t token) {
    return print_token(token, as_text, std::exchange(first, false));
  };
  for (const std::int32_t token : request.prompt) print(token);
  request.on_token = print;
  const run::FinishReason why = generate(model, request).finish_reason;
  std::putchar('\n');
  if (why == run::FinishReason::context)
    fmt::print(stderr, "difftape: the context of the model ends here (model.max_seq_len {})\n",
               model.config().max_seq_len);
  return why != run::FinishReason::cancelled;
}

void print_json(LanguageModel& model, const run::GenerateRequest& request, bool as_text) {
  const run::Generated found = generate(model, request);
  Json line{{"prompt", request.prompt},
            {"tokens", found.tokens},
            {"finish_reason", to_string(found.finish_reason)}};
  if (as_text) {
    line["prompt"] = run::text_of(request.prompt);
    line["text"] = run::text_of(found.tokens);
  }
  fmt::print("{}\n", system::json_text(line));
}

void write_texts(GenerateArguments& a) {
  require_sampling(a.request.sampling, a.request.max_tokens);
  const run::NamedModel named = run::open_model(a.model);
  const bool as_text = writes_text(named);
  a.request.eos_token_id = named.config.data.eos_token_id;
  a.request.seed = static_cast<std::uint64_t>(a.seed);
  if (as_text) a.request.known = std::min(run::kBytes, named.config.model.vocab_size);
  const std::vector<Prompt> prompts = prompts_of(a, named);
  for (const std::string& stop : a.stop) {
    if (stop.empty()) throw UsageError("--stop: need a text");
    a.request.stop.push_back(run::bytes_of(stop));
  }
  for (const Prompt& prompt : prompts) {
    a.request.prompt = prompt.tokens;
    if (a.json) {
      print_json(*named.model, a.request, as_text);
    } else if (!stream_text(*named.model, a.request, as_text)) {
      return;
    }
    ++a.request.stream;
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
          .run = [a] { write_texts(*a); },
          .examples = {"generate runs/mine --prompt 'the quick ' --max-tokens 8",
                       "generate runs/mine --prompt 'the ' --temperature 0.8 --top-k 40 --seed 2 "
                       "--json"}};
}

}  // namespace difftape::app
