#include "core/distributed.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <thread>

#include "core/error.h"
#include "core/pool.h"
#ifdef DIFFTAPE_WITH_MPI
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace difftape::distributed {

namespace {

/// Returns the integer in the first environment variable that is set, else `otherwise`.
int from_environment(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return otherwise;
}

/// Returns the number of processes that mpirun of Open MPI or MPICH announces.
int announced() { return from_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1); }

/// Sleeps until another process ends all.
[[noreturn]] void wait_for_the_end() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace

#ifdef DIFFTAPE_WITH_MPI

namespace {

/// Longest message: MPI counts in int.
constexpr std::size_t kPiece = std::size_t{1} << 30;

struct World {
  int count = 1, rank = 0, on_this_machine = 1;
  bool ready = false;
  std::uint64_t sent = 0;
  std::vector<MPI_Request> under_way;
};
World world;

/// Calls f(bytes, count) for each piece.
template <class Byte, class F>
void in_pieces(std::span<Byte> bytes, F&& f) {
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    const auto piece = bytes.subspan(at, std::min(kPiece, bytes.size() - at));
    f(piece.data(), static_cast<int>(piece.size()));
  }
}

/// Returns true if there is no other process, or a dry run without bytes to send.
bool alone() { return world.count == 1 || pool::dry(); }

/// Finds the first process that failed; does not return in others.
void agree(bool has_failed) {
  const int none = std::numeric_limits<int>::max();
  int first = has_failed ? world.rank : none;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first != none && first != world.rank) wait_for_the_end();
}

}  // namespace

void join() {
  if (announced() < 2) return;
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_size(MPI_COMM_WORLD, &world.count);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  throw_if<UsageError>(
      world.count != announced(),
      "{} processes were started together, but {} finds {}, so each would train the same run; "
      "start them with the mpirun of this library",
      announced(), library(), world.count);
  MPI_Comm here = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size(here, &world.on_this_machine);
  MPI_Comm_free(&here);
}

void leave() {
  if (world.count == 1) return;
  MPI_Finalize();
  world = World();
}

std::string library() {
  std::string version(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  return version.substr(0, std::min(version.find(','), size_t(length)));
}

std::string machine() {
  if (world.count == 1) return "";
  std::string name(MPI_MAX_PROCESSOR_NAME, '\0');
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  return name.substr(0, length);
}

Index count() { return world.count; }
Index rank() { return world.rank; }
Index on_this_machine() { return world.on_this_machine; }

void ready() {
  if (world.count > 1) agree(false);
  world.ready = true;
}

void failed() {
  if (world.count > 1 && !world.ready) agree(true);
}

void end_all(int code) {
  if (world.count > 1) MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

void send(std::span<const std::byte> bytes, Index to, Index tag) {
  if (alone()) return;
  world.sent += bytes.size();
  in_pieces(bytes, [&](const std::byte* data, int size) {
    MPI_Isend(data, size, MPI_BYTE, static_cast<int>(to), static_cast<int>(tag), MPI_COMM_WORLD,
              &world.under_way.emplace_back());
  });
}

void receive(std::span<std::byte> bytes, Index from, Index tag) {
  if (alone()) return;
  in_pieces(bytes, [&](std::byte* data, int size) {
    MPI_Irecv(data, size, MPI_BYTE, static_cast<int>(from), static_cast<int>(tag), MPI_COMM_WORLD,
              &world.under_way.emplace_back());
  });
}

void progress() {
  if (alone()) return;
  int done = 0;
  MPI_Testall(static_cast<int>(world.under_way.size()), world.under_way.data(), &done,
              MPI_STATUSES_IGNORE);
}

void wait() {
  if (alone()) return;
  MPI_Waitall(static_cast<int>(world.under_way.size()), world.under_way.data(),
              MPI_STATUSES_IGNORE);
  world.under_way.clear();
}

std::uint64_t bytes_sent() { return world.sent; }

void broadcast(std::span<std::byte> bytes, Index from) {
  if (alone()) return;
  if (from == rank()) world.sent += bytes.size() * (count() - 1);
  in_pieces(bytes, [&](std::byte* data, int size) {
    MPI_Bcast(data, size, MPI_BYTE, static_cast<int>(from), MPI_COMM_WORLD);
  });
}

void detail::combine(std::span<std::byte> bytes) {
  if (alone()) return;
  in_pieces(bytes, [](std::byte* data, int size) {
    MPI_Allreduce(MPI_IN_PLACE, data, size, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  });
}

#else

namespace {
bool refused = false;
}

void join() {
  const int several = announced();
  if (several < 2) return;
  refused = true;
  throw UsageError(
      fmt::format("{} processes were started together, and this program is built without MPI: each "
                  "would train the same run; install libopenmpi-dev and openmpi-bin and configure "
                  "again, or start one process",
                  several));
}

void leave() {}
std::string library() { return ""; }
std::string machine() { return ""; }
Index count() { return 1; }
Index rank() { return 0; }
Index on_this_machine() { return 1; }
void ready() {}

void failed() {
  if (refused && from_environment({"OMPI_COMM_WORLD_RANK", "PMI_RANK"}, 0) > 0) wait_for_the_end();
}

void end_all(int code) { std::_Exit(code); }
void send(std::span<const std::byte>, Index, Index) {}
void receive(std::span<std::byte>, Index, Index) {}
void progress() {}
void wait() {}
std::uint64_t bytes_sent() { return 0; }
void broadcast(std::span<std::byte>, Index) {}
void detail::combine(std::span<std::byte>) {}

#endif

std::string broadcast(std::string text, Index from) {
  std::vector<std::uint64_t> size{rank() == from ? text.size() : 0};
  combine(size);
  text.resize(size[0]);
  broadcast(std::as_writable_bytes(std::span(text)), from);
  return text;
}

}  // namespace difftape::distributed
