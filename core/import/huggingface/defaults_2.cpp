#include "core/import/huggingface/family_table.h"
namespace turnpoint::huggingface {
std::vector<FamilyDefaults> defaults_2() { return {}; }
}
