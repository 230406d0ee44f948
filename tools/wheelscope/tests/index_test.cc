// Tests pages of an index, as JSON and as HTML, and the index that pip and uv are configured for.
#include "index/candidates.h"

#include <gtest/gtest.h>

#include "index/settings.h"

namespace wheelscope {
namespace {

constexpr const char* url = "https://index.example/simple/sample/";

TEST(Page, Json) {
  const auto files = parse_index_page(R"({"files": [
      {"filename": "sample-1.0-py3-none-any.whl", "url": "../../f/sample-1.0-py3-none-any.whl",
       "hashes": {"sha256": "AB"}, "size": 7, "requires-python": ">=3.8", "yanked": "bad",
       "core-metadata": {"sha256": "00"}},
      {"filename": "sample-1.0.tar.gz", "url": "https://else.example/s.tar.gz", "yanked": false,
       "core-metadata": false},
      {"filename": "x.whl", "url": "file:///etc/passwd"}, 7, {"filename": "no-url.whl"}]})",
                                      "application/vnd.pypi.simple.v1+json", url)
                         .value();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].url, "https://index.example/f/sample-1.0-py3-none-any.whl");
  EXPECT_EQ(files[0].sha256, "ab");
  EXPECT_EQ(files[0].size, 7U);
  EXPECT_EQ(files[0].requires_python, ">=3.8");
  EXPECT_TRUE(files[0].yanked && files[0].has_metadata);
  EXPECT_EQ(files[1].url, "https://else.example/s.tar.gz");
  EXPECT_FALSE(files[1].yanked || files[1].has_metadata);
}

TEST(Page, Html) {
  const auto files = parse_index_page(
                         "<!-- <a -->\n<a href=\"/f/a-1-py3-none-any.whl#sha256=AB\" "
                         "data-requires-python=\"&gt;=3.8,&#60;4&#x2c;!=3.9\" data-yanked "
                         "data-core-metadata='true' title=\"a > b\">a-1-py3-none-any.whl</a>"
                         "<abbr>x</abbr><A\nHREF=b.zip>b.zip</A><a name='x'>no</a><a href='c",
                         "text/html", url)
                         .value();
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].name, "a-1-py3-none-any.whl");
  EXPECT_EQ(files[0].url, "https://index.example/f/a-1-py3-none-any.whl");
  EXPECT_EQ(files[0].sha256, "ab");
  EXPECT_EQ(files[0].requires_python, ">=3.8,<4,!=3.9");
  EXPECT_TRUE(files[0].yanked && files[0].has_metadata);
  EXPECT_EQ(files[1].url, "https://index.example/simple/sample/b.zip");
}

TEST(Page, OthersAreRefused) {
  EXPECT_FALSE(parse_index_page("[]", "application/json", url));
  EXPECT_FALSE(parse_index_page("{", "application/json", url));
  EXPECT_FALSE(parse_index_page("hello", "text/plain", url));
  EXPECT_TRUE(parse_index_page("", "text/html", url)->empty());
}

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
  EXPECT_EQ(indexes_of(settings), Strings());
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
