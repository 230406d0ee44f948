// Thins what is installed in an environment, and puts it back.
#pragma once

#include "answers/thin.h"
#include "commands/commands.h"

namespace wheelscope {

// Reports what each package would save; with options.write, saves the originals in options.save and
// thins the files.
int thin_environment(const ThinFor& wanted, const Options& options, Streams streams);

// Puts back what the folder options.undo has.
int undo_thinning(const Options& options, Streams streams);

}  // namespace wheelscope
