// The runtime's entry points as typed calls.
#include "windlass/Target/Cpp/CppBuilder.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

// The runtime function's own type checks the arguments.
#define WINDLASS_RUNTIME_STATEMENT(function, ...) check(Call<decltype(rt::function)>::build(#function, __VA_ARGS__))

Stream RuntimeCalls::declareStream(llvm::StringRef name, const Context &c, int64_t index) {
  line(("stream &" + name + " = ").str() + callText("stream_of", {c.text, std::to_string(index)}) + ";");
  return Stream(name.str());
}

Event RuntimeCalls::eventOf(const Context &c, int64_t index) {
  return Event(callText("event_of", {c.text, std::to_string(index)}));
}

Event RuntimeCalls::rowEvent(const Context &c, const Row &row, int64_t column) {
  return Event(callText("row_event", {c.text, row.text, std::to_string(column)}));
}

Communicator RuntimeCalls::communicatorOf(const Context &c, int64_t index) {
  return Communicator(callText("communicator_of", {c.text, std::to_string(index)}));
}

Communicator RuntimeCalls::peerOf(const Context &c, int64_t index) {
  return Communicator(callText("peer_of", {c.text, std::to_string(index)}));
}

Views RuntimeCalls::declareViews(llvm::StringRef name, const Context &c, const std::optional<Row> &row,
                                 const std::optional<Expr<rt::slot_places>> &slots) {
  std::string rowText = row ? ", " + row->text : slots ? ", nullptr" : "";
  line(("const buffer_views " + name + "(").str() + c.text + rowText + (slots ? ", " + slots->text : "") + ");");
  return Views(name.str());
}

Expr<rt::place> RuntimeCalls::placeOfSlot(const Expr<rt::place> &first, int64_t bytes, const Expr<std::int64_t> &slot) {
  return Call<decltype(rt::place_of_slot)>::build("place_of_slot", first, int64(bytes), slot);
}

Expr<rt::slot_places> RuntimeCalls::slotsAt(const Expr<rt::place> &own, const std::optional<Expr<rt::place>> &handed) {
  return Expr<rt::slot_places>(handed ? callText("slots_at", {own.text, handed->text})
                                      : callText("slots_at", {own.text}));
}

View RuntimeCalls::absentView() { return View(callText("absent_view", {})); }

View RuntimeCalls::ownBlock(const Context &c, const View &blocks, llvm::ArrayRef<int64_t> axes) {
  return View(callText("own_block", {c.text, blocks.text, listText(axes)}));
}

Windows RuntimeCalls::windows(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
                              llvm::ArrayRef<int64_t> dilations, llvm::ArrayRef<int64_t> pads) {
  return Windows("windows{" + listText(sizes) + ", " + listText(strides) + ", " + listText(dilations) + ", " +
                 listText(pads) + "}");
}

void RuntimeCalls::recordEvent(const Stream &s, const Event &e) { WINDLASS_RUNTIME_STATEMENT(record_event, s, e); }

void RuntimeCalls::waitEvent(const Stream &s, const Event &e) { WINDLASS_RUNTIME_STATEMENT(wait_event, s, e); }

/// Appends views as arguments, outs before ins.
static void appendViews(llvm::SmallVectorImpl<std::string> &arguments, llvm::ArrayRef<View> outs,
                        llvm::ArrayRef<View> ins) {
  for (const View &out : outs)
    arguments.push_back(out.text);
  for (const View &in : ins)
    arguments.push_back(in.text);
}

void RuntimeCalls::map(llvm::StringRef functor, const Stream &s, llvm::ArrayRef<View> outs, llvm::ArrayRef<View> ins) {
  llvm::SmallVector<std::string> arguments = {s.text};
  appendViews(arguments, outs, ins);
  check(Expr<rt::status>(callText(("map_views<" + functor + ">").str(), arguments)));
}

void RuntimeCalls::mapAdding(llvm::StringRef functor, const Stream &s, const Expr<bool> &adds,
                             llvm::ArrayRef<View> outs, llvm::ArrayRef<View> ins) {
  llvm::SmallVector<std::string> arguments = {s.text, adds.text};
  appendViews(arguments, outs, ins);
  check(Expr<rt::status>(callText(("map_views_adding<" + functor + ">").str(), arguments)));
}

void RuntimeCalls::copy(const Stream &s, const View &out, const View &in) {
  WINDLASS_RUNTIME_STATEMENT(copy, s, out, in);
}

void RuntimeCalls::copyDisk(const Context &c, const Stream &s, const View &out, const View &in) {
  WINDLASS_RUNTIME_STATEMENT(copy_disk, c, s, out, in);
}

void RuntimeCalls::fill(const Stream &s, const View &out, double value) {
  WINDLASS_RUNTIME_STATEMENT(fill, s, out, real(value));
}

void RuntimeCalls::constant(const Stream &s, const View &out, llvm::StringRef table) {
  WINDLASS_RUNTIME_STATEMENT(constant, s, out, Expr<const void *>(table.str()));
}

void RuntimeCalls::iota(const Stream &s, const View &out, int64_t dim, double start, double step) {
  WINDLASS_RUNTIME_STATEMENT(iota, s, out, int32(dim), real(start), real(step));
}

void RuntimeCalls::matmul(const Stream &s, const View &out, const View &a, const View &b, int64_t batchRank,
                          int64_t contractRank, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(matmul, s, out, a, b, int32(batchRank), int32(contractRank), accumulate);
}

void RuntimeCalls::matmulBias(const Stream &s, const View &out, const View &a, const View &b, const View &bias,
                              const View &added, int64_t contractRank) {
  WINDLASS_RUNTIME_STATEMENT(matmul_bias, s, out, a, b, bias, added, int32(contractRank));
}

void RuntimeCalls::matmulBiasGelu(const Stream &s, const View &out, const View &input, const View &a, const View &b,
                                  const View &bias, int64_t contractRank) {
  WINDLASS_RUNTIME_STATEMENT(matmul_bias_gelu, s, out, input, a, b, bias, int32(contractRank));
}

void RuntimeCalls::matmulGeluGrad(const Stream &s, const View &dx, const View &a, const View &b, const View &x,
                                  int64_t contractRank) {
  WINDLASS_RUNTIME_STATEMENT(matmul_gelu_grad, s, dx, a, b, x, int32(contractRank));
}

void RuntimeCalls::matmulBiasGrad(const Stream &s, const View &out, const View &dbias, const View &a, const View &b,
                                  int64_t contractRank, bool sumsB, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(matmul_bias_grad, s, out, dbias, a, b, int32(contractRank), boolean(sumsB), accumulate);
}

void RuntimeCalls::convolution(const Stream &s, const View &y, const View &x, const View &w, const Windows &of,
                               const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(convolution, s, y, x, w, of, accumulate);
}

void RuntimeCalls::convolutionDataGrad(const Stream &s, const View &dx, const View &dy, const View &w,
                                       const Windows &of, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(convolution_data_grad, s, dx, dy, w, of, accumulate);
}

void RuntimeCalls::convolutionWeightGrad(const Stream &s, const View &dw, const View &dy, const View &x,
                                         const Windows &of, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(convolution_weight_grad, s, dw, dy, x, of, accumulate);
}

void RuntimeCalls::maxPool(const Stream &s, const View &y, const View &x, const Windows &of) {
  WINDLASS_RUNTIME_STATEMENT(max_pool, s, y, x, of);
}

void RuntimeCalls::maxPoolGrad(const Stream &s, const View &dx, const View &dy, const View &x, const Windows &of,
                               const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(max_pool_grad, s, dx, dy, x, of, accumulate);
}

void RuntimeCalls::averagePool(const Stream &s, const View &y, const View &x, const Windows &of, bool countsPads) {
  WINDLASS_RUNTIME_STATEMENT(average_pool, s, y, x, of, boolean(countsPads));
}

void RuntimeCalls::averagePoolGrad(const Stream &s, const View &dx, const View &dy, const Windows &of, bool countsPads,
                                   const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(average_pool_grad, s, dx, dy, of, boolean(countsPads), accumulate);
}

void RuntimeCalls::reduce(const Stream &s, const View &out, const View &in, int64_t reducedRank, rt::reduction kind,
                          const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(reduce, s, out, in, int32(reducedRank), reductionKind(kind), accumulate);
}

void RuntimeCalls::softmax(const Stream &s, const View &out, const View &in) {
  WINDLASS_RUNTIME_STATEMENT(softmax, s, out, in);
}

void RuntimeCalls::softmaxGrad(const Stream &s, const View &dx, const View &y, const View &dy) {
  WINDLASS_RUNTIME_STATEMENT(softmax_grad, s, dx, y, dy);
}

void RuntimeCalls::layerNorm(const Stream &s, const View &y, const View &mean, const View &rstd, const View &x,
                             const View &scale, const View &bias, double epsilon) {
  WINDLASS_RUNTIME_STATEMENT(layer_norm, s, y, mean, rstd, x, scale, bias, real(epsilon));
}

void RuntimeCalls::layerNormGrad(const Stream &s, const View &dx, const View &dscale, const View &dbias, const View &dy,
                                 const View &x, const View &scale, const View &mean, const View &rstd,
                                 const View &added, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(layer_norm_grad, s, dx, dscale, dbias, dy, x, scale, mean, rstd, added, accumulate);
}

void RuntimeCalls::rmsNorm(const Stream &s, const View &y, const View &rstd, const View &x, const View &scale,
                           double epsilon) {
  WINDLASS_RUNTIME_STATEMENT(rms_norm, s, y, rstd, x, scale, real(epsilon));
}

void RuntimeCalls::rmsNormGrad(const Stream &s, const View &dx, const View &dscale, const View &dy, const View &x,
                               const View &scale, const View &rstd, const View &added, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(rms_norm_grad, s, dx, dscale, dy, x, scale, rstd, added, accumulate);
}

void RuntimeCalls::addLayerNorm(const Stream &s, llvm::ArrayRef<View> outs, const View &a, const View &b, const View &c,
                                const View &scale, const View &bias, double epsilon) {
  WINDLASS_RUNTIME_STATEMENT(add_layer_norm, s, outs[0], outs[1], outs[2], outs[3], a, b, c, scale, bias,
                             real(epsilon));
}

void RuntimeCalls::addRmsNorm(const Stream &s, llvm::ArrayRef<View> outs, const View &a, const View &b, const View &c,
                              const View &scale, double epsilon) {
  WINDLASS_RUNTIME_STATEMENT(add_rms_norm, s, outs[0], outs[1], outs[2], a, b, c, scale, real(epsilon));
}

void RuntimeCalls::rotary(const Stream &s, const View &y, const View &x, const View &cosine, const View &sine,
                          bool transposed) {
  WINDLASS_RUNTIME_STATEMENT(rotary, s, y, x, cosine, sine, boolean(transposed));
}

void RuntimeCalls::dropout(const Stream &s, const View &y, const View &x, const View &keys, double ratio) {
  WINDLASS_RUNTIME_STATEMENT(dropout, s, y, x, keys, real(ratio));
}

void RuntimeCalls::attention(const Stream &s, const View &out, const View &lse, const View &q, const View &k,
                             const View &v, const View &mask, double scale, bool causal) {
  WINDLASS_RUNTIME_STATEMENT(attention, s, out, lse, q, k, v, mask, real(scale), boolean(causal));
}

void RuntimeCalls::attentionGrad(const Stream &s, const View &dq, const View &dk, const View &dv, const View &dout,
                                 const View &q, const View &k, const View &v, const View &mask, const View &out,
                                 const View &lse, double scale, bool causal) {
  WINDLASS_RUNTIME_STATEMENT(attention_grad, s, dq, dk, dv, dout, q, k, v, mask, out, lse, real(scale),
                             boolean(causal));
}

void RuntimeCalls::softmaxCrossEntropy(const Stream &s, const View &sum, const View &count, const View &lse,
                                       const View &logits, const View &labels, int64_t ignoreIndex) {
  WINDLASS_RUNTIME_STATEMENT(softmax_cross_entropy, s, sum, count, lse, logits, labels, int64(ignoreIndex));
}

void RuntimeCalls::softmaxCrossEntropyGrad(const Stream &s, const View &dlogits, const View &dsum, const View &logits,
                                           const View &labels, const View &lse, int64_t ignoreIndex) {
  WINDLASS_RUNTIME_STATEMENT(softmax_cross_entropy_grad, s, dlogits, dsum, logits, labels, lse, int64(ignoreIndex));
}

void RuntimeCalls::softmaxCrossEntropyWithGrad(const Stream &s, const View &sum, const View &logits, const View &dsum,
                                               const View &labels, int64_t ignoreIndex) {
  WINDLASS_RUNTIME_STATEMENT(softmax_cross_entropy_with_grad, s, sum, logits, dsum, labels, int64(ignoreIndex));
}

void RuntimeCalls::countLabels(const Stream &s, const View &count, const View &labels, int64_t ignoreIndex) {
  WINDLASS_RUNTIME_STATEMENT(count_labels, s, count, labels, int64(ignoreIndex));
}

void RuntimeCalls::embedding(const Stream &s, const View &out, const View &table, const View &ids, const View &first,
                             int64_t allRows) {
  WINDLASS_RUNTIME_STATEMENT(embedding, s, out, table, ids, first, int64(allRows));
}

void RuntimeCalls::embeddingGrad(const Stream &s, const View &dtable, const View &ids, const View &dout,
                                 const View &first, int64_t allRows, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(embedding_grad, s, dtable, ids, dout, first, int64(allRows), accumulate);
}

ExpertLayer RuntimeCalls::expertLayer(const rt::expert_layer &of) {
  constexpr llvm::StringLiteral names[] = {"relu", "gelu_erf", "gelu_tanh", "silu"};
  return ExpertLayer(("expert_layer{expert_activation::" + names[static_cast<size_t>(of.activation)] +
                      (of.gated ? ", true" : ", false") + (of.inputs_first ? ", true, " : ", false, ") +
                      llvm::Twine(of.all_rows) + "}")
                         .str());
}

void RuntimeCalls::experts(const Stream &s, const View &y, llvm::ArrayRef<View> operands, const ExpertLayer &of) {
  WINDLASS_RUNTIME_STATEMENT(experts, s, y, operands[0], operands[1], operands[2], operands[3], operands[4],
                             operands[5], operands[6], of);
}

void RuntimeCalls::expertsGrad(const Stream &s, llvm::ArrayRef<View> outs, const View &dy,
                               llvm::ArrayRef<View> operands, const ExpertLayer &of, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(experts_grad, s, outs[0], outs[1], outs[2], outs[3], outs[4], dy, operands[0], operands[1],
                             operands[2], operands[3], operands[4], operands[5], operands[6], of, accumulate);
}

void RuntimeCalls::gather(const Stream &s, const View &out, const View &in, const View &indices, int64_t axis) {
  WINDLASS_RUNTIME_STATEMENT(gather, s, out, in, indices, int32(axis));
}

void RuntimeCalls::scatterAdd(const Stream &s, const View &out, const View &indices, const View &in, int64_t axis,
                              const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(scatter_add, s, out, indices, in, int32(axis), accumulate);
}

void RuntimeCalls::gatherElements(const Stream &s, const View &out, const View &in, const View &indices, int64_t axis) {
  WINDLASS_RUNTIME_STATEMENT(gather_elements, s, out, in, indices, int32(axis));
}

void RuntimeCalls::scatterElementsAdd(const Stream &s, const View &out, const View &indices, const View &in,
                                      int64_t axis, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(scatter_elements_add, s, out, indices, in, int32(axis), accumulate);
}

void RuntimeCalls::squareSum(const Stream &s, const View &out, const View &in, const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(square_sum, s, out, in, accumulate);
}

void RuntimeCalls::squareSumList(const Stream &s, const View &out, const Gradients &gradients,
                                 const Expr<bool> &accumulate) {
  WINDLASS_RUNTIME_STATEMENT(square_sum_list, s, out, gradients, accumulate);
}

void RuntimeCalls::adamw(const Stream &s, llvm::ArrayRef<View> o, const View &rounded, rt::decay_mode decay) {
  WINDLASS_RUNTIME_STATEMENT(adamw, s, o[0], o[1], o[2], rounded, o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10],
                             o[11], decayMode(decay));
}

void RuntimeCalls::adamwList(const Stream &s, const Parameters &parameters, llvm::ArrayRef<View> scalars,
                             rt::decay_mode decay) {
  WINDLASS_RUNTIME_STATEMENT(adamw_list, s, parameters, scalars[0], scalars[1], scalars[2], scalars[3], scalars[4],
                             scalars[5], scalars[6], scalars[7], decayMode(decay));
}

void RuntimeCalls::ema(const Stream &s, llvm::ArrayRef<View> o) {
  WINDLASS_RUNTIME_STATEMENT(ema, s, o[0], o[1], o[2]);
}

void RuntimeCalls::momentum(const Stream &s, const View &direction, llvm::ArrayRef<View> o) {
  WINDLASS_RUNTIME_STATEMENT(momentum, s, direction, o[0], o[1], o[2], o[3]);
}

void RuntimeCalls::descend(const Stream &s, llvm::ArrayRef<View> o, const View &rounded) {
  WINDLASS_RUNTIME_STATEMENT(descend, s, o[0], rounded, o[1], o[2], o[3]);
}

void RuntimeCalls::lamb(const Stream &s, const View &direction, llvm::ArrayRef<View> o, bool decays) {
  WINDLASS_RUNTIME_STATEMENT(lamb, s, direction, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10],
                             boolean(decays));
}

void RuntimeCalls::lion(const Stream &s, llvm::ArrayRef<View> o, const View &rounded, bool decays) {
  WINDLASS_RUNTIME_STATEMENT(lion, s, o[0], o[1], rounded, o[2], o[3], o[4], o[5], o[6], o[7], boolean(decays));
}

void RuntimeCalls::sgd(const Stream &s, llvm::ArrayRef<View> o, const View &rounded, bool decays) {
  WINDLASS_RUNTIME_STATEMENT(sgd, s, o[0], o[1], rounded, o[2], o[3], o[4], o[5], o[6], boolean(decays));
}

void RuntimeCalls::allReduce(const Stream &s, const Communicator &c, const View &data, rt::reduction kind) {
  WINDLASS_RUNTIME_STATEMENT(all_reduce, s, c, data, reductionKind(kind));
}

void RuntimeCalls::allGather(const Stream &s, const Communicator &c, const View &out, const View &in) {
  WINDLASS_RUNTIME_STATEMENT(all_gather, s, c, out, in);
}

void RuntimeCalls::allGatherList(const Stream &s, const Communicator &c, const Pairs &pairs) {
  WINDLASS_RUNTIME_STATEMENT(all_gather_list, s, c, pairs);
}

void RuntimeCalls::reduceScatter(const Stream &s, const Communicator &c, const View &out, const View &in) {
  WINDLASS_RUNTIME_STATEMENT(reduce_scatter, s, c, out, in);
}

void RuntimeCalls::reduceScatterList(const Stream &s, const Communicator &c, const Pairs &pairs) {
  WINDLASS_RUNTIME_STATEMENT(reduce_scatter_list, s, c, pairs);
}

void RuntimeCalls::allToAll(const Stream &s, const Communicator &c, const View &out, const View &in) {
  WINDLASS_RUNTIME_STATEMENT(all_to_all, s, c, out, in);
}

void RuntimeCalls::permute(const Stream &s, const Communicator &c, const View &out, const View &in,
                           llvm::ArrayRef<int64_t> destinations) {
  check(Expr<rt::status>(callText("permute", {s.text, c.text, out.text, in.text, listText(destinations)})));
}

void RuntimeCalls::gatherRows(const Stream &s, const Communicator &c, const View &out, const View &scratch,
                              const View &in, const View &choices, int64_t experts) {
  WINDLASS_RUNTIME_STATEMENT(gather_rows, s, c, out, scratch, in, choices, int64(experts));
}

void RuntimeCalls::scatterRows(const Stream &s, const Communicator &c, const View &out, const View &scratch,
                               const View &in, const View &choices, int64_t experts) {
  WINDLASS_RUNTIME_STATEMENT(scatter_rows, s, c, out, scratch, in, choices, int64(experts));
}

void RuntimeCalls::send(const Stream &s, const Communicator &c, const View &in, int64_t to) {
  WINDLASS_RUNTIME_STATEMENT(send, s, c, in, int32(to));
}

void RuntimeCalls::receive(const Stream &s, const Communicator &c, const View &out, int64_t from) {
  WINDLASS_RUNTIME_STATEMENT(receive, s, c, out, int32(from));
}
