// Thinned wheels and files as JSON: for --json, and for the statement inside a thinned wheel.
#include "report/json.h"

namespace wheelscope {
namespace {

Json sums_to_json(const CodeSums& sums) {
  auto json = Json::array();
  for (const auto& [code, sum] : sums)
    json.push_back({{"code", code}, {"count", sum.count}, {"bytes", sum.bytes}});
  return json;
}

}  // namespace

Json to_json(const ThinFor& wanted) {
  return {{"gpus", wanted.gpus}, {"ptx", wanted.ptx}};
}

Json to_json(const FileThinning& file) {
  auto stays = Json::object(), modules = Json::object();
  for (const auto& [why, count] : file.stays) stays[name_of(why)] = count;
  for (const auto& [gpu, count] : file.modules) {
    modules[gpu] = {{"native", count.native}, {"jit", count.jit}, {"unserved", count.unserved}};
  }
  return {{"path", file.path},
          {"removed", file.remove},
          {"size_before", file.size_before},
          {"size", file.size},
          {"zeros", file.zeros},
          {"keeps_zeros", file.keeps_zeros ? Json(name_of(*file.keeps_zeros)) : Json()},
          {"kept", sums_to_json(file.kept)},
          {"cut", sums_to_json(file.cut)},
          {"stays", stays},
          {"modules", modules}};
}

Json to_json(const ThinnedPackage& package) {
  Json json{{"name", package.name},       {"version", package.version},
            {"written", package.written}, {"size_before", package.size_before},
            {"size", package.size},       {"files", Json::array()},
            {"notes", package.notes}};
  for (const auto& file : package.files) json["files"].push_back(to_json(file));
  return json;
}

Json to_json(const ThinCheck& check) {
  auto differences = Json::array();
  for (const auto& [path, difference] : check.differences)
    differences.push_back({{"path", path}, {"difference", name_of(difference)}});
  return {{"thinning", check.holds()},
          {"differences", differences},
          {"same_for", check.gpus},
          {"other_for", check.lost}};
}

Json to_json(const ThinnedWheel& wheel) {
  Json json{{"file", wheel.file}};
  json.update(to_json(wheel.wanted));
  json["written"] = or_null(wheel.written);
  json["size_before"] = wheel.size_before;
  json["size"] = wheel.written.empty() ? Json() : Json(wheel.size);
  json["installed_before"] = wheel.installed_before;
  json["installed"] = wheel.installed;
  json["files"] = Json::array();
  for (const auto& file : wheel.files) json["files"].push_back(to_json(file));
  json["notes"] = wheel.notes;
  return json;
}

}  // namespace wheelscope
