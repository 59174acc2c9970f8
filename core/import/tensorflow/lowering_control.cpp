// SPDX-License-Identifier: Apache-2.0
// What passes values on: identities, branches, loops and the arrays that loops fill.
//
// A loop's body is counted once. An array of tensors is then a tensor whose first dimension is the array: reading an
// element takes a slice, writing one makes an array of one element.
#include <algorithm>

#include "core/import/tensorflow/lowering.h"

namespace turnpoint::tensorflow {

void Lowering::on_identity() {
  if (has(0)) set(0, in(0));
}

void Lowering::on_identity_n() {
  for (std::size_t i = 0; i < count(); ++i) {
    if (has(i)) set(i, in(i));
  }
}

void Lowering::on_switch() {
  if (!has(0)) return;
  set(0, in(0));
  set(1, in(0));
}

/// In a loop the only input left, the value before it. After a branch the input of the branch that is taken when the
/// predicate holds, which is the second one.
void Lowering::on_merge() {
  if (count() > 1)
    warn_once("branches that join in a Merge (first: '" + node_->name +
              "'): the one taken when the condition holds is counted");
  for (std::size_t i = count(); i-- > 0;) {
    if (has(i)) return set(0, in(i));
  }
}

void Lowering::on_none() {}

/// TensorArrayScatterV3(handle, indices, value, flow): from here on the flow is the value.
void Lowering::on_array_scatter() {
  if (has(2)) set(0, in(2));
}

void Lowering::take_first(Value& array) {
  if (array.kind != Value::Kind::tensor) return fail("reads an array whose elements have no known shape");
  MaybeShape shape = array.shape;
  if (shape && !shape->empty()) shape->erase(shape->begin());
  const auto x = plain(array);
  if (!failed())
    set(0,
        tensor(emit("Gather", {x, scalar("index", 0)}, Attributes().set("axis", std::int64_t{0})), shape, array.type));
}

void Lowering::make_array(Value& element) {
  MaybeShape shape = element.shape;
  if (shape) shape->insert(shape->begin(), 1);
  const auto x = plain(element);
  if (!failed()) set(0, tensor(emit("Unsqueeze", {x, integers("axes", {0})}), shape, element.type));
}

void Lowering::on_array_read() {
  if (!has(2)) return fail("reads an array that nothing fills");
  take_first(in(2));
}
void Lowering::on_array_write() {
  if (!has(2)) return fail("writes nothing into an array");
  make_array(in(2));
}
void Lowering::on_array_gather() {
  if (!has(2)) return fail("reads an array that nothing fills");
  set(0, in(2));
}
void Lowering::on_list_from() {
  if (has(0)) set(0, in(0));
}
void Lowering::on_list_item() {
  if (!has(0)) return fail("reads a list that nothing fills");
  take_first(in(0));
}
void Lowering::on_list_set() {
  const std::size_t slot = node_->op == "TensorListPushBack" ? 1 : 2;
  if (!has(slot)) return fail("writes nothing into a list");
  make_array(in(slot));
}
void Lowering::on_list_stack() {
  if (!has(0)) return fail("reads a list that nothing fills");
  set(0, in(0));
}

void Lowering::add_control(Table& table) {
  add_pointwise(table);
  const auto add = [&](Handler handler, std::initializer_list<const char*> ops) {
    for (const char* op : ops) table[op] = handler;
  };
  add(&Lowering::on_const, {"Const"});
  add(&Lowering::on_variable, {"VariableV2", "Variable", "VarHandleOp", "AutoReloadVariable"});
  add(&Lowering::on_placeholder, {"Placeholder", "PlaceholderV2"});
  add(&Lowering::on_missing, {"(missing)"});
  add(&Lowering::on_identity, {"Identity",
                               "RefIdentity",
                               "StopGradient",
                               "PreventGradient",
                               "Snapshot",
                               "CheckNumerics",
                               "CheckNumericsV2",
                               "EnsureShape",
                               "ReadVariableOp",
                               "PlaceholderWithDefault",
                               "Enter",
                               "RefEnter",
                               "Exit",
                               "RefExit",
                               "NextIteration",
                               "RefNextIteration",
                               "LoopCond",
                               "Print",
                               "DebugIdentity",
                               "DebugGradientIdentity",
                               "Assign",
                               "AssignAdd",
                               "AssignSub"});
  add(&Lowering::on_identity_n, {"IdentityN"});
  add(&Lowering::on_switch, {"Switch", "RefSwitch"});
  add(&Lowering::on_merge, {"Merge", "RefMerge"});
  add(&Lowering::on_none,
      {"NoOp", "Assert", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "TensorArrayV3",
       "TensorListReserve", "EmptyTensorList", "TensorListLength", "TensorArraySizeV3"});
  add(&Lowering::on_array_scatter, {"TensorArrayScatterV3"});
  add(&Lowering::on_array_read, {"TensorArrayReadV3"});
  add(&Lowering::on_array_write, {"TensorArrayWriteV3"});
  add(&Lowering::on_array_gather, {"TensorArrayGatherV3", "TensorArrayConcatV3"});
  add(&Lowering::on_list_from, {"TensorListFromTensor"});
  add(&Lowering::on_list_item, {"TensorListGetItem"});
  add(&Lowering::on_list_set, {"TensorListSetItem", "TensorListPushBack"});
  add(&Lowering::on_list_stack, {"TensorListStack", "TensorListConcatV2"});
}

}  // namespace turnpoint::tensorflow
