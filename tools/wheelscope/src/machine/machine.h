// Reads all facts about this machine with one Python, without starting a Python.
#pragma once

#include <string>
#include <string_view>

#include "facts/machine.h"
#include "source/bytes.h"

namespace wheelscope {

// --- The computer itself, from files and from the driver's own program. `root` is put in front of
// every absolute path: a folder with the files of a machine, or empty.

// The C library that programs with this interpreter (/lib64/ld-linux-x86-64.so.2) run with; with an
// empty one, that of the machine's own programs.
void read_libc(const std::string& root, const std::string& interpreter, MachineFacts& machine);

// Reads the driver's version from the kernel module's files, or else from the file name of libcuda;
// empty if there is no driver.
std::string read_driver_version(const std::string& root, const std::string& architecture);

// Name and compute capability of each GPU, as nvidia-smi tells them in CSV.
std::vector<GpuFacts> parse_gpu_list(std::string_view csv);

// The names that the kernel module gives GPUs; compute capabilities are not among its files.
std::vector<GpuFacts> read_gpu_names(const std::string& root);

// This computer's architecture, driver and GPUs. nvidia-smi is the only program that is started,
// and only where there is a driver.
MachineFacts read_host();

// The interpreter's file that the user means: a path, a name on PATH, or the folder of an
// environment. Empty: the active virtual environment, else python3 on PATH; and if there is
// neither, the answer is empty too. A shim of pyenv is followed to the interpreter that it would
// start.
Result<std::string> find_interpreter(const std::string& given);

struct Interpreter {
  PythonFacts facts;
  std::string loader;  // the dynamic loader that it asks for
};

// Reads the interpreter's files, except tags, which depend on the C library. Fails for anything but
// a CPython 3.
Result<Interpreter> read_interpreter(const std::string& executable);

// pyenv's shims: scripts named python3 that start the interpreter which the folder, the environment
// or the user chose.
bool is_pyenv_shim(const std::string& file);

// The interpreter that the shim would start here and now.
Result<std::string> interpreter_behind_shim(const std::string& shim);

// A machine that `wheelscope machine --json` wrote on another computer: the reverse of to_json in
// report/json.h. An error says which key is wrong.
Result<MachineFacts> parse_machine(std::string_view json);

// Reads all of this machine. `python`: as for find_interpreter.
Result<MachineFacts> read_machine(const std::string& python);

}  // namespace wheelscope
