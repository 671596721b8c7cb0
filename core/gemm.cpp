// B is packed into zero-filled panels of 64 floats or 32 doubles, unless its rows are short and A
// has few. A is read in place, except that a task copies long rows of a transposed A. A task owns
// up to 128 rows of up to four panels of C, or fewer rows of more panels if it packs columns of A
// to bfloat16, and adds the products over K in chunks. For bfloat16, B is packed in pairs along K.
// Few rows times a transposed B are dot products (core/few_rows.h).
#include "core/gemm.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "core/few_rows.h"
#include "core/pack.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/simd.h"
#include "core/tile.h"

namespace difftape {

namespace {

using tile::Pairs;

constexpr Index kRowTile = 32;       // rows of a tile whose accumulators fit the registers
constexpr Index kNearRowTile = 128;  // in small products, whose C is in the cache
/// Longest inner size of one tile product. Narrow registers read a panel once for few rows of A, so
/// it has to stay in the first cache, of 32 KB, beside those rows.
constexpr Index kChunk = detail::kRegisterBytes == 64 ? 512 : 96;

/// Returns the length of chunks of k: as even as possible, a function of k alone.
Index chunk_length(Pairs pairs, Index k) {
  const Index chunks = ceil_div(k, kChunk);
  return chunks == 0 ? 0 : pack::padded_inner(pairs, ceil_div(k, chunks));
}

void fill_rows(real* c, Index rows, Index cols, Index stride) {
  for (Index i = 0; i < rows; ++i) std::fill_n(c + i * stride, cols, real{0});
}

/// Prefetches the next C tile if few of its rows share a page: the hardware prefetcher does not
/// cross pages.
void prefetch(const real* c, Index rows, Index n, Index stride) {
  constexpr Index kLine = 64 / Index{sizeof(real)}, kFar = 16 * kLine;
  if (stride < kFar) return;
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < n; j += kLine) __builtin_prefetch(c + i * stride + j, 0, 2);
  }
}

/// C (rows x n) = or += left times k rows of a right operand with stride b_stride.
void multiply_tiles(const pack::Left& left, Index rows, Index k, const real* b, Index b_stride,
                    Index n, real* c, Index c_stride, bool add, Index row_tile) {
  const tile::Backend& backend = tile::backend();
  const auto* a = static_cast<const real*>(left.data);
  const auto tiles = [&](Index begin, Index end, Index height) {
    if (begin == end) return;
    const tile::Kernel multiply =
        backend.kernel({height, n, k, left.stride, b_stride, c_stride, left.transposed, add});
    for (Index i = begin; i < end; i += height) {
      if (i + height < end) prefetch(c + (i + height) * c_stride, height, n, c_stride);
      multiply(a + (left.transposed ? i : i * left.stride), b, c + i * c_stride);
    }
  };
  const Index whole = rows / row_tile * row_tile;
  tiles(0, whole, row_tile);
  tiles(whole, rows, rows - whole);
}

/// One product and the layout of its operands for the tiles.
struct GemmCall {
  Operand a, b;
  real* c;
  Index c_stride;
  Accumulate accumulate;
  const real* residual;
  Pairs pairs;
  Index chunk = chunk_length(pairs, a.cols);
  pack::Right right{};
};

/// The cuts of C: each task owns `rows` rows of `group` neighboring panels.
struct Cut {
  Index rows = 128, group = 4;
  Index tasks(const GemmCall& call) const { return row_blocks(call) * groups(call); }
  Index row_blocks(const GemmCall& call) const { return ceil_div(call.a.rows, rows); }
  Index groups(const GemmCall& call) const { return ceil_div(call.b.cols, group * kPanel); }
};

constexpr Index kEnoughTasks = 12;

/// Prefers large blocks, which reuse rows of A for many panels, as long as there are enough tasks.
Cut cut_of(const GemmCall& call, Index enough = kEnoughTasks) {
  Cut cut;
  if (call.pairs != nullptr && call.a.transposed) {
    // Packing the rows is expensive: do it once for all panels.
    cut = {.rows = 64, .group = 16};
    if (cut.tasks(call) < enough) cut.rows = 32;
  }
  if (cut.tasks(call) < enough) cut.rows = std::min<Index>(cut.rows, 64);
  while (cut.tasks(call) < enough && cut.group > 1) cut.group /= 2;
  return cut;
}

/// Returns the bytes per thread for a block of the left operand.
Index left_bytes(const GemmCall& call) {
  if (pack::left_lies_well(call.pairs, call.a)) return 0;
  return pack::left_bytes(call.pairs, std::min(cut_of(call).rows, call.a.rows), call.chunk);
}

Operand rows_of(Operand m, Index begin, Index count) {
  const Index first = pack::position(m, begin, 0);
  if (m.bf16 != nullptr) {
    m.bf16 += first;
  } else {
    m.data += first;
  }
  m.rows = count;
  return m;
}

/// C = or += left times rows [k, k + length) of one panel.
void multiply_panel(const GemmCall& call, const pack::Left& left, Index rows, Index k, Index length,
                    Index panel, real* c, bool add) {
  const void* right = call.right.at(panel, k);
  const Index n = std::min(kPanel, call.b.cols - panel * kPanel);
  c += panel * kPanel;
  if (call.pairs == nullptr) {
    multiply_tiles(left, rows, length, static_cast<const real*>(right), call.right.stride, n, c,
                   call.c_stride, add, kRowTile);
    return;
  }
  call.pairs->multiply({.a = static_cast<const std::uint32_t*>(left.data),
                        .b = static_cast<const std::uint32_t*>(right),
                        .c = c,
                        .m = rows,
                        .n = n,
                        .k = ceil_div(length, 2),
                        .a_row = left.stride / 2,
                        .a_inner = 1,
                        .b_stride = kPanel,
                        .c_stride = call.c_stride,
                        .add = add});
}

void multiply_block(const GemmCall& call, Index row, Index rows, Index first_panel, Index end_panel,
                    void* scratch) {
  const Operand a = rows_of(call.a, row, rows);
  real* c = call.c + row * call.c_stride;
  const Index first = first_panel * kPanel,
              width = std::min(end_panel * kPanel, call.b.cols) - first;
  const bool adds = call.accumulate == Accumulate::yes || call.residual != nullptr;
  if (call.residual != nullptr) {
    for (Index i = 0, at = first; i < rows; ++i, at += call.c_stride)
      std::copy_n(call.residual + row * call.c_stride + at, width, c + at);
  } else if (a.cols == 0 && !adds) {
    fill_rows(c + first, rows, width, call.c_stride);
  }
  for (Index k = 0; k < a.cols; k += call.chunk) {
    const Index length = std::min(call.chunk, a.cols - k);
    const pack::Left left = pack::left(call.pairs, a, k, length, scratch);
    for (Index panel = first_panel; panel < end_panel; ++panel)
      multiply_panel(call, left, rows, k, length, panel, c, adds || k > 0);
  }
}

/// Returns the bytes of the packed right operand, 0 if tiles read it in place.
Index packed_bytes(const GemmCall& call) {
  if (pack::right_lies_well(call.pairs, call.b, call.a.rows)) return 0;
  return pack::panel_bytes(call.pairs, call.b.rows, call.b.cols);
}

std::shared_ptr<void> take(Index bytes) { return bytes == 0 ? nullptr : pool::allocate(bytes); }

/// Returns the right operand for the tiles: B itself, or panels to be packed in `memory`.
pack::Right right_at(const GemmCall& call, void* memory) {
  if (memory == nullptr) return {call.b.data, call.b.stride, kPanel, sizeof(real)};
  const Index bytes = pack::panel_bytes(call.pairs, call.b.rows, kPanel),
              size = pack::element_size(call.pairs);
  return {memory, kPanel, bytes / size, size};
}

/// Packs panel i into the memory of call.right.
void pack_panel(const GemmCall& call, Index i) {
  pack::panel(call.pairs, call.b, i * kPanel, const_cast<void*>(call.right.at(i, 0)));
}

/// Multiplies one block of the cut. Neighboring tasks have the same rows: a thread finds in its
/// cache what it wrote in the call before (core/parallel.cpp).
void multiply_task(const GemmCall& call, const Cut& cut, Index task, void* scratch) {
  const Index groups = cut.groups(call), panels = ceil_div(call.b.cols, kPanel);
  const Index row = task / groups * cut.rows, panel = task % groups * cut.group;
  multiply_block(call, row, std::min(cut.rows, call.a.rows - row), panel,
                 std::min(panel + cut.group, panels), scratch);
}

/// Computes a product of few rows and returns true; returns false for others.
bool run_few_rows(const GemmCall& call) {
  if (call.pairs != nullptr || !are_few_rows(call.a, call.b)) return false;
  const real* start = call.accumulate == Accumulate::yes ? call.c : call.residual;
  multiply_few_rows(start, call.a, call.b, call.c, call.c_stride);
  return true;
}

/// Returns an upper bound of the packed bytes that is linear in the rows of B, so that its sum does
/// not depend on how rows are divided.
Index most_packed_bytes(const GemmCall& call) {
  const Index padding = call.pairs != nullptr ? 1 : 0;
  return (call.b.rows + padding) * round_up(call.b.cols, kPanel) * pack::element_size(call.pairs);
}

/// Calls f(call, i) for each i below count(call), for all calls.
template <class Count, class F>
void parallel_over(std::span<const GemmCall> calls, Count&& count, F&& f) {
  std::vector<std::pair<const GemmCall*, Index>> items;
  for (const GemmCall& call : calls) {
    for (Index i = 0; i < count(call); ++i) items.emplace_back(&call, i);
  }
  parallel_for(std::ssize(items), [&](Index i) { f(*items[i].first, items[i].second); });
}

/// Scratch memory: for the packed right operands of all calls, and for each thread.
struct Scratch {
  Index packed, left;
};

void run(std::span<GemmCall> calls, const Scratch& bytes) {
  tile::backend();  // throws its errors here, not in a thread
  assert(std::ranges::all_of(calls, [](const GemmCall& call) {
    return call.pairs != nullptr || (call.a.bf16 == nullptr && call.b.bf16 == nullptr);
  }));
  const auto packed = take(bytes.packed), scratch = take(bytes.left * num_threads());
  char* next = static_cast<char*>(packed.get());
  const auto is_packed = [](const GemmCall& call) { return packed_bytes(call) > 0; };
  for (GemmCall& call : calls) {
    call.right = right_at(call, is_packed(call) ? next : nullptr);
    next += packed_bytes(call);
  }
  parallel_over(
      calls,
      [&](const GemmCall& call) { return is_packed(call) ? ceil_div(call.b.cols, kPanel) : 0; },
      pack_panel);
  const Index enough = ceil_div(kEnoughTasks, std::max<Index>(std::ssize(calls), 1));
  parallel_over(
      calls, [&](const GemmCall& call) { return cut_of(call, enough).tasks(call); },
      [&](const GemmCall& call, Index task) {
        multiply_task(call, cut_of(call, enough), task,
                      static_cast<char*>(scratch.get()) + thread_index() * bytes.left);
      });
}

void run(GemmCall call) {
  assert(call.a.cols == call.b.rows);
  if (!run_few_rows(call)) run({&call, 1}, {packed_bytes(call), left_bytes(call)});
}

}  // namespace

void gemm(const Operand& a, const Operand& b, real* c, Index c_stride, Accumulate accumulate,
          Precision precision) {
  run({a, b, c, c_stride, accumulate, nullptr, tile::pairs_of(precision)});
}

void gemm_with_residual(const real* residual, const Operand& a, const Operand& b, real* c,
                        Index c_stride, Precision precision) {
  run({a, b, c, c_stride, Accumulate::no, residual, tile::pairs_of(precision)});
}

void gemm_group(std::span<const GemmProduct> products, Precision precision) {
  std::vector<GemmCall> calls;
  Scratch bytes{0, 0};
  for (const GemmProduct& p : products) {
    assert(p.a.cols == p.b.rows);
    const GemmCall call{
        p.a, p.b, p.c, p.c_stride, p.accumulate, nullptr, tile::pairs_of(precision)};
    bytes.packed += most_packed_bytes(call);
    if (!pack::left_lies_well(call.pairs, call.a))
      bytes.left = pack::left_bytes(call.pairs, Cut().rows, kChunk);
    if (call.a.rows > 0 && !run_few_rows(call)) calls.push_back(call);
  }
  run(calls, bytes);
}

void tile_gemm(const Operand& a, const real* b, Index b_stride, Index n, real* c, Index c_stride,
               Accumulate accumulate) {
  assert(a.bf16 == nullptr);
  if (a.cols == 0 && accumulate == Accumulate::no) fill_rows(c, a.rows, n, c_stride);
  const Index chunk = chunk_length(nullptr, a.cols);
  for (Index j = 0; j < n; j += kPanel) {
    for (Index k = 0; k < a.cols; k += chunk) {
      const pack::Left left{a.data + pack::position(a, 0, k), a.stride, a.transposed};
      multiply_tiles(left, a.rows, std::min(chunk, a.cols - k), b + k * b_stride + j, b_stride,
                     std::min(kPanel, n - j), c + j, c_stride,
                     accumulate == Accumulate::yes || k > 0, kNearRowTile);
    }
  }
}

}  // namespace difftape
