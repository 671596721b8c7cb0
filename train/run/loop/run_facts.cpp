#include "train/run/loop/run_facts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/gemm_backend.h"
#include "core/platform.h"

namespace difftape::run {

nlohmann::ordered_json describe_build() {
  const BuildInfo build = build_info();
  return {{"version", build.version},       {"commit", build.commit},
          {"compiler", build.compiler},     {"build_type", build.build_type},
          {"precision", build.precision},   {"vectors", build.vectors},
          {"gemm_backend", gemm_backend()}, {"bf16_backend", bf16_backend_name()}};
}

nlohmann::ordered_json describe_data(const Dataset& data) {
  nlohmann::ordered_json info = data.info();
  if (const std::optional<BestAchievable> best = data.best()) {
    info["best_loss"] = best->loss;
    info["best_accuracy"] = best->accuracy;
  }
  if (const std::optional<double> entropy = data.bigram_entropy()) {
    info["bigram_entropy"] = *entropy;
  }
  return info;
}

std::string division_note(const nlohmann::ordered_json& data) {
  std::string note = fmt::format("{} files train", data.at("files").get<Index>());
  if (const auto held_out = data.find("val_files"); held_out != data.end()) {
    note += fmt::format(", {} validate, {:.1f} % of whose bytes training has too",
                        held_out->get<Index>(), 100 * data.at("val_overlap").get<double>());
  }
  return note + fmt::format("; {} near-duplicates are left out ({:.1f} MB)",
                            data.at("dropped_files").get<Index>(),
                            1e-6 * data.at("dropped_bytes").get<double>());
}

}  // namespace difftape::run
