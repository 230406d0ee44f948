// What `fit` has to say, as JSON.
#include "report/json.h"
#include "report/reason_text.h"

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

}  // namespace wheelscope
