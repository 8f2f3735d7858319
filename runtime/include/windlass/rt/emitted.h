// Small functions that emitted step programs call, so that emitted text stays short and is checked by types.
#ifndef WINDLASS_RT_EMITTED_H
#define WINDLASS_RT_EMITTED_H

#include "windlass/rt/context.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/map.h"

#include <utility>

namespace windlass::rt {

/// The offsets of one instance of a repeated block, in bytes.
using row = const std::int64_t *;

inline stream &stream_of(context &c, std::int32_t index) { return c.get_stream(index); }
inline event &event_of(context &c, std::int32_t index) { return c.get_event(index); }
inline communicator &communicator_of(context &c, std::int32_t index) { return c.get_communicator(index); }
inline communicator &peer_of(context &c, std::int32_t index) { return c.get_peer(index); }

/// A place whose offset differs between the instances of a repeated block: its arena, and the column of the row that
/// has the offset.
struct row_place {
  std::int32_t arena, column;
};

/// Where the slots of the micro-batch for which a function runs begin: `own` is one of the chunk's own slots, `handed`
/// one of those for what a backward hands to its weight gradient.
struct slot_places {
  place own, handed;
};

/// A place in one of these slots, by its number in `slot_places`: the offset in bytes from the slot's first byte, or
/// the column of a row that has the offset.
struct slot_place {
  std::int64_t offset;
  std::int32_t slots = 0;
};
struct slot_row_place {
  std::int32_t column;
  std::int32_t slots = 0;
};

/// A place of any of these kinds, for tables that have several.
struct any_place {
  enum class kind : std::int32_t { fixed, row, slot, slot_row };

  constexpr any_place(const place &of) : what(kind::fixed), arena(of.arena), number(of.offset) {}
  constexpr any_place(const row_place &of) : what(kind::row), arena(of.arena), number(of.column) {}
  constexpr any_place(const slot_place &of) : what(kind::slot), arena(of.slots), number(of.offset) {}
  constexpr any_place(const slot_row_place &of) : what(kind::slot_row), arena(of.slots), number(of.column) {}

  kind what;
  std::int32_t arena;  ///< or the number of the slots
  std::int64_t number; ///< the offset, or the column of the row that has it
};

/// Returns the first byte of a slot, where slot 0 begins at `first` and each has `bytes` bytes.
inline place place_of_slot(const place &first, std::int64_t bytes, std::int64_t slot) {
  return {first.arena, first.offset + slot * bytes};
}

inline slot_places slots_at(const place &own, const place &handed = {}) { return {own, handed}; }

/// A buffer as the tables of an emitted program have it: a view without its memory, and the place of that memory.
template <class Place> struct buffer_of {
  Place where;
  view shape;

  constexpr buffer_of(Place where, element_type type, std::initializer_list<std::int64_t> sizes)
      : where(where), shape(dense_view(nullptr, type, sizes)) {}
  constexpr buffer_of(Place where, element_type type, std::initializer_list<std::int64_t> sizes,
                      std::initializer_list<std::int64_t> strides)
      : where(where), shape(strided_view(nullptr, type, sizes, strides)) {}
};
using buffer = buffer_of<place>;
using row_buffer = buffer_of<row_place>;
using slot_buffer = buffer_of<slot_place>;
using slot_row_buffer = buffer_of<slot_row_place>;

/// Makes views of buffers: those in a row at the offsets of one instance of a repeated block, those in a slot behind
/// the slot's first byte.
class buffer_views {
public:
  explicit buffer_views(context &c, row offsets = nullptr, const slot_places &slots = {})
      : context_(c), offsets_(offsets), slots_{c.at(slots.own), c.at(slots.handed)} {}

  std::byte *address(const place &where) const { return context_.at(where); }
  std::byte *address(const row_place &where) const { return context_.at({where.arena, offsets_[where.column]}); }
  std::byte *address(const slot_place &where) const { return slots_[where.slots] + where.offset; }
  std::byte *address(const slot_row_place &where) const { return slots_[where.slots] + offsets_[where.column]; }
  std::byte *address(const any_place &where) const {
    const bool is_in_row = where.what == any_place::kind::row || where.what == any_place::kind::slot_row;
    const std::int64_t offset = is_in_row ? offsets_[where.number] : where.number;
    const bool is_in_arena = where.what == any_place::kind::fixed || where.what == any_place::kind::row;
    return is_in_arena ? context_.at({where.arena, offset}) : slots_[where.arena] + offset;
  }
  template <class Place> view operator()(const buffer_of<Place> &which) const {
    view v = which.shape;
    v.data = address(which.where);
    return v;
  }

private:
  context &context_;
  row offsets_;
  std::byte *slots_[2];
};

/// Returns the view of a dense buffer, for programs that are written by hand.
inline view view_at(context &c, const place &where, element_type type, std::initializer_list<std::int64_t> sizes) {
  return buffer_views(c)(buffer(where, type, sizes));
}

/// Returns an event whose number differs between instances.
inline event &row_event(context &c, row numbers, std::int32_t column) {
  return c.get_event(static_cast<std::int32_t>(numbers[column]));
}

/// One of the parameters that an optimizer step updates: its elements, and where each of its buffers begins, as a
/// `place` or a `row_place`. An arena of -1 in `rounded` says that the weight is not rounded.
template <class Place> struct parameter_buffers {
  std::int64_t elements;
  Place weight, exp_avg, exp_avg_sq, gradient, rounded;
};
using parameter_places = parameter_buffers<place>;
using parameter_rows = parameter_buffers<row_place>;

/// Returns the parameters of a table, at most updated_parameters::most. Rounded weights have elements of type
/// `rounded`, gradients elements of type `gradients`.
template <class Place, std::size_t n>
updated_parameters parameters_at(const buffer_views &at, element_type rounded, element_type gradients,
                                 const parameter_buffers<Place> (&table)[n]) {
  static_assert(n <= updated_parameters::most, "more than one optimizer step takes");
  const auto floats = [&at](const Place &where) { return reinterpret_cast<float *>(at.address(where)); };
  updated_parameters parameters;
  parameters.rounded = rounded;
  parameters.gradients = gradients;
  for (const parameter_buffers<Place> &its : table)
    parameters.of[parameters.count++] = {
        its.elements,           floats(its.weight),       floats(its.exp_avg),
        floats(its.exp_avg_sq), at.address(its.gradient), its.rounded.arena < 0 ? nullptr : at.address(its.rounded)};
  return parameters;
}

/// One of the gradients whose squares are summed: its elements, and where it begins, as a `place` or a `row_place`.
template <class Place> struct gradient_buffer {
  std::int64_t elements;
  Place gradient;
};
using gradient_places = gradient_buffer<place>;
using gradient_rows = gradient_buffer<row_place>;

/// Returns the gradients of a table, at most squared_gradients::most, whose elements are of `type`.
template <class Place, std::size_t n>
squared_gradients gradients_at(const buffer_views &at, element_type type, const gradient_buffer<Place> (&table)[n]) {
  static_assert(n <= squared_gradients::most, "more than one sum of squares takes");
  squared_gradients gradients;
  gradients.type = type;
  for (const gradient_buffer<Place> &its : table)
    gradients.of[gradients.count++] = {its.elements, at.address(its.gradient)};
  return gradients;
}

/// A pair of a collective: the buffer that it fills, and the one that it reads, both dense.
struct pair_buffers {
  any_place out, in;
  element_type type;
  std::int64_t elements; ///< of a member's part

  template <class Out, class In>
  constexpr pair_buffers(const buffer_of<Out> &out, const buffer_of<In> &in)
      : out(out.where), in(in.where), type(out.shape.type),
        elements(out.shape.elements() < in.shape.elements() ? out.shape.elements() : in.shape.elements()) {}
};

/// Returns the pairs of a table, at most collective_pairs::most.
template <std::size_t n> collective_pairs pairs_at(const buffer_views &at, const pair_buffers (&table)[n]) {
  static_assert(n <= collective_pairs::most, "more than one collective moves");
  collective_pairs pairs;
  for (const pair_buffers &its : table)
    pairs.of[pairs.count++] = {at.address(its.out), at.address(its.in), its.elements, its.type};
  return pairs;
}

/// Returns the view of an optional operand that the model does not have.
inline view absent_view() { return {}; }

/// Returns the rank's own block of `blocks`, [blocks, rest...]: the one whose number is made of the rank's coordinates
/// on `axes`, the first of which is the slowest.
inline view own_block(context &c, const view &blocks, std::initializer_list<std::int32_t> axes) {
  std::int64_t number = 0;
  for (std::int32_t axis : axes)
    number = number * c.axis_size(axis) + c.coordinate(axis);
  view own = blocks;
  own.data += number * blocks.strides[0] * size_of(blocks.type);
  --own.rank;
  for (std::int32_t i = 0; i < own.rank; ++i) {
    own.sizes[i] = blocks.sizes[i + 1];
    own.strides[i] = blocks.strides[i + 1];
  }
  return own;
}

inline status record_event(stream &s, event &e) { return s.record(e); }
inline status wait_event(stream &s, event &e) { return s.wait(e); }

namespace detail {
template <class F, std::size_t... Out, std::size_t... In>
status map_views(stream &s, const view *views, std::index_sequence<Out...>, std::index_sequence<In...>) {
  return map(s, F{}, {views[Out]...}, {views[sizeof...(Out) + In]...});
}
} // namespace detail

/// Applies the fused function F to its outputs, then its inputs.
template <class F, class... Views> status map_views(stream &s, const Views &...views) {
  static_assert(sizeof...(Views) == F::outputs::size + F::inputs::size, "a view per output and input");
  const view all[] = {views...};
  return detail::map_views<F>(s, all, std::make_index_sequence<F::outputs::size>(),
                              std::make_index_sequence<F::inputs::size>());
}

namespace detail {
/// F, but adding to what its outputs hold, which it therefore takes as further inputs.
template <class F, class Outputs, class Inputs> struct adding;
template <class F, class... Out, class... In> struct adding<F, type_list<Out...>, type_list<In...>> {
  static constexpr const char *name = F::name;
  using outputs = type_list<Out...>;
  using inputs = type_list<In..., Out...>;
  WINDLASS_FN static void apply(Out &...results, In... arguments, Out... earlier) {
    F::apply(results..., arguments...);
    ((results = static_cast<Out>(results + earlier)), ...);
  }
};

template <class F, class Outputs, class Inputs> struct is_for_host<adding<F, Outputs, Inputs>> : is_for_host<F> {};

template <class F, std::size_t... Out, std::size_t... In>
status map_views_adding(stream &s, const view *views, std::index_sequence<Out...>, std::index_sequence<In...>) {
  using sum = adding<F, typename F::outputs, typename F::inputs>;
  return map(s, sum{}, {views[Out]...}, {views[sizeof...(Out) + In]..., views[Out]...});
}
} // namespace detail

/// Does the same; where `adds` is set, the results are added to what the outputs hold.
template <class F, class... Views> status map_views_adding(stream &s, bool adds, const Views &...views) {
  if (!adds)
    return map_views<F>(s, views...);
  const view all[] = {views...};
  return detail::map_views_adding<F>(s, all, std::make_index_sequence<F::outputs::size>(),
                                     std::make_index_sequence<F::inputs::size>());
}

} // namespace windlass::rt

#endif
