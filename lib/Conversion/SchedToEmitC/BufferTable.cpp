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

std::string BufferTable::beginTable(char letter, const char *rowType) {
  std::string name = letter + std::to_string(counts[letter]++);
  lines.push_back("constexpr " + std::string(rowType) + " " + name + "[] = {");
  return name;
}

std::string BufferTable::addGradientTable(llvm::ArrayRef<GradientPlace> gradients) {
  std::string name = beginTable('g', gradients.front().gradient.isColumn ? "gradient_rows" : "gradient_places");
  for (const GradientPlace &its : gradients)
    lines.push_back("    {" + std::to_string(its.elements) + ", " + cpp::listText(its.gradient.getNumbers()) + "}," +
                    commentOf(its.label));
  lines.push_back("};");
  return name;
}

cpp::Expr<rt::pair_buffers[]> BufferTable::getPairs(llvm::ArrayRef<std::pair<std::string, std::string>> pairs) {
  constexpr char letter = 'c';
  std::string text(1, letter);
  for (const auto &[out, in] : pairs)
    text += " " + out + " " + in;
  std::string &name = names[text];
  if (name.empty()) {
    name = beginTable(letter, "pair_buffers");
    for (const auto &[out, in] : pairs)
      lines.push_back("    {" + out + ", " + in + "},");
    lines.push_back("};");
  }
  return cpp::Expr<rt::pair_buffers[]>(name);
}

std::string BufferTable::addParameterTable(llvm::ArrayRef<ParameterPlaces> parameters) {
  std::string name = beginTable('p', parameters.front().weight.isColumn ? "parameter_rows" : "parameter_places");
  for (const ParameterPlaces &its : parameters) {
    std::string text = "    {" + std::to_string(its.elements);
    for (const BufferPlace &place : {its.weight, its.average, its.squares, its.gradient, its.rounded})
      text += ", " + cpp::listText(place.getNumbers());
    lines.push_back(text + "}," + commentOf(its.label));
  }
  lines.push_back("};");
  return name;
}
