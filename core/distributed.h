#pragma once
// Processes that train one model together, and the only user of MPI: `mpirun -n 4 difftape train`.
// The functions only move bytes and never add, so no result depends on the algorithms of MPI.
// Without mpirun, and in a dry run (core/pool.h), all functions do nothing and MPI is never called.
// Main thread only.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/real.h"

namespace difftape::distributed {

/// Joins the processes that mpirun started with this one, if there are several. Throws
/// UsageError if there are and the program is built without MPI, or its MPI does not find them.
void join();
/// Waits for the others and leaves them. Must be the last call.
void leave();
/// Returns the name and version of the MPI library, empty without MPI.
std::string library();

Index count();
Index rank();  ///< from 0
/// Returns the name of this machine, empty if there is one process.
std::string machine();
/// Returns the number of processes that share the memory of this machine.
Index on_this_machine();

/// All processes call this. Do everything that can fail on one process before it. It does not
/// return if one of them failed.
void ready();
/// A process that fails calls this before it reports the error and ends all. If several fail before
/// ready(), it returns in the first only, so that one error is reported.
void failed();
/// Ends all processes immediately.
[[noreturn]] void end_all(int code);

/// Both return at once; the bytes must stay valid until wait(). Messages with one tag arrive in
/// order.
void send(std::span<const std::byte> bytes, Index to, Index tag);
void receive(std::span<std::byte> bytes, Index from, Index tag);
/// Advances pending messages, which nothing else does while a process computes.
void progress();
/// Waits until all messages of this process are sent and received.
void wait();
/// Returns the bytes that this process has sent by `send` and `broadcast`.
std::uint64_t bytes_sent();

/// Copies the bytes, or a string of any length, of process `from` to all.
void broadcast(std::span<std::byte> bytes, Index from);
std::string broadcast(std::string text, Index from);

namespace detail {
void combine(std::span<std::byte> bytes);
}
/// All-reduces by bitwise OR. An element that is non-zero on several processes must be the same on
/// all of these.
template <class T>
void combine(std::vector<T>& numbers) {
  detail::combine(std::as_writable_bytes(std::span(numbers)));
}

/// All-gathers `mine`, of the same length on each process, in the order of ranks.
template <class T>
std::vector<T> all_of(std::span<const T> mine) {
  std::vector<T> all(mine.size() * count());
  std::ranges::copy(mine, all.begin() + std::ssize(mine) * rank());
  combine(all);
  return all;
}

}  // namespace difftape::distributed
