#pragma once
// Memory for tensors. Freed blocks are kept and reused for requests of the same size or, down to an
// eighth, smaller ones. So a training step allocates nothing from the system once its sizes have
// been seen, and the pool does not grow with every new size.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace difftape::pool {

/// Returns a 64-byte aligned block of at least `bytes`, which goes back to the pool with its last
/// handle. Contents are undefined. Throws std::bad_alloc. Thread-safe.
std::shared_ptr<void> allocate(std::size_t bytes);

struct Stats {
  std::uint64_t system_allocations = 0;  ///< blocks ever taken from the system
  std::size_t bytes_in_use = 0;          ///< held by tensors now
  std::size_t peak_bytes_in_use = 0;
  std::size_t bytes_reserved = 0;  ///< of the blocks that tensors hold or that wait in the pool
};
Stats stats();

void reset_peak();

/// Returns every unused block to the system.
void trim();

namespace detail {
struct DryState;
inline constinit thread_local DryState* dry = nullptr;
}  // namespace detail
/// Returns true if a DryRun lives on the calling thread.
inline bool dry() { return detail::dry != nullptr; }

/// Counts memory without taking any, while it lives and on its thread: the functions above use a
/// pool of its own, which hands out reserved addresses. Any access to them ends the program. The
/// loops of core/parallel, and so all matrix products, run nothing. Only blocks of at most 64 bytes
/// are real, so that scalars can be written and read. `allocate` throws std::bad_alloc when the
/// address space is used up. A block may outlive the run, but must be freed by the same thread.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  static constexpr std::size_t kNotReturned = std::numeric_limits<std::size_t>::max();
  struct Block {
    std::size_t bytes;
    std::size_t in_use;  ///< bytes_in_use including this block, when it was taken
    /// Number of blocks taken before it was returned.
    std::size_t returned = kNotReturned;
  };
  /// Returns all blocks taken so far, in order.
  const std::vector<Block>& blocks() const;

 private:
  std::shared_ptr<detail::DryState> state_;
  detail::DryState* before_;
};

}  // namespace difftape::pool
