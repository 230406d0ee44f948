// The atlas as JSON, and as pages that a browser opens from a folder.
#pragma once

#include "answers/atlas.h"
#include "answers/forecast.h"
#include "report/json.h"

namespace wheelscope {

Json to_json(const AtlasFile& file);
Json to_json(const AtlasCell& cell);
Json to_json(const AtlasClaim& claim);
Json to_json(const AtlasRelease& release);
Json to_json(const AtlasProject& project);
Json to_json(const Breaks& breaks);

// The pages are made of what to_json() wrote, so that projects which did not change need not be
// read again.
struct AtlasPage {
  std::string path, text;
};
// All of them: the index, one for each project, their style and the search.
std::vector<AtlasPage> atlas_site(const Json& atlas);

}  // namespace wheelscope
