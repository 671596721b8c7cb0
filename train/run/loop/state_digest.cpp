#include "train/run/loop/state_digest.h"

#include <span>

#include "core/digest.h"

namespace difftape::run {

namespace {

constexpr std::size_t kShown = 16;  // digits of the digest of a tensor

/// Calls f(name, values) for each tensor of the state in its order.
template <class F>
void for_each_tensor(const TrainState& state, F&& f) {
  for (const Parameter& p : state.model.parameters()) f("model/" + p.name, p.value.values());
  for (const Optimizer::State& kept : state.optimizer.states()) {
    for (const StateTensor& tensor : kept.tensors) {
      f(fmt::format("optim/{}/{}", kept.parameter->name, tensor.name), tensor.value.values());
    }
  }
}

std::string hex_of(std::span<const real> values) {
  Digest digest;
  digest.add(std::as_bytes(values));
  return digest.hex();
}

StateDigest joined(std::vector<std::string> tensors) {
  Digest all;
  for (std::string& tensor : tensors) {
    all.add(tensor);
    tensor.resize(kShown);
  }
  return {all.hex(), std::move(tensors)};
}

}  // namespace

std::vector<std::string> state_tensors(const TrainState& state) {
  std::vector<std::string> names;
  for_each_tensor(state, [&](std::string name, auto) { names.push_back(std::move(name)); });
  return names;
}

StateDigest digest_of(const TrainState& state) {
  std::vector<std::span<const real>> tensors;
  for_each_tensor(
      state, [&](const std::string&, std::span<const real> values) { tensors.push_back(values); });
  std::vector<std::string> digests(tensors.size());
  parallel_for(static_cast<Index>(tensors.size()), [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    digests[at] = hex_of(tensors[at]);
  });
  return joined(std::move(digests));
}

StateDigest digest_of(const Checkpoint& checkpoint, const TrainState& state) {
  std::vector<std::string> digests;
  for (const std::string& name : state_tensors(state))
    digests.push_back(hex_of(checkpoint.file().read<real>(name)));
  return joined(std::move(digests));
}

}  // namespace difftape::run
