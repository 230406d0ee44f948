// The command line of wheelscope.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/manual.h"
#include "commands/commands.h"
#include "text/text.h"

namespace {

constexpr const char* description =
    "Says where a wheel will run, why, and whether it may be released: from the file alone.";
constexpr const char* footer = R"(Examples:
  wheelscope show my.whl                       what is in it and where it runs
  python train.py 2>&1 | wheelscope explain    why did it break?
  wheelscope fit 'vllm>=0.30'                  which file do I take?
  wheelscope env .venv                         what is broken in this environment?
`wheelscope COMMAND --help` shows the options and examples of a command.

Exit codes: 0 clean, 1 findings (differences, for diff), 2 wrong usage, 3 unreadable input or unwritable output.
Colours: on a terminal, unless NO_COLOR is set.)";

// The examples of each command.
constexpr std::pair<const char*, const char*> examples[] = {
    {"show", "show wheelhouse/*.whl\nshow --by-size my.whl      what makes it big?"},
    {"check", "check --policy ci/policy.toml wheelhouse/      may it be released?"},
    {"cover", "cover --matrix ci/matrix.toml wheelhouse/      who is served, who is not, and why"},
    {"link", "link my.whl torch-2.15.0-*.whl      will it load on that torch?"},
    {"diff", "diff old.whl new.whl      what changes for users?"},
    {"dump", "dump --ptx -o ptx/ my.whl      the PTX texts, as files"},
    {"thin",
     "thin my.whl --gpu 9.0 -o thin/\n"
     "thin my.whl --dry-run      what would each GPU save?"},
    {"machine", "machine --json >node7.json      to be asked elsewhere"},
    {"explain", "explain 'ImportError: libcudart.so.12: cannot open shared object file'"},
    {"fit",
     "fit 'vllm>=0.30'\n"
     "fit -r requirements.txt --machine node7.json      will they work there?"},
    {"atlas", "atlas projects.txt -o atlas/      then open atlas/index.html"},
    {"env", "env .venv\nenv --why libcudart.so.12      where is it searched for, and found?"}};

bool terminal_takes_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && (!no_color || !*no_color) && terminal &&
         std::string_view(terminal) != "dumb";
}

using wheelscope::Options;
using Command = int (*)(const Options&, wheelscope::Streams);

constexpr int any_number = 1 << 20;
constexpr const char* python_or_active =
    "; without it, the active virtual environment, else python3 on PATH";

// Adds an option that takes a value, shown as `value`; a list gets one value each time.
template <class Target>
CLI::Option* add_value(CLI::App* command, const char* name, const char* value, Target& target,
                       const std::string& help) {
  auto* option = command->add_option(name, target, help)->type_name(value);
  if constexpr (std::is_same_v<Target, std::vector<std::string>>) option->allow_extra_args(false);
  return option;
}

// Prints `PATH ...` instead of the library's `PATH(1x)`.
class PlainUsage : public CLI::Formatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    return option->get_name() + (option->get_expected_min() > 1 ? " " + option->get_name() : "") +
           (option->get_expected_max() > 2 ? " ..." : "");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? "" : CLI::Formatter::make_option_opts(option);
  }
};

// The commands with their options; parsing sets `options` and `chosen`.
struct CommandLine {
  CLI::App app{description, "wheelscope"};
  Options options{.style = {.colour = terminal_takes_colour()}};
  Command chosen = nullptr;

  CommandLine() {
    // Before the commands, which inherit it.
    app.formatter(std::make_shared<PlainUsage>());
    app.require_subcommand(1);
    app.set_version_flag("-V,--version", "wheelscope " WHEELSCOPE_VERSION,
                         "Print the version and exit");
    app.set_help_all_flag("--help-all", "Print the help of every command and exit");
    add_file_commands();
    add_thin();
    add_machine_commands();
    add_fit();
    add_env();
    add_atlas();
  }

  CLI::App* add(const char* name, const char* help, Command run) {
    auto* command = app.add_subcommand(name, help);
    command->callback([this, run] { chosen = run; });
    return command;
  }

  void add_json(CLI::App* command) {
    command->add_flag("--json", options.json, "Print JSON (schema_version 2)");
  }

  CLI::App* add_for_files(const char* name, const char* help, Command run, const char* paths,
                          int fewest = 1, int most = any_number) {
    auto* command = add(name, help, run);
    command->add_option("PATH", options.paths, paths)->required()->expected(fewest, most);
    add_json(command);
    return command;
  }

  void add_file_commands() {
    constexpr const char* any_path = "wheels, ELF files, device code, or folders of them";
    add_for_files("show", "Show what is in a wheel or ELF file, and where it runs",
                  wheelscope::show, any_path)
        ->add_flag("--by-size", options.by_size, "List libraries and GPU targets by size");
    auto* check =
        add_for_files("check", "Check wheels against a policy", wheelscope::check, any_path);
    add_value(check, "--policy", "FILE", options.policy,
              "TOML file with the rules; without it, report what is wrong in any wheel");
    check->add_flag("--sarif", options.sarif, "Print SARIF 2.1.0, for code hosts");
    auto* cover = add_for_files("cover", "Find the wheel that serves each cell of a user matrix",
                                wheelscope::cover, "wheels, or folders of them");
    add_value(cover, "--matrix", "FILE", options.matrix, "TOML file with the matrix")->required();
    add_for_files("link", "Check that providers have every symbol a wheel needs", wheelscope::link,
                  "the wheel, then its providers: wheels, files or folders", 2);
    add_for_files("diff", "Show what changed for users between two wheels", wheelscope::diff,
                  "the old and the new wheel", 2, 2);
    auto* dump =
        add_for_files("dump", "Extract PTX or cubins, or list symbols", wheelscope::dump, any_path);
    auto* what = dump->add_option_group("what");
    what->add_flag("--ptx", options.ptx, "PTX texts");
    what->add_flag("--cubin", options.cubin, "Cubins");
    what->add_flag("--symbols", options.symbols,
                   "Dynamic symbols, defined or needed, and who provides them");
    what->require_option(1);
    add_value(dump, "-o", "DIR", options.output_folder,
              "Write files to this folder; several inputs get a subfolder each");
  }

  void add_thin() {
    auto* thin =
        add("thin", "Write a smaller wheel, with only the device code that the given GPUs use",
            wheelscope::thin);
    thin->add_option("PATH", options.paths,
                     "wheels; with --check, the original and thinned wheels; with --env, a prefix")
        ->expected(0, any_number);
    add_value(thin, "--gpu", "GPU", options.gpus,
              "Compute capability (9.0), or `native` for this machine's GPUs");
    add_value(thin, "--arch-list", "LIST", options.arch_list,
              "GPUs in torch's notation: \"8.0;9.0+PTX\" also keeps PTX for newer GPUs");
    thin->add_flag("--keep-ptx", options.keep_ptx,
                   "Also keep the PTX that the GPUs would use without native code");
    add_value(thin, "-o", "DIR", options.output_folder, "Folder for the new wheel");
    thin->add_flag("--dry-run", options.dry_run, "Show the savings for each GPU; write nothing");
    thin->add_flag("--check", options.compare,
                   "Check that the other wheels are thinned copies of the first, and for which "
                   "GPUs");
    add_value(thin, "--variant", "LABEL", options.variant,
              "Write a wheel variant for the GPU, with this label (sm90)");
    thin->add_flag("--env", options.environment,
                   "Thin the packages of an environment: PATH, or the active one");
    thin->add_flag("--write", options.write, "With --env: change the installed files")
        ->needs("--env");
    add_value(thin, "--save", "DIR", options.save,
              "With --write: keep the original files in this folder, for --undo")
        ->needs("--write");
    add_value(thin, "--undo", "DIR", options.undo, "Restore the files of such a folder");
    add_json(thin);
  }

  CLI::App* add_for_machine(const char* name, const char* help, Command run,
                            const char* machine_help) {
    auto* command = add(name, help, run);
    add_json(command);
    add_value(command, "--python", "PYTHON", options.python,
              std::string("Interpreter, or folder of an environment") + python_or_active);
    add_value(command, "--machine", "FILE", options.machine, machine_help);
    return command;
  }

  void add_machine_commands() {
    add_for_machine("machine", "Describe this machine: libc, driver, GPUs, Python, torch, CUDA",
                    wheelscope::machine, "Print a machine saved with `machine --json`");
    add_for_machine("explain",
                    "Explain an error of the loader, of CUDA or of Python, and how to fix it",
                    wheelscope::explain, "Explain it for a machine saved with `machine --json`")
        ->add_option("TEXT", options.paths, "the message; without it, read standard input")
        ->expected(0, any_number);
  }

  // Adds the options of pip and uv that say where files come from, and how long to wait for them.
  void add_index_options(CLI::App* command) {
    add_value(command, "-i,--index-url,--index,--default-index", "URL", options.from.index,
              "Package index; by default, the one that pip or uv is configured for");
    add_value(command, "--extra-index-url", "URL", options.from.extra, "Additional index");
    add_value(command, "-f,--find-links", "URL", options.from.find_links,
              "Page of links, or folder of files");
    command->add_flag("--no-index", options.from.no_index, "Use only --find-links");
    command->add_flag("--pre", options.from.prereleases, "Include pre-releases");
    add_value(command, "--proxy", "URL", options.from.proxy,
              "Proxy; by default, pip's, or HTTPS_PROXY");
    add_value(command, "--timeout", "SECONDS", options.timeout, "How long a server may stay silent")
        ->check(CLI::Range(1, 3600));
  }

  void add_fit() {
    auto* fit = add_for_machine(
        "fit", "Find the files that work on a machine, and the command to install them",
        wheelscope::fit, "Judge for a machine saved with `machine --json`");
    fit->add_option("WHAT", options.paths,
                    "NAME or 'NAME>=VERSION', wheels, or addresses of wheels; several: versions "
                    "that work together")
        ->expected(0, any_number);
    add_value(fit, "-r,--requirement", "FILE", options.requirement_files,
              "Include the requirements in this file");
    add_value(fit, "-c,--constraint", "FILE", options.from.constraints,
              "Take only versions that this file allows");
    add_value(fit, "--group", "GROUP", options.groups,
              "Include this dependency group of ./pyproject.toml");
    add_index_options(fit);
    fit->add_flag("--keep", options.keep, "Prefer installed versions if they work");
    add_value(fit, "--why", "PACKAGE", options.why,
              "Explain why this package is in the set, and in no newer version");
    fit->add_option("--format", options.format,
                    "set: everything required, even for one project; pylock: a lock file")
        ->check(CLI::IsMember({"set", "pylock"}));
    add_value(fit, "--cuda", "CUDA", options.cuda, "CUDA version of torch: 12, 13.0, cpu");
    add_value(fit, "--driver", "VERSION", options.driver, "Assume this NVIDIA driver");
    add_value(fit, "--gpu", "GPU", options.gpus, "Assume a GPU of this compute capability (9.0)");
    add_value(fit, "--with", "REQUIREMENT", options.with, "Assume this torch: torch==VERSION");
    fit->add_flag("--deep", options.deep, "Read whole files, including all device code");
  }

  void add_env() {
    auto* env =
        add("env", "Find what does not load in an environment, and how to fix it", wheelscope::env);
    env->add_option("PREFIX", options.paths,
                    std::string("folder of an environment, or its interpreter") + python_or_active)
        ->expected(0, 1);
    add_json(env);
    add_value(env, "--why", "LIBRARY", options.why, "Show each search for this library");
    env->add_flag("--import", options.import,
                  "Also import every package with libraries, which runs their code, and compare");
    add_value(env, "--machine", "FILE", options.machine,
              "Assume the driver and GPUs of a machine saved with `machine --json`");
  }

  void add_atlas() {
    auto* atlas = add("atlas", "Make a site of the torch, CUDA and Python that projects work with",
                      wheelscope::atlas);
    atlas->add_option("LIST", options.paths, "files with names of projects")
        ->required()
        ->expected(1, any_number);
    add_value(atlas, "-o", "DIR", options.output_folder, "Folder for the site and its cache")
        ->required();
    atlas->add_option("--releases", options.releases, "Number of newest releases of each project")
        ->check(CLI::Range(1, 100));
    add_value(atlas, "--torch", "VERSIONS", options.torch,
              "Versions of torch to judge: `newest`, >=2.14");
    atlas->add_flag("--sarif", options.sarif,
                    "Print faults of the newest releases as SARIF 2.1.0; exit with 1 if there are "
                    "any");
    add_index_options(atlas);
  }
};

// Reports a first word that is not a command: the parser would only say that a command is required.
bool complain_about_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (wheelscope::contains(names, argv[1])) return false;
  const auto meant = wheelscope::nearest(argv[1], names);
  std::cerr << "wheelscope: there is no command '" << wheelscope::printable(argv[1]) << "'"
            << (meant.empty() ? "; the commands are " + wheelscope::joined(names)
                              : "; did you mean '" + meant + "'?")
            << "\nRun with --help for more information.\n";
  return true;
}

// Returns the arguments, the last one first, as the parser wants them. It would take a message that
// begins with a dash for an option ("-bash: nvcc: command not found"), and one in brackets for a
// list ("[WinError 127]"): a blank before it prevents that.
std::vector<std::string> words_of_message(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "explain") {
    for (auto& word : words) {
      if (word.starts_with('[') || (word.starts_with('-') && word.contains(' ')))
        word.insert(0, " ");
    }
  }
  std::ranges::reverse(words);
  return words;
}

int run(int argc, char** argv) {
  CommandLine command_line;
  auto& app = command_line.app;
  std::string shell;
  auto* completions = app.add_subcommand("completions", "Print a completion script for a shell");
  completions->add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  auto* man = app.add_subcommand("man", "Print the manual page, for `man -l -`");
  for (const auto& [name, lines] : examples) {
    std::string text = "Examples:";
    for (const auto& line : wheelscope::split(lines, '\n')) text += "\n  wheelscope " + line;
    app.get_subcommand(name)->footer(text);
  }
  app.footer(footer);
  if (complain_about_command(app, argc, argv)) return wheelscope::usage;
  auto words = words_of_message(argc, argv);
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? wheelscope::clean : wheelscope::usage;
  }
  if (completions->parsed() || man->parsed()) {
    std::cout << (man->parsed() ? wheelscope::man_page(app)
                                : wheelscope::completion_script(app, shell));
    return wheelscope::clean;
  }
  std::ios::sync_with_stdio(false);
  return command_line.chosen(command_line.options, {std::cout, std::cerr});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    errno = 0;
    if (std::cout.flush()) return code;
    std::fprintf(stderr, "wheelscope: the output could not be written%s%s\n", errno ? ": " : "",
                 errno ? std::strerror(errno) : "");
    return wheelscope::unreadable;
  } catch (const std::exception& error) {  // no memory, no thread
    std::fprintf(stderr, "wheelscope: %s\n", error.what());
    return wheelscope::unreadable;
  }
}
