#pragma once
// The commands of `difftape`, in the files `*_command.cpp` and `*_commands.cpp`. A command that
// runs prints to stdout and sets `exit` of the context, which must outlive it. Errors are thrown;
// `main` of program.h prints them and returns their exit code.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/app/parser.h"
#include "train/system/exit.h"

namespace difftape::app {

/// What the commands share.
struct Context {
  std::vector<std::string> command_line;
  system::Exit exit = system::Exit::ok;
  const Program* program = nullptr;  ///< complete when a command runs
};

/// What a command that uses a model says of the argument that names it.
inline constexpr const char* kModelHelp =
    "Checkpoint or run directory; or a configuration, with its initial weights";

/// `--arm NAME` of the commands that take the file of a run or of a sweep (study::config_of_arm).
Option arm_option(std::string& arm);

/// From here on the command does not end when nobody reads what it prints any more (`| head -1`).
void outlive_reader();

/// Prints "difftape: NOTE" to stderr, at once: what is going on, beside what a script reads.
void say(const std::string& note);

/// What --out auto stands for: the first of `usual`, `usual`-2, `usual`-3, ... that is free.
inline constexpr const char* kOutAuto = "auto";

Command train_command(Context& context);
Command sweep_command(Context& context);
/// What a sweep starts for each of its runs; not in the help.
Command worker_command(Context& context);
Command report_command(Context& context);
Command runs_command(Context& context);
Command diff_command(Context& context);
Command plan_command(Context& context);
Command config_command(Context& context);
Command init_command(Context& context);
Command overfit_command(Context& context);
Command grads_command(Context& context);
Command eval_command(Context& context);
Command generate_command(Context& context);
Command export_command(Context& context);
Command import_command(Context& context);
Command data_command(Context& context);
Command doctor_command(Context& context);
Command gradcheck_command(Context& context);
Command replay_command(Context& context);
Command verify_command(Context& context);
Command completion_command(Context& context);
Command man_command(Context& context);

/// Checks a file that a command is going to write: what exists there is replaced only if it is an
/// ordinary file with the same extension (".html") and none of the command's inputs. Throws
/// OutputError.
void require_output_file(const std::filesystem::path& out, std::string_view extension,
                         const std::vector<std::filesystem::path>& inputs = {});

/// The same for the HDF5 file of a command that replaces only its own outputs, known by the objects
/// they hold, and for its CSV file, known by its first line. The directory must be there. Throws
/// UsageError too, if the name of an HDF5 file does not end in .h5.
void require_h5_output(const std::filesystem::path& out, std::string_view command,
                       const std::vector<std::string>& objects,
                       const std::vector<std::filesystem::path>& inputs = {});
void require_csv_output(const std::filesystem::path& out, std::string_view command,
                        std::string_view header);

using MakeCommand = Command (*)(Context&);

/// The commands of this program, in the order of its help: of one model only in double precision.
std::span<const MakeCommand> commands();

}  // namespace difftape::app
