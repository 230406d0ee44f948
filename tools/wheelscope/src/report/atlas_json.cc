// Writes a project of the atlas as JSON.
#include "report/json.h"
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {

constexpr std::size_t most_symbols = 50;  // that are named

Json to_json(const AtlasFile& file) {
  auto symbols = Json::array();
  if (file.torch.abi == TorchAbi::cxx) {
    for (std::size_t i = 0; i < std::min(most_symbols, file.torch.symbols.size()); ++i)
      symbols.push_back(demangle(file.torch.symbols[i]));
  }
  auto gpus = Json::array();
  for (const auto& gpu : file.gpus)
    gpus.push_back({{"capability", gpu.capability}, {"served", name_of(gpu.served)}});
  return {{"file", file.file},
          {"size", file.size},
          {"read", file.read},
          {"problem", or_null(file.problem)},
          {"torch_abi", name_of(file.torch.abi)},
          {"torch_min", or_null(file.torch.min)},
          {"cxx_symbols", file.torch.abi == TorchAbi::cxx ? file.torch.symbols.size() : 0},
          {"cxx_symbols_first", std::move(symbols)},
          {"known_symbols", file.known_symbols},
          {"lacking", file.lacking},
          {"requires_torch", file.requires_torch},
          {"python_abi", name_of(file.python.abi)},
          {"platform", or_null(file.platform)},
          {"uses_device_code", file.uses_device_code},
          {"gpus", std::move(gpus)}};
}

Json to_json(const AtlasCell& cell) {
  const bool sources = cell.reason.why == Why::only_sources;
  return {{"torch", cell.torch},
          {"cuda", cell.cuda},
          {"pythons", cell.pythons},
          {"verdict", sources ? "sdist" : name_of(cell.fits)},
          {"obstacle", name_of(cell.obstacle)},
          {"reason", or_null(reason_text(cell.reason))}};
}

Json to_json(const AtlasClaim& claim) {
  return {{"id", claim.id}, {"what", claim.what}, {"torches", claim.torches}};
}

Json to_json(const AtlasRelease& release) {
  return {{"version", release.version},
          {"wheels", release.wheels},
          {"linux_wheels", release.linux_wheels},
          {"architectures", release.architectures},
          {"sdist", or_null(release.sdist)},
          {"files", to_json(release.files)},
          {"false_claims", to_json(release.claims)},
          {"cells", to_json(release.cells)}};
}

Json to_json(const Breaks& breaks) {
  return {{"loaded", breaks.loaded}, {"broke", breaks.broke}};
}

Json to_json(const AtlasProject& project) {
  return {{"name", project.name},
          {"problem", or_null(project.problem)},
          {"releases", to_json(project.releases)}};
}

}  // namespace wheelscope
