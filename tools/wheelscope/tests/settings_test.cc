// The index that pip and uv are told to use.
#include "index/settings.h"

#include <gtest/gtest.h>

namespace wheelscope {
namespace {

using Strings = std::vector<std::string>;

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
  EXPECT_EQ(settings.extra, Strings({"https://one.example", "https://two.example"}));
  EXPECT_EQ(parse_pip_conf("[global]\nindex-url: a\n[install]\nindex-url=b").index, "b");
  EXPECT_EQ(parse_pip_conf("").index, "");
}

TEST(Settings, WhatElsePipIsTold) {
  const auto settings = parse_pip_conf(
      "[global]\nfind-links =\n    /a\n    https://b.example/\nno-index = yes\npre=true\n"
      "proxy = http://p.example:3128\n");
  EXPECT_EQ(settings.find_links, Strings({"/a", "https://b.example/"}));
  EXPECT_TRUE(settings.no_index && settings.prereleases);
  EXPECT_EQ(settings.proxy, "http://p.example:3128");
  EXPECT_EQ(addresses_of(settings), Strings({links_page("/a"), links_page("https://b.example/")}));
  EXPECT_FALSE(parse_pip_conf("[global]\nno-index = 0").no_index);
}

TEST(Settings, UvIndexesHaveNamesAndCredentials) {
  setenv("UV_INDEX_MY_COMPANY_USERNAME", "me", 1);
  setenv("UV_INDEX_MY_COMPANY_PASSWORD", "a@b/c", 1);
  const auto settings = parse_uv_toml(R"(
[tool.uv]
find-links = ["/wheels"]
prerelease = "allow"
[[tool.uv.index]]
name = "my-company"
url = "https://one.example/simple"
[[tool.uv.index]]
url = "https://pinned.example/simple"
explicit = true
)",
                                      true)
                            .value();
  EXPECT_EQ(settings.extra, Strings({"https://me:a%40b%2fc@one.example/simple"}));
  EXPECT_EQ(settings.find_links, Strings({"/wheels"}));
  EXPECT_TRUE(settings.prereleases && settings.index.empty());
  unsetenv("UV_INDEX_MY_COMPANY_USERNAME");
  unsetenv("UV_INDEX_MY_COMPANY_PASSWORD");
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
  EXPECT_EQ(settings.extra, Strings({"https://one.example", "https://two.example"}));
  EXPECT_EQ(parse_uv_toml("[pip]\nindex-url = 'https://pip.example'")->index,
            "https://pip.example");
  EXPECT_EQ(parse_uv_toml("x = \n").error().offset, 1U);
}

}  // namespace
}  // namespace wheelscope
