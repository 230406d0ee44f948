// Decides for each cell of a matrix which wheel pip would take and whether that wheel would work.
#include "answers/cover.h"

#include <algorithm>
#include <map>

#include "packaging/marker.h"
#include "packaging/requirement.h"
#include "packaging/specifier.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "tables/toml.h"
#include "text/dotted_version.h"
#include "verdicts/platform.h"
#include "verdicts/python_abi.h"

namespace wheelscope {
namespace {

std::string why_not_python(const Item& wheel, const Cell& cell) {
  const PythonBuild python(cell.python);
  const auto& claims = *wheel.facts.wheel;
  bool admitted = false, by_own_abi = false;
  for (const auto& text : claims.file_name_tags) {
    const auto tag = split_tag(text);
    if (!admits(tag, python)) continue;
    admitted = true;
    by_own_abi |= tag.abi.starts_with("cp") || tag.abi == "abi3t";
  }
  if (!admitted) return "its tag is not for Python " + cell.python;
  if (!can_fulfil(python.version, claims.requires_python))
    return "it requires Python " + claims.requires_python;
  const auto& verdict = wheel.verdicts.python;
  if (verdict.abi == PythonAbi::abi3 && python.free_threaded && !by_own_abi)
    return "its modules are built for the limited API of builds with the GIL";
  return wheelscope::why_not_python(verdict, cell.python);
}

std::string minor_of(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

// The wheel's requirements of torch, taken apart and evaluated once for each Python and machine: a
// wheel may have very many, or one with a very long marker.
class TorchRequirements {
 public:
  explicit TorchRequirements(const WheelClaims& claims) {
    for (const auto& text : claims.requires_dist) {
      auto requirement = parse_requirement(text);
      if (canonical_name(requirement.name) == "torch") all_.emplace_back(text, requirement);
    }
  }

  // Those for another system, Python or extra do not count.
  std::string why_not(const Cell& cell) {
    auto [known, is_new] = holding_.try_emplace({cell.arch, cell.python});
    if (is_new) {
      const auto environment = linux_environment(PythonBuild(cell.python).version, cell.arch);
      for (const auto& one : all_) {
        if (holds(one.second.marker, environment) == true) known->second.push_back(&one);
      }
    }
    for (const auto* one : known->second) {
      if (!can_fulfil(cell.torch, one->second.specifiers)) return "it requires " + one->first;
    }
    return {};
  }

  // The torch that an exact requirement names; empty: there is none.
  std::string exact() const {
    for (const auto& [text, requirement] : all_) {
      const auto specifiers = parse_specifiers(requirement.specifiers);
      if (!specifiers) continue;
      for (const auto& clause : *specifiers) {
        if (clause.sign == "==" || clause.sign == "===") return clause.bound;
      }
    }
    return {};
  }

 private:
  using Written = std::pair<std::string, Requirement>;
  std::vector<Written> all_;
  std::map<std::pair<std::string, std::string>, std::vector<const Written*>> holding_;
};

// The torch that a wheel bound to its C++ ABI was built for: from a local version (+cu130torch2.15)
// or an exact requirement.
std::string torch_built_for(const WheelClaims& wheel, const TorchRequirements& requirements) {
  const auto local = wheel.version.find('+');
  const auto mark = local == std::string::npos ? local : wheel.version.find("torch", local);
  if (mark == std::string::npos) return requirements.exact();
  const auto end = wheel.version.find_first_not_of("0123456789.", mark + 5);
  return wheel.version.substr(mark + 5, end - mark - 5);
}

std::string why_not_torch(const Item& wheel, const Cell& cell, TorchRequirements& requirements) {
  const auto& torch = wheel.verdicts.torch;
  if (torch.abi == TorchAbi::cxx) {
    const auto built_for = torch_built_for(*wheel.facts.wheel, requirements);
    if (built_for.empty()) return "it is bound to torch's C++ ABI and does not say of which torch";
    if (minor_of(built_for) != minor_of(cell.torch))
      return "it is bound to the C++ ABI of torch " + built_for;
  }
  if (!torch.unknown.empty()) return "no known torch has " + torch.unknown.front();
  if (torch.min && older(cell.torch, *torch.min))
    return "it needs torch " + *torch.min + " for " + torch.symbols.front();
  return requirements.why_not(cell);
}

std::string why_not_without_cuda(const Item& wheel) {
  for (const auto& library : wheel.facts.libraries) {
    for (const auto& name : library.needed) {
      const bool cuda_library = name.starts_with("libtorch_cuda") ||
                                name.starts_with("libc10_cuda") || name.starts_with("libcudart") ||
                                name.starts_with("libcublas");
      if (cuda_library && std::ranges::find(wheel.verdicts.platform.external_libraries, name) !=
                              wheel.verdicts.platform.external_libraries.end()) {
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
  const auto& cuda = wheel.verdicts.cuda;
  if (cuda.sass.empty() && cuda.ptx.empty()) return "it has no device code";
  const auto major = cell.cuda.substr(0, cell.cuda.find('.'));
  if (!cuda.runtime_version)
    return cuda.runtime == CudaRuntime::none ? ""
                                             : "the version of its CUDA runtime cannot be told";
  const auto own = cuda.runtime_version->substr(0, cuda.runtime_version->find('.'));
  if (cuda.runtime == CudaRuntime::dynamic &&
      std::ranges::find(cuda.runtime_choices, major) == cuda.runtime_choices.end())
    return "it needs libcudart.so." + own + "; torch brings CUDA " + cell.cuda;
  // A static runtime stands alone: it needs the driver of its major version, which users of a later
  // CUDA have.
  if (cuda.runtime == CudaRuntime::linked_statically && older(major, own))
    return "its CUDA " + *cuda.runtime_version + " runtime needs a newer driver than CUDA " +
           cell.cuda;
  return {};
}

// Cells are machines with Linux and glibc.
std::string why_not_arch(const Item& wheel, const Cell& cell) {
  std::string reason;
  for (const auto& text : wheel.facts.wheel->file_name_tags) {
    const auto platform = split_tag(text).platform;
    switch (system_of_tag(platform)) {
      case System::any:
        return {};
      case System::glibc:
      case System::linux_any_libc:
        if (architecture_of_tag(platform) == cell.arch) return {};
        reason = "it is not for " + cell.arch;
        break;
      case System::musl:
        if (reason.empty()) reason = "it is for musl, not for glibc";
        break;
      default:
        if (reason.empty()) reason = "it is for another system: " + platform;
    }
  }
  return reason.empty() ? "its name has no tags" : reason;
}

std::string why_not(const Item& wheel, const Cell& cell, TorchRequirements& requirements) {
  if (auto reason = why_not_arch(wheel, cell); !reason.empty()) return reason;
  if (auto reason = why_not_python(wheel, cell); !reason.empty()) return reason;
  if (auto reason = why_not_torch(wheel, cell, requirements); !reason.empty()) return reason;
  return why_not_cuda(wheel, cell);
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
  if (!wheel.facts.wheel) return "it is not a wheel";
  TorchRequirements requirements(*wheel.facts.wheel);
  return why_not(wheel, cell, requirements);
}

std::vector<CellVerdict> cover(const std::vector<Item>& wheels, const std::vector<Cell>& cells) {
  std::vector<TorchRequirements> requirements;
  requirements.reserve(wheels.size());
  for (const auto& wheel : wheels)
    requirements.emplace_back(wheel.facts.wheel ? *wheel.facts.wheel : WheelClaims{});
  std::vector<CellVerdict> verdicts;
  for (const auto& cell : cells) {
    auto& verdict = verdicts.emplace_back(CellVerdict{.cell = cell});
    for (std::size_t i = 0; i < wheels.size(); ++i) {
      const auto& facts = wheels[i].facts;
      auto reason = facts.wheel ? why_not(wheels[i], cell, requirements[i]) : "it is not a wheel";
      if (reason.empty()) {
        verdict.wheel = facts.file;
        break;
      }
      verdict.reasons.emplace_back(facts.file, std::move(reason));
    }
    if (!verdict.wheel.empty()) verdict.reasons.clear();
  }
  return verdicts;
}

}  // namespace wheelscope
