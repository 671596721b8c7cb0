#include "tests/faults/project.h"

#include <chrono>
#include <csignal>
#include <thread>

#include "core/digest.h"
#include "core/gemm_backend.h"
#include "train/run/records/attention_maps.h"

namespace difftape::test {

namespace {

using run::DataKind;

constexpr int kKilled = -SIGKILL;

template <class T>
T turn(int number) {
  constexpr auto& all = kNames<T>;
  return all[static_cast<std::size_t>(number) % all.size()].value;
}

void use_data(run::Config& config, DataKind kind, const fs::path& tokens) {
  config.data.type = kind;
  if (kind == DataKind::text) return;
  config.data.path.clear();
  if (kind == DataKind::tokens) config.data.path = {tokens.string()};
  config.data.seq_len = config.model.max_seq_len = 64;
  config.data.needles = {.facts = {1}, .queries = {1}};
  if (kind == DataKind::needles) config.train.eval_batches = config.train.final_eval_batches = 10;
}

/// Uses parts of a model that add tensors to a checkpoint, or nothing.
void use_part(run::Config& config, int number) {
  ModelConfig& model = config.model;
  if (number % 4 == 1) {
    model.moe = {.num_experts = 3,
                 .moe_intermediate_size = 8,
                 .scoring_func = RouterScore::sigmoid,
                 .router_bias_update_rate = 0.01};
  } else if (number % 4 == 2) {
    model.yoco_self_layers = 1;
    model.attention.sliding_window = 8;
  } else if (number % 4 == 3) {
    config.data.seq_len = model.max_seq_len = 64;
    model.attention.block_size = 16;
    model.attention.num_selected_blocks = 2;
  }
}

/// Sets the number type or the precision of products: f32, bfloat16, f64, emulated bfloat16.
/// Returns the program.
std::string use_precision(run::Config& config, int number) {
  const bool has_bf16 = unsupported_reason(Precision::bf16).empty();
  if (number % 4 == 1)
    config.train.precision = has_bf16 ? Precision::bf16 : Precision::bf16_emulated;
  if (number % 4 == 3) config.train.precision = Precision::bf16_emulated;
  return number % 4 == 2 ? DIFFTAPE_TEST_PROGRAM_F64 : DIFFTAPE_TEST_PROGRAM;
}

std::string digest_of_file(const fs::path& path) {
  Digest digest;
  digest.add(contents(path));
  return digest.hex();
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

bool torture() { return std::getenv("DIFFTAPE_TORTURE") != nullptr; }
void say(const std::string& line) { std::cout << "faults: " << line << std::endl; }

std::vector<std::string> logged_calls(const fs::path& log) {
  std::vector<std::string> calls;
  std::istringstream lines(contents(log));
  for (std::string line; std::getline(lines, line);) calls.push_back(line);
  return calls;
}

Index committed_step(const std::vector<std::string>& calls, std::size_t done) {
  Index committed = 0;
  for (std::size_t i = 0; i < std::min(done, calls.size()); ++i) {
    if (!calls[i].starts_with("rename ")) continue;
    if (const auto step = run::step_of_file(calls[i].substr(7))) committed = *step;
  }
  return committed;
}

std::map<std::string, std::string> lasting_files(const fs::path& run) {
  std::map<std::string, std::string> files{{"metrics.jsonl", measured(run)}};
  files["config.yaml"] = contents(run / "config.yaml");
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    const std::string name = fs::relative(entry.path(), run);
    if (name.ends_with(".tmp")) files[name] = "left behind";
    if (run::step_of_file(entry.path())) files[name] = digest_of_file(entry.path());
  }
  return files;
}

void expect_no_half_written_file(const fs::path& run) {
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", missing)) {
    if (run::step_of_file(entry.path())) {
      EXPECT_NO_THROW(run::Checkpoint{entry.path()});
    }
  }
  for (const char* name : {"status.json", "env.json"}) {
    if (fs::exists(run / name)) {
      EXPECT_TRUE(nlohmann::json::accept(contents(run / name))) << name;
    }
  }
  if (fs::exists(run / run::kMapsFile)) {
    EXPECT_NO_THROW(run::read_attention_maps(run / run::kMapsFile));
  }
}

DisturbedRun::DisturbedRun(int number) {
  run::Config& c = project_.config;
  const std::vector<std::string> kinds = attention_kinds();
  c.model.attention.kind = kinds[static_cast<std::size_t>(number) % kinds.size()];
  c.optim.name = turn<OptimizerKind>(number);
  std::string tokens;  // of 16 bits
  for (const char byte : tiny_text()) tokens += {byte, '\0'};
  put(project_ / "tokens.bin", tokens);
  program_ = use_precision(c, number);
  use_part(c, number / 4);
  c.train.steps = 6;
  c.train.eval_interval = 2;
  c.train.eval_batches = 1;
  c.train.final_eval_batches = 1;
  use_data(c, turn<DataKind>(number), project_ / "tokens.bin");
  c.train.checkpoint_interval = 2;
  c.train.keep_last = 1;
  c.log.tensorboard = true;
  const bool f64 = program_ == DIFFTAPE_TEST_PROGRAM_F64;
  name_ = fmt::format("{}, {}, {}, {}, part {}", c.model.attention.kind.name(),
                      to_string(c.data.type), to_string(c.optim.name),
                      f64 ? "f64" : to_string(c.train.precision), number / 4 % 4);
  project_.save();
  prepare();
  const double begin = now();
  outcome_ = test::run(command(), conditions({}));
  seconds_ = now() - begin;
  EXPECT_EQ(outcome_.exit, 0) << name_ << "\n" << outcome_.err;
  whole_ = lasting_files(run());
  calls_ = logged_calls(project_ / "calls.log");
  EXPECT_GT(calls_.size(), 50u) << name_;
}

std::vector<std::string> DisturbedRun::command() const {
  return {"train", (project_ / "tiny.yaml").string(), "--out", run().string(), "--resume=auto"};
}

Conditions DisturbedRun::conditions(const Fault& fault) const {
  Conditions conditions = project_.here();
  conditions.program = program_;
  conditions.environment.insert(conditions.environment.end(),
                                {{"GOMP_SPINCOUNT", "10000"},
                                 {"LD_PRELOAD", DIFFTAPE_FAULTS_SHIM},
                                 {"DIFFTAPE_FAULTS_DIR", (project_ / "work").string()},
                                 {"DIFFTAPE_FAULTS_LOG", (project_ / "calls.log").string()},
                                 {"DIFFTAPE_FAULTS_DO", fault.action},
                                 {"DIFFTAPE_FAULTS_AT", std::to_string(fault.at)},
                                 {"DIFFTAPE_FAULTS_WORD", fault.word}});
  return conditions;
}

void DisturbedRun::prepare() {
  fs::remove_all(project_ / "work");
  fs::create_directory(project_ / "work");
  fs::remove(project_ / "calls.log");
}

void DisturbedRun::start(const Fault& fault, Conditions more) {
  prepare();
  fault_ = fault;
  Conditions with = conditions(fault);
  with.environment.insert(with.environment.end(), more.environment.begin(), more.environment.end());
  with.memory = more.memory;
  outcome_ = test::run(command(), with);
  expect_sound();
}

void DisturbedRun::start_and_kill(double after_seconds) {
  prepare();
  fault_ = {};
  Conditions with = conditions({});
  with.out_file = (project_ / "printed.txt").string();
  put(with.out_file, "");
  Process process(command(), with);
  std::this_thread::sleep_for(std::chrono::duration<double>(after_seconds));
  process.signal(SIGKILL);
  outcome_ = process.wait();
  EXPECT_TRUE(outcome_.exit == kKilled || outcome_.exit == 0) << outcome_.exit << outcome_.err;
  expect_sound();
}

void DisturbedRun::expect_sound() const {
  expect_no_half_written_file(run());
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(run() / "checkpoints", missing)) {
    const auto step = run::step_of_file(entry.path());
    const auto same = whole_.find("checkpoints/" + entry.path().filename().string());
    if (step && same != whole_.end()) {
      EXPECT_EQ(digest_of_file(entry.path()), same->second);
    }
  }
}

void DisturbedRun::resume() {
  const std::vector<std::string> calls = logged_calls(project_ / "calls.log");
  const std::size_t cut = outcome_.exit == kKilled ? 1 : 0;  // that may not have been done
  const Index committed = committed_step(
      calls, fault_.at > 0 ? static_cast<std::size_t>(fault_.at - 1) : calls.size() - cut);
  Conditions with = conditions({});
  const std::string threads = std::to_string(++resumed_ % 3 + 1);
  for (auto& [name, value] : with.environment) {
    if (name == "OMP_NUM_THREADS") value = threads;
    if (name == "LD_PRELOAD") value = "";
  }
  const Outcome again = test::run(command(), with);
  ASSERT_EQ(again.exit, 0) << again.err;
  if (committed > 0) {
    EXPECT_THAT(
        again.out,
        testing::AnyOf(testing::ContainsRegex(fmt::format("resuming after step [{}-9]", committed)),
                       HasSubstr("is finished: nothing to do")))
        << "the checkpoint of step " << committed << " was committed";
  }
  EXPECT_EQ(lasting_files(run()), whole_);
}

}  // namespace difftape::test
