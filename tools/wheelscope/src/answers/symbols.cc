// Finds who provides each symbol, without the loader's rules: by the names alone.
#include "answers/symbols.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "facts/symbol_names.h"
#include "tables/tables.h"

namespace wheelscope {
namespace {

using Providers = std::map<std::string_view, std::string_view>;

Providers definitions(const Item& item) {
  Providers providers;
  for (const auto& library : item.facts.libraries) {
    for (const auto& symbol : library.symbols) {
      if (symbol.defined) providers.try_emplace(symbol.name, library.path);
    }
  }
  return providers;
}

std::string provider_of(const SymbolFact& symbol, const Providers& inside) {
  if (symbol.defined) return {};
  if (!symbol.library.empty()) return symbol.library;
  if (auto found = inside.find(symbol.name); found != inside.end())
    return std::string(found->second);
  if (auto shim = torch_shims().find(symbol.name); shim != torch_shims().end())
    return std::string(shim->second.library);
  if (is_python_symbol(symbol.name)) return "python";
  return {};
}

}  // namespace

void for_each_symbol(
    const Item& item,
    const std::function<void(const LibraryFacts&, const SymbolFact&, const std::string&)>& use) {
  const auto inside = definitions(item);
  for (const auto& library : item.facts.libraries) {
    std::vector<const SymbolFact*> symbols;
    symbols.reserve(library.symbols.size());
    for (const auto& symbol : library.symbols) symbols.push_back(&symbol);
    std::ranges::sort(symbols, {}, [](const SymbolFact* one) {
      return std::tie(one->defined, one->name, one->version);
    });
    for (const auto* symbol : symbols) use(library, *symbol, provider_of(*symbol, inside));
  }
}

}  // namespace wheelscope
