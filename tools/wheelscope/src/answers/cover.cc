// Judges a wheel for one user, and decides for each cell of a matrix which wheel pip would take and
// whether that wheel would work.
#include "answers/cover.h"

#include <algorithm>
#include <set>

#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "tables/toml.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

// Returns the torch that a wheel on torch's C++ ABI was built for: from a local version
// (+cu130torch2.15) or an exact requirement.
std::string torch_built_for(const WheelClaims& wheel, const TorchRequirements& requirements) {
  const auto local = wheel.version.find('+');
  const auto mark = local == std::string::npos ? local : wheel.version.find("torch", local);
  if (mark == std::string::npos) return requirements.exact();
  const auto end = wheel.version.find_first_not_of("0123456789.", mark + 5);
  return wheel.version.substr(mark + 5, end - mark - 5);
}

// Returns the symbols of torch that a library needs. Facts read for the loader have all symbols
// instead.
std::vector<std::string_view> needed_from_torch(const LibraryFacts& library) {
  std::vector<std::string_view> names;
  for (const auto& [symbol, needed] : library.torch_symbols) {
    if (needed) names.push_back(symbol);
  }
  if (!names.empty()) return names;
  for (const auto& symbol : library.symbols) {
    if (!symbol.defined && !symbol.weak && is_torch_symbol(symbol.name))
      names.push_back(symbol.name);
  }
  return names;
}

Reason why_not_cuda(const Item& wheel, const Cell& cell) {
  if (cell.cuda == "cpu") return why_not_without_cuda(wheel);
  const auto& cuda = wheel.verdicts.cuda;
  if (cuda.sass.empty() && cuda.ptx.empty()) return {.why = Why::no_device_code};
  return why_not_runtime(wheel, cell);
}

Reason why_not(const Item& wheel, const Cell& cell, TorchRequirements& requirements) {
  if (auto reason = why_not_arch(wheel, cell)) return reason;
  if (auto reason = why_not_python(wheel, cell)) return reason;
  if (auto reason = why_not_torch(wheel, cell, requirements)) return reason;
  return why_not_cuda(wheel, cell);
}

}  // namespace

Cell cell_of(const MachineFacts& machine) {
  Cell cell{.arch = machine.architecture};
  if (machine.python)
    cell.python = machine.python->minor() + (machine.python->free_threaded() ? "t" : "");
  if (machine.torch) {
    cell.torch = machine.torch->version.substr(0, machine.torch->version.find('+'));
    cell.cuda = machine.torch->cuda.empty() ? "cpu" : machine.torch->cuda;
  }
  return cell;
}

std::string without_digits(std::string path) {
  std::erase_if(path, is_digit);
  return path;
}

const LibraryFacts* of_either_layout(const std::vector<const LibraryFacts*>& libraries, Cell cell,
                                     TorchRequirements& requirements) {
  constexpr std::string_view moved = "2.13";
  cell.torch = older(minor_of(cell.torch), moved) ? moved : "2.12";
  if (requirements.why_not(cell)) return nullptr;
  std::set<std::string_view> inside;
  std::map<std::string, int> families;
  for (const auto* library : libraries) {
    ++families[without_digits(library->path)];
    for (const auto& symbol : library->symbols) {
      if (symbol.defined) inside.insert(symbol.name);
    }
  }
  for (const auto* library : libraries) {
    bool has_tensors = false, tells = families[without_digits(library->path)] > 1;
    for (const auto symbol : needed_from_torch(*library)) {
      if (inside.contains(symbol) || is_torch_shim(symbol)) continue;
      has_tensors |= symbol.find("Tensor") != symbol.npos;
      const auto known = torch_symbols().find(symbol);
      if (known == torch_symbols().end()) continue;
      const auto& [first, last] = known->second;
      tells |= !older(first, moved) || (!last.empty() && older(last, moved));
    }
    if (has_tensors && !tells) return library;
  }
  return nullptr;
}

TorchRequirements::TorchRequirements(const WheelClaims& claims) {
  for (const auto& text : claims.requires_dist) {
    auto requirement = parse_requirement(text);
    if (canonical_name(requirement.name) == "torch") all_.push_back(std::move(requirement));
  }
}

Reason TorchRequirements::why_not(const Cell& cell) {
  auto [known, is_new] = holding_.try_emplace({cell.arch, cell.python});
  if (is_new) {
    const auto environment = linux_environment(PythonBuild(cell.python).version, cell.arch);
    for (const auto& one : all_) {
      if (holds(one.marker, environment) == true) known->second.push_back(&one);
    }
  }
  for (const auto* one : known->second) {
    if (!can_fulfil(cell.torch, one->specifiers))
      return {.why = Why::torch_required, .what = one->text};
  }
  return {};
}

std::string TorchRequirements::exact() const {
  for (const auto& requirement : all_) {
    const auto specifiers = parse_specifiers(requirement.specifiers);
    if (!specifiers) continue;
    for (const auto& clause : *specifiers) {
      if (clause.sign == "==" || clause.sign == "===") return clause.bound;
    }
  }
  return {};
}

Reason why_not_python(const Item& wheel, const Cell& cell) {
  const PythonBuild python(cell.python);
  const auto& claims = *wheel.facts.wheel;
  bool admitted = false, by_own_abi = false;
  for (const auto& text : claims.file_name_tags) {
    const auto tag = split_tag(text);
    if (!admits(tag, python)) continue;
    admitted = true;
    by_own_abi |= tag.abi.starts_with("cp") || tag.abi == "abi3t";
  }
  if (!admitted) return {.why = Why::python_tag, .here = cell.python};
  if (!can_fulfil(python.version, claims.requires_python))
    return {.why = Why::python_required, .what = claims.requires_python};
  const auto& verdict = wheel.verdicts.python;
  if (verdict.abi == PythonAbi::abi3 && python.free_threaded && !by_own_abi)
    return {.why = Why::python_gil};
  switch (serves_python(verdict, cell.python)) {
    case PythonServes::yes:
      return {};
    case PythonServes::not_said:
      return {.why = Why::python_unnamed};
    case PythonServes::is_another:
      return {.why = Why::python_built, .version = joined(verdict.versions)};
    case PythonServes::is_older:
      // A function may join the limited API after it joined Python; a wheel for one Python was
      // built with that one.
      if (by_own_abi && verdict.abi == PythonAbi::abi3) return {};
      break;
  }
  return {.why = verdict.needs_slots ? Why::python_slots : Why::python_symbol,
          .who = verdict.newest_symbol,
          .version = *verdict.min};
}

Reason why_not_torch(const Item& wheel, const Cell& cell, TorchRequirements& requirements) {
  const auto& torch = wheel.verdicts.torch;
  if (torch.abi == TorchAbi::cxx) {
    const auto built_for = torch_built_for(*wheel.facts.wheel, requirements);
    if (built_for.empty()) return {.why = Why::torch_unsaid, .here = cell.torch};
    if (minor_of(built_for) != minor_of(cell.torch))
      return {.why = Why::torch_built, .version = built_for};
  }
  if (!torch.unknown.empty())
    return {.why = Why::torch_symbol_unknown, .what = torch.unknown.front()};
  if (torch.min && older(cell.torch, *torch.min))
    return {.why = Why::torch_older, .what = torch.symbols.front(), .version = *torch.min};
  return requirements.why_not(cell);
}

Reason why_not_without_cuda(const Item& wheel) {
  for (const auto& library : wheel.facts.libraries) {
    for (const auto& name : library.needed) {
      const bool cuda_library = name.starts_with("libtorch_cuda") ||
                                name.starts_with("libc10_cuda") || name.starts_with("libcudart") ||
                                name.starts_with("libcublas");
      if (cuda_library && contains(wheel.verdicts.platform.external_libraries, name)) {
        return {.why = Why::cpu_torch, .who = library.path, .what = name};
      }
    }
    for (const auto& [symbol, needed] : library.torch_symbols) {
      const auto shim = torch_shims().find(symbol);
      if (needed && shim != torch_shims().end() && shim->second.library == "libtorch_cuda.so")
        return {.why = Why::cpu_torch, .who = library.path, .what = symbol};
    }
  }
  return {};
}

Reason why_not_runtime(const Item& wheel, const Cell& cell) {
  const auto& cuda = wheel.verdicts.cuda;
  const auto major = major_of(cell.cuda);
  if (!cuda.runtime_version)
    return {.why = cuda.runtime == CudaRuntime::none ? Why::none : Why::runtime_unknown};
  const auto own = major_of(*cuda.runtime_version);
  if (cuda.runtime == CudaRuntime::dynamic && !contains(cuda.runtime_choices, major))
    return {.why = Why::runtime_other, .version = own, .here = cell.cuda};
  // A static runtime stands alone: it needs the driver of its major version, which users of a later
  // CUDA have.
  if (cuda.runtime == CudaRuntime::linked_statically && older(major, own))
    return {.why = Why::runtime_driver, .version = *cuda.runtime_version, .here = cell.cuda};
  return {};
}

Reason why_not_arch(const Item& wheel, const Cell& cell) {
  Reason reason{.why = Why::no_tags};
  for (const auto& text : wheel.facts.wheel->file_name_tags) {
    const auto platform = split_tag(text).platform;
    switch (system_of_tag(platform)) {
      case System::any:
        return {};
      case System::glibc:
      case System::linux_any_libc:
        if (architecture_of_tag(platform) == cell.arch) return {};
        reason = {.why = Why::other_machine, .here = cell.arch};
        break;
      case System::musl:
        if (reason.why == Why::no_tags) reason = {.why = Why::musl};
        break;
      default:
        if (reason.why == Why::no_tags) reason = {.why = Why::other_system, .what = platform};
    }
  }
  return reason;
}

Why why_not_numpy(const NumpyApi& api, const std::string& version) {
  if (version.empty()) return Why::numpy_absent;
  const bool is_one = older(version, "2");
  if (!is_one && !api.two) return Why::numpy_one;
  if (is_one && !api.one) return Why::numpy_two;
  return !api.min.empty() && older(version, api.min) ? Why::numpy_older : Why::none;
}

Result<std::vector<Cell>> parse_matrix(std::string_view text) {
  const auto root = TRY(parse_toml(text));
  const auto* arches = root["arch"].as_table();
  const auto* torches = root["torch"].as_table();
  if (!arches || !torches) return fail(0, "a matrix has [arch.NAME] and [torch.\"X.Y\"] tables");
  std::vector<std::string> versions;
  for (const auto& [version, facts] : *torches) versions.emplace_back(version.str());
  std::ranges::sort(versions, older);
  std::vector<Cell> cells;
  for (const auto& [arch, ignored] : *arches) {
    for (const auto& version : versions) {
      const auto torch = (*torches)[version];
      const auto *builds = torch["cuda"].as_array(), *pythons = torch["pythons"].as_array();
      if (!builds || !pythons)
        return fail(0, "[torch.\"" + version + "\"] needs the lists `cuda` and `pythons`");
      for (const auto& cuda : *builds) {
        for (const auto& python : *pythons) {
          cells.push_back({std::string(arch.str()), version, cuda.value_or<std::string>("?"),
                           python.value_or<std::string>("?")});
        }
      }
    }
  }
  return cells;
}

Reason why_not(const Item& wheel, const Cell& cell) {
  if (!wheel.facts.wheel) return {.why = Why::not_a_wheel};
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
      auto reason =
          facts.wheel ? why_not(wheels[i], cell, requirements[i]) : Reason{.why = Why::not_a_wheel};
      if (!reason) {
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
