// Text helpers do what their names say; nothing in a file reaches a terminal as a command.
#include "text/text.h"

#include <gtest/gtest.h>

namespace wheelscope {
namespace {

TEST(Text, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[2J\n"), "a\\x1b[2J\\x0a");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("é€😀"), "é€😀");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "an escape sequence in one character";
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "text from right to left";
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");
}

TEST(Text, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest("shwo", {"check", "show"}), "show");
  EXPECT_EQ(nearest("fnord", {"check", "show"}), "");
}

TEST(Text, Demangles) {
  EXPECT_EQ(demangle("_ZN3c105ErrorC1ESs"), "c10::Error::Error(std::string)");
  EXPECT_EQ(demangle("plain"), "plain");
  EXPECT_EQ(demangle("_Z!"), "_Z!");
}

TEST(Text, SplitsAndJoins) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(joined({"", "b"}), ", b");
  EXPECT_EQ(trim(" \t x\r\n"), "x");
  EXPECT_EQ(base_name("a/b.so"), "b.so");
  EXPECT_EQ(stem_of("a/b.so.1"), "b");
  EXPECT_EQ(folder_of("a/b.so"), "a");
  EXPECT_EQ(folder_of("b.so"), "");
  EXPECT_EQ(counted(1, "file"), "1 file");
  EXPECT_EQ(spelled("f", "V", true), "f@@V");
}

TEST(Text, SizesForPeople) {
  EXPECT_EQ(human_size(0), "0 bytes");
  EXPECT_EQ(human_size(1500), "1.5 kB");
  EXPECT_EQ(human_size(483605887), "484 MB");
}

}  // namespace
}  // namespace wheelscope
