#include "core/gemm.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/parallel.h"
#include "core/pool.h"
#include "core/tile.h"

namespace difftape {

namespace {

constexpr Index kRowTile = 32;    // rows of one tile product: its accumulators fit the registers
constexpr Index kRowBlock = 128;  // rows of C that one task computes, one panel wide
constexpr Index kChunk = 512;     // longest inner size of one tile product

/// Length of the chunks that k is cut into: as even as possible, a function of k alone.
Index chunk_length(Index k) {
  const Index chunks = (k + kChunk - 1) / kChunk;
  return chunks == 0 ? 0 : (k + chunks - 1) / chunks;
}

const real* element(const Operand& m, Index row, Index col) {
  return m.transposed ? m.data + col * m.stride + row : m.data + row * m.stride + col;
}

void fill_rows(real* c, Index rows, Index cols, Index stride) {
  for (Index i = 0; i < rows; ++i) std::fill_n(c + i * stride, cols, real{0});
}

/// C (m rows, n <= kPanel columns) = or += A B, with k in chunks.
void multiply_panel(const Operand& a, const real* b, Index b_stride, Index n, real* c,
                    Index c_stride, Into into) {
  if (a.cols == 0) {
    if (into == Into::overwrite) fill_rows(c, a.rows, n, c_stride);
    return;
  }
  const tile::Engine& engine = tile::engine();
  const Index chunk = chunk_length(a.cols);
  for (Index k = 0; k < a.cols; k += chunk) {
    const Index length = std::min(chunk, a.cols - k);
    const bool add = into == Into::add || k > 0;
    const auto tiles = [&](Index begin, Index end, Index rows) {
      if (begin == end) return;
      const tile::Kernel multiply =
          engine.kernel({rows, n, length, a.stride, b_stride, c_stride, a.transposed, add});
      for (Index i = begin; i < end; i += rows) {
        multiply(element(a, i, k), b + k * b_stride, c + i * c_stride);
      }
    };
    const Index whole = a.rows / kRowTile * kRowTile;
    tiles(0, whole, kRowTile);
    tiles(whole, a.rows, a.rows - whole);
  }
}

Operand rows_of(const Operand& m, Index begin, Index count) {
  return {element(m, begin, 0), count, m.cols, m.stride, m.transposed};
}

void pack_panel(const Operand& b, Index first, real* panel) {
  const Index width = std::min(kPanel, b.cols - first);
  for (Index k = 0; !b.transposed && k < b.rows; ++k) {
    std::copy_n(b.data + k * b.stride + first, width, panel + k * kPanel);
    std::fill_n(panel + k * kPanel + width, kPanel - width, real{0});
  }
  if (!b.transposed) return;
  // Rows of the stored matrix become columns: 16 x 16 squares keep both sides in the cache.
  constexpr Index kSquare = 16;
  for (Index k = 0; k < b.rows; k += kSquare) {
    const Index k_end = std::min(k + kSquare, b.rows);
    for (Index j = 0; j < kPanel; j += kSquare) {
      for (Index i = k; i < k_end; ++i) {
        for (Index column = j; column < j + kSquare; ++column) {
          panel[i * kPanel + column] =
              column < width ? b.data[(first + column) * b.stride + i] : real{0};
        }
      }
    }
  }
}

std::atomic<const tile::Engine*> chosen{nullptr};

const tile::Engine* engine_named(std::string_view name) {
  const tile::Engine* engine = name == "libxsmm" ? tile::libxsmm_engine()
                               : name == "eigen" ? tile::eigen_engine()
                                                 : nullptr;
  if (engine == nullptr) {
    throw UsageError(fmt::format("matrix engine '{}' is not available here; use {}eigen", name,
                                 tile::libxsmm_engine() != nullptr ? "libxsmm or " : ""));
  }
  return engine;
}

}  // namespace

const tile::Engine& tile::engine() {
  const Engine* engine = chosen.load(std::memory_order_relaxed);
  if (engine == nullptr) {
    const char* wanted = std::getenv("DIFFTAPE_GEMM");
    engine = wanted != nullptr && *wanted  ? engine_named(wanted)
             : libxsmm_engine() != nullptr ? libxsmm_engine()
                                           : eigen_engine();
    chosen.store(engine, std::memory_order_relaxed);
  }
  return *engine;
}

const char* gemm_engine() { return tile::engine().name; }
void set_gemm_engine(const char* name) { chosen = engine_named(name); }

void pack_panels(const Operand& b, real* panels) {
  parallel_for((b.cols + kPanel - 1) / kPanel, [&](Index panel) {
    pack_panel(b, panel * kPanel, panels + panel * kPanel * b.rows);
  });
}

void gemm(const Operand& a, const Operand& b, real* c, Index c_stride, Into into) {
  assert(a.cols == b.rows);
  tile::engine();
  const Index panels = (b.cols + kPanel - 1) / kPanel;
  const Index row_blocks = (a.rows + kRowBlock - 1) / kRowBlock;
  const auto memory =
      pool::allocate(static_cast<std::size_t>(packed_size(b.rows, b.cols)) * sizeof(real));
  real* packed = static_cast<real*>(memory.get());
  pack_panels(b, packed);
  parallel_for(panels * row_blocks, [&](Index task) {
    const Index panel = task % panels, row = task / panels * kRowBlock;
    multiply_panel(rows_of(a, row, std::min(kRowBlock, a.rows - row)),
                   packed + panel * kPanel * b.rows, kPanel,
                   std::min(kPanel, b.cols - panel * kPanel), c + row * c_stride + panel * kPanel,
                   c_stride, into);
  });
}

void tile_gemm(const Operand& a, const real* b, Index b_stride, Index n, real* c, Index c_stride,
               Into into) {
  for (Index j = 0; j < n; j += kPanel) {
    multiply_panel(a, b + j, b_stride, std::min(kPanel, n - j), c + j, c_stride, into);
  }
}

}  // namespace difftape
