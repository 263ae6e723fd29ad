// Chooses, starts and awaits; what one collective does is in collective.cpp.
#include "weft/comm/collectives.h"

#include <algorithm>
#include <string>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/comm/collective.h"
#include "weft/comm/collective_planner.h"
#include "weft/comm/native_all_reduce.h"
#include "weft/comm/patience.h"
#include "weft/comm/point_message.h"
#include "weft/comm/tags.h"
#include "weft/comm/wait_meter.h"

namespace weft::comm {

namespace {

constexpr double kSpinSeconds = 100e-6;  // before a waiting rank sleeps
constexpr double kMostSleepSeconds = 0.02;
constexpr int kLooksPerClock = 8;  // the time is asked less often than messages are looked for

}  // namespace

namespace {
constexpr std::string_view kKinds[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce_to_root"};
}  // namespace

std::string_view name_of(CollectiveKind kind) { return kKinds[static_cast<size_t>(kind)]; }

std::optional<CollectiveKind> parse_collective(std::string_view name) {
  const auto* const found = std::find(std::begin(kKinds), std::end(kKinds), name);
  if (found == std::end(kKinds)) return std::nullopt;
  return static_cast<CollectiveKind>(found - std::begin(kKinds));
}

struct Collectives::Impl {
  Communicator& communicator;
  const CollectivesOptions options;
  const CollectivePlanner planner;
  HostGroup host;
  std::string position;
  int next_tag = 0;
  WaitMeter meter;
  std::vector<std::unique_ptr<Collective>> collectives;
  std::vector<Choice> choices;
  std::vector<Collective*> working;  // started, with this rank's share not summed, in the order of their starts
  std::vector<std::unique_ptr<PointMessage>> point_messages;
  // Where there are other hosts, or messages from rank to rank; the last member: it uses the others.
  std::unique_ptr<MessageThread> messages;

  Impl(Communicator& of, const CollectivesOptions& chosen)
      : communicator(of),
        options(chosen),
        planner(of.members(), of.rank(), find_native_all_reduce(of) != nullptr, options),
        host(of) {
    if (planner.has_other_hosts()) start_thread();
  }

  void start_thread() {
    messages = std::make_unique<MessageThread>(communicator, planner.most_bytes_at_once(), [this] { host.ring_all(); });
  }

  ~Impl() {
    const auto is_under_way = [](const auto& one) { return one->is_under_way(); };
    const bool is_broken = std::any_of(collectives.begin(), collectives.end(), is_under_way) ||
                           std::any_of(point_messages.begin(), point_messages.end(), is_under_way);
    // Messages may still come into memory that goes now.
    if (is_broken && communicator.size() > 1) communicator.give_up();
    messages.reset();
  }

  Collective& at(CollectiveId id) { return *collectives[static_cast<size_t>(id.index)]; }

  /// Sums whatever can be summed now.
  bool work() {
    bool did = false;
    for (size_t i = 0; i < working.size();) {
      did = working[i]->work(options.threads, messages.get()) || did;
      if (working[i]->has_work())
        ++i;
      else
        working.erase(working.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return did;
  }

  void require_same_order(const Collective& collective, int32_t index) {
    for (int local = 0; local < host.size(); ++local) {
      if (local == host.self()) continue;
      const int32_t theirs = host.started(local, collective.start_number());
      if (theirs < 0 || theirs == index) continue;
      const bool is_known = static_cast<size_t>(theirs) < collectives.size();
      communicator.give_up();
      fail(ErrorKind::communication, "[{}] '{}'{}{}: {} started '{}' in its place: all ranks must run the same plan",
           name_of(collective.spec().kind), collective.spec().name, position.empty() ? "" : " at ", position,
           name_of_rank(communicator, host.rank_of(local)),
           is_known ? collectives[static_cast<size_t>(theirs)]->spec().name : "another collective");
    }
  }

  void start(CollectiveId id, std::span<void* const> tensors, int64_t priority) {
    Collective& collective = at(id);
    check(!collective.is_under_way(), "a collective is started anew before it was awaited");
    check(tensors.size() == collective.spec().elements.size(),
          "a collective is started with another number of tensors");
    for (Collective::Part& part : collective.parts()) part.job->priority = priority;
    collective.announce(tensors);
    if (collective.has_work()) working.push_back(&collective);
    work();
  }

  void wait(CollectiveId id) {
    Collective& collective = at(id);
    const Purpose purpose{name_of(collective.spec().kind), collective.spec().name, position};
    wait_until(
        purpose, [&] { return collective.collect(); },
        [&](Patience& patience) {
          patience.check(collective.awaited_rank());
          if (!host_is_alone()) require_same_order(collective, id.index);
        });
  }

  void wait(MessageId id) {
    PointMessage& message = *point_messages[static_cast<size_t>(id.index)];
    const Purpose purpose{message.spec().sends ? "send" : "receive", message.spec().name, position};
    wait_until(
        purpose, [&] { return message.collect(); }, [&](Patience& patience) { patience.check(message.spec().peer); });
  }

  /// Lends a hand to whatever is under way until is_over(); calls check(patience) now and then.
  template <typename IsOver, typename Check>
  void wait_until(const Purpose& purpose, IsOver&& is_over, Check&& check) {
    Patience patience(communicator, {options.silence_seconds, options.wait_seconds}, purpose);
    const double most_sleep = std::min(kMostSleepSeconds, options.silence_seconds / 4);
    meter.begin();
    double waited = 0, idle_since = 0;  // since the wait began
    for (int looks = 1;; ++looks) {
      const uint32_t heard = host.own_doorbell().listen();
      if (work()) idle_since = meter.worked();
      if (is_over()) {
        meter.end();
        return;
      }
      if (messages != nullptr) {
        messages->help();
        messages->rethrow();
      }
      const bool asks_clock = looks % kLooksPerClock == 0;
      if (asks_clock) waited = meter.looked();
      if (!asks_clock || waited - idle_since < kSpinSeconds) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        if (looks % 64 == 0) std::this_thread::yield();
        continue;
      }
      if (messages != nullptr) messages->wake();
      const double sleep = sleep_in_wait(waited - idle_since, most_sleep);
      host.own_doorbell().sleep(heard, sleep);
      meter.looked(sleep);
      check(patience);
    }
  }

  bool host_is_alone() const { return host.size() == 1; }

  /// The jobs that carry this rank's share to the other hosts.
  Choice prepare_lane(Collective& collective) {
    LanePlan plan = planner.plan(collective.layout());
    if (plan.parts.empty()) return plan.choice;
    const std::vector<int>& order = plan.choice.order;
    std::vector<int> ranks;
    for (size_t place = 0; place < planner.hosts().size(); ++place) {
      const size_t at = order.empty() ? place : static_cast<size_t>(order[place]);
      ranks.push_back(planner.hosts()[at][static_cast<size_t>(host.self())]);
    }
    std::vector<Collective::Part> parts;
    for (size_t p = 0; p < plan.parts.size(); ++p) {
      Collective::Part part{plan.parts[p], std::make_unique<MessageThread::Job>()};
      const int slots = plan.schedules[p].slots;
      part.job->name = weft::comm::name_of({name_of(collective.spec().kind), collective.spec().name, {}});
      part.job->runner = std::make_unique<ScheduleRunner>(communicator, plan.schedules[p], ranks,
                                                          collective.layout().wire(), next_tag);
      next_tag += slots;  // members of a lane, who alone exchange messages, count alike
      parts.push_back(std::move(part));
    }
    check(kFirstCollectiveTag + next_tag <= kFirstGroupTag, "more messages in a step than there are tags");
    messages->reserve(parts.size());
    collective.set_parts(std::move(parts), plan.lane_elements);
    for (Collective::Part& part : collective.parts())
      part.job->deliver = [&collective, &part] { collective.deliver(part); };
    return plan.choice;
  }
};

Collectives::Collectives(Communicator& communicator, const CollectivesOptions& options)
    : impl_(std::make_unique<Impl>(communicator, options)) {}
Collectives::~Collectives() = default;

int Collectives::rank() const { return impl_->communicator.rank(); }
int Collectives::size() const { return impl_->communicator.size(); }

namespace {

std::shared_ptr<std::byte> allocate_among(Communicator& ranks, const std::vector<Collectives*>& groups, int64_t bytes) {
  const std::vector<int> on_host = ranks.ranks_of_own_host();
  if (on_host.size() == 1) return allocate_aligned(bytes);  // nobody looks, and memory of its own may have large pages
  const std::shared_ptr<SharedMemory> memory = ranks.share(bytes);
  std::vector<int> numbers;
  for (const int rank : on_host) numbers.push_back(ranks.shown_rank(rank));
  for (Collectives* const group : groups) group->add_memory(memory, bytes, numbers);
  const auto own = std::find(on_host.begin(), on_host.end(), ranks.rank());
  return {memory, memory->part(static_cast<int>(own - on_host.begin()))};
}

}  // namespace

std::shared_ptr<std::byte> Collectives::allocate(int64_t bytes) {
  return allocate_among(impl_->communicator, {this}, bytes);
}

void Collectives::add_memory(const std::shared_ptr<SharedMemory>& memory, int64_t bytes,
                             const std::vector<int>& numbers) {
  impl_->host.add_memory(memory, bytes, numbers);
}

std::shared_ptr<std::byte> allocate_for_groups(Communicator& ranks,
                                               const std::vector<std::shared_ptr<Collectives>>& groups, int64_t bytes) {
  std::vector<Collectives*> all;
  for (const std::shared_ptr<Collectives>& group : groups) all.push_back(group.get());
  return allocate_among(ranks, all, bytes);
}

CollectiveId Collectives::prepare(const CollectiveSpec& spec) {
  check(has_sums(spec.kind) ? spec.dtype == DType::f32 || spec.dtype == DType::bf16 || spec.dtype == DType::f16
                            : unpacked_size(spec.dtype) == 2 || unpacked_size(spec.dtype) == 4,
        "only f32, bf16 and f16 are reduced, and only what has 2 or 4 bytes is moved");
  if (spec.root < 0 || spec.root >= size())
    fail(ErrorKind::communication, "[{}] '{}': there is no rank {}, the root: ranks are 0 to {}", name_of(spec.kind),
         spec.name, spec.root, size() - 1);
  auto& all = impl_->collectives;
  const auto known = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->spec() == spec; });
  if (known != all.end()) return {static_cast<int32_t>(known - all.begin())};
  const auto index = static_cast<int32_t>(all.size());
  auto collective =
      std::make_unique<Collective>(impl_->host, impl_->communicator, impl_->planner.layout_of(spec), index);
  const Choice choice = impl_->planner.has_other_hosts() ? impl_->prepare_lane(*collective) : Choice{};
  all.push_back(std::move(collective));
  impl_->choices.push_back(choice);
  impl_->working.reserve(all.size());
  return {index};
}

CollectiveReport Collectives::report(CollectiveId id) const {
  const Collective& collective = *impl_->collectives[static_cast<size_t>(id.index)];
  CollectiveReport report{.hosts = static_cast<int>(impl_->planner.hosts().size()),
                          .ranks_on_host = impl_->host.size(),
                          .groups = std::max(impl_->planner.links().groups(), 1),
                          .lanes = impl_->planner.lanes(),
                          .between = impl_->choices[static_cast<size_t>(id.index)],
                          .predicted_seconds = 0};
  const CollectiveSpec& spec = collective.spec();
  if (impl_->planner.has_other_hosts() && !has_parts(spec.kind))
    report.parts =
        impl_->planner.parts_of(spec.dtype, collective.layout().map().share(0, impl_->planner.lanes()).second);
  report.predicted_seconds =
      impl_->planner.predicted_in_host(spec, byte_size(spec.dtype, collective.layout().map().size())) +
      report.between.seconds;
  return report;
}

double Collectives::last_seconds(CollectiveId id) const { return impl_->at(id).last_seconds(); }

double Collectives::predict_seconds(DType dtype, int64_t elements) const {
  return impl_->planner.predicted_in_host(byte_size(dtype, elements)) +
         (!impl_->planner.has_other_hosts()
              ? 0
              : impl_->planner.choose(dtype, (elements + impl_->planner.lanes() - 1) / impl_->planner.lanes()).seconds);
}

double Collectives::predict_gather_seconds(DType dtype, int64_t elements) const {
  // A byte is read once and written n-1 times, not n times each.
  return impl_->planner.predicted_in_host(byte_size(dtype, elements * impl_->planner.most_on_host())) / 2 +
         (!impl_->planner.has_other_hosts()
              ? 0
              : impl_->planner.choose_gather(dtype, impl_->planner.gather_of(dtype, elements)).seconds);
}

int64_t Collectives::buffer_bytes(const CollectiveSpec& spec) const { return impl_->planner.buffer_bytes(spec); }

std::string Collectives::describe(CollectiveId id) const {
  const CollectiveReport how = report(id);
  const CollectiveSpec& spec = impl_->at(id).spec();
  const std::string in_host = impl_->host_is_alone() ? "" : fmt::format("{} ranks in memory", how.ranks_on_host);
  if (how.hosts == 1) return in_host;
  const std::string chunk =
      how.between.chunk > 0
          ? fmt::format(" by {}", human_bytes(static_cast<double>(how.between.chunk *
                                                                  static_cast<int64_t>(unpacked_size(spec.dtype)))))
          : "";
  const std::string_view what = spec.kind == CollectiveKind::all_reduce       ? ""
                                : spec.kind == CollectiveKind::all_gather     ? " gather"
                                : spec.kind == CollectiveKind::reduce_scatter ? " reduce-scatter"
                                : spec.kind == CollectiveKind::broadcast      ? " broadcast"
                                                                              : " to the root";
  return fmt::format("{}{}{}{}: {}{}{}{}", in_host, in_host.empty() ? "" : ", then ", name_of(how.between.algorithm),
                     what, describe_hosts(how), chunk, how.parts > 1 ? fmt::format(", in {} parts", how.parts) : "",
                     describe_order(how.between.order));
}

std::string describe_hosts(const CollectiveReport& how) {
  return fmt::format("{} hosts{}", how.hosts, how.groups > 1 ? fmt::format(" in {} groups", how.groups) : "");
}

std::string describe_order(const std::vector<int>& order) {
  constexpr size_t kShown = 8;
  if (order.empty()) return "";
  const size_t shown = order.size() <= kShown ? order.size() : kShown - 1;
  std::string text = ", in the order";
  for (size_t place = 0; place < shown; ++place) text += fmt::format(" {}", order[place]);
  return text + (shown < order.size() ? " ..." : "");
}

void Collectives::start(CollectiveId id, std::span<void* const> tensors, int64_t priority) {
  impl_->start(id, tensors, priority);
  if (impl_->messages != nullptr) impl_->messages->wake();
}

void Collectives::reduce(CollectiveId id, std::span<void* const> tensors) {
  impl_->start(id, tensors, 0);
  wait(id);
}

void Collectives::wait(CollectiveId id) {
  check(impl_->at(id).is_under_way(), "a collective is awaited that was not started");
  impl_->wait(id);
}

MessageId Collectives::prepare(const MessageSpec& spec) {
  auto& all = impl_->point_messages;
  const auto known = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->spec() == spec; });
  if (known != all.end()) return {static_cast<int32_t>(known - all.begin())};
  if (impl_->messages == nullptr) impl_->start_thread();
  all.push_back(std::make_unique<PointMessage>(impl_->communicator, spec));
  impl_->messages->reserve(1);
  return {static_cast<int32_t>(all.size()) - 1};
}

void Collectives::start(MessageId id, void* data, int64_t priority) {
  PointMessage& message = *impl_->point_messages[static_cast<size_t>(id.index)];
  check(!message.is_under_way(), "a message is started anew before it was awaited");
  message.start(data, priority, *impl_->messages);
  impl_->messages->wake();
}

void Collectives::wait(MessageId id) {
  check(impl_->point_messages[static_cast<size_t>(id.index)]->is_under_way(),
        "a message is awaited that was not started");
  impl_->wait(id);
}

double Collectives::waited_seconds() const { return impl_->meter.waited_seconds(); }

void Collectives::set_position(std::string_view position) { impl_->position.assign(position); }

}  // namespace weft::comm
