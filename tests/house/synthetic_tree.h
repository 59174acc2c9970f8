// SPDX-License-Identifier: Apache-2.0
// A small source tree in a temporary folder, for proving that the checks of rules.h find what they should.
#pragma once

#include <QTemporaryDir>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "house/rules.h"

namespace turnpoint::house {

class SyntheticTree {
 public:
  std::filesystem::path root() const { return folder_.path().toStdString(); }

  void write(const std::string& name, const std::string& text) {
    const auto path = root() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  /// A source that begins with the SPDX line and includes what is listed, from line 2 on.
  void add(const std::string& name, const std::vector<std::string>& includes = {}) {
    std::string text = "// SPDX-License-Identifier: Apache-2.0\n";
    for (const auto& include : includes) text += "#include " + include + "\n";
    write(name, text);
  }
  void remove(const std::string& name) { std::filesystem::remove_all(root() / name); }

 private:
  QTemporaryDir folder_;
};

inline std::vector<std::string> texts(const std::vector<Violation>& violations) {
  std::vector<std::string> result;
  for (const auto& violation : violations) result.push_back(violation.text());
  return result;
}

}  // namespace turnpoint::house
