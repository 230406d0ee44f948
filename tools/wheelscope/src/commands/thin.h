// Makes wheels and environments smaller by removing device code that the chosen GPUs do not use.
#pragma once

#include <functional>

#include "answers/thin.h"
#include "commands/commands.h"
#include "facts/wheel.h"

namespace wheelscope {

// Reads a wheel whose RECORD is right, and plans for each list of GPUs. Any doubt about the archive
// is an error: a wheel that installers may read in two ways must not get a fresh RECORD.
Result<std::vector<ThinnedWheel>> plan_wheel(const WheelInput& input,
                                             const std::vector<ThinFor>& wanted,
                                             const ZipLimits& limits = {});

// The parts that make a wheel a variant: the label at the end of its name, and its variant.json.
struct VariantFile {
  std::string label, json;
};

// Writes the thinned wheel into a folder, as a variant if one is given. The file gets its final
// name only if `accepted` returns true for the result. Writes nothing if there is nothing to cut
// and no variant.
Result<ThinnedWheel> thin_wheel(const WheelInput& input, const ThinFor& wanted,
                                const std::string& folder,
                                const std::optional<VariantFile>& variant,
                                const std::function<bool(const ThinnedWheel&)>& accepted,
                                const ZipLimits& limits = {});

// Checks whether the second wheel is a thinning of the first. Both must be sound.
Result<ThinCheck> check_thinning(const WheelInput& original, const WheelInput& thin);

// The name of the statement about thinning in dist-info.
inline constexpr const char* thin_statement = "wheelscope-thin.json";

// --- Packages installed in an environment

// Reports what each package would save; with options.write, saves the originals in options.save and
// thins the files.
int thin_environment(const ThinFor& wanted, const Options& options, Streams streams);

// Restores the originals from the folder options.undo.
int undo_thinning(const Options& options, Streams streams);

}  // namespace wheelscope
