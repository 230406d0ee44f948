// Joins what the computer and the interpreter say.
#include "machine/machine.h"

#include "machine/distributions.h"
#include "machine/host.h"
#include "machine/interpreter.h"
#include "packaging/supported_tags.h"

namespace wheelscope {

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
  // The same computer runs programs of several architectures: this one counts.
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

}  // namespace wheelscope
