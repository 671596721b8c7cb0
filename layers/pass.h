#pragma once
// What a pass through the layers carries besides the hidden states.

#include <vector>

#include "core/attention/cache.h"
#include "layers/observer.h"

namespace difftape {

/// The keys and values of every layer, which tokens that follow attend to.
struct ModelKvCache {
  std::vector<KvCache> layers;

  Index batch() const { return layers.front().batch(); }
  Index length() const { return layers.front().length(); }  ///< tokens of a sequence
  Index capacity() const { return layers.front().capacity(); }
  /// What the attention of the next token reads of it.
  Index bytes_read() const {
    Index bytes = 0;
    for (const KvCache& layer : layers) bytes += layer.bytes_read();
    return bytes;
  }
};

struct Pass {
  DocumentOffsets document_offsets{};
  Observer* observer = nullptr;
  /// The tokens follow those it holds, and are added to it; on inference tapes only.
  ModelKvCache* cache = nullptr;
};

}  // namespace difftape
