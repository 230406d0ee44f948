// What `fit` has to say, as JSON.
#include "report/json.h"
#include "report/text.h"

namespace wheelscope {

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

Json to_json(const FitAnswer& answer) {
  return {{"asked", answer.asked},
          {"files", to_json(answer.verdicts)},
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
          {"packages", to_json(answer.packages)},
          {"command", or_null(answer.command)},
          {"refused", to_json(answer.refused)},
          {"conflict", to_json(answer.conflict)},
          {"nearest_asked", answer.nearest_asked},
          {"nearest", to_json(answer.nearest)},
          {"why", answer.why},
          {"notes", answer.notes},
          {"size", answer.size},
          {"read", answer.read},
          {"received", answer.received}};
}

}  // namespace wheelscope
