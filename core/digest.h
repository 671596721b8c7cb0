#pragma once
// A digest of bytes (XXH3, 128 bits) that detects differences and damage. It does not protect
// against forgery.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace difftape {

/// The digest of all bytes added so far, however they were split into calls.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  /// Returns 32 hexadecimal digits, most significant first, like `xxhsum -H2`.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the digest of a text.
inline std::string digest_of(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.hex();
}

}  // namespace difftape
