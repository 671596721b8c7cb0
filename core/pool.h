#pragma once
// Memory for tensors. Blocks that are given back are kept and handed out again for the same size,
// so a training step allocates nothing from the system once every size has been seen.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

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

namespace detail {
struct DryState;
inline constinit thread_local DryState* dry = nullptr;
}  // namespace detail
/// Returns true if a DryRun lives on the calling thread.
inline bool dry() { return detail::dry != nullptr; }

/// While one lives, the functions above are on this thread those of a pool of its own, which counts
/// in the same way but hands out reserved addresses: no memory is taken, and any access ends the
/// program. The loops of core/parallel, and so all products, run nothing. Only blocks of at most 64
/// bytes are real, so that single numbers can be written and read. Other threads and what was
/// allocated before are not affected. `allocate` throws std::bad_alloc if the addresses of the
/// process are used up. A block may outlive the run, of no use then, but is given back by the same
/// thread.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  static constexpr std::size_t kNotReturned = std::numeric_limits<std::size_t>::max();
  struct Block {
    std::size_t bytes;
    std::size_t in_use;  ///< bytes_in_use with this block, when it was taken
    /// Number of blocks that had been taken when it was given back.
    std::size_t returned = kNotReturned;
  };
  /// All blocks that were taken so far, in their order.
  const std::vector<Block>& blocks() const;

 private:
  std::shared_ptr<detail::DryState> state_;
  detail::DryState* before_;
};

}  // namespace difftape::pool
