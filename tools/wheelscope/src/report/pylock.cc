// Writes pylock.toml: https://packaging.python.org/en/latest/specifications/pylock-toml/
#include "report/text.h"

#include "source/http.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// A basic string of TOML. Names and addresses have no control characters.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

}  // namespace

Result<std::string> pylock_text(const SetAnswer& answer, const PythonFacts& python,
                                const std::string& architecture) {
  std::string text =
      "# " + printable(joined(answer.asked, " ")) + "\nlock-version = \"1.0\"\nenvironments = [" +
      quoted("python_version == '" + python.minor() +
             "' and sys_platform == 'linux' and platform_machine == '" + architecture + "'") +
      "]\ncreated-by = \"wheelscope\"\n";
  for (const auto& one : answer.packages) {
    if (one.sha256.empty())
      return std::unexpected(Error{
          0, "a lock file needs the hash of " + one.file + ", which the index does not give"});
    const auto file = "{ name = " + quoted(one.file) + ", url = " + quoted(one.url) +
                      (one.size ? ", size = " + std::to_string(*one.size) : "") +
                      ", hashes = { sha256 = " + quoted(one.sha256) + " } }";
    text += "\n[[packages]]\nname = " + quoted(one.name) + "\nversion = " + quoted(one.version) +
            (one.is_source ? "\nsdist = " + file : "\nwheels = [" + file + "]") + "\n";
  }
  return text;
}

}  // namespace wheelscope
