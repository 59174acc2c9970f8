// SPDX-License-Identifier: Apache-2.0
// The methods list: a row per registered method with its check box, swatch, state and cancel.
#pragma once

#include <QAbstractListModel>
#include <vector>

namespace turnpoint::views {

struct MethodRow {
  enum class State { off, waiting, running, coarse, done, failed, cancelled, refused };
  QString name;  ///< registry name
  QString title;
  QString tool_tip;  ///< paper and description
  QString notes;     ///< what its result said beside its figures; stands before the tool tip
  bool enabled = false;
  bool frontier = false;
  /// What a variant beside it may be, one choice each: words and parameters, "group: node" and "group=node".
  std::vector<std::pair<QString, QString>> variants;
  bool has_settings = false;  ///< takes parameters: "Settings..." adds a variant beside it
  State state = State::off;
  QString status;        ///< what the right side says: "0.84 s", "63%", "off", the reason
  double fraction = -1;  ///< of running work; negative where unknown
  friend bool operator==(const MethodRow&, const MethodRow&) = default;
};

class MethodsModel : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role {
    kNameRole = Qt::UserRole,
    kStateRole,
    kStatusRole,
    kFractionRole,
    kFrontierRole,
    kNotesRole,
    kSettingsRole
  };
  const MethodRow& row(const QModelIndex& index) const { return rows_[std::size_t(index.row())]; }
  using QAbstractListModel::QAbstractListModel;

  /// Same names in the same order update rows in place; else the model resets.
  void set_rows(std::vector<MethodRow> rows);
  const std::vector<MethodRow>& rows() const { return rows_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 signals:
  void method_toggled(const QString& name, bool enabled);

 private:
  std::vector<MethodRow> rows_;
};

}  // namespace turnpoint::views
