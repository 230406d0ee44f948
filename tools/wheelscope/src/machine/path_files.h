// The folders that Python looks for modules in besides site-packages: those of PYTHONPATH, and
// those that .pth files name, as editable installations do. The documentation of Python's module
// `site` describes these files.
#pragma once

#include <string>
#include <vector>

namespace wheelscope {

struct PathFile {
  std::vector<std::string> folders;
  bool is_complete = true;  // modules come from no other place
};

PathFile read_path_file(const std::string& path);

// The .pth files of a site-packages folder, in Python's order.
std::vector<std::string> path_files_in(const std::string& folder);

// The folders of PYTHONPATH, and site-packages with what their .pth files add, in Python's order.
std::vector<std::string> import_folders(const std::vector<std::string>& site_packages);

}  // namespace wheelscope
