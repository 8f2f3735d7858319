// Builds EmitC calls of the runtime's API with the types of the API itself: a call that the runtime would not accept
// does not compile here.
#ifndef WINDLASS_TARGET_CPP_CPPBUILDER_H
#define WINDLASS_TARGET_CPP_CPPBUILDER_H

#include "windlass/rt/communicator.h"
#include "windlass/rt/context.h"
#include "windlass/rt/emitted.h"
#include "windlass/rt/kernels.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/Builders.h"

#include <array>
#include <string>
#include <type_traits>

namespace windlass::cpp {

/// A C++ expression of type T: an SSA value of the EmitC function being built, or the text of a constant.
template <class T> class Expr {
public:
  explicit Expr(mlir::Value value) : value(value) {}
  explicit Expr(std::string text) : text(std::move(text)) {}

  mlir::Value value;
  std::string text;
};

using Context = Expr<rt::context>;
using Stream = Expr<rt::stream>;
using Event = Expr<rt::event>;
using Communicator = Expr<rt::communicator>;
using View = Expr<rt::view>;
using Row = Expr<const std::int64_t *>;
using Parameters = Expr<rt::updated_parameters>;

Expr<bool> boolean(bool value);
Expr<std::int32_t> int32(std::int64_t value);
Expr<std::int64_t> int64(std::int64_t value);
Expr<double> real(double value);
Expr<rt::reduction> reductionKind(rt::reduction kind);

/// The text that names an element type in C++, e.g. `element_type::f32`.
std::string elementTypeText(mlir::Type type);
/// The C++ type of a scalar: float, double, bool, std::int64_t, std::int32_t.
std::string scalarTypeText(mlir::Type type);
/// Constants that say where something begins, as `{arena, offset}` and `{arena, column}`.
Expr<rt::place> placeAt(std::int64_t arena, std::int64_t offset);
Expr<rt::row_place> rowPlaceAt(std::int64_t arena, std::int64_t column);
/// One parameter of an optimizer step for several: its elements, and where weight, state, gradient and rounded weight
/// begin; the last is at an arena of -1 where there is none.
template <class Place>
Expr<rt::parameter_buffers<Place>> parameterBuffers(std::int64_t elements, const Expr<Place> &weight,
                                                    const Expr<Place> &average, const Expr<Place> &squares,
                                                    const Expr<Place> &gradient, const Expr<Place> &rounded) {
  return Expr<rt::parameter_buffers<Place>>("{" + std::to_string(elements) + ", " + weight.text + ", " + average.text +
                                            ", " + squares.text + ", " + gradient.text + ", " + rounded.text + "}");
}
/// `{1, 2, 3}`.
std::string listText(llvm::ArrayRef<int64_t> values);

template <class T> struct TypeName;
template <> struct TypeName<rt::status> {
  static constexpr char text[] = "status";
};
template <> struct TypeName<rt::stream &> {
  static constexpr char text[] = "stream &";
};
template <> struct TypeName<rt::event &> {
  static constexpr char text[] = "event &";
};
template <> struct TypeName<rt::communicator &> {
  static constexpr char text[] = "communicator &";
};
template <> struct TypeName<rt::context &> {
  static constexpr char text[] = "context &";
};
template <> struct TypeName<rt::view> {
  static constexpr char text[] = "view";
};
template <> struct TypeName<rt::updated_parameters> {
  static constexpr char text[] = "updated_parameters";
};
template <> struct TypeName<bool> {
  static constexpr char text[] = "bool";
};
template <> struct TypeName<std::int32_t> {
  static constexpr char text[] = "std::int32_t";
};
template <> struct TypeName<std::int64_t> {
  static constexpr char text[] = "std::int64_t";
};
template <> struct TypeName<const std::int64_t *> {
  static constexpr char text[] = "row";
};

class CppBuilder {
public:
  explicit CppBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::OpBuilder &getBuilder() { return builder; }
  template <class T> mlir::Type typeOf() { return opaqueType(TypeName<T>::text); }
  mlir::Type opaqueType(llvm::StringRef text);

  /// A call of the runtime function of type `Function` with arguments that it accepts.
  template <class Function> struct Call;
  template <class R, class... P> struct Call<R(P...)> {
    static mlir::Value build(CppBuilder &b, llvm::StringRef name,
                             const Expr<std::remove_cv_t<std::remove_reference_t<P>>> &...arguments) {
      return b.callOpaque(name, b.typeOf<R>(), {Argument{arguments.value, arguments.text}...});
    }
  };

  /// The statement `WINDLASS_TRY(status)`.
  void check(mlir::Value status);
  /// A line comment; characters other than letters, digits and a few signs are replaced.
  void comment(llvm::StringRef text);
  /// `return ok_status();`
  void returnOk();

  struct Argument {
    mlir::Value value;
    std::string text;
  };
  mlir::Value callOpaque(llvm::StringRef name, mlir::Type result, llvm::ArrayRef<Argument> arguments,
                         llvm::ArrayRef<std::string> templateArguments = {});

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// One function per entry point of the runtime.
class RuntimeCalls : public CppBuilder {
public:
  using CppBuilder::CppBuilder;

  Stream streamOf(const Context &c, int64_t index);
  Event eventOf(const Context &c, int64_t index);
  Event rowEvent(const Context &c, const Row &row, int64_t column);
  Communicator communicatorOf(const Context &c, int64_t index);
  /// The communicator of this rank and one of its program's peers.
  Communicator peerOf(const Context &c, int64_t index);
  View viewAt(const Context &c, const Expr<rt::place> &where, mlir::MemRefType type);
  View rowView(const Context &c, const Row &row, const Expr<rt::row_place> &where, mlir::MemRefType type);
  View absentView();
  /// Parameters of one optimizer step. `rounded` is the element type of the rounded weights, f32 where there are none.
  Parameters parametersAt(const Context &c, mlir::Type rounded, llvm::ArrayRef<Expr<rt::parameter_places>> places);
  Parameters rowParameters(const Context &c, const Row &row, mlir::Type rounded,
                           llvm::ArrayRef<Expr<rt::parameter_rows>> places);
  /// Of blocks [n, rest...] the one that the rank's coordinates on these axes of the mesh number.
  View ownBlock(const Context &c, const View &blocks, llvm::ArrayRef<int64_t> axes);
  Expr<bool> addsToEarlier(const Expr<std::int64_t> &index);
  void recordEvent(const Stream &s, const Event &e);
  void waitEvent(const Stream &s, const Event &e);

  void map(llvm::StringRef functor, const Stream &s, llvm::ArrayRef<View> outs, llvm::ArrayRef<View> ins);
  /// The same, adding to the outs where `adds` holds at run time.
  void mapAdding(llvm::StringRef functor, const Stream &s, const Expr<bool> &adds, llvm::ArrayRef<View> outs,
                 llvm::ArrayRef<View> ins);
  void copy(const Stream &s, const View &out, const View &in);
  void fill(const Stream &s, const View &out, double value);
  /// `table` is the C++ array with the elements.
  void constant(const Stream &s, const View &out, llvm::StringRef table);
  void iota(const Stream &s, const View &out, int64_t dim, double start, double step);
  void matmulBias(const Stream &s, const View &out, const View &a, const View &b, const View &bias, const View &added,
                  int64_t contractRank);
  void matmulBiasGelu(const Stream &s, const View &out, const View &input, const View &a, const View &b,
                      const View &bias, int64_t contractRank);
  void matmulBiasGrad(const Stream &s, const View &out, const View &dbias, const View &a, const View &b,
                      int64_t contractRank, bool sumsB, const Expr<bool> &accumulate);
  void matmul(const Stream &s, const View &out, const View &a, const View &b, int64_t batchRank, int64_t contractRank,
              const Expr<bool> &accumulate);
  void reduce(const Stream &s, const View &out, const View &in, int64_t reducedRank, rt::reduction kind,
              const Expr<bool> &accumulate);
  void softmax(const Stream &s, const View &out, const View &in);
  void softmaxGrad(const Stream &s, const View &dx, const View &y, const View &dy);
  void layerNorm(const Stream &s, const View &y, const View &mean, const View &rstd, const View &x, const View &scale,
                 const View &bias, double epsilon);
  void layerNormGrad(const Stream &s, const View &dx, const View &dscale, const View &dbias, const View &dy,
                     const View &x, const View &scale, const View &mean, const View &rstd, const View &added,
                     const Expr<bool> &accumulate);
  void rmsNorm(const Stream &s, const View &y, const View &rstd, const View &x, const View &scale, double epsilon);
  void rmsNormGrad(const Stream &s, const View &dx, const View &dscale, const View &dy, const View &x,
                   const View &scale, const View &rstd, const View &added, const Expr<bool> &accumulate);
  void addLayerNorm(const Stream &s, llvm::ArrayRef<View> outs, const View &a, const View &b, const View &c,
                    const View &scale, const View &bias, double epsilon);
  void addRmsNorm(const Stream &s, llvm::ArrayRef<View> outs, const View &a, const View &b, const View &c,
                  const View &scale, double epsilon);
  void rotary(const Stream &s, const View &y, const View &x, const View &cosine, const View &sine, bool transposed);
  void dropout(const Stream &s, const View &y, const View &x, const View &keys, double ratio);
  void attention(const Stream &s, const View &out, const View &lse, const View &q, const View &k, const View &v,
                 const View &mask, double scale, bool causal);
  void attentionGrad(const Stream &s, const View &dq, const View &dk, const View &dv, const View &dout, const View &q,
                     const View &k, const View &v, const View &mask, const View &out, const View &lse, double scale,
                     bool causal);
  void softmaxCrossEntropy(const Stream &s, const View &sum, const View &count, const View &lse, const View &logits,
                           const View &labels, int64_t ignoreIndex);
  void softmaxCrossEntropyGrad(const Stream &s, const View &dlogits, const View &dsum, const View &logits,
                               const View &labels, const View &lse, int64_t ignoreIndex);
  void softmaxCrossEntropyWithGrad(const Stream &s, const View &sum, const View &logits, const View &dsum,
                                   const View &labels, int64_t ignoreIndex);
  void countLabels(const Stream &s, const View &count, const View &labels, int64_t ignoreIndex);
  void embedding(const Stream &s, const View &out, const View &table, const View &ids, const View &first,
                 int64_t allRows);
  void embeddingGrad(const Stream &s, const View &dtable, const View &ids, const View &dout, const View &first,
                     int64_t allRows, const Expr<bool> &accumulate);
  void gather(const Stream &s, const View &out, const View &in, const View &indices, int64_t axis);
  void scatterAdd(const Stream &s, const View &out, const View &indices, const View &in, int64_t axis,
                  const Expr<bool> &accumulate);
  void gatherElements(const Stream &s, const View &out, const View &in, const View &indices, int64_t axis);
  void scatterElementsAdd(const Stream &s, const View &out, const View &indices, const View &in, int64_t axis,
                          const Expr<bool> &accumulate);
  void squareSum(const Stream &s, const View &out, const View &in, const Expr<bool> &accumulate);
  /// Of the operands in the order of `train.adamw` and `train.sgd`.
  void adamw(const Stream &s, llvm::ArrayRef<View> operands, const View &rounded, bool decays);
  void adamwList(const Stream &s, const Parameters &parameters, llvm::ArrayRef<View> scalars, bool decays);
  void sgd(const Stream &s, llvm::ArrayRef<View> operands, const View &rounded, bool decays);

  void allReduce(const Stream &s, const Communicator &c, const View &data, rt::reduction kind);
  void allGather(const Stream &s, const Communicator &c, const View &out, const View &in);
  void reduceScatter(const Stream &s, const Communicator &c, const View &out, const View &in);
  void allToAll(const Stream &s, const Communicator &c, const View &out, const View &in);
  void permute(const Stream &s, const Communicator &c, const View &out, const View &in,
               llvm::ArrayRef<int64_t> destinations);
  /// A message to a member of the communicator, or from it.
  void send(const Stream &s, const Communicator &c, const View &in, int64_t to);
  void receive(const Stream &s, const Communicator &c, const View &out, int64_t from);
};

} // namespace windlass::cpp

#endif
