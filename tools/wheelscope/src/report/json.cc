// Writes facts as JSON, keys in a fixed order.
#include "report/json.h"

#include "answers/owners.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json or_null(const std::optional<std::string>& text) {
  return text ? or_null(*text) : Json(nullptr);
}

Json to_json(const DeviceTarget& code) {
  return {{"kind", name_of(code.kind)},
          {"target", code.target},
          {"compression", code.compression},
          {"relocatable", code.relocatable},
          {"isa", or_null(code.isa)},
          {"count", code.count},
          {"bytes", code.bytes},
          {"uncompressed_bytes", code.uncompressed_bytes}};
}

Json to_json(const GpuVerdict& gpu) {
  return {{"name", gpu.name},
          {"capability", gpu.capability},
          {"served", name_of(gpu.served)},
          {"by", or_null(gpu.by)},
          {"library", or_null(gpu.library)},
          {"min_driver", or_null(gpu.min_driver)},
          {"fatbins", gpu.fatbins},
          {"fatbins_unserved", gpu.fatbins_unserved}};
}

Json to_json(const LibraryFacts& library) {
  Json json{{"path", library.path},
            {"size", library.size},
            {"role", name_of(library.role)},
            {"kind", name_of(library.kind)},
            {"machine", library.machine},
            {"bits", library.bits},
            {"big_endian", library.big_endian},
            {"soname", or_null(library.soname)},
            {"needed", library.needed},
            {"rpath", or_null(library.rpath)},
            {"runpath", or_null(library.runpath)},
            {"version_needs", library.version_needs},
            {"version_definitions", library.version_definitions},
            {"hardening",
             {{"relro", name_of(library.hardening.relro)},
              {"bind_now", library.hardening.bind_now},
              {"nx", library.hardening.nx},
              {"stack_protector", library.hardening.stack_protector},
              {"text_relocations", library.hardening.text_relocations}}},
            {"debug_sections", library.debug_sections},
            {"stripped", !library.has_symbol_table},
            {"device_code", to_json(library.device_code)},
            {"toolkit", or_null(library.toolkit)}};
  json["static_cudart"] = library.cudart_version
                              ? Json{{"version", or_null(*library.cudart_version)},
                                     {"evidence", library.cudart_evidence}}
                              : Json(nullptr);
  return json;
}

Json to_json(const LibraryCudaVerdict& library) {
  return {{"library", library.library},
          {"targets", to_json(library.targets)},
          {"gpus", to_json(library.gpus)}};
}

Json to_json(const WheelClaims& wheel) {
  return {{"name", wheel.name},
          {"version", wheel.version},
          {"build", or_null(wheel.build)},
          {"variant", or_null(wheel.variant)},
          {"variant_properties", wheel.variant_properties},
          {"summary", or_null(wheel.summary)},
          {"license", or_null(wheel.license)},
          {"generator", or_null(wheel.generator)},
          {"requires_python", or_null(wheel.requires_python)},
          {"requires_dist", wheel.requires_dist},
          {"file_name_tags", wheel.file_name_tags},
          {"wheel_file_tags", wheel.wheel_file_tags},
          {"root_is_purelib", wheel.root_is_purelib},
          {"claims_cuda", wheel.claims_cuda},
          {"record_verified", wheel.record_verified}};
}

Json to_json(const Finding& finding) {
  return {{"id", finding.id},
          {"level", name_of(finding.level)},
          {"place", or_null(finding.place)},
          {"offset", finding.offset ? Json(*finding.offset) : Json(nullptr)},
          {"what", finding.what},
          {"fix", finding.fix}};
}

Json to_json(const Item& item) {
  const auto& facts = item.facts;
  const auto& [platform, python, torch, numpy, cuda] = item.verdicts;
  Json json{{"file", facts.file}, {"kind", name_of(facts.kind)}, {"size", facts.size}};
  json["platform_tag"] = platform.tag;
  json["claimed_tags"] = facts.wheel ? facts.wheel->file_name_tags : std::vector<std::string>{};
  json["python_abi"] = {{"kind", name_of(python.abi)},
                        {"min", or_null(python.min)},
                        {"versions", python.versions},
                        {"because", python.because}};
  json["torch_abi"] = {{"kind", name_of(torch.abi)},
                       {"min", or_null(torch.min)},
                       {"symbols", torch.symbols},
                       {"unknown", torch.unknown}};
  json["numpy_abi"] = {
      {"kind", name_of(numpy.abi)}, {"min", or_null(numpy.min)}, {"libraries", numpy.libraries}};
  json["cuda"] = {{"runtime", name_of(cuda.runtime)},
                  {"runtime_version", or_null(cuda.runtime_version)},
                  {"runtime_choices", cuda.runtime_choices},
                  {"evidence", cuda.evidence},
                  {"sass", cuda.sass},
                  {"ptx", cuda.ptx},
                  {"min_driver", or_null(cuda.min_driver)},
                  {"targets", to_json(cuda.targets)},
                  {"gpus", to_json(cuda.gpus)},
                  {"libraries", to_json(cuda.libraries)}};
  json["platform"] = {{"glibc", or_null(platform.glibc)},
                      {"because", platform.because},
                      {"external_libraries", platform.external_libraries}};
  json["wheel"] = facts.wheel ? to_json(*facts.wheel) : Json(nullptr);
  json["size_by_part"] = facts.size_by_part;
  json["elf"] = to_json(facts.libraries);
  json["findings"] = to_json(item.findings);
  return json;
}

Json to_json(const CellVerdict& verdict) {
  auto reasons = Json::array();
  for (const auto& [wheel, reason] : verdict.reasons)
    reasons.push_back({{"wheel", wheel}, {"reason", reason_text(reason)}});
  return {{"arch", verdict.cell.arch},       {"torch", verdict.cell.torch},
          {"cuda", verdict.cell.cuda},       {"python", verdict.cell.python},
          {"wheel", or_null(verdict.wheel)}, {"reasons", std::move(reasons)}};
}

Json to_json(const LinkReport& report) {
  auto missing = Json::array();
  for (const auto& symbol : report.missing) {
    missing.push_back({{"library", symbol.library},
                       {"symbol", symbol.symbol},
                       {"demangled", symbol.demangled},
                       {"expected_in", or_null(symbol.expected_in)},
                       {"why", symbol.why}});
  }
  return {{"resolved", report.resolved},
          {"platform", report.platform},
          {"driver", report.driver},
          {"python", report.python},
          {"weak", report.weak},
          {"missing", std::move(missing)},
          {"missing_libraries", report.missing_libraries},
          {"missing_reasons", report.missing_reasons}};
}

Json to_json(const Change& change) {
  return {{"subject", change.subject}, {"before", change.before}, {"after", change.after}};
}

Json symbols_to_json(const Item& item) {
  auto symbols = Json::array();
  for_each_symbol(item, [&](const LibraryFacts& library, const SymbolFact& symbol,
                            const std::string& provider) {
    symbols.push_back({{"library", library.path},
                       {"name", symbol.name},
                       {"version", or_null(symbol.version)},
                       {"defined", symbol.defined},
                       {"weak", symbol.weak},
                       {"provider", or_null(provider)}});
  });
  return {{"file", item.facts.file}, {"symbols", std::move(symbols)}};
}

std::string json_document(const char* key, Json value) {
  Json document{{"schema_version", schema_version}};
  document[key] = std::move(value);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace wheelscope
