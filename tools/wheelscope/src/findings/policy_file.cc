// Reads a policy from TOML, strictly.
#include <algorithm>

#include "findings/findings.h"
#include "tables/toml.h"
#include "text/text.h"

namespace wheelscope {
namespace {

class PolicyReader {
 public:
  explicit PolicyReader(const toml::table& root) : root_(root) {}

  void take(const char* key, std::string& target) {
    with(key, [&](const auto& node) {
      store(node.template value_exact<std::string>(), target, key, "must be a string");
    });
  }
  void take(const char* key, bool& target) {
    with(key, [&](const auto& node) {
      store(node.template value_exact<bool>(), target, key, "must be true or false");
    });
  }
  void take(const char* key, std::optional<std::uint64_t>& target) {
    with(key, [&](const auto& node) {
      const auto number = node.template value<std::int64_t>();
      if (number && *number >= 0)
        target = static_cast<std::uint64_t>(*number);
      else
        complain(key, "must be a number");
    });
  }
  void take(const char* key, std::vector<std::string>& target) {
    with(key, [&](const auto& node) {
      const auto* array = node.as_array();
      if (!array) return complain(key, "must be a list of strings");
      for (const auto& element : *array) {
        if (auto text = element.template value<std::string>())
          target.push_back(*text);
        else
          complain(key, "must be a list of strings");
      }
    });
  }
  void take(const char* key, std::optional<std::vector<std::string>>& target) {
    std::vector<std::string> list;
    take(key, list);
    if (known_.contains(key) && root_.at_path(key)) target = std::move(list);
  }

  void take_levels(std::map<std::string, std::string>& levels) {
    if (const auto* table = root_["levels"].as_table()) {
      for (const auto& [id, node] : *table) {
        const auto level = node.value_or<std::string>("");
        if (level == "error" || level == "warning" || level == "note" || level == "off")
          levels[std::string(id.str())] = level;
        else
          complain("levels." + std::string(id.str()), "must be error, warning, note or off");
      }
    }
  }

  Result<void> finish() {
    for (const auto& [section, node] : root_) {
      const auto* table = node.as_table();
      const std::string name(section.str());
      if (name == "levels") continue;
      if (!table) {
        complain(name, is_section(name) ? "must be a table: [" + name + "]" : unknown(name));
        continue;
      }
      for (const auto& [key, value] : *table) {
        const auto path = name + "." + std::string(key.str());
        if (!known_.contains(path)) complain(path, unknown(path));
      }
    }
    if (problems_.empty()) return {};
    constexpr std::size_t most = 5;
    const auto count = problems_.size();
    problems_.resize(std::min(count, most));
    auto text = joined(problems_, "; ");
    if (count > most) text += "; and " + std::to_string(count - most) + " more: is this a policy?";
    return fail(0, std::move(text));
  }

 private:
  template <class Use>
  void with(const char* key, Use use) {
    known_.insert(key);
    if (const auto node = root_.at_path(key)) use(node);
  }
  template <class T>
  void store(const std::optional<T>& value, T& target, const char* key, const char* expected) {
    if (value)
      target = *value;
    else
      complain(key, expected);
  }
  void complain(const std::string& key, const std::string& what) {
    problems_.push_back(printable(key) + " " + what);
  }
  bool is_section(const std::string& name) const {
    return std::ranges::any_of(known_,
                               [&](const auto& key) { return key.starts_with(name + "."); });
  }
  std::string unknown(const std::string& key) const {
    const auto meant = nearest(key, {known_.begin(), known_.end()});
    return "is no key of a policy" + (meant.empty() ? "" : "; did you mean " + meant + "?");
  }

  const toml::table& root_;
  std::set<std::string> known_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<Policy> parse_policy(std::string_view text) {
  const auto root = TRY(parse_toml(text));
  Policy policy;
  PolicyReader reader(root);
  reader.take("platform.highest", policy.highest_platform);
  reader.take("size.limit_mb", policy.size_limit_mb);
  reader.take("python.abi", policy.python_abi);
  reader.take("python.min", policy.python_min);
  reader.take("torch.abi", policy.torch_abi);
  reader.take("torch.min", policy.torch_min);
  reader.take("cuda.runtime", policy.cuda_runtime);
  reader.take("cuda.sass", policy.sass);
  reader.take("cuda.ptx", policy.ptx);
  reader.take("cuda.driver", policy.driver);
  reader.take("libraries.needed", policy.needed);
  reader.take("libraries.rpath", policy.rpath);
  reader.take("hardening.relro", policy.relro);
  reader.take("hardening.bind_now", policy.bind_now);
  reader.take("hardening.nx", policy.nx);
  reader.take("hardening.stack_protector", policy.stack_protector);
  reader.take("contents.debug_info", policy.debug_info);
  reader.take("contents.build_paths", policy.build_paths);
  reader.take_levels(policy.levels);
  TRY_VOID(reader.finish());
  return policy;
}

}  // namespace wheelscope
