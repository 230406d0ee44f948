// Parses the embedded data files, each when it is first asked for.
#include "tables.h"

#include <nlohmann/json.hpp>
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "embedded.h"
#include "version.h"

namespace wheelscope {
namespace {

// The rows of a CSV file without quoting; '#' starts a comment line, the first other line is the
// header.
std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  bool header_seen = false;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (!header_seen) {
      header_seen = true;
      continue;
    }
    auto& row = rows.emplace_back();
    while (true) {
      const auto comma = line.find(',');
      row.emplace_back(line.substr(0, comma));
      if (comma == line.npos) break;
      line.remove_prefix(comma + 1);
    }
  }
  return rows;
}

PlatformTable parse_platform_table(const char* libc) {
  const auto root = nlohmann::json::parse(embedded::manylinux()).at(libc);
  PlatformTable table;
  root.at("aliases").get_to(table.aliases);
  root.at("libraries").get_to(table.libraries);
  for (const auto& [name, facts] : root.at("arches").items()) {
    auto& arch = table.arches[name];
    facts.at("policies").get_to(arch.policies);
    facts.at("symbol_versions").get_to(arch.symbol_versions);
  }
  return table;
}

CudaTable parse_cuda_table() {
  const auto root = toml::parse(embedded::cuda());
  CudaTable table;
  for (const auto& [major, driver] : *root["drivers"].as_table())
    table.drivers.emplace(major.str(), **driver.as_string());
  for (const auto& [toolkit, facts] : *root["toolkits"].as_table()) {
    const auto isa = facts.at_path("ptx").value_or<std::string>(""),
               driver = facts.at_path("driver").value_or<std::string>("");
    auto& oldest = table.ptx_drivers.try_emplace(isa, driver).first->second;
    if (older(driver, oldest)) oldest = driver;
  }
  for (const auto& gpu : *root["gpu"].as_array()) {
    const auto& entry = *gpu.as_table();
    const auto& toolkit = **entry["toolkit"].as_string();
    table.gpus.push_back({**entry["name"].as_string(), **entry["capability"].as_string(),
                          entry["tegra"].value_or(false),
                          root["toolkits"][toolkit]["driver"].value_or<std::string>("")});
  }
  return table;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

CudartTable parse_cudart_table() {
  const auto root = nlohmann::json::parse(embedded::cudart());
  CudartTable table{.present = root.at("present")};
  for (const auto& minor : root.at("minors"))
    table.minors.push_back({minor.at("version"), minor.at("markers")});
  for (const auto& [machine, code] : root.at("code").items()) {
    table.code[machine] = {from_hex(code.at("before")), from_hex(code.at("after"))};
  }
  return table;
}

}  // namespace

const PlatformTable& platform_table(std::string_view libc) {
  static const auto manylinux = parse_platform_table("manylinux");
  if (libc != "musllinux") return manylinux;
  static const auto musllinux = parse_platform_table("musllinux");
  return musllinux;
}

const std::map<std::string, TorchShim, std::less<>>& torch_shims() {
  static const auto table = [] {
    std::map<std::string, TorchShim, std::less<>> shims;
    for (auto& row : csv_rows(embedded::torch_shims()))
      shims.try_emplace(row.at(0), TorchShim{row.at(1), "libtorch_" + row.at(2) + ".so"});
    return shims;
  }();
  return table;
}

const std::map<std::string, std::string, std::less<>>& python_abi3() {
  static const auto table = [] {
    std::map<std::string, std::string, std::less<>> symbols;
    for (auto& row : csv_rows(embedded::python_abi3())) symbols.try_emplace(row.at(0), row.at(1));
    return symbols;
  }();
  return table;
}

const CudartTable& cudart_table() {
  static const auto table = parse_cudart_table();
  return table;
}

const CudaTable& cuda_table() {
  static const auto table = parse_cuda_table();
  return table;
}

}  // namespace wheelscope
