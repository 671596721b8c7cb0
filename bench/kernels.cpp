// Rates of the kernels that a training step is made of, as shares of the measured peak.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <cmath>

#include "autograd/ops.h"
#include "bench/measure.h"
#include "core/attention/attention.h"
#include "core/peak.h"
#include "core/random.h"
#include "optim/adamw.h"

namespace difftape {
namespace {

double peak() {
  static const double measured = measure_fma_peak(0.3);
  return measured;
}

Tensor random(const Shape& shape) {
  Tensor x = Tensor::empty(shape);
  fill_normal(x, RandomStream(1, "bench"), 1);
  return x;
}

/// Reports `flops` an iteration as GFLOP/s and as a share of the peak.
void count_flops(benchmark::State& state, double flops) {
  const double total = flops * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(total / 1e9, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(total / peak(), benchmark::Counter::kIsRate);
}

/// The three products of a linear layer over `tokens` rows: y = x W^T, dx = dy W, dW = dy^T x.
enum class Product { forward, dx, dw };

void linear_product(benchmark::State& state, Product product) {
  const Index tokens = state.range(0), in = state.range(1), out = state.range(2);
  const Tensor x = random({tokens, in}), w = random({out, in}), dy = random({tokens, out});
  const Operand xm = matrix(x.data(), tokens, in), wm = matrix(w.data(), out, in),
                dym = matrix(dy.data(), tokens, out);
  Tensor y = Tensor::like(dy), dx = Tensor::like(x), dw = Tensor::like(w);
  for (auto _ : state) {
    if (product == Product::forward) {
      gemm(xm, transpose(wm), y.data(), out, Into::overwrite);
    } else if (product == Product::dx) {
      gemm(dym, wm, dx.data(), in, Into::overwrite);
    } else {
      gemm(transpose(dym), xm, dw.data(), in, Into::overwrite);
    }
  }
  count_flops(state, 2.0 * static_cast<double>(tokens * in * out));
}

void linear_sizes(benchmark::internal::Benchmark* b) {
  b->Args({4096, 128, 128})
      ->Args({4096, 128, 344})
      ->Args({2048, 384, 384})
      ->Args({2048, 384, 1024});
  b->Args({2048, 768, 2048})->ArgNames({"tokens", "in", "out"})->UseRealTime();
}
BENCHMARK_CAPTURE(linear_product, forward, Product::forward)->Apply(linear_sizes);
BENCHMARK_CAPTURE(linear_product, dx, Product::dx)->Apply(linear_sizes);
BENCHMARK_CAPTURE(linear_product, dw, Product::dw)->Apply(linear_sizes);

/// Forward and backward of one attention call: 6 baseline heads of 64 over 4096 tokens in all. The
/// FLOPs are those of the mathematics (backward twice forward), not those that are recomputed.
void attention_both(benchmark::State& state, const HeadLayout& layout, Index value_dim) {
  constexpr Index kTokens = 4096, kHeadDim = 64;
  const Index seq = state.range(0), batch = kTokens / seq;
  const auto heads_out = static_cast<Index>(layout.routes.size());
  const Tensor q = random({batch, seq, layout.query_heads, kHeadDim}),
               k = random({batch, seq, layout.key_heads, kHeadDim}),
               v = random({batch, seq, layout.value_heads, value_dim}),
               dout = random({batch, seq, heads_out, value_dim}), lambda = Tensor::scalar(0.5);
  const AttentionInputs in{q, k, v, layout.maps == 2 ? &lambda : nullptr, 0.125, nullptr, {}};
  AttentionGradients to{Tensor::like(q),
                        Tensor::like(k),
                        Tensor::like(v),
                        Into::overwrite,
                        Into::overwrite,
                        Into::overwrite,
                        {},
                        {}};
  if (layout.maps == 2) to.dlambda = Tensor::empty({batch, seq, heads_out});
  for (auto _ : state) {
    const AttentionOutputs result = attention_forward(layout, in);
    attention_backward(layout, in, result.row_stats, dout, to);
  }
  const double products = static_cast<double>(layout.maps * kHeadDim + value_dim);
  count_flops(state, 3 * products * static_cast<double>(heads_out * seq * kTokens));
}

void sequences(benchmark::internal::Benchmark* b) {
  b->Arg(256)->Arg(512)->Arg(1024)->Arg(2048)->ArgName("T")->UseRealTime();
}
BENCHMARK_CAPTURE(attention_both, softmax, HeadLayout::single(6, 6), 64)->Apply(sequences);
BENCHMARK_CAPTURE(attention_both, diff_v1, HeadLayout::pairs(6, 6), 128)->Apply(sequences);
BENCHMARK_CAPTURE(attention_both, diff_v2, HeadLayout::doubled(6, 6), 64)->Apply(sequences);

void rms_norm_both(benchmark::State& state) {
  const Tensor x = random({2048, state.range(0)}), gain = random({state.range(0)});
  for (auto _ : state) {
    Tape tape;
    const Var y = rms_norm(tape.input(x), tape.input(gain), 1e-5);
    tape.backward(y, x);
  }
  state.SetBytesProcessed(state.iterations() * x.size() * 5 * static_cast<Index>(sizeof(real)));
}
BENCHMARK(rms_norm_both)->Arg(384)->Arg(768)->ArgName("C")->UseRealTime();

void cross_entropy_both(benchmark::State& state) {
  const Tensor hidden = random({2048, 384}), weight = random({state.range(0), 384});
  const std::vector<std::int32_t> targets(2048, 3);
  for (auto _ : state) {
    Tape tape;
    tape.backward(cross_entropy(tape.input(hidden), tape.input(weight), targets));
  }
  count_flops(state, 6.0 * 2048 * 384 * static_cast<double>(state.range(0)));
}
BENCHMARK(cross_entropy_both)->Arg(512)->Arg(8192)->ArgName("V")->UseRealTime();

void adamw_step(benchmark::State& state) {
  ParameterSet parameters;
  Parameter& w = parameters.declare("w", {state.range(0)}, Role::projection, Init::normal(1));
  parameters.initialize(1);
  w.grad.fill(1);
  w.has_gradient = true;
  AdamW optimizer(parameters, {});
  for (auto _ : state) optimizer.step(1e-3);
  state.SetBytesProcessed(state.iterations() * w.shape.size() * 7 *
                          static_cast<Index>(sizeof(real)));
}
BENCHMARK(adamw_step)->Arg(1 << 20)->Arg(10 << 20)->ArgName("N")->UseRealTime();

}  // namespace
}  // namespace difftape

int main(int argc, char** argv) {
  difftape::bench::print_environment();
  fmt::print("\n");
  std::fflush(stdout);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
}
