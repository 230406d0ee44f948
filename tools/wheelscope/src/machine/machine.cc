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
  // Reads a value of the member's type; null is an empty text or no value.
  void get(std::string& text) const {
    if (json_.is_null()) return;
    if (!json_.is_string()) throw WrongKey{name_ + " is no text"};
    text = json_.get<std::string>();
  }
  void get(bool& truth) const {
    if (!json_.is_boolean()) throw WrongKey{name_ + " is neither true nor false"};
    truth = json_.get<bool>();
  }
  void get(int& number) const {
    if (!json_.is_number_integer()) throw WrongKey{name_ + " is no number"};
    number = json_.get<int>();
  }
  template <class T>
  void get(std::optional<T>& value) const {
    if (!json_.is_null()) get(value.emplace());
  }
  template <class T>
  void get(std::vector<T>& list) const {
    if (!json_.is_array()) throw WrongKey{name_ + " is no list"};
    for (std::size_t i = 0; i < json_.size(); ++i)
      Place(json_[i], name_ + "[" + std::to_string(i) + "]").get(list.emplace_back());
  }

#define READ_FIELD(name) at(#name).get(to.name);
#define READ_FIELDS(Type, ...) \
  void get(Type& to) const { NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(READ_FIELD, __VA_ARGS__)) }

  READ_FIELDS(GpuFacts, name, capability)
  READ_FIELDS(PythonFacts, executable, version, abi, prefix, base_prefix, architecture,
              site_packages, tags)
  READ_FIELDS(TorchFacts, path, version, cuda, rocm, cxx11_abi)
  READ_FIELDS(CudaLibraryFacts, name, path, distribution, version)
  READ_FIELDS(MachineFacts, architecture, libc, libc_version, driver, gpus, python, torch,
              cuda_libraries, notes)

 private:
  const Json& json_;
  std::string name_;
};

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
  const auto folders = import_folders(facts.site_packages);
  machine.torch = find_torch(folders);
  machine.cuda_libraries = find_cuda_libraries(folders, machine.torch);
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
    int version = 0;
    document.at("schema_version").get(version);
    if (version != known_version)
      return fail("its schema_version is not " + std::to_string(known_version));
    MachineFacts machine;
    document.at("machine").get(machine);
    return machine;
  } catch (const WrongKey& wrong) {
    return fail(wrong.what);
  }
}

}  // namespace wheelscope
