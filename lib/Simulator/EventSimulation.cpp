#include "windlass/Simulator/EventSimulation.h"

#include "RankState.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

using namespace windlass::simulation;

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// The state of all ranks when the first one ends an iteration, and the time of that.
struct Snapshot {
  /// The key of the state; equal where everything goes on in the same way.
  std::vector<int64_t> key;
  int64_t time;
  std::vector<RankState::Progress> progress;
};

/// The number of earlier ends of iterations that are compared with the present one; longer periods are replayed.
constexpr size_t kMostSnapshots = 8;

class Simulation {
public:
  Simulation(const Problem &problem, const std::function<void(const Span &)> &visit) : problem(problem), visit(visit) {}

  llvm::Expected<Result> run();

private:
  /// Something that runs on a stream; a transfer runs on that of the receiver too.
  struct Activity {
    int64_t rank, stream, partnerRank = -1, partnerStream = -1;
    int64_t uses;
    int64_t end;
    /// Where activities contend: picoseconds left at full rate when `since` was, and the share of it that it has.
    double left, rate = 1;
    int64_t since;
  };
  /// The streams that are at the ends of a channel.
  struct Channel {
    int64_t sender = -1, senderStream = -1, receiver = -1, receiverStream = -1;
  };

  llvm::Error checkChannels();
  /// Carries out what the stream can do at the present time.
  void advance(int64_t rank, int64_t stream);
  void start(int64_t rank, int64_t stream, const Task &task, const Channel *channel);
  /// Starts the work of a group where all of its ranks are at it.
  void meet(int64_t group);
  void wakeWaiting(int64_t rank);
  void finish(const Activity &activity);
  /// Removes the activities that have ended.
  void finishEnded();
  /// Gives each activity the rate that its resources leave it.
  void shareResources();
  int64_t getNextTime() const;
  llvm::Error describeDeadlock() const;

  void jump();
  std::vector<int64_t> makeKey() const;

  const Problem &problem;
  const std::function<void(const Span &)> &visit;
  std::deque<RankState> ranks; // not moved: each refers to its own table
  std::vector<Channel> channels;
  std::vector<std::set<int64_t>> groups; ///< the ranks of each
  std::vector<Activity> activities;
  std::deque<std::pair<int64_t, int64_t>> ready; // rank, stream
  std::deque<Snapshot> snapshots;
  int64_t now = 0;
};

llvm::Error Simulation::checkChannels() {
  for (auto [r, rank] : llvm::enumerate(problem.ranks))
    for (const Function &function : rank.functions)
      for (const Task &task : function.tasks) {
        bool sends = task.kind == Task::Kind::Send;
        if (!sends && task.kind != Task::Kind::Receive)
          continue;
        Channel &channel = channels[task.object];
        int64_t index = static_cast<int64_t>(r), stream = rank.getOrder(task.stream);
        int64_t &end = sends ? channel.sender : channel.receiver;
        int64_t &endStream = sends ? channel.senderStream : channel.receiverStream;
        if (end >= 0 && (end != index || endStream != stream))
          return llvm::createStringError("channel %lld has two %s", static_cast<long long>(task.object),
                                         sends ? "senders" : "receivers");
        end = index;
        endStream = stream;
      }
  return llvm::Error::success();
}

void Simulation::start(int64_t rank, int64_t stream, const Task &task, const Channel *channel) {
  Activity activity{rank, stream, -1, -1, task.uses, now + task.picoseconds, static_cast<double>(task.picoseconds),
                    1,    now};
  ranks[rank].begin(stream, now);
  if (channel) {
    activity.partnerRank = channel->receiver;
    activity.partnerStream = channel->receiverStream;
    ranks[channel->receiver].begin(channel->receiverStream, now);
  }
  activities.push_back(activity);
}

void Simulation::meet(int64_t group) {
  std::vector<std::pair<int64_t, int64_t>> present;
  for (int64_t rank : groups[group])
    for (auto [stream, its] : llvm::enumerate(ranks[rank].streams))
      if (its.status == StreamState::Status::Meeting && ranks[rank].getTask(its).kind == Task::Kind::Meet &&
          ranks[rank].getTask(its).object == group)
        present.emplace_back(rank, stream);
  if (present.size() < groups[group].size())
    return;
  for (auto [rank, stream] : present)
    start(rank, stream, ranks[rank].getTask(ranks[rank].streams[stream]), nullptr);
}

void Simulation::advance(int64_t rank, int64_t stream) {
  RankState &state = ranks[rank];
  StreamState &its = state.streams[stream];
  while (its.status == StreamState::Status::Ready) {
    const Task &task = state.getTask(its);
    if (isMark(task)) {
      if (task.kind == Task::Kind::Wait && !state.isReached(its, task)) {
        its.status = StreamState::Status::Waiting;
        return;
      }
      bool isRecord = task.kind == Task::Kind::Record;
      if (isRecord)
        state.record(its, task);
      state.complete(stream, now, now);
      if (isRecord)
        wakeWaiting(rank);
      continue;
    }
    int64_t issued = state.issueTime(its);
    if (issued > now) {
      its.status = StreamState::Status::Issuing;
      its.time = issued;
      state.hasWaitedForHost();
      return;
    }
    if (task.kind == Task::Kind::Work)
      return start(rank, stream, task, nullptr);
    its.status = StreamState::Status::Meeting;
    if (task.kind == Task::Kind::Meet)
      return meet(task.object);
    const Channel &channel = channels[task.object];
    if (channel.sender < 0 || channel.receiver < 0)
      return;
    StreamState &sender = ranks[channel.sender].streams[channel.senderStream];
    StreamState &receiver = ranks[channel.receiver].streams[channel.receiverStream];
    auto meets = [&](const RankState &side, const StreamState &end, Task::Kind kind) {
      return end.status == StreamState::Status::Meeting && side.getTask(end).kind == kind &&
             side.getTask(end).object == task.object;
    };
    if (meets(ranks[channel.sender], sender, Task::Kind::Send) &&
        meets(ranks[channel.receiver], receiver, Task::Kind::Receive))
      start(channel.sender, channel.senderStream, ranks[channel.sender].getTask(sender), &channel);
    return;
  }
}

void Simulation::wakeWaiting(int64_t rank) {
  for (auto [stream, its] : llvm::enumerate(ranks[rank].streams))
    if (its.status == StreamState::Status::Waiting) {
      its.status = StreamState::Status::Ready;
      ready.emplace_back(rank, stream);
    }
}

void Simulation::finish(const Activity &activity) {
  ranks[activity.rank].complete(activity.stream, ranks[activity.rank].streams[activity.stream].time, now);
  ready.emplace_back(activity.rank, activity.stream);
  if (activity.partnerRank < 0)
    return;
  RankState &partner = ranks[activity.partnerRank];
  partner.complete(activity.partnerStream, partner.streams[activity.partnerStream].time, now);
  ready.emplace_back(activity.partnerRank, activity.partnerStream);
}

void Simulation::finishEnded() {
  for (size_t i = 0; i < activities.size();) {
    if (activities[i].end > now) {
      ++i;
      continue;
    }
    Activity ended = activities[i];
    activities.erase(activities.begin() + i);
    finish(ended);
  }
}

void Simulation::shareResources() {
  std::vector<double> taken;
  for (const Activity &activity : activities)
    if (activity.uses >= 0)
      for (const Use &use : problem.uses[activity.uses]) {
        taken.resize(std::max(taken.size(), static_cast<size_t>(use.resource) + 1), 0);
        taken[use.resource] += use.share;
      }
  for (Activity &activity : activities) {
    if (activity.uses < 0)
      continue;
    double rate = 1;
    for (const Use &use : problem.uses[activity.uses])
      rate = std::min(rate, 1 / std::max(1.0, taken[use.resource]));
    if (rate == activity.rate)
      continue;
    activity.left -= static_cast<double>(now - activity.since) * activity.rate;
    activity.since = now;
    activity.rate = rate;
    activity.end = now + static_cast<int64_t>(std::ceil(std::max(0.0, activity.left) / rate));
  }
}

int64_t Simulation::getNextTime() const {
  int64_t next = kNever;
  for (const Activity &activity : activities)
    next = std::min(next, activity.end);
  for (const RankState &rank : ranks)
    for (const StreamState &stream : rank.streams)
      if (stream.status == StreamState::Status::Issuing)
        next = std::min(next, stream.time);
  return next;
}

llvm::Error Simulation::describeDeadlock() const {
  std::string text;
  for (auto [r, rank] : llvm::enumerate(ranks))
    for (auto [s, stream] : llvm::enumerate(rank.streams)) {
      if (stream.status == StreamState::Status::Ended)
        continue;
      const Task &task = rank.getTask(stream);
      llvm::StringRef what = task.kind == Task::Kind::Wait   ? "waits for event "
                             : task.kind == Task::Kind::Send ? "sends on channel "
                             : task.kind == Task::Kind::Meet ? "meets group "
                                                             : "receives on channel ";
      text += (text.empty() ? "rank " : "; rank ") + std::to_string(r) + " stream " + std::to_string(s) + " " +
              what.str() + std::to_string(task.object);
    }
  return llvm::createStringError("nothing goes on: " + text);
}

std::vector<int64_t> Simulation::makeKey() const {
  std::vector<int64_t> key;
  for (const RankState &rank : ranks)
    rank.addKey(key, now);
  std::vector<std::array<int64_t, 3>> running;
  for (const Activity &activity : activities)
    running.push_back({activity.rank, activity.stream, activity.end - now});
  llvm::sort(running);
  for (const auto &activity : running)
    llvm::append_range(key, activity);
  return key;
}

/// Skips iterations that would repeat those since an earlier snapshot.
void Simulation::jump() {
  Snapshot present{makeKey(), now, {}};
  for (const RankState &rank : ranks)
    present.progress.push_back(rank.getProgress(now));
  for (const Snapshot &past : snapshots) {
    if (past.key != present.key || past.time == now)
      continue;
    int64_t period = now - past.time, times = kNever;
    for (auto [rank, before] : llvm::zip_equal(ranks, past.progress))
      times = std::min(times, rank.countJumps(before, period, now));
    if (times <= 0 || times == kNever)
      continue;
    for (auto [rank, before] : llvm::zip_equal(ranks, past.progress))
      rank.jump(before, times, period, now);
    for (Activity &activity : activities) {
      activity.end += times * period;
      activity.since += times * period;
    }
    now += times * period;
    snapshots.clear();
    return;
  }
  snapshots.push_back(std::move(present));
  if (snapshots.size() > kMostSnapshots)
    snapshots.pop_front();
}

llvm::Expected<Result> Simulation::run() {
  int64_t events = 0, channelCount = 0;
  for (auto [index, rank] : llvm::enumerate(problem.ranks))
    for (const Function &function : rank.functions)
      for (const Task &task : function.tasks) {
        if (task.kind == Task::Kind::Work)
          continue;
        if (task.kind == Task::Kind::Meet) {
          groups.resize(std::max(groups.size(), static_cast<size_t>(task.object) + 1));
          groups[task.object].insert(static_cast<int64_t>(index));
          continue;
        }
        int64_t &count = isMark(task) ? events : channelCount;
        count = std::max(count, task.object + 1);
      }
  channels.resize(channelCount);
  if (llvm::Error error = checkChannels())
    return std::move(error);
  for (auto [index, rank] : llvm::enumerate(problem.ranks)) {
    ranks.emplace_back(rank, static_cast<int64_t>(index), events, visit);
    for (size_t stream = 0; stream < ranks.back().streams.size(); ++stream)
      ready.emplace_back(index, stream);
  }
  while (true) {
    bool endsIteration = false;
    while (!ready.empty()) {
      auto [rank, stream] = ready.front();
      ready.pop_front();
      advance(rank, stream);
      // Activities of no length end at once.
      finishEnded();
    }
    for (auto [index, rank] : llvm::enumerate(ranks))
      endsIteration |= rank.settle() && index == 0;
    shareResources();
    if (endsIteration)
      jump();
    int64_t next = getNextTime();
    if (next == kNever)
      break;
    now = next;
    for (auto [index, rank] : llvm::enumerate(ranks))
      for (auto [stream, its] : llvm::enumerate(rank.streams))
        if (its.status == StreamState::Status::Issuing && its.time <= now) {
          its.status = StreamState::Status::Ready;
          ready.emplace_back(index, stream);
        }
    finishEnded();
  }
  Result result;
  for (const RankState &rank : ranks) {
    if (!rank.hasEnded())
      return describeDeadlock();
    result.picoseconds = std::max({result.picoseconds, rank.getEnd(), rank.getHostEnd()});
    result.totals.push_back(rank.totals);
    result.busyPicoseconds.push_back(rank.getBusy(now));
  }
  return result;
}

} // namespace

llvm::Expected<Result> windlass::simulation::simulate(const Problem &problem,
                                                      const std::function<void(const Span &)> &visit) {
  return Simulation(problem, visit).run();
}
