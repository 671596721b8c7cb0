#pragma once
// Processes that train one model together, and the only user of MPI: `mpirun -n 4 difftape train`.
// Only bytes are moved, nothing is added up on the way, so that no result depends on how. A process
// that was not started so is alone: nothing of MPI is called, and all this does nothing, as it does
// in a dry run (core/pool.h). Main thread only.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/real.h"

namespace difftape::processes {

/// Joins the processes that mpirun started with this one, if it started several; until then, and
/// otherwise, this one is alone. Throws UsageError if the program is built without MPI.
void join();
/// Waits for the others, and leaves them: the last call of all.
void leave();
/// The name and version of the MPI library; empty if the program is built without.
std::string library();

Index count();
Index rank();  ///< of this process, from 0
/// The number of processes that share the memory of this machine.
Index on_this_machine();

/// All processes call this. Do everything that can fail on one process before it. It does not
/// return if one of them failed.
void ready();
/// Called instead by who failed, and by who fails later, before it says why and ends all. Of
/// several that fail before they were ready only the first returns: why is said once.
void failed();
/// Ends all processes at once, with this exit code.
[[noreturn]] void end_all(int code);

/// Both return at once; the bytes must stay until wait(). Of one tag, in the same order in both.
void send(std::span<const std::byte> bytes, Index to, Index tag);
void receive(std::span<std::byte> bytes, Index from, Index tag);
/// Lets what is under way go on: while a process computes, nothing else does.
void progress();
/// Waits until all that this process sent has left and all that it receives has come.
void wait();
/// Bytes that this process sent so far by `send` and `broadcast`.
std::uint64_t bytes_sent();

/// Afterwards all have the bytes of process `from`, however long the text was here.
void broadcast(std::span<std::byte> bytes, Index from);
std::string broadcast(std::string text, Index from);

namespace detail {
void combine(std::span<std::byte> bytes);
}
/// All-reduces few numbers by bitwise or. Each may be non-zero on at most one process.
template <class T>
void combine(std::vector<T>& numbers) {
  detail::combine(std::as_writable_bytes(std::span(numbers)));
}

/// Each process's `mine`, a list of the same length in all, one behind the other.
template <class T>
std::vector<T> all_of(std::span<const T> mine) {
  std::vector<T> all(mine.size() * count());
  std::ranges::copy(mine, all.begin() + std::ssize(mine) * rank());
  combine(all);
  return all;
}

}  // namespace difftape::processes
