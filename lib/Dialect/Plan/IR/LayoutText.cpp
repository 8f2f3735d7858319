// Layouts as text: "[8:batch, 3*64] sum(data) on host", "[257] flat(data)".
#include "windlass/Dialect/Plan/IR/PlanText.h"
#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

std::string plan::toText(LayoutAttr layout) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(layout.getDims(), os, [&](DimLayoutAttr dim) {
    llvm::interleave(
        dim.getFactors(), os,
        [&](FactorLayoutAttr factor) {
          os << factor.getSize();
          for (auto [i, axis] : llvm::enumerate(factor.getAxes()))
            os << (i == 0 ? ':' : '+') << axis.getValue();
        },
        "*");
  });
  os << ']';
  if (!layout.getFlat().empty()) {
    os << " flat(";
    llvm::interleave(layout.getFlat(), os, [&](StringAttr axis) { os << axis.getValue(); }, ",");
    os << ')';
  }
  for (auto kind : {train::ReductionKind::sum, train::ReductionKind::max, train::ReductionKind::min}) {
    SmallVector<StringRef> axes;
    for (UnreducedAttr unreduced : layout.getUnreduced())
      if (unreduced.getKind() == kind)
        axes.push_back(unreduced.getAxis().getValue());
    if (!axes.empty())
      os << ' ' << train::stringifyReductionKind(kind) << '(' << llvm::join(axes, ",") << ')';
  }
  if (layout.getMemory() != MemoryKind::device)
    os << " on " << stringifyMemoryKind(layout.getMemory());
  return text;
}

namespace {

/// Reads one layout; after a failure `error` says what is wrong.
class LayoutParser {
public:
  LayoutParser(StringRef text, RankedTensorType type, MeshAttr mesh)
      : rest(text), type(type), mesh(mesh), context(type.getContext()) {}

  LayoutAttr parse() {
    SmallVector<DimLayoutAttr> dims;
    if (!expect('['))
      return nullptr;
    if (!accept(']')) {
      do {
        DimLayoutAttr dim = parseDim(dims.size());
        if (!dim)
          return nullptr;
        dims.push_back(dim);
      } while (accept(','));
      if (!expect(']'))
        return nullptr;
    }
    if (dims.size() != static_cast<size_t>(type.getRank()))
      return fail("has " + Twine(dims.size()) + " dims, but the value has " + Twine(type.getRank()));
    SmallVector<StringAttr> flat;
    SmallVector<UnreducedAttr> unreduced;
    MemoryKind memory = MemoryKind::device;
    while (!rest.ltrim().empty()) {
      StringRef word = parseWord();
      if (word == "on") {
        std::optional<MemoryKind> kind = symbolizeMemoryKind(parseWord());
        if (!kind || !rest.ltrim().empty())
          return fail("must end with 'on' and device, host or disk");
        memory = *kind;
        break;
      }
      bool isFlat = word == "flat";
      std::optional<train::ReductionKind> kind = train::symbolizeReductionKind(word);
      if (!(kind || isFlat) || !expect('('))
        return fail("must go on with flat(..), sum(..), max(..), min(..) or on ..");
      if (isFlat && (!flat.empty() || dims.empty()))
        return fail(dims.empty() ? "is flat, but a scalar has nothing to shard" : "has flat(..) twice");
      do {
        StringAttr axis = parseAxis();
        if (!axis)
          return nullptr;
        if (isFlat)
          flat.push_back(axis);
        else
          unreduced.push_back(UnreducedAttr::get(context, axis, *kind));
      } while (accept(','));
      if (!expect(')'))
        return nullptr;
    }
    return LayoutAttr::get(context, dims, flat, unreduced, memory);
  }

  std::string error;

private:
  LayoutAttr fail(const Twine &message) {
    if (error.empty())
      error = message.str();
    return nullptr;
  }

  bool accept(char c) {
    rest = rest.ltrim();
    return rest.consume_front(StringRef(&c, 1));
  }

  bool expect(char c) {
    if (accept(c))
      return true;
    fail("lacks a '" + Twine(c) + "' before " + printable(rest, 24));
    return false;
  }

  StringRef parseWord() {
    rest = rest.ltrim();
    StringRef word = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest = rest.drop_front(word.size());
    return word;
  }

  StringAttr parseAxis() {
    StringRef name = parseWord();
    if (mesh.indexOf(name) < 0) {
      std::vector<std::string> names;
      for (AxisAttr known : mesh.getAxes())
        names.push_back(known.getName().str());
      std::string nearest = nearestOf(name, names);
      fail("names axis " + printable(name) + ", which the mesh does not have" +
           (nearest.empty() ? "" : "; the nearest is " + printable(nearest)));
      return nullptr;
    }
    if (!used.insert(name).second) {
      fail("names axis " + printable(name) + " twice");
      return nullptr;
    }
    return StringAttr::get(context, name);
  }

  DimLayoutAttr parseDim(size_t index) {
    SmallVector<FactorLayoutAttr> factors;
    int64_t product = 1;
    int64_t whole = index < static_cast<size_t>(type.getRank()) ? type.getDimSize(index) : 1;
    do {
      int64_t size = 0;
      rest = rest.ltrim();
      if (rest.consumeInteger(10, size) || size < 1 || (whole > 0 && whole % size != 0) ||
          size > INT32_MAX * int64_t(1024)) {
        fail("needs a factor of " + Twine(whole) + " before " + printable(rest, 24));
        return nullptr;
      }
      SmallVector<StringAttr> axes;
      int64_t left = size;
      if (accept(':'))
        do {
          StringAttr axis = parseAxis();
          if (!axis)
            return nullptr;
          int64_t members = mesh.sizeOf(axis.getValue());
          if (left % members != 0) {
            fail("splits a factor of " + Twine(size) + " over axis " + printable(axis.getValue()) + " of " +
                 Twine(members) + ", which does not divide it evenly");
            return nullptr;
          }
          left /= members;
          axes.push_back(axis);
        } while (accept('+'));
      product = whole > 0 && product <= whole ? product * size : product;
      factors.push_back(FactorLayoutAttr::get(context, size, axes));
    } while (accept('*'));
    if (product != whole) {
      fail("has factors that do not multiply to the dim's " + Twine(whole));
      return nullptr;
    }
    return DimLayoutAttr::get(context, factors);
  }

  StringRef rest;
  RankedTensorType type;
  MeshAttr mesh;
  MLIRContext *context;
  llvm::StringSet<> used;
};

} // namespace

llvm::Expected<LayoutAttr> plan::parseLayout(StringRef text, RankedTensorType type, MeshAttr mesh) {
  LayoutParser parser(text, type, mesh);
  LayoutAttr layout = parser.parse();
  if (!layout)
    return makeError("layout " + printable(text) + " " + parser.error);
  return layout;
}
