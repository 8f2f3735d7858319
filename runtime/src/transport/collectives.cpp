// Collectives and messages as commands of a stream.
#include "windlass/rt/communicator.h"

#include "windlass/rt/detail/backend.h"

#include <algorithm>
#include <string>

namespace windlass::rt {

namespace {

status check_dense(const view &v, const char *collective) {
  if (v.is_contiguous())
    return {};
  return internal_error(std::string(collective) + " needs dense buffers, a view with gaps was given");
}

/// A back end that moves no data keeps the order between the ranks.
template <class F> status issue(stream &s, communicator &c, const work &what, F f) {
  if constexpr (!detail::backend_moves_data)
    return s.submit([&c] { return c.barrier(); });
  else
    return s.submit(what, f);
}

status check_sizes(const view &larger, const view &smaller, std::int32_t members, const char *collective) {
  WINDLASS_TRY(check_dense(larger, collective));
  WINDLASS_TRY(check_dense(smaller, collective));
  if (larger.elements() == smaller.elements() * members && larger.type == smaller.type)
    return {};
  return internal_error(std::string(collective) + " of " + std::to_string(members) + " members has buffers of " +
                        std::to_string(larger.elements()) + " and " + std::to_string(smaller.elements()) +
                        " elements; the first must be the members' sum, of the same type");
}

} // namespace

status all_reduce(stream &s, communicator &c, const view &data, reduction kind) {
  WINDLASS_TRY(check_dense(data, "all-reduce"));
  c.count(data.elements() == 1 ? collective_kind::scalars : collective_kind::all_reduce, bytes_of({data}));
  return issue(s, c, {"all_reduce", 0, bytes_of({data}), {data.elements()}},
               [&c, data = data.data, n = data.elements(), type = data.type, kind] {
                 return c.all_reduce(data, n, type, kind);
               });
}

namespace {

/// Issues a collective of pairs; `move` is the communicator's operation.
template <class F>
status issue_pairs(stream &s, communicator &c, collective_kind kind, const collective_pairs &pairs, F move) {
  std::int64_t elements = 0, bytes = 0;
  for (std::int32_t i = 0; i < pairs.count; ++i) {
    elements += pairs.of[i].elements * c.size();
    bytes += pairs.of[i].part_bytes() * c.size();
  }
  c.count(kind, bytes);
  return issue(s, c, {collective_names[static_cast<std::size_t>(kind)], 0, bytes, {elements}},
               [&c, pairs, move] { return move(c, pairs.of, pairs.count); });
}

} // namespace

status all_gather_list(stream &s, communicator &c, const collective_pairs &pairs) {
  return issue_pairs(
      s, c, collective_kind::all_gather, pairs,
      [](communicator &members, const collective_pair *of, std::int32_t n) { return members.all_gather(of, n); });
}

status all_gather(stream &s, communicator &c, const view &out, const view &in) {
  WINDLASS_TRY(check_sizes(out, in, c.size(), "all-gather"));
  return all_gather_list(s, c, {1, {{out.data, in.data, in.elements(), in.type}}});
}

status reduce_scatter_list(stream &s, communicator &c, const collective_pairs &pairs) {
  return issue_pairs(
      s, c, collective_kind::reduce_scatter, pairs,
      [](communicator &members, const collective_pair *of, std::int32_t n) { return members.reduce_scatter(of, n); });
}

status reduce_scatter(stream &s, communicator &c, const view &out, const view &in) {
  WINDLASS_TRY(check_sizes(in, out, c.size(), "reduce-scatter"));
  return reduce_scatter_list(s, c, {1, {{out.data, in.data, out.elements(), out.type}}});
}

status all_to_all(stream &s, communicator &c, const view &out, const view &in) {
  WINDLASS_TRY(check_sizes(out, in, 1, "all-to-all"));
  const std::int64_t bytes = in.elements() * size_of(in.type);
  if (in.elements() % c.size() != 0)
    return internal_error("all-to-all of " + std::to_string(in.elements()) + " elements among " +
                          std::to_string(c.size()) + " members leaves a rest");
  c.count(collective_kind::all_to_all, bytes_of({in}));
  return issue(s, c, {"all_to_all", 0, bytes_of({in}), {in.elements()}},
               [&c, out = out.data, in = in.data, block = bytes / c.size()] { return c.all_to_all(out, in, block); });
}

status permute(stream &s, communicator &c, const view &out, const view &in,
               std::initializer_list<std::int32_t> destinations) {
  WINDLASS_TRY(check_sizes(out, in, 1, "permute"));
  const std::int32_t members = c.size();
  std::int32_t to = -1, from = -1, member = 0, found = 0;
  for (const std::int32_t destination : destinations) {
    if (member == c.index())
      to = destination;
    if (destination == c.index())
      from = member;
    ++member;
  }
  for (std::int32_t m = 0; m < members; ++m)
    found += std::count(destinations.begin(), destinations.end(), m) == 1;
  if (member != members || found != members)
    return internal_error("permute of " + std::to_string(members) + " members needs each of them as one destination");
  const std::int64_t bytes = in.elements() * size_of(in.type);
  if (to != c.index())
    c.count(collective_kind::permute, bytes);
  return issue(s, c, {"permute", 0, bytes_of({in}), {in.elements()}},
               [&c, out = out.data, in = in.data, bytes, to, from] { return c.permute(out, in, bytes, to, from); });
}

namespace {

/// Checks the views of a command and says what it moves. `own` has the rows of this member's tokens, `all` those of
/// all.
status find_routes(const communicator &c, const view &own, const view &all, const view &scratch, const view &choices,
                   std::int64_t experts, detail::row_routes &of) {
  for (const view &each : {own, all, scratch, choices})
    WINDLASS_TRY(check_dense(each, "an exchange of rows"));
  const std::int64_t members = c.size();
  if (own.rank != 2 || all.rank != 2 || choices.rank != 2 || own.sizes[1] != all.sizes[1] ||
      all.sizes[0] != members * own.sizes[0] || choices.sizes[0] != all.sizes[0] || own.type != all.type ||
      choices.type != element_type::i64 || experts % members != 0)
    return internal_error("an exchange of rows among " + std::to_string(members) + " members for " +
                          std::to_string(experts) + " experts has views that do not fit together");
  of = {choices.as<const std::int64_t>(), own.sizes[0], choices.sizes[1], experts / members, own.sizes[1], own.type};
  if (scratch.type != own.type ||
      scratch.elements() < detail::row_scratch_elements(members, of.tokens, of.chosen, of.columns, size_of(of.type)))
    return internal_error("an exchange of rows has too little scratch");
  return {};
}

/// Issues an exchange of rows; `move` is the communicator's operation.
template <class F>
status issue_rows(stream &s, communicator &c, const char *name, const view &own, const view &all, const view &scratch,
                  const view &choices, std::int64_t experts, F move) {
  detail::row_routes of;
  WINDLASS_TRY(find_routes(c, own, all, scratch, choices, experts, of));
  return issue(s, c, {name, 0, bytes_of({all}), {all.elements()}},
               [&c, own = own.data, all = all.data, scratch = scratch.data, of, move] {
                 return move(c, own, all, scratch, of);
               });
}

} // namespace

status gather_rows(stream &s, communicator &c, const view &out, const view &scratch, const view &in,
                   const view &choices, std::int64_t experts) {
  return issue_rows(s, c, "gather_rows", in, out, scratch, choices, experts,
                    [](communicator &members, std::byte *own, std::byte *all, std::byte *memory,
                       const detail::row_routes &of) { return members.gather_rows(all, memory, own, of); });
}

status scatter_rows(stream &s, communicator &c, const view &out, const view &scratch, const view &in,
                    const view &choices, std::int64_t experts) {
  return issue_rows(s, c, "scatter_rows", out, in, scratch, choices, experts,
                    [](communicator &members, std::byte *own, std::byte *all, std::byte *memory,
                       const detail::row_routes &of) { return members.scatter_rows(own, memory, all, of); });
}

namespace {

/// A command has its messages with it.
struct message_list {
  message of[communicator::most_messages];
  std::int32_t count = 0;
};

status add_message(const communicator &c, const message_view &each, message_list &list) {
  WINDLASS_TRY(check_dense(each.data, each.way == direction::send ? "send" : "receive"));
  if (each.peer < 0 || each.peer >= c.size() || each.peer == c.index())
    return internal_error("member " + std::to_string(c.index()) + " of " + std::to_string(c.size()) +
                          " has a message with member " + std::to_string(each.peer) + ", which must be another one");
  if (list.count == communicator::most_messages)
    return internal_error("more than " + std::to_string(communicator::most_messages) + " messages in one transfer");
  list.of[list.count++] = {each.way, each.peer, each.data.data, bytes_of({each.data})};
  return {};
}

status issue_messages(stream &s, communicator &c, const char *name, std::initializer_list<message_view> messages) {
  message_list list;
  std::int64_t sent = 0, all = 0, elements = 0;
  for (const message_view &each : messages) {
    WINDLASS_TRY(add_message(c, each, list));
    const std::int64_t bytes = list.of[list.count - 1].bytes;
    sent += each.way == direction::send ? bytes : 0;
    all += bytes;
    elements += each.data.elements();
    if constexpr (!detail::backend_moves_data) // the members meet, and keep the order of a back end that moves
      list.of[list.count - 1].bytes = 0;
  }
  c.count(collective_kind::send, sent);
  return s.submit({name, 0, all, {elements}}, [&c, list] { return c.transfer(list.of, list.count); });
}

} // namespace

status send(stream &s, communicator &c, const view &in, std::int32_t to) {
  return issue_messages(s, c, "send", {{direction::send, to, in}});
}

status receive(stream &s, communicator &c, const view &out, std::int32_t from) {
  return issue_messages(s, c, "receive", {{direction::receive, from, out}});
}

status transfer(stream &s, communicator &c, std::initializer_list<message_view> messages) {
  return issue_messages(s, c, "transfer", messages);
}

} // namespace windlass::rt
