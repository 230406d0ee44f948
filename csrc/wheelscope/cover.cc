// Decides for each cell of a matrix which wheel pip would take and whether that wheel would work.
#include "cover.h"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>

#include "claims.h"
#include "platform.h"
#include "specifier.h"
#include "tables.h"
#include "version.h"

namespace wheelscope {
namespace {

// 3.14t -> 3.14, free-threaded.
struct Python {
  std::string version;
  bool free_threaded = false;
  explicit Python(const std::string& text) : version(text), free_threaded(text.ends_with('t')) {
    if (free_threaded) version.pop_back();
  }
};

std::string digits_of(std::string version) {
  std::erase(version, '.');
  return version;
}

// Whether pip on this Python takes a wheel with this tag (PEP 425; abi3t is the limited API of
// free-threaded builds).
bool admits(const Tag& tag, const Python& python) {
  if (tag.python == "py3") return tag.abi == "none";
  if (tag.python.size() < 4) return false;
  const auto tagged = python_version_of_tag(std::string_view(tag.python).substr(2));
  if (tag.python.starts_with("py")) return tag.abi == "none" && !older(python.version, tagged);
  if (!tag.python.starts_with("cp")) return false;
  if (tag.abi == "abi3") return !python.free_threaded && !older(python.version, tagged);
  if (tag.abi == "abi3t") return !older(python.version, tagged);
  const auto own = "cp" + digits_of(python.version);
  return tag.python == own &&
         (tag.abi == "none" || tag.abi == own + (python.free_threaded ? "t" : ""));
}

std::string why_not_python(const Item& wheel, const Cell& cell) {
  const Python python(cell.python);
  const auto& tags = wheel.wheel->file_name_tags;
  if (std::ranges::none_of(tags, [&](const auto& tag) { return admits(split_tag(tag), python); }))
    return "its tag is not for Python " + cell.python;
  if (!fulfils(python.version, wheel.wheel->requires_python))
    return "it requires Python " + wheel.wheel->requires_python;
  if (wheel.python.kind == "abi3" && wheel.python.min && older(python.version, *wheel.python.min)) {
    return wheel.python.because.empty() ? "it needs Python " + *wheel.python.min
                                        : wheel.python.because.front();
  }
  if (wheel.python.kind == "version" && wheel.python.min && *wheel.python.min != cell.python)
    return "its modules are built for Python " + *wheel.python.min;
  return {};
}

// The torch that a wheel bound to its C++ ABI was built for: from a local version (+cu130torch2.15)
// or an exact requirement.
std::string torch_built_for(const WheelClaims& wheel) {
  const auto local = wheel.version.find('+');
  const auto mark = local == std::string::npos ? local : wheel.version.find("torch", local);
  if (mark != std::string::npos)
    return wheel.version.substr(
        mark + 5, wheel.version.find_first_not_of("0123456789.", mark + 5) - mark - 5);
  for (const auto& requirement : wheel.requires_dist) {
    if (requirement_name(requirement) != "torch") continue;
    const auto specifiers = specifiers_of(requirement);
    if (specifiers.starts_with("=="))
      return std::string(specifiers.substr(2, specifiers.find(',') - 2));
  }
  return {};
}

std::string minor_of(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

std::string why_not_torch(const Item& wheel, const Cell& cell) {
  const auto& torch = wheel.torch;
  if (torch.kind == "cxx") {
    const auto built_for = torch_built_for(*wheel.wheel);
    if (built_for.empty()) return "it is bound to torch's C++ ABI and does not say of which torch";
    if (minor_of(built_for) != minor_of(cell.torch))
      return "it is bound to the C++ ABI of torch " + built_for;
  }
  if (!torch.unknown.empty()) return "no known torch has " + torch.unknown.front();
  if (torch.min && older(cell.torch, *torch.min))
    return "it needs torch " + *torch.min + " for " + torch.symbols.front();
  for (const auto& requirement : wheel.wheel->requires_dist) {
    if (requirement_name(requirement) == "torch" &&
        !fulfils(cell.torch, specifiers_of(requirement)))
      return "it requires " + requirement;
  }
  return {};
}

std::string why_not_without_cuda(const Item& wheel) {
  for (const auto& library : wheel.libraries) {
    for (const auto& name : library.needed) {
      const bool cuda_library = name.starts_with("libtorch_cuda") ||
                                name.starts_with("libc10_cuda") || name.starts_with("libcudart") ||
                                name.starts_with("libcublas");
      if (cuda_library && std::ranges::find(wheel.platform.external_libraries, name) !=
                              wheel.platform.external_libraries.end()) {
        return library.path + " needs " + name + ", which a CPU build of torch lacks";
      }
    }
    for (const auto& [symbol, needed] : library.torch_symbols) {
      const auto shim = torch_shims().find(symbol);
      if (needed && shim != torch_shims().end() && shim->second.library == "libtorch_cuda.so")
        return library.path + " needs " + symbol + ", which a CPU build of torch lacks";
    }
  }
  return {};
}

std::string why_not_cuda(const Item& wheel, const Cell& cell) {
  if (cell.cuda == "cpu") return why_not_without_cuda(wheel);
  const auto& cuda = wheel.cuda;
  if (cuda.sass.empty() && cuda.ptx.empty()) return "it has no device code";
  const auto major = cell.cuda.substr(0, cell.cuda.find('.'));
  if (!cuda.runtime_version)
    return cuda.runtime == "none" ? "" : "the version of its CUDA runtime cannot be told";
  const auto own = cuda.runtime_version->substr(0, cuda.runtime_version->find('.'));
  if (cuda.runtime == "dynamic" &&
      std::ranges::find(cuda.runtime_choices, major) == cuda.runtime_choices.end())
    return "it needs libcudart.so." + own + "; torch brings CUDA " + cell.cuda;
  // A static runtime stands alone: it needs the driver of its major version, which users of a later
  // CUDA have.
  if (cuda.runtime == "static" && older(major, own))
    return "its CUDA " + *cuda.runtime_version + " runtime needs a newer driver than CUDA " +
           cell.cuda;
  return {};
}

std::string why_not_arch(const Item& wheel, const Cell& cell) {
  for (const auto& text : wheel.wheel->file_name_tags) {
    const auto platform = split_tag(text).platform;
    if (platform == "any" || architecture_of_tag(platform) == cell.arch) return {};
  }
  return "it is not for " + cell.arch;
}

}  // namespace

Result<std::vector<Cell>> parse_matrix(std::string_view text) try {
  const auto root = toml::parse(text);
  const auto* arches = root["arch"].as_table();
  const auto* torches = root["torch"].as_table();
  if (!arches || !torches)
    return std::unexpected(Error{0, "a matrix has [arch.NAME] and [torch.\"X.Y\"] tables"});
  std::vector<std::string> versions;
  for (const auto& [version, facts] : *torches) versions.emplace_back(version.str());
  std::ranges::sort(versions, older);
  std::vector<Cell> cells;
  for (const auto& [arch, ignored] : *arches) {
    for (const auto& version : versions) {
      const auto torch = (*torches)[version];
      const auto *builds = torch["cuda"].as_array(), *pythons = torch["pythons"].as_array();
      if (!builds || !pythons)
        return std::unexpected(
            Error{0, "[torch.\"" + version + "\"] needs the lists `cuda` and `pythons`"});
      for (const auto& cuda : *builds) {
        for (const auto& python : *pythons) {
          cells.push_back({std::string(arch.str()), version, cuda.value_or<std::string>("?"),
                           python.value_or<std::string>("?")});
        }
      }
    }
  }
  return cells;
} catch (const toml::parse_error& error) {
  return std::unexpected(
      Error{error.source().begin.line, "line " + std::to_string(error.source().begin.line) + ": " +
                                           std::string(error.description())});
}

std::string why_not(const Item& wheel, const Cell& cell) {
  if (!wheel.wheel) return "it is not a wheel";
  for (auto* rule : {why_not_arch, why_not_python, why_not_torch, why_not_cuda}) {
    if (auto reason = rule(wheel, cell); !reason.empty()) return reason;
  }
  return {};
}

std::vector<CellVerdict> cover(const std::vector<Item>& wheels, const std::vector<Cell>& cells) {
  std::vector<CellVerdict> verdicts;
  for (const auto& cell : cells) {
    auto& verdict = verdicts.emplace_back(CellVerdict{.cell = cell});
    for (const auto& wheel : wheels) {
      auto reason = why_not(wheel, cell);
      if (reason.empty()) {
        verdict.wheel = wheel.file;
        break;
      }
      verdict.reasons.emplace_back(wheel.file, std::move(reason));
    }
    if (!verdict.wheel.empty()) verdict.reasons.clear();
  }
  return verdicts;
}

}  // namespace wheelscope
