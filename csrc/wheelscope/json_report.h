// The facts as JSON, schema_version 1; tests hold it to its schema.
#pragma once

#include <nlohmann/json.hpp>

#include "facts.h"

namespace wheelscope {

using Json = nlohmann::ordered_json;

Json to_json(const Finding& finding);
Json to_json(const Item& item);

// {"schema_version": 1, <key>: <value>} as text, with a final newline. Bytes that are not UTF-8 are
// replaced.
std::string json_document(const char* key, Json value);

}  // namespace wheelscope
