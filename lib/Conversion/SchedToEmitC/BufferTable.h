// The table of the buffers that emitted functions name.
#ifndef WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_BUFFERTABLE_H
#define WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_BUFFERTABLE_H

#include "windlass/Target/Cpp/CppBuilder.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <string>
#include <vector>

namespace windlass {

/// The beginning of a buffer: bytes into an arena or the slot of the micro-batch, or the column of a row that has them.
struct BufferPlace {
  int64_t arena = 0, number = 0;
  bool isColumn = false, isInSlot = false;
  /// Whether the slot is the one for what a backward hands to its weight gradient.
  bool isHanded = false;

  std::vector<int64_t> getNumbers() const {
    if (isInSlot)
      return isHanded ? std::vector<int64_t>{number, 1} : std::vector{number};
    return {arena, number};
  }
};

/// The places of the buffers of one parameter in an optimizer step that updates several. `rounded` has arena -1 where
/// no weight is rounded.
struct ParameterPlaces {
  int64_t elements = 0;
  BufferPlace weight, average, squares, gradient, rounded = {-1};
  cpp::Label label;
};

/// The place of one of the gradients whose squares a command sums.
struct GradientPlace {
  int64_t elements = 0;
  BufferPlace gradient;
  cpp::Label label;
};

/// Names each buffer by an ordinal, in the order of first use: `v0`, `r0` where a row has the offset, `s0` in a slot,
/// `q0` in a slot where a row has the offset. A buffer is a place, a type, and what it holds, so that one place has
/// several names where its content changes; equal buffers of all functions have one.
class BufferTable {
public:
  template <class Place>
  cpp::Expr<rt::buffer_of<Place>> get(const BufferPlace &place, mlir::MemRefType type, const cpp::Label &holds) {
    return cpp::Expr<rt::buffer_of<Place>>(getName(place, type, holds));
  }
  /// Adds a table of parameters and returns its name; all places are of the kind `Place`.
  template <class Place>
  cpp::Expr<rt::parameter_buffers<Place>[]> addParameters(llvm::ArrayRef<ParameterPlaces> parameters) {
    return cpp::Expr<rt::parameter_buffers<Place>[]>(addParameterTable(parameters));
  }
  /// Adds a table of gradients and returns its name; all places are of the kind `Place`.
  template <class Place> cpp::Expr<rt::gradient_buffer<Place>[]> addGradients(llvm::ArrayRef<GradientPlace> gradients) {
    return cpp::Expr<rt::gradient_buffer<Place>[]>(addGradientTable(gradients));
  }
  /// Returns the table of the pairs of buffers, which `get` has named, that a collective moves: of each the name of the
  /// buffer that it fills, and of the one that it reads.
  cpp::Expr<rt::pair_buffers[]> getPairs(llvm::ArrayRef<std::pair<std::string, std::string>> pairs);
  /// Returns the definitions, one to a line.
  const std::vector<std::string> &getLines() const { return lines; }

private:
  std::string getName(const BufferPlace &place, mlir::MemRefType type, const cpp::Label &holds);
  std::string addParameterTable(llvm::ArrayRef<ParameterPlaces> parameters);
  std::string addGradientTable(llvm::ArrayRef<GradientPlace> gradients);
  /// Begins a table and returns its name; `rowType` is the C++ type of its rows.
  std::string beginTable(char letter, const char *rowType);

  std::vector<std::string> lines;
  llvm::StringMap<std::string> names; // all of a definition but the name -> the name
  /// The number of names by their letter.
  std::map<char, size_t> counts;
};

} // namespace windlass

#endif
