#pragma once
// The commands of `difftape`, in the files `*_command.cpp` and `*_commands.cpp`: each adds itself
// to a program. A command that runs prints to stdout and sets `exit` of the context, which must
// outlive it. Errors are thrown; `main` of program.h prints them and returns their exit code.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/app/command_line.h"
#include "train/system/exit.h"

namespace difftape::app {

/// What the commands share.
struct Context {
  std::vector<std::string> command_line;
  system::Exit exit = system::Exit::ok;
};

/// What a command that uses a model says of the argument that names it.
inline constexpr const char* kModelHelp =
    "Checkpoint or run directory; or a configuration, for its initial weights";

/// `--arm NAME` of the commands that take the file of a run or of a sweep (study::config_of_arm).
void add_arm(CLI::App& command, std::string& arm);

/// From here on the command does not end when nobody reads what it prints any more (`| head -1`).
void outlive_reader();

/// Prints "difftape: NOTE" to stderr, at once: what is going on, beside what a script reads.
void say(const std::string& note);

/// What --out auto stands for: the first of `usual`, `usual`-2, `usual`-3, ... that is free.
inline constexpr const char* kOutAuto = "auto";

void train_command(CLI::App& program, Context& context);
void sweep_command(CLI::App& program, Context& context);
/// What a sweep starts for each of its runs; not in the help.
void worker_command(CLI::App& program, Context& context);
void report_command(CLI::App& program, Context& context);
void runs_command(CLI::App& program, Context& context);
void diff_command(CLI::App& program, Context& context);
void plan_command(CLI::App& program, Context& context);
void config_command(CLI::App& program, Context& context);
void init_command(CLI::App& program, Context& context);
void grads_command(CLI::App& program, Context& context);
void eval_command(CLI::App& program, Context& context);
void generate_command(CLI::App& program, Context& context);
void export_command(CLI::App& program, Context& context);
void import_command(CLI::App& program, Context& context);
void data_command(CLI::App& program, Context& context);
void doctor_command(CLI::App& program, Context& context);
void gradcheck_command(CLI::App& program, Context& context);
void replay_command(CLI::App& program, Context& context);
void verify_command(CLI::App& program, Context& context);
void completion_command(CLI::App& program, Context& context);

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

using AddCommand = void (*)(CLI::App& program, Context& context);

/// The commands of this program, in the order of its help: of one model only in double precision.
std::span<const AddCommand> commands();

}  // namespace difftape::app
