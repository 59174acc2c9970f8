// SPDX-License-Identifier: Apache-2.0
// Boxes in a dock that scrolls: the wheel scrolls the dock and must not change what the pointer happens to be over.
#pragma once

#include <QWheelEvent>

namespace turnpoint::views {

template <class Editor>
class Calm : public Editor {
 public:
  using Editor::Editor;

 protected:
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }
};

}  // namespace turnpoint::views
