// Rates of the kernels that a training step is made of, as fractions of the measured peak.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "autograd/ops.h"
#include "bench/attention_call.h"
#include "bench/measure.h"
#include "core/gemm.h"
#include "core/gemm_backend.h"
#include "core/platform.h"
#include "core/random.h"
#include "layers/moe.h"
#include "optim/optimizer.h"
#include "train/system/text_table.h"

namespace difftape::bench {
namespace {

using Run = benchmark::BenchmarkReporter::Run;

/// Median of a counter in `unit`s, or "-" where it is not counted.
std::string median_of(const std::vector<Run>& runs, const std::string& counter, double unit,
                      const char* suffix) {
  std::vector<double> values;
  for (const Run& run : runs) {
    const auto found = run.counters.find(counter);
    if (found != run.counters.end()) values.push_back(found->second);
  }
  return values.empty() ? "-"
                        : fmt::format("{:.1f}{}", stats::quantile(values, 0.5) / unit, suffix);
}

/// Collects the repetitions of every benchmark. At the end prints microseconds per iteration
/// (median, 10 %, 90 %) and the medians of GFLOP/s, fraction of peak and bytes per second.
class KernelTable : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  std::vector<std::pair<std::string, std::vector<Run>>> kernels_;  ///< in the order of first runs
};

void KernelTable::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) continue;
    std::string name = run.run_name.function_name;
    if (!run.run_name.args.empty()) name += " " + run.run_name.args;
    const auto known = std::find_if(kernels_.begin(), kernels_.end(),
                                    [&](const auto& kernel) { return kernel.first == name; });
    if (known != kernels_.end()) {
      known->second.push_back(run);
    } else {
      kernels_.push_back({name, {run}});
    }
  }
}

void KernelTable::Finalize() {
  system::Table table{{{"", "kernel", true},
                       {"us", "median"},
                       {"us", "10 %"},
                       {"us", "90 %"},
                       {"", "GFLOP/s"},
                       {"", "of peak"},
                       {"", "GB/s"}},
                      {}};
  for (const auto& [name, runs] : kernels_) {
    std::vector<double> seconds;
    for (const Run& run : runs)
      seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
    const auto us = [&](double q) {
      return fmt::format("{:.1f}", 1e6 * stats::quantile(seconds, q));
    };
    table.rows.push_back({name, us(0.5), us(0.1), us(0.9), median_of(runs, "GFLOP/s", 1, ""),
                          median_of(runs, "of_peak", 0.01, " %"),
                          median_of(runs, "bytes_per_second", 1e9, "")});
  }
  fmt::print("{}", to_text(table));
}

}  // namespace
}  // namespace difftape::bench

namespace difftape {
namespace {

Tensor random(const Shape& shape, double std = 1) {
  Tensor x = Tensor::empty(shape);
  fill_normal(x, RandomStream(1, "bench"), std);
  return x;
}

/// Reports `flops` per iteration as GFLOP/s and as a fraction of the peak measured now.
void count_flops(benchmark::State& state, double flops) {
  const double total = flops * static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(total / 1e9, benchmark::Counter::kIsRate);
  state.counters["of_peak"] =
      benchmark::Counter(total / measure_fma_peak(0.02), benchmark::Counter::kIsRate);
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
      gemm(xm, transpose(wm), y.data(), out, Accumulate::no);
    } else if (product == Product::dx) {
      gemm(dym, wm, dx.data(), in, Accumulate::no);
    } else {
      gemm(transpose(dym), xm, dw.data(), in, Accumulate::no);
    }
  }
  count_flops(state, 2.0 * static_cast<double>(tokens * in * out));
}

/// d_model to itself, as the projections of attention, and to d_ff, 8/3 of it in steps of 8.
void linear_sizes(benchmark::internal::Benchmark* b) {
  for (const Index d_model : {128, 256, 384, 512, 768, 1024}) {
    b->Args({2048, d_model, d_model});
    b->Args({2048, d_model, (d_model * 8 / 3 + 7) / 8 * 8});
  }
  b->ArgNames({"tokens", "in", "out"})->UseRealTime();
}
BENCHMARK_CAPTURE(linear_product, forward, Product::forward)->Apply(linear_sizes);
BENCHMARK_CAPTURE(linear_product, dx, Product::dx)->Apply(linear_sizes);
BENCHMARK_CAPTURE(linear_product, dw, Product::dw)->Apply(linear_sizes);

/// Forward and backward of one attention call over 4096 tokens: 6 baseline heads of 64 at several
/// lengths, and 4 smaller heads at T 256. FLOPs do not include recomputation (backward is twice
/// forward).
void attention_both(benchmark::State& state, const char* kind, Precision precision) {
  constexpr Index kTokens = 4096;
  const Index heads = state.range(0), head_dim = state.range(1), seq = state.range(2);
  bench::AttentionCall call = bench::attention_call(kind, heads, head_dim, kTokens / seq, seq);
  call.in.precision = precision;
  if (const std::string why = unsupported_reason(precision); !why.empty())
    return state.SkipWithError(why.c_str());
  for (auto _ : state) call.run();
  count_flops(state, call.flops());
}

void attention_sizes(benchmark::internal::Benchmark* b) {
  for (const Index head_dim : {8, 16, 28, 48}) b->Args({4, head_dim, 256});
  for (const Index seq : {256, 512, 1024, 2048, 4096}) b->Args({6, 64, seq});
  b->ArgNames({"H", "D", "T"})->UseRealTime();
}
BENCHMARK_CAPTURE(attention_both, softmax, "softmax", Precision::full)->Apply(attention_sizes);
BENCHMARK_CAPTURE(attention_both, diff_v1, "diff_v1", Precision::full)->Apply(attention_sizes);
BENCHMARK_CAPTURE(attention_both, diff_v2, "diff_v2", Precision::full)->Apply(attention_sizes);
BENCHMARK_CAPTURE(attention_both, softmax_bf16, "softmax", Precision::bf16)->Apply(attention_sizes);
BENCHMARK_CAPTURE(attention_both, diff_v2_bf16, "diff_v2", Precision::bf16)->Apply(attention_sizes);

/// Forward and backward of the feed-forward layer over 2048 tokens: a dense MLP, or 8 experts of
/// which a token has 2, with equal active FLOPs. FLOPs of the router are not counted.
void feed_forward_both(benchmark::State& state, Index experts) {
  ModelConfig config{.d_model = state.range(0)};
  config.d_ff = (config.d_model * 8 / 3 + 7) / 8 * 8;
  config.moe = {.num_experts = experts, .moe_intermediate_size = config.d_ff / 2};
  ParameterSet parameters;
  const Module module{parameters, "mlp", {Component::mlp, 0}};
  std::optional<Moe> moe;
  std::optional<Mlp> mlp;
  if (experts > 0) {
    moe.emplace(module, config);
  } else {
    mlp.emplace(module, config, config.d_ff);
  }
  parameters.initialize(1);
  const Tensor x = random({2048, config.d_model});
  for (auto _ : state) {
    for (Parameter& p : parameters) p.zero_grad();
    Tape tape;
    const Var in = tape.input(x);
    tape.backward(moe ? (*moe)(in, in, {}, nullptr) : (*mlp)(in, in), x);
  }
  count_flops(state, 6.0 * 2048 * 3 * static_cast<double>(config.d_model * config.d_ff));
}

void widths(benchmark::internal::Benchmark* b) {
  b->Arg(128)->Arg(384)->Arg(768)->ArgName("C")->UseRealTime();
}
BENCHMARK_CAPTURE(feed_forward_both, dense, 0)->Apply(widths);
BENCHMARK_CAPTURE(feed_forward_both, experts, 8)->Apply(widths);

void rms_norm_both(benchmark::State& state) {
  const Tensor x = random({2048, state.range(0)}), norm_weight = random({state.range(0)});
  for (auto _ : state) {
    Tape tape;
    const Var y = rms_norm(tape.input(x), tape.input(norm_weight), 1e-5);
    tape.backward(y, x);
  }
  state.SetBytesProcessed(state.iterations() * x.size() * 5 * static_cast<Index>(sizeof(real)));
}
BENCHMARK(rms_norm_both)->Arg(384)->Arg(768)->ArgName("C")->UseRealTime();

/// Small weights, as initialized: larger ones make probabilities of a random model subnormal, which
/// is slow and rare in training.
void cross_entropy_both(benchmark::State& state) {
  const Tensor hidden = random({2048, 384}), weight = random({state.range(0), 384}, 0.02);
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
  Optimizer optimizer(parameters, {});
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
  difftape::bench::KernelTable table;
  benchmark::RunSpecifiedBenchmarks(&table);
}
