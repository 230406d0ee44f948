// The messages of the loader, of Python and of CUDA that say why something does not work, found in
// a text: a line, or a whole traceback.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wheelscope {

enum class SymptomKind {
  undefined_symbol,  // undefined symbol: _ZN3c10...
  missing_version,   // version `GLIBC_2.32' not found
  missing_library,   // libcudart.so.12: cannot open shared object file
  no_kernel_image,   // no kernel image is available for execution on the device
  driver_too_old,    // CUDA driver version is insufficient for CUDA runtime version
  no_driver,         // Found no NVIDIA driver on your system
  ptx_too_new,       // the provided PTX was compiled with an unsupported toolchain
  other_machine,     // wrong ELF class: ELFCLASS64
  damaged_file,      // file too short, invalid ELF header
  python_abi,        // dynamic module does not define module export function
  numpy_abi          // numpy.core.multiarray failed to import
};

// What a message says; a text that it does not say is empty.
struct Symptom {
  SymptomKind kind = SymptomKind::undefined_symbol;
  std::string message;  // the line that says it
  std::string library;  // the file that does not load
  std::string needs;    // the library that it needs: libcudart.so.12, /lib64/libc.so.6
  std::string symbol, version;
  std::string capability;              // of the GPU: 12.0
  std::vector<std::string> supported;  // what the message says is served: 80, 90
  std::string cuda;                    // that the driver is for: 12.2
  std::string python;                  // that the module was made for: 3.10
};

// Each once, in the order of the text.
std::vector<Symptom> recognise(std::string_view text);

const char* name_of(SymptomKind kind);

}  // namespace wheelscope
