#include "train/run/exchange/export.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

#include "core/error.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/model_memory.h"
#include "train/run/config/writer.h"
#include "train/run/exchange/hf_config.h"
#include "train/run/exchange/safetensors.h"
#include "train/system/files.h"
#include "train/system/memory.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;
using safetensors::Entry;

constexpr const char* kRemedy =
    "export the model again, or copy the configuration of these weights";

/// Returns the path of the weights: `where` itself or a file in this directory.
fs::path weights_of(const fs::path& where) {
  if (!system::is_folder(where)) return where;
  fs::path file = where / kHfWeights;
  throw_if<DataError>(
      !system::is_there(file) && system::is_there(where / "model.safetensors.index.json"),
      "{}: the weights are in several files, but must be in one; save them with "
      "save_pretrained(directory, max_shard_size=\"1TB\")",
      where.string());
  return file;
}

/// Returns the configuration in config.json next to a file that difftape did not write.
Provenance described_by_directory(const safetensors::File& file,
                                  const std::vector<std::string>& overrides) {
  const fs::path config = file.path().parent_path() / kHfConfig;
  throw_if<MissingInput>(!system::is_there(config),
                         "{} was not written by difftape export, and no {} next to it describes "
                         "the model; copy it there",
                         file.path().string(), kHfConfig);
  return {WeightLayout::hf, config_of_hf(config, overrides), 0, nullptr};
}

/// Name and shape of a tensor that a file must contain.
struct Wanted {
  std::string name;
  Shape shape;
};

std::string first_of(const std::vector<std::string>& problems) {
  constexpr size_t kShown = 5;
  const auto shown = std::span(problems).first(std::min(kShown, problems.size()));
  const std::string more =
      problems.size() > kShown ? fmt::format("\n  and {} more", problems.size() - kShown) : "";
  return fmt::format("\n  {}{}", fmt::join(shown, "\n  "), more);
}

/// Rejects a model with more layers than tensors before it takes time and memory.
void require_layers(const safetensors::File& file, Index layers) {
  throw_if<DataError>(file.tensors().empty(),
                      "{} contains no tensors, but must have one per parameter; {}",
                      file.path().string(), kRemedy);
  throw_if<DataError>(std::ssize(file.tensors()) < layers,
                      "{} does not match its configuration: it has {} tensors for {} layers; {}",
                      file.path().string(), file.tensors().size(), layers, kRemedy);
}

constexpr const char *kEmbedding = "model.embed_tokens.weight", *kHead = "lm_head.weight";

/// Returns true for a tensor that transformers does not read either: tables and masks, which older
/// versions stored, and the output projection of a model whose embeddings are that too.
bool is_ignored(const safetensors::File& file, const std::string& name, const Entry& entry) {
  for (const char* buffer : {".rotary_emb.inv_freq", ".rotary_emb.cos_cached",
                             ".rotary_emb.sin_cached", "attn.bias", "attn.masked_bias"})
    if (name.ends_with(buffer)) return true;
  const auto tied = file.tensors().find(kEmbedding);
  return name == kHead && tied != file.tensors().end() && tied->second.dtype == entry.dtype &&
         tied->second.shape == entry.shape && tied->second.bytes == entry.bytes;
}

/// Throws DataError unless a file contains exactly these tensors, all of supported types.
void require_tensors(const safetensors::File& file, const std::vector<Wanted>& wanted) {
  std::vector<std::string> problems;
  for (const auto& [name, shape] : wanted) {
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end()) {
      problems.push_back(fmt::format("{} {} is missing", name, shape.str()));
    } else if (!std::ranges::equal(found->second.shape, shape)) {
      problems.push_back(
          fmt::format("{} is {}, but must be {}", name, found->second.shape_text(), shape.str()));
    }
  }
  std::set<std::string_view> names;
  for (const Wanted& each : wanted) names.insert(each.name);
  for (const auto& [name, entry] : file.tensors())
    if (!names.contains(name) && !is_ignored(file, name, entry))
      problems.push_back(fmt::format("{} {} {}", name, entry.shape_text(),
                                     name == kHead
                                         ? "differs from the embeddings, to which the model ties it"
                                         : "belongs to no parameter"));
  std::set<std::string_view> types;
  for (const auto& [name, entry] : file.tensors()) {
    const std::string why = safetensors::why_not_read(entry.dtype);
    if (names.contains(name) && !why.empty() && types.insert(entry.dtype).second)
      problems.push_back(fmt::format("{} is {}: {}", name, entry.dtype, why));
  }
  throw_if<DataError>(!problems.empty(), "{} does not match its configuration; {}:{}",
                      file.path().string(), kRemedy, first_of(problems));
}

Tensor tensor_of(const safetensors::File& file, const std::string& name) {
  const Entry& entry = file.tensors().at(name);
  Tensor tensor = Tensor::empty(Shape(entry.shape));
  copy_numbers(entry, tensor.values());
  return tensor;
}

/// Returns true if a file of this layout stores a parameter only as part of o_proj.
bool is_folded(const Parameter& p, const ModelConfig& model, WeightLayout layout) {
  return layout == WeightLayout::hf && folds_subln(model) && p.name.ends_with(kSublnSuffix);
}

/// Fills a model with the weights of a file. Throws DataError if they do not match.
void fill(LanguageModel& model, const safetensors::File& file, const Provenance& from) {
  const auto& stored = file.tensors();
  const bool stores_only_head = from.layout == WeightLayout::hf &&
                                model.config().tie_word_embeddings &&
                                !stored.contains(kEmbedding) && stored.contains(kHead);
  const auto name_in_file = [&](const Parameter& p) {
    if (stores_only_head && p.name == kEmbedding) return std::string(kHead);
    return from.layout == WeightLayout::hf ? hf_name(p.name) : p.name;
  };
  std::vector<Wanted> wanted;
  for (const Parameter& p : model.parameters())
    if (!is_folded(p, model.config(), from.layout)) wanted.push_back({name_in_file(p), p.shape});
  require_tensors(file, wanted);  // before a wrong configuration can take memory
  model.parameters().initialize(from.config.run.seed);
  for (Parameter& p : model.parameters())
    if (is_folded(p, model.config(), from.layout))
      p.value.fill(1);
    else if (from.layout == WeightLayout::hf)
      p.value.copy_from(
          in_own_order(tensor_of(file, name_in_file(p)), hf_rows(p.name, model.config())));
    else
      p.value.copy_from(tensor_of(file, p.name));
}

/// Returns the path of the file with the factors of the products in V1 weights.
fs::path unfolded_beside(const fs::path& weights) {
  fs::path file = weights.parent_path() / kUnfolded;
  if (system::is_there(file)) return file;
  throw MissingInput(fmt::format(
      "{}: needs {}, which difftape export wrote next to it with o_proj and the per-head norms of "
      "V1; copy it too",
      weights.string(), kUnfolded));
}

/// Replaces the product in o_proj by its factors o_proj and subln.
void unfold(LanguageModel& model, const safetensors::File& file) {
  ParameterSet& parameters = model.parameters();
  std::vector<Wanted> wanted;
  for (Index layer = 0; layer < model.config().num_layers; ++layer)
    for (const std::string& name : {o_proj_name(layer), subln_name(layer)})
      wanted.push_back({name, parameters.find(name)->shape});
  require_tensors(file, wanted);
  for (Index layer = 0; layer < model.config().num_layers; ++layer) {
    Tensor& folded = parameters.find(o_proj_name(layer))->value;
    const Tensor o_proj = tensor_of(file, o_proj_name(layer));
    const Tensor subln = tensor_of(file, subln_name(layer));
    throw_if<DataError>(
        !is_product(folded, o_proj, subln, file.tensors().begin()->second.dtype),
        "{}: {} times {} differs from {}; one of the files was changed, so copy both from "
        "difftape export",
        file.path().string(), o_proj_name(layer), subln_name(layer), kHfWeights);
    folded.copy_from(o_proj);
    parameters.find(subln_name(layer))->value.copy_from(subln);
  }
}

/// Returns the tokenizer of imported weights. A SentencePiece model lies beside them under the name
/// that transformers uses.
TokenizerFile tokenizer_beside(const fs::path& weights, const Config& config,
                               const std::optional<TokenizerName>& recorded) {
  const fs::path file = weights.parent_path() / kHfTokenizer;
  if (recorded && recorded->digest.empty()) return {.name = recorded->name, .model = {}};
  if (!system::is_there(file)) {
    const bool bytes = !recorded && config.data.type == DataKind::text;
    return bytes ? byte_tokenizer().file : TokenizerFile();
  }
  constexpr const char* kRemoveIt = "remove it to import the weights without";
  Tokenizer tokenizer = sentencepiece_tokenizer(file, kRemoveIt);
  if (recorded && recorded->digest != tokenizer.digest) {
    throw DataError(fmt::format(
        "{}: is not the tokenizer of {}: its digest must be {}, but is {}; {}", file.string(),
        weights.string(), recorded->digest, tokenizer.digest, kRemoveIt));
  }
  throw_if<DataError>(tokenizer.vocab_size > config.model.vocab_size,
                      "{}: has {} tokens, but the model has a vocabulary of {}; {}", file.string(),
                      tokenizer.vocab_size, config.model.vocab_size, kRemoveIt);
  if (recorded) tokenizer.file.name = recorded->name;
  return tokenizer.file;
}

}  // namespace

NamedModel import_model(const fs::path& where, const std::vector<std::string>& overrides) {
  require_keys_beside_the_model(overrides);
  const safetensors::File file = safetensors::File::read(weights_of(where));
  const std::optional<Provenance> own = provenance_of(file, overrides);
  const Provenance from = own ? *own : described_by_directory(file, overrides);
  require_layers(file, from.config.model.num_layers);
  require_model_memory(from.config.model, file.path().string(), system::free_memory());
  NamedModel named{.config = from.config,
                   .model = std::make_unique<LanguageModel>(from.config.model),
                   .checkpoint = file.path(),
                   .step = from.step,
                   .data = from.data};
  named.tokens = {.tokenizer = tokenizer_beside(file.path(), named.config, from.tokenizer),
                  .of_token_files = named.config.data.type == DataKind::tokens};
  fill(*named.model, file, from);
  if (own && own->layout == WeightLayout::hf && folds_subln(named.model->config()))
    unfold(*named.model, safetensors::File::read(unfolded_beside(file.path())));
  return named;
}

void write_imported(const NamedModel& named, const fs::path& checkpoint) {
  write_checkpoint(checkpoint, named.model->parameters(), nullptr,
                   {.step = named.step,
                    .config_yaml = to_yaml(named.config),
                    .extra_state = {{"data", named.data}},
                    .seed = named.config.run.seed,
                    .tokenizer = named.tokens.tokenizer});
}

}  // namespace difftape::run
