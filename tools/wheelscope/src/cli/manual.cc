// Walks through the commands and options, and writes each shell's words for them.
#include "cli/manual.h"

#include "text/text.h"

namespace wheelscope {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_name().empty(); });
}

// Returns all options, including those in groups of mutually exclusive options.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  auto options = app.get_options();
  for (const auto* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!group->get_name().empty()) continue;
    for (const auto* option : group->get_options()) options.push_back(option);
  }
  std::erase_if(options, [](const CLI::Option* option) { return option->get_positional(); });
  return options;
}

// Returns --json, or -o for an option without a long name.
std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? "-" + option.get_snames().front()
                                     : "--" + option.get_lnames().front();
}

std::string names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : options_of(app)) names.push_back(name_of(*option));
  return joined(names, " ");
}

std::string bash_script(const CLI::App& app) {
  std::vector<std::string> commands;
  std::string cases;
  for (const auto* command : commands_of(app)) {
    commands.push_back(command->get_name());
    cases += "    " + command->get_name() + ") words='" + names_of(*command) + "' ;;\n";
  }
  return "_wheelscope() {\n  local word=${COMP_WORDS[COMP_CWORD]} words\n  case ${COMP_WORDS[1]} "
         "in\n" +
         cases + "    *) words='" + names_of(app) + "' ;;\n  esac\n" +
         "  if [ \"$COMP_CWORD\" = 1 ] && [[ $word != -* ]]; then words='" + joined(commands, " ") +
         "'; fi\n" +
         "  if [ \"$COMP_CWORD\" = 1 ] || [[ $word == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "  else\n    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n  fi\n}\n"
         "complete -o filenames -F _wheelscope wheelscope\n";
}

// Removes the quotes that would end a quoted word.
std::string plain(std::string text) {
  std::erase(text, '\'');
  return text;
}

std::string zsh_script(const CLI::App& app) {
  std::string list, cases;
  auto arguments = [](const CLI::App& command) {
    std::string words;
    for (const auto* option : options_of(command)) {
      auto help = plain(option->get_description());
      std::erase_if(help, [](char c) { return c == '[' || c == ']' || c == ':'; });
      words += " '" + name_of(*option) + "[" + help + "]" +
               (option->get_expected_max() > 0 ? ":value:_files'" : "'");
    }
    return words + " '*:file:_files'";
  };
  for (const auto* command : commands_of(app)) {
    auto help = plain(command->get_description());
    std::erase(help, ':');
    list += "    '" + command->get_name() + ":" + help + "'\n";
    cases += "    " + command->get_name() + ") _arguments" + arguments(*command) + " ;;\n";
  }
  return "#compdef wheelscope\n_wheelscope() {\n  local -a commands=(\n" + list +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n" +
         cases + "  esac\n}\ncompdef _wheelscope wheelscope\n";
}

std::string fish_script(const CLI::App& app) {
  std::string text;
  auto add = [&](const std::string& condition, const CLI::App& command) {
    for (const auto* option : options_of(command)) {
      const auto name = name_of(*option);
      text += "complete -c wheelscope -n '" + condition + "' " +
              (name.starts_with("--") ? "-l " + name.substr(2) : "-s " + name.substr(1)) +
              (option->get_expected_max() > 0 ? " -r" : "") + " -d '" +
              plain(option->get_description()) + "'\n";
    }
  };
  for (const auto* command : commands_of(app)) {
    text += "complete -c wheelscope -n __fish_use_subcommand -f -a " + command->get_name() +
            " -d '" + plain(command->get_description()) + "'\n";
    add("__fish_seen_subcommand_from " + command->get_name(), *command);
  }
  add("__fish_use_subcommand", app);
  return text;
}

// Escapes a text for roff: a line must not start with a dot or a quote, and a dash is a minus.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') escaped += '\\';
    if (c == '-') escaped += '\\';
    escaped += c;
  }
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  return shell == "zsh" ? zsh_script(app) : shell == "fish" ? fish_script(app) : bash_script(app);
}

std::string man_page(const CLI::App& app) {
  auto list = [](const CLI::App& command) {
    std::string text;
    for (const auto* option : options_of(command)) {
      const auto type = option->get_expected_max() > 0 ? " " + option->get_type_name() : "";
      text += ".TP\n.B " + roff(name_of(*option) + type) + "\n" + roff(option->get_description()) +
              "\n";
    }
    return text;
  };
  auto notes = [](const CLI::App& command) {
    std::string text = ".nf\n";
    for (const auto& line : split(command.get_footer(), '\n')) text += roff(line) + "\n";
    return text + ".fi\n";
  };
  auto text = ".TH WHEELSCOPE 1\n.SH NAME\nwheelscope \\- " + roff(app.get_description()) +
              "\n.SH SYNOPSIS\n.B wheelscope\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n"
              ".SH OPTIONS\n" +
              list(app) + ".SH COMMANDS\n";
  for (const auto* command : commands_of(app)) {
    std::string arguments;
    for (const auto* option : command->get_options()) {
      if (option->get_positional())
        arguments +=
            ".TP\n.I " + roff(option->get_name()) + "\n" + roff(option->get_description()) + "\n";
    }
    text += ".SS " + roff(command->get_name()) + "\n" + roff(command->get_description()) + ".\n" +
            arguments + list(*command) + notes(*command);
  }
  return text + ".SH NOTES\n" + notes(app);
}

}  // namespace wheelscope
