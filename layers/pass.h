#pragma once
// The inputs of a forward pass besides the hidden states.

#include <vector>

#include "core/attention/cache.h"
#include "layers/observer.h"

namespace difftape {

/// The cached keys and values of every layer.
struct ModelKvCache {
  std::vector<KvCache> layers;

  Index batch() const { return layers.front().batch(); }
  Index length() const { return layers.front().length(); }  ///< tokens per sequence
  Index capacity() const { return layers.front().capacity(); }
  /// Returns the bytes that the next token reads.
  Index bytes_read() const {
    Index bytes = 0;
    for (const KvCache& layer : layers) bytes += layer.bytes_read();
    return bytes;
  }
};

struct Pass {
  DocumentOffsets document_offsets{};
  Observer* observer = nullptr;
  /// Precedes the tokens, which are appended to it; for inference tapes.
  ModelKvCache* cache = nullptr;
};

}  // namespace difftape
