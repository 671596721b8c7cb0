#include "train/run/data/prepare/prepare.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "core/error.h"
#include "core/platform.h"
#include "train/run/records/h5.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::run {

namespace {

namespace fs = std::filesystem;

/// Where tokens go.
class TokenWriter {
 public:
  virtual ~TokenWriter() = default;
  virtual void write(std::span<const std::int32_t> tokens) = 0;
  /// Of the tokens so far, as they are stored.
  virtual std::string digest() const = 0;
  virtual void commit(const std::string& provenance, const TokenizerFile& tokenizer) = 0;
};

/// uint16, nothing else; beside it a text, and the model of a tokenizer.
class BinWriter : public TokenWriter {
 public:
  explicit BinWriter(const fs::path& out) : out_(out), file_(out) {}
  void write(std::span<const std::int32_t> tokens) override {
    const std::vector<std::uint16_t> narrow(tokens.begin(), tokens.end());
    const std::string_view bytes(reinterpret_cast<const char*>(narrow.data()),
                                 narrow.size() * sizeof(std::uint16_t));
    digest_.add(bytes);
    file_.write(bytes);
  }
  std::string digest() const override { return digest_.hex(); }
  void commit(const std::string& provenance, const TokenizerFile& tokenizer) override {
    const fs::path model = out_.string() + ".model", told = out_.string() + ".json";
    std::error_code ignored;
    // Tokens without a text rather than beside that of others.
    if (fs::remove(told, ignored)) fs::remove(model, ignored);
    file_.commit();
    if (!tokenizer.model.empty()) system::replace_text(model, tokenizer.model);
    system::replace_text(told, provenance);
  }

 private:
  fs::path out_;
  system::NewFile file_;
  Digest digest_;
};

/// int32, all in memory until the end.
class H5Writer : public TokenWriter {
 public:
  explicit H5Writer(const fs::path& out) : file_(h5::File::create(out)) {}
  void write(std::span<const std::int32_t> tokens) override {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (std::ssize(tokens_) > kLargest)
      throw UsageError(fmt::format(
          "--out: more than {} tokens are too many for a .h5 in memory; write a .bin", kLargest));
  }
  std::string digest() const override {
    Digest digest;
    digest.add(std::as_bytes(std::span(tokens_)));
    return digest.hex();
  }
  void commit(const std::string& provenance, const TokenizerFile& tokenizer) override {
    write_tokenizer(file_, "", tokenizer);
    file_.write<std::int32_t>("tokens", {std::ssize(tokens_)}, tokens_);
    file_.set_attribute("/", "provenance", provenance);
    file_.save();
  }

 private:
  static constexpr Index kLargest = Index{1} << 28;
  h5::File file_;
  std::vector<std::int32_t> tokens_;
};

std::unique_ptr<TokenWriter> make_writer(const fs::path& out, Index vocab_size) {
  if (out.extension() == ".h5") return std::make_unique<H5Writer>(out);
  if (out.extension() != ".bin") {
    throw UsageError(fmt::format("--out: {} ends neither in .bin nor in .h5", out.string()));
  }
  constexpr Index kTokens = Index{std::numeric_limits<std::uint16_t>::max()} + 1;
  if (vocab_size > kTokens) {
    throw UsageError(fmt::format(
        "--out: a .bin holds {} different tokens, these are {}; write a .h5", kTokens, vocab_size));
  }
  return std::make_unique<BinWriter>(out);
}

std::string provenance_of(const Prepared& prepared, const PrepareRequest& request) {
  const BuildInfo build = build_info();
  nlohmann::ordered_json json{{"difftape", fmt::format("{} ({})", build.version, build.commit)},
                              {"tokens", prepared.tokens},
                              {"vocab_size", prepared.vocab_size},
                              {"eos_token_id", prepared.eos_token_id},
                              {"xxh3_128", prepared.digest},
                              {"documents", prepared.documents},
                              {"bytes", prepared.bytes},
                              {"tokenizer", {{"name", request.tokenizer.file.name}}}};
  if (!request.tokenizer.digest.empty()) json["tokenizer"]["xxh3_128"] = request.tokenizer.digest;
  for (const ReadFile& file : prepared.files) {
    json["files"].push_back(
        {{"path", file.path.string()}, {"bytes", file.bytes}, {"xxh3_128", file.digest}});
  }
  return system::json_text(json, 2) + "\n";
}

/// Documents would end where they do not.
void require_no_end_within(const std::vector<std::int32_t>& text, Index eos_token_id) {
  if (std::ranges::find(text, eos_token_id) == text.end()) return;
  throw DataError(fmt::format(
      "--eos-token-id {}: the text has this token too; give one that it cannot have, of bytes 256",
      eos_token_id));
}

}  // namespace

Prepared prepare_tokens(const PrepareRequest& request) {
  const Tokenizer& tokenizer = request.tokenizer;
  Prepared prepared;
  prepared.eos_token_id = request.eos_token_id.value_or(tokenizer.eos_token_id);
  prepared.vocab_size = std::max(tokenizer.vocab_size, prepared.eos_token_id + 1);
  const auto writer = make_writer(request.out, prepared.vocab_size);
  const Index total = total_size(request.files);
  const auto write = [&](std::span<const std::int32_t> tokens) {
    writer->write(tokens);
    prepared.tokens += std::ssize(tokens);
  };
  prepared.files =
      read_documents(request.files, request.key, tokenizer.utf8, [&](const Piece& piece) {
        const std::vector<std::int32_t> tokens = tokenizer.encode(piece.text);
        require_no_end_within(tokens, prepared.eos_token_id);
        write(tokens);
        prepared.bytes += std::ssize(piece.text);
        if (piece.ends_document) ++prepared.documents;
        const auto eos = static_cast<std::int32_t>(prepared.eos_token_id);
        if (piece.ends_document && eos >= 0) write({&eos, 1});
        request.on_progress(piece.bytes_read, total);
      });
  if (prepared.tokens == 0) throw DataError("the files hold no text");
  prepared.digest = writer->digest();
  writer->commit(provenance_of(prepared, request), tokenizer.file);
  return prepared;
}

}  // namespace difftape::run
