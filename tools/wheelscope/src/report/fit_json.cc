// What `fit` has to say, as JSON.
#include "report/json.h"
#include "report/text.h"

namespace wheelscope {
namespace {

Json to_json(const FitVerdict& verdict) {
  return {{"file", verdict.file},
          {"verdict", name_of(verdict.fits)},
          {"obstacle", name_of(verdict.obstacle)},
          {"reason", or_null(reason_text(verdict.reason))},
          {"change", verdict.reason ? or_null(change_text(verdict.reason)) : Json(nullptr)},
          {"notes", verdict.notes},
          {"in_part", verdict.in_part},
          {"size", verdict.size},
          {"read", verdict.read}};
}

Json to_json(const ClashLine& line) {
  return {{"package", or_null(line.who)},
          {"versions", or_null(line.versions)},
          {"other", or_null(line.other)},
          {"other_versions", or_null(line.other_versions)},
          {"text", clash_text(line)}};
}

Json to_json(const ChosenPackage& one) {
  return {{"name", one.name},
          {"version", one.version},
          {"asked", one.asked},
          {"file", one.file},
          {"url", one.url},
          {"sha256", or_null(one.sha256)},
          {"by_bytes", one.by_bytes},
          {"newest", or_null(one.newest)},
          {"required_by", one.required_by},
          {"judged", to_json(one.verdict)}};
}

template <class T>
Json array_of(const std::vector<T>& values) {
  auto array = Json::array();
  for (const auto& value : values) array.push_back(to_json(value));
  return array;
}

}  // namespace

Json to_json(const FitAnswer& answer) {
  auto files = Json::array();
  for (const auto& verdict : answer.verdicts) files.push_back(to_json(verdict));
  return {{"asked", answer.asked},
          {"files", std::move(files)},
          {"not_judged", answer.not_judged},
          {"take", or_null(answer.take)},
          {"command", or_null(answer.command)},
          {"nearest", or_null(answer.nearest)},
          {"change", or_null(change_text(answer.obstacle))},
          {"sdist", or_null(answer.sdist)},
          {"notes", answer.notes}};
}

Json to_json(const SetAnswer& answer) {
  return {{"asked", answer.asked},
          {"found", answer.found},
          {"packages", array_of(answer.packages)},
          {"command", or_null(answer.command)},
          {"refused", array_of(answer.refused)},
          {"conflict", array_of(answer.conflict)},
          {"nearest_asked", answer.nearest_asked},
          {"nearest", array_of(answer.nearest)},
          {"why", answer.why},
          {"notes", answer.notes},
          {"size", answer.size},
          {"read", answer.read}};
}

}  // namespace wheelscope
