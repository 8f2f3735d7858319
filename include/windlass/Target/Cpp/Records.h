// Constants of the runtime's structures as emitted text that names each member: one that is moved, renamed or given
// another type fails to compile here, and one that is added is missed when the record is built.
#ifndef WINDLASS_TARGET_CPP_RECORDS_H
#define WINDLASS_TARGET_CPP_RECORDS_H

#include "windlass/Target/Cpp/CppBuilder.h"
#include "windlass/rt/program.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"

#include <map>
#include <string>
#include <utility>

namespace windlass::cpp {

/// The members of a structure of the runtime, in the order of their declaration: `name`, that of the structure, and
/// `list`, theirs.
template <class S> struct Members;

/// Lists the members of rt::structure, all of them: their number is that of a structured binding.
#define WINDLASS_MEMBERS(structure, ...)                                                                               \
  template <> struct Members<rt::structure> {                                                                          \
    static constexpr llvm::StringLiteral name = #structure, list = #__VA_ARGS__;                                       \
    static void count() { [[maybe_unused]] auto [__VA_ARGS__] = rt::structure{}; }                                     \
  }

WINDLASS_MEMBERS(axis, name, size, role);
WINDLASS_MEMBERS(split, dim, axis, blocks);
WINDLASS_MEMBERS(source, kind, file, offset, length, type);
WINDLASS_MEMBERS(parameter_entry, name, type, sizes, bytes, random, is_trainable, decays);
WINDLASS_MEMBERS(input_entry, name, type, sizes, default_feed, vocabulary);
WINDLASS_MEMBERS(counted_labels, input, ignored, starts, sizes);
WINDLASS_MEMBERS(arena_entry, kind, bytes, name);
WINDLASS_MEMBERS(parameter_placement, parameter, type, splits, at, master_splits, master);
WINDLASS_MEMBERS(state_entry, parameter, suffix, at, sizes);
WINDLASS_MEMBERS(gradient_entry, parameter, splits, at, type);
WINDLASS_MEMBERS(input_placement, input, chunk, splits, at, slot_stride);
WINDLASS_MEMBERS(scalar_entry, kind, at);
WINDLASS_MEMBERS(stream_entry, kind, name);
WINDLASS_MEMBERS(communicator_entry, axes, stream, exchanges, positions);
WINDLASS_MEMBERS(peer_entry, position, stream);
WINDLASS_MEMBERS(message_entry, way, chunk, peer_chunk, peer, type, sizes, splits, at, slot_stride);
WINDLASS_MEMBERS(chunk_entry, chunk, slots, forward, backward, weight_gradient, reduce, update, init, evaluate,
                 handed_slots);
WINDLASS_MEMBERS(action, kind, chunk, peer_chunk, micro_batch, per_turn, slot, handed_slot, is_first, is_last, count,
                 length);
WINDLASS_MEMBERS(product_choice, product, algorithm);
WINDLASS_MEMBERS(product_choices, device, library, choices);
WINDLASS_MEMBERS(attention_shape, type, is_gradient, is_causal, scale, batch, heads, kv_heads, queries, keys, depth,
                 value_depth, strides);
WINDLASS_MEMBERS(attention_choice, shape, workspace_bytes);
WINDLASS_MEMBERS(program, arenas, scratch_bytes, streams, events, communicators, peers, parameters, states, gradients,
                 inputs, messages, scalars, loss, grad_norm, evaluated, chunks, actions, evaluation, products,
                 attentions);
WINDLASS_MEMBERS(position_entry, axes, first_rank, ranks, runs);
WINDLASS_MEMBERS(emulated_rates, link, disk);
WINDLASS_MEMBERS(job, version, model, plan_hash, precision, kind, clips, micro_batches, merge, reserve_bytes, emulated,
                 parameters, inputs, labels, positions);

/// Returns a C++ string literal of any bytes.
Expr<const char *> literal(llvm::StringRef text);
/// Returns the null pointer, which stands for a missing text.
Expr<const char *> noText();
Expr<rt::element_type> elementType(mlir::Type type);
/// Returns a constant by its name: a member of an enumeration, a function, an object.
template <class T> Expr<T> named(const llvm::Twine &name) { return Expr<T>(name.str()); }
/// An enumerator that the runtime has.
#define WINDLASS_ENUMERATOR(enumeration, which)                                                                        \
  ((void)rt::enumeration::which, ::windlass::cpp::Expr<rt::enumeration>(#enumeration "::" #which))

/// A constant of a structure, from the members that are set. A constant expression in C++17.
template <class S> class Record {
public:
  using Structure = S;

  /// Sets a member; called by `WINDLASS_SET`. Expressions are constants.
  template <class M> Record &set(M S::*, llvm::StringRef member, const Expr<M> &value) {
    return setText(member, value.text);
  }
  /// Sets a member that is an array of arrays of numbers.
  template <std::size_t n, std::size_t k>
  Record &set(std::int64_t (S::*)[n][k], llvm::StringRef member, const std::int64_t (&values)[n][k]) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t l = 0; l < k; ++l)
        text += (i + l > 0 ? " out." + member.str() : std::string()) + "[" + std::to_string(i) + "][" +
                std::to_string(l) + "] = " + std::to_string(values[i][l]) + (i + 1 == n && l + 1 == k ? "" : ";");
    return setText(member, text, /*isElements=*/true);
  }

  /// Returns the constant on one line. All members have been set.
  Expr<S> build() const { return Expr<S>(textOf(" ", " ")); }
  /// Returns the constant with a line for each member.
  Expr<S> buildLines() const { return Expr<S>(textOf("\n  ", "\n")); }

private:
  std::string textOf(llvm::StringRef before, llvm::StringRef end) const {
    std::string text = "[] {" + before.str() + "auto out = " + Members<S>::name.str() + "{};";
    llvm::SmallVector<llvm::StringRef> members;
    Members<S>::list.split(members, ", ");
    for (llvm::StringRef member : members) {
      auto value = values.find(member.str());
      if (value == values.end())
        llvm::report_fatal_error("an emitted " + Members<S>::name + " lacks its " + member);
      text += before.str() + "out." + member.str() + value->second + ";";
    }
    return text + before.str() + "return out;" + end.str() + "}()";
  }

  Record &setText(llvm::StringRef member, const std::string &text, bool isElements = false) {
    if (!values.emplace(member.str(), (isElements ? "" : " = ") + text).second)
      llvm::report_fatal_error("an emitted " + Members<S>::name + " has two values of its " + member);
    return *this;
  }

  std::map<std::string, std::string> values;
};

/// Sets a member of a Record by its name to an expression of its type.
#define WINDLASS_SET(record, member, ...)                                                                              \
  (record).set(&std::remove_reference_t<decltype(record)>::Structure::member, #member, __VA_ARGS__)

/// Arrays of constants, to which spans point.
class Arrays {
public:
  /// Defines an array `name` with an item per line and returns its span; an empty span where there are no items.
  template <class T> Expr<rt::span<T>> table(llvm::StringRef name, llvm::ArrayRef<Expr<T>> items) {
    return define<T>(name.str(), items, "\n    ", ",\n");
  }
  /// Returns the span of an array with a numbered name, one for all spans of equal items.
  template <class T> Expr<rt::span<T>> shared(llvm::StringRef prefix, llvm::ArrayRef<Expr<T>> items) {
    std::string key = elementName<T>();
    for (const Expr<T> &item : items)
      key += "|" + item.text;
    auto [position, isNew] = known.try_emplace(key);
    if (isNew)
      position->second = define<T>(prefix.str() + "_" + std::to_string(known.size() - 1), items, "", "").text;
    return Expr<rt::span<T>>(position->second);
  }
  /// Returns the definitions of all arrays, in the order in which they were asked for.
  const std::string &getText() const { return text; }

private:
  template <class T> static std::string elementName() {
    if constexpr (std::is_integral_v<T>)
      return TypeName<T>::text;
    else
      return Members<T>::name.str();
  }

  template <class T>
  Expr<rt::span<T>> define(const std::string &name, llvm::ArrayRef<Expr<T>> items, llvm::StringRef before,
                           llvm::StringRef after) {
    if (items.empty())
      return Expr<rt::span<T>>(std::string("{nullptr, 0}"));
    text += "constexpr " + elementName<T>() + " " + name + "[] = {";
    for (auto [i, item] : llvm::enumerate(items))
      text += (before.empty() ? (i ? ", " : "") : i ? "    " : "\n    ") + item.text + after.str();
    text += "};\n";
    return Expr<rt::span<T>>("{" + name + ", " + std::to_string(items.size()) + "}");
  }

  std::string text;
  std::map<std::string, std::string> known; // what an array holds -> its span
};

} // namespace windlass::cpp

#endif
