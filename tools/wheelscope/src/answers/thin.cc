// Plans what is cut from a file, and cuts it.
#include "answers/thin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "readers/archive.h"
#include "readers/elf_file.h"
#include "readers/fatbin.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

// The form of a file, which decides what may be cut from it.
enum class Form {
  loaded,      // in a library or program: the driver chooses
  linked,      // in an object file or static library: a linker chooses, and may want any kind
  lone_cubin,  // or PTX text: the program chooses
  lone_fatbin  // one container and nothing else
};

struct DeviceFile {
  Form form = Form::loaded;
  Fatbin fatbin;
  bool sections_known = true;
};

void read_elf_into(Bytes file, Loan& loan, DeviceFile& device) {
  const auto elf = read_elf(file, loan);
  if (!elf) return;
  if (elf->machine == EM_CUDA) device.form = Form::lone_cubin;
  if (elf->type == ET_REL && elf->machine != EM_CUDA) device.form = Form::linked;
  device.sections_known &= elf->machine == EM_CUDA || !elf->sections.empty();
  append(device.fatbin, read_device_code(*elf, file, loan));
}

DeviceFile read_device_file(const std::string& path, Bytes file, Loan& loan) {
  DeviceFile device;
  if (looks_like_elf(file)) {
    read_elf_into(file, loan, device);
  } else if (looks_like_archive(file)) {
    const auto done = for_each_member(file, [&](Bytes member) {
      if (looks_like_elf(member)) read_elf_into(member, loan, device);
    });
    device.form = Form::linked;
    if (!done) device.fatbin = {};
  } else if (auto loose = read_loose_code(path, file, loan)) {
    device.form = looks_like_fatbin(file) ? Form::lone_fatbin : Form::lone_cubin;
    device.fatbin = std::move(*loose);
  }
  return device;
}

class FilePlanner {
 public:
  FilePlanner(const ThinFor& wanted, const DeviceFile& device, FileThinning& plan)
      : wanted_(wanted), device_(device), plan_(plan) {}

  void run() {
    const auto modules = modules_of(device_.fatbin);
    const auto apart = find_apart(modules);
    for (std::size_t i = 0; i < modules.size(); ++i) {
      if (!device_.sections_known)
        keep_whole(StaysWhole::no_sections, modules[i]);
      else if (!modules[i].container.sound && device_.form != Form::lone_cubin)
        keep_whole(StaysWhole::broken, modules[i]);
      else if (!apart[i])
        keep_whole(StaysWhole::shared_bytes, modules[i]);
      else
        plan_module(modules[i]);
    }
  }

 private:
  // Tells for each module whether it shares no bytes with another one.
  static std::vector<bool> find_apart(const std::vector<DeviceModule>& modules) {
    std::vector<bool> apart(modules.size(), true);
    std::size_t last = 0;  // of the modules before: the one that ends last
    for (std::size_t i = 1; i < modules.size(); ++i) {
      const auto range = modules[i].range(), before = modules[last].range();
      if (range.at < before.end()) apart[i] = apart[last] = false;
      if (range.end() >= before.end()) last = i;
    }
    return apart;
  }

  static void count(const DeviceCode& code, CodeSums& sums) {
    auto& sum = sums[spelled(code.kind, code.target)];
    ++sum.count;
    sum.bytes += code.payload.size();
  }

  void keep_whole(StaysWhole why, const DeviceModule& module) {
    ++plan_.stays[why];
    for (const auto* code : module.codes) count(*code, plan_.kept);
  }

  // Adds the code that one GPU takes, by kind and target.
  using Taken = std::set<std::pair<CodeKind, std::string>>;
  void take(const std::string& gpu, const DeviceModule& module, Taken& taken) {
    const auto ptx = module.targets(CodeKind::ptx), link = module.targets(CodeKind::lto_ir);
    const auto choice = choose(module.targets(CodeKind::sass), ptx, gpu);
    auto add = [&](CodeKind kind, const Choice& chosen) {
      for (const auto& target : chosen.targets) taken.emplace(kind, target);
    };
    add(choice.served == Served::native ? CodeKind::sass : CodeKind::ptx, choice);
    const bool linker = device_.form == Form::linked;
    if (linker || wanted_.ptx.contains(gpu)) add(CodeKind::ptx, choose({}, ptx, gpu));
    // The driver links it like PTX that it compiles.
    if (linker || choice.served != Served::native) add(CodeKind::lto_ir, choose({}, link, gpu));
    if (linker || module.codes.front()->relocatable) return;  // runs when it is linked
    auto& modules = plan_.modules[gpu];
    ++(choice.served == Served::native ? modules.native
       : choice.served == Served::jit  ? modules.jit
                                       : modules.unserved);
  }

  void plan_module(const DeviceModule& module) {
    const auto& codes = module.codes;
    if (codes.empty()) return;
    Taken taken;
    for (const auto& gpu : wanted_.gpus) take(gpu, module, taken);
    if (device_.form == Form::lone_cubin) return plan_lone(*codes.front());
    std::vector<const DeviceCode*> kept;
    for (const auto* code : codes) {
      const bool unknown = code->kind == CodeKind::unknown;
      if (unknown) ++plan_.stays[StaysWhole::unknown_kind];
      if (unknown || taken.contains({code->kind, code->target})) kept.push_back(code);
    }
    if (kept.empty()) {
      ++plan_.stays[StaysWhole::unserved];
      kept.push_back(*std::ranges::min_element(
          codes, {}, [](const DeviceCode* code) { return code->entry.size(); }));
    }
    auto next = kept.begin();  // they are in the order of `codes`
    for (const auto* code : codes) {
      const bool stays = next != kept.end() && *next == code;
      if (stays) ++next;
      count(*code, stays ? plan_.kept : plan_.cut);
    }
    if (kept.size() == codes.size()) return;
    ContainerCut cut{.whole = module.range(), .header_size = module.container.header_size};
    for (const auto* code : kept) cut.kept.push_back({code->entry.origin(), code->entry.size()});
    plan_.cuts.push_back(std::move(cut));
  }

  // The program that ships the code picks among all that can run.
  void plan_lone(const DeviceCode& code) {
    plan_.removed = std::ranges::none_of(wanted_.gpus, [&](const std::string& gpu) {
      return code.kind == CodeKind::ptx ? ptx_serves(code.target, gpu)
                                        : sass_serves(code.target, gpu);
    });
    count(code, plan_.removed ? plan_.cut : plan_.kept);
  }

  const ThinFor& wanted_;
  const DeviceFile& device_;
  FileThinning& plan_;
};

std::uint64_t kept_end(const ContainerCut& cut) {
  return cut.whole.at + cut.header_size + cut.kept_size();
}

// Plans the file around the cuts.
void plan_layout(Bytes file, Form form, FileThinning& plan) {
  std::vector<FileRange> zeros;
  for (const auto& cut : plan.cuts)
    zeros.push_back({kept_end(cut), cut.whole.end() - kept_end(cut)});
  for (const auto& range : zeros) plan.zeros += range.size;
  if (zeros.empty()) return;
  const bool nothing_else = form == Form::lone_fatbin && zeros.size() == 1 &&
                            plan.cuts.front().whole == FileRange{0, file.size()};
  if (nothing_else) {
    plan.size -= std::exchange(plan.zeros, 0);
    return;
  }
  auto layout =
      looks_like_elf(file) ? plan_holes(file, zeros) : std::unexpected(KeepsZeros::not_shared);
  if (layout && plan.cuts.front().whole.at < sizeof(Elf64_Ehdr))  // the ELF header changes, too
    layout = std::unexpected(KeepsZeros::unusual);
  if (!layout) {
    plan.keeps_zeros = layout.error();
    return;
  }
  plan.size = layout->size;
  for (const auto& hole : layout->holes) plan.zeros -= hole.size;
  plan.layout = std::move(*layout);
}

}  // namespace

std::uint64_t ContainerCut::kept_size() const {
  std::uint64_t size = 0;
  for (const auto& entry : kept) size += entry.size;
  return size;
}

ModuleCount count_modules(const std::vector<FileThinning>& files, const std::string& gpu) {
  ModuleCount all;
  for (const auto& file : files) {
    const auto found = file.modules.find(gpu);
    if (found != file.modules.end()) all += found->second;
  }
  return all;
}

ModuleCount& ModuleCount::operator+=(const ModuleCount& other) {
  native += other.native;
  jit += other.jit;
  unserved += other.unserved;
  return *this;
}

bool ThinnedWheel::changes() const {
  return std::ranges::any_of(files, &FileThinning::changes);
}

Result<ThinFor> parse_arch_list(std::string_view text) {
  ThinFor wanted;
  std::string spaced(text);
  std::ranges::replace_if(spaced, [](char c) { return c == ';' || c == ','; }, ' ');
  for (auto word : split(spaced, ' ')) {
    if (word.empty()) continue;
    const auto plus = lower(word).find("+ptx");
    const bool ptx = plus != std::string::npos && plus + 4 == word.size();
    if (ptx) word.resize(plus);
    if (word.size() > 1 && (word.back() == 'a' || word.back() == 'f')) word.pop_back();
    std::vector<std::string> known;
    for (const auto& gpu : cuda_table().gpus) known.push_back(gpu.capability);
    if (!contains(known, word))
      return fail(0, "'" + printable(word) +
                         "' is no compute capability of a known GPU; they are " + joined(known));
    if (!contains(wanted.gpus, word)) wanted.gpus.push_back(word);
    if (ptx) wanted.ptx.insert(word);
  }
  std::ranges::sort(wanted.gpus, target_before);
  if (wanted.gpus.empty()) return fail(0, "no GPU is named; give its compute capability: 9.0");
  return wanted;
}

Fatbin read_all_device_code(const std::string& path, Bytes file, Loan& loan) {
  return read_device_file(path, file, loan).fatbin;
}

std::vector<std::string> DeviceModule::targets(CodeKind kind) const {
  std::vector<std::string> targets;
  for (const auto* code : codes) {
    if (code->kind == kind && !contains(targets, code->target)) targets.push_back(code->target);
  }
  return targets;
}

std::vector<DeviceModule> modules_of(const Fatbin& fatbin) {
  std::vector<DeviceModule> modules;
  for (const auto& container : fatbin.containers) modules.push_back({container, {}});
  for (const auto& code : fatbin.codes) modules[code.container].codes.push_back(&code);
  std::ranges::stable_sort(modules, {}, [](const DeviceModule& one) { return one.range().at; });
  return modules;
}

std::vector<FileThinning> plan_thinning(const std::string& path, Bytes file,
                                        const std::vector<ThinFor>& wanted, Allowance& memory) {
  Loan loan(memory);
  const auto device = read_device_file(path, file, loan);
  std::vector<FileThinning> plans;
  if (device.fatbin.codes.empty()) return plans;
  for (const auto& one : wanted) {
    auto& plan = plans.emplace_back(
        FileThinning{.path = path, .size_before = file.size(), .size = file.size()});
    FilePlanner(one, device, plan).run();
    if (plan.removed)
      plan.size = 0;
    else
      plan_layout(file, device.form, plan);
  }
  return plans;
}

Pieces thinned(Bytes file, const FileThinning& plan) {
  Pieces output;
  std::uint64_t done = 0;
  auto keep_up_to = [&](std::uint64_t end) {
    output.add(file.span().subspan(done, end - done));
    done = end;
  };
  static const std::vector<FileRange> none;
  const auto& holes = plan.layout ? plan.layout->holes : none;
  auto parts = plan.layout ? new_parts(file, *plan.layout) : HoleyParts{};
  done = parts.header.size();
  output.own(std::move(parts.header));
  for (const auto& cut : plan.cuts) {
    keep_up_to(cut.whole.at);
    std::string header(file.text().substr(cut.whole.at, cut.header_size));
    const auto body = cut.kept_size();
    for (std::size_t i = 0; i < sizeof body; ++i)
      header[8 + i] = static_cast<char>(body >> 8 * i & 0xFF);
    output.own(std::move(header));
    for (const auto& entry : cut.kept) output.add(file.span().subspan(entry.at, entry.size));
    const FileRange freed{kept_end(cut), cut.whole.end() - kept_end(cut)};
    for (const auto& part : between(freed, holes))
      output.add_zeros(std::min(part.size, plan.size - output.size()));
    done = cut.whole.end();
  }
  keep_up_to(plan.layout ? plan.layout->copied : file.size());
  if (plan.layout) output.add_zeros(plan.layout->segments_at - output.size());
  output.own(std::move(parts.tables));
  return output;
}

}  // namespace wheelscope
