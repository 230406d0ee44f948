// Writes facts as JSON, keys in a fixed order.
#include "json_report.h"

namespace wheelscope {
namespace {

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json or_null(const std::optional<std::string>& text) {
  return text ? or_null(*text) : Json(nullptr);
}

Json to_json(const DeviceTarget& code) {
  return {{"kind", code.kind},
          {"target", code.target},
          {"compression", code.compression},
          {"relocatable", code.relocatable},
          {"isa", or_null(code.isa)},
          {"count", code.count},
          {"bytes", code.bytes},
          {"uncompressed_bytes", code.uncompressed_bytes}};
}

Json to_json(const GpuVerdict& gpu);
Json to_json(const LibraryFacts& library);

template <class T>
Json list(const std::vector<T>& values) {
  auto array = Json::array();
  for (const auto& value : values) array.push_back(to_json(value));
  return array;
}

Json to_json(const GpuVerdict& gpu) {
  return {{"name", gpu.name},
          {"capability", gpu.capability},
          {"served", gpu.served},
          {"by", or_null(gpu.by)},
          {"min_driver", or_null(gpu.min_driver)}};
}

Json to_json(const LibraryFacts& library) {
  Json json{{"path", library.path},
            {"size", library.size},
            {"kind", library.kind},
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
             {{"relro", library.hardening.relro},
              {"bind_now", library.hardening.bind_now},
              {"nx", library.hardening.nx},
              {"stack_protector", library.hardening.stack_protector},
              {"text_relocations", library.hardening.text_relocations}}},
            {"debug_sections", library.debug_sections},
            {"stripped", !library.has_symbol_table},
            {"device_code", list(library.device_code)},
            {"toolkit", or_null(library.toolkit)}};
  json["static_cudart"] = library.cudart_version
                              ? Json{{"version", or_null(*library.cudart_version)},
                                     {"evidence", library.cudart_evidence}}
                              : Json(nullptr);
  return json;
}

Json to_json(const WheelClaims& wheel) {
  return {{"name", wheel.name},
          {"version", wheel.version},
          {"build", or_null(wheel.build)},
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

}  // namespace

Json to_json(const Finding& finding) {
  return {{"id", finding.id},
          {"level", name_of(finding.level)},
          {"place", or_null(finding.place)},
          {"offset", finding.offset ? Json(*finding.offset) : Json(nullptr)},
          {"what", finding.what},
          {"fix", finding.fix}};
}

Json to_json(const Item& item) {
  const auto& cuda = item.cuda;
  Json json{{"file", item.file}, {"kind", item.kind}, {"size", item.size}};
  json["platform_tag"] = item.platform.tag;
  json["claimed_tags"] = item.wheel ? item.wheel->file_name_tags : std::vector<std::string>{};
  json["python_abi"] = {{"kind", item.python.kind},
                        {"min", or_null(item.python.min)},
                        {"because", item.python.because}};
  json["torch_abi"] = {{"kind", item.torch.kind},
                       {"min", or_null(item.torch.min)},
                       {"symbols", item.torch.symbols},
                       {"unknown", item.torch.unknown}};
  json["cuda"] = {{"runtime", cuda.runtime},
                  {"runtime_version", or_null(cuda.runtime_version)},
                  {"runtime_choices", cuda.runtime_choices},
                  {"evidence", cuda.evidence},
                  {"sass", cuda.sass},
                  {"ptx", cuda.ptx},
                  {"min_driver", or_null(cuda.min_driver)},
                  {"targets", list(cuda.targets)},
                  {"gpus", list(cuda.gpus)}};
  json["platform"] = {{"because", item.platform.because},
                      {"external_libraries", item.platform.external_libraries}};
  json["wheel"] = item.wheel ? to_json(*item.wheel) : Json(nullptr);
  json["size_by_part"] = item.size_by_part;
  json["elf"] = list(item.libraries);
  json["findings"] = list(item.findings);
  return json;
}

std::string json_document(const char* key, Json value) {
  Json document{{"schema_version", 1}};
  document[key] = std::move(value);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace wheelscope
