// SPDX-License-Identifier: Apache-2.0
// Sample sessions that repeat the studies of the papers on TensorOpt (arXiv 2004.10856), AccPar, update sharding (arXiv
// 2004.13336) and ParDNN, each with notes on what the paper states and what comes out here. They are part of the program
// (resources/studies).
#pragma once

#include <QString>
#include <span>

#include "app/session.h"
#include "core/search/batch_study.h"

namespace turnpoint::app {

struct Study {
  const char* file;   ///< without folder and suffix
  const char* title;  ///< as in the file
};
std::span<const Study> studies();
/// Where the program finds it; not a path of the file system.
QString study_path(const Study& study);
bool is_study_path(const QString& path);
Expected<Session> load_study(const QString& path);
/// The networks and batches of the ParDNN study, with the answers that came with the program.
Expected<BatchStudy> load_batch_study();

}  // namespace turnpoint::app
