#include "train/run/data/token_provenance.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "core/error.h"
#include "train/system/file_kind.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::run {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// Returns the string under a key of an object; empty if there is none.
std::string string_at(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Returns the integer under a key of an object; `absent` if there is none.
Index integer_at(const Json& object, const char* key, Index absent) {
  if (!object.is_object()) return absent;
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<Index>() : absent;
}

/// Sets what the provenance says of the text if it names the tokens by their digest.
void set_text(TokenFile& file, const Json& provenance) {
  file.recorded_digest = string_at(provenance, "xxh3_128");
  if (file.recorded_digest.empty()) return;
  file.text_bytes = integer_at(provenance, "bytes", 0);
  file.eos_token_id = integer_at(provenance, "eos_token_id", -1);
}

/// Returns the tokenizer that `data prepare` recorded for tokens. `model` is its file, which may be
/// missing. Throws DataError if its digest differs.
TokenizerFile tokenizer_in(const Json& provenance, const fs::path& tokens, const fs::path& model) {
  if (!provenance.is_object() || !provenance.contains("tokenizer")) return {};
  const Json& tokenizer = provenance.at("tokenizer");
  const std::string name = string_at(tokenizer, "name"), digest = string_at(tokenizer, "xxh3_128");
  if (digest.empty()) return {.name = name, .model = {}};
  if (!system::is_there(model)) return {};
  TokenizerFile found{.name = name, .model = system::read_text(model)};
  const std::string is = digest_of(found.model);
  if (is == digest) return found;
  system::refuse_other(model, found.model, "a SentencePiece model");
  throw DataError(fmt::format(
      "{}: is not the tokenizer of {}: its digest must be {}, but is {}; restore the file, or "
      "remove it to train without",
      model.string(), tokens.string(), digest, is));
}

}  // namespace

void take_provenance(TokenFile& file, const std::string& provenance) {
  set_text(file, system::json_or_discarded(provenance));
}

void read_sidecars(TokenFile& file) {
  const fs::path told = file.path.string() + ".json", model = file.path.string() + ".model";
  if (system::is_there(told)) {
    const std::string text = system::read_text(told);
    system::refuse_other(told, text, "JSON");
    const Json provenance = system::json_or_discarded(text);
    file.tokenizer = tokenizer_in(provenance, file.path, model);
    set_text(file, provenance);
  } else if (system::is_there(model)) {
    file.tokenizer = {.name = model.filename().string(), .model = system::read_text(model)};
    system::refuse_other(model, file.tokenizer.model, "a SentencePiece model");
  }
}

TextOfTokens text_of(const std::vector<TokenFile>& files) {
  const TokenFile& first = files.front();
  TextOfTokens text;
  text.tokenizer = first.tokenizer;
  text.eos_token_id = first.eos_token_id;
  for (const TokenFile& file : files) {
    text.recorded.push_back(file.recorded_digest);
    text.bytes += file.text_bytes;
    if (!file.tokenizer.is_known() || !text.tokenizer.is_known()) {
      text.tokenizer = {};
      continue;
    }
    throw_if<DataError>(file.tokenizer != first.tokenizer,
                        "{} was made by tokenizer {}, but {} by {}; prepare both with the same",
                        first.path.string(), first.tokenizer.name, file.path.string(),
                        file.tokenizer.name);
  }
  const bool all_known = std::ranges::all_of(files, [&](const auto& file) {
    return file.text_bytes > 0 && file.eos_token_id == first.eos_token_id;
  });
  if (!all_known) text.bytes = 0;
  return text;
}

void TextOfTokens::require_recorded(const std::vector<SourceFile>& files,
                                    const std::vector<SourcePart>& parts) const {
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (recorded[i].empty() || recorded[i] == parts[i].digest) continue;
    const fs::path told = files[i].path.string() + ".json";
    throw DataError(fmt::format(
        "{}: its {} tokens are not those that `difftape data prepare` described, whose digest is "
        "{}; prepare them again{}",
        files[i].path.string(), parts[i].span.size(), recorded[i],
        system::is_there(told)
            ? fmt::format(", or remove {} if another program wrote them", told.string())
            : ""));
  }
}

}  // namespace difftape::run
