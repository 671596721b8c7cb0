#pragma once
// The kinds of data that are generated. The head of each source defines its task; the sizes come
// from the keys of section data, which validate() has found possible.

#include <memory>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// N facts "city -> number" in filler, R cities asked for at the end (V1 paper, section 3.4).
std::unique_ptr<Dataset> make_needles(const DataConfig& config, Index vocab_size,
                                      std::uint64_t seed);
/// Multi-query associative recall, MQAR (Arora et al. 2023, "Zoology").
std::unique_ptr<Dataset> make_mqar(const DataConfig& config, Index vocab_size, std::uint64_t seed);
/// Noisy in-context recall with many queries (Poli et al. 2024, "MAD").
std::unique_ptr<Dataset> make_noisy_recall(const DataConfig& config, Index vocab_size,
                                           std::uint64_t seed);
/// Bigram-backcopy (Guo et al. 2024, "Active-Dormant Attention Heads").
std::unique_ptr<Dataset> make_backcopy(const DataConfig& config, Index vocab_size,
                                       std::uint64_t seed);

}  // namespace difftape::run
