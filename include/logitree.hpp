// logitree for C++17: owners of the handles of logitree.h, errors as exceptions, and logits processors for batches,
// with the calls of RTP-LLM's: process, updateMultiSeqStatus, updateStatus. docs/c.md has the guide. Header only.

#ifndef LOGITREE_HPP
#define LOGITREE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "logitree.h"

namespace logitree {

using Token = std::uint32_t;

// What a function of logitree.h reported.
class Error : public std::runtime_error {
public:
    Error(logitree_status status, std::string kind, std::string message, std::string place, std::string help)
        : std::runtime_error(text(message, place, help)), status(status), kind(std::move(kind)),
          message(std::move(message)), place(std::move(place)), help(std::move(help)) {}

    logitree_status status;
    std::string kind, message, place, help;

private:
    static std::string text(const std::string &message, const std::string &place, const std::string &help) {
        return message + (place.empty() ? "" : " (at " + place + ")") + (help.empty() ? "" : "; " + help);
    }
};

// Throws the thread's last error unless the status is LOGITREE_OK.
inline void check(logitree_status status) {
    if (status != LOGITREE_OK) {
        throw Error(status, logitree_error_kind(), logitree_error_message(), logitree_error_place(), logitree_error_help());
    }
}

// A view of a text; it must outlive the call that it is given to.
inline logitree_text view(std::string_view text) { return {text.data(), text.size()}; }

// What a function gives that writes a list into a buffer: `call(out, capacity, count)`.
template <class T, class Call> std::vector<T> collect(Call call, std::size_t guess = 16) {
    std::vector<T> out(guess);
    std::size_t count = 0;
    logitree_status status = call(out.data(), out.size(), &count);
    if (status == LOGITREE_ERROR_BUFFER) {
        out.resize(count);
        status = call(out.data(), out.size(), &count);
    }
    check(status);
    out.resize(count);
    return out;
}

// Owns a handle. Moved, not copied; empty after a move.
template <class Raw> class Handle {
public:
    Handle() = default;
    explicit Handle(Raw *raw) : raw_(raw) {}
    Handle(Handle &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { logitree_free(raw_); }

    Raw *get() const { return raw_; }
    explicit operator bool() const { return raw_ != nullptr; }
    // The handle as a JSON object.
    std::string describe() const {
        auto bytes = collect<std::uint8_t>([&](auto *out, auto room, auto *n) {
            return logitree_describe(raw_, out, room, n);
        }, 256);
        return {bytes.begin(), bytes.end()};
    }

protected:
    Raw *raw_ = nullptr;
};

// A handle with the state of one sequence. For one thread at a time.
template <class Raw> class Sequence : public Handle<Raw> {
public:
    using Handle<Raw>::Handle;

    void accept(Token token) { accept(&token, 1); }
    // All of the tokens or none.
    void accept(const std::vector<Token> &tokens) { accept(tokens.data(), tokens.size()); }
    void rollback(std::size_t count) { check(logitree_rollback(this->raw_, count)); }
    void reset() { check(logitree_reset(this->raw_)); }

private:
    void accept(const Token *tokens, std::size_t count) { check(logitree_accept(this->raw_, tokens, count)); }
};

// The tokens of a model. Any number of threads may use it at once.
class Vocabulary : public Handle<logitree_vocabulary> {
public:
    using Handle::Handle;

    // The formats are those of logitree_vocabulary_from_file.
    static Vocabulary fromFile(const std::string &format, const std::string &path) {
        logitree_vocabulary *raw = nullptr;
        check(logitree_vocabulary_from_file(format.c_str(), path.c_str(), &raw));
        return Vocabulary(raw);
    }
    static Vocabulary fromGguf(const std::string &path) { return fromFile("gguf", path); }
    static Vocabulary fromTokenizerJson(const std::string &path) { return fromFile("tokenizer_json", path); }
    static Vocabulary fromTokens(const std::vector<std::string> &tokens, const std::vector<Token> &ends) {
        std::vector<logitree_text> texts;
        for (const auto &token : tokens) texts.push_back(view(token));
        logitree_vocabulary *raw = nullptr;
        check(logitree_vocabulary_from_tokens(texts.data(), texts.size(), nullptr, ends.data(), ends.size(), &raw));
        return Vocabulary(raw);
    }

    std::size_t size() const {
        std::size_t size = 0;
        check(logitree_vocabulary_size(raw_, &size));
        return size;
    }
    std::vector<Token> endTokens() const {
        return collect<Token>([&](auto *out, auto room, auto *n) {
            return logitree_vocabulary_end_tokens(raw_, out, room, n);
        });
    }
    std::string decode(const std::vector<Token> &tokens) const {
        auto bytes = collect<std::uint8_t>([&](auto *out, auto room, auto *n) {
            return logitree_vocabulary_decode(raw_, tokens.data(), tokens.size(), false, out, room, n);
        }, 8 * tokens.size() + 16);
        return {bytes.begin(), bytes.end()};
    }
};

// What may be generated. Any number of threads may use it at once.
class Constraint : public Handle<logitree_constraint> {
public:
    using Handle::Handle;

    // {"type": "json_schema", "schema": ...}; docs/c.md has all types.
    // With a vocabulary the ids and names of token trees must fit it.
    static Constraint fromJson(std::string_view json, const Vocabulary *vocabulary = nullptr) {
        logitree_constraint *raw = nullptr;
        const logitree_vocabulary *known = vocabulary ? vocabulary->get() : nullptr;
        check(logitree_constraint_from_json(json.data(), json.size(), known, &raw));
        return Constraint(raw);
    }
    // A leaf of a payload of token trees, which is JSON.
    static Constraint tokenTree(std::string_view payload, const Vocabulary *vocabulary = nullptr) {
        return fromJson(R"({"type":"token_tree","payload":)" + std::string(payload) + "}", vocabulary);
    }
    // A reasoning block of at most `budget` tokens between begin and end, then anything.
    static Constraint reasoning(const std::vector<Token> &begin, const std::vector<Token> &end, std::size_t budget) {
        const auto ids = [](const std::vector<Token> &tokens) {
            std::string list;
            for (const Token token : tokens) list += (list.empty() ? "" : ",") + std::to_string(token);
            return "[[" + list + "]]";
        };
        std::string json = R"({"type":"reasoning_budget","begin":)" + ids(begin) + R"(,"end":)" + ids(end);
        if (budget != LOGITREE_NO_LIMIT) json += R"(,"budget":)" + std::to_string(budget);
        return fromJson(json + "}");
    }
};

// A constraint bound to a vocabulary, with the state of one sequence. For one thread at a time.
class Matcher : public Sequence<logitree_matcher> {
public:
    using Sequence::Sequence;

    Matcher(const Constraint &constraint, const Vocabulary &vocabulary) {
        check(logitree_matcher_new(constraint.get(), vocabulary.get(), &raw_));
    }

    Matcher fork() const {
        logitree_matcher *copy = nullptr;
        check(logitree_matcher_fork(raw_, &copy));
        return Matcher(copy);
    }
    std::vector<Token> allowed() {
        return collect<Token>([&](auto *out, auto room, auto *n) {
            return logitree_matcher_allowed(raw_, out, room, n);
        });
    }
    std::vector<Token> forced() {
        return collect<Token>([&](auto *out, auto room, auto *n) {
            return logitree_matcher_forced(raw_, out, room, n);
        });
    }
    void apply(float *logits, std::size_t count) { check(logitree_matcher_apply(raw_, logits, LOGITREE_F32, count)); }
    bool isAllowed(Token token) {
        bool allowed = false;
        check(logitree_matcher_is_allowed(raw_, token, &allowed));
        return allowed;
    }
    bool isAccepting() const { return state() & LOGITREE_ACCEPTING; }
    bool isFinished() const { return state() & LOGITREE_FINISHED; }
    bool isOpenEnded() const { return state() & LOGITREE_OPEN_ENDED; }

private:
    std::uint32_t state() const {
        std::uint32_t flags = 0;
        check(logitree_matcher_state(raw_, &flags, nullptr));
        return flags;
    }
};

// Samplers in order. For one thread at a time.
class Chain : public Sequence<logitree_chain> {
public:
    using Sequence::Sequence;

    // A notation of llama.cpp ("top_k;temperature"), nullptr for its default chain; parameters as a JSON object.
    explicit Chain(const char *notation, std::string_view parameters = "{}") {
        check(logitree_chain_new(notation, parameters.data(), parameters.size(), &raw_));
    }

    // The next token, which is not accepted.
    Token draw(const float *logits, std::size_t count, Matcher *matcher = nullptr) {
        Token token = LOGITREE_NO_TOKEN;
        logitree_matcher *allowed = matcher ? matcher->get() : nullptr;
        check(logitree_chain_draw(raw_, logits, LOGITREE_F32, count, allowed, &token));
        return token;
    }
    // The next token, accepted in the chain, and not in the matcher.
    Token sample(const float *logits, std::size_t count, Matcher *matcher = nullptr) {
        const Token token = draw(logits, count, matcher);
        accept(token);
        return token;
    }
    std::vector<std::uint8_t> snapshot() const {
        return collect<std::uint8_t>([&](auto *out, auto room, auto *n) {
            return logitree_chain_snapshot(raw_, out, room, n);
        });
    }
    void restore(const std::vector<std::uint8_t> &bytes) {
        check(logitree_chain_restore(raw_, bytes.data(), bytes.size()));
    }
};

// Matcher, chain and stop conditions of one sequence. For one thread at a time.
class Decoder : public Sequence<logitree_decoder> {
public:
    using Sequence::Sequence;

    // Options as a JSON object: {"max_tokens": 100, "stop": ["\n"]}.
    Decoder(const Vocabulary &vocabulary, const Chain &chain, const Matcher *matcher = nullptr,
            std::string_view options = "{}") {
        check(logitree_decoder_new(vocabulary.get(), chain.get(), matcher ? matcher->get() : nullptr, options.data(),
                                   options.size(), &raw_));
    }

    Token step(const float *logits, std::size_t count) {
        Token token = LOGITREE_NO_TOKEN;
        check(logitree_decoder_step(raw_, logits, LOGITREE_F32, count, &token));
        return token;
    }
    std::vector<Token> takeForced() {
        return collect<Token>([&](auto *out, auto room, auto *n) {
            return logitree_batch_take_forced(&raw_, 1, out, room, n);
        });
    }
    std::vector<Token> tokens() const {
        return collect<Token>([&](auto *out, auto room, auto *n) {
            return logitree_decoder_tokens(raw_, out, room, n);
        });
    }
    // LOGITREE_FINISH_..., LOGITREE_RUNNING while it is not over.
    std::uint32_t finish() const {
        std::uint32_t reason = LOGITREE_RUNNING;
        check(logitree_decoder_finish(raw_, &reason, nullptr));
        return reason;
    }
};

// A catalogue in an index file, at the moment of construction, whose states are numbers. Any number of threads may
// use it at once.
class Walk : public Handle<logitree_walk> {
public:
    using Handle::Handle;

    explicit Walk(const std::string &index, Token end = LOGITREE_NO_TOKEN) {
        check(logitree_walk_open(index.c_str(), end, &raw_));
    }

    std::int64_t start() const {
        std::int64_t state = 0;
        check(logitree_walk_start(raw_, &state));
        return state;
    }
    void advance(std::vector<std::int64_t> &states, const std::vector<Token> &tokens) const {
        if (states.size() != tokens.size()) throw std::invalid_argument("a token for each state is needed");
        check(logitree_walk_advance(raw_, states.data(), tokens.data(), states.size()));
    }
    std::vector<Token> allowed(std::int64_t state) const {
        return collect<Token>([&](auto *out, auto room, auto *n) {
            return logitree_walk_allowed(raw_, state, out, room, n);
        });
    }
    // The best `width` continuations of all rows: logits [states, vocabulary].
    std::vector<logitree_beam> top(const std::vector<std::int64_t> &states, const float *logits, std::size_t vocabulary,
                                   const std::vector<double> &scores, std::size_t width) const {
        if (states.size() != scores.size()) throw std::invalid_argument("a score for each state is needed");
        return collect<logitree_beam>([&](auto *out, auto room, auto *n) {
            return logitree_walk_top(raw_, states.data(), states.size(), logits, LOGITREE_F32, vocabulary, vocabulary,
                                     scores.data(), nullptr, width, out, room, n);
        }, width);
    }
    std::vector<std::uint64_t> items(std::int64_t state) const {
        return collect<std::uint64_t>([&](auto *out, auto room, auto *n) {
            return logitree_walk_items(raw_, state, out, room, n);
        });
    }
};

// -- processors of logits, one state for each row of a batch

constexpr float kBanned = -std::numeric_limits<float>::infinity();

class Processors;

// What a serving loop calls: process before it picks tokens, updateStatus after, updateMultiSeqStatus where rows
// are copied or reordered, as beams are. Rows are the rows of the whole batch; begin and finish name those of one
// request.
class LogitsProcessor {
public:
    virtual ~LogitsProcessor() = default;

    virtual std::size_t rows() const = 0;

    // Bans what is not allowed in rows begin to finish - 1 of logits [batch, vocabulary]; row begin is this
    // processor's row 0.
    void process(float *logits, std::size_t vocabulary, std::size_t begin, std::size_t finish) {
        if (finish < begin || finish - begin != rows()) throw std::out_of_range("the processor has other rows");
        for (std::size_t row = 0; row < rows(); row++) processRow(row, logits + (begin + row) * vocabulary, vocabulary);
    }
    // Row i becomes a copy of the old row sources[i]; there may be more rows than before, or fewer. Changes nothing
    // if a source is no row.
    void updateMultiSeqStatus(const std::vector<std::size_t> &sources) {
        for (std::size_t source : sources) {
            if (source >= rows()) throw std::out_of_range("there is no row " + std::to_string(source));
        }
        reindex(sources);
    }
    // Each row's new tokens [rows, perRow].
    void updateStatus(const std::vector<Token> &tokens, std::size_t perRow = 1) {
        if (tokens.size() != rows() * perRow) throw std::out_of_range("tokens for every row are needed");
        for (std::size_t row = 0; row < rows(); row++) {
            for (std::size_t at = 0; at < perRow; at++) takeToken(row, tokens[row * perRow + at]);
        }
    }

protected:
    friend class Processors;

    virtual void processRow(std::size_t row, float *logits, std::size_t vocabulary) = 0;
    virtual void reindex(const std::vector<std::size_t> &sources) = 0;
    virtual void takeToken(std::size_t row, Token token) = 0;

    static void onlyEnd(float *logits, std::size_t vocabulary, Token end) {
        if (end >= vocabulary) throw std::out_of_range("the end token has no logit");
        const float kept = logits[end];
        std::fill(logits, logits + vocabulary, kBanned);
        logits[end] = kept;
    }
};

// Any constraint in every row. After its end, and after a token that it does not allow, only the end token may
// follow.
class ConstraintProcessor : public LogitsProcessor {
public:
    ConstraintProcessor(const Constraint &constraint, const Vocabulary &vocabulary, Token end, std::size_t rows)
        : end_(end) {
        Matcher first(constraint, vocabulary);
        for (std::size_t row = 0; row < rows; row++) rows_.push_back({first.fork(), false, false});
    }

    std::size_t rows() const override { return rows_.size(); }
    bool isFinished(std::size_t row) const { return rows_.at(row).isFinished; }
    bool hasFailed(std::size_t row) const { return rows_.at(row).hasFailed; }

protected:
    struct Row {
        Matcher matcher;
        bool isFinished, hasFailed;
    };

    // Whether only the end token follows a constraint that is over; else anything does.
    virtual bool endsWithConstraint() const { return true; }

    void processRow(std::size_t at, float *logits, std::size_t vocabulary) override {
        Row &row = rows_[at];
        if (row.isFinished || row.hasFailed || (endsWithConstraint() && row.matcher.isFinished())) {
            onlyEnd(logits, vocabulary, end_);
        } else {
            row.matcher.apply(logits, vocabulary);
        }
    }
    void reindex(const std::vector<std::size_t> &sources) override {
        std::vector<Row> next;
        for (std::size_t source : sources) {
            const Row &row = rows_[source];
            next.push_back({row.matcher.fork(), row.isFinished, row.hasFailed});
        }
        rows_ = std::move(next);
    }
    void takeToken(std::size_t at, Token token) override {
        Row &row = rows_[at];
        if (row.isFinished) return;
        row.isFinished = token == end_;
        if (row.hasFailed || row.matcher.isFinished()) return;
        logitree_status status = logitree_accept(row.matcher.get(), &token, 1);
        if (status == LOGITREE_ERROR_TOKEN) {
            row.hasFailed = !row.isFinished;
        } else {
            check(status);
        }
    }

    std::vector<Row> rows_;
    Token end_;
};

// Think mode: a reasoning block of at most `budget` tokens, its end forced when the budget is spent, then anything.
class ThinkProcessor : public ConstraintProcessor {
public:
    ThinkProcessor(const Vocabulary &vocabulary, const std::vector<Token> &begin, const std::vector<Token> &finish,
                   std::size_t budget, Token end, std::size_t rows)
        : ConstraintProcessor(Constraint::reasoning(begin, finish, budget), vocabulary, end, rows) {}

protected:
    bool endsWithConstraint() const override { return false; }
};

// Tree decode over a catalogue: a row's state is a number, so beams are copied and reordered at no cost. A token
// that is not allowed is an error state, after which only the end token may follow.
class TreeProcessor : public LogitsProcessor {
public:
    TreeProcessor(std::shared_ptr<const Walk> walk, Token end, std::size_t rows)
        : walk_(std::move(walk)), end_(end), states_(rows, walk_->start()) {}

    std::size_t rows() const override { return states_.size(); }
    const std::vector<std::int64_t> &states() const { return states_; }

protected:
    void processRow(std::size_t row, float *logits, std::size_t vocabulary) override {
        if (states_[row] < 0) return onlyEnd(logits, vocabulary, end_);
        const std::vector<Token> allowed = walk_->allowed(states_[row]);
        std::vector<float> kept;
        for (Token token : allowed) {
            if (token >= vocabulary) throw std::out_of_range("an item has a token without a logit");
            kept.push_back(logits[token]);
        }
        std::fill(logits, logits + vocabulary, kBanned);
        for (std::size_t at = 0; at < allowed.size(); at++) logits[allowed[at]] = kept[at];
        if (allowed.empty()) throw std::logic_error("a walk without an end token has nothing after an item");
    }
    void reindex(const std::vector<std::size_t> &sources) override {
        std::vector<std::int64_t> next;
        for (std::size_t source : sources) next.push_back(states_[source]);
        states_ = std::move(next);
    }
    void takeToken(std::size_t row, Token token) override {
        std::vector<std::int64_t> state{states_[row]};
        walk_->advance(state, {token});
        states_[row] = state[0];
    }

private:
    std::shared_ptr<const Walk> walk_;
    Token end_;
    std::vector<std::int64_t> states_;
};

// Rows that are finished allow the end token alone; the others anything.
class MultiSequenceProcessor : public LogitsProcessor {
public:
    MultiSequenceProcessor(Token end, std::size_t rows) : end_(end), finished_(rows, false) {}

    std::size_t rows() const override { return finished_.size(); }

protected:
    void processRow(std::size_t row, float *logits, std::size_t vocabulary) override {
        if (finished_[row]) onlyEnd(logits, vocabulary, end_);
    }
    void reindex(const std::vector<std::size_t> &sources) override {
        std::vector<bool> next;
        for (std::size_t source : sources) next.push_back(finished_[source]);
        finished_ = std::move(next);
    }
    void takeToken(std::size_t row, Token token) override {
        if (token == end_) finished_[row] = true;
    }

private:
    Token end_;
    std::vector<bool> finished_;
};

// Several processors, one after the other.
class Processors : public LogitsProcessor {
public:
    explicit Processors(std::vector<std::shared_ptr<LogitsProcessor>> all) : all_(std::move(all)) {
        if (all_.empty()) throw std::invalid_argument("there are no processors");
        for (const auto &one : all_) {
            if (one->rows() != all_[0]->rows()) throw std::invalid_argument("processors of different numbers of rows");
        }
    }

    std::size_t rows() const override { return all_[0]->rows(); }

protected:
    void processRow(std::size_t row, float *logits, std::size_t vocabulary) override {
        for (const auto &one : all_) one->processRow(row, logits, vocabulary);
    }
    void reindex(const std::vector<std::size_t> &sources) override {
        for (const auto &one : all_) one->updateMultiSeqStatus(sources);
    }
    void takeToken(std::size_t row, Token token) override {
        for (const auto &one : all_) one->takeToken(row, token);
    }

private:
    std::vector<std::shared_ptr<LogitsProcessor>> all_;
};

} // namespace logitree

#endif // LOGITREE_HPP
