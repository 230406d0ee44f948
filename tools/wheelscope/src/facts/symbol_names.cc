// Tells by a symbol's name what it belongs to.
#include "facts/facts.h"

namespace wheelscope {
namespace {

// True if a mangled name mentions a type or function of at::, c10:: or torch::, except its
// header-only and stable parts.
bool mentions_torch(std::string_view mangled) {
  for (const std::string_view space : {"2at", "3c10", "5torch"}) {
    for (auto at = mangled.find(space); at != mangled.npos; at = mangled.find(space, at + 1)) {
      if (at == 0 || (mangled[at - 1] != 'N' && mangled[at - 1] != 'K'))
        continue;  // not the outermost namespace
      const auto rest = mangled.substr(at + space.size());
      if (rest.starts_with("6stable") || rest.starts_with("10headeronly")) continue;
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_python_symbol(std::string_view name) {
  return name.starts_with("Py") || name.starts_with("_Py");
}

bool is_torch_shim(std::string_view name) {
  return name.starts_with("aoti_torch_") || name.starts_with("torch_");
}

bool is_torch_symbol(std::string_view name) {
  if (name.starts_with("_Z")) return mentions_torch(name);
  return is_torch_shim(name) || name.starts_with("THP");
}

}  // namespace wheelscope
