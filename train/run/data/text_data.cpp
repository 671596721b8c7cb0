// data.type text: tokens are the bytes of text files, and each file is a document.
#include <algorithm>

#include "core/digest.h"
#include "core/error.h"
#include "core/name_scope.h"
#include "train/run/data/near_duplicates.h"
#include "train/run/data/sources.h"

namespace difftape::run {
namespace {

// In the 529 files of the Eigen headers, 27 to 38 % of the held-out bytes also occur in training
// without this removal.
constexpr double kDropDuplicates = 0.3;
constexpr double kMostOverlap = 0.17;
constexpr int kSampling = 3;  ///< compares one string in 8; all strings take ten times as long

void require_text(const TokenFile& file, Index first, std::span<const std::int32_t> bytes) {
  const auto zero = std::ranges::find(bytes, 0);
  if (zero == bytes.end()) return;
  throw not_text(file.path, file.bytes.all(), first + (zero - bytes.begin()),
                 "set data.type to tokens for token files, or leave this file out");
}

std::vector<TokenFile> open_text(std::span<const std::string> entries) {
  std::vector<TokenFile> files;
  for (const auto& [path, domain] : find_source_files(entries)) {
    system::StoredBytes bytes(path);
    const auto size = std::ssize(bytes);
    files.push_back({.path = path,
                     .format = "text",
                     .bytes = std::move(bytes),
                     .size = size,
                     .domain = domain});
  }
  return files;
}

std::shared_ptr<StoredTokens> text_source(std::vector<TokenFile> files) {
  const std::string from =
      files.size() == 1 ? files[0].path.string() : fmt::format("{} files", files.size());
  auto text = std::make_shared<StoredTokens>(std::move(files), require_text);
  text->type = "text";
  text->unit = "bytes";
  text->vocab_size = kBytes;
  text->from = "the text of " + from;
  return text;
}

/// Assignment of files to training, validation or neither.
struct FileDivision {
  std::vector<bool> drop, hold_out;  ///< by file; if no file is held out, blocks are
  Division counts;
};

/// Holds out kept files if about `val_fraction` of the bytes can be held out that way.
void hold_out_files(FileDivision& division, std::span<const DocumentFacts> files,
                    double val_fraction, const ReadDocument& read) {
  std::vector<size_t> kept, train, held_out;
  std::vector<DocumentFacts> facts;
  for (size_t i = 0; i < files.size(); ++i) {
    if (division.drop[i]) continue;
    kept.push_back(i);
    facts.push_back(files[i]);
  }
  const std::vector<bool> chosen = choose_held_out(facts, val_fraction);
  double bytes = 0, all = 0;
  for (size_t n = 0; n < kept.size(); ++n) {
    (chosen[n] ? held_out : train).push_back(kept[n]);
    (chosen[n] ? bytes : all) += static_cast<double>(facts[n].bytes);
  }
  all += bytes;
  if (!is_about(bytes, val_fraction * all)) return;
  std::vector<Overlap> overlaps;
  for (const Index shared : count_shared_bytes(train, held_out, read))
    overlaps.push_back({files[held_out[overlaps.size()]].bytes, shared});
  const std::vector<bool> drop = choose_overlapping(overlaps, kMostOverlap);
  if (std::ranges::find(drop, false) == drop.end()) return;
  Overlap left;
  for (size_t n = 0; n < drop.size(); ++n) {
    (drop[n] ? division.drop : division.hold_out)[held_out[n]] = true;
    if (!drop[n]) left = {left.bytes + overlaps[n].bytes, left.shared + overlaps[n].shared};
  }
  division.counts.val_overlap = static_cast<double>(left.shared) / static_cast<double>(left.bytes);
}

FileDivision divide_files(std::span<const TokenFile> files, double val_fraction) {
  std::vector<DocumentFacts> facts;
  for (const TokenFile& file : files) facts.push_back({file.size, digest_of(file.bytes.all())});
  const ReadDocument read = [&](size_t i) { return files[i].bytes.all(); };
  FileDivision division{find_near_duplicates(facts, kDropDuplicates, kSampling, read),
                        std::vector<bool>(files.size()),
                        {}};
  hold_out_files(division, facts, val_fraction, read);
  for (size_t i = 0; i < files.size(); ++i) {
    if (!division.drop[i]) continue;
    ++division.counts.dropped_files;
    division.counts.dropped_bytes += files[i].size;
  }
  return division;
}

/// Splits by files, or by blocks if there are too few files or too large ones.
std::unique_ptr<Dataset> make_divided_text(std::vector<TokenFile> files, const DataConfig& config,
                                           std::uint64_t seed, Index micro_batches) {
  FileDivision division = divide_files(files, config.val_fraction);
  std::vector<TokenFile> train, held_out;
  for (size_t i = 0; i < files.size(); ++i) {
    if (division.hold_out[i]) division.counts.held_out.push_back(files[i].path.filename());
    if (!division.drop[i]) (division.hold_out[i] ? held_out : train).push_back(std::move(files[i]));
  }
  const auto source = text_source(std::move(train));
  source->division = division.counts;
  if (held_out.empty()) return make_windows(source, nullptr, config, seed, micro_batches);
  const auto val_source = text_source(std::move(held_out));
  val_source->from += " held out by data.val_fraction";
  val_source->domains.clear();
  return make_windows(source, val_source, config, seed, micro_batches);
}

}  // namespace

std::shared_ptr<const TokenSource> read_text(const char* key,
                                             std::span<const std::string> entries) {
  const NameScope scope(key);
  return text_source(open_text(entries));
}

std::unique_ptr<Dataset> make_text(const DataConfig& config, std::uint64_t seed,
                                   Index micro_batches) {
  if (config.val_path.empty()) {
    const NameScope scope("data.path");
    if (std::vector<TokenFile> files = open_text(config.path); files.size() > 1)
      return make_divided_text(std::move(files), config, seed, micro_batches);
  }
  return make_windows_of(config, seed, micro_batches, read_text);
}

}  // namespace difftape::run
