#pragma once
// Memory for tensors. Blocks that are given back are kept and handed out again for the same size,
// so a training step allocates nothing from the system once every size has been seen.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace difftape::pool {

/// 64-byte aligned block of at least `bytes`, returned to the pool with the last handle.
/// Contents are undefined. Throws std::bad_alloc. Any thread may call.
std::shared_ptr<void> allocate(std::size_t bytes);

struct Stats {
  std::uint64_t system_allocations = 0;  ///< blocks ever asked of the system
  std::size_t bytes_in_use = 0;          ///< held by tensors now
  std::size_t peak_bytes_in_use = 0;
  std::size_t bytes_reserved = 0;  ///< held by tensors or waiting in the pool
};
Stats stats();

/// Sets peak_bytes_in_use to bytes_in_use.
void reset_peak();

/// Gives every waiting block back to the system.
void trim();

}  // namespace difftape::pool
