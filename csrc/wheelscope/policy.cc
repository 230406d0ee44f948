// Judges facts by a policy: one function per subject, each a few rules.
#include "policy.h"

#include <algorithm>

#include "claims.h"
#include "cuda.h"
#include "platform.h"
#include "version.h"

namespace wheelscope {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

bool contains(const std::vector<std::string>& list, const std::string& value) {
  return std::ranges::find(list, value) != list.end();
}

class Judge {
 public:
  Judge(const Item& item, const Policy& policy)
      : item_(item), policy_(policy), findings_(item.findings) {}

  std::vector<Finding> run() {
    if (item_.wheel) {
      judge_tags(*item_.wheel);
      judge_size();
    }
    judge_platform();
    judge_python();
    judge_torch();
    judge_cuda();
    for (const auto& library : item_.libraries) judge_library(library);
    apply_levels();
    return std::move(findings_);
  }

 private:
  void report(std::string id, std::string place, std::string what, std::string fix,
              Finding::Level level = Finding::Level::error) {
    findings_.push_back({.id = std::move(id),
                         .level = level,
                         .place = std::move(place),
                         .what = std::move(what),
                         .fix = std::move(fix)});
  }

  // What the tags promise must be true.
  void judge_tags(const WheelClaims& wheel) {
    if (!wheel.wheel_file_tags.empty() && !wheel.file_name_tags.empty() &&
        wheel.wheel_file_tags != wheel.file_name_tags) {
      report("tag-mismatch", "",
             "the file name claims " + joined(wheel.file_name_tags) + "; its WHEEL file " +
                 joined(wheel.wheel_file_tags),
             "rename with `wheel tags`, which changes both");
    }
    for (const auto& text : wheel.file_name_tags) {
      const auto tag = split_tag(text);
      const auto architecture = architecture_of_tag(tag.platform);
      if (tag.platform == "any" && !item_.libraries.empty()) {
        report("tag-platform", "",
               "tagged any, yet it has binaries such as " + item_.libraries.front().path,
               "build it as a platform wheel");
      } else if (promises_more(tag.platform, item_.platform.tag)) {
        report("tag-platform", "",
               "tagged " + tag.platform + ", but its binaries deserve " + item_.platform.tag +
                   ": " +
                   (item_.platform.because.empty() ? "see `wheelscope show`"
                                                   : item_.platform.because.front()),
               "build on an older system, or let `auditwheel repair` choose the tag");
      }
      for (const auto& library : item_.libraries) {
        if (!architecture.empty() && library.machine != architecture && library.kind != "cubin" &&
            library.kind != "broken") {
          report("tag-machine", library.path,
                 "built for " + library.machine + " in a wheel for " + architecture,
                 "leave it out, or build the wheel for " + library.machine);
        }
      }
      judge_python_tag(tag);
    }
    if (wheel.root_is_purelib && !item_.libraries.empty()) {
      report("tag-purelib", "", "WHEEL says Root-Is-Purelib: true, yet the wheel has binaries",
             "build it as a platform wheel", Finding::Level::warning);
    }
  }

  void judge_python_tag(const Tag& tag) {
    const auto& python = item_.python;
    const auto why = python.because.empty() ? std::string() : ": " + python.because.front();
    if (python.kind == "version" && (tag.abi == "abi3" || tag.abi == "none")) {
      report("tag-python", "",
             "tagged " + tag.python + "-" + tag.abi + ", but its modules are bound to one Python" +
                 why,
             "build with Py_LIMITED_API, or tag it for that Python");
    }
    if (python.kind == "abi3" && python.min && tag.abi == "abi3" &&
        older(python_version_of_tag(tag.python.substr(2)), *python.min)) {
      report("tag-python", "",
             "tagged for Python " + python_version_of_tag(tag.python.substr(2)) + ", but needs " +
                 *python.min + why,
             "raise the tag, or define Py_LIMITED_API to the older version");
    }
  }

  void judge_size() {
    if (policy_.size_limit_mb && item_.size > *policy_.size_limit_mb * 1'000'000) {
      report("size-limit", "",
             "the wheel has " + std::to_string(item_.size) + " bytes; " +
                 std::to_string(*policy_.size_limit_mb) + " MB are allowed",
             "build for fewer GPU targets, compress device code, strip");
    }
  }

  void judge_platform() {
    if (policy_.highest_platform.empty() || item_.libraries.empty()) return;
    const auto highest = policy_.highest_platform + "_" + architecture_of_tag(item_.platform.tag);
    if (promises_more(highest, item_.platform.tag)) {
      report("platform", "",
             "the binaries need " + item_.platform.tag + "; " + policy_.highest_platform +
                 " is the newest allowed" +
                 (item_.platform.because.empty() ? "" : ": " + item_.platform.because.front()),
             "build on an older system");
    }
  }

  void judge_python() {
    const auto& python = item_.python;
    if (!policy_.python_abi.empty() && !contains(policy_.python_abi, python.kind)) {
      report("python-abi", "",
             "Python ABI is '" + python.kind + "'; allowed: " + joined(policy_.python_abi) +
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
    const auto& torch = item_.torch;
    if (!policy_.torch_abi.empty() && !contains(policy_.torch_abi, torch.kind)) {
      report("torch-abi", "",
             "torch ABI is '" + torch.kind + "'; allowed: " + joined(policy_.torch_abi) +
                 (torch.kind == "cxx" ? ": needs " + torch.symbols.front() : ""),
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
    const auto& cuda = item_.cuda;
    const bool has_code = !cuda.sass.empty() || !cuda.ptx.empty();
    const bool wanted = !policy_.sass.empty() || policy_.ptx;
    if (!has_code && (wanted || (item_.wheel && item_.wheel->claims_cuda))) {
      report("cuda-code", "",
             "has no device code" +
                 std::string(item_.wheel && item_.wheel->claims_cuda ? ", yet claims CUDA" : ""),
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
    if (!policy_.cuda_runtime.empty() && !contains(policy_.cuda_runtime, cuda.runtime)) {
      report("cuda-runtime", "",
             "CUDA runtime is '" + cuda.runtime + "'; allowed: " + joined(policy_.cuda_runtime),
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
    if (library.kind != "shared" && library.kind != "executable") return;
    judge_dependencies(library);
    const auto& hard = library.hardening;
    auto demand = [&](bool fine, const char* what, const char* fix) {
      if (!fine) report("hardening", library.path, what, fix);
    };
    demand(policy_.relro.empty() || hard.relro == policy_.relro || hard.relro == "full",
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
        if (contains(item_.platform.external_libraries, name) && !contains(*policy_.needed, name)) {
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
  const Policy& policy_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> judge(const Item& item, const Policy& policy) {
  return Judge(item, policy).run();
}

}  // namespace wheelscope
