// Finds the patterns of data/explain.toml in a text by searching for their literals in order.
#include "answers/explain.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::size_t most_between = 400;    // bytes that `*` or a part between literals may cover
constexpr std::size_t most_attempts = 5000;  // of one pattern in one text
constexpr std::size_t most_symptoms = 100;

// What glibc, gcc and Windows say in other languages, and the English words of the entries.
constexpr std::pair<std::string_view, std::string_view> translations[] = {
    {"没有那个文件或目录", "No such file or directory"},
    {"沒有此一檔案或目錄", "No such file or directory"},
    {"そのようなファイルやディレクトリはありません", "No such file or directory"},
    {"그런 파일이나 디렉터리가 없습니다", "No such file or directory"},
    {"Нет такого файла или каталога", "No such file or directory"},
    {"Datei oder Verzeichnis nicht gefunden", "No such file or directory"},
    {"Aucun fichier ou dossier de ce type", "No such file or directory"},
    {"No existe el archivo o el directorio", "No such file or directory"},
    {"No existe el fichero o el directorio", "No such file or directory"},
    {"Arquivo ou diretório inexistente", "No such file or directory"},
    {"File o directory non esistente", "No such file or directory"},
    {"致命错误", "fatal error"},
    {"编译中断", "compilation terminated"},
    {"找不到 -l", "cannot find -l"},
    {"未找到命令", "command not found"},
    {"Befehl nicht gefunden", "command not found"},
    {"commande introuvable", "command not found"},
    {"orden no encontrada", "command not found"},
    {"команда не найдена", "command not found"},
    {"无法打开包括文件", "Cannot open include file"},
    {"Impossible d'ouvrir le fichier include :", "Cannot open include file:"},
    {"Datei (Include) kann nicht geöffnet werden", "Cannot open include file"},
    {"无法打开源文件", "cannot open source file"},
    {"无法打开输入文件", "cannot open input file "},
    {"无法打开文件", "cannot open file "},
    {"LNK1104: Datei", "LNK1104: cannot open file"},
    {"LNK1181: Eingabedatei", "LNK1181: cannot open input file"},
    {"impossible d'ouvrir le fichier", "cannot open file"},
    {"no se puede abrir el archivo", "cannot open file"},
    {"não é possível abrir o arquivo", "cannot open file"},
    {"impossibile aprire il file", "cannot open file"},
    {"не удается открыть файл", "cannot open file"},
    {"Nicht aufgelöstes externes Symbol", "unresolved external symbol"},
    {"symbole externe non résolu", "unresolved external symbol"},
    {"símbolo externo sin resolver", "unresolved external symbol"},
    {"无法解析的外部符号", "unresolved external symbol"},
    {"無法解析的外部符號", "unresolved external symbol"},
    {"неразрешенный внешний символ", "unresolved external symbol"},
    {"找不到指定的模块", "The specified module could not be found"},
    {"找不到指定的模組", "The specified module could not be found"},
    {"找不到指定的程序", "The specified procedure could not be found"},
    {"初始化例程失败", " initialization routine failed"},
    {"不是有效的 Win32 应用程序", "is not a valid Win32 application"},
    {"Das angegebene Modul wurde nicht gefunden", "The specified module could not be found"},
    {"Die angegebene Prozedur wurde nicht gefunden", "The specified procedure could not be found"},
    {"Le module spécifié est introuvable", "The specified module could not be found"},
    {"La procédure spécifiée est introuvable", "The specified procedure could not be found"},
    {"No se puede encontrar el módulo especificado", "The specified module could not be found"},
    {"No se encontró el proceso especificado", "The specified procedure could not be found"},
    {"Não foi possível encontrar o módulo especificado", "The specified module could not be found"},
    {"Impossibile trovare il modulo specificato", "The specified module could not be found"},
    {"Не найден указанный модуль", "The specified module could not be found"},
    {"Не найдена указанная процедура", "The specified procedure could not be found"},
    {"指定されたモジュールが見つかりません", "The specified module could not be found"},
    {"지정된 모듈을 찾을 수 없습니다", "The specified module could not be found"},
    {"Nie można odnaleźć określonego modułu", "The specified module could not be found"},
    {"不是内部或外部命令", "is not recognized as an internal or external command"},
    {"不是內部或外部命令", "is not recognized as an internal or external command"},
    {"n'est pas reconnu en tant que commande interne",
     "is not recognized as an internal or external command"},
    {"не является внутренней или внешней", "is not recognized as an internal or external command"},
    {"no se reconoce como un comando interno",
     "is not recognized as an internal or external command"}};

std::string in_english(std::string_view source) {
  std::string text(source);
  for (const auto& [translated, english] : translations)
    text = replace_all(std::move(text), translated, english);
  return text;
}

// A text in one line: escape sequences, frames and repeated blanks left out, quotes made plain.
struct PlainText {
  std::string text, lowered;
  std::vector<std::size_t> lines;  // where each line begins in it

  explicit PlainText(std::string_view original) {
    const auto english = in_english(original);
    std::string_view source = english;
    while (!source.empty()) {
      auto line = source.substr(0, source.find('\n'));
      source.remove_prefix(std::min(line.size() + 1, source.size()));
      // A line of one word: what bash says of a program that got signal 9; on macOS with its
      // number.
      if (trim(line) == "Killed") line = "Killed: 9";
      lines.push_back(text.size());
      add(line);
      if (!text.ends_with(' ')) text += ' ';
    }
    lowered = comparable(text);
  }

  void add(std::string_view line) {
    static constexpr std::pair<std::string_view, std::string_view> replaced[] = {
        {"‘", "'"}, {"’", "'"}, {"“", "\""}, {"”", "\""}, {"│", " "}, {"：", ": "}, {"%20", " "}};
    while (!line.empty()) {
      if (line.starts_with("\x1b[")) {
        line.remove_prefix(std::min(line.find_first_not_of("0123456789;", 2), line.size() - 1) + 1);
        continue;
      }
      const auto* known = std::end(replaced);
      if (static_cast<unsigned char>(line[0]) >= 0x80 || line[0] == '%')
        known = std::ranges::find_if(replaced,
                                     [&](const auto& one) { return line.starts_with(one.first); });
      const auto next = known != std::end(replaced) ? known->second : line.substr(0, 1);
      line.remove_prefix(known != std::end(replaced) ? known->first.size() : 1);
      const bool blank = next == " " || next == "\t" || next == "\r";
      if (!blank)
        text += next;
      else if (!text.empty() && !text.ends_with(' '))
        text += ' ';
    }
  }

  // Returns the lines from a place on, with their ends.
  std::string lines_from(std::size_t at) const {
    constexpr std::size_t most = 4000;
    std::string rest;
    for (auto line = line_of(at); line < lines.size() && rest.size() < most; ++line) {
      const auto begin = std::max(at, lines[line]);
      const auto end = line + 1 < lines.size() ? lines[line + 1] : text.size();
      rest.append(text, begin, end - std::min(begin, end)).append("\n");
    }
    return rest;
  }

  // Returns what stands after a place in its line, or in the next one if that is nothing.
  std::string_view rest_of_line(std::size_t at) const {
    at = std::min(text.find_first_not_of(' ', at), text.size());
    const auto line = line_of(at) + 1;
    const auto end = line < lines.size() ? lines[line] : text.size();
    return std::string_view(text).substr(at, std::min(end - at, most_between));
  }

  std::size_t line_of(std::size_t at) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(lines, at) - lines.begin()) - 1;
  }

  std::size_t find(std::string_view literal, std::size_t from, std::size_t to) const {
    return from < to ? find_in(std::string_view(lowered).substr(0, to), literal, from)
                     : lowered.npos;
  }
};

std::string without_quotes(std::string_view word) {
  constexpr std::string_view quotes = "'\"`()[]{}<>";
  while (!word.empty() && quotes.find(word.front()) != quotes.npos) word.remove_prefix(1);
  while (!word.empty() && (quotes.find(word.back()) != quotes.npos || word.ends_with('.')))
    word.remove_suffix(1);
  // A quoted text of Python's writes its line end: 'undefined symbol: _Zx\n'.
  if (word.ends_with("\\n")) word.remove_suffix(2);
  // "ImportError('libcuda.so.1" and "ImportError:libcuda.so.1" are about libcuda.so.1.
  if (const auto error = word.rfind("Error:"); error != word.npos) word.remove_prefix(error + 6);
  return std::string(word.substr(word.find_last_of("'\"`") + 1));
}

// The last word of a text, or the last path, which may have spaces: from the slash that begins it.
std::string_view last_word(std::string_view text) {
  const auto word = text.substr(text.rfind(' ') + 1);
  if (word.starts_with('/') || word.find('/') == word.npos) return word;
  const auto slash = text.rfind(" /");
  const auto path = text.starts_with('/') && slash == text.npos ? text
                    : slash == text.npos                        ? word
                                                                : text.substr(slash + 1);
  return path.find(": ") == path.npos ? path : word;
}

struct Match {
  std::size_t begin, end;
  std::map<std::string, std::string> parts;
};

// True for a part of source code, which tracebacks print too: f'cannot load {name}'.
bool is_template(std::string_view part) {
  for (auto open = part.find('{'); open != part.npos; open = part.find('{', open + 1)) {
    const auto end = part.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.!", open + 1);
    if (end != part.npos && part[end] == '}' && (open == 0 || part[open - 1] != '$')) return true;
  }
  return false;
}

// The words before and after the literals; those before are on the same line. Returns false if they
// are no names.
bool add_outer_parts(const Pattern& pattern, const PlainText& text, Match& match) {
  if (const auto& name = pattern.between.front(); name.ends_with("...")) {
    match.parts[name] = text.lines_from(text.lines[text.line_of(match.begin)]);
  } else if (!name.empty() && name != "*") {
    const auto line = text.lines[text.line_of(match.begin)];
    auto word = std::string_view(text.text).substr(line, match.begin - line);
    while (word.ends_with(' ') || word.ends_with(':')) word.remove_suffix(1);
    word = last_word(word);
    if (is_template(word)) return false;
    match.parts[name] = without_quotes(word);
    // "error: cannot allocate ..." names no file.
    if (name == "library" && match.parts[name].find_first_of("./") == std::string::npos)
      match.parts[name].clear();
  }
  if (const auto& name = pattern.between.back(); name.ends_with("...")) {
    match.parts[name] = text.lines_from(match.end);
  } else if (name.ends_with(':')) {
    auto rest = trim(text.rest_of_line(match.end));
    while (rest.ends_with('.')) rest.remove_suffix(1);
    if (is_template(rest)) return false;
    match.parts[name.substr(0, name.size() - 1)] = rest;
  } else if (!name.empty() && name != "*") {
    auto word = trim(std::string_view(text.text).substr(match.end, most_between));
    if (std::string_view("<>=!~").contains(word.empty() ? 'x' : word.front())) {
      // A range of versions: >=3.7,<3.11
      match.parts[name] = word.substr(0, word.find_first_of(" ;"));
      return true;
    }
    word = word.substr(0, word.find_first_of(" ,;"));
    // "undefined symbol: f'If you": the quote ends it.
    if (const auto quote = word.find_first_of("'\"`", 1); quote != word.npos && quote > 1)
      word = word.substr(0, quote + 1);
    while (word.ends_with(':')) word.remove_suffix(1);  // "cannot find -lcudart: No such file"
    if (is_template(word)) return false;
    match.parts[name] = without_quotes(word);
  }
  return true;
}

// True if a pattern without outer parts does not begin in the middle of a word, as cuda.h does in
// my_cuda.h, nor end in the middle of a number.
bool is_whole(const Pattern& pattern, const std::string& text, const Match& match) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (const auto at = match.begin; at > 0 && pattern.between.front().empty() && is_word(text[at])) {
    const bool new_line = at > 1 && text[at - 1] == 'n' && text[at - 2] == '\\';
    const bool new_name = pattern.capital && std::isupper(static_cast<unsigned char>(text[at])) &&
                          std::islower(static_cast<unsigned char>(text[at - 1]));  // ImportError
    if (is_word(text[at - 1]) && !new_line && !new_name) return false;
  }
  return !(pattern.between.back().empty() && match.end < text.size() && is_digit(text[match.end]) &&
           is_digit(text[match.end - 1]));
}

std::vector<Match> matches(const Pattern& pattern, const PlainText& text, std::size_t from = 0) {
  std::vector<Match> found;
  for (std::size_t attempt = 0; attempt < most_attempts && found.size() < most_symptoms;
       ++attempt) {
    const auto begin = text.find(pattern.literals.front(), from, text.text.size());
    if (begin == std::string::npos) break;
    Match match{begin, begin + pattern.literals.front().size(), {}};
    from = match.end;
    bool complete = true;
    for (std::size_t i = 1; i < pattern.literals.size() && complete; ++i) {
      const auto& literal = pattern.literals[i];
      const auto next = text.find(literal, match.end, match.end + most_between + literal.size());
      complete = next != std::string::npos;
      if (!complete) break;
      if (auto name = pattern.between[i]; name != "*") {
        auto part = trim(std::string_view(text.text).substr(match.end, next - match.end));
        if (name.ends_with('!')) {
          name.pop_back();
          complete = part.find(' ') == part.npos;
        }
        complete = complete && !is_template(part);
        match.parts[name] = part;
      }
      match.end = next + literal.size();
    }
    if (!complete || !is_whole(pattern, text.text, match) || !add_outer_parts(pattern, text, match))
      continue;
    // The shortest text that fits: "numpy.random: numpy.dtype size changed" is of numpy.dtype.
    if (!found.empty() && found.back().end == match.end) found.pop_back();
    found.push_back(std::move(match));
  }
  return found;
}

// A pattern whose last words a text ends in the middle of, as of a log that was cut off.
struct CutEnd {
  const MessageEntry* entry;
  const Pattern* pattern;
  std::string_view missing;
  std::size_t length;  // of all words of the pattern
};

// True if what is missing can be told: the rest of a word, but not that of a quoted name, or a
// closing mark. Where whole words are missing, they may be those of another message.
bool can_be_told(std::string_view there, std::string_view missing) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (std::ranges::none_of(missing, is_word)) return true;
  return !missing.contains(' ') && is_word(there.back()) && is_word(missing.front()) &&
         std::ranges::count(there, '\'') % 2 == 0;
}

// Returns the patterns that may lack their end at the end of a text, the most complete ones first.
std::vector<CutEnd> cut_ends(std::string_view lowered) {
  constexpr std::size_t least = 16;         // characters of a pattern that must be there
  constexpr std::size_t most_missing = 30;  // percent of it
  std::vector<CutEnd> found;
  for (const auto& entry : message_entries()) {
    for (const auto& pattern : entry.find) {
      if (entry.weak || (!pattern.between.back().empty() && pattern.between.back() != "*"))
        continue;
      const std::string_view literal = pattern.literals.back();
      std::size_t length = 0;
      for (const auto& one : pattern.literals) length += one.size();
      for (std::size_t missing = 1; missing < literal.size() && missing + least <= length &&
                                    missing * 100 <= length * most_missing;
           ++missing) {
        const auto there = literal.substr(0, literal.size() - missing);
        if (!lowered.ends_with(there)) continue;
        if (can_be_told(there, literal.substr(there.size())))
          found.push_back({&entry, &pattern, literal.substr(there.size()), length});
        break;
      }
    }
  }
  std::ranges::stable_sort(found, [](const CutEnd& one, const CutEnd& other) {
    return one.missing.size() * other.length < other.missing.size() * one.length;
  });
  return found;
}

Symptom symptom_of(const MessageEntry& entry, const PlainText& text, const Match& match) {
  constexpr std::size_t longest_message = 500;
  const auto first = text.lines[text.line_of(match.begin)];
  const auto last = text.line_of(match.end - 1) + 1;
  const auto end = last < text.lines.size() ? text.lines[last] : text.text.size();
  Symptom symptom{.kind = entry.kind};
  symptom.message = trim(text.text.substr(first, std::min(end - first, longest_message)));
  for (const auto& [name, part] : match.parts) symptom.set(name, part);
  return symptom;
}

// Recognises what the last words of a text are the beginning of; nothing if the last line has a
// whole message, or the last of them ends (at `from`) after they begin.
std::optional<Symptom> recognise_cut_end(const PlainText& whole, std::size_t from) {
  constexpr std::size_t most_read = 2000;
  PlainText end = whole;
  end.text.resize(end.text.find_last_not_of(" .") + 1);
  end.lowered.resize(end.text.size());
  if (from > 0 && whole.line_of(from - 1) == whole.line_of(end.text.size() - 1)) return {};
  const auto begin = end.text.size() - std::min(end.text.size(), most_read);
  for (const auto& cut : cut_ends(end.lowered)) {
    const auto& literal = cut.pattern->literals.back();
    if (end.text.size() < from + literal.size() - cut.missing.size()) continue;
    auto completed = end;
    completed.text += cut.missing;
    completed.lowered += cut.missing;
    for (const auto& match : matches(*cut.pattern, completed, begin)) {
      if (match.end == completed.text.size()) return symptom_of(*cut.entry, end, match);
    }
  }
  return {};
}

// Merges the second message into the first and returns true, if both are about the same thing.
bool merge(Symptom& first, const Symptom& second) {
  if (first.kind != second.kind) return false;
  std::vector<std::string> names{"library", "needs", "symbol", "version"};
  for (const auto& [name, text] : second.parts) names.push_back(name);
  for (const auto& name : names) {
    if (!name.ends_with("...") && !first.part(name).empty() && !second.part(name).empty() &&
        first.part(name) != second.part(name))
      return false;
  }
  for (const auto& name : names) {
    if (first.part(name).empty()) first.set(name, second.part(name));
  }
  return true;
}

}  // namespace

std::string Symptom::part(const std::string& name) const {
  if (name == "library") return library;
  if (name == "needs") return needs;
  if (name == "symbol") return symbol;
  if (name == "version") return version;
  const auto found = parts.find(name);
  return found == parts.end() ? "" : found->second;
}

void Symptom::set(const std::string& name, std::string text) {
  (name == "library"   ? library
   : name == "needs"   ? needs
   : name == "symbol"  ? symbol
   : name == "version" ? version
                       : parts[name]) = std::move(text);
}

std::vector<Symptom> recognise(std::string_view source) {
  const PlainText text(source);
  struct Found {
    std::size_t begin, end;
    Symptom symptom;
  };
  std::vector<Found> found;
  auto search = [&](const MessageEntry& entry) {
    for (const auto& pattern : entry.find) {
      for (const auto& match : matches(pattern, text)) {
        if (found.size() == most_symptoms) break;
        if (std::ranges::any_of(found, [&](const Found& other) {
              return match.begin < other.end && other.begin < match.end;
            }))
          continue;
        auto symptom = symptom_of(entry, text, match);
        if (entry.released && !set_release(symptom)) continue;
        found.push_back({match.begin, match.end, std::move(symptom)});
      }
    }
  };
  for (int weak = 0; weak <= weakest && found.empty(); ++weak) {
    for (const auto& entry : message_entries()) {
      if (entry.weak == weak) search(entry);
    }
    if (weak > 0) continue;
    std::size_t known = 0;
    for (const auto& one : found) known = std::max(known, one.end);
    if (auto symptom = recognise_cut_end(text, known))
      found.push_back({text.text.size(), text.text.size(), std::move(*symptom)});
  }
  std::ranges::stable_sort(found, {}, &Found::begin);
  std::vector<Symptom> symptoms;
  for (auto& one : found) {
    if (std::ranges::none_of(symptoms, [&](auto& known) { return merge(known, one.symptom); }))
      symptoms.push_back(std::move(one.symptom));
  }
  if (symptoms.empty()) return symptoms;
  const auto facts = facts_of_text(text.lowered);
  const auto whole = std::make_shared<const std::string>(text.lowered);
  for (auto& symptom : symptoms) {
    symptom.parts.insert(facts.begin(), facts.end());
    symptom.text = whole;
  }
  return symptoms;
}

}  // namespace wheelscope
