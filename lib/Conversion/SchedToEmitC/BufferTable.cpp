#include "BufferTable.h"

using namespace mlir;
using namespace windlass;

static std::string commentOf(const cpp::Label &label) { return label.empty() ? "" : " // " + label.getText(); }

std::string BufferTable::getName(const BufferPlace &place, MemRefType type, const cpp::Label &holds) {
  std::string text = cpp::bufferText(place.getNumbers(), type) + ";" + commentOf(holds);
  char letter = place.isInSlot ? (place.isColumn ? 'q' : 's') : place.isColumn ? 'r' : 'v';
  std::string &name = names[letter + text];
  if (name.empty()) {
    name = letter + std::to_string(counts[letter]++);
    lines.push_back("constexpr " + std::string(place.isInSlot ? "slot_" : "") + (place.isColumn ? "row_" : "") +
                    "buffer " + name + text);
  }
  return name;
}

std::string BufferTable::addParameterTable(llvm::ArrayRef<ParameterPlaces> parameters) {
  std::string name = "p" + std::to_string(tables++);
  const char *type = parameters.front().weight.isColumn ? "parameter_rows " : "parameter_places ";
  lines.push_back("constexpr " + (type + name) + "[] = {");
  for (const ParameterPlaces &its : parameters) {
    std::string text = "    {" + std::to_string(its.elements);
    for (const BufferPlace &place : {its.weight, its.average, its.squares, its.gradient, its.rounded})
      text += ", " + cpp::listText(place.getNumbers());
    lines.push_back(text + "}," + commentOf(its.label));
  }
  lines.push_back("};");
  return name;
}
