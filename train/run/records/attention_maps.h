#pragma once
// The attention maps of the last diagnostics: attention_maps.h5 in a run directory.

#include <filesystem>
#include <vector>

#include "core/tensor.h"

namespace difftape::run {

inline constexpr const char* kMapsFile = "attention_maps.h5";

/// Attention maps of the first measured sequence, one tensor per layer: (output heads, S, T, T)
/// with queries as rows, keys as columns, and 0 for masked pairs. S is 1, or 3 with two maps: A1,
/// A2 and |A1 - lambda A2| with rows normalized to sum to 1. T is at most 64.
struct AttentionMaps {
  Index step = 0;  ///< step after which they were computed
  std::vector<Tensor> layers;
};

/// Replaces the file at `path`: a float dataset per layer, named by its number, and the attribute
/// `step`. Throws OutputError.
void write_attention_maps(const std::filesystem::path& path, const AttentionMaps& maps);

/// Throws MissingInput or DataError.
AttentionMaps read_attention_maps(const std::filesystem::path& path);

}  // namespace difftape::run
