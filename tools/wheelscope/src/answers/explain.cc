// Builds the answer from a message's entry: its sentences, and the machine's answers to its
// questions. Those on libraries are in explain_symbol.cc and explain_library.cc.
#include "answers/explain.h"

#include <algorithm>
#include <optional>
#include <set>

#include "packaging/claims.h"
#include "packaging/requirement.h"
#include "packaging/tag.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

// Returns 12.0 for sm_120.
std::string capability_of(std::string_view target) {
  if (target.starts_with("sm_")) target.remove_prefix(3);
  if (target.find('.') != target.npos) return std::string(target);
  target = target.substr(0, target.find_first_not_of("0123456789"));
  if (target.size() < 2) return {};
  return std::string(target.substr(0, target.size() - 1)) + "." + target.back();
}

// Returns 12.2 for 12020, the form of cudaDriverGetVersion.
std::string cuda_of_number(std::string_view digits) {
  digits = digits.substr(0, digits.find_first_not_of("0123456789"));
  if (digits.size() < 4 || digits.size() > 6) return {};
  const int number = std::stoi(std::string(digits));
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

void ask_driver(const Asked& asked, Explanation& explanation) {
  if (asked.machine && !asked.machine->driver.empty())
    explanation.say("the driver here is " + asked.machine->driver);
}

// For messages that say themselves that there is none: others come from a machine that has one.
void ask_no_driver(const Asked& asked, Explanation& explanation) {
  if (asked.machine && asked.machine->driver.empty())
    explanation.say("there is no NVIDIA driver on this machine");
  ask_driver(asked, explanation);
}

void ask_torch(const Asked& asked, Explanation& explanation) {
  if (!asked.machine || !asked.machine->torch) return;
  const auto& torch = *asked.machine->torch;
  explanation.say("torch " + torch.version + " here is " +
                  (!torch.rocm.empty()  ? "built for ROCm " + torch.rocm
                   : torch.cuda.empty() ? "a build without CUDA"
                                        : "built for CUDA " + torch.cuda));
}

// True if the text comes from another Python than the one here, or there is none.
bool is_of_another_python(const Asked& asked, const Symptom& symptom) {
  const auto theirs = symptom.part("its_python");
  return !theirs.empty() && !(asked.machine && asked.machine->python &&
                              minor_of(asked.machine->python->version) == theirs);
}

void ask_python(const Asked& asked, Explanation& explanation) {
  if (is_of_another_python(asked, explanation.symptom))
    explanation.say("the message is of Python " + explanation.symptom.part("its_python"));
  else if (asked.machine && asked.machine->python && !asked.assumed)
    explanation.say("Python here is " + asked.machine->python->version + " (" +
                    asked.machine->python->abi + ")");
}

void ask_libc(const Asked& asked, Explanation& explanation) {
  if (asked.machine && !asked.assumed && !asked.machine->libc.empty())
    explanation.say("the C library here is " + asked.machine->libc + " " +
                    asked.machine->libc_version);
}

void ask_processor(const Asked& asked, Explanation& explanation) {
  if (asked.machine && !asked.assumed)
    explanation.say("Python here is for " + asked.machine->architecture);
}

// Tells which drivers torch's CUDA, or each CUDA, needs.
void ask_cuda(const Asked& asked, Explanation& explanation) {
  auto& symptom = explanation.symptom;
  if (const auto cuda = cuda_of_number(symptom.part("number")); !cuda.empty())
    symptom.set("cuda", cuda);
  if (const auto cuda = symptom.part("cuda"); !cuda.empty()) {
    explanation.say("the driver is for CUDA " + cuda);
    if (older(cuda, "7.5"))
      explanation.say("no torch was ever built for a CUDA that old");
    else
      explanation.advise("or take builds of torch and of its extensions for CUDA " +
                         (older(cuda, "11") ? cuda + " or older" : major_of(cuda)));
  }
  ask_driver(asked, explanation);
  const auto* machine = asked.machine;
  const auto runtime = machine && machine->torch ? machine->torch->cuda : std::string();
  for (const auto& [major, driver] : cuda_table().drivers) {
    if (runtime.empty() || major == major_of(runtime))
      explanation.say("CUDA " + major + " needs driver " + driver + " or newer");
  }
  if (!runtime.empty()) ask_torch(asked, explanation);
}

void explain_gpu(const std::string& capability, const std::vector<std::string>& supported,
                 Explanation& explanation) {
  const auto& gpus = cuda_table().gpus;
  const auto gpu = std::ranges::find(gpus, capability, &CudaTable::Gpu::capability);
  if (gpu != gpus.end())
    explanation.say("compute capability " + capability + ": " + gpu->name +
                    "; the first driver that knows it is " + gpu->driver);
  if (supported.empty()) return;
  const auto serving = std::ranges::find_if(
      supported, [&](const auto& target) { return sass_serves(target, capability); });
  explanation.say(serving == supported.end()
                      ? "this torch has code for sm_" + joined(supported, ", sm_") +
                            ", and none of it runs on " + capability
                      : "torch's own sm_" + *serving + " runs on " + capability +
                            ": it is another library that lacks it");
}

void ask_gpu(const Asked& asked, Explanation& explanation) {
  std::vector<std::string> capabilities, supported;
  for (const auto& word : split(explanation.symptom.part("supported"), ' ')) {
    if (word.starts_with("sm_")) supported.push_back(word.substr(3, word.find(',') - 3));
  }
  if (auto told = capability_of(explanation.symptom.part("capability")); !told.empty()) {
    capabilities.push_back(std::move(told));
  } else if (asked.machine) {
    for (const auto& gpu : asked.machine->gpus) {
      if (!gpu.capability.empty() && !contains(capabilities, gpu.capability))
        capabilities.push_back(gpu.capability);
    }
  }
  for (const auto& capability : capabilities) explain_gpu(capability, supported, explanation);
  if (!capabilities.empty())
    explanation.advise("or build the package here with TORCH_CUDA_ARCH_LIST=\"" +
                       joined(capabilities, ";") + "\"");
}

void ask_ptx(const Asked& asked, Explanation& explanation) {
  const auto& drivers = cuda_table().ptx_drivers;
  if (const auto wanted = drivers.find(explanation.symptom.part("ptx")); wanted != drivers.end())
    explanation.say("PTX " + wanted->first + " needs driver " + wanted->second + " or newer");
  if (!asked.machine || asked.machine->driver.empty()) return;
  std::string newest;
  for (const auto& [isa, driver] : cuda_table().ptx_drivers) {
    if (!older(asked.machine->driver, driver) && older(newest, isa)) newest = isa;
  }
  if (!newest.empty())
    explanation.say("driver " + asked.machine->driver + " compiles PTX up to version " + newest);
}

// Returns "CPython 3.10 alone" or "CPython 3.8 or newer".
std::string python_in_words(const Tag& tag) {
  if (tag.python.starts_with("py") && tag.python.size() > 2)
    return "Python " + tag.python.substr(2);
  if (!tag.python.starts_with("cp")) return tag.python;
  return "CPython " + python_version_of_tag(std::string_view(tag.python).substr(2)) +
         (tag.abi.starts_with("abi3") ? " or newer" : " alone") +
         (tag.abi.ends_with("t") && tag.abi.starts_with("cp") ? ", free-threaded" : "");
}

// Returns a text such as "Linux on x86_64 with glibc 2.28 or newer".
std::string system_in_words(const std::string& platform) {
  const auto system = system_of_tag(platform);
  const auto libc = libc_version_of_tag(platform);
  if (system == System::any) return "any system";
  if (system != System::other && architecture_of_tag(platform).empty() &&
      platform.starts_with("linux_"))
    return "Linux on " + platform.substr(6) + ", which is no processor that pip knows";
  if (system == System::glibc || system == System::musl)
    return "Linux on " + architecture_of_tag(platform) +
           (system == System::glibc ? " with glibc " : " with musl (Alpine) ") + libc + " or newer";
  if (system == System::linux_any_libc) return "Linux on " + architecture_of_tag(platform);
  if (platform == "win_amd64") return "Windows with a 64-bit Python";
  if (platform == "win32") return "Windows with a 32-bit Python";
  const auto parts = split(platform, '_');
  if (parts.size() > 3 && parts[0] == "macosx")
    return "macOS " + parts[1] + "." + parts[2] + " or newer on " +
           platform.substr(parts[0].size() + parts[1].size() + parts[2].size() + 3);
  return platform;
}

// Compares the pip that printed the message (part its_pip) with the first one that knows a file's
// tags: sets the part newer_pip if that is newer.
void ask_old_pip(const std::vector<std::string>& tags, Symptom& symptom) {
  static constexpr std::pair<std::string_view, const char*> since[] = {{"manylinux2010_", "19.0"},
                                                                       {"manylinux2014_", "19.3"},
                                                                       {"manylinux_2_", "20.3"},
                                                                       {"musllinux_", "21.3"}};
  const auto pip = symptom.part("its_pip");
  if (pip.empty()) return;
  for (const auto& [platform, first] : since) {
    if (older(pip, first) && std::ranges::all_of(tags, [&](const auto& tag) {
          return split_tag(tag).platform.starts_with(platform);
        }))
      symptom.set("newer_pip", first);
  }
}

// Tells which tags the name of a wheel has, and which the Python here takes.
void ask_wheel(const Asked& asked, Explanation& explanation) {
  const auto file = base_name(explanation.symptom.part("wheel"));
  for (const auto* end : {"-x86_64.whl", "-aarch64.whl", "-arm64.whl", "-amd64.whl", "-i686.whl"}) {
    if (!file.ends_with(end)) continue;
    explanation.say(
        "its name is no wheel's: the parts of a platform are joined by underscores, not "
        "by a hyphen as here; give the file its name back (linux_x86_64, for one)");
    return;
  }
  const auto claims = parse_wheel_name(file);
  if (!claims) {
    explanation.say(
        "its name is no wheel's: NAME-VERSION-PYTHON-ABI-PLATFORM.whl; a file that was renamed "
        "gets its name back");
    return;
  }
  std::vector<std::string> pythons, systems;
  auto add = [](std::vector<std::string>& list, const std::string& words) {
    if (!contains(list, words)) list.push_back(words);
  };
  for (const auto& text : claims->file_name_tags) {
    const auto tag = split_tag(text);
    add(pythons, python_in_words(tag));
    // If a name has both manylinux2014 and manylinux_2_28, the older one counts.
    if (std::ranges::none_of(claims->file_name_tags, [&](const auto& other) {
          return promises_more(split_tag(other).platform, tag.platform);
        }))
      add(systems, system_in_words(tag.platform));
  }
  explanation.say("the file is for " + joined(pythons, " or ") + ", and for " +
                  joined(systems, " or "));
  if (contains(claims->file_name_tags, std::string("py3-none-any"))) {
    explanation.symptom.set("python3", file);
  }
  ask_old_pip(claims->file_name_tags, explanation.symptom);
  const auto* python = asked.machine && asked.machine->python ? &*asked.machine->python : nullptr;
  if (!python || python->tags.empty() || is_of_another_python(asked, explanation.symptom)) return;
  const bool taken = std::ranges::any_of(
      claims->file_name_tags, [&](const auto& tag) { return contains(python->tags, tag); });
  explanation.say(taken ? "the Python here, " + python->version +
                              ", takes it: the message is of another one"
                        : "the Python here, " + python->version + ", takes " +
                              python->tags.front() + " and older ones");
}

// The versions of the packages that the message or its entry names (`packages`, or one `package`).
void ask_packages(const Asked& asked, Explanation& explanation) {
  for (const auto& name : split(explanation.symptom.part("packages"), ' ')) {
    const auto found = std::ranges::find(asked.installed, name, &Distribution::name);
    if (found != asked.installed.end())
      explanation.say(name + " " + found->version + " is installed here");
  }
}

// Whether a package that says what it was built for (parts built, built_cuda, built_python) is
// where it belongs (parts torch, python). Sets the part of what differs: other_torch, other_cuda,
// other_python; none: nothing does.
void ask_built_for(const Asked& asked, Explanation& explanation) {
  auto& symptom = explanation.symptom;
  const auto built = symptom.part("built"), cuda = symptom.part("built_cuda");
  const auto python = minor_of(symptom.part("built_python"));
  auto here = symptom.part("torch");
  if (here.empty() && asked.machine && asked.machine->torch) here = asked.machine->torch->version;
  auto release = [](const std::string& version) { return version.substr(0, version.find('+')); };
  if (built.empty() || here.empty()) return;
  if (!python.empty() && python != minor_of(symptom.part("python"))) {
    symptom.set("other_python", python);
    explanation.say("it was built for Python " + python + ", and this one is " +
                    minor_of(symptom.part("python")));
  }
  if (release(built) != release(here)) {
    symptom.set("other_torch", built);
    explanation.say("torch " + release(built) + " and " + release(here) +
                    " differ: its compiled files belong to " + release(built));
  } else if (built != here && built.contains('+') && here.contains('+')) {
    symptom.set("other_cuda", built.substr(built.find('+') + 1));
    explanation.say("the release is the same, the CUDA differs: " +
                    built.substr(built.find('+') + 1) + " and " + here.substr(here.find('+') + 1));
  } else if (!cuda.empty() && cuda != "None" && !here.contains('+')) {
    symptom.set("other_cuda", cuda);
    explanation.say(
        "the release is the same; the version of the torch here names no CUDA, as that of a torch "
        "without CUDA does (macOS, PyPI's for Windows), and conda's");
  } else if (cuda == "None") {
    symptom.set("other_cuda", "none");
    explanation.say("the release is the same, and it was built without CUDA itself");
  } else if (python.empty() || symptom.part("other_python").empty()) {
    symptom.set("same", here);
    explanation.say(
        "that is the torch that is here: its compiled files do not load for another reason" +
        std::string(python.empty() ? ", most often another minor version of Python" : "") +
        ", or they were not built at all");
  }
}

// Tells whether any Python fulfils what a package requires of it (part wanted): a comma means
// "and".
void ask_python_range(const Asked&, Explanation& explanation) {
  auto& symptom = explanation.symptom;
  const auto wanted = symptom.part("wanted");
  bool possible = wanted.empty() || can_fulfil("2.7", wanted);
  for (int minor = 0; minor <= 16 && !possible; ++minor)
    possible = can_fulfil("3." + std::to_string(minor), wanted);
  symptom.set(possible ? "possible" : "impossible", wanted.empty() ? "what it asks for" : wanted);
}

using Question = void (*)(const Asked&, Explanation&);
const std::map<std::string_view, Question> questions{{"symbol", ask_symbol},
                                                     {"version", ask_version},
                                                     {"library", ask_library},
                                                     {"driver", ask_driver},
                                                     {"no-driver", ask_no_driver},
                                                     {"torch", ask_torch},
                                                     {"python", ask_python},
                                                     {"libc", ask_libc},
                                                     {"cuda", ask_cuda},
                                                     {"processor", ask_processor},
                                                     {"gpu", ask_gpu},
                                                     {"ptx", ask_ptx},
                                                     {"wheel", ask_wheel},
                                                     {"provider", ask_provider},
                                                     {"release", ask_release},
                                                     {"conflict", ask_conflict},
                                                     {"memory", ask_memory},
                                                     {"built-for", ask_built_for},
                                                     {"python-range", ask_python_range}};

// Fills in "{library|A library} needs {symbol}": parts for their names, or the words after the bar,
// and nothing for {symbol?} and {!symbol}. Returns nothing if a part without such words is empty,
// or one with a mark before it is not.
std::string filled(std::string_view text, const Symptom& symptom) {
  std::string result;
  while (!text.empty()) {
    const auto open = std::min(text.find('{'), text.size());
    result += text.substr(0, open);
    text.remove_prefix(open);
    if (text.empty()) break;
    const auto close = text.find('}');
    auto name = text.substr(1, close - 1);
    const bool absent = name.starts_with('!');
    name.remove_prefix(absent ? 1 : 0);
    const auto bar = name.find('|');
    auto part = symptom.part(std::string(name.substr(0, name.find_first_of("|?"))));
    if (name.starts_with("library") || name.starts_with("needs")) part = base_name(part);
    if (absent ? !part.empty() : part.empty() && bar == name.npos) return {};
    if (!name.ends_with('?') && !absent) result += part.empty() ? name.substr(bar + 1) : part;
    text.remove_prefix(close + 1);
  }
  return result;
}

// Where a sentence belongs: it begins with words of the message that it is about, in quotes, or it
// is for every message.
enum class Concerns { these_words, all, others };

// Reads `"a ... b", "c": the rest`: the text must have one of the words, with anything between a
// and b. Leaves the rest.
Concerns concerns(std::string_view& line, const std::string& text) {
  if (!line.starts_with('"')) return Concerns::all;
  auto rest = line;
  bool found = false;
  while (rest.starts_with('"')) {
    const auto close = rest.find('"', 1);
    std::size_t at = 0;
    for (auto words = rest.substr(1, close - 1); at != text.npos && !words.empty();) {
      const auto gap = std::min(words.find(" ... "), words.size());
      at = find_in(text, comparable(words.substr(0, gap)), at);
      words.remove_prefix(std::min(gap + 5, words.size()));
    }
    found = found || at != text.npos;
    rest.remove_prefix(close + 1);
    for (const std::string_view next : {", ", " and ", " or "}) {
      if (rest.starts_with(next)) rest.remove_prefix(next.size());
    }
  }
  if (rest.starts_with(": ")) line = rest.substr(2);
  return found ? Concerns::these_words : Concerns::others;
}

// Leaves out of each advice what is for another system than the message is of, if it says one
// alone; an explanation keeps at least one advice.
void keep_for_system(Explanation& explanation) {
  std::vector<std::string> systems;
  for (const auto* system : {"windows", "macos", "linux"}) {
    if (!explanation.symptom.part(system).empty()) systems.emplace_back(system);
  }
  if (!explanation.symptom.part("musl").empty() && !contains(systems, "windows"))
    systems = {"musl"};
  if (systems.size() != 1) return;
  std::vector<std::string> fixes;
  for (const auto& fix : explanation.fixes) {
    if (auto kept = for_system(fix, systems.front()); !kept.empty())
      fixes.push_back(std::move(kept));
  }
  if (fixes.empty()) return;
  if (fixes.front().starts_with("or ")) fixes.front().erase(0, 3);  // what it went on from is gone
  explanation.fixes = std::move(fixes);
}

std::vector<std::string> sentences(const Explanation& explanation) {
  auto all = explanation.because;
  all.push_back(explanation.owner);
  all.push_back(explanation.what);
  all.insert(all.end(), explanation.fixes.begin(), explanation.fixes.end());
  return all;
}

// Returns the part in which two symptoms differ; nothing if it is not one alone.
std::optional<std::string> differing_part(const Symptom& one, const Symptom& other) {
  std::set<std::string> names{"library", "needs", "symbol", "version"}, differing;
  for (const auto& symptom : {one, other}) {
    for (const auto& [name, part] : symptom.parts) names.insert(name);
  }
  for (const auto& name : names) {
    if (one.part(name) != other.part(name)) differing.insert(name);
  }
  return differing.size() == 1 ? std::optional(*differing.begin()) : std::nullopt;
}

// A symptom, its explanation, and the names for which another one would be the same.
struct Shared {
  Symptom symptom;
  Explanation explanation;
  std::vector<std::string> names;
};

// Returns true if the explanation serves the symptom too, and adds the name of that.
bool serves(Shared& shared, const Symptom& symptom, const Explanation& explanation,
            const Asked& asked) {
  constexpr const char* unknown = "an-unknown-name";
  if (shared.symptom.kind != symptom.kind) return false;
  // The first lines of a resolver's text are asked together with all that follow.
  if (contains(entry_of(symptom.kind).ask, "conflict")) return true;
  if (sentences(shared.explanation) == sentences(explanation)) return true;
  const auto part = differing_part(shared.symptom, symptom);
  if (!part) return false;
  auto neutral = symptom;
  neutral.set(*part, unknown);
  const auto for_all = sentences(explain(neutral, asked));
  auto is_for = [&](const std::string& name, const Explanation& one) {
    return std::ranges::equal(for_all, sentences(one), {},
                              [&](const auto& text) { return replace_all(text, unknown, name); });
  };
  const auto name = base_name(symptom.part(*part));
  if (!is_for(base_name(shared.symptom.part(*part)), shared.explanation) ||
      !is_for(name, explanation))
    return false;
  if (!contains(shared.names, name)) shared.names.push_back(name);
  return true;
}

}  // namespace

void tell(const std::string& key, Explanation& explanation,
          const std::map<std::string, std::string>& parts) {
  const auto& entry = missing_entry(key);
  Symptom filling;
  for (const auto& [name, part] : parts) filling.set(name, part);
  if (!entry.whose.empty()) explanation.owner = entry.whose;
  for (const auto& sentence : entry.because) explanation.say(filled(sentence, filling));
  for (const auto& sentence : entry.fix) explanation.advise(filled(sentence, filling));
  std::erase(explanation.because, "");
  std::erase(explanation.fixes, "");
}

std::vector<Explanation> explain_all(const std::vector<Symptom>& symptoms, const Asked& asked) {
  std::vector<Shared> all;
  for (const auto& symptom : symptoms) {
    auto explanation = explain(symptom, asked);
    if (std::ranges::none_of(all,
                             [&](Shared& one) { return serves(one, symptom, explanation, asked); }))
      all.push_back({symptom, std::move(explanation), {}});
  }
  std::vector<Explanation> explanations;
  for (auto& [symptom, explanation, names] : all) {
    if (!names.empty())
      explanation.because.insert(explanation.because.begin(),
                                 "the same is true of " + joined(names, ", "));
    explanations.push_back(std::move(explanation));
  }
  return explanations;
}

Explanation explain(const Symptom& symptom, const Asked& asked) {
  const auto& entry = entry_of(symptom.kind);
  Explanation explanation{.symptom = symptom, .link = entry.link};
  if (is_of_windows(lower(symptom.message))) explanation.symptom.set("windows", "windows");
  for (const auto& question : entry.ask) {
    if (const auto colon = question.find(':'); colon != question.npos) {
      explanation.symptom.set("packages", question.substr(colon + 1));
      ask_packages(asked, explanation);
    } else {
      questions.at(question)(asked, explanation);
    }
  }
  const auto& told = explanation.symptom;
  explanation.what = filled(entry.what, told);
  if (explanation.owner.empty()) explanation.owner = entry.whose;
  // The lines of the message count, or, if no sentence is about them, the whole text.
  auto text = comparable(symptom.message);
  auto is_about = [&](std::string_view line) {
    return concerns(line, text) == Concerns::these_words;
  };
  if (told.text && std::ranges::none_of(entry.because, is_about) &&
      std::ranges::none_of(entry.fix, is_about))
    text = *told.text;
  auto add = [&](const std::vector<std::string>& sentences, std::vector<std::string>& list) {
    std::vector<std::string> all;
    for (const auto which : {Concerns::these_words, Concerns::all}) {
      for (const auto& sentence : sentences) {
        std::string_view line = sentence;
        if (concerns(line, text) == which) all.push_back(filled(line, told));
      }
    }
    std::erase(all, "");
    list.insert(list.begin(), all.begin(), all.end());
  };
  add(entry.because, explanation.because);
  const bool windows = !entry.windows.empty() && !told.part("windows").empty();
  add(windows ? entry.windows : entry.fix, explanation.fixes);
  keep_for_system(explanation);
  return explanation;
}

Explanation explain(const Symptom& symptom, const MachineFacts* machine, Disk& disk) {
  return explain(symptom, Asked{.machine = machine, .disk = disk});
}

}  // namespace wheelscope
