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
     "fit 'vllm>=0.30'\nfit --index-url https://download.pytorch.org/whl/cu128 torch\n"
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

// Adds the commands with their options; parsing sets `options` and `chosen`.
void add_commands(CLI::App& app, Options& options, Command& chosen) {
  auto add = [&](const char* name, const char* help, Command run, const char* paths_help,
                 int fewest = 1, int most = 0) {
    auto* command = app.add_subcommand(name, help);
    auto* paths = command->add_option("PATH", options.paths, paths_help)->required();
    paths->expected(fewest, most ? most : 1 << 20);
    command->add_flag("--json", options.json, "Answer as JSON (schema_version 2)");
    command->callback([&chosen, run] { chosen = run; });
    return command;
  };
  constexpr const char* any_path = "wheels, ELF files, device code, or folders of them";
  add("show", "What is in a wheel or ELF file, and where it runs", wheelscope::show, any_path)
      ->add_flag("--by-size", options.by_size,
                 "What makes it big: library and target, largest first");
  auto* check = add("check", "Whether wheels keep to a policy", wheelscope::check, any_path);
  check
      ->add_option("--policy", options.policy,
                   "TOML file with the rules; without it, what is wrong for every wheel")
      ->type_name("FILE");
  check->add_flag("--sarif", options.sarif, "Answer as SARIF 2.1.0, for code hosts");
  add("cover", "Which wheel serves which cell of a matrix of users", wheelscope::cover,
      "wheels, or folders of them")
      ->add_option("--matrix", options.matrix, "TOML file with the matrix")
      ->type_name("FILE")
      ->required();
  add("link", "Whether every symbol of a wheel is found in providers", wheelscope::link,
      "the wheel, then its providers: wheels, files or folders", 2);
  add("diff", "What changed for users between two wheels", wheelscope::diff,
      "the old and the new one", 2, 2);
  auto* dump = add("dump", "PTX, cubins or symbols", wheelscope::dump, any_path);
  auto* what = dump->add_option_group("what");
  what->add_flag("--ptx", options.ptx, "PTX texts");
  what->add_flag("--cubin", options.cubin, "Cubins");
  what->add_flag("--symbols", options.symbols,
                 "Dynamic symbols, defined or needed, and who provides them");
  what->require_option(1);
  dump->add_option("-o", options.output_folder,
                   "Write files into this folder; into one inside it for each of several inputs")
      ->type_name("DIR");
}

void add_thin(CLI::App& app, Options& options, Command& chosen) {
  auto* thin = app.add_subcommand(
      "thin", "A smaller wheel: with the device code alone that the given GPUs would choose");
  thin->add_option("PATH", options.paths,
                   "wheels; with --check the original and thinned ones; with --env a prefix")
      ->expected(0, 1 << 20);
  thin->add_option("--gpu", options.gpus,
                   "Compute capability (9.0), or `native` for the GPUs of this machine")
      ->allow_extra_args(false)
      ->type_name("GPU");
  thin->add_option("--arch-list", options.arch_list,
                   "The same as torch writes it: \"8.0;9.0+PTX\" keeps PTX for later GPUs too")
      ->type_name("LIST");
  thin->add_flag("--keep-ptx", options.keep_ptx,
                 "Also the PTX that the GPUs would use if they had no native code");
  thin->add_option("-o", options.output_folder, "Folder for the new wheel")->type_name("DIR");
  thin->add_flag("--dry-run", options.dry_run,
                 "What would be saved, a line for each GPU; nothing is written");
  thin->add_flag("--check", options.compare,
                 "Whether the other wheels are thinnings of the first, and for which GPUs");
  thin->add_option("--variant", options.variant,
                   "Make it a wheel variant for its GPU, with this label (sm90)")
      ->type_name("LABEL");
  thin->add_flag("--env", options.environment,
                 "The packages of an environment (PATH, or the active one) instead of wheels");
  thin->add_flag("--write", options.write, "With --env: thin the installed files")->needs("--env");
  thin->add_option("--save", options.save,
                   "With --write: keep the original files in this folder, for --undo")
      ->needs("--write")
      ->type_name("DIR");
  thin->add_option("--undo", options.undo, "Put the files of such a folder back")->type_name("DIR");
  thin->add_flag("--json", options.json, "Answer as JSON (schema_version 2)");
  thin->callback([&chosen] { chosen = wheelscope::thin; });
}

// Adds the options of pip and uv that say where files come from.
void add_index_options(CLI::App& fit, Options& options) {
  fit.add_option("-i,--index-url,--index,--default-index", options.index,
                 "Package index; without it, the one that pip or uv is configured for")
      ->type_name("URL");
  fit.add_option("--extra-index-url", options.extra_indexes, "One more index")
      ->allow_extra_args(false)
      ->type_name("URL");
  fit.add_option("-f,--find-links", options.find_links, "A page of links, or a folder of files")
      ->allow_extra_args(false)
      ->type_name("URL");
  fit.add_flag("--no-index", options.no_index, "Only what --find-links names");
  fit.add_flag("--pre", options.prereleases, "Pre-releases count too");
  fit.add_option("--proxy", options.proxy, "Proxy; without it, pip's, or HTTPS_PROXY")
      ->type_name("URL");
}

void add_timeout(CLI::App& command, Options& options) {
  command.add_option("--timeout", options.timeout, "Seconds without a sign of a server")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 3600));
}

// Adds the options of `fit` about a set, and about the machine that it is for.
void add_set_options(CLI::App& fit, Options& options) {
  fit.add_option("--group", options.groups, "Also what this group of ./pyproject.toml lists")
      ->allow_extra_args(false)
      ->type_name("GROUP");
  fit.add_flag("--keep", options.keep, "Installed versions where they work, else the newest");
  fit.add_option("--why", options.why, "Why this package is in the set, and not in a newer version")
      ->type_name("PACKAGE");
  fit.add_option("--format", options.format,
                 "set: with all that it requires, also one project; pylock: as a lock file")
      ->check(CLI::IsMember({"set", "pylock"}));
  fit.add_option("--cuda", options.cuda, "The CUDA that torch is to bring: 12, 13.0, cpu")
      ->type_name("CUDA");
  fit.add_option("--driver", options.driver, "NVIDIA's driver, in place of the machine's")
      ->type_name("VERSION");
  fit.add_option("--gpu", options.gpus, "A compute capability (9.0), in place of its GPUs")
      ->allow_extra_args(false)
      ->type_name("GPU");
}

void add_atlas(CLI::App& app, Options& options, Command& chosen) {
  auto* atlas = app.add_subcommand(
      "atlas", "With which torch, CUDA and Python the projects of a list work, as a site");
  atlas->add_option("LIST", options.paths, "files with a project's name on each line")
      ->required()
      ->expected(1, 1 << 20);
  atlas->add_option("-o", options.output_folder, "Folder for the site, atlas.json and the cache")
      ->required()
      ->type_name("DIR");
  atlas->add_option("--releases", options.releases, "How many of each project, the newest first")
      ->check(CLI::Range(1, 100));
  atlas->add_option("--torch", options.torch, "The versions of torch that count: `newest`, >=2.14")
      ->type_name("VERSIONS");
  atlas->add_flag("--sarif", options.sarif,
                  "What is wrong with the newest releases, as SARIF 2.1.0; exit code 1 if any is");
  add_index_options(*atlas, options);
  add_timeout(*atlas, options);
  atlas->callback([&chosen] { chosen = wheelscope::atlas; });
}

// Adds the commands about a machine instead of files.
void add_machine_commands(CLI::App& app, Options& options, Command& chosen) {
  auto add = [&](const char* name, const char* help, Command run, const char* machine_help) {
    auto* command = app.add_subcommand(name, help);
    command->add_flag("--json", options.json, "Answer as JSON (schema_version 2)");
    command
        ->add_option("--python", options.python,
                     "Interpreter, or folder of an environment; without it, the active virtual "
                     "environment, else python3 on PATH")
        ->type_name("PYTHON");
    command->add_option("--machine", options.machine, machine_help)->type_name("FILE");
    command->callback([&chosen, run] { chosen = run; });
    return command;
  };
  add("machine", "What this machine is: C library, driver, GPUs, Python, torch, CUDA libraries",
      wheelscope::machine, "Print what this command saved with --json");
  add("explain", "What a message of the loader, of CUDA or of Python means, and what to do",
      wheelscope::explain, "Explain it for the machine that `machine --json` saved")
      ->add_option("TEXT", options.paths, "the message; without it, the standard input is read")
      ->expected(0, 1 << 20);
  auto* fit = add("fit", "Which file of a project works on a machine, and how it is installed",
                  wheelscope::fit, "Judge for the machine that `machine --json` saved");
  fit->add_option("WHAT", options.paths,
                  "NAME or 'NAME>=VERSION', wheels, or addresses of wheels; several: versions "
                  "that work together")
      ->expected(0, 1 << 20);
  fit->add_option("-r,--requirement", options.requirement_files, "Also what this file lists")
      ->allow_extra_args(false)
      ->type_name("FILE");
  add_index_options(*fit, options);
  add_set_options(*fit, options);
  fit->add_option("--with", options.with, "The torch that will be there: torch==VERSION")
      ->type_name("REQUIREMENT");
  fit->add_flag("--deep", options.deep, "Read every byte: device code lies behind the code");
  add_timeout(*fit, options);
  auto* env = app.add_subcommand(
      "env", "Whether what is installed in an environment loads there, and what to do");
  env->add_option("PREFIX", options.paths,
                  "folder of an environment, or its interpreter; without it, the active virtual "
                  "environment, else python3 on PATH")
      ->expected(0, 1);
  env->add_flag("--json", options.json, "Answer as JSON (schema_version 2)");
  env->add_option("--why", options.why, "How each that needs this library searches for it")
      ->type_name("LIBRARY");
  env->add_flag("--import", options.import,
                "Import every package with libraries in a process of "
                "that Python too, and compare: this runs their code");
  env->add_option("--machine", options.machine,
                  "With the driver and GPUs of the machine that `machine --json` saved")
      ->type_name("FILE");
  env->callback([&chosen] { chosen = wheelscope::env; });
}

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

int run(int argc, char** argv) {
  Options options{.style = {.colour = terminal_takes_colour()}};
  Command chosen = nullptr;
  CLI::App app(description, "wheelscope");
  app.formatter(std::make_shared<PlainUsage>());
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", "wheelscope " WHEELSCOPE_VERSION,
                       "The version of this program");
  app.set_help_all_flag("--help-all", "The help of every command");
  add_commands(app, options, chosen);
  add_thin(app, options, chosen);
  add_machine_commands(app, options, chosen);
  add_atlas(app, options, chosen);
  std::string shell;
  auto* completions = app.add_subcommand("completions", "A script that completes words in a shell");
  completions->add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  auto* man = app.add_subcommand("man", "The manual page, for `man -l -`");
  for (const auto& [name, lines] : examples) {
    std::string text = "Examples:";
    for (const auto& line : wheelscope::split(lines, '\n')) text += "\n  wheelscope " + line;
    app.get_subcommand(name)->footer(text);
  }
  app.footer(footer);
  if (complain_about_command(app, argc, argv)) return wheelscope::usage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? wheelscope::clean : wheelscope::usage;
  }
  if (completions->parsed() || man->parsed()) {
    std::cout << (man->parsed() ? wheelscope::man_page(app)
                                : wheelscope::completion_script(app, shell));
    return wheelscope::clean;
  }
  std::ios::sync_with_stdio(false);
  return chosen(options, {std::cout, std::cerr});
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
