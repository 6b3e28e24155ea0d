// The C++ wrapper: owners, exceptions, and RTP-LLM's cases of logits processors.

#include <cstdio>
#include <cstdlib>
#include <string>

#include <logitree.hpp>

using namespace logitree;

static int checks = 0;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1); \
        } \
        checks++; \
    } while (0)

template <class E, class F> static bool throws(F call) {
    try {
        call();
    } catch (const E &) {
        return true;
    }
    return false;
}

static Vocabulary letters(std::size_t size, Token end) {
    std::vector<std::string> tokens;
    for (std::size_t id = 0; id < size; id++) tokens.push_back("<" + std::to_string(id) + ">");
    return Vocabulary::fromTokens(tokens, {end});
}

// The ids that a row of logits does not ban.
static std::vector<Token> open_(const std::vector<float> &logits, std::size_t row, std::size_t vocabulary) {
    std::vector<Token> ids;
    for (std::size_t id = 0; id < vocabulary; id++) {
        if (logits[row * vocabulary + id] != kBanned) ids.push_back(static_cast<Token>(id));
    }
    return ids;
}

static void owners() {
    Vocabulary vocabulary = Vocabulary::fromTokens({"A", "B", "C", "</s>"}, {3});
    CHECK(vocabulary.size() == 4 && vocabulary.endTokens() == std::vector<Token>{3});
    CHECK(vocabulary.decode({0, 1, 3}) == "AB");
    CHECK(vocabulary.describe().find(R"("size":4,"end_tokens":[3])") != std::string::npos);
    Constraint constraint = Constraint::fromJson(R"({"type": "choices", "texts": ["ABBBBBBBBBBBBBBBBBBBBBBC", "C"]})");
    Matcher matcher(constraint, vocabulary);
    matcher.accept(0);
    CHECK(matcher.forced().size() == 23);
    Matcher moved = std::move(matcher);
    CHECK(!matcher && moved.isAllowed(1) && !moved.isAllowed(2));
    try {
        moved.accept(2);
        CHECK(false);
    } catch (const Error &error) {
        CHECK(error.status == LOGITREE_ERROR_TOKEN && error.kind == "token");
        CHECK(std::string(error.what()).find("not allowed") != std::string::npos);
    }
    CHECK(throws<Error>([&] { matcher.accept(1); }));
    CHECK(throws<Error>([] { Constraint::fromJson("{"); }));
    Chain chain(nullptr, R"({"temp": 1.2, "seed": 5})");
    const float logits[] = {1, 2, 3, 0};
    auto state = chain.snapshot();
    Token first = chain.sample(logits, 4);
    chain.restore(state);
    CHECK(chain.sample(logits, 4) == first);
    moved.accept({1, 1});
    CHECK(throws<Error>([&] { moved.accept({1, 0}); }));
    moved.rollback(3);
    CHECK(moved.isAllowed(2) && !moved.isAccepting());
    moved.reset();
    Chain greedy("greedy");
    Decoder decoder(vocabulary, greedy, &moved);
    CHECK(decoder.step(logits, 4) == 2 && decoder.finish() == LOGITREE_FINISH_CONSTRAINT);
    CHECK(decoder.tokens() == std::vector<Token>{2});
}

static void multi_sequence() {
    MultiSequenceProcessor rows(2, 3);
    rows.updateStatus({2, 0, 1});
    std::vector<float> logits(3 * 4, 1.0f);
    rows.process(logits.data(), 4, 0, 3);
    CHECK(open_(logits, 0, 4) == std::vector<Token>{2} && open_(logits, 1, 4).size() == 4);
    rows.updateMultiSeqStatus({1, 0});
    CHECK(rows.rows() == 2);
    CHECK(throws<std::out_of_range>([&] { rows.updateMultiSeqStatus({2}); }));
    CHECK(throws<std::out_of_range>([&] { rows.process(logits.data(), 4, 0, 3); }));
}

// Begin [7], end [8, 9], budget 3: after 2 thought tokens only 7 is masked; after 3 only 8 is allowed; then only 9.
static void think() {
    Vocabulary vocabulary = letters(12, 2);
    ThinkProcessor rows(vocabulary, {7}, {8, 9}, 3, 2, 2);
    std::vector<float> logits;
    auto allowed = [&](std::size_t row) {
        logits.assign(2 * 12, 0.5f);
        rows.process(logits.data(), 12, 0, 2);
        return open_(logits, row, 12);
    };
    rows.updateStatus({7, 7});
    rows.updateStatus({5, 8});
    CHECK(allowed(1) == std::vector<Token>{9});
    rows.updateStatus({5, 9});
    std::vector<Token> thinking = allowed(0);
    CHECK(std::find(thinking.begin(), thinking.end(), 7u) == thinking.end() && thinking.size() >= 9);
    rows.updateStatus({5, 5});
    CHECK(allowed(0) == std::vector<Token>{8});
    rows.updateStatus({8, 5});
    CHECK(allowed(0) == std::vector<Token>{9});
    rows.updateStatus({9, 2});
    std::vector<Token> after = allowed(0);
    CHECK(std::find(after.begin(), after.end(), 8u) == after.end() && after.size() >= 9);
    CHECK(allowed(1) == std::vector<Token>{2} && rows.isFinished(1));
}

// Items [0, 1], [0, 3], [3], each followed by the end token 4.
static void tree(const std::string &index) {
    auto walk = std::make_shared<const Walk>(index, 4);
    auto processor = std::make_shared<TreeProcessor>(walk, 4, 1);
    std::vector<float> logits(5, 1.0f);
    processor->process(logits.data(), 5, 0, 1);
    CHECK((open_(logits, 0, 5) == std::vector<Token>{0, 3}));
    processor->updateMultiSeqStatus({0, 0, 0});
    processor->updateStatus({0, 3, 2});
    logits.assign(4 * 5, 1.0f);
    processor->process(logits.data(), 5, 1, 4);
    CHECK(open_(logits, 0, 5).size() == 5);
    CHECK((open_(logits, 1, 5) == std::vector<Token>{1, 3}));
    CHECK(open_(logits, 2, 5) == std::vector<Token>{4} && open_(logits, 3, 5) == std::vector<Token>{4});
    processor->updateStatus({9, 4, 4});
    CHECK((processor->states() == std::vector<std::int64_t>{-2, -1, -1}));
    Processors all({processor, std::make_shared<MultiSequenceProcessor>(4, 3)});
    all.updateMultiSeqStatus({2, 0, 1, 1, 0});
    all.updateMultiSeqStatus({0, 1});
    CHECK(processor->rows() == 2);

    // Beams: the best items, by their summed logits.
    const float scores[2][5] = {{1, 0, 0, 2, 0}, {0, 5, 9, 4, 0}};
    auto beams = walk->top({walk->start()}, scores[0], 5, {0.0}, 2);
    CHECK(beams.size() == 2 && beams[0].token == 3 && beams[1].token == 0);
    std::vector<std::int64_t> states{beams[1].state};
    auto longer = walk->top(states, scores[1], 5, {beams[1].score}, 2);
    CHECK(longer.size() == 2 && longer[0].token == 1 && longer[0].score == 6 && longer[0].row == 0);
    CHECK(walk->items(longer[0].state).size() == 1);
}

// RTP-LLM's case 5: start, 10 -> 30 or 40, 20 -> 50; a token that is not allowed leaves the end token alone.
static void constraint_rows() {
    Vocabulary vocabulary = letters(1000, 999);
    Constraint constraint = Constraint::tokenTree(
        R"({"descriptors": [{"path": "item", "leaves": [{"name": "a", "tokens": [10, 30]},
            {"name": "b", "tokens": [10, 40]}, {"name": "c", "tokens": [20, 50]}]}]})");
    ConstraintProcessor rows(constraint, vocabulary, 999, 2);
    std::vector<float> logits(2 * 1000, 0.0f);
    rows.process(logits.data(), 1000, 0, 2);
    CHECK((open_(logits, 1, 1000) == std::vector<Token>{10, 20}));
    rows.updateStatus({10, 20});
    rows.updateStatus({99, 50});
    logits.assign(2 * 1000, 0.0f);
    rows.process(logits.data(), 1000, 0, 2);
    CHECK(open_(logits, 0, 1000) == std::vector<Token>{999} && open_(logits, 1, 1000) == std::vector<Token>{999});
    CHECK(rows.hasFailed(0) && !rows.hasFailed(1));
    rows.updateStatus({999, 999});
    CHECK(rows.isFinished(0) && rows.isFinished(1));
    rows.updateMultiSeqStatus({1, 1, 0});
    CHECK(rows.rows() == 3 && rows.hasFailed(2));
}

int main(int argc, char **argv) {
    owners();
    multi_sequence();
    think();
    if (argc > 1) tree(argv[1]);
    constraint_rows();
    check(logitree_clear_caches(nullptr));
    CHECK(logitree_live_handles() == 0);
    std::printf("%d checks\n", checks);
}
