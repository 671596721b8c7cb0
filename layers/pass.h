#pragma once
// The inputs of a forward pass besides the hidden states.

#include <algorithm>
#include <vector>

#include "autograd/tape.h"
#include "core/attention/cache.h"
#include "layers/observer.h"

namespace difftape {

/// Keys (B, T, key heads, D), after norm and RoPE, and values (B, T, value heads, E).
struct KeyValues {
  Var k{}, v{};
};

/// The caches of all layers with their own keys and values, then the cache of a cross-decoder.
struct ModelKvCache {
  std::vector<KvCache> layers;

  /// Returns the cache of a layer; all layers of a cross-decoder have the last one.
  KvCache& of_layer(Index layer) { return layers[std::min(layer, std::ssize(layers) - 1)]; }
  Index batch() const { return layers.front().batch(); }
  Index length() const { return layers.front().length(); }  ///< tokens per sequence
  Index capacity() const { return layers.front().capacity(); }
  /// Returns the bytes that the next token reads without windows and blocks; counts a cache that
  /// several layers read once.
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
  /// Keys and values for layers of a cross-decoder, which read the last cache if there is one.
  KeyValues shared{};
};

}  // namespace difftape
