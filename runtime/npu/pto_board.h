// SPDX-License-Identifier: Apache-2.0
// Block-scoped instructions in hybrid kernels: copies between global memory and the scratchpad,
// tiles and the matrix unit. Included by pto_simt.h.
//
// Lanes run as one SIMT vector function, which the scalar unit starts and does not wait for. Copies
// belong to the scalar unit. So lanes of warp 0 put requests on a board in the scratchpad, and the
// scalar unit serves them until the last lane has left, the way the vendor's sample
// simd_simt_hash_table_mte_queue moves values. WAIT compares two counters of the board.
//
// The copy engine works in units of 32 bytes of scratchpad. What does not fit them (a start that is
// no multiple, the rest of a row) is moved by the lanes of warp 0 when the copy is issued, so bytes
// next to a row stay as they are.
//
// MMA is a loop over lanes of warp 0. The cube core has its own buffers and takes operands in its
// own layouts; the scratchpad of a vector core is not among them, so the published interface offers
// no cube section inside a vector kernel.
#pragma once

namespace pto {

constexpr uint32_t kRequests = 32; // slots of the ring
constexpr uint32_t kNoEvent = 8;
constexpr uint32_t kBoardBytes = 2048; // what the scratchpad of the kernel begins behind
constexpr uint32_t kTiles = 16;

struct Request {
  uint64_t gm;
  uint64_t gm_stride;
  uint32_t ub; // offset in the kernel's scratchpad
  uint32_t ub_stride;
  uint32_t rows;
  uint32_t row_bytes;
  uint32_t is_store;
  uint32_t event;
};

struct Board {
  uint32_t posted;               // requests put on the board, by warp 0
  uint32_t served;               // requests done, by the scalar unit
  uint32_t left;                 // lanes that have ended
  uint32_t issued[kNoEvent + 1]; // requests by event, by warp 0
  uint32_t done[kNoEvent + 1];   // by the scalar unit
  uint32_t tile_offset[kTiles];
  uint32_t tile_bytes[kTiles];
  uint32_t core; // that runs the block
  uint32_t static_bytes;
  uint32_t capacity_bytes;
  Request requests[kRequests];
};
static_assert(sizeof(Board) <= kBoardBytes, "the board has outgrown its place");

// ---------------------------------------------------------------- lanes

template <class V> PTO_FN V fresh(PTO_UB V* at) {
  return *static_cast<PTO_UB volatile V*>(at);
}
template <class V> PTO_FN void publish(PTO_UB V* at, V value) {
  *static_cast<PTO_UB volatile V*>(at) = value;
}

/// Lanes of warp 0 that take part: how many, and the place of this one among them. Block-scoped
/// instructions are theirs; the operands are those of the first.
struct Team {
  bool takes_part;
  uint32_t rank;
  uint32_t count;
};
PTO_FN Team team_of_block() {
  const uint32_t active = asc_activemask();
  const uint32_t below = active & static_cast<uint32_t>(lanemask_lt());
  return {linear_lane() < 32,
          static_cast<uint32_t>(__popc(below)),
          static_cast<uint32_t>(__popc(active))};
}
/// The value of the first active lane.
template <class V> PTO_FN V of_first(V value) {
  const uint32_t active = asc_activemask();
  return asc_shfl(value, static_cast<int32_t>(__ffs(static_cast<int32_t>(active))) - 1, 32);
}

/// Number of the AI core, of which each holds several vector cores.
PTO_FN uint32_t core(PTO_UB Board* board) {
  return fresh(&board->core);
}

PTO_FN uint32_t tile(PTO_UB Board* board, uint32_t number) {
  return fresh(&board->tile_offset[number]);
}

PTO_FN uint32_t tile_bytes(PTO_UB Board* board, uint32_t number) {
  return fresh(&board->tile_bytes[number]);
}

/// First fit behind the static scratchpad, as the simulator does it; zeroed. Out of scratchpad
/// traps.
PTO_FN void
alloc_local(PTO_UB Board* board, PTO_UB uint8_t* l1, uint32_t number, uint32_t bytes PTO_LINE) {
  PTO_AT();
  const Team team = team_of_block();
  if (!team.takes_part) {
    return;
  }
  bytes = of_first(bytes);
  PTO_STEP();
  uint32_t offset = (board->static_bytes + 31u) / 32u * 32u;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t t = 0; t < kTiles; ++t) {
      const uint32_t begin = fresh(&board->tile_offset[t]);
      const uint32_t end = begin + fresh(&board->tile_bytes[t]);
      if (t != number && begin != end && begin < offset + bytes && offset < end) {
        offset = (end + 31u) / 32u * 32u;
        moved = true;
      }
    }
  }
  if (bytes == 0 || offset + bytes > board->capacity_bytes) {
    PTO_PRINT("pto: no room for a tile of %u bytes in %u bytes of scratchpad\n",
              bytes,
              board->capacity_bytes);
    __trap();
  }
  for (uint32_t at = team.rank; at < bytes; at += team.count) {
    l1[offset + at] = 0;
  }
  PTO_STEP();
  if (team.rank == 0) {
    publish(&board->tile_offset[number], offset);
    publish(&board->tile_bytes[number], bytes);
  }
  asc_threadfence_block();
  PTO_STEP();
}
PTO_FN void free_local(PTO_UB Board* board, uint32_t number PTO_LINE) {
  PTO_AT();
  const Team team = team_of_block();
  PTO_STEP();
  if (team.takes_part && team.rank == 0) {
    publish(&board->tile_bytes[number], 0u);
  }
  asc_threadfence_block();
  PTO_STEP();
}

template <class T> PTO_FN void fill(Ub to, uint32_t value, uint32_t bytes PTO_LINE) {
  PTO_AT();
  const Team team = team_of_block();
  if (!team.takes_part) {
    return;
  }
  using V = typename T::memory;
  value = of_first(value);
  bytes = of_first(bytes);
  PTO_STEP();
  PTO_UB V* elements = to.as<V>();
  for (uint32_t at = team.rank; at < bytes / sizeof(V); at += team.count) {
    elements[at] = static_cast<V>(value);
  }
  asc_threadfence_block();
  PTO_STEP();
}

/// Starts a copy. `ub_offset` counts from the start of the kernel's scratchpad.
PTO_FN void start_copy(PTO_UB Board* board,
                       PTO_UB uint8_t* l1,
                       bool is_store,
                       Gm gm_at,
                       uint32_t ub_offset,
                       uint32_t rows,
                       uint32_t row_bytes,
                       int64_t gm_stride,
                       int64_t ub_stride,
                       uint32_t event PTO_LINE) {
  PTO_AT();
  const Team team = team_of_block();
  if (!team.takes_part) {
    return;
  }
  const uint64_t gm_base = of_first(gm_at.address);
  ub_offset = of_first(ub_offset);
  rows = of_first(rows);
  row_bytes = of_first(row_bytes);
  gm_stride = static_cast<int64_t>(of_first(static_cast<uint64_t>(gm_stride)));
  ub_stride = static_cast<int64_t>(of_first(static_cast<uint64_t>(ub_stride)));
  PTO_STEP();
  // What the engine takes: rows that begin at multiples of 32 bytes, whole units when it writes the
  // scratchpad (when it reads it, any length).
  const bool is_aligned = ub_offset % 32 == 0 && (rows <= 1 || ub_stride % 32 == 0);
  const bool has_simple_strides = rows <= 1 || (gm_stride >= 0 && ub_stride >= 0);
  const uint32_t whole = is_store ? row_bytes : row_bytes / 32 * 32;
  const uint32_t by_engine = is_aligned && has_simple_strides && rows <= 4095 ? whole : 0;
  const uint32_t rest = row_bytes - by_engine;
  for (uint64_t at = team.rank; at < static_cast<uint64_t>(rows) * rest; at += team.count) {
    const int64_t row = static_cast<int64_t>(at / rest);
    const int64_t column = static_cast<int64_t>(by_engine + at % rest);
    PTO_UB uint8_t* near = l1 + ub_offset + row * ub_stride + column;
    PTO_GM uint8_t* far = gm(gm_base, row * gm_stride + column).as<uint8_t>();
    if (is_store) {
      *far = *near;
    } else {
      *near = *far;
    }
  }
  if (by_engine != 0 && rows != 0) {
    for (Loop loop; loop.next();) { // until a slot of the ring is free
      PTO_STEP();
      if (fresh(&board->posted) - fresh(&board->served) < kRequests) {
        break;
      }
    }
    if (team.rank == 0) {
      const uint32_t posted = fresh(&board->posted);
      PTO_UB Request& request = board->requests[posted % kRequests];
      request.gm = gm_base;
      request.gm_stride = rows <= 1 ? 0 : static_cast<uint64_t>(gm_stride);
      request.ub = ub_offset;
      request.ub_stride = rows <= 1 ? 0 : static_cast<uint32_t>(ub_stride);
      request.rows = rows;
      request.row_bytes = by_engine;
      request.is_store = is_store ? 1 : 0;
      request.event = event;
      publish(&board->issued[event], fresh(&board->issued[event]) + 1);
      asc_threadfence(); // the request and the lanes' own data, before the word that shows it
      publish(&board->posted, posted + 1);
    }
  }
  asc_threadfence_block();
  PTO_STEP();
}
PTO_FN void async_load_2d(PTO_UB Board* board,
                          PTO_UB uint8_t* l1,
                          Ub to,
                          Gm from,
                          uint32_t rows,
                          uint32_t row_bytes,
                          uint32_t gm_stride,
                          uint32_t ub_stride,
                          uint32_t event = kNoEvent PTO_LINE) {
  start_copy(board,
             l1,
             false,
             from,
             static_cast<uint32_t>(to.address - l1),
             rows,
             row_bytes,
             index(gm_stride),
             index(ub_stride),
             event PTO_PASS_LINE);
}
PTO_FN void async_load(PTO_UB Board* board,
                       PTO_UB uint8_t* l1,
                       Ub to,
                       Gm from,
                       uint32_t bytes,
                       uint32_t event = kNoEvent PTO_LINE) {
  async_load_2d(board, l1, to, from, 1, bytes, 0, 0, event PTO_PASS_LINE);
}
PTO_FN void async_store_2d(PTO_UB Board* board,
                           PTO_UB uint8_t* l1,
                           Gm to,
                           Ub from,
                           uint32_t rows,
                           uint32_t row_bytes,
                           uint32_t gm_stride,
                           uint32_t ub_stride,
                           uint32_t event = kNoEvent PTO_LINE) {
  start_copy(board,
             l1,
             true,
             to,
             static_cast<uint32_t>(from.address - l1),
             rows,
             row_bytes,
             index(gm_stride),
             index(ub_stride),
             event PTO_PASS_LINE);
}
PTO_FN void async_store(PTO_UB Board* board,
                        PTO_UB uint8_t* l1,
                        Gm to,
                        Ub from,
                        uint32_t bytes,
                        uint32_t event = kNoEvent PTO_LINE) {
  async_store_2d(board, l1, to, from, 1, bytes, 0, 0, event PTO_PASS_LINE);
}

/// Until every copy of the event that was issued so far is done.
PTO_FN void wait(PTO_UB Board* board, uint32_t event PTO_LINE) {
  PTO_STEP();
  const uint32_t issued = fresh(&board->issued[event]);
  for (Loop loop; loop.next();) {
    PTO_STEP();
    if (static_cast<int32_t>(fresh(&board->done[event]) - issued) >= 0) {
      break;
    }
  }
}
PTO_FN void wait_all(PTO_UB Board* board PTO_LINE) {
  PTO_STEP();
  const uint32_t posted = fresh(&board->posted);
  for (Loop loop; loop.next();) {
    PTO_STEP();
    if (static_cast<int32_t>(fresh(&board->served) - posted) >= 0) {
      break;
    }
  }
}

/// C += A*B by the lanes of warp 0, an element of C at a time: k ascending, each step fused. C must
/// lie apart from A and B, else it traps.
template <class To, class From>
PTO_FN void mma(Ub c,
                Ub a,
                Ub b,
                uint32_t m,
                uint32_t n,
                uint32_t k,
                uint32_t lda,
                uint32_t ldb,
                uint32_t ldc PTO_LINE) {
  PTO_AT();
  const Team team = team_of_block();
  if (!team.takes_part) {
    return;
  }
  m = of_first(m);
  n = of_first(n);
  k = of_first(k);
  lda = of_first(lda);
  ldb = of_first(ldb);
  ldc = of_first(ldc);
  PTO_STEP();
  using Out = typename To::memory;
  using In = typename From::memory;
  PTO_UB Out* sums = c.as<Out>();
  PTO_UB In* left = a.as<In>();
  PTO_UB In* right = b.as<In>();
  PTO_UB uint8_t* c_end = c.address + ((m - 1) * ldc + n) * sizeof(Out);
  PTO_UB uint8_t* a_end = a.address + ((m - 1) * lda + k) * sizeof(In);
  PTO_UB uint8_t* b_end = b.address + ((k - 1) * ldb + n) * sizeof(In);
  if ((c.address < a_end && a.address < c_end) || (c.address < b_end && b.address < c_end)) {
    PTO_PRINT("pto: mma whose C overlaps A or B\n");
    __trap();
  }
  for (uint32_t at = team.rank; at < m * n; at += team.count) {
    const uint32_t i = at / n;
    const uint32_t j = at % n;
    Out sum = sums[i * ldc + j];
    for (uint32_t step = 0; step < k; ++step) {
      const In x = left[i * lda + step];
      const In y = right[step * ldb + j];
      if constexpr (kSame<To, types::f32>) {
        sum = fmaf(widen<From>(from_memory<From>(x)), widen<From>(from_memory<From>(y)), sum);
      } else {
        sum = static_cast<Out>(static_cast<uint32_t>(sum) +
                               static_cast<uint32_t>(static_cast<int32_t>(x)) *
                                   static_cast<uint32_t>(static_cast<int32_t>(y)));
      }
    }
    if constexpr (kSame<To, types::f32>) {
      sum = canonical(sum);
    }
    sums[i * ldc + j] = sum;
  }
  asc_threadfence_block();
  PTO_STEP();
}

/// A lane's last act.
PTO_FN void leave(PTO_UB Board* board) {
  asc_threadfence();
  asc_atomic_add(&board->left, 1u);
}

// ---------------------------------------------------------------- the scalar unit

PTO_SCALAR_FN PTO_UB Board*
open_board(PTO_UB uint8_t* ub_base, uint32_t static_bytes, uint32_t capacity_bytes) {
  // An operator that ran before may have left copies in a mode that adds or loops.
  asc_init();
  PTO_UB Board* board = reinterpret_cast<PTO_UB Board*>(ub_base);
  PTO_UB volatile uint32_t* words = reinterpret_cast<PTO_UB volatile uint32_t*>(ub_base);
  for (uint32_t i = 0; i < kBoardBytes / 4; ++i) {
    words[i] = 0;
  }
  *static_cast<PTO_UB volatile uint32_t*>(&board->core) = static_cast<uint32_t>(asc_get_core_id());
  *static_cast<PTO_UB volatile uint32_t*>(&board->static_bytes) = static_bytes;
  *static_cast<PTO_UB volatile uint32_t*>(&board->capacity_bytes) = capacity_bytes;
  return board;
}

/// Serves copies until all lanes have left.
PTO_SCALAR_FN void serve(PTO_UB Board* board, PTO_UB uint8_t* l1, uint32_t lanes) {
  uint32_t taken = 0;
  while (true) {
    const uint32_t posted = *static_cast<PTO_UB volatile uint32_t*>(&board->posted);
    if (posted == taken) {
      if (*static_cast<PTO_UB volatile uint32_t*>(&board->left) == lanes) {
        return;
      }
      PTO_IDLE();
      continue;
    }
    bool loads = false;
    bool stores = false;
    const uint32_t first = taken;
    for (; taken != posted; ++taken) {
      PTO_UB Request& request = board->requests[taken % kRequests];
      PTO_GM uint8_t* far = reinterpret_cast<PTO_GM uint8_t*>(request.gm);
      PTO_UB uint8_t* near = l1 + request.ub;
      if (request.is_store != 0) {
        stores = true;
        asc_copy_ub2gm_align(far,
                             near,
                             static_cast<uint16_t>(request.rows),
                             request.row_bytes,
                             asc_store_l2_cache_mode::NORMAL_FIRST_VICTIM,
                             request.gm_stride,
                             request.ub_stride);
      } else {
        loads = true;
        asc_copy_gm2ub_align(near,
                             far,
                             static_cast<uint16_t>(request.rows),
                             request.row_bytes,
                             0,
                             0,
                             true,
                             asc_load_l2_cache_mode::NORMAL_FIRST_VICTIM,
                             request.gm_stride,
                             request.ub_stride);
      }
    }
    if (loads) {
      asc_sync_notify(PIPE_MTE2, PIPE_S, EVENT_ID0);
      asc_sync_wait(PIPE_MTE2, PIPE_S, EVENT_ID0);
    }
    if (stores) {
      asc_sync_notify(PIPE_MTE3, PIPE_S, EVENT_ID1);
      asc_sync_wait(PIPE_MTE3, PIPE_S, EVENT_ID1);
    }
    for (uint32_t i = first; i != taken; ++i) {
      PTO_UB volatile uint32_t* done = static_cast<PTO_UB volatile uint32_t*>(
          &board->done[board->requests[i % kRequests].event]);
      *done = *done + 1;
    }
    *static_cast<PTO_UB volatile uint32_t*>(&board->served) = taken;
  }
}

} // namespace pto
