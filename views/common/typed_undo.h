// SPDX-License-Identifier: Apache-2.0
// Undo in a box for text: its own as long as something typed there is not taken over yet, then the window's.
#pragma once

class QAbstractSpinBox;
class QLineEdit;

namespace turnpoint::views {

/// Qt's boxes keep the keys of undo and redo for themselves even where they have nothing left to undo, so that right
/// after a number was typed the window's undo is out of reach. From here on they keep them only while the text differs
/// from what was last taken over.
void leave_spent_undo(QAbstractSpinBox* box);
void leave_spent_undo(QLineEdit* line);

}  // namespace turnpoint::views
