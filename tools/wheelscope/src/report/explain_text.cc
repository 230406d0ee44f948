// Writes what `explain` has to say.
#include "report/text.h"
#include "text/text.h"

namespace wheelscope {

std::string explanation_text(const Explanation& explanation, const Style& style) {
  Lines lines(style);
  lines.add("what", style.bold(printable(explanation.what)));
  if (!explanation.provider.empty()) lines.add("whose", printable(explanation.provider));
  for (const auto& reason : explanation.because) lines.add("because", printable(reason));
  for (const auto& way : explanation.fixes) lines.add("fix", printable(way));
  if (!explanation.link.empty()) lines.add("see", explanation.link);
  return style.dim(printable(explanation.symptom.message)) + "\n" + lines.text;
}

}  // namespace wheelscope
