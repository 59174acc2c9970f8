// SPDX-License-Identifier: Apache-2.0
// What a method that follows a fixed rule did not do because sizes do not divide: said beside its result, since its
// figures alone would pass for those of the whole machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/cost/transformer_roles.h"
#include "core/search/method/method.h"

namespace turnpoint::search {

/// Of data parallelism: over how many devices a micro-batch is, where that is fewer than there are. Empty: over all.
std::string undivided_batch(const Scenario& scenario, int micro_batches = 1);
/// Which of these tensor group sizes do not divide the vocabulary, so that embedding or logits stand whole on every
/// device of a group. Empty: none.
std::string undivided_vocabulary(const Model& model, const TransformerRoles& roles, const std::vector<int>& tensor);

/// The result with one more note; itself where there is none to add.
ResultPtr with_note(const ResultPtr& result, const std::string& note);
/// A method that splits the batch over all devices, with its note.
std::unique_ptr<Searcher> with_batch_note(std::unique_ptr<Searcher> searcher, int micro_batches = 1);

}  // namespace turnpoint::search
