// Writes libstdcxx.toml: the orders in which libstdc++'s std::sort and std::partial_sort leave equal elements.
//
// Run by hand, when the fixture is to be made anew; no build or test compiles it:
//     g++ -O2 -std=c++17 -o /tmp/orders testdata/sampling/libstdcxx.cpp && /tmp/orders > testdata/sampling/libstdcxx.toml
//
// The keys are made by a rule that crates/logitree-sampling/tests/it/orders.rs repeats. It knows nothing of logits.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

struct Item {
    uint32_t key, tag;
};

// Knuth's MMIX generator; the high bits are the better ones.
static uint64_t state;
static uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 33);
}

// `distinct` keys in a pattern, and the tags 0 .. n.
static std::vector<Item> items(const std::string & pattern, uint32_t n, uint32_t distinct, uint64_t seed) {
    state = seed;
    std::vector<Item> xs(n);
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t key = 0;
        if (pattern == "random") key = next() % distinct;
        if (pattern == "rising") key = static_cast<uint64_t>(i) * distinct / n;
        if (pattern == "falling") key = static_cast<uint64_t>(n - 1 - i) * distinct / n;
        if (pattern == "pipe") key = std::min(i, n - 1 - i) * distinct / n;
        xs[i] = {key, i};
    }
    return xs;
}

// Keys against which the median of three is always nearly the best, so that the sort falls back to the heap: McIlroy,
// "A killer adversary for quicksort" (1999). Keys are decided while a sort of tags asks for them.
static std::vector<Item> killer(uint32_t n, uint32_t distinct) {
    const uint32_t gas = n;
    std::vector<uint32_t> value(n, gas), tags(n);
    uint32_t solid = 0, candidate = 0;
    for (uint32_t i = 0; i < n; ++i) tags[i] = i;
    std::sort(tags.begin(), tags.end(), [&](uint32_t x, uint32_t y) {
        if (value[x] == gas && value[y] == gas) value[x == candidate ? x : y] = solid++;
        if (value[x] == gas) candidate = x;
        else if (value[y] == gas) candidate = y;
        return value[x] < value[y];
    });
    std::vector<Item> xs(n);
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t rank = n - std::min(value[i], n - 1) - 1;  // the best first, as here the higher key is
        xs[i] = {static_cast<uint32_t>(static_cast<uint64_t>(rank) * distinct / n), i};
    }
    return xs;
}

// FNV-1a over whole words.
static uint32_t fnv(uint32_t hash, uint32_t word) { return (hash ^ word) * 16777619u; }

static void row(const std::string & pattern, uint32_t n, uint32_t distinct, uint64_t seed, uint32_t middle) {
    auto xs = pattern == "killer" ? killer(n, distinct) : items(pattern, n, distinct, seed);
    uint32_t keys = 2166136261u, order = keys;
    for (const auto & x : xs) keys = fnv(keys, x.key);
    const auto before = [](const Item & a, const Item & b) { return a.key > b.key; };
    if (middle == 0) std::sort(xs.begin(), xs.end(), before);
    else std::partial_sort(xs.begin(), xs.begin() + middle, xs.end(), before);
    for (const auto & x : xs) order = fnv(order, x.tag);
    printf("  [\"%s\", %u, %u, %llu, %u, %u, %u],\n", pattern.c_str(), n, distinct,
           static_cast<unsigned long long>(seed), middle, keys, order);
}

int main() {
    printf("# Orders of libstdc++ %d, made by libstdcxx.cpp; what the columns are, it says. Do not edit.\n", __GNUC__);
    printf("# pattern, n, distinct keys, seed, middle (0: std::sort), hash of the keys, hash of the tags afterwards\n");
    printf("rows = [\n");
    for (uint32_t n : {1, 2, 15, 16, 17, 33, 128, 129, 257, 1000, 3000}) {
        for (uint32_t distinct : {1u, 2u, 7u, 1u << 30}) {
            for (uint32_t middle : {0u, 1u, std::max(1u, n / 3), n}) row("random", n, distinct, n + distinct, middle);
        }
        for (const char * pattern : {"rising", "falling", "pipe"}) {
            for (uint32_t middle : {0u, std::max(1u, n / 2)}) row(pattern, n, std::max(1u, n / 5), 0, middle);
        }
    }
    for (uint32_t n : {100, 500, 3000}) {
        for (uint32_t distinct : {n, n / 2}) row("killer", n, distinct, 0, 0);
    }
    printf("]\n");
}
