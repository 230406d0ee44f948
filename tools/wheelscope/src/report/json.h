// All JSON output. schema.json describes it, and tests check it against that.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "answers/atlas.h"
#include "answers/cover.h"
#include "answers/diff.h"
#include "answers/environment.h"
#include "answers/explain.h"
#include "answers/fit.h"
#include "answers/link.h"
#include "answers/thin.h"
#include "facts/machine.h"
#include "findings/findings.h"

namespace wheelscope {

using Json = nlohmann::ordered_json;

// Returns null for no text or an empty one.
Json or_null(const std::string& text);

// A type that only another one contains is written beside that one.
Json to_json(const Item& item);
Json to_json(const CellVerdict& verdict);
Json to_json(const LinkReport& report);
Json to_json(const Change& change);
Json to_json(const MachineFacts& machine);
Json to_json(const Explanation& explanation);
Json to_json(const DistributionVerdict& verdict);
Json to_json(const Search& search);
Json to_json(const FitAnswer& answer);
Json to_json(const SetAnswer& answer);
Json to_json(const ThinFor& wanted);
Json to_json(const FileThinning& file);
Json to_json(const ThinnedWheel& wheel);
Json to_json(const ThinnedPackage& package);
Json to_json(const ThinCheck& check);
Json to_json(const AtlasProject& project);
Json to_json(const Breaks& breaks);
Json symbols_to_json(const Item& item);  // only its symbols

template <class T>
concept HasJson = requires(const T& one) { to_json(one); };

template <HasJson T>
Json to_json(const std::vector<T>& values) {
  auto array = Json::array();
  for (const auto& value : values) array.push_back(to_json(value));
  return array;
}

// Returns a field as JSON: null for an empty text and for no value, an enum's name.
template <class T>
Json field(const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return or_null(value);
  else if constexpr (requires { name_of(value); })
    return name_of(value);
  else if constexpr (HasJson<T>)
    return to_json(value);
  else if constexpr (requires { value.has_value(); })
    return value ? field(*value) : Json();
  else
    return value;
}

// Adds members of `of` to `json` under their own names. FIELDS: defines to_json() for a type whose
// members are all named as in the schema.
#define ADD_FIELD(name) json[#name] = field(of.name);
#define ADD_FIELDS(...) NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(ADD_FIELD, __VA_ARGS__))
#define FIELDS(Type, ...)        \
  Json to_json(const Type& of) { \
    Json json;                   \
    ADD_FIELDS(__VA_ARGS__)      \
    return json;                 \
  }

constexpr int schema_version = 2;

// Returns {"schema_version": 2, <key>: <value>} as text, with a final newline. Replaces bytes that
// are not UTF-8.
std::string json_document(const char* key, Json value);

// Returns a SARIF 2.1.0 log of one run.
std::string sarif_document(const std::vector<Item>& items);

// True if a GitHub workflow runs this program; it shows annotations beside its log.
bool in_github_actions();

// Returns a line of GitHub's workflow commands for each finding.
std::string annotations(const std::vector<Item>& items);

// The pages are made from the output of to_json(), so that projects which did not change need not
// be read again.
struct AtlasPage {
  std::string path, text;
};
// Returns all pages: the index, one for each project, their style and the search.
std::vector<AtlasPage> atlas_site(const Json& atlas);

}  // namespace wheelscope
