// SPDX-License-Identifier: Apache-2.0
// What a file is, by its first bytes and its name.
#pragma once

#include <QString>

namespace turnpoint::app {

/// `settings`: of a training framework, whose split is added to the user's own (core/import/files/training_settings.h).
enum class FileKind { session, hardware, report, log, settings, model };

/// What cannot be read or told is taken for a model, whose importers say what is wrong with it.
FileKind kind_of_file(const QString& path);

/// What the file seems to be, "a plan", "a configuration of Hugging Face"; empty where nothing tells.
QString describe_file(const QString& path);

}  // namespace turnpoint::app
