#pragma once
// digests.jsonl: what the state of a run was after each step, bit for bit. One JSON object a step:
// `state` is the digest of all, `tensors` are those of each tensor, in the order of
// train/run/loop/state_digest.h.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/real.h"
#include "train/system/files.h"

namespace difftape::run {

inline constexpr const char* kDigestsFile = "digests.jsonl";

struct StateDigest {
  std::string state;                 ///< XXH3, 128 bits, over the whole digests of the tensors
  std::vector<std::string> tensors;  ///< the first 64 bits of each

  bool operator==(const StateDigest&) const = default;
};

/// Appends to digests.jsonl, as MetricsWriter does to metrics.jsonl.
class DigestWriter {
 public:
  explicit DigestWriter(const std::filesystem::path& path) : file_(path) {}
  void write(Index step, const StateDigest& digest);

 private:
  system::AppendFile file_;
};

/// The digests of every step that is there; a last line that a crash cut off is ignored. Throws
/// MissingInput if the file cannot be read, and DataError with file:line for a line that
/// DigestWriter does not write.
std::map<Index, StateDigest> read_digests(const std::filesystem::path& path);

}  // namespace difftape::run
