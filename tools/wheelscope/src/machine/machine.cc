// Joins the facts of the computer and the interpreter, or reads those saved on another machine.
#include "machine/machine.h"

#include <nlohmann/json.hpp>

#include "machine/distributions.h"
#include "packaging/tag.h"

namespace wheelscope {
namespace {

using Json = nlohmann::json;

struct WrongKey {
  std::string what;
};

// A place in the document that knows its name.
class Place {
 public:
  Place(const Json& json, std::string name) : json_(json), name_(std::move(name)) {}

  Place at(const char* key) const {
    if (!json_.is_object()) throw WrongKey{(name_.empty() ? "it" : name_) + " is no object"};
    const auto found = json_.find(key);
    const auto name = name_.empty() ? key : name_ + "." + key;
    if (found == json_.end()) throw WrongKey{name + " is not there"};
    return {*found, name};
  }
  bool is_null() const { return json_.is_null(); }
  std::string text() const {  // null: empty
    if (json_.is_null()) return {};
    if (!json_.is_string()) throw WrongKey{name_ + " is no text"};
    return json_.get<std::string>();
  }
  std::optional<bool> truth() const {
    if (json_.is_null()) return std::nullopt;
    if (!json_.is_boolean()) throw WrongKey{name_ + " is neither true nor false"};
    return json_.get<bool>();
  }
  int number() const {
    if (!json_.is_number_integer()) throw WrongKey{name_ + " is no number"};
    return json_.get<int>();
  }
  std::vector<Place> list() const {
    if (!json_.is_array()) throw WrongKey{name_ + " is no list"};
    std::vector<Place> places;
    places.reserve(json_.size());
    for (std::size_t i = 0; i < json_.size(); ++i)
      places.emplace_back(json_[i], name_ + "[" + std::to_string(i) + "]");
    return places;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const auto& place : list()) texts.push_back(place.text());
    return texts;
  }

 private:
  const Json& json_;
  std::string name_;
};

MachineFacts read(const Place& machine) {
  MachineFacts facts{.architecture = machine.at("architecture").text(),
                     .libc = machine.at("libc").text(),
                     .libc_version = machine.at("libc_version").text(),
                     .driver = machine.at("driver").text()};
  for (const auto& gpu : machine.at("gpus").list())
    facts.gpus.push_back({gpu.at("name").text(), gpu.at("capability").text()});
  if (const auto python = machine.at("python"); !python.is_null())
    facts.python = {.executable = python.at("executable").text(),
                    .version = python.at("version").text(),
                    .abi = python.at("abi").text(),
                    .prefix = python.at("prefix").text(),
                    .base_prefix = python.at("base_prefix").text(),
                    .architecture = python.at("architecture").text(),
                    .site_packages = python.at("site_packages").texts(),
                    .tags = python.at("tags").texts()};
  if (const auto torch = machine.at("torch"); !torch.is_null())
    facts.torch = {.path = torch.at("path").text(),
                   .version = torch.at("version").text(),
                   .cuda = torch.at("cuda").text(),
                   .rocm = torch.at("rocm").text(),
                   .cxx11_abi = torch.at("cxx11_abi").truth()};
  for (const auto& library : machine.at("cuda_libraries").list())
    facts.cuda_libraries.push_back({library.at("name").text(), library.at("path").text(),
                                    library.at("distribution").text(),
                                    library.at("version").text()});
  facts.notes = machine.at("notes").texts();
  return facts;
}

}  // namespace

Result<MachineFacts> read_machine(const std::string& python) {
  auto machine = read_host();
  const auto executable = TRY(find_interpreter(python));
  if (executable.empty()) {
    machine.notes.emplace_back("there is no python3 on PATH; name one with --python");
    read_libc("", "", machine);
    return machine;
  }
  auto interpreter = TRY(read_interpreter(executable));
  auto& facts = interpreter.facts;
  // A computer may run programs of several architectures: the interpreter's counts.
  machine.architecture = facts.architecture;
  read_libc("", interpreter.loader, machine);
  facts.tags = supported_tags(facts.minor(), facts.abi,
                              {.architecture = facts.architecture,
                               .libc = machine.libc == "musl" ? System::musl : System::glibc,
                               .libc_version = machine.libc_version});
  machine.torch = find_torch(facts.site_packages);
  machine.cuda_libraries = find_cuda_libraries(facts.site_packages, machine.torch);
  machine.python = std::move(facts);
  return machine;
}

// Every key must be there with a value of its kind.
Result<MachineFacts> parse_machine(std::string_view text) {
  const auto fail = [](const std::string& what) {
    return wheelscope::fail(0, "no machine that `wheelscope machine --json` wrote: " + what);
  };
  constexpr int known_version = 2;
  const auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail("it is no JSON");
  try {
    const Place document(json, "");
    if (document.at("schema_version").number() != known_version)
      return fail("its schema_version is not " + std::to_string(known_version));
    return read(document.at("machine"));
  } catch (const WrongKey& wrong) {
    return fail(wrong.what);
  }
}

}  // namespace wheelscope
