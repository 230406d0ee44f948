// Parses each embedded data file when it is first used.
#include "tables/tables.h"

#include <array>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "tables/embedded.h"
#include "tables/toml.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// Calls use(fields) for each name in a CSV file without quoting. The first field of a row has
// names, separated by spaces, that share the other fields. '#' starts a comment line; the first
// other line is the header.
template <std::size_t columns, class Use>
void for_each_row(std::string_view text, Use use) {
  bool header_seen = false;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    std::array<std::string_view, columns> fields;
    for (auto& field : fields) {
      field = line.substr(0, line.find(','));
      line.remove_prefix(std::min(field.size() + 1, line.size()));
    }
    if (!std::exchange(header_seen, true)) continue;
    for (auto names = fields[0]; !names.empty();) {
      fields[0] = names.substr(0, names.find(' '));
      names.remove_prefix(std::min(fields[0].size() + 1, names.size()));
      use(fields);
    }
  }
}

// Maps each name to what make() makes of its row; the names are in a few sorted runs.
template <std::size_t columns, template <class...> class Map = std::map, class Make>
auto parse_table(std::string_view text, Make make) {
  using Row = std::array<std::string_view, columns>;
  Map<std::string_view, std::invoke_result_t<Make, const Row&>> table;
  for_each_row<columns>(
      text, [&](const Row& row) { table.emplace_hint(table.end(), row[0], make(row)); });
  return table;
}

PlatformTable parse_platform_table(std::string_view system) {
  PlatformTable table;
  for_each_row<4>(embedded::manylinux(), [&](const auto& fields) {
    const auto [name, kind, arch, policy] = fields;
    if (!policy.starts_with(system)) return;
    if (kind == "alias") {
      table.aliases.emplace(name, policy);
    } else if (kind == "library") {
      table.libraries.emplace(name, policy);
    } else if (kind == "forbidden") {
      table.forbidden.emplace(name, std::pair(arch, policy));
    } else if (kind == "policy") {
      table.arches[arch].policies.push_back(policy);
    } else {
      const auto split = name.find('_');
      table.arches[arch].symbol_versions[name.substr(0, split)].emplace(name.substr(split + 1),
                                                                        policy);
    }
  });
  return table;
}

CudaTable parse_cuda_table() {
  const auto root = toml::parse(embedded::cuda());
  CudaTable table;
  for (const auto& [major, driver] : *root["drivers"].as_table())
    table.drivers.emplace(major.str(), **driver.as_string());
  for (const auto& [major, range] : *root["torch"].as_table())
    table.torch_builds.emplace(major.str(),
                               std::pair(range.at_path("first").value_or<std::string>(""),
                                         range.at_path("last").value_or<std::string>("")));
  for (const auto& [toolkit, facts] : *root["toolkits"].as_table()) {
    const auto isa = facts.at_path("ptx").value_or<std::string>(""),
               driver = facts.at_path("driver").value_or<std::string>("");
    table.toolkit_drivers.emplace(toolkit.str(), driver);
    auto& oldest = table.ptx_drivers.try_emplace(isa, driver).first->second;
    if (older(driver, oldest)) oldest = driver;
  }
  for (const auto& gpu : *root["gpu"].as_array()) {
    const auto& entry = *gpu.as_table();
    const auto& toolkit = **entry["toolkit"].as_string();
    table.gpus.push_back({**entry["name"].as_string(), **entry["capability"].as_string(),
                          entry["tegra"].value_or(false),
                          root["toolkits"][toolkit]["driver"].value_or<std::string>(""),
                          entry["formerly"].value_or<std::string>("")});
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

const PlatformTable& platform_table(std::string_view system) {
  static const auto manylinux = parse_platform_table("manylinux");
  if (system == "manylinux") return manylinux;
  static const auto musllinux = parse_platform_table("musllinux"),
                    android = parse_platform_table("android");
  return system == "android" ? android : musllinux;
}

const std::map<std::string_view, TorchShim>& torch_shims() {
  static const auto table = parse_table<3>(embedded::torch_shims(), [](const auto& row) {
    return TorchShim{row[1], row[2] == "cuda" ? "libtorch_cuda.so" : "libtorch_cpu.so"};
  });
  return table;
}

const std::map<std::string_view, TorchSpan>& torch_symbols() {
  static const auto table = parse_table<3>(
      embedded::torch_symbols(), [](const auto& row) { return TorchSpan{row[1], row[2]}; });
  return table;
}

const std::map<std::string_view, std::string_view>& python_abi3() {
  static const auto table =
      parse_table<2>(embedded::python_abi3(), [](const auto& row) { return row[1]; });
  return table;
}

const std::map<std::string_view, std::string_view>& driver_symbols() {
  static const auto table =
      parse_table<2>(embedded::driver_symbols(), [](const auto& row) { return row[1]; });
  return table;
}

const std::map<std::string_view, std::string_view>& platform_symbols() {
  static const auto table =
      parse_table<2>(embedded::platform_symbols(), [](const auto& row) { return row[1]; });
  return table;
}

const std::multimap<std::string_view, CudaLibrary>& cuda_libraries() {
  static const auto table = parse_table<3, std::multimap>(
      embedded::cuda_libraries(), [](const auto& row) { return CudaLibrary{row[1], row[2]}; });
  return table;
}

const ProviderTable& providers() {
  static const auto table = [] {
    ProviderTable providers;
    for_each_row<6>(embedded::providers(), [&](const auto& fields) {
      const auto [name, kind, of, pip, apt, brew] = fields;
      providers[kind].emplace(name, Provider{of, pip, apt, brew});
    });
    return providers;
  }();
  return table;
}

const NameSpans& attributes() {
  static const auto table = [] {
    NameSpans spans;
    for_each_row<5>(embedded::attributes(), [&](const auto& fields) {
      const auto [name, module, distribution, brought, removed] = fields;
      spans.emplace(std::pair(module, name), NameSpan{distribution, brought, removed});
    });
    return spans;
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
