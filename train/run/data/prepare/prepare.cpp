#include "train/run/data/prepare/prepare.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/digest.h"
#include "core/error.h"
#include "core/platform.h"
#include "train/run/data/domains.h"
#include "train/run/records/h5.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;

/// Interface of a token file being written.
class TokenWriter {
 public:
  virtual ~TokenWriter() = default;
  virtual void write(std::span<const std::int32_t> tokens) = 0;
  /// Returns the digest of the stored tokens so far.
  virtual std::string digest() const = 0;
  virtual void commit(const std::string& provenance, const TokenizerFile& tokenizer) = 0;
};

/// Writes uint16 tokens without a header, and next to them provenance and the tokenizer's model.
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
    // An interruption may leave tokens without provenance, but never with stale provenance.
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

/// Writes int32 tokens, which stay in memory until commit().
class H5Writer : public TokenWriter {
 public:
  explicit H5Writer(const fs::path& out) : file_(h5::File::create(out)) {
    const system::NewFile writable(out);  // fails now rather than in commit()
  }
  void write(std::span<const std::int32_t> tokens) override {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    throw_if<UsageError>(
        std::ssize(tokens_) > kLargest,
        "--out: the text has more than {} tokens, the limit of a .h5 in memory; write a .bin",
        kLargest);
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
  throw_if<UsageError>(out.extension() != ".bin", "--out: {}: must end in .bin or .h5",
                       out.string());
  constexpr Index kTokens = Index{std::numeric_limits<std::uint16_t>::max()} + 1;
  throw_if<UsageError>(vocab_size > kTokens,
                       "--out: the vocabulary has {} tokens, but a .bin can store {}; write a .h5",
                       vocab_size, kTokens);
  return std::make_unique<BinWriter>(out);
}

/// A token file being written, and its counts so far.
struct Output {
  std::unique_ptr<TokenWriter> writer;
  std::string domain = {};  ///< domain of a validation file; empty: training
  Index documents = 0, bytes = 0, tokens = 0;

  void write(std::span<const std::int32_t> more) {
    writer->write(more);
    tokens += std::ssize(more);
  }
};

nlohmann::ordered_json options_json(const CorpusOptions& options) {
  nlohmann::ordered_json json;
  if (options.drop_duplicates) json["drop_duplicates"] = *options.drop_duplicates;
  if (options.val_fraction) json["val_fraction"] = *options.val_fraction;
  if (options.max_overlap) json["max_overlap"] = *options.max_overlap;
  return json;
}

nlohmann::ordered_json counts_json(const DomainCounts& domain) {
  return {{"name", domain.name},
          {"documents", domain.documents},
          {"dropped", domain.dropped},
          {"held_out", domain.held_out},
          {"train_bytes", domain.train_bytes},
          {"val_bytes", domain.val_bytes},
          {"dropped_bytes", domain.dropped_bytes},
          {"overlap", domain.overlap()}};
}

std::string provenance_of(const Output& output, const Prepared& prepared,
                          const PrepareRequest& request) {
  const BuildInfo build = build_info();
  nlohmann::ordered_json json{{"difftape", fmt::format("{} ({})", build.version, build.commit)},
                              {"tokens", output.tokens},
                              {"vocab_size", prepared.vocab_size},
                              {"eos_token_id", prepared.eos_token_id},
                              {"xxh3_128", output.writer->digest()},
                              {"documents", output.documents},
                              {"bytes", output.bytes},
                              {"tokenizer", {{"name", request.tokenizer.file.name}}}};
  if (!request.tokenizer.digest.empty()) json["tokenizer"]["xxh3_128"] = request.tokenizer.digest;
  for (const ReadFile& file : prepared.files) {
    json["files"].push_back(
        {{"path", file.path.string()}, {"bytes", file.bytes}, {"xxh3_128", file.digest}});
  }
  if (!request.options.any()) return system::json_text(json, 2) + "\n";
  json["options"] = options_json(request.options);
  json["part"] = output.domain.empty() ? "train" : "val/" + output.domain;
  for (const DomainCounts& domain : prepared.domains)
    json["domains"].push_back(counts_json(domain));
  return system::json_text(json, 2) + "\n";
}

/// Throws DataError if the text contains the end token, which would split a document.
void require_no_end_within(std::span<const std::int32_t> text, Index eos_token_id) {
  throw_if<DataError>(
      std::ranges::find(text, eos_token_id) != text.end(),
      "--eos-token-id {}: occurs in the text; give a token that cannot, such as 256 for bytes",
      eos_token_id);
}

void require_consistent(const PrepareRequest& request) {
  if (request.val_out.empty() == !request.options.val_fraction) {
    if (!request.options.max_overlap || request.options.val_fraction) return;
    throw UsageError("--max-overlap: needs held-out documents; give --val-fraction and --val-out");
  }
  throw UsageError(request.val_out.empty()
                       ? "--val-fraction: needs a directory for held-out tokens; give --val-out"
                       : "--val-out: needs the fraction to hold out; give --val-fraction");
}

/// Throws OutputError if val_out contains token files of another corpus, which a glob pattern in
/// data.val_path would match.
void require_no_others(const PrepareRequest& request, const std::vector<DomainCounts>& domains) {
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(request.val_out, absent)) {
    if (entry.path().extension() != request.out.extension()) continue;
    const auto is_it = [&](const DomainCounts& domain) {
      return val_file(request, domain.name).filename() == entry.path().filename();
    };
    if (std::ranges::any_of(domains, is_it)) continue;
    throw OutputError(fmt::format(
        "--val-out: {} belongs to no domain of this corpus; remove it, or name another directory",
        entry.path().string()));
  }
}

/// Returns the training output, then the validation output of each domain.
std::vector<Output> make_outputs(const PrepareRequest& request, const Prepared& prepared) {
  std::vector<Output> outputs;
  outputs.push_back({.writer = make_writer(request.out, prepared.vocab_size)});
  if (request.val_out.empty()) return outputs;
  require_no_others(request, prepared.domains);
  std::error_code error;
  fs::create_directories(request.val_out, error);
  throw_if<OutputError>(bool(error), "--val-out: cannot create {}: {}", request.val_out.string(),
                        error.message());
  for (const DomainCounts& domain : prepared.domains) {
    const fs::path file = val_file(request, domain.name);
    outputs.push_back({.writer = make_writer(file, prepared.vocab_size), .domain = domain.name});
  }
  return outputs;
}

void require_same_files(const std::vector<ReadFile>& before, const std::vector<ReadFile>& now) {
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].digest == now[i].digest) continue;
    throw DataError(
        fmt::format("{}: the file changed while it was read; start again", now[i].path.string()));
  }
}

}  // namespace

fs::path val_file(const PrepareRequest& request, const std::string& domain) {
  return request.val_out / (domain_file_name(domain) + request.out.extension().string());
}

Prepared prepare_tokens(const PrepareRequest& request) {
  require_consistent(request);
  const Tokenizer& tokenizer = request.tokenizer;
  const Index passes = request.options.any() ? 2 : 1, total = passes * total_size(request.files);
  Corpus corpus;
  if (request.options.any()) {
    corpus = divide_documents(request.files, request.key, tokenizer.utf8, request.options,
                              [&](Index done) {
                                if (request.stopped()) throw PreparationStopped();
                                request.on_progress(done, total);
                              });
  }
  Prepared prepared;
  prepared.domains = corpus.domains;
  prepared.eos_token_id = request.eos_token_id.value_or(tokenizer.eos_token_id);
  prepared.vocab_size = std::max(tokenizer.vocab_size, prepared.eos_token_id + 1);
  std::vector<Output> outputs = make_outputs(request, prepared);
  size_t document = 0;
  const auto output_of = [&](const Piece& piece) -> Output* {
    if (corpus.fates.empty()) return outputs.data();
    if (document >= corpus.fates.size() || corpus.fates[document] == Fate::dropped) return nullptr;
    if (corpus.fates[document] == Fate::trains) return outputs.data();
    return &outputs[1 + corpus.domain_of[piece.file]];
  };
  bool continues = false;
  const auto tokenize = [&](const Piece& piece) {
    if (Output* const output = output_of(piece)) {
      encode_in_parts(tokenizer, piece.text, continues, [&](std::string_view text, auto tokens) {
        if (request.stopped()) throw PreparationStopped();
        require_no_end_within(tokens, prepared.eos_token_id);
        output->write(tokens);
        prepared.loss.add(tokenizer, text, tokens, std::exchange(continues, true));
      });
      output->bytes += std::ssize(piece.text);
      if (piece.ends_document) ++output->documents;
      const auto eos = static_cast<std::int32_t>(prepared.eos_token_id);
      if (piece.ends_document && eos >= 0) output->write({&eos, 1});
    }
    if (piece.ends_document) ++document;
    continues = !piece.ends_document;
    request.on_progress((passes - 1) * (total / 2) + piece.bytes_read, total);
  };
  prepared.files = read_documents(request.files, request.key, tokenizer.utf8, tokenize);
  require_same_files(corpus.files, prepared.files);
  throw_if<DataError>(outputs[0].tokens == 0,
                      "SOURCES: the files contain no text to train on; give other files");
  for (Output& output : outputs)
    output.writer->commit(provenance_of(output, prepared, request), tokenizer.file);
  prepared.documents = outputs[0].documents;
  prepared.bytes = outputs[0].bytes;
  prepared.tokens = outputs[0].tokens;
  prepared.digest = outputs[0].writer->digest();
  return prepared;
}

}  // namespace difftape::run
