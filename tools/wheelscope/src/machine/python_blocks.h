// The blocks of Python code that a statement stands in, and what follows from them: whether it is
// run, and whether the file goes on where it fails.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace wheelscope {

// Whether an import needs something: `never` and `always` are proved, all else depends on what the
// text does not tell.
enum class Need { never, depends, always };

const char* name_of(Need need);

enum class Certainty { no, maybe, yes };

// Where a statement stands; what its attempts survive is known only at the end.
struct PythonPlace {
  std::string scope;
  std::vector<std::size_t> attempts;
  Need runs = Need::always;
};

class PythonBlocks {
 public:
  // The block that a header opens: `word` is its first, `head` what stands before its colon. The
  // condition of an `if` is asked only where it decides.
  void enter(std::size_t indentation, std::string_view word, std::string_view head,
             const std::function<Need()>& need_of_condition);
  void leave_to(std::size_t indentation);
  bool is_deepest() const;

  PythonPlace here() const;
  const std::string* function() const;  // that the line stands in; null: none
  bool in_handler() const { return !handlers_.empty(); }
  bool asks_modules() const;  // a condition asks whether another module was imported before
  Certainty certainty_in_function() const { return certainty_within(Block::Kind::function); }
  void raise_in_handler(Certainty certainty);

  // Known at the end of the file.
  bool survives_library(const PythonPlace& place) const;
  Need need_at(const PythonPlace& place) const;

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
    bool import_settled = false, library_settled = false;  // a handler has it for sure
  };
  struct Handler {
    std::size_t attempt = 0;
    Certainty import = Certainty::no, library = Certainty::no, raises = Certainty::no;
  };

  void leave();
  void enter_branch(std::string_view condition, Need holds, Need before, Block& block);
  void begin_attempt(Block& block);
  Certainty certainty_within(Block::Kind kind) const;

  std::vector<Block> blocks_;
  Block last_left_;
  std::vector<Attempt> attempts_;
  std::vector<Handler> handlers_;
};

}  // namespace wheelscope
