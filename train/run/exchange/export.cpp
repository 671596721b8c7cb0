#include "train/run/exchange/export.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/run/exchange/hf_config.h"
#include "train/run/exchange/safetensors.h"
#include "train/system/embedded.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/number.h"

DIFFTAPE_ASSET(difftape_modeling, DIFFTAPE_EXCHANGE_DIR "/modeling_difftape.py")
DIFFTAPE_ASSET(difftape_hf_readme, DIFFTAPE_EXCHANGE_DIR "/exported_readme.md")
DIFFTAPE_ASSET(difftape_hf_documents, DIFFTAPE_EXCHANGE_DIR "/exported_documents.md")

namespace difftape::run {
namespace {

constexpr const char *kLayout = "difftape_layout", *kConfig = "difftape_config",
                     *kStep = "difftape_step", *kData = "difftape_data",
                     *kTokenizer = "difftape_tokenizer", *kDigest = "xxh3_128";

}  // namespace

safetensors::Metadata to_metadata(const NamedModel& named, WeightLayout layout) {
  safetensors::Metadata metadata{{"format", "pt"},
                                 {kLayout, std::string(to_string(layout))},
                                 {kConfig, to_yaml(named.config)},
                                 {kStep, std::to_string(named.step)},
                                 {kData, system::json_text(named.data)}};
  const TokenizerFile& tokenizer = named.tokens.tokenizer;
  if (!tokenizer.is_known()) return metadata;
  const std::string digest = tokenizer.model.empty() ? "" : digest_of(tokenizer.model);
  metadata[kTokenizer] =
      system::json_text(nlohmann::ordered_json{{"name", tokenizer.name}, {kDigest, digest}});
  return metadata;
}

std::optional<Provenance> provenance_of(const safetensors::File& file,
                                        const std::vector<std::string>& overrides) {
  const safetensors::Metadata& metadata = file.metadata();
  if (!metadata.contains(kConfig)) return std::nullopt;
  const auto require = [&file](bool holds, const char* key) {
    throw_if<DataError>(!holds,
                        "{}: metadata entry {} is missing or malformed; export the model again",
                        file.path().string(), key);
  };
  for (const char* key : {kLayout, kStep, kData}) require(metadata.contains(key), key);
  const auto layout = from_string<WeightLayout>(metadata.at(kLayout));
  require(layout.has_value(), kLayout);
  const Index step = system::read_number<Index>(metadata.at(kStep)).value_or(-1);
  require(step >= 0, kStep);
  const nlohmann::json data = system::json_or_discarded(metadata.at(kData));
  require(!data.is_discarded(), kData);
  std::optional<TokenizerName> tokenizer;
  if (metadata.contains(kTokenizer)) {
    const auto json = system::json_or_discarded(metadata.at(kTokenizer));
    const auto string_at = [&](const char* key) {
      const bool there = json.is_object() && json.contains(key) && json.at(key).is_string();
      require(there, kTokenizer);
      return json.at(key).get<std::string>();
    };
    tokenizer = {string_at("name"), string_at(kDigest)};
  }
  return Provenance{*layout,
                    config_from_yaml(metadata.at(kConfig), file.path().string(), overrides), step,
                    data, tokenizer};
}

namespace {

namespace fs = std::filesystem;
using safetensors::NamedTensor;

/// The weights of a model as tensors of model.safetensors and difftape.safetensors.
struct HfTensors {
  std::vector<NamedTensor> weights, unfolded;
};

HfTensors hf_tensors(const LanguageModel& model) {
  HfTensors found;
  for (const Parameter& p : model.parameters())
    found.weights.push_back(
        {hf_name(p.name), in_hf_order(p.value, hf_rows(p.name, model.config()))});
  if (!folds_subln(model.config())) return found;
  const auto at = [&found](const std::string& name) {
    return std::ranges::find(found.weights, name, &NamedTensor::name);
  };
  for (Index layer = 0; layer < model.config().num_layers; ++layer) {
    const auto o_proj = at(o_proj_name(layer)), subln = at(subln_name(layer));
    found.unfolded.insert(found.unfolded.end(), {*o_proj, *subln});
    o_proj->value = with_subln(o_proj->value, subln->value);
    found.weights.erase(subln);
  }
  return found;
}

std::string_view modeling_file() { return {difftape_modeling_begin, difftape_modeling_end}; }

void replace(std::string& text, std::string_view name, std::string_view by) {
  text.replace(text.find(name), name.size(), by);
}

/// Lines of Python between text and token ids, and a sentence on the tokenizer.
struct PromptCode {
  std::string_view setup, prompt, shown, note;
};

PromptCode prompt_code(const NamedModel& named) {
  if (named.config.data.type == DataKind::text ||
      (named.tokens.tokenizer.is_known() && named.tokens.tokenizer.model.empty()))
    return {"", "list(b\"The \")", "bytes(i for i in ids if i < 256).decode(errors=\"replace\")",
            "Tokens are bytes of text."};
  if (!named.tokens.tokenizer.model.empty())
    return {
        "import sentencepiece\n"
        "tokenizer = sentencepiece.SentencePieceProcessor(model_file=\"tokenizer.model\")\n",
        "tokenizer.encode(\"The \")", "tokenizer.decode([i for i in ids if i < len(tokenizer)])",
        "`tokenizer.model` is the SentencePiece model of the training data."};
  return {"", "[0, 1]", "ids",
          "The prompt and the output are token ids of the training files, whose tokenizer difftape "
          "does not know."};
}

std::string hf_readme(const NamedModel& named) {
  const PromptCode code = prompt_code(named);
  std::string text(difftape_hf_readme_begin, difftape_hf_readme_end);
  replace(text, "@SETUP@\n", code.setup);
  replace(text, "@PROMPT@", code.prompt);
  replace(text, "@SHOWN@", code.shown);
  replace(text, "@TOKENIZER@", code.note);
  const Index eos = named.config.data.eos_token_id;
  if (eos < 0) return text;
  std::string documents(difftape_hf_documents_begin, difftape_hf_documents_end);
  replace(documents, "@EOS@", std::to_string(eos));
  replace(documents, "@EOS@", std::to_string(eos));
  return text + documents;
}

}  // namespace

void export_safetensors(const NamedModel& named, const fs::path& file) {
  std::vector<NamedTensor> tensors;
  for (const Parameter& p : named.model->parameters()) tensors.push_back({p.name, p.value});
  system::replace_text(file,
                       safetensors::to_bytes(to_metadata(named, WeightLayout::difftape), tensors));
}

void export_hf(const NamedModel& named, const fs::path& directory) {
  const ModelConfig& model = named.model->config();
  const std::vector<std::string> reasons = why_not_hf(model);
  throw_if<UsageError>(
      !reasons.empty(),
      "--format hf: transformers cannot compute this model, but --format safetensors exports any "
      "model:\n  {}",
      fmt::join(reasons, "\n  "));
  system::StagedDirectory staged(directory);
  const fs::path& at = staged.path();
  const HfTensors tensors = hf_tensors(*named.model);
  system::replace_text(at / kHfWeights, safetensors::to_bytes(to_metadata(named, WeightLayout::hf),
                                                              tensors.weights));
  if (!tensors.unfolded.empty())
    system::replace_text(at / kUnfolded, safetensors::to_bytes({}, tensors.unfolded));
  if (needs_modeling_file(model)) system::replace_text(at / kModelingFile, modeling_file());
  if (!named.tokens.tokenizer.model.empty())
    system::replace_text(at / kHfTokenizer, named.tokens.tokenizer.model);
  system::replace_text(at / kHfReadme, hf_readme(named));
  const auto config = hf_config(model, named.config.data.eos_token_id);
  system::replace_text(at / kHfConfig, system::json_text(config, 2) + "\n");
  staged.publish();
}

}  // namespace difftape::run
