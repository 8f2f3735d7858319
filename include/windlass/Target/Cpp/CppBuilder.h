// Builds calls of the runtime's API with the types of the API itself: a call that the runtime would not accept
// does not compile here.
#ifndef WINDLASS_TARGET_CPP_CPPBUILDER_H
#define WINDLASS_TARGET_CPP_CPPBUILDER_H

#include "windlass/Target/Cpp/Label.h"

#include "windlass/rt/communicator.h"
#include "windlass/rt/context.h"
#include "windlass/rt/emitted.h"
#include "windlass/rt/kernels.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace windlass::cpp {

/// A C++ expression of type T: generated names and constants, never text of the model.
template <class T> class Expr {
public:
  explicit Expr(std::string text) : text(std::move(text)) {}

  std::string text;
};

using Context = Expr<rt::context>;
using Stream = Expr<rt::stream>;
using Event = Expr<rt::event>;
using Communicator = Expr<rt::communicator>;
using View = Expr<rt::view>;
using Row = Expr<const std::int64_t *>;
using Parameters = Expr<rt::updated_parameters>;
using Gradients = Expr<rt::squared_gradients>;
using Pairs = Expr<rt::collective_pairs>;
using Views = Expr<rt::buffer_views>;
using Windows = Expr<rt::windows>;
using ExpertLayer = Expr<rt::expert_layer>;

Expr<bool> boolean(bool value);
Expr<std::int32_t> int32(std::int64_t value);
Expr<std::int64_t> int64(std::int64_t value);
Expr<double> real(double value);
Expr<rt::reduction> reductionKind(rt::reduction kind);
Expr<rt::decay_mode> decayMode(rt::decay_mode mode);

/// Returns the text that names an element type in C++, e.g. `element_type::f32`.
std::string elementTypeText(mlir::Type type);
/// Returns the C++ type of a scalar: float, double, bool, std::int64_t, std::int32_t.
std::string scalarTypeText(mlir::Type type);
/// Returns a constant that says where something begins, as `{arena, offset}`.
Expr<rt::place> placeAt(std::int64_t arena, std::int64_t offset);
/// Returns a list such as `{1, 2, 3}`.
std::string listText(llvm::ArrayRef<int64_t> values);
/// Returns the definition of a buffer without its name: `({0, 64}, element_type::f32, {2, 8})`, with strides where they
/// are not row-major. `where` has the numbers of the place.
std::string bufferText(llvm::ArrayRef<int64_t> where, mlir::MemRefType type);

template <class T> struct TypeName;
template <> struct TypeName<rt::context &> {
  static constexpr char text[] = "context &";
};
template <> struct TypeName<const rt::place &> {
  static constexpr char text[] = "const place &";
};
template <> struct TypeName<const rt::slot_places &> {
  static constexpr char text[] = "const slot_places &";
};
template <> struct TypeName<rt::slot_places> {
  static constexpr char text[] = "slot_places";
};
template <> struct TypeName<rt::place> {
  static constexpr char text[] = "place";
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

/// A C++ function's name and parameters; it returns a status.
class Signature {
public:
  Signature(std::string name, bool isStatic) : name(std::move(name)), isStatic(isStatic) {}

  template <class T> void add(llvm::StringRef parameter) { parameters.push_back({TypeName<T>::text, parameter.str()}); }
  /// Whether it has a parameter of that name.
  bool has(llvm::StringRef parameter) const {
    return llvm::any_of(parameters, [&](const Parameter &each) { return each.name == parameter; });
  }
  /// Returns `status name(type parameter, ...)`; a parameter for which `isUsed` returns false is marked as one that may
  /// go unused.
  std::string getText(llvm::function_ref<bool(llvm::StringRef parameter)> isUsed) const;

private:
  struct Parameter {
    llvm::StringRef type;
    std::string name;
  };
  std::string name;
  bool isStatic;
  llvm::SmallVector<Parameter> parameters;
};

/// Builds the statements of a function's body, each on its line.
class CppBuilder {
public:
  /// Appends the lines to `lines`.
  explicit CppBuilder(std::vector<std::string> &lines) : lines(lines) {}

  /// Sets the comment of the statements that follow.
  void setLabel(Label next) { label = std::move(next); }
  /// Builds a call of the runtime function of type `Function` with arguments that it accepts.
  template <class Function> struct Call;
  template <class R, class... P> struct Call<R(P...)> {
    static Expr<R> build(llvm::StringRef name, const Expr<std::remove_cv_t<std::remove_reference_t<P>>> &...arguments) {
      return Expr<R>(callText(name, {arguments.text...}));
    }
  };

  /// Adds the statement `WINDLASS_TRY(status);`
  void check(const Expr<rt::status> &status);
  /// Adds that statement in a loop over the values of `counter` from `first` to `last`, both included; `status` refers
  /// to the counter by its name.
  void checkEach(llvm::StringRef counter, int64_t first, int64_t last, const Expr<rt::status> &status);
  /// Adds the constant `T name = value;` and returns its name as an expression.
  template <class T> Expr<T> define(llvm::StringRef name, const Expr<T> &value) {
    line(("const " + llvm::StringRef(TypeName<T>::text) + " " + name + " = " + value.text + ";").str());
    return Expr<T>(name.str());
  }
  /// Begins a block: statements up to `endIf` run where the condition holds.
  void beginIf(const Expr<bool> &condition);
  void endIf();

  /// Returns `name(first, second)`.
  static std::string callText(llvm::StringRef name, llvm::ArrayRef<std::string> arguments);

protected:
  /// Adds a statement with the label as its comment.
  void line(const std::string &text);

private:
  std::vector<std::string> &lines;
  Label label;
  unsigned depth = 1;
};

/// One function per entry point of the runtime.
class RuntimeCalls : public CppBuilder {
public:
  using CppBuilder::CppBuilder;

  /// Adds the declaration of a stream by a name.
  Stream declareStream(llvm::StringRef name, const Context &c, int64_t index);
  static Event eventOf(const Context &c, int64_t index);
  static Event rowEvent(const Context &c, const Row &row, int64_t column);
  static Communicator communicatorOf(const Context &c, int64_t index);
  /// Returns the communicator of this rank and one of its program's peers.
  static Communicator peerOf(const Context &c, int64_t index);
  /// Adds the declaration, by a name, of the views of the buffers of a context, and of a row and of slots where there
  /// are these.
  Views declareViews(llvm::StringRef name, const Context &c, const std::optional<Row> &row,
                     const std::optional<Expr<rt::slot_places>> &slots);
  /// Returns the first byte of a slot, where slot 0 begins at `first` and each has `bytes` bytes.
  static Expr<rt::place> placeOfSlot(const Expr<rt::place> &first, int64_t bytes, const Expr<std::int64_t> &slot);
  static Expr<rt::slot_places> slotsAt(const Expr<rt::place> &own, const std::optional<Expr<rt::place>> &handed);
  template <class Place> static View at(const Views &views, const Expr<rt::buffer_of<Place>> &buffer) {
    return View(callText(views.text, {buffer.text}));
  }
  static View absentView();
  /// Returns the parameters of one optimizer step. `rounded` is the element type of the rounded weights, f32 where
  /// there are none, and `gradients` that of the gradients.
  template <class Place>
  static Parameters parametersAt(const Views &views, mlir::Type rounded, mlir::Type gradients,
                                 const Expr<rt::parameter_buffers<Place>[]> &table) {
    return Parameters(
        callText("parameters_at", {views.text, elementTypeText(rounded), elementTypeText(gradients), table.text}));
  }
  /// Returns the gradients whose squares one command sums, of elements of type `element`.
  template <class Place>
  static Gradients gradientsAt(const Views &views, mlir::Type element,
                               const Expr<rt::gradient_buffer<Place>[]> &table) {
    return Gradients(callText("gradients_at", {views.text, elementTypeText(element), table.text}));
  }
  /// Returns the pairs of buffers that one collective moves.
  static Pairs pairsAt(const Views &views, const Expr<rt::pair_buffers[]> &table) {
    return Pairs(callText("pairs_at", {views.text, table.text}));
  }
  /// Returns the rank's own one of `blocks` [n, rest...]: the block whose number is the rank's coordinates on the mesh
  /// axes `axes`.
  static View ownBlock(const Context &c, const View &blocks, llvm::ArrayRef<int64_t> axes);
  /// Returns where windows lie, by lists with a number for each spatial dim.
  static Windows windows(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                         llvm::ArrayRef<int64_t> dilations, llvm::ArrayRef<int64_t> pads);
  void recordEvent(const Stream &s, const Event &e);
  void waitEvent(const Stream &s, const Event &e);

  void map(llvm::StringRef functor, const Stream &s, llvm::ArrayRef<View> outs, llvm::ArrayRef<View> ins);
  /// Adds the call of a map that adds to the outs where `adds` holds at run time.
  void mapAdding(llvm::StringRef functor, const Stream &s, const Expr<bool> &adds, llvm::ArrayRef<View> outs,
                 llvm::ArrayRef<View> ins);
  void copy(const Stream &s, const View &out, const View &in);
  void copyDisk(const Context &c, const Stream &s, const View &out, const View &in);
  void fill(const Stream &s, const View &out, double value);
  /// Adds the call that fills `out`; `table` is the C++ array with the elements.
  void constant(const Stream &s, const View &out, llvm::StringRef table);
  void iota(const Stream &s, const View &out, int64_t dim, double start, double step);
  void matmulBias(const Stream &s, const View &out, const View &a, const View &b, const View &bias, const View &added,
                  int64_t contractRank);
  void matmulBiasGelu(const Stream &s, const View &out, const View &input, const View &a, const View &b,
                      const View &bias, int64_t contractRank);
  void matmulGeluGrad(const Stream &s, const View &dx, const View &a, const View &b, const View &x,
                      int64_t contractRank);
  void matmulBiasGrad(const Stream &s, const View &out, const View &dbias, const View &a, const View &b,
                      int64_t contractRank, bool sumsB, const Expr<bool> &accumulate);
  void matmul(const Stream &s, const View &out, const View &a, const View &b, int64_t batchRank, int64_t contractRank,
              const Expr<bool> &accumulate);
  void convolution(const Stream &s, const View &y, const View &x, const View &w, const Windows &of,
                   const Expr<bool> &accumulate);
  void convolutionDataGrad(const Stream &s, const View &dx, const View &dy, const View &w, const Windows &of,
                           const Expr<bool> &accumulate);
  void convolutionWeightGrad(const Stream &s, const View &dw, const View &dy, const View &x, const Windows &of,
                             const Expr<bool> &accumulate);
  void maxPool(const Stream &s, const View &y, const View &x, const Windows &of);
  void maxPoolGrad(const Stream &s, const View &dx, const View &dy, const View &x, const Windows &of,
                   const Expr<bool> &accumulate);
  void averagePool(const Stream &s, const View &y, const View &x, const Windows &of, bool countsPads);
  void averagePoolGrad(const Stream &s, const View &dx, const View &dy, const Windows &of, bool countsPads,
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
  static ExpertLayer expertLayer(const rt::expert_layer &of);
  /// `operands`: x, choices, weights, up, down, gate and first, of which the last two may be absent.
  void experts(const Stream &s, const View &y, llvm::ArrayRef<View> operands, const ExpertLayer &of);
  /// `outs`: dx, dweights, dup, ddown and dgate, which may be absent.
  void expertsGrad(const Stream &s, llvm::ArrayRef<View> outs, const View &dy, llvm::ArrayRef<View> operands,
                   const ExpertLayer &of, const Expr<bool> &accumulate);
  void gather(const Stream &s, const View &out, const View &in, const View &indices, int64_t axis);
  void scatterAdd(const Stream &s, const View &out, const View &indices, const View &in, int64_t axis,
                  const Expr<bool> &accumulate);
  void gatherElements(const Stream &s, const View &out, const View &in, const View &indices, int64_t axis);
  void scatterElementsAdd(const Stream &s, const View &out, const View &indices, const View &in, int64_t axis,
                          const Expr<bool> &accumulate);
  void squareSum(const Stream &s, const View &out, const View &in, const Expr<bool> &accumulate);
  void squareSumList(const Stream &s, const View &out, const Gradients &gradients, const Expr<bool> &accumulate);
  /// Adds the call of an update; `operands` are in the order of the `train` operator.
  void adamw(const Stream &s, llvm::ArrayRef<View> operands, const View &rounded, rt::decay_mode decay);
  void adamwList(const Stream &s, const Parameters &parameters, llvm::ArrayRef<View> scalars, rt::decay_mode decay);
  void momentum(const Stream &s, const View &direction, llvm::ArrayRef<View> operands);
  void descend(const Stream &s, llvm::ArrayRef<View> operands, const View &rounded);
  void ema(const Stream &s, llvm::ArrayRef<View> operands);
  void lamb(const Stream &s, const View &direction, llvm::ArrayRef<View> operands, bool decays);
  void lion(const Stream &s, llvm::ArrayRef<View> operands, const View &rounded, bool decays);
  void sgd(const Stream &s, llvm::ArrayRef<View> operands, const View &rounded, bool decays);

  void allReduce(const Stream &s, const Communicator &c, const View &data, rt::reduction kind);
  void allGather(const Stream &s, const Communicator &c, const View &out, const View &in);
  void allGatherList(const Stream &s, const Communicator &c, const Pairs &pairs);
  void reduceScatter(const Stream &s, const Communicator &c, const View &out, const View &in);
  void reduceScatterList(const Stream &s, const Communicator &c, const Pairs &pairs);
  void allToAll(const Stream &s, const Communicator &c, const View &out, const View &in);
  void permute(const Stream &s, const Communicator &c, const View &out, const View &in,
               llvm::ArrayRef<int64_t> destinations);
  void gatherRows(const Stream &s, const Communicator &c, const View &out, const View &scratch, const View &in,
                  const View &choices, int64_t experts);
  void scatterRows(const Stream &s, const Communicator &c, const View &out, const View &scratch, const View &in,
                   const View &choices, int64_t experts);
  /// Adds the call that sends a message to a member of the communicator, or receives one from it.
  void send(const Stream &s, const Communicator &c, const View &in, int64_t to);
  void receive(const Stream &s, const Communicator &c, const View &out, int64_t from);
};

} // namespace windlass::cpp

#endif
