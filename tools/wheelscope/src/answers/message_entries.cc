// Reads data/explain.toml and data/missing.toml: what messages are recognised by, and what is said.
#include <algorithm>
#include <cctype>

#include "answers/explain.h"
#include "tables/embedded.h"
#include "tables/toml.h"
#include "text/text.h"

namespace wheelscope {
namespace {

Pattern parse_pattern(std::string_view text) {
  Pattern pattern{.literals = {}, .between = {""}};
  std::string literal;
  auto end_literal = [&](std::string next) {
    if (!literal.empty()) {
      pattern.literals.push_back(comparable(std::exchange(literal, {})));
      pattern.between.push_back(std::move(next));
    } else {
      pattern.between.back() = std::move(next);
    }
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{') {
      const auto close = std::min(text.find('}', at), text.size() - 1);
      end_literal(std::string(text.substr(at + 1, close - at - 1)));
      at = close;
    } else if (text[at] == '*') {
      end_literal("*");
    } else {
      literal += text[at];
    }
  }
  if (!literal.empty()) end_literal("");
  for (auto* outer : {&pattern.between.front(), &pattern.between.back()}) {
    if (outer->ends_with('!')) outer->pop_back();  // a word as it is
  }
  pattern.capital = std::isupper(static_cast<unsigned char>(text.front())) != 0;
  return pattern;
}

// Returns "cannot find a" and "cannot find b" for "cannot find {a|b}".
std::vector<std::string> with_each_alternative(const std::string& text) {
  for (auto open = text.find('{'); open != text.npos; open = text.find('{', open + 1)) {
    const auto close = std::min(text.find('}', open), text.size() - 1);
    const auto inside = text.substr(open + 1, close - open - 1);
    if (!inside.contains('|')) continue;
    std::vector<std::string> all;
    for (const auto& one : split(inside, '|')) {
      for (const auto& rest : with_each_alternative(text.substr(close + 1)))
        all.push_back(text.substr(0, open) + one + rest);
    }
    return all;
  }
  return {text};
}

// How loaders say that they miss a function.
constexpr const char* undefined_symbol[] = {
    "{library}: undefined symbol: SYMBOL",          "undefined symbol: SYMBOL",
    "dlopen({library}, *symbol not found*'_SYMBOL", "dlopen({library}, *symbol not found*(_SYMBOL",
    "dlopen({library}, *Symbol not found: _SYMBOL", "Symbol not found: _SYMBOL"};

std::vector<std::string> texts(const toml::node* node) {
  if (!node) return {};
  if (const auto text = node->value<std::string>()) return {*text};
  std::vector<std::string> list;
  for (const auto& one : *node->as_array()) list.push_back(one.value_or<std::string>(""));
  return list;
}

std::vector<MessageEntry> parse_entries(std::string_view text) {
  const auto root = toml::parse(text);
  std::vector<std::pair<toml::source_index, MessageEntry>> found;  // TOML sorts its keys
  for (const auto& [key, node] : root) {
    const auto& table = *node.as_table();
    auto word = [&](const char* name) { return table[name].value_or<std::string>(""); };
    MessageEntry entry{.kind = std::string(key),
                       .what = word("what"),
                       .whose = word("whose"),
                       .link = word("link"),
                       .message = word("message"),
                       .because = texts(table.get("because")),
                       .ask = texts(table.get("ask")),
                       .fix = texts(table.get("fix")),
                       .windows = texts(table.get("windows")),
                       .weak = table["weak"].value_or(0),
                       .released = table["released"].value_or(false)};
    auto add = [&](const std::string& text) {
      for (const auto& pattern : with_each_alternative(text))
        entry.find.push_back(parse_pattern(pattern));
    };
    for (const auto& text : texts(table.get("find"))) add(text);
    for (const auto& symbol : texts(table.get("symbols"))) {
      for (const auto* form : undefined_symbol) add(replace_all(form, "SYMBOL", symbol));
    }
    found.emplace_back(node.source().begin.line, std::move(entry));
  }
  std::ranges::sort(found, {}, [](const auto& one) { return one.first; });
  std::vector<MessageEntry> entries;
  for (auto& [line, entry] : found) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace

std::string comparable(std::string_view text) {
  auto plain = lower(text);
  std::ranges::replace_if(plain, [](char c) { return c == '"' || c == '`'; }, '\'');
  return plain;
}

const std::vector<MessageEntry>& message_entries() {
  static const auto entries = parse_entries(embedded::explain());
  return entries;
}

const MessageEntry& entry_of(const std::string& kind) {
  return *std::ranges::find(message_entries(), kind, &MessageEntry::kind);
}

const MessageEntry& missing_entry(const std::string& key) {
  static const auto entries = parse_entries(embedded::missing());
  return *std::ranges::find(entries, key, &MessageEntry::kind);
}

}  // namespace wheelscope
