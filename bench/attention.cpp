// Compares the fused attention kernels, forward and backward, interleaved within one run: V2 with
// two calls of the softmax kernel, V1 with softmax in the baseline's shape, block-sparse with dense
// V2, and the memory that a call needs besides its operands and results.
#include <fmt/core.h>

#include "bench/attention_call.h"
#include "bench/measure.h"
#include "core/pool.h"
#include "core/rows.h"
#include "train/system/text_table.h"

namespace difftape::bench {
namespace {

constexpr Index kHeads = 6, kHeadDim = 64;

/// Computes V2 without a kernel of its own: one softmax call per map over the same keys and values,
/// and the subtraction between forward and backward.
struct TwoCalls {
  AttentionCall first, second;
  Tensor lambda, out, dout2, dlambda;

  TwoCalls(Index batch, Index seq)
      : first(attention_call("softmax", kHeads, kHeadDim, batch, seq)),
        second(attention_call("softmax", kHeads, kHeadDim, batch, seq)),
        lambda(Tensor::full({batch, seq, kHeads}, real(0.5))),
        out(Tensor::like(first.dout)),
        dout2(Tensor::like(first.dout)),
        dlambda(Tensor::like(lambda)) {
    second.to.dk = first.to.dk;
    second.to.dv = first.to.dv;
    second.to.accumulate_k = second.to.accumulate_v = Accumulate::yes;
  }
  void run_maps() {
    first.run();
    second.run();
  }
  void run_all() {
    const AttentionOutputs a = attention_forward(first.in), b = attention_forward(second.in);
    parallel_ranges(lambda.size(), 64, [&](Index begin, Index count) {
      for (Index i = begin; i < begin + count; ++i) {
        const auto row = [i](const Tensor& x) {
          return ConstRow(x.data() + i * kHeadDim, kHeadDim);
        };
        const real weight = lambda.data()[i];
        Row(out.data() + i * kHeadDim, kHeadDim) = row(a.out) - weight * row(b.out);
        Row(dout2.data() + i * kHeadDim, kHeadDim) = -weight * row(first.dout);
        dlambda.data()[i] = -(row(first.dout) * row(b.out)).sum();
      }
    });
    attention_backward(first.in, a, first.dout, first.to);
    attention_backward(second.in, b, dout2, second.to);
  }
};

void compare_times(Index tokens, int rounds) {
  system::Table table{{{"", "T"},
                       {"softmax", "ms"},
                       {"V1", "ms"},
                       {"V2", "ms"},
                       {"softmax / V1", "median (10-90 %)"},
                       {"two softmax / V2", "median (10-90 %)"},
                       {"with subtraction / V2", "median (10-90 %)"}},
                      {}};
  for (const Index seq : {256, 512, 1024, 2048}) {
    const Index batch = std::max<Index>(1, tokens / seq);
    const auto call = [&](const char* kind) {
      return attention_call(kind, kHeads, kHeadDim, batch, seq);
    };
    AttentionCall softmax = call("softmax"), v1 = call("diff_v1"), v2 = call("diff_v2");
    TwoCalls two(batch, seq);
    const auto seconds =
        interleaved_seconds({[&] { softmax.run(); }, [&] { v1.run(); }, [&] { v2.run(); },
                             [&] { two.run_maps(); }, [&] { two.run_all(); }},
                            rounds);
    const auto ms = [&](size_t i) {
      return fmt::format("{:.2f}", 1e3 * stats::quantile(seconds[i], 0.5));
    };
    table.rows.push_back({std::to_string(seq), ms(0), ms(1), ms(2),
                          ratio_text(seconds[0], seconds[1]), ratio_text(seconds[3], seconds[2]),
                          ratio_text(seconds[4], seconds[2])});
  }
  fmt::print("{} heads of {}, {} tokens in all, forward + backward\n{}\n", kHeads, kHeadDim, tokens,
             to_text(table));
}

/// Dense V2 against block-sparse V2 over blocks of 64: a quarter of the pairs of blocks that dense
/// attention reads, and a quarter of the blocks for each query.
void compare_blocks(Index seq, int rounds) {
  constexpr Index kSize = 64;
  const Index blocks = seq / kSize;
  Index quarter = 1;  // reads quarter * (blocks - (quarter - 1) / 2) of blocks (blocks + 1) / 2
  while ((quarter + 1) * (2 * blocks - quarter) <= blocks * (blocks + 1) / 4) ++quarter;
  system::Table table{{{"", "reads"},
                       {"num_selected_blocks", ""},
                       {"V2", "ms"},
                       {"dense / V2", "median (10-90 %)"}},
                      {}};
  const std::pair<const char*, BlockSparsity> cases[] = {
      {"all keys", {}},
      {"25 % of the pairs of blocks", {kSize, quarter}},
      {"25 % of the blocks", {kSize, blocks / 4}},
      {"25 % of the pairs, separately", {kSize, quarter, true}},
      {"all blocks", {kSize, blocks}}};
  AttentionCall call = attention_call("diff_v2", kHeads, kHeadDim, 1, seq);
  std::vector<std::function<void()>> works;
  for (const auto& each : cases) {
    works.push_back([&call, &sparsity = each.second] {
      call.in.blocks = sparsity;
      call.run();
    });
  }
  const auto seconds = interleaved_seconds(works, rounds);
  for (size_t i = 0; i < works.size(); ++i) {
    const Index selected = cases[i].second.num_selected;
    table.rows.push_back({cases[i].first, selected > 0 ? std::to_string(selected) : "-",
                          fmt::format("{:.1f}", 1e3 * stats::quantile(seconds[i], 0.5)),
                          ratio_text(seconds[0], seconds[i])});
  }
  fmt::print("block-sparse V2, {} heads of {}, T {}, blocks of {}, forward + backward\n{}\n",
             kHeads, kHeadDim, seq, kSize, to_text(table));
}

void measure_memory() {
  system::Table table{
      {{"", "T"}, {"softmax", "MB"}, {"V1", "MB"}, {"V2", "MB"}, {"V2", "bytes per token"}}, {}};
  for (const Index seq : {1024, 4096, 16384}) {
    const auto extra = [seq](const char* kind) {
      AttentionCall call = attention_call(kind, kHeads, kHeadDim, 1, seq);
      pool::reset_peak();
      const auto before = pool::stats().bytes_in_use;
      call.run();
      return static_cast<double>(pool::stats().peak_bytes_in_use - before);
    };
    const double softmax = extra("softmax"), v1 = extra("diff_v1"), v2 = extra("diff_v2");
    table.rows.push_back({std::to_string(seq), fmt::format("{:.1f}", softmax / 1e6),
                          fmt::format("{:.1f}", v1 / 1e6), fmt::format("{:.1f}", v2 / 1e6),
                          fmt::format("{:.0f}", v2 / static_cast<double>(seq))});
  }
  fmt::print("peak memory of a call beside its inputs and their gradients\n{}", to_text(table));
}

}  // namespace
}  // namespace difftape::bench

int main(int argc, char** argv) {
  CLI::App app("attention kernels, forward and backward, interleaved");
  difftape::Index tokens = 4096;
  difftape::Index sparse_tokens = 8192;
  int rounds = 15;
  app.add_option("--tokens", tokens, "tokens of all sequences together")
      ->check(CLI::PositiveNumber);
  app.add_option("--sparse-tokens", sparse_tokens, "tokens of the block-sparse sequence")
      ->check(CLI::Range(256, 1 << 20));
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber);
  return difftape::bench::run_program(app, argc, argv, [&] {
    difftape::bench::print_environment();
    fmt::print("\n");
    difftape::bench::compare_times(tokens, rounds);
    difftape::bench::compare_blocks(sparse_tokens, rounds);
    difftape::bench::measure_memory();
  });
}
