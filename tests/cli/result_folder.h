// SPDX-License-Identifier: Apache-2.0
// A folder for the files of a test of the command line, and the schemas that they follow.
#pragma once

#include <QString>
#include <QTemporaryDir>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plan_io/schema_check.h"

namespace turnpoint::test {

class ResultFolder {
 protected:
  QString path(const char* name) const { return folder_.filePath(name); }
  nlohmann::json read(const char* name) const {
    std::ifstream in(path(name).toStdString());
    return nlohmann::json::parse(in, nullptr, false);
  }

  QTemporaryDir folder_;
  SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};
};

}  // namespace turnpoint::test
