// The index that pip and uv are told to use.
#include "index/settings.h"

#include <gtest/gtest.h>

namespace wheelscope {
namespace {

using Texts = std::vector<std::string>;

TEST(Settings, PipConf) {
  const auto settings = parse_pip_conf(R"(
# index-url = https://comment.example
[global]
timeout = 60
index_url = https://main.example/simple
extra-index-url =
    https://one.example
    https://two.example
[list]
index-url = https://other.example
)");
  EXPECT_EQ(settings.index, "https://main.example/simple");
  EXPECT_EQ(settings.extra, Texts({"https://one.example", "https://two.example"}));
  EXPECT_EQ(parse_pip_conf("[global]\nindex-url: a\n[install]\nindex-url=b").index, "b");
  EXPECT_EQ(parse_pip_conf("").index, "");
}

TEST(Settings, UvToml) {
  const auto settings = parse_uv_toml(R"(
extra-index-url = ["https://one.example"]
[[index]]
url = "https://two.example"
[[index]]
url = "https://main.example"
default = true
)")
                            .value();
  EXPECT_EQ(settings.index, "https://main.example");
  EXPECT_EQ(settings.extra, Texts({"https://one.example", "https://two.example"}));
  EXPECT_EQ(parse_uv_toml("[pip]\nindex-url = 'https://pip.example'")->index,
            "https://pip.example");
  EXPECT_EQ(parse_uv_toml("x = \n").error().offset, 1U);
}

}  // namespace
}  // namespace wheelscope
