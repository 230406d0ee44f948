// Reads the lines in which pip, uv, Poetry and conda say who wants what, and names the packages
// that are wanted in two ways.
#include <algorithm>
#include <cctype>
#include <map>

#include "answers/explain.h"
#include "text/text.h"

namespace wheelscope {
namespace {

struct Wish {
  std::string who, name, wanted;  // torchvision 0.17.0, torch, torch==2.2.0
};

std::string wants(const Wish& wish) {
  return wish.who + (wish.who == "you" ? " ask for " : " needs ") + wish.wanted;
}

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

// Returns the words of a text, with "torch (>=2.0, <3)" and "torch >=2.0,<3" as one word.
std::vector<std::string> requirements_and_words(std::string_view text) {
  std::vector<std::string> words;
  int open = 0;
  for (auto& word : words_of(text)) {
    const bool joins =
        !words.empty() &&
        (open > 0 || word.front() == '(' ||
         (std::string_view("<>=!~").contains(word.front()) && is_name(words.back().back())));
    open += static_cast<int>(std::ranges::count(word, '(') - std::ranges::count(word, ')'));
    if (joins)
      words.back() += (word.front() == '(' ? " " : "") + word;
    else
      words.push_back(std::move(word));
  }
  return words;
}

std::string without_comma(std::string word) {
  while (!word.empty() && std::string_view(",.:;").contains(word.back())) word.pop_back();
  return word;
}

std::string name_of_requirement(const std::string& requirement) {
  const auto end = std::ranges::find_if_not(requirement, is_name);
  return lower(std::string(requirement.begin(), end));
}

// True for "torch==2.1", "torch[x]>=2", "torch (2.1)": a name with a condition.
bool is_requirement(const std::string& word) {
  const auto name = name_of_requirement(word);
  return !name.empty() && name.size() < word.size() &&
         std::string_view("<>=!~([{ ").contains(word[name.size()]) &&
         std::isalpha(static_cast<unsigned char>(name.front()));
}

class Wishes {
 public:
  explicit Wishes(std::string_view text) {
    for (const auto& line : split(text, '\n')) {
      for (auto& word : requirements_and_words(line)) words_.push_back(std::move(word));
    }
    for (at_ = 0; at_ < words_.size(); ++at_) read();
  }
  std::vector<Wish> wishes;

 private:
  std::string word(std::size_t at) const { return at < words_.size() ? words_[at] : ""; }

  void add(const std::string& who, std::size_t at) {
    auto wanted = without_comma(word(at));
    if (!is_requirement(wanted)) return;
    wishes.push_back({who, name_of_requirement(wanted), wanted});
    // "depends on torch==2.5.1 and vllm>=0.6"; but "... and vllm==0.6 depends on ..."
    const auto next = without_comma(word(at + 2)), after = word(at + 3);
    if (word(at + 1) == "and" && !word(at).ends_with(',') && is_requirement(next) &&
        after != "depends" && after != "are" && after != "is" && after != "requires")
      add(who, at + 2);
  }

  // "torchvision 0.17.0 depends on", "torchvision==0.17.0 depends on", "your project depends on"
  std::string who_before(std::size_t at) const {
    if (at == 0) return {};
    const auto last = without_comma(words_[at - 1]);
    if (last == "project" && at > 1 && lower(words_[at - 2]) == "your") return "you";
    const bool version = std::isdigit(static_cast<unsigned char>(last.front())) != 0;
    return version && at > 1 ? words_[at - 2] + " " + last : last;
  }

  // Returns what stands between a branch of conda's tree and a word: "python =3.12" for
  // "└─ python =3.12 *, which".
  std::string of_branch(std::size_t at) const {
    std::string all;
    for (; at > 0 && !words_[at - 1].ends_with("─"); --at) {
      const auto part = without_comma(words_[at - 1]);
      if (!part.empty() && part != "*" && part != "=*") all = part + (all.empty() ? "" : " ") + all;
    }
    return at > 0 ? all : "";
  }

  void add_branch(const std::string& who) {
    const auto wanted = of_branch(at_);
    if (is_requirement(wanted) && !who.empty())
      wishes.push_back({who, name_of_requirement(wanted), wanted});
  }

  void read() {
    const auto now = word(at_), next = word(at_ + 1);
    if (now == "user" && next == "requested") {
      add("you", at_ + (word(at_ + 2) == "(constraint)" ? 3 : 2));
    } else if (now == "you" && next == "require") {
      add("you", at_ + 2);
    } else if (now == "depends" && next == "on") {
      add(who_before(at_), at_ + (word(at_ + 2) == "both" ? 3 : 2));
    } else if (now == "requires") {
      add(who_before(at_), at_ + 1);
    } else if ((now == "would" && next == "require") || (now == "is" && next == "installable") ||
               (now == "is" && next == "not" && word(at_ + 2) == "installable")) {
      parent_ = of_branch(at_);
    } else if (now == "is" && next == "requested") {
      add_branch("you");
    } else if (now == "which" && (next == "conflicts" || next == "can")) {
      add_branch(parent_);
    }
  }

  std::vector<std::string> words_;
  std::string parent_;  // in conda's tree
  std::size_t at_ = 0;
};

// The version of a package that a line says is there: "but you have torch 2.3.0 which".
std::string version_here(std::string_view text, const std::string& name) {
  const auto words = words_of(text);
  for (std::size_t at = 2; at + 1 < words.size(); ++at) {
    if (words[at - 2] == "you" && words[at - 1] == "have" && lower(words[at]) == name)
      return without_comma(words[at + 1]);
  }
  return {};
}

}  // namespace

void ask_conflict(const Asked&, Explanation& explanation) {
  constexpr std::size_t most = 8;
  const auto text = explanation.symptom.part("rest...");
  std::map<std::string, std::vector<Wish>> by_name;
  for (auto& wish : Wishes(text).wishes) {
    auto& same = by_name[wish.name];
    if (std::ranges::none_of(same, [&](const Wish& one) {
          return one.who == wish.who && one.wanted == wish.wanted;
        }))
      same.push_back(std::move(wish));
  }
  std::vector<std::string> names;
  for (const auto& [name, wishes] : by_name) {
    const auto here = version_here(text, name);
    const bool two = std::ranges::any_of(
        wishes, [&](const Wish& one) { return one.wanted != wishes.front().wanted; });
    if (!two && here.empty()) continue;
    if (names.size() == most) break;
    names.push_back(name);
    std::vector<std::string> all;
    for (const auto& wish : wishes) all.push_back(wants(wish));
    if (!here.empty()) all.push_back(name + " " + here + " is installed");
    explanation.say(name + ": " + joined(all, "; "));
  }
  explanation.symptom.set("over", joined(names, " and "));
  if (!names.empty()) return;
  for (const auto& [name, wishes] : by_name) {
    if (explanation.because.size() == most) break;
    explanation.say(wants(wishes.front()));
  }
}

}  // namespace wheelscope
