// Pages of an index, as JSON and as HTML.
#include "index/page.h"

#include <gtest/gtest.h>

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
  ASSERT_EQ(files.size(), 3U);  // no link at all stands for the page itself
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

}  // namespace
}  // namespace wheelscope
