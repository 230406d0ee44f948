// `wheelscope thin`: smaller wheels for some GPUs.
#include <algorithm>

#include "commands/inputs.h"
#include "commands/thin.h"
#include "machine/machine.h"
#include "packaging/claims.h"
#include "report/json.h"
#include "report/text.h"
#include "tables/tables.h"
#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {
namespace {

Result<std::string> native_gpus() {
  const auto machine = TRY(read_machine(""));
  std::vector<std::string> capabilities;
  for (const auto& gpu : machine.gpus) {
    if (!gpu.capability.empty()) capabilities.push_back(gpu.capability);
  }
  if (capabilities.empty())
    return fail(0,
                "--gpu native: no NVIDIA GPU is found on this machine; name it, as in --gpu 9.0");
  return joined(capabilities, ";");
}

Result<ThinFor> wanted_gpus(const Options& options) {
  auto list = options.arch_list;
  for (const auto& gpu : options.gpus) list += ";" + (gpu == "native" ? TRY(native_gpus()) : gpu);
  auto wanted = TRY(parse_arch_list(list));
  if (options.keep_ptx) wanted.ptx = {wanted.gpus.begin(), wanted.gpus.end()};
  return wanted;
}

// Returns a row for each GPU; without named GPUs, for all in the table except Jetson boards.
Result<std::vector<ThinFor>> each_gpu(const Options& options) {
  std::vector<ThinFor> rows;
  if (options.gpus.empty() && options.arch_list.empty()) {
    for (const auto& gpu : cuda_table().gpus) {
      if (gpu.tegra) continue;
      rows.push_back({.gpus = {gpu.capability}});
      if (options.keep_ptx) rows.back().ptx = {gpu.capability};
    }
    return rows;
  }
  const auto wanted = TRY(wanted_gpus(options));
  for (const auto& gpu : wanted.gpus) {
    rows.push_back({.gpus = {gpu}});
    if (wanted.ptx.contains(gpu)) rows.back().ptx = {gpu};
  }
  if (rows.size() > 1) rows.push_back(wanted);
  return rows;
}

// Returns the first of the GPUs for which no module of the wheel has code; empty if there is none.
std::string unserved_gpu(const ThinnedWheel& wheel, const std::vector<std::string>& gpus) {
  for (const auto& gpu : gpus) {
    if (!count_modules(wheel.files, gpu).serve()) return gpu;
  }
  return {};
}

int complain_of(const std::string& path, const Error& error, Streams streams) {
  return complain({error.offset, path + ": " + error.what}, streams);
}

int dry_run(const std::string& path, const std::vector<ThinFor>& rows, const Options& options,
            Json& json, Streams streams) {
  const auto file = Source::map(path);
  if (!file) return complain(file.error(), streams);
  auto plans = plan_wheel({path, file->bytes()}, rows);
  if (!plans) return complain_of(path, plans.error(), streams);
  if (options.gpus.empty() && options.arch_list.empty())
    std::erase_if(*plans, [](const ThinnedWheel& plan) {
      return plan.files.empty() || !unserved_gpu(plan, plan.wanted.gpus).empty();
    });
  for (const auto& plan : *plans) json.push_back(to_json(plan));
  if (!options.json) streams.out << thin_table(path, *plans, options.style);
  return clean;
}

// Returns the variant that was asked for; fails if it cannot be made.
Result<std::optional<VariantFile>> asked_variant(const ThinFor& wanted, const Options& options) {
  if (!options.variant) return std::nullopt;
  if (!is_variant_label(*options.variant))
    return fail(0,
                "--variant: a label has small letters, digits, dots and underscores, as in sm90");
  if (wanted.gpus.size() != 1)
    return fail(0, "--variant: NVIDIA's provider knows variants for one GPU; give one --gpu");
  return VariantFile{*options.variant, variant_file_for(*options.variant, wanted.gpus.front())};
}

// Returns all GPUs that would get a variant for this one: NVIDIA's provider also gives it to later
// GPUs of the same major version. Jetson boards count if the wheel is for their processor.
ThinFor with_later_gpus(ThinFor wanted, const std::string& path) {
  const auto first = wanted.gpus.front();
  const auto major = first.substr(0, first.find('.') + 1);
  const bool boards = base_name(path).find("aarch64") != std::string::npos;
  for (const auto& gpu : cuda_table().gpus) {
    if (gpu.capability.starts_with(major) && target_before(first, gpu.capability) &&
        (boards || !gpu.tegra))
      wanted.gpus.push_back(gpu.capability);
  }
  if (!wanted.ptx.empty()) wanted.ptx = {wanted.gpus.begin(), wanted.gpus.end()};
  return wanted;
}

int write(const std::string& path, const ThinFor& wanted, const Options& options, Json& json,
          Streams streams) {
  const auto file = Source::map(path);
  if (!file) return complain(file.error(), streams);
  const WheelInput input{path, file->bytes()};
  const auto variant = asked_variant(wanted, options);
  if (!variant) return bad_usage(variant.error().what, streams);
  const auto served = [&](const ThinnedWheel& thin) {
    const auto& gpu = wanted.gpus.front();
    if (const auto unserved = unserved_gpu(thin, wanted.gpus); !unserved.empty())
      streams.err << "wheelscope: " << printable(path)
                  << ": no device code in this wheel serves GPU " << unserved
                  << "; `wheelscope show` lists the GPUs that it serves\n";
    else if (*variant && count_modules(thin.files, gpu).native == 0)
      streams.err << "wheelscope: " << printable(path)
                  << ": no native code in this wheel serves GPU " << gpu
                  << ", which a variant for it promises\n";
    else
      return true;
    return false;
  };
  bool accepted = false;
  const auto done =
      thin_wheel(input, *variant ? with_later_gpus(wanted, path) : wanted, options.output_folder,
                 *variant, [&](const ThinnedWheel& thin) { return accepted = served(thin); });
  if (!done) return complain_of(path, done.error(), streams);
  if (!accepted) return has_findings;
  json.push_back(to_json(*done));
  if (!options.json) streams.out << thin_text(*done, options.style);
  return clean;
}

// Compares an original with thinned wheels. Several wheels (variants) count as one, from which each
// GPU takes what suits it.
int compare(const Options& options, Streams streams) {
  if (options.paths.size() < 2)
    return bad_usage("thin --check takes the original wheel, and thinned ones", streams);
  const auto& path = options.paths.front();
  const auto original = Source::map(path);
  if (!original) return complain(original.error(), streams);
  ThinCheck all;
  for (const auto& other : std::span(options.paths).subspan(1)) {
    const auto file = Source::map(other);
    if (!file) return complain(file.error(), streams);
    const auto check = check_thinning({path, original->bytes()}, {other, file->bytes()});
    if (!check) return complain(check.error(), streams);
    const auto place = options.paths.size() > 2 ? base_name(other) + ": " : "";
    for (const auto& [member, difference] : check->differences)
      all.differences.emplace_back(place + member, difference);
    all.gpus.insert(check->gpus.begin(), check->gpus.end());
    all.lost.insert(check->lost.begin(), check->lost.end());
  }
  for (const auto& gpu : all.gpus) all.lost.erase(gpu);  // one of the wheels has its code
  print("thin_check", all, thin_check_text, options, streams);
  return all.holds() ? clean : has_findings;
}

}  // namespace

int thin(const Options& options, Streams streams) {
  if (!options.undo.empty()) return undo_thinning(options, streams);
  if (options.environment) {
    auto asked = options;
    if (asked.gpus.empty() && asked.arch_list.empty()) asked.gpus = {"native"};
    const auto wanted = wanted_gpus(asked);
    return wanted ? thin_environment(*wanted, options, streams)
                  : bad_usage(wanted.error().what, streams);
  }
  if (options.paths.empty()) return bad_usage("thin needs a wheel, or --env", streams);
  if (options.compare) return compare(options, streams);
  auto json = Json::array();
  int code = clean;
  if (options.dry_run) {
    const auto rows = each_gpu(options);
    if (!rows) return bad_usage(rows.error().what, streams);
    for (const auto& path : options.paths)
      code = std::max(code, dry_run(path, *rows, options, json, streams));
  } else {
    if (options.output_folder.empty())
      return bad_usage("thin needs -o DIR, the folder for the new wheel, or --dry-run", streams);
    const auto wanted = wanted_gpus(options);
    if (!wanted) return bad_usage(wanted.error().what, streams);
    for (const auto& path : options.paths)
      code = std::max(code, write(path, *wanted, options, json, streams));
  }
  if (options.json) streams.out << json_document("thin", std::move(json));
  return code;
}

}  // namespace wheelscope
