// Writes findings as SARIF 2.1.0, which code hosts show beside the sources, and as GitHub's
// annotations.
#include "report/json.h"

#include <map>

#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// Escapes line ends (%0A) and the like: an annotation is one line, and a wheel's contents must not
// write others.
std::string escaped(std::string_view text, bool property) {
  std::string plain;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    constexpr const char* digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    if (special)
      (((plain += '%') += digits[byte / 16]) += digits[byte % 16]);
    else
      plain += c;
  }
  return plain;
}

std::string sentence(const Finding& finding) {
  return (finding.place.empty() ? "" : finding.place + ": ") + finding.what +
         (finding.fix.empty() ? "" : "; " + finding.fix);
}

}  // namespace

std::string sarif_document(const std::vector<Item>& items) {
  auto results = Json::array(), rules = Json::array();
  std::map<std::string, std::size_t> rule_of;
  for (const auto& item : items) {
    for (const auto& finding : item.findings) {
      const auto [rule, is_new] = rule_of.try_emplace(finding.id, rule_of.size());
      if (is_new) rules.push_back({{"id", finding.id}});
      results.push_back(
          {{"ruleId", finding.id},
           {"ruleIndex", rule->second},
           {"level", name_of(finding.level)},
           {"message", {{"text", sentence(finding)}}},
           {"locations",
            {{{"physicalLocation", {{"artifactLocation", {{"uri", item.facts.file}}}}},
              {"logicalLocations",
               {{{"fullyQualifiedName",
                  finding.place.empty() ? base_name(item.facts.file) : finding.place}}}}}}}});
    }
  }
  const Json document = {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       {{{"tool", {{"driver", {{"name", "wheelscope"}, {"rules", std::move(rules)}}}}},
         {"results", std::move(results)}}}}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool in_github_actions() {
  return environment_variable("GITHUB_ACTIONS") == "true";
}

std::string annotations(const std::vector<Item>& items) {
  std::string text;
  for (const auto& item : items) {
    for (const auto& finding : item.findings) {
      const auto* level = finding.level == Finding::Level::note ? "notice" : name_of(finding.level);
      text += std::string("::") + level + " title=" +
              escaped("wheelscope " + finding.id + " in " + base_name(item.facts.file), true) +
              "::" + escaped(printable(sentence(finding)), false) + "\n";
    }
  }
  return text;
}

}  // namespace wheelscope
