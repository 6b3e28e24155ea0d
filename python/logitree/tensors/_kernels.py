"""Triton kernels: masks on logits, and chains that draw a token of each row, where the logits are.

A row is split into chunks of `CHUNK` ids, and these into groups. One program works on a chunk, or on a whole row where
little is left of it:

```text
survey      highest logit of each group and chunk
weigh       sum of the exponentials of each chunk, for chains that need that of a whole row
threshold   a logit that at least k of the row reach: the k-th highest of its groups
gather      keys (logit and id) of all logits that reach it
pick        sorts the keys, applies the steps, and draws; or says that it needs more keys
find        draws in order of the ids, for chains that do not sort
search      the rows that needed more keys: finds each cut by narrowing it down over the whole row
```

A candidate's key orders it: its logit's bits, ascending as int32, and then its id, the lower the higher. The words of a
row's steps are those of crates/logitree-sampling/src/chain/steps.rs. What each step does, and in which precision, is
that file's samplers': exponentials in float32, sums in float64.
"""

from __future__ import annotations

import triton
import triton.language as tl

HEADER: tl.constexpr = tl.constexpr(8)
TEMPERATURE: tl.constexpr = tl.constexpr(0)
TOP_K: tl.constexpr = tl.constexpr(1)
TOP_P: tl.constexpr = tl.constexpr(2)
MIN_P: tl.constexpr = tl.constexpr(3)
LEAST: tl.constexpr = tl.constexpr(-(1 << 63))
"""Below every key."""
MOST: tl.constexpr = tl.constexpr(0x7F800000 << 32)
"""Above the keys of finite logits."""


@triton.jit
def ban(logits, stride, rows, masks, words, size, width, CHUNK: tl.constexpr):
    """Writes -inf where a mask has no bit, and from `size` to `width`. Grid: masks, chunks.

    Eight ids at a time, so that loads and stores are wide: nothing is read where all eight are banned, and nothing
    is written where none is.
    """
    at = tl.program_id(0)
    row = tl.load(rows + at).to(tl.int64)
    first = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK // 8) * 8
    word = tl.load(masks + at.to(tl.int64) * words + (first >> 5), mask=first < size, other=0)
    allowed = (word >> (first & 31)) & 0xFF
    inside = first + 8 <= size
    is_mixed = (inside & (allowed != 0) & (allowed != 0xFF)) | ((first < width) & (inside == 0))
    ids = first[:, None] + tl.arange(0, 8)[None, :]
    keeps = (((allowed[:, None] >> tl.arange(0, 8)[None, :]) & 1) != 0) & (ids < size)
    places = logits + row * stride + ids
    x = tl.load(places, mask=is_mixed[:, None] & (ids < width), other=float("-inf"))
    writes = (first < width) & ((allowed != 0xFF) | (inside == 0))
    tl.store(places, tl.where(keeps, x, float("-inf")), mask=writes[:, None] & (ids < width))


@triton.jit
def _logits(logits, stride, masks, words, size, row, ids, HAS_MASK: tl.constexpr):
    """float32: a row's logits at `ids`; -inf where they are not allowed, +inf where they are NaN."""
    allowed = ids < size
    if HAS_MASK:
        word = tl.load(masks + row.to(tl.int64) * words + (ids >> 5), mask=allowed, other=0)
        allowed = allowed & (((word >> (ids & 31)) & 1) != 0)
    x = tl.load(logits + row.to(tl.int64) * stride + ids, mask=allowed, other=float("-inf")).to(tl.float32)
    return tl.where(x == x, x, float("inf"))


@triton.jit
def _ordered(x):
    """int32 that ascend as the floats do."""
    bits = (x + 0.0).to(tl.int32, bitcast=True)  # -0 becomes 0: they are equal
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _key(x, ids):
    return (_ordered(x).to(tl.int64) << 32) | (0x7FFFFFFF - ids).to(tl.int64)


@triton.jit
def _of_key(keys):
    """The logit and the id of keys."""
    bits = (keys >> 32).to(tl.int32)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return bits.to(tl.float32, bitcast=True), 0x7FFFFFFF - (keys & 0x7FFFFFFF).to(tl.int32)


@triton.jit
def _exp(x):
    """float32 exp(x) for x from -87 to 0, else 0: bit for bit `exp_below` of crates/logitree-tokens/src/simd/exp.rs.

    The device's own float32 exponential moves one draw in a thousand of flat rows.
    """
    rounded = tl.fma(x, tl.full(x.shape, 1.4426950408889634, tl.float32), tl.full(x.shape, 12582912.0, tl.float32))
    k = rounded - 12582912.0
    rest = tl.fma(k, tl.full(x.shape, -0.6931471805599453, tl.float32), x)
    rest = tl.fma(k, tl.full(x.shape, 1.9046543e-9, tl.float32), rest)
    p = tl.full(x.shape, 1.3814599e-3, tl.float32)
    p = tl.fma(p, rest, tl.full(x.shape, 8.368717e-3, tl.float32))
    p = tl.fma(p, rest, tl.full(x.shape, 4.166839e-2, tl.float32))
    p = tl.fma(p, rest, tl.full(x.shape, 1.6666521e-1, tl.float32))
    p = tl.fma(p, rest, tl.full(x.shape, 4.9999994e-1, tl.float32))
    p = tl.fma(p, rest, tl.full(x.shape, 1.0, tl.float32))
    p = tl.fma(p, rest, tl.full(x.shape, 1.0, tl.float32))
    power = rounded.to(tl.int32, bitcast=True) << 23
    scaled = (p.to(tl.int32, bitcast=True) + power).to(tl.float32, bitcast=True)
    return tl.where((x <= 0) & (x >= -87.0), scaled, 0.0)


@triton.jit
def _number(word):
    return word.to(tl.float32, bitcast=True)


@triton.jit
def _best(best, chunks, row, MAX_CHUNKS: tl.constexpr):
    """The row's highest logit; +inf: one is NaN or +inf; -inf: nothing may be picked."""
    at = tl.arange(0, MAX_CHUNKS)
    return tl.max(tl.load(best + row * chunks + at, mask=at < chunks, other=float("-inf")), axis=0)


@triton.jit
def _is_sane(best):
    return (best < float("inf")) & (best > float("-inf"))


@triton.jit
def _uniform(steps):
    """float64 in [0, 1): 53 bits of Philox4x32-10, as rng/mod.rs takes them."""
    low = tl.load(steps + 2).to(tl.uint32, bitcast=True).to(tl.uint64)
    high = tl.load(steps + 3).to(tl.uint32, bitcast=True).to(tl.uint64)
    sequence = tl.load(steps + 4).to(tl.uint32, bitcast=True)
    zero = sequence * 0
    first = tl.load(steps + 5).to(tl.uint32, bitcast=True)
    second = tl.load(steps + 6).to(tl.uint32, bitcast=True)
    a, b, _c, _d = tl.philox((high << 32) | low, first, second, sequence, zero)
    wide = (b.to(tl.uint64) << 32) | a.to(tl.uint64)
    return (wide >> 11).to(tl.float64) * 1.1102230246251565e-16


@triton.jit
def survey(
    logits, stride, masks, words, size, groups, best, chunks,
    CHUNK: tl.constexpr, GROUP: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """Highest logits of groups, float32 [R, chunks * CHUNK / GROUP], and of chunks, [R, chunks]. Grid: rows, chunks."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    each: tl.constexpr = CHUNK // GROUP
    ids = chunk * CHUNK + tl.arange(0, each)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    highest = tl.max(_logits(logits, stride, masks, words, size, row, ids, HAS_MASK), axis=1)
    tl.store(groups + (row * chunks + chunk) * each + tl.arange(0, each), highest)
    tl.store(best + row * chunks + chunk, tl.max(highest, axis=0))


@triton.jit
def _unsorted(x, best, steps, count):
    """Temperatures and min_p on logits in any order, up to a step that sorts: exponentials, 0 if removed.

    Also whether the first maximum alone is left.
    """
    kept = x > float("-inf")
    alone = best != best
    i = count * 0
    while i < count:
        kind = tl.load(steps + HEADER + 2 * i)
        number = _number(tl.load(steps + HEADER + 2 * i + 1))
        if kind == TEMPERATURE:
            lower = tl.div_rn(best, tl.where(number > 0, number, 1.0))
            alone = alone | (number <= 0) | (tl.abs(lower) == float("inf"))
            if not alone:
                x = tl.div_rn(x, number)
                best = lower
        elif (kind == TOP_K) | (kind == TOP_P):
            count = i
        else:
            alone = alone | (number > 0)
            kept = kept & ((x >= best + number) | (x == best))
        i += 1
    return tl.where(kept, _exp(x - best), 0.0), alone


@triton.jit
def weigh(
    logits, stride, masks, words, size, best, sums, chunks, steps, step_words,
    CHUNK: tl.constexpr, MAX_CHUNKS: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """Sums of the exponentials of chunks, float64 [R, chunks], at the first step that sorts. Grid: rows, chunks."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    steps += row * step_words
    highest = _best(best, chunks, row, MAX_CHUNKS)
    if _is_sane(highest):
        x = _logits(logits, stride, masks, words, size, row, chunk * CHUNK + tl.arange(0, CHUNK), HAS_MASK)
        exponentials, _alone = _unsorted(x, highest, steps, tl.load(steps))
        tl.store(sums + row * chunks + chunk, tl.sum(exponentials.to(tl.float64), axis=0))


@triton.jit
def threshold(groups, count, thresholds, counts, steps, step_words, RANK: tl.constexpr, MAX_GROUPS: tl.constexpr):
    """The k-th highest of a row's groups, float32 [R]: k of its steps, at most RANK. Grid: rows."""
    row = tl.program_id(0)
    tl.store(counts + row, 0)
    rank = tl.load(steps + row * step_words + 7)
    rank = tl.where((rank < 0) | (rank > RANK), RANK, rank)  # u32::MAX is -1 here
    if rank > 0:
        at = tl.arange(0, MAX_GROUPS)
        highest = tl.load(groups + row * count + at, mask=at < count, other=float("-inf"))
        # Bits that ascend without a sign.
        keys = (_ordered(highest) ^ -0x80000000).to(tl.uint32, bitcast=True)
        found = tl.sum((keys * 0).to(tl.int32), axis=0).to(tl.uint32)
        for bit in range(31, -1, -1):
            tried = found | (tl.full([], 1, tl.uint32) << bit)
            reached = tl.sum((keys >= tried).to(tl.int32), axis=0)
            found = tl.where(reached >= rank, tried, found)
        bits = found.to(tl.int32, bitcast=True) ^ -0x80000000
        bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        # Fewer groups than that: all logits reach it.
        least = tl.where(found == 0, float("-inf"), bits.to(tl.float32, bitcast=True))
        tl.store(thresholds + row, least)


@triton.jit
def gather(
    logits, stride, masks, words, size, best, thresholds, keys, counts, chunks, steps, step_words,
    CHUNK: tl.constexpr, ROOM: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """Keys of the logits that reach the threshold, int64 [R, ROOM], and how many there are. Grid: rows, chunks."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    if tl.load(steps + row * step_words + 7) != 0:
        least = tl.load(thresholds + row)
        highest = tl.load(best + row * chunks + chunk)
        if (highest >= least) & (highest > float("-inf")):
            ids = chunk * CHUNK + tl.arange(0, CHUNK)
            x = _logits(logits, stride, masks, words, size, row, ids, HAS_MASK)
            kept = (x >= least) & (x > float("-inf"))
            place = tl.cumsum(kept.to(tl.int32), axis=0) - 1
            start = tl.atomic_add(counts + row, tl.sum(kept.to(tl.int32), axis=0))
            place += start
            tl.store(keys + row * ROOM + place, _key(x, ids), mask=kept & (place < ROOM))


@triton.jit
def pick(
    keys, counts, thresholds, best, sums, chunks, steps, step_words, tokens, unfinished,
    ROOM: tl.constexpr, MAX_CHUNKS: tl.constexpr,
):  # fmt: skip
    """Applies the steps to the gathered keys and draws: int64 [R]. `unfinished`: they do not suffice. Grid: rows."""
    row = tl.program_id(0)
    steps += row * step_words
    highest = _best(best, chunks, row, MAX_CHUNKS)
    tl.store(unfinished + row, 0)
    sorts = tl.load(steps + 7) != 0
    if not _is_sane(highest):
        tl.store(tokens + row, -1)
    elif sorts:
        gathered = tl.load(counts + row)
        at = tl.arange(0, ROOM)
        sorted_keys = tl.load(keys + row * ROOM + at, mask=at < gathered, other=LEAST)
        sorted_keys = tl.sort(sorted_keys, descending=True)
        x, ids = _of_key(sorted_keys)
        # All candidates are known if nothing is below the threshold.
        known = (tl.load(thresholds + row) == float("-inf")) & (gathered <= ROOM)
        is_enough = gathered <= ROOM
        # A step kept more than is known: then the weight of what it kept is not known either.
        keeps_more = gathered < 0
        left = gathered
        top = highest
        for i in range(tl.load(steps)):
            kind = tl.load(steps + HEADER + 2 * i)
            word = tl.load(steps + HEADER + 2 * i + 1)
            number = _number(word)
            if kind == TEMPERATURE:
                lower = tl.div_rn(top, tl.where(number > 0, number, 1.0))
                if (number <= 0) | (tl.abs(lower) == float("inf")):
                    left = tl.minimum(left, 1)
                    known = left == 1
                else:
                    x = tl.div_rn(x, number)
                    top = lower
            elif kind == TOP_K:
                known = known | (word <= left)
                keeps_more = keeps_more | (not known)
                left = tl.minimum(word, left)
            elif kind == TOP_P:
                exponentials = tl.where(at < left, _exp(x - top), 0.0).to(tl.float64)
                total = tl.sum(exponentials, axis=0)
                if not known:
                    chunk = tl.arange(0, MAX_CHUNKS)
                    total = tl.sum(tl.load(sums + row * chunks + chunk, mask=chunk < chunks, other=0.0), axis=0)
                is_enough = is_enough & (not keeps_more)
                running = tl.cumsum(exponentials, axis=0)
                kept = 1 + tl.sum(((running < total * number.to(tl.float64)) & (at < left)).to(tl.int32), axis=0)
                known = known | (kept <= left)
                keeps_more = keeps_more | (not known)
                left = tl.minimum(kept, left)
            else:
                kept = tl.sum(((x >= top + number) & (at < left)).to(tl.int32), axis=0)
                known = known | (kept < left)
                left = tl.maximum(kept, 1)
        is_enough = is_enough & known
        tl.store(unfinished + row, tl.where(is_enough, 0, 1))
        chosen = left * 0
        if tl.load(steps + 1) != 0:
            exponentials = tl.where(at < left, _exp(x - top), 0.0).to(tl.float64)
            target = tl.sum(exponentials, axis=0) * _uniform(steps)
            running = tl.cumsum(exponentials, axis=0)
            chosen = tl.minimum(tl.sum(((running < target) & (at < left)).to(tl.int32), axis=0), left - 1)
        if is_enough:
            tl.store(tokens + row, tl.sum(tl.where(at == chosen, ids, 0), axis=0).to(tl.int64))


@triton.jit
def find(
    logits, stride, masks, words, size, best, sums, chunks, steps, step_words, tokens,
    CHUNK: tl.constexpr, MAX_CHUNKS: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """Draws in order of the ids: int64 [R], for rows that no step sorts. Grid: rows."""
    row = tl.program_id(0)
    steps += row * step_words
    highest = _best(best, chunks, row, MAX_CHUNKS)
    sorts = tl.load(steps + 7) != 0
    if not _is_sane(highest):
        tl.store(tokens + row, -1)
    elif not sorts:
        at = tl.arange(0, MAX_CHUNKS)
        bests = tl.load(best + row * chunks + at, mask=at < chunks, other=float("-inf"))
        weights = tl.load(sums + row * chunks + at, mask=at < chunks, other=0.0)
        running = tl.cumsum(weights, axis=0)
        draws = tl.load(steps + 1) != 0
        # A draw of exactly 0 must not select what has no weight.
        target = tl.maximum(tl.sum(weights, axis=0) * _uniform(steps), 1e-300)
        _one, alone = _unsorted(bests, highest, steps, tl.load(steps))
        last = tl.max(tl.where(weights > 0, at, 0), axis=0)
        chunk = tl.minimum(tl.sum((running < target).to(tl.int32), axis=0), last)
        takes_best = alone | (not draws)
        chunk = tl.where(takes_best, tl.min(tl.where(bests == highest, at, MAX_CHUNKS), axis=0), chunk)
        inside = tl.arange(0, CHUNK)
        x = _logits(logits, stride, masks, words, size, row, chunk * CHUNK + inside, HAS_MASK)
        exponentials, _alone = _unsorted(x, highest, steps, tl.load(steps))
        exponentials = exponentials.to(tl.float64)
        before = tl.sum(tl.where(at < chunk, weights, 0.0), axis=0)
        running_inside = before + tl.cumsum(exponentials, axis=0)
        last_inside = tl.max(tl.where(exponentials > 0, inside, 0), axis=0)
        place = tl.minimum(tl.sum((running_inside < target).to(tl.int32), axis=0), last_inside)
        first_inside = tl.min(tl.where(x == highest, inside, CHUNK), axis=0)
        place = tl.where(takes_best, first_inside, place)
        tl.store(tokens + row, (chunk * CHUNK + place).to(tl.int64))


@triton.jit
def _tempered(x, steps, until):
    """Logits after the temperatures of `until` steps; those that leave one candidate divide by nothing."""
    for i in range(until):
        number = _number(tl.load(steps + HEADER + 2 * i + 1))
        if (tl.load(steps + HEADER + 2 * i) == TEMPERATURE) & (number > 0):
            x = tl.div_rn(x, number)
    return x


@triton.jit
def _temperature(steps, until):
    """float32: the product of the temperatures of `until` steps."""
    product = tl.full([], 1.0, tl.float32)
    for i in range(until):
        number = _number(tl.load(steps + HEADER + 2 * i + 1))
        if (tl.load(steps + HEADER + 2 * i) == TEMPERATURE) & (number > 0):
            product *= number
    return product


@triton.jit
def _measure(
    logits, stride, masks, words, size, chunks, steps, row, top, until, counted, first, second, third,
    CHUNK: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """For each of three keys: how many candidates have higher ones or it, and the sum of these candidates' weights.

    A weight is 1 if they are counted, else the exponential after `until` steps.
    """
    one, two, three = tl.zeros([CHUNK], tl.float64), tl.zeros([CHUNK], tl.float64), tl.zeros([CHUNK], tl.float64)
    one_count, two_count = tl.zeros([CHUNK], tl.int32), tl.zeros([CHUNK], tl.int32)
    three_count = tl.zeros([CHUNK], tl.int32)
    for chunk in range(chunks):
        ids = chunk * CHUNK + tl.arange(0, CHUNK)
        x = _logits(logits, stride, masks, words, size, row, ids, HAS_MASK)
        keys = tl.where(x > float("-inf"), _key(x, ids), LEAST)
        weights = tl.where(counted, 1.0, _exp(_tempered(x, steps, until) - top)).to(tl.float64)
        one += tl.where(keys >= first, weights, 0.0)
        two += tl.where(keys >= second, weights, 0.0)
        three += tl.where(keys >= third, weights, 0.0)
        one_count += (keys >= first).to(tl.int32)
        two_count += (keys >= second).to(tl.int32)
        three_count += (keys >= third).to(tl.int32)
    return (
        tl.sum(one, axis=0), tl.sum(two, axis=0), tl.sum(three, axis=0),
        tl.sum(one_count, axis=0), tl.sum(two_count, axis=0), tl.sum(three_count, axis=0),
    )  # fmt: skip


@triton.jit
def _lowest(
    logits, stride, masks, words, size, chunks, steps, row, until, least, CHUNK: tl.constexpr, HAS_MASK: tl.constexpr
):  # fmt: skip
    """The lowest key of a candidate that is at least `least` after `until` steps; the highest int64 if none is."""
    found = tl.full([CHUNK], (1 << 63) - 1, tl.int64)
    for chunk in range(chunks):
        ids = chunk * CHUNK + tl.arange(0, CHUNK)
        x = _logits(logits, stride, masks, words, size, row, ids, HAS_MASK)
        keys = _key(x, ids)
        alive = x > float("-inf")
        x = _tempered(x, steps, until)
        found = tl.where(alive & (x >= least), tl.minimum(found, keys), found)
    return tl.min(found, axis=0)


@triton.jit
def _between(low, high, quarters):
    """A key between two: at so many quarters of the way by their logits, or by the keys where the logits are close."""
    least, _id = _of_key(low)
    most, _id = _of_key(high)
    logit = least + (most - least) * (0.25 * quarters)
    key = _key(logit, tl.full([], 0x7FFFFFFF, tl.int32))
    if (key <= low) | (key >= high):
        step = (high >> 2) - (low >> 2)
        key = low + step * quarters
    return tl.minimum(tl.maximum(key, low + 1), high - 1)


@triton.jit
def _cut(
    logits, stride, masks, words, size, chunks, steps, row, top, until, counted, share, cut, keys, counts, best,
    CHUNK: tl.constexpr, ROOM: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """The highest key from which on the weights reach `share`, which is of all from `cut` on unless they are counted.

    Quarters the keys between until they fit into the room, and sorts these.
    """
    # Some 24 nats below the best one there is little weight.
    low = _key(best - 24.0 * _temperature(steps, until), tl.full([], 0x7FFFFFFF, tl.int32))
    low = tl.maximum(low, cut)
    total, weight, above, all_count, count, higher = _measure(
        logits, stride, masks, words, size, chunks, steps, row, top, until, counted, cut, low, MOST, CHUNK, HAS_MASK
    )  # fmt: skip
    # At least the best one: its exponential is 1.
    goal = tl.where(counted, share, tl.maximum(total * share, 1e-300))
    if weight < goal:
        low = tl.maximum(
            cut, _lowest(logits, stride, masks, words, size, chunks, steps, row, 0, float("-inf"), CHUNK, HAS_MASK)
        )  # fmt: skip
        count = all_count
    if total <= goal:
        low = cut
    else:
        high = _key(best, tl.full([], 0, tl.int32)) + 1
        while count - higher > ROOM:
            a, b, c = _between(low, high, 1), _between(low, high, 2), _between(low, high, 3)
            of_a, of_b, of_c, count_a, count_b, count_c = _measure(
                logits, stride, masks, words, size, chunks, steps, row, top, until, counted, a, b, c, CHUNK, HAS_MASK
            )  # fmt: skip
            if of_c >= goal:
                low = c
                count = count_c
            elif of_b >= goal:
                low, high = b, c
                count, higher, above = count_b, count_c, of_c
            elif of_a >= goal:
                low, high = a, b
                count, higher, above = count_a, count_b, of_b
            else:
                high = a
                higher, above = count_a, of_a
        tl.store(counts + row, 0)
        tl.debug_barrier()
        for chunk in range(chunks):
            ids = chunk * CHUNK + tl.arange(0, CHUNK)
            x = _logits(logits, stride, masks, words, size, row, ids, HAS_MASK)
            found = tl.where(x > float("-inf"), _key(x, ids), LEAST)
            kept = (found >= low) & (found < high) & (found > LEAST)
            place = tl.atomic_add(counts + row + 0 * ids, 1, mask=kept)
            tl.store(keys + row * ROOM + place, found, mask=kept & (place < ROOM))
        tl.debug_barrier()
        at = tl.arange(0, ROOM)
        found = tl.load(keys + row * ROOM + at, mask=at < count - higher, other=LEAST, volatile=True)
        found = tl.sort(found, descending=True)
        x, _ids = _of_key(found)
        weights = tl.where(counted, 1.0, _exp(_tempered(x, steps, until) - top)).to(tl.float64)
        weights = tl.where(found > LEAST, weights, 0.0)
        before = tl.sum(((above + tl.cumsum(weights, axis=0) < goal) & (found > LEAST)).to(tl.int32), axis=0)
        before = tl.minimum(before, count - higher - 1)
        low = tl.max(tl.where(at == before, found, LEAST), axis=0)
    return low


@triton.jit
def search(
    logits, stride, masks, words, size, best, keys, counts, chunks, steps, step_words, tokens, unfinished,
    CHUNK: tl.constexpr, MAX_CHUNKS: tl.constexpr, ROOM: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """Draws for the rows that `pick` could not finish: some eight reads of the row for each cut. Grid: rows."""
    row = tl.program_id(0)
    steps += row * step_words
    if tl.load(unfinished + row) != 0:
        highest = _best(best, chunks, row, MAX_CHUNKS)
        top = highest
        cut = tl.full([], LEAST, tl.int64) + 1
        count = tl.load(steps)
        for i in range(count + 1):
            if i < count:
                kind = tl.load(steps + HEADER + 2 * i)
                word = tl.load(steps + HEADER + 2 * i + 1)
            else:  # the selection is the shortest beginning that holds what was drawn
                kind = tl.where(tl.load(steps + 1) != 0, TOP_P, TOP_K)
                word = tl.full([], 1, tl.int32)
            number = _number(word)
            is_alone = (kind == TEMPERATURE) & (number <= 0)
            if kind == TEMPERATURE:
                lower = tl.div_rn(top, tl.where(number > 0, number, 1.0))
                is_alone = is_alone | (tl.abs(lower) == float("inf"))
                top = tl.where(is_alone, top, lower)
            if (kind == TOP_P) | (kind == TOP_K) | is_alone:
                share = tl.where(kind == TOP_K, word.to(tl.float64), number.to(tl.float64))
                share = tl.where(is_alone, 1.0, share)
                if (i == count) & (kind == TOP_P):
                    share = _uniform(steps)
                cut = _cut(
                    logits, stride, masks, words, size, chunks, steps, row, top, i, kind != TOP_P, share, cut,
                    keys, counts, highest, CHUNK, ROOM, HAS_MASK,
                )  # fmt: skip
            elif kind == MIN_P:
                least = tl.minimum(top + number, top)
                cut = tl.maximum(
                    cut, _lowest(logits, stride, masks, words, size, chunks, steps, row, i, least, CHUNK, HAS_MASK)
                )  # fmt: skip
        _logit, token = _of_key(cut)
        tl.store(tokens + row, token.to(tl.int64))
