// Splits of the first spatial dim of [batch, channels, spatial..]: parts that read rows of their neighbours, the halo.
#ifndef WINDLASS_LIB_DIALECT_TRAIN_IR_SPATIALPARTS_H
#define WINDLASS_LIB_DIALECT_TRAIN_IR_SPATIALPARTS_H

#include "OpSupport.h"

#include "windlass/Dialect/Train/IR/Windows.h"

namespace windlass::train {

/// The rows along the first spatial dim that the windows of a part read before and behind the rows of that part.
struct Halo {
  int64_t before = 0, behind = 0;
};

/// Returns the halo of equal parts of an input with `from` rows and a result with `to` rows; nothing where the dim
/// cannot be split, since `from` is not `to` times the stride, or windows at the border differ from others.
std::optional<Halo> findHalo(const Windows &windows, int64_t from, int64_t to);

/// Appends the factors of the spatial dims of an input of windows and of their result to `factors`, and their use to
/// the dims of both. The first dim may be split where it has a halo: its factor is `space`, of kind `kind`. All others
/// are whole: "from1", "to1", "from2", ...
void addSpatialDims(OpFactors &factors, ValueFactors &input, mlir::RankedTensorType inputType, ValueFactors &result,
                    mlir::RankedTensorType resultType, std::optional<Halo> halo, FactorKind kind);

/// Builds what operators with windows are split into. The parts of a tensor become samples:
/// [batch, channels, parts x rows, spatial..] is as [parts x batch, channels, rows, spatial..].
class SpatialParts {
public:
  /// The windows are those of the whole operator, from `input` to `result`; `findHalo` finds their halo. `maker`
  /// outlives this object.
  SpatialParts(const Maker &maker, int64_t parts, const Windows &windows, mlir::RankedTensorType input,
               mlir::RankedTensorType result);

  /// The pads of the windows of each part: none along the first spatial dim.
  llvm::ArrayRef<int64_t> getPads() const { return pads; }
  /// Returns the parts of `value` as samples.
  mlir::Value cut(mlir::Value value) const { return toSamples(toParts(value)); }
  /// Returns the parts of an input of the windows as samples, each with its halo; rows outside of the input are `fill`.
  mlir::Value cutWithHalo(mlir::Value input, double fill) const;
  /// Returns the sizes of an input of `sizes` in the form of `cutWithHalo`.
  Shape getSizesWithHalo(llvm::ArrayRef<int64_t> sizes) const;
  /// Returns the tensor whose parts are `samples`.
  mlir::Value join(mlir::Value samples) const { return fromParts(fromSamples(samples)); }
  /// Returns the tensor whose parts with their halos are `samples`: rows that several parts have are added up.
  mlir::Value joinWithHalo(mlir::Value samples) const;

private:
  /// From [batch, channels, parts x rows, spatial..] to [parts, batch, channels, rows, spatial..], and back.
  mlir::Value toParts(mlir::Value value) const;
  mlir::Value fromParts(mlir::Value value) const;
  /// From [parts, batch, ..] to [parts x batch, ..], and back.
  mlir::Value toSamples(mlir::Value value) const;
  mlir::Value fromSamples(mlir::Value value) const;
  /// Returns rows [first, first + count) of each of `value`'s parts.
  mlir::Value takeRows(mlir::Value value, int64_t first, int64_t count) const;

  const Maker &maker;
  int64_t parts;
  Halo halo;
  Shape pads;
};

} // namespace windlass::train

#endif
