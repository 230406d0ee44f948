// Judges facts by a policy: one function per subject, each a few rules.
#include "findings/findings.h"

#include <algorithm>

#include "packaging/claims.h"
#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

constexpr std::size_t most_letters = 100;  // of a name that a wheel decides

class Checker {
 public:
  Checker(const Item& item, const Policy& policy)
      : item_(item),
        facts_(item.facts),
        verdicts_(item.verdicts),
        policy_(policy),
        findings_(item.findings) {}

  std::vector<Finding> run() {
    if (facts_.wheel) {
      judge_tags(*facts_.wheel);
      judge_variant(*facts_.wheel);
      judge_requirements(*facts_.wheel);
      judge_size();
    }
    judge_platform();
    judge_python();
    judge_torch();
    judge_cuda();
    for (const auto& library : facts_.libraries) judge_library(library);
    apply_levels();
    return std::move(findings_);
  }

 private:
  void report(std::string id, std::string place, std::string what, std::string fix,
              Finding::Level level = Finding::Level::error) {
    // Compressed tags such as py2.py3 would repeat the same finding for each tag.
    if (std::ranges::any_of(findings_, [&](const Finding& one) {
          return one.id == id && one.place == place && one.what == what;
        }))
      return;
    findings_.push_back({.id = std::move(id),
                         .level = level,
                         .place = std::move(place),
                         .what = std::move(what),
                         .fix = std::move(fix)});
  }

  // A variant's claims must be true: for GPUs, it must have the native code that it promises.
  void judge_variant(const WheelClaims& wheel) {
    const bool is_sound = !wheel.variant_file_label.empty();
    if (wheel.has_variant_file && (!is_sound || wheel.variant != wheel.variant_file_label))
      report("variant-label", variant_file,
             "the file name ends in the label '" + wheel.variant + "', and variant.json names " +
                 (is_sound ? "'" + wheel.variant_file_label + "'" : "no sound variant"),
             "rename the wheel, or make the variant again");
    if (!wheel.variant.empty() && !wheel.has_variant_file)
      report("variant-label", {},
             "the file name has a variant's label, and dist-info no variant.json",
             "make the variant again: installers refuse it");
    for (const auto& property : wheel.variant_properties) {
      constexpr std::string_view mark = "nvidia :: sm_arch :: ";
      if (!property.starts_with(mark)) continue;
      const auto value = property.substr(mark.size());
      const auto digits = value.substr(0, value.find('_'));
      for (const auto& gpu : cuda_table().gpus) {
        auto own = gpu.capability;
        std::erase(own, '.');
        if (own == digits) judge_variant_gpu(property, value.ends_with("_real"), gpu.capability);
      }
    }
  }
  void judge_variant_gpu(const std::string& property, bool native, const std::string& gpu) {
    const auto &sass = verdicts_.cuda.sass, &ptx = verdicts_.cuda.ptx;
    const auto served = choose(sass, ptx, gpu).served;
    if (served == Served::native || (served == Served::jit && !native)) return;
    std::vector<std::string> held;
    for (const auto& target : sass) held.push_back(spelled(CodeKind::sass, target));
    for (const auto& target : ptx) held.push_back(spelled(CodeKind::ptx, target));
    report("variant-claim", {},
           "the variant says " + property + ", and has no " + (native ? "native " : "") +
               "code for GPU " + gpu + ": it holds " + (held.empty() ? "none" : joined(held)),
           "thin the original wheel for that GPU: wheelscope thin --gpu " + gpu);
  }

  // The tags' promises must be true.
  void judge_tags(const WheelClaims& wheel) {
    if (!wheel.wheel_file_tags.empty() && !wheel.file_name_tags.empty() &&
        wheel.wheel_file_tags != wheel.file_name_tags) {
      report("tag-mismatch", "",
             "the file name claims " + joined(wheel.file_name_tags) + "; its WHEEL file " +
                 joined(wheel.wheel_file_tags),
             "rename with `wheel tags`, which changes both", Finding::Level::warning);
    }
    std::vector<std::string> judged;
    for (const auto& text : wheel.file_name_tags) {
      const auto tag = split_tag(text);
      judge_python_tag(tag);
      if (std::ranges::any_of(judged, [&](const auto& one) { return is_same(one, tag.platform); }))
        continue;
      judged.push_back(tag.platform);
      judge_platform_tag(tag.platform);
      judge_machine(architecture_of_tag(tag.platform));
    }
    if (!policy_.needed && std::ranges::any_of(wheel.file_name_tags, [](const auto& text) {
          const auto system = system_of_tag(split_tag(text).platform);
          return system == System::glibc || system == System::musl;
        }))
      judge_outside(wheel);
    if (wheel.root_is_purelib && first_host()) {
      report("tag-purelib", "", "WHEEL says Root-Is-Purelib: true, yet the wheel has binaries",
             "build it as a platform wheel", Finding::Level::warning);
    }
  }

  // Two names of one platform, such as manylinux2014 and manylinux_2_17, are judged once.
  static bool is_same(const std::string& a, const std::string& b) {
    return architecture_of_tag(a) == architecture_of_tag(b) &&
           system_of_tag(a) == system_of_tag(b) && !promises_more(a, b) && !promises_more(b, a);
  }

  // A tag promises that the wheel and the platform have every library. Torch with its OpenMP, CUDA
  // and the driver are known to come from elsewhere; another requirement may bring a library too.
  void judge_outside(const WheelClaims& wheel) {
    const bool requires_others = std::ranges::any_of(wheel.requires_dist, [](const auto& text) {
      return parse_requirement(text).marker.find("extra") == std::string::npos;
    });
    const auto& external = verdicts_.platform.external_libraries;
    const bool beside_torch = std::ranges::any_of(external, is_torchs);
    std::vector<std::string> unknown;
    for (const auto& name : external) {
      if (!comes_from_elsewhere(name) && !(beside_torch && name == "libgomp.so.1"))
        unknown.push_back(name);
    }
    if (unknown.empty()) return;
    report("needed", "",
           "needs " + joined(unknown) + ", which neither the wheel nor the platform has" +
               (requires_others ? "; a package that it requires may bring it" : ""),
           "bundle it with `auditwheel repair`, or allow it in a policy: [libraries] needed",
           requires_others ? Finding::Level::warning : Finding::Level::error);
  }
  static bool is_torchs(const std::string& name) {
    return name.starts_with("libtorch") || name.starts_with("libc10");
  }
  static bool comes_from_elsewhere(const std::string& name) {
    return is_torchs(name) || name == "libcuda.so.1" || cuda_libraries().contains(name);
  }

  // A marker that cannot be read must not count as one that never holds.
  void judge_requirements(const WheelClaims& wheel) {
    for (const auto& text : wheel.requires_dist) {
      const auto requirement = parse_requirement(text);
      if (nests_too_deep(requirement.marker))
        report("requirement", "",
               "METADATA requires " + requirement.name.substr(0, most_letters) +
                   " under a marker whose parentheses are nested too deep to be read",
               "write the marker with fewer parentheses");
    }
  }

  // Returns a file for the processor that runs Python: only such files bind a wheel to a platform.
  const LibraryFacts* first_host() const {
    const auto found = std::ranges::find_if(facts_.libraries, [](const LibraryFacts& library) {
      return library.role == Role::host && library.kind != FileKind::broken;
    });
    return found == facts_.libraries.end() ? nullptr : &*found;
  }

  void judge_platform_tag(const std::string& platform) {
    const auto& deserved = verdicts_.platform;
    const auto because =
        deserved.because.empty() ? "see `wheelscope show`" : deserved.because.front();
    const auto* host = first_host();
    if (platform == "any") {
      if (host)
        report("tag-platform", "", "tagged any, yet it has binaries such as " + host->path,
               "build it as a platform wheel");
    } else if (system_of_tag(platform) == System::linux_any_libc && !pypi_takes(platform)) {
      report("tag-platform", "",
             "tagged " + platform + ", which says nothing about the C library: PyPI refuses it" +
                 (host ? "; its binaries deserve " + deserved.tag : std::string()),
             "let `auditwheel repair` choose the tag");
    } else if (host && claims_too_much(platform, deserved)) {
      report("tag-platform", "",
             "tagged " + platform + ", but its binaries deserve " + deserved.tag + ": " + because,
             "build on an older system, or let `auditwheel repair` choose the tag");
    }
  }

  // True for those tags without a C library that PyPI takes: of boards that had no manylinux.
  static bool pypi_takes(const std::string& platform) {
    return platform == "linux_armv6l" || platform == "linux_armv7l";
  }

  void judge_machine(const std::string& architecture) {
    if (architecture.empty()) return;
    for (const auto& library : facts_.libraries) {
      if (library.role == Role::host && library.loadable() && library.machine != architecture) {
        report("tag-machine", library.path,
               "built for " + library.machine + " in a wheel for " + architecture,
               "leave it out, or build the wheel for " + library.machine);
      }
    }
  }

  // Every Python that an installer gives this wheel to must be able to load its modules.
  void judge_python_tag(const Tag& tag) {
    const auto& python = verdicts_.python;
    if (python.abi == PythonAbi::none || !is_linux_or_any(tag.platform)) return;
    const bool cpython = tag.python.starts_with("cp") || tag.python.starts_with("py");
    if (!cpython) return;  // PyPy and GraalPy have C APIs of their own, which nothing here knows
    const auto why = python.because.empty() ? std::string() : ": " + python.because.front();
    if (tag.abi == "abi3t") {
      for (const auto& library : facts_.libraries) {
        if (library.exports_init && !library.exports_slots)
          report("tag-python", library.path,
                 "tagged abi3t, but the module is exported by PyInit_ alone, which that ABI lacks",
                 "export PyModExport_ (PEP 793), or tag it abi3");
      }
    }
    if (python.abi == PythonAbi::version && python.versions.empty()) {
      const auto tagged = "tagged " + tag.python + "-" + tag.abi + ", but its modules ";
      if (const auto other = library_of_another_wheel(); !other.empty())
        report("tag-python", "",
               tagged + "may be bound to one Python" + why + ", unless " + other +
                   " defines it, which is not in the wheel",
               "see whether that library does", Finding::Level::note);
      else
        report("tag-python", "", tagged + "are bound to one Python" + why,
               "build with Py_LIMITED_API, or tag it for that Python");
      return;
    }
    std::vector<std::string> unserved;
    constexpr int first = 6, last = 15;  // the minor versions of Python 3 that are in use
    for (int minor = first; minor <= last; ++minor) {
      for (const auto* suffix : {"", "t"}) {
        const auto version = "3." + std::to_string(minor) + suffix;
        const PythonBuild build(version);
        if (build.free_threaded && (minor < 13 || tag.abi == "none")) continue;
        if (!admits(tag, build) || !can_fulfil(build.version, facts_.wheel->requires_python))
          continue;
        if (serves_python(python, version) != PythonServes::yes) unserved.push_back(version);
      }
    }
    if (unserved.empty()) return;
    // A Python that came after the wheel was made is no fault of its tag.
    const bool only_later =
        python.abi == PythonAbi::version && std::ranges::all_of(unserved, [&](const auto& version) {
          return older(PythonBuild(python.versions.back()).version, PythonBuild(version).version);
        });
    report("tag-python", "",
           "tagged " + tag.python + "-" + tag.abi + ", but its modules do not load in Python " +
               joined(unserved) + why,
           "raise the tag or Requires-Python, or define Py_LIMITED_API to the older version",
           only_later ? Finding::Level::note : Finding::Level::error);
  }

  // Returns a needed library that may define names like Python's: one of bindings, such as
  // PySide's. Python, torch and CUDA are known not to.
  std::string library_of_another_wheel() const {
    for (const auto& name : verdicts_.platform.external_libraries) {
      if (!name.starts_with("libpython") && !comes_from_elsewhere(name)) return name;
    }
    return {};
  }

  void judge_size() {
    if (policy_.size_limit_mb && facts_.size > *policy_.size_limit_mb * 1'000'000) {
      report("size-limit", "",
             "the wheel has " + std::to_string(facts_.size) + " bytes; " +
                 std::to_string(*policy_.size_limit_mb) + " MB are allowed",
             "build for fewer GPU targets, compress device code, strip");
    }
  }

  void judge_platform() {
    if (policy_.highest_platform.empty() || !first_host()) return;
    const auto highest =
        policy_.highest_platform + "_" + architecture_of_tag(verdicts_.platform.tag);
    if (claims_too_much(highest, verdicts_.platform)) {
      report(
          "platform", "",
          "the binaries need " + verdicts_.platform.tag + "; " + policy_.highest_platform +
              " is the newest allowed" +
              (verdicts_.platform.because.empty() ? "" : ": " + verdicts_.platform.because.front()),
          "build on an older system");
    }
  }

  void judge_python() {
    const auto& python = verdicts_.python;
    if (!policy_.python_abi.empty() && !contains(policy_.python_abi, name_of(python.abi))) {
      report("python-abi", "",
             "Python ABI is '" + std::string(name_of(python.abi)) +
                 "'; allowed: " + joined(policy_.python_abi) +
                 (python.because.empty() ? "" : ": " + python.because.front()),
             "keep the Python C API out, or define Py_LIMITED_API");
    }
    if (!policy_.python_min.empty() && python.min && older(policy_.python_min, *python.min)) {
      report("python-min", "",
             "needs Python " + *python.min + "; " + policy_.python_min + " must work",
             "define Py_LIMITED_API to the older version");
    }
  }

  void judge_torch() {
    const auto& torch = verdicts_.torch;
    if (!policy_.torch_abi.empty() && !contains(policy_.torch_abi, name_of(torch.abi))) {
      report("torch-abi", "",
             "torch ABI is '" + std::string(name_of(torch.abi)) +
                 "'; allowed: " + joined(policy_.torch_abi) +
                 (torch.abi == TorchAbi::cxx ? ": needs " + torch.symbols.front() : ""),
             "use torch/csrc/stable and define TORCH_TARGET_VERSION");
    }
    if (!policy_.torch_min.empty() && torch.min && older(policy_.torch_min, *torch.min)) {
      report("torch-min", "",
             "needs torch " + *torch.min + " for " + torch.symbols.front() + "; " +
                 policy_.torch_min + " must work",
             "lower TORCH_TARGET_VERSION, or make the symbol weak and check it");
    }
    for (const auto& symbol : torch.unknown) {
      report("torch-symbol", "", "no torch that we know has " + symbol,
             "check the name, or renew wheelscope's table of torch's symbols");
    }
  }

  void judge_cuda() {
    const auto& cuda = verdicts_.cuda;
    const bool has_code = !cuda.sass.empty() || !cuda.ptx.empty();
    const bool wanted = !policy_.sass.empty() || policy_.ptx;
    // A wheel may leave its kernels to a compiler or to another wheel. If it links torch and not
    // CUDA, a build without a visible GPU is more likely.
    const bool left_out = facts_.wheel && facts_.wheel->claims_cuda &&
                          verdicts_.torch.abi != TorchAbi::none &&
                          cuda.runtime == CudaRuntime::none;
    if (!has_code && (wanted || left_out)) {
      report("cuda-code", "",
             "has no device code" + std::string(left_out ? ", yet claims CUDA" : ""),
             "build with CUDA switched on: some build scripts leave it out where they see no GPU");
      return;
    }
    std::vector<std::string> missing;
    std::ranges::copy_if(policy_.sass, std::back_inserter(missing),
                         [&](const auto& target) { return !contains(cuda.sass, target); });
    if (!missing.empty())
      report("cuda-sass", "", "no SASS for " + joined(missing),
             "add the targets to TORCH_CUDA_ARCH_LIST");
    const bool lasting = std::ranges::any_of(cuda.ptx, [](const std::string& target) {
      return !target.ends_with('a') && !target.ends_with('f');
    });
    if (policy_.ptx && !lasting)
      report("cuda-ptx", "", "no PTX that later GPUs can compile", "add +PTX to the last target");
    if (!policy_.cuda_runtime.empty() && !contains(policy_.cuda_runtime, name_of(cuda.runtime))) {
      report("cuda-runtime", "",
             "CUDA runtime is '" + std::string(name_of(cuda.runtime)) +
                 "'; allowed: " + joined(policy_.cuda_runtime),
             "link with -cudart static");
    }
    if (policy_.driver.empty() || !has_code) return;
    if (!cuda.min_driver)
      report("cuda-driver", "",
             "the oldest driver cannot be told; " + policy_.driver + " must work",
             "see the evidence in `wheelscope show`");
    else if (older(policy_.driver, *cuda.min_driver))
      report("cuda-driver", "",
             "needs driver " + *cuda.min_driver + "; " + policy_.driver + " must work",
             "build with an older CUDA major version");
  }

  void judge_library(const LibraryFacts& library) {
    if (!library.loadable()) return;
    judge_dependencies(library);
    const auto& hard = library.hardening;
    auto demand = [&](bool fine, const char* what, const char* fix) {
      if (!fine) report("hardening", library.path, what, fix);
    };
    demand(policy_.relro.empty() || name_of(hard.relro) == policy_.relro ||
               hard.relro == ElfHardening::Relro::full,
           "RELRO is not what the policy asks for", "link with -Wl,-z,relro,-z,now");
    demand(!policy_.bind_now || hard.bind_now, "symbols are bound lazily", "link with -Wl,-z,now");
    demand(!policy_.nx || hard.nx, "the stack is executable", "link with -Wl,-z,noexecstack");
    demand(!policy_.stack_protector || hard.stack_protector, "no stack protector",
           "compile with -fstack-protector-strong");
    demand(!hard.text_relocations, "has text relocations", "compile with -fPIC");
    if (!policy_.debug_info && !library.debug_sections.empty()) {
      report("debug-info", library.path, "has debug sections: " + joined(library.debug_sections),
             "strip it, or build without -g");
    }
    for (const auto& path : library.build_paths) {
      report("build-path", library.path, "holds a path of the build machine: " + path,
             "compile with -ffile-prefix-map");
    }
  }

  void judge_dependencies(const LibraryFacts& library) {
    if (policy_.needed) {
      for (const auto& name : library.needed) {
        if (contains(verdicts_.platform.external_libraries, name) &&
            !contains(*policy_.needed, name)) {
          report(
              "needed", library.path,
              "needs " + name + ", which neither the wheel nor the platform has",
              "bundle it with `auditwheel repair`, link it statically, or allow it in the policy");
        }
      }
    }
    if (!policy_.rpath) return;
    for (const auto& paths : {library.rpath, library.runpath}) {
      for (std::string_view rest = paths; !rest.empty();) {
        const auto entry = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
        const bool allowed = std::ranges::any_of(
            *policy_.rpath, [&](const std::string& start) { return entry.starts_with(start); });
        if (!allowed)
          report("rpath", library.path, "searches '" + std::string(entry) + "' for libraries",
                 "drop it with `patchelf --remove-rpath`");
      }
    }
  }

  void apply_levels() {
    std::erase_if(findings_, [&](Finding& finding) {
      const auto found = policy_.levels.find(finding.id);
      if (found == policy_.levels.end()) return false;
      finding.level = found->second == "error"     ? Finding::Level::error
                      : found->second == "warning" ? Finding::Level::warning
                                                   : Finding::Level::note;
      return found->second == "off";
    });
  }

  const Item& item_;
  const Facts& facts_;
  const Verdicts& verdicts_;
  const Policy& policy_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check(const Item& item, const Policy& policy) {
  return Checker(item, policy).run();
}

}  // namespace wheelscope
