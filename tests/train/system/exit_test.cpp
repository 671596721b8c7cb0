#include "train/system/exit.h"

#include <stdexcept>

#include "core/error.h"

namespace difftape::system {
namespace {

TEST(ExitCode, of_an_error_follows_from_its_type) {
  EXPECT_EQ(exit_of(UsageError("")), system::Exit::usage);
  EXPECT_EQ(exit_of(MissingInput("")), system::Exit::missing_input);
  EXPECT_EQ(exit_of(OutputError("")), system::Exit::cannot_write);
  EXPECT_EQ(exit_of(ConfigError("")), system::Exit::config);
  EXPECT_EQ(exit_of(DataError("")), system::Exit::bad_data);
  EXPECT_EQ(exit_of(ShapeError("")), system::Exit::bad_data);
  EXPECT_EQ(exit_of(std::runtime_error("")), system::Exit::bad_data);
}

TEST(ExitCode, is_the_number_that_scripts_depend_on) {
  EXPECT_EQ(static_cast<int>(system::Exit::check_failed), 1);
  EXPECT_EQ(static_cast<int>(system::Exit::stopped_early), 75);
  EXPECT_EQ(static_cast<int>(system::Exit::config), 78);
  EXPECT_EQ(static_cast<int>(system::Exit::diverged), 86);
}

}  // namespace
}  // namespace difftape::system
