#include "CheckTransfers.h"

#include "Message.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

#include <map>
#include <set>

using namespace windlass::schedule;
using llvm::Error;
using llvm::Twine;

namespace {

/// The messages from one position to another: the numbers of the sender's and the receiver's actions.
struct Channel {
  std::vector<size_t> sends, receives;
};
using Channels = std::map<std::pair<int64_t, int64_t>, Channel>;

class TransferChecker {
public:
  TransferChecker(const Pipeline &pipeline, int64_t capacity)
      : positions(pipeline.positions), capacity(capacity), current(positions.size(), 0) {}

  Error run() {
    for (auto [position, schedule] : llvm::enumerate(positions))
      for (auto [index, action] : llvm::enumerate(schedule.actions)) {
        if (action.kind == ActionKind::Send)
          channels[{position, action.peer}].sends.push_back(index);
        if (action.kind == ActionKind::Receive)
          channels[{action.peer, position}].receives.push_back(index);
      }
    for (const auto &[ends, channel] : channels)
      if (Error error = checkPairs(ends.first, ends.second, channel))
        return error;
    return replay();
  }

private:
  Message message(int64_t position, size_t index) const { return Message(positions[position].actions[index]); }

  static std::string at(size_t index) { return (", at action " + Twine(index)).str(); }

  /// Checks that each receive has its send, in the same order. Each send has its receive where the positions are legal,
  /// since the receiver's chunk has that micro-batch and needs the message.
  Error checkPairs(int64_t sender, int64_t receiver, const Channel &channel) const {
    std::set<Message> sent;
    for (size_t index : channel.sends)
      sent.insert(message(sender, index));
    for (size_t index : channel.receives)
      if (!sent.count(message(receiver, index)))
        return llvm::createStringError("position " + Twine(receiver) + " receives " + message(receiver, index).print() +
                                       ", which position " + Twine(sender) + " never sends" + at(index));
    for (auto [send, receive] : llvm::zip_equal(channel.sends, channel.receives))
      if (!(message(sender, send) == message(receiver, receive)))
        return llvm::createStringError("position " + Twine(receiver) + " receives " +
                                       message(receiver, receive).print() + at(receive) + ", when position " +
                                       Twine(sender) + " sends " + message(sender, send).print() + at(send));
    return Error::success();
  }

  /// Returns the action that a position is at; null behind the last.
  const Action *getCurrent(int64_t position) const {
    const std::vector<Action> &actions = positions[position].actions;
    return current[position] < actions.size() ? &actions[current[position]] : nullptr;
  }

  /// Runs all positions until none can go on. Since each waits for one other at a time, the order in which they run
  /// does not matter.
  Error replay() {
    std::vector<int64_t> runnable;
    for (size_t position = 0; position < positions.size(); ++position)
      runnable.push_back(position);
    while (!runnable.empty()) {
      int64_t position = runnable.back();
      runnable.pop_back();
      while (const Action *action = getCurrent(position)) {
        if (isTransfer(action->kind)) {
          if (!move(position, *action))
            break;
          runnable.push_back(action->peer);
        }
        ++current[position];
      }
    }
    for (size_t position = 0; position < positions.size(); ++position)
      if (getCurrent(position))
        return explainWait(position);
    return Error::success();
  }

  /// Returns whether the position's send or receive can end now, and carries out what its end changes elsewhere.
  bool move(int64_t position, const Action &action) {
    bool isSend = action.kind == ActionKind::Send;
    if (capacity == 0) {
      const Action *other = getCurrent(action.peer);
      if (!other || !isTransfer(other->kind) || other->kind == action.kind || other->peer != position)
        return false;
      ++current[action.peer];
      return true;
    }
    int64_t &buffered =
        inFlight[isSend ? std::make_pair(position, action.peer) : std::make_pair(action.peer, position)];
    if (isSend ? buffered == capacity : buffered == 0)
      return false;
    buffered += isSend ? 1 : -1;
    return true;
  }

  /// Names where a position waits for ever: it waits for another one, which waits too. Both ends of each message exist,
  /// so no position waits for one that has ended.
  Error explainWait(int64_t position) const {
    llvm::SmallVector<int64_t> chain;
    while (!llvm::is_contained(chain, position)) {
      chain.push_back(position);
      position = getCurrent(position)->peer;
    }
    chain.erase(chain.begin(), llvm::find(chain, position));
    std::string text = "never ends";
    if (capacity > 0)
      text += (" with room for " + Twine(capacity) + " messages between two positions").str();
    for (auto [number, each] : llvm::enumerate(chain)) {
      const Action &action = *getCurrent(each);
      bool isSend = action.kind == ActionKind::Send;
      text +=
          ((number == 0 ? ": position " : "; position ") + Twine(each) + " waits for position " + Twine(action.peer) +
           (isSend ? " to receive " : " to send ") + Message(action).print() + at(current[each]))
              .str();
    }
    return llvm::createStringError(text);
  }

  const std::vector<Schedule> &positions;
  int64_t capacity;
  /// The channels by sender and receiver.
  Channels channels;
  std::map<std::pair<int64_t, int64_t>, int64_t> inFlight;
  /// The number of each position's next action.
  std::vector<size_t> current;
};

} // namespace

Error windlass::schedule::checkTransfers(const Pipeline &pipeline, int64_t capacity) {
  return TransferChecker(pipeline, capacity).run();
}
