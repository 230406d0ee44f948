// Writes facts as JSON, keys in a fixed order.
#include "report/json.h"

#include "answers/owners.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

FIELDS(DeviceTarget, kind, target, compression, relocatable, isa, count, bytes, uncompressed_bytes)
FIELDS(GpuVerdict, name, capability, served, by, library, min_driver, fatbins, fatbins_unserved)
FIELDS(LibraryCudaVerdict, library, targets, gpus)
FIELDS(ElfHardening, relro, bind_now, nx, stack_protector, text_relocations)
FIELDS(WheelClaims, name, version, build, variant, variant_properties, summary, license, generator,
       requires_python, requires_dist, file_name_tags, wheel_file_tags, root_is_purelib,
       claims_cuda, record_verified)
FIELDS(Finding, id, level, place, offset, what, fix)
FIELDS(MissingSymbol, library, symbol, demangled, expected_in, why)
FIELDS(LinkReport, resolved, platform, driver, python, weak, missing, missing_libraries,
       missing_reasons)

Json to_json(const LibraryFacts& of) {
  Json json;
  ADD_FIELDS(path, size, role, kind, machine, bits, big_endian, soname, needed, rpath, runpath,
             version_needs, version_definitions, hardening, debug_sections)
  json["stripped"] = !of.has_symbol_table;
  ADD_FIELDS(device_code, toolkit)
  json["static_cudart"] = nullptr;
  if (of.cudart_version)
    json["static_cudart"] = {{"version", or_null(*of.cudart_version)},
                             {"evidence", of.cudart_evidence}};
  return json;
}

static FIELDS(CudaVerdict, runtime, runtime_version, runtime_choices, evidence, sass, ptx,
              min_driver, targets, gpus,
              libraries) static FIELDS(PlatformVerdict, glibc, because, external_libraries)

    Json to_json(const Item& item) {
  const auto& facts = item.facts;
  const auto& [platform, python, torch, numpy, cuda] = item.verdicts;
  Json json{{"file", facts.file}, {"kind", name_of(facts.kind)}, {"size", facts.size}};
  json["platform_tag"] = platform.tag;
  json["claimed_tags"] = facts.wheel ? facts.wheel->file_name_tags : std::vector<std::string>{};
  json["python_abi"] = {{"kind", name_of(python.abi)},
                        {"min", field(python.min)},
                        {"versions", python.versions},
                        {"because", python.because}};
  json["torch_abi"] = {{"kind", name_of(torch.abi)},
                       {"min", field(torch.min)},
                       {"symbols", torch.symbols},
                       {"unknown", torch.unknown}};
  json["numpy_abi"] = {
      {"kind", name_of(numpy.abi)}, {"min", field(numpy.min)}, {"libraries", numpy.libraries}};
  json["cuda"] = to_json(cuda);
  json["platform"] = to_json(platform);
  json["wheel"] = field(facts.wheel);
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
