// `difftape generate`: what a model writes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "core/name_scope.h"
#include "train/app/commands.h"
#include "train/run/data/prepare/corpus.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/inference/generate.h"
#include "train/run/inference/model.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/number.h"

namespace difftape::app {
namespace {

using Json = nlohmann::ordered_json;

struct GenerateArguments {
  std::string model, prompt, prompts, tokens;
  std::vector<std::string> stop;
  run::GenerateRequest request;
  Index seed = 1;
  bool has_prompt = false, json = false;
};

/// What makes tokens of text for a model and text of its tokens; nothing if it is not known.
std::optional<run::Tokenizer> tokenizer_of(const run::NamedModel& named) {
  if (!named.tokenizer.is_known()) return std::nullopt;
  return run::tokenizer_of(named.tokenizer);
}

using MaybeTokenizer = std::optional<run::Tokenizer>;

/// A prompt, and how errors call it.
struct Prompt {
  std::vector<std::int32_t> tokens;
  std::string name;
};

Prompt prompt_of_text(const run::Tokenizer& tokenizer, const std::string& text, std::string name) {
  const std::size_t foreign = tokenizer.utf8 ? run::first_foreign(text) : text.npos;
  throw_if<DataError>(foreign != text.npos, "{}: is not UTF-8 at byte {}, which {} needs", name,
                      foreign, tokenizer.file.name);
  return {tokenizer.encode(text), std::move(name)};
}

/// A pipe too, for it is the user who names it: `--prompts <(...)` in a shell.
std::string text_of(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_fifo(path, ignored)) return system::read_text(path);
  std::ifstream pipe(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(pipe), {}};
}

std::vector<Prompt> lines_of(const std::string& path, const run::Tokenizer& tokenizer) {
  std::vector<Prompt> prompts;
  std::istringstream lines(text_of(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    prompts.push_back(
        prompt_of_text(tokenizer, line, fmt::format("{}:{}", path, prompts.size() + 1)));
  }
  throw_if<DataError>(prompts.empty(), "{}: is empty; need a prompt a line", path);
  return prompts;
}

/// "1,2,3"; what is not a number is refused.
std::vector<Index> numbers_of(const std::string& text) {
  std::vector<Index> numbers;
  std::istringstream items(text + ",");
  for (std::string item; std::getline(items, item, ',');) {
    const std::optional<Index> number = system::read_number<Index>(item);
    throw_if<UsageError>(!number, "--tokens {}: '{}' is not a token; need numbers such as 1,2,3",
                         text, item);
    numbers.push_back(*number);
  }
  return numbers;
}

Prompt prompt_of_tokens(const std::string& text, Index vocab_size) {
  Prompt prompt{{}, "--tokens"};
  for (const Index token : numbers_of(text)) {
    throw_if<DataError>(token < 0 || token >= vocab_size,
                        "--tokens: there is no token {}; the model knows 0 to {}", token,
                        vocab_size - 1);
    prompt.tokens.push_back(static_cast<std::int32_t>(token));
  }
  return prompt;
}

/// Of the options that say what to begin with one must be given.
void require_one_beginning(const GenerateArguments& a) {
  std::vector<const char*> given;
  if (a.has_prompt) given.push_back("--prompt");
  if (!a.prompts.empty()) given.push_back("--prompts");
  if (!a.tokens.empty()) given.push_back("--tokens");
  throw_if<UsageError>(given.empty(),
                       "say what to begin with: --prompt TEXT, --prompts FILE or --tokens 1,2,3");
  throw_if<UsageError>(given.size() > 1, "{} exclude each other: give one of them",
                       fmt::join(given, " and "));
}

/// The prompts, one text each, all of which the model can read.
std::vector<Prompt> prompts_of(const GenerateArguments& a, const run::NamedModel& named,
                               const MaybeTokenizer& tokenizer) {
  const bool of_text = a.has_prompt || !a.prompts.empty();
  throw_if<UsageError>(
      (of_text || !a.stop.empty()) && !tokenizer,
      "the tokenizer of this model is not known, and --prompt, --prompts and --stop are text: "
      "begin with --tokens, or train it on a file of tokens that has its tokenizer with it, as "
      "`difftape data prepare` writes it");
  std::vector<Prompt> prompts;
  if (a.has_prompt) prompts = {prompt_of_text(*tokenizer, a.prompt, "--prompt")};
  if (!a.prompts.empty()) prompts = lines_of(a.prompts, *tokenizer);
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
    throw_if<UsageError>(!holds, "{}: need {}", option, need);
  };
  require(sampling.temperature >= 0 && std::isfinite(sampling.temperature), "--temperature",
          "0, which takes the likeliest, or more, and finite");
  require(sampling.top_k >= 0, "--top-k", "0, which takes all, or more");
  require(sampling.top_p > 0 && sampling.top_p <= 1, "--top-p", "a share above 0, at most 1");
  require(sampling.min_p >= 0 && sampling.min_p <= 1, "--min-p", "a share from 0 to 1");
  require(max_tokens >= 1, "--max-tokens", "at least 1");
}

/// Prints a piece of the text while it is written; false if it cannot be printed.
bool print_piece(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

std::string numbers(std::span<const std::int32_t> tokens) {
  return fmt::format("{}", fmt::join(tokens, " "));
}

/// Prompt and text as they come; false if they cannot be printed.
bool stream_text(LanguageModel& model, run::GenerateRequest request,
                 const MaybeTokenizer& tokenizer) {
  std::optional<run::TextStream> text;
  if (tokenizer) text.emplace(*tokenizer, request.prompt);
  print_piece(tokenizer ? tokenizer->decode(request.prompt) : numbers(request.prompt));
  request.on_token = [&](std::int32_t token) {
    return print_piece(text ? text->add(token) : fmt::format(" {}", token));
  };
  const run::FinishReason why = generate(model, request).finish_reason;
  print_piece(text ? text->rest() + "\n" : "\n");
  if (why == run::FinishReason::context)
    fmt::print(stderr, "difftape: the context of the model ends here (model.max_seq_len {})\n",
               model.config().max_seq_len);
  return why != run::FinishReason::cancelled;
}

void print_json(LanguageModel& model, const run::GenerateRequest& request,
                const MaybeTokenizer& tokenizer) {
  const run::Generated found = generate(model, request);
  Json line{{"prompt", request.prompt},
            {"tokens", found.tokens},
            {"finish_reason", to_string(found.finish_reason)}};
  if (tokenizer) {
    std::vector<std::int32_t> all = request.prompt;
    all.insert(all.end(), found.tokens.begin(), found.tokens.end());
    const std::string prompt = tokenizer->decode(request.prompt), text = tokenizer->decode(all);
    line["prompt"] = prompt;
    line["text"] = text.substr(std::min(prompt.size(), text.size()));
  }
  fmt::print("{}\n", system::json_text(line));
}

void write_texts(GenerateArguments& a) {
  require_one_beginning(a);
  require_sampling(a.request.sampling, a.request.max_tokens);
  throw_if<UsageError>(a.seed < 0, "--seed {}: need 0 or more", a.seed);
  const run::NamedModel named = run::open_model(a.model);
  const MaybeTokenizer tokenizer = tokenizer_of(named);
  a.request.eos_token_id = named.config.data.eos_token_id;
  a.request.seed = static_cast<std::uint64_t>(a.seed);
  if (tokenizer) {
    a.request.known =
        known_tokens(*tokenizer, a.request.eos_token_id, named.config.model.vocab_size);
  }
  const std::vector<Prompt> prompts = prompts_of(a, named, tokenizer);
  for (const std::string& stop : a.stop) throw_if<UsageError>(stop.empty(), "--stop: need a text");
  if (!a.stop.empty()) {
    // The last token ends it, so it lies in as many tokens as it has bytes. The first of a text may
    // lose its space, and one that is not text counts none.
    constexpr std::size_t kMore = 8;
    const std::size_t longest = std::ranges::max(a.stop, {}, &std::string::size).size();
    a.request.is_stop = [&, longest](std::span<const std::int32_t> written) {
      const std::string text =
          tokenizer->decode(written.last(std::min(written.size(), longest + kMore)));
      return std::ranges::any_of(
          a.stop, [&](const std::string& stop) { return text.find(stop) != text.npos; });
    };
  }
  for (const Prompt& prompt : prompts) {
    a.request.prompt = prompt.tokens;
    if (a.json)
      print_json(*named.model, a.request, tokenizer);
    else if (!stream_text(*named.model, a.request, tokenizer))
      return;
    ++a.request.stream;
  }
}

}  // namespace

void generate_command(CLI::App& program, Context&) {
  auto a = std::make_shared<GenerateArguments>();
  run::GenerateRequest& request = a->request;
  CLI::App& command = add_command(
      program, "generate", "Generate text from a prompt",
      {"generate runs/mine --prompt 'the quick ' --max-tokens 8",
       "generate runs/mine --prompt 'the ' --temperature 0.8 --top-k 40 --seed 2 --json"});
  const auto shown = [&](const char* name, auto& value, const char* help) {
    add_option(command, name, value, help)->capture_default_str();
  };
  add_option(command, "RUN_OR_CKPT", a->model, kModelHelp)->required();
  const CLI::Option* prompt = add_option(command, "--prompt", a->prompt, "Prompt");
  add_option(command, "--prompts", a->prompts, "File with one prompt per line");
  add_option(command, "--tokens", a->tokens, "Prompt as token ids, such as 1,2,3")
      ->check(refuse_empty);
  shown("--max-tokens", request.max_tokens, "Maximum number of tokens to generate");
  shown("--temperature", request.sampling.temperature,
        "Sampling temperature; 0 selects greedy decoding");
  shown("--top-k", request.sampling.top_k, "So many likeliest tokens; 0: all");
  shown("--top-p", request.sampling.top_p,
        "The likeliest tokens that together have this probability");
  shown("--min-p", request.sampling.min_p,
        "Tokens of this share of the largest probability or more");
  shown("--seed", a->seed, "Another seed is another text");
  add_option(command, "--stop", a->stop, "String that ends the generation; may be repeated");
  command.add_flag("--json", a->json, "Print one JSON object per prompt");
  command.callback([a, prompt] {
    a->has_prompt = prompt->count() > 0;
    write_texts(*a);
  });
}

}  // namespace difftape::app
