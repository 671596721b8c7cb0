#pragma once
// A digest of bytes (XXH3, 128 bits): tells whether two texts or files are the same, and finds
// damage. It does not protect against forgery.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace difftape {

/// Digest of the bytes added so far, in their order; how they were cut into calls is irrelevant.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  /// 32 hexadecimal digits, most significant first, as `xxhsum -H2` prints them.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace difftape
