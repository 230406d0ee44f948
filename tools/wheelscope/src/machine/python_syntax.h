// The syntax of Python as far as python_source.cc needs it: lines, conditions and blocks.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/text.h"

namespace wheelscope {

// A statement with its indentation; comments and the contents of long strings are left out.
struct LogicalLine {
  std::size_t indentation = 0;
  std::string text;
};

// True if a statement that starts so is of interest. Others have no text, except what follows a
// semicolon.
using KeepsLine = bool (*)(std::string_view start);

// Names of Python: whether a character goes on one, and the one that a text starts with.
bool is_name_character(char c);
std::string_view first_word(std::string_view text);

// Returns what stands between quotes in a statement.
std::vector<std::string> quoted_texts(std::string_view text);

class LineReader {
 public:
  explicit LineReader(std::string_view text, KeepsLine keeps = nullptr)
      : text_(text), keeps_(keeps) {}

  std::optional<LogicalLine> next();

 private:
  std::string_view read_string();
  void skip_long_string();

  std::string_view text_;
  KeepsLine keeps_;  // null: all
  std::size_t at_ = 0;
};

// --- Evaluates conditions of Python code that are about the platform and the version of Python:
// sys.platform == "win32" or sys.version_info < (3, 9). All others are unknown.

// The Python on Linux that would run the code.
struct PythonTarget {
  std::vector<long> version{3};  // as many numbers as are known
  std::string architecture;
};

PythonTarget target_of(const std::string& version, const std::string& architecture);

// A known value; monostate: unknown. A tuple of numbers is a version.
struct PythonNone {
  auto operator<=>(const PythonNone&) const = default;
};
using PythonValue = std::variant<std::monostate, PythonNone, bool, long, std::string,
                                 std::vector<long>, std::vector<std::string>>;

// Names in the file whose values are known from earlier assignments.
using PythonConstants = std::map<std::string, PythonValue, std::less<>>;

PythonValue evaluate(std::string_view expression, const PythonTarget& target,
                     const PythonConstants& constants);

// Returns nothing if it is unknown.
std::optional<bool> truth_of(const PythonValue& value);

// --- The blocks of Python code around a statement, and what follows from them: whether it runs,
// and whether the file goes on if it fails.

// Whether an import needs something: `never` and `always` are proved; `depends` is anything that
// the text does not tell.
enum class Need { never, depends, always };

NAMES(Need, "never", "depends", "always")

enum class Certainty { no, maybe, yes };

// Where a statement stands; what its attempts survive is known only at the end.
struct PythonPlace {
  std::string scope;
  std::vector<std::size_t> attempts;
  Need runs = Need::always;
};

class PythonBlocks {
 public:
  // Enters the block that a header opens: `word` is its first word, `head` the text before its
  // colon. The condition of an `if` is evaluated only if it decides.
  void enter(std::size_t indentation, std::string_view word, std::string_view head,
             const std::function<Need()>& need_of_condition);
  void leave_to(std::size_t indentation);
  bool is_deepest() const;

  PythonPlace here() const;
  const std::string* function() const;  // around the line; null: none
  bool in_handler() const { return !handlers_.empty(); }
  bool asks_modules() const;  // a condition asks whether another module was imported before
  // Whether a statement here runs whenever the function around the line is called.
  Certainty certainty_in_function() const;
  void raise_in_handler(Certainty certainty);

  // Known at the end of the file.
  bool survives_library(const PythonPlace& place) const;
  Need need_at(const PythonPlace& place) const;
  Need need_of_absent_at(const PythonPlace& place) const;  // of a module that is not found

 private:
  struct Block {
    std::size_t indentation = 0;
    enum class Kind { plain, function, attempt, handler } kind = Kind::plain;
    Need runs = Need::always;
    Need others = Need::always;  // of an `if`: whether the branches that follow may run
    bool branch = false;         // of an `if`
    bool asks_modules = false;   // whether another module was imported before
    std::size_t id = 0;          // of an attempt, or the one of a handler
    std::string function;        // its name
  };
  // A `try`, with what its handlers do: whether the file goes on.
  struct Attempt {
    Certainty survives_import = Certainty::no, survives_library = Certainty::no;
    Certainty survives_absence = Certainty::no;
    bool import_settled = false, library_settled = false;  // a handler has it for sure
    bool absence_settled = false;
  };
  struct Handler {
    std::size_t attempt = 0;
    Certainty import = Certainty::no, library = Certainty::no, absence = Certainty::no;
    Certainty raises = Certainty::no;
  };

  void leave();
  void enter_branch(std::string_view condition, Need holds, Need before, Block& block);
  void begin_attempt(Block& block);
  Need need_at(const PythonPlace& place, Certainty Attempt::* survives) const;
  Certainty certainty_within(Block::Kind kind) const;

  std::vector<Block> blocks_;
  Block last_left_;
  std::vector<Attempt> attempts_;
  std::vector<Handler> handlers_;
};

}  // namespace wheelscope
