// SPDX-License-Identifier: Apache-2.0
// The engine proper: what ExecContext means for one block. Private to the simulator.
//
// A *span* is a range of warps that stand at one pc. exec functions run once a span; the pcs of its
// warps are kept in pc_ alone until the span ends or control flow makes them differ (flush()).
#pragma once

#include "isa/exec_context.h"
#include "isa/lane_ops.h"
#include "isa/linear.h"
#include "simulator/access_ledger.h"
#include "simulator/block.h"
#include "simulator/each_lane.h"
#include "simulator/issue_record.h"
#include "simulator/known_values.h"
#include "simulator/launch.h"
#include "simulator/linear_access.h"
#include "simulator/program.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pto::sim {

class Reductions;

/// Watches hbm accesses of one worker (parallel.cc). Each call comes before the access; false stops
/// the block at once, without the access.
class AccessGate {
public:
  /// `may_write_to`: of each of the hbm's live allocations, whether the kernel may write to it. A
  /// write to another one must be refused, so reads of those need no call.
  AccessGate(const Hbm& hbm, const std::vector<bool>& may_write_to)
      : first_(hbm.live().data()), is_watched_(may_write_to) {}
  virtual ~AccessGate() = default;
  bool is_watched(const Allocation& allocation) const {
    return is_watched_[static_cast<size_t>(&allocation - first_)];
  }
  virtual bool may_read(const Allocation& allocation, uint64_t offset, uint64_t bytes) = 0;
  virtual bool may_write(const Allocation& allocation, uint64_t offset, uint64_t bytes) = 0;
  /// An atomic whose result nobody reads. It goes to reductions(), not to memory.
  virtual bool may_reduce(const Allocation& allocation, uint64_t offset, uint64_t bytes) = 0;
  virtual Reductions& reductions() = 0;

private:
  const Allocation* first_;
  const std::vector<bool>& is_watched_;
};

class BlockContext final : public isa::ExecContext {
public:
  explicit BlockContext(BlockRun& run);

  /// After the block's state was replaced.
  void rebind();
  /// After rebind(), of a block that starts: every register is 0, whatever its storage holds, and
  /// no warp has a part but its own.
  void start() {
    registers_are_zero_ = true;
    has_parts_ = false;
    are_warps_fresh_ = true;
  }
  /// The warps, masks and parked flags of a block that has ended are still those that it started
  /// with, where nobody asks for them.
  bool has_ended_fresh() const { return has_ended_fresh_; }
  bool has_parts() const { return has_parts_; }
  /// Value of a register in a lane of the block where its storage does not hold it.
  std::optional<uint64_t> unwritten32(unsigned index, uint32_t lane) const;
  std::optional<uint64_t> unwritten64(unsigned index, uint32_t lane) const;
  void set_gate(AccessGate* gate) { gate_ = gate; }
  void set_ledger(AccessLedger* ledger) { ledger_ = ledger; }
  void set_forgets_ended(bool forgets) { forgets_ended_ = forgets; }
  bool was_stopped_by_gate() const { return gate_stopped_; }

  const IssueRecord& step(uint32_t warp);
  bool step_pure(uint32_t warp, uint32_t& exec_mask);
  const GroupRecord* step_together();
  void stand_apart() {
    if (is_together_) {
      flush();
      is_together_ = false;
    }
    uses_linear_ = false; // what runs next says whether it keeps any
  }
  BlockStop run(uint64_t budget);
  void complete_copy(size_t i, bool forced);
  void complete_all_copies(bool forced);

  // ------------------------------------------------ ExecContext
  uint64_t uniform_value(const isa::Operand& operand, isa::Type type) override;
  isa::Outcome read_special(isa::Special special, const isa::Operand& dst) override;
  isa::Outcome
  load(const isa::Operand& mem, const isa::MemAccess& access, const isa::Operand& dst) override;
  isa::Outcome
  store(const isa::Operand& mem, const isa::MemAccess& access, const isa::Operand& src) override;
  isa::Outcome atomic(const isa::Operand& mem,
                      isa::Type type,
                      const isa::AtomicOp& op,
                      const isa::Operand& dst,
                      const isa::Operand& a,
                      const isa::Operand* b) override;
  isa::Outcome cache(isa::CacheOp op, const isa::Operand* mem) override;
  isa::Outcome fence(isa::FenceScope scope) override;
  uint8_t*
  l1_range(const isa::Operand& operand, uint64_t size_bytes, bool reads, bool writes) override;
  uint64_t tile_bytes(const isa::Operand& tile) override;
  isa::Outcome alloc_tile(const isa::Operand& tile, uint64_t size_bytes) override;
  isa::Outcome free_tile(const isa::Operand& tile) override;
  isa::Outcome start_copy(isa::CopyDirection direction,
                          const isa::Operand& l1,
                          const isa::Operand& hbm,
                          const isa::CopyShape& shape,
                          const isa::Operand* event) override;
  isa::Outcome wait_event(unsigned event) override;
  isa::Outcome wait_all() override;
  isa::Outcome branch(uint32_t target_pc) override;
  isa::Outcome call(uint32_t target_pc) override;
  isa::Outcome ret() override;
  isa::Outcome exit_lanes() override;
  isa::Outcome barrier_warp() override;
  isa::Outcome barrier_block(unsigned id) override;
  isa::Outcome nop(uint32_t cycles) override;
  isa::Outcome print(const isa::Insn& insn) override;
  isa::Outcome trap(uint32_t code) override;
  isa::Outcome fault(std::string_view what) override;

private:
  const uint32_t* broadcast32(const isa::Operand& operand) override;
  const uint64_t* broadcast64(const isa::Operand& operand) override;

  // ------------------------------------------------ spans (block_context.cc)
  bool choose_span();
  void bind_span(uint32_t first, uint32_t count);
  /// bind_span(warp, 1), from where one warp alone was the span before.
  void bind_warp(uint32_t warp) {
    if (count_ != 1) {
      bind_span(warp, 1);
      return;
    }
    const ptrdiff_t warps = ptrdiff_t{warp} - ptrdiff_t{first_};
    first_ = warp;
    masks_ += warps;
    preds_ += warps;
    regs32_ += regs32_ == nullptr ? 0 : warps * isa::kWarpLanes;
    regs64_ += regs64_ == nullptr ? 0 : warps * isa::kWarpLanes;
    span_issued_ = 0;
  }
  void measure_span();
  /// The same for all warps of a block that just starts.
  void measure_start();
  void measure_warp(const WarpState& warp);
  void run_span(uint64_t end);
  void run_span_observed(uint64_t end);
  /// One insn of the whole span, told to observers by after_span if `is_told`.
  isa::Outcome execute_span_observed(bool is_told);
  /// Every warp of the span in turn. False after a fault.
  bool execute_warps_observed();
  /// Executes insn_ at pc_ for the span; guard and scope applied. False: nothing to execute.
  bool set_active();
  isa::Outcome execute_span();
  /// The same after set_active(). Registers may be linear where uses_linear_ says so.
  isa::Outcome execute_active();
  void keep_loaded();
  const IssueRecord& execute_recorded(uint32_t warp);
  /// Binds the next insn of a warp that nobody observes; returns the lanes that execute it.
  uint32_t begin_warp(uint32_t warp);
  /// Lets those lanes, at least one, be the active ones, and counts them.
  void activate_warp(uint32_t exec_mask);
  /// Executes it where it changes registers alone.
  void execute_pure(uint32_t warp, uint32_t exec_mask);
  const IssueRecord& record_pure(uint32_t warp);
  /// As execute_recorded of an insn that nobody observes and that is not block-scoped.
  const IssueRecord& record_lanes(uint32_t warp);
  /// What every record says of its warp.
  void begin_record(uint32_t warp, uint32_t exec_mask);
  /// Empties the part of the record that is about more than registers.
  void clear_record();
  /// Writes pc_ and the issue counts back to the warps.
  void flush();
  /// After control flow: true if the span's warps still stand at one pc (now pc_).
  bool regroup();
  bool reaches_join() const;
  void settle_span();
  void plan_meeting(uint32_t join_pc);
  bool at_meeting() const;

  // ------------------------------------------------ all warps for time (block_together.cc)
  bool stand_together();
  void note_masks();
  /// An access whose lanes are proven: linear in the lane, or else at addresses_.
  void note_access(isa::Space space, uint32_t access_bytes);
  void note_linear_access(isa::Space space, uint32_t access_bytes, const isa::LinearValue& at);

  // ------------------------------------------------ linear registers (block_linear.cc)
  bool has_linear() const { return (linear_.reg32[0] | linear_.reg32[1] | linear_.reg64) != 0; }
  void set_linear32(unsigned index, const isa::LinearValue& value);
  void set_linear64(unsigned index, const isa::LinearValue& value);
  void forget_linear(const ResourceSet& set) {
    linear_.reg32[0] &= ~set.reg32[0];
    linear_.reg32[1] &= ~set.reg32[1];
    linear_.reg64 &= ~set.reg64;
    uniform_.reg32[0] &= linear_.reg32[0];
    uniform_.reg32[1] &= linear_.reg32[1];
    uniform_.reg64 &= linear_.reg64;
  }
  /// Writes the lanes of those of the set that are linear.
  void settle(const ResourceSet& set) {
    if (((set.reg32[0] & linear_.reg32[0]) | (set.reg32[1] & linear_.reg32[1]) |
         (set.reg64 & linear_.reg64)) != 0) {
      settle_linear(set);
    }
  }
  void settle_linear(const ResourceSet& set);
  /// Afterwards storage holds every register.
  void settle_all();
  /// One register whose storage somebody wants to read.
  void settle_reg32(unsigned index);
  /// A block's first span takes the zeroes of its registers for linear values.
  void start_registers();
  void zero_registers();
  /// Executes insn_, whose source registers are all linear, without its lanes. False: not possible.
  bool execute_linear();
  /// Executes insn_, pure and with uniform sources, in one warp for all.
  void execute_once();
  /// `lane` counts within the span.
  static uint64_t lane_of(const isa::LinearValue& value, uint32_t lane);
  KnownRegisters<isa::LinearValue> linear_registers() const {
    return {linear_, linear32_.data(), linear64_.data()};
  }
  bool linear_source(const isa::Operand& operand, isa::LinearValue& value) const;
  bool linear_special(isa::Special special, isa::LinearValue& value) const;

  // ------------------------------------------------ views of memory (block_views.cc)
  struct Lanes;
  bool has_views() const { return (viewed32_[0] | viewed32_[1] | viewed64_) != 0; }
  bool has_view32(unsigned index) const {
    return ((viewed32_[index / 64] >> (index % 64)) & 1) != 0;
  }
  bool has_view64(unsigned index) const { return ((viewed64_ >> index) & 1) != 0; }
  /// The destination of insn_ is a view of what it loaded.
  void keep_view();
  void drop_views(const ResourceSet& set) {
    viewed32_[0] &= ~set.reg32[0];
    viewed32_[1] &= ~set.reg32[1];
    viewed64_ &= ~set.reg64;
  }
  /// Copies the lanes of those of the set that are views to their storage.
  void settle_views(const ResourceSet& set);
  /// The same of all that lie in these bytes, which are about to be written.
  void settle_views_in(const uint8_t* begin, uint64_t bytes) { settle_views_in(begin, bytes, {}); }
  /// Those of `kept` excepted.
  void settle_views_in(const uint8_t* begin, uint64_t bytes, const ResourceSet& kept);
  /// The same for a store to these lanes.
  void settle_views_under(const Lanes& lanes, isa::Space space, uint32_t element_bytes);

  // ------------------------------------------------ results in memory (block_results.cc)
  /// Executes insn_ and the store of its result that follows, which then writes nothing. False:
  /// not possible, and nothing has happened.
  bool execute_into_memory(uint64_t end);
  /// Where the lanes of the span would be stored, if that is the piece of memory of a register.
  uint8_t* place_result(const ProgramInsn& store);

  // ------------------------------------------------ control (block_control.cc)
  /// Drops parts of the warp that are empty or have reached their join.
  void settle(uint32_t warp);
  void pop_part(uint32_t warp);
  void push_part(uint32_t warp, uint32_t pc, uint32_t join_pc, uint32_t mask, bool is_call_base);
  void split(uint32_t warp, uint32_t taken, uint32_t target_pc);
  void finish_warp(uint32_t warp);
  /// EXIT of all lanes of the span's warps, none diverged. False: go on warp by warp.
  bool end_together();
  void release_barrier_if_full();
  bool is_barrier_full(uint32_t& id) const;
  isa::Outcome wait(int event);
  bool has_pending(int event) const;
  void wake_waiters();

  // ------------------------------------------------ memory (block_addresses.cc, block_memory.cc)
  /// How the addresses of a memory operand come about.
  struct AddressForm {
    bool is_uniform_base = true;
    uint64_t base = 0;                // with the offset
    const uint64_t* base64 = nullptr; // d register
    const uint32_t* base32 = nullptr; // r register
    const uint32_t* index = nullptr;
    unsigned scale_log2 = 0;

    /// Of a lane with that index, where the base is uniform.
    [[nodiscard]] uint64_t address_of(int32_t lane_index) const {
      return base + (static_cast<uint64_t>(int64_t{lane_index}) << scale_log2);
    }
  };
  /// Base and scale of an indexed form with a uniform base prove every lane's address aligned.
  static bool is_form_aligned(const AddressForm& form, uint32_t access_bytes) {
    return ((form.base | uint64_t{1} << form.scale_log2) & (access_bytes - 1)) == 0;
  }
  /// One lane's access, checked: what to do with the lanes of the span.
  struct Lanes {
    bool is_contiguous = false; // lane i at host + i * element bytes, for lanes that act
    uint8_t* host = nullptr;    // of lane 0 (contiguous) or of address `origin`
    uint64_t origin = 0;        // addresses_[i] - origin is the offset from host
    bool is_scattered = false;  // over several allocations: pointers_[i]
    uint64_t first_address = 0; // of lane 0 where contiguous
    bool is_linear = false;     // lane i of warp w at host + i * lane_step + w * warp_step
    int64_t lane_step = 0;
    int64_t warp_step = 0;
  };
  bool resolve(const isa::Operand& mem, AddressForm& form);
  /// The address, if all registers in it are linear.
  std::optional<isa::LinearValue> linear_address(const isa::Operand& mem,
                                                 const AddressForm& form) const;
  void fill_addresses(const AddressForm& form);
  bool plan_lanes(const isa::Operand& mem,
                  uint32_t element_bytes,
                  uint32_t count,
                  bool reads,
                  bool writes,
                  Lanes& lanes);
  /// All address registers are linear, and the whole span is in one allocation. False: do without.
  bool plan_linear(const isa::Operand& operand,
                   const AddressForm& form,
                   uint32_t element_bytes,
                   uint32_t count,
                   bool reads,
                   bool writes,
                   Lanes& lanes);
  /// The bytes that all lanes of the span access at `at`, if they are aligned and in one
  /// allocation; null, and `lanes` untouched, if not. The other paths say what is wrong.
  std::optional<AccessRange> prove_linear(isa::Space space,
                                          const isa::LinearValue& at,
                                          uint32_t element_bytes,
                                          uint32_t count,
                                          Lanes& lanes);
  bool try_contiguous(const AddressForm& form,
                      isa::Space space,
                      uint32_t element_bytes,
                      bool reads,
                      bool writes,
                      Lanes& lanes);
  /// Plans and records the access of a warp with all lanes, by index from one base, to words
  /// scattered over one allocation. False, and nothing recorded: it is none.
  bool plan_scattered_warp(const isa::Operand& mem,
                           const AddressForm& form,
                           uint32_t element_bytes,
                           uint32_t count,
                           bool reads,
                           bool writes,
                           Lanes& lanes);
  /// Of the active lanes, without their addresses. False: not of a form that says that they are
  /// aligned.
  bool find_form_bounds(const AddressForm& form,
                        uint32_t access_bytes,
                        uint64_t& lowest,
                        uint64_t& highest);
  bool plan_gather(const AddressForm& form,
                   isa::Space space,
                   uint32_t access_bytes,
                   bool reads,
                   bool writes,
                   Lanes& lanes);
  bool check_lanes(isa::Space space, uint32_t access_bytes);
  uint8_t* range_host(isa::Space space, uint64_t address, uint64_t bytes);
  /// Whether accesses have to pass_hooks: a gate or a history looks on.
  bool has_hooks(isa::Space space, bool writes) const {
    return space == isa::Space::kHbm && (gate_ != nullptr || (writes && hbm_.history() != nullptr));
  }
  /// Whether accesses have to enter_ledger: a gang runs. Hooks come first.
  bool has_ledger(isa::Space space) const {
    return space == isa::Space::kHbm && ledger_ != nullptr;
  }
  bool pass_hooks(uint64_t address, uint64_t bytes, bool reads, bool writes);
  /// The access of a span to [address, address + bytes), just found in last_allocation_. `lane` of
  /// the span is the first one, and each has `lane_bytes` of its own; 0: no order. False: refused,
  /// as a range of 0 bytes is.
  bool
  enter_ledger(uint64_t address, uint64_t bytes, unsigned lane, uint32_t lane_bytes, bool writes);
  /// All lanes of the block end with the next insn.
  bool is_last_access() const;
  void record_access(const isa::Operand& mem,
                     const AddressForm& form,
                     uint32_t element_bytes,
                     uint32_t count,
                     bool reads,
                     bool writes);
  /// An access to addresses_, which are complete, `stride` bytes apart if `is_strided`.
  void record_addresses(const isa::Operand& mem,
                        uint32_t element_bytes,
                        uint32_t count,
                        bool reads,
                        bool writes,
                        bool is_strided,
                        uint64_t stride);
  /// What after_span is told of an access whose lanes are proven: linear in the lane, or else at
  /// addresses_.
  void record_span_access(isa::Space space,
                          uint32_t element_bytes,
                          uint32_t count,
                          bool reads,
                          bool writes,
                          const isa::LinearValue* at);
  uint8_t* lane_host(const Lanes& lanes, unsigned lane, uint32_t element_bytes) const;
  // With incoherent data caches: what loads see instead of memory, what stores leave behind.
  bool has_data_caches(const isa::Operand& mem) const {
    return image_.data_caches != nullptr && mem.mem().space == isa::Space::kHbm;
  }
  void load_through_caches(const isa::Operand& mem,
                           const isa::MemAccess& access,
                           const isa::Operand& dst);
  void store_through_caches(const isa::Operand& mem, uint32_t access_bytes, isa::CacheHint hint);
  void atomic_through_caches(const isa::Operand& mem);
  /// An atomic without a result, for the gate to do when its turn comes.
  void
  put_off(const Lanes& lanes, uint32_t element_bytes, isa::AtomicFn fn, const isa::Operand& source);
  void control_caches(isa::CacheOp op, const isa::Operand* mem);
  uint64_t l1_offset(const isa::Operand& operand, uint64_t& limit, bool& ok);
  /// Host memory of both sides, where each lies as a whole in one allocation: the copy cannot
  /// fault.
  struct CopyEnds {
    uint8_t* hbm = nullptr; // of row 0
    uint8_t* l1 = nullptr;
  };
  std::optional<CopyEnds> whole_copy(const CopyRecord& copy, uint64_t l1_limit);
  bool copy_row_fits(const CopyRecord& copy, uint64_t l1_limit, uint32_t row) const;
  isa::Outcome copy_fault(const CopyRecord& copy, uint64_t l1_limit, uint32_t row);
  void move_copy(const CopyRecord& copy);
  /// A copy's data move when something waits for it: the host's cache fetches them meanwhile.
  void prefetch_source(const CopyRecord& copy, const std::optional<CopyEnds>& ends);
  isa::Outcome address_fault(isa::Space space, unsigned lane, uint32_t access_bytes);

  // ------------------------------------------------ faults and events
  Fault make_fault(FaultKind kind, std::string message) const;
  isa::Outcome raise(Fault fault);
  unsigned lowest_lane() const; // active lane of the span
  EventSite site(uint32_t warp) const { return {run_, warp, pc_}; }
  const ObserverList& observers() const { return run_.launch_.observers(); }

  friend class BlockRun;

  BlockRun& run_;
  BlockState& state_;
  const LaunchImage& image_;
  Hbm& hbm_;
  AccessGate* gate_ = nullptr;
  AccessLedger* ledger_ = nullptr;
  bool gate_stopped_ = false; // by the gate or the ledger
  const ProgramInsn* insns_ = nullptr;

  // The span.
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint32_t pc_ = 0;
  const ProgramInsn* insn_ = nullptr;
  uint32_t* masks_ = nullptr;                  // of the span's warps
  bool is_full_ = false;                       // every lane of the span is active
  uint32_t span_warps_ = 0;                    // with an active lane
  uint32_t span_lanes_ = 0;                    // active
  uint64_t span_issued_ = 0;                   // insns not yet added to WarpState::issued
  uint32_t span_join_ = isa::kNoReconvergence; // the join of every diverged warp
  bool joins_differ_ = false;
  bool pcs_written_ = false;     // control flow has set WarpState::pc of the span
  bool has_parts_ = true;        // some warp may be split, or in a called function
  bool are_warps_fresh_ = false; // as the block started with them
  bool has_ended_fresh_ = false;
  std::vector<uint32_t> guarded_; // active words of a guarded insn

  ResourceSet all_registers_; // that the kernel uses

  // Linear registers: which, and of these the uniform ones.
  bool uses_linear_ = false;
  bool registers_are_zero_ = false; // and their storage does not say so yet
  ResourceSet linear_;
  ResourceSet uniform_;
  std::array<isa::LinearValue, isa::kReg32Count> linear32_{};
  std::array<isa::LinearValue, isa::kReg64Count> linear64_{};
  unsigned loaded_count_ = 0; // destinations of a load of one address in all lanes
  std::array<uint64_t, 4> loaded_{};

  // Views of memory: those of ExecContext, and
  bool keeps_views_ = false;             // loads may make some
  bool forgets_ended_ = false;           // nobody asks what a block that has ended leaves
  const uint8_t* loaded_view_ = nullptr; // what the destination of a load becomes

  // Recording.
  bool is_recording_ = false;
  IssueRecord record_;
  bool has_more_record_ = true; // than begin_record writes, perhaps
  CopyRecord record_copy_;
  bool is_together_ = false; // between calls of step_together; group_ is written
  GroupRecord group_;
  bool is_span_told_ = false; // span_ is for observers
  SpanRecord span_;

  // Scratch for memory accesses and rare broadcasts.
  std::vector<uint64_t> addresses_;
  std::vector<uint8_t*> pointers_;
  std::array<std::vector<uint32_t>, isa::kMaxOperands> spare32_;
  std::array<std::vector<uint64_t>, isa::kMaxOperands> spare64_;
  const Allocation* last_allocation_ = nullptr;
};

} // namespace pto::sim
