#include "train/study/sweep/worker.h"

#include <cerrno>
#include <cstring>

namespace difftape::study {
namespace {

/// A file without a name that holds `text`.
system::File file_of(const std::string& text) {
  system::File file(std::tmpfile());
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    throw OutputError(fmt::format("cannot write a temporary file: {}", std::strerror(errno)));
  }
  std::rewind(file.get());
  return file;
}

}  // namespace

Worker::Worker(const Job& job, const Layout& layout, int place, const std::string& program)
    : input_(file_of(to_text(job))), output_(file_of("")), errors_(file_of("")) {
  const auto i = static_cast<size_t>(place);
  system::ChildSetup setup{fileno(input_.get()), fileno(output_.get()), fileno(errors_.get())};
  setup.program = program;
  setup.environment = {{"OMP_NUM_THREADS", fmt::format("{}", layout.threads[i])}};
  setup.cores = layout.cores[i];
  setup.apart = true;
  child_.emplace(std::vector<std::string>{"difftape", "worker"}, setup);
}

std::string Worker::last_words() {
  const system::Ending& ending = child_->wait();
  std::string words = system::contents_of(errors_.get());
  while (!words.empty() && words.back() == '\n') words.pop_back();
  if (words.starts_with("difftape: ")) words.erase(0, words.find(' ') + 1);
  if (ending.signal == 0 && !words.empty()) return words;
  return ending.str() + (words.empty() ? "" : ": " + system::last_line(words));
}

}  // namespace difftape::study
