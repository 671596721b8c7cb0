#pragma once
// The commands of `difftape`, in the files `*_command.cpp` and `*_commands.cpp`. Each function adds
// a command to a program. A command prints to stdout and sets `exit` of the context, which must
// outlive it. It throws errors; `main` of program.h prints them and returns their exit codes.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "train/app/command_line.h"
#include "train/system/exit.h"

namespace difftape::app {

/// State that all commands share.
struct Context {
  std::vector<std::string> command_line;
  system::Exit exit = system::Exit::ok;
};

/// Help of the argument that names a model.
inline constexpr const char* kModelHelp =
    "Checkpoint or run directory; or a configuration, for its initial weights";

/// Adds `--arm NAME` to a command that takes the file of a run or of a sweep
/// (study::config_of_arm).
void add_arm(CLI::App& command, std::string& arm);

/// Makes the command continue after the reader of its output has ended (`| head -1`).
void outlive_reader();

/// Prints text to stderr immediately, with ? in place of terminal control codes, which names of
/// files can contain. Never throws.
void print_to_stderr(std::string text);
/// Prints "difftape: NOTE" to stderr.
void say(const std::string& note);

/// Prints a warning to stderr if the loader chose a library for older processors.
void warn_if_slower();

/// Value of --out for the first free name among `usual`, `usual`-2, `usual`-3, ...
inline constexpr const char* kOutAuto = "auto";

void train_command(CLI::App& program, Context& context);
void sweep_command(CLI::App& program, Context& context);
/// Adds the command that a sweep starts for each of its runs; it is not in the help.
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
void verify_command(CLI::App& program, Context& context);

/// Throws OutputError if the directory of an output is missing, before minutes of computation.
void require_directory_of(const std::filesystem::path& out);

/// Checks the path of an output. An existing file is replaced only if it is a regular file with the
/// same extension (".html") and not an input of the command. Throws OutputError.
void require_output_file(const std::filesystem::path& out, std::string_view extension,
                         const std::vector<std::filesystem::path>& inputs = {});

/// Checks the path of an HDF5 output of a command that replaces only its own outputs, recognized by
/// their objects. The directory must exist. Throws OutputError, and UsageError if the name of an
/// HDF5 file does not end in .h5.
void require_h5_output(const std::filesystem::path& out, std::string_view command,
                       const std::vector<std::string>& objects,
                       const std::vector<std::filesystem::path>& inputs = {});

using AddCommand = void (*)(CLI::App& program, Context& context);

/// Returns the commands of this program in the order of its help. In double precision, these are
/// the commands for a single model.
std::span<const AddCommand> commands();

}  // namespace difftape::app
