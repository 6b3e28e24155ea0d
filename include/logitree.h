/* logitree's C interface. Written by scripts/c_header.py from crates/logitree-c; docs/c.md has the guide.

   Results. A function returns a status: 0 is success, and results are written through pointers. After an error
   nothing has changed, a handle that would have been made is NULL, and logitree_error_message(), _place() and
   _help() of the same thread say more. No panic and no exception leaves a function.

   Handles. A handle is a number in the form of a pointer: do not look at what it points to. What was freed, is of
   another kind, or was never a handle is LOGITREE_ERROR_HANDLE. Every handle that a function makes is freed by
   logitree_free, once, in any order: a function copies what it is given, and what was made of a handle lives on
   without it. Where a parameter is a void * called handle, it takes handles of several kinds.

   Threads. Vocabularies, constraints, walks and records never change, and any number of threads may
   use them at once. A matcher, a chain and a decoder are for one thread at a time, which need not be the one that
   made it; a call on one that another call uses is LOGITREE_ERROR_BUSY. Freeing a handle that a call uses is
   LOGITREE_ERROR_BUSY too.

   Memory. Pointers are read and written during the call only, and only as far as their lengths say. A pointer
   with a length of 0 may be NULL. Lists and buffers do not overlap. Texts are UTF-8, `length` bytes of them or
   LOGITREE_NUL_TERMINATED.

   Logits. A type of logits is LOGITREE_F32, LOGITREE_F16 or LOGITREE_BF16, and their number counts elements.

   JSON. Options and parameters of what is made are JSON texts; no call for each token takes or gives one.

   Buffers. A function that writes a list takes a buffer, its capacity, and a pointer to the number of elements.
   If they do not fit it is LOGITREE_ERROR_BUFFER, nothing has changed, and the number says how much room is
   needed; with a capacity of 0 the buffer may be NULL. */

#ifndef LOGITREE_H
#define LOGITREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes and the kind of every token, and the tokens that end a generation. It never changes: any number of
   threads may use it at once. */
typedef struct logitree_vocabulary logitree_vocabulary;

/* What may be generated: a value that knows no vocabulary. It never changes: any number of threads may use it at
   once. */
typedef struct logitree_constraint logitree_constraint;

/* A constraint bound to a vocabulary, with the state of one sequence. For one thread at a time; a fork gives each
   its own. */
typedef struct logitree_matcher logitree_matcher;

/* Samplers in order, with their random numbers and histories. For one thread at a time. */
typedef struct logitree_chain logitree_chain;

/* Decodes one sequence. For one thread at a time. */
typedef struct logitree_decoder logitree_decoder;

/* A catalogue at one moment, whose states are numbers. logitree_constraint_from_json makes a constraint of the same
   file. Any number of threads may use it at once. */
typedef struct logitree_walk logitree_walk;

/* What a program may ask of a sampler that a chain of llama.cpp owns. Any number of threads may use it at once. */
typedef struct logitree_llama_record logitree_llama_record;

/* What a function returns: LOGITREE_OK, or what went wrong. logitree_error_message() says more.

   The list is closed, and its numbers stay: a kind of error that logitree learns later has the number of the nearest
   one here, and its own name in logitree_error_kind(). */
typedef int32_t logitree_status;
enum {
    /* Success. */
    LOGITREE_OK = 0,
    /* A vocabulary is malformed, truncated or of an unsupported format. */
    LOGITREE_ERROR_VOCABULARY = 1,
    /* A token-tree payload or an index file is malformed, or does not fit the vocabulary. */
    LOGITREE_ERROR_PAYLOAD = 2,
    /* A constraint cannot be built or cannot be satisfied. */
    LOGITREE_ERROR_CONSTRAINT = 3,
    /* A mask has the wrong length. */
    LOGITREE_ERROR_MASK = 4,
    /* Logits have the wrong length, contain NaN, or allow no token. */
    LOGITREE_ERROR_LOGITS = 5,
    /* A chain has invalid parameters, or selects nothing. */
    LOGITREE_ERROR_SAMPLING = 6,
    /* A token is not allowed here, or is not in the vocabulary. */
    LOGITREE_ERROR_TOKEN = 7,
    /* The call is invalid in the present state: a step after the end, a rollback past the start. */
    LOGITREE_ERROR_STATE = 8,
    /* A limit of size, depth or time was reached. */
    LOGITREE_ERROR_LIMIT = 9,
    /* The operating system refused. */
    LOGITREE_ERROR_IO = 10,
    /* An argument is NULL, has an impossible length or value, or is not UTF-8. */
    LOGITREE_ERROR_ARGUMENT = 11,
    /* A handle is NULL, was freed, or is of another kind. */
    LOGITREE_ERROR_HANDLE = 12,
    /* Another call uses the handle at this moment, or the same handle is given twice. */
    LOGITREE_ERROR_BUSY = 13,
    /* The output does not fit; the count says how much room is needed. Nothing has changed. */
    LOGITREE_ERROR_BUFFER = 14,
    /* A defect of logitree. Free the handles of this call. */
    LOGITREE_ERROR_INTERNAL = 15
};

/* The version of this interface. It grows when a declaration changes or goes; new declarations do not change it. */
#define LOGITREE_ABI_VERSION 2u

/* A length that means: up to the first byte of 0. */
#define LOGITREE_NUL_TERMINATED SIZE_MAX

/* No limit of tokens. */
#define LOGITREE_NO_LIMIT SIZE_MAX

/* No token. */
#define LOGITREE_NO_TOKEN UINT32_MAX

/* The version of the interface that the library has; compare it with LOGITREE_ABI_VERSION of the header. */
uint32_t logitree_abi_version(void);

/* The version of logitree, such as "0.2.0". It lives forever. */
const char *logitree_version(void);

/* Whether the library has a feature: a type of constraint ("regex", "json_schema", "token_tree", ...), a format of
   vocabularies ("gguf", ...), "chain", "decoder", "batch", "walk", "llama_sampler". NULL is no feature.
   logitree_describe(NULL) lists them.

   Pointers: feature is NULL or a text that ends in a byte of 0. */
bool logitree_has_feature(const char *feature);

/* Number of handles that were made and not freed, of all threads: what a test of a program compares. */
size_t logitree_live_handles(void);

/* A text or bytes of the caller: length bytes at data. */
typedef struct logitree_text {
    /* The first byte; NULL only with a length of 0. */
    const char *data;
    /* Number of bytes; LOGITREE_NUL_TERMINATED: up to the first byte of 0. */
    size_t length;
} logitree_text;

/* Logits of 32 bits: float. */
#define LOGITREE_F32 0u

/* Logits of 16 bits: IEEE binary16. */
#define LOGITREE_F16 1u

/* Logits of 16 bits: bfloat16. */
#define LOGITREE_BF16 2u

/* The kind of this thread's last error, in one word: "token", "argument", "buffer". A success does not change it.
   UTF-8; "" if there was none. It belongs to logitree and is valid until the thread's next call that fails. */
const char *logitree_error_kind(void);

/* What is wrong, in one sentence. As logitree_error_kind. */
const char *logitree_error_message(void);

/* Where it is wrong: the name of an argument, a line and a column, a JSON pointer, a row. As logitree_error_kind. */
const char *logitree_error_place(void);

/* The way out; "" if none is known. As logitree_error_kind. */
const char *logitree_error_help(void);

/* Forgets this thread's last error. */
void logitree_error_clear(void);

/* Frees a handle of any kind. What was made with it lives on. NULL is no error. */
logitree_status logitree_free(void *handle);

/* Accepts all of count tokens in a matcher, a chain or a decoder, or none. LOGITREE_ERROR_TOKEN, and nothing
   changes, if one is not allowed. A chain takes any, of the output or of the prompt. */
logitree_status logitree_accept(void *handle, const uint32_t *tokens, size_t count);

/* Forgets the last count tokens of a matcher, a chain or a decoder: it is as before them, what was drawn for them
   too. LOGITREE_ERROR_STATE, and nothing changes, if fewer were accepted. */
logitree_status logitree_rollback(void *handle, size_t count);

/* Brings a matcher, a chain or a decoder back to the state it was made with: the same seed, nothing accepted. */
logitree_status logitree_reset(void *handle);

/* A handle as a JSON object, without a byte of 0 after it.

   NULL: the library's "version", "abi_version", "features", "structs" with their sizes and "live_handles". A
   vocabulary: "size", "end_tokens", "fingerprint" (equal for equal tokens, kinds and end ids, whatever they were
   read from), "source", "name" and "bindings", the number of constraints that it keeps. A constraint: its form,
   which logitree_constraint_from_json reads; LOGITREE_ERROR_CONSTRAINT for one that has none. A matcher:
   "vocabulary_size", "accepted", "accepting", "finished", "open_ended". A chain: "samplers" with their parameters,
   "parity", "accepted". A decoder: "accepted", "finish". A walk: "items", "start", "end_token". A record: sums over
   the steps of a sampler and its clones in which the constraint decided: "steps", "sole" (those with one allowed
   candidate), "candidates", "kept", and "skip_ratio" and "skip_ratio_squared" of (candidates - kept) / candidates. */
logitree_status logitree_describe(const void *handle, uint8_t *out, size_t capacity, size_t *length);

/* Forgets what is kept by content: built token trees, 128 at most, and, unless it is NULL, the 256 constraints last
   used with the vocabulary, which share their masks. What is in use lives on. */
logitree_status logitree_clear_caches(const logitree_vocabulary *vocabulary);

/* The vocabulary of a file.

   format: "gguf", a whole model or vocabulary-only; "tokenizer_json", Hugging Face's; "tekken", Mistral's JSON;
   "sentencepiece", a model file. A tokenizer.json does not name the ends of generation: they are the added tokens
   with well-known texts, and logitree_vocabulary_with_end_tokens names others.

   Pointers: format and path are NULL or end in a byte of 0. */
logitree_status logitree_vocabulary_from_file(const char *format, const char *path, logitree_vocabulary **out);

/* The same from the content of such a file.

   Pointers: format is NULL or ends in a byte of 0; length bytes may be read at data. */
logitree_status logitree_vocabulary_from_bytes(
    const char *format,
    const uint8_t *data,
    size_t length,
    logitree_vocabulary **out);

/* The vocabulary of count tokens, whose ids are their positions.

   kinds: NULL, or one number for each token: 0 normal, 1 byte, 2 user-defined, 3 control, 4 unknown, 5 unused.
   Without it tokens are normal, and the end tokens control tokens.

   Pointers: count texts may be read at tokens and, if it is not NULL, count numbers at kinds; end_count ids at
   end_tokens. */
logitree_status logitree_vocabulary_from_tokens(
    const logitree_text *tokens,
    size_t count,
    const uint8_t *kinds,
    const uint32_t *end_tokens,
    size_t end_count,
    logitree_vocabulary **out);

/* The same tokens with other end-of-generation ids. */
logitree_status logitree_vocabulary_with_end_tokens(
    const logitree_vocabulary *vocabulary,
    const uint32_t *end_tokens,
    size_t count,
    logitree_vocabulary **out);

/* The number of tokens. */
logitree_status logitree_vocabulary_size(const logitree_vocabulary *vocabulary, size_t *size);

/* The end-of-generation ids, ascending. */
logitree_status logitree_vocabulary_end_tokens(
    const logitree_vocabulary *vocabulary,
    uint32_t *out,
    size_t capacity,
    size_t *count);

/* The bytes of count tokens, one after the other, without a byte of 0 after them. special: whether tokens that are
   not text give their names; else they give nothing. */
logitree_status logitree_vocabulary_decode(
    const logitree_vocabulary *vocabulary,
    const uint32_t *tokens,
    size_t count,
    bool special,
    uint8_t *out,
    size_t capacity,
    size_t *length);

/* Finds ahead what grammars need of this vocabulary, some 20 to 60 ms. Without it the first masks of the first
   grammar take that time. */
logitree_status logitree_vocabulary_prepare(const logitree_vocabulary *vocabulary);

/* The constraint that a JSON text describes: {"type": "json_schema", "schema": {...}} and so on; docs/c.md has all
   types. logitree_describe writes it again.

   vocabulary: NULL, or the one that token trees must fit: their ids are in it, and each leaf's tokens spell its
   name. Built token trees are kept by content. */
logitree_status logitree_constraint_from_json(
    const char *json,
    size_t length,
    const logitree_vocabulary *vocabulary,
    logitree_constraint **out);

/* The binary form of a descriptor of a token-tree payload {"modelId": ..., "descriptors": [{"path": ..., "leaves":
   [{"name": ..., "tokens": [...]}]}]}, whose base64 is the field "binary" of the JSON form. Names of leaves are not
   part of it.

   Pointers: length bytes may be read at payload; path is NULL, where there is one, or ends in a byte of 0; capacity
   bytes may be written at out, and a number at written. */
logitree_status logitree_token_tree_to_binary(
    const char *payload,
    size_t length,
    const char *path,
    uint8_t *out,
    size_t capacity,
    size_t *written);

/* What was accepted is complete; more may still be allowed. */
#define LOGITREE_ACCEPTING 1u

/* The constraint is over: complete, with no continuation. Then the end tokens alone are allowed, unless it is open-
   ended; without end tokens, asking for the allowed tokens is an error. */
#define LOGITREE_FINISHED 2u

/* Anything may follow the end of the constraint: nothing is masked there. So it is with token trees. */
#define LOGITREE_OPEN_ENDED 4u

/* A matcher at the beginning of a sequence. Constraint and vocabulary may be freed while it lives. */
logitree_status logitree_matcher_new(
    const logitree_constraint *constraint,
    const logitree_vocabulary *vocabulary,
    logitree_matcher **out);

/* An independent copy in the same state. */
logitree_status logitree_matcher_fork(const logitree_matcher *matcher, logitree_matcher **out);

/* Writes the allowed tokens as a mask over words: bit id % 32 of word id / 32. count: at least the vocabulary's size
   divided by 32, rounded up; words past that are 0, or all ones where nothing is masked. */
logitree_status logitree_matcher_mask(logitree_matcher *matcher, uint32_t *words, size_t count);

/* Sets the logits of all tokens that are not allowed to minus infinity, in place; the others are not written. dtype:
   LOGITREE_F32, LOGITREE_F16 or LOGITREE_BF16. */
logitree_status logitree_matcher_apply(logitree_matcher *matcher, void *logits, uint32_t dtype, size_t count);

/* The allowed tokens, ascending; where nothing is masked, every id. */
logitree_status logitree_matcher_allowed(logitree_matcher *matcher, uint32_t *out, size_t capacity, size_t *count);

/* Whether a token is allowed here. */
logitree_status logitree_matcher_is_allowed(logitree_matcher *matcher, uint32_t token, bool *allowed);

/* The forced tokens: the run of tokens from here that are each the only one allowed. They need no forward pass.
   Changes nothing. */
logitree_status logitree_matcher_forced(logitree_matcher *matcher, uint32_t *out, size_t capacity, size_t *count);

/* The state as flags: LOGITREE_ACCEPTING, LOGITREE_FINISHED, LOGITREE_OPEN_ENDED. accepted: NULL, or where the
   number of tokens accepted, less those rolled back, is written.

   Pointers: a number may be written at flags and, if it is not NULL, at accepted. */
logitree_status logitree_matcher_state(const logitree_matcher *matcher, uint32_t *flags, size_t *accepted);

/* The chain of a notation of llama.cpp: "penalties;top_k;temperature", or its letters, "ekt"; "greedy" picks the
   likeliest. NULL: llama.cpp's default chain.

   parameters: NULL, or a JSON object {"temp": 0.8, "top_k": 40, "seed": 42}; docs/samplers.md lists the names.
   Without a "seed" the chain takes a fresh one. Instead of a notation: "preset", which is "llama_cpp", "tsampler" or
   "transformers"; or "samplers" alone, a list of samplers in order with their own parameters: [{"name": "top_k",
   "k": 40}, {"name": "dist", "seed": 42, "rng": "xoroshiro128plus"}]. A chain that does not select can be applied.

   Pointers: notation is NULL or ends in a byte of 0; length bytes may be read at parameters, if it is not NULL. */
logitree_status logitree_chain_new(const char *notation, const char *parameters, size_t length, logitree_chain **out);

/* An independent copy in the same state. */
logitree_status logitree_chain_clone(const logitree_chain *chain, logitree_chain **out);

/* Picks a token, which is not accepted. matcher: NULL, or what allows tokens. dtype: LOGITREE_F32, LOGITREE_F16 or
   LOGITREE_BF16. */
logitree_status logitree_chain_draw(
    logitree_chain *chain,
    const void *logits,
    uint32_t dtype,
    size_t count,
    logitree_matcher *matcher,
    uint32_t *token);

/* Applies the chain, which need not select, and writes the candidates that are left, in the chain's order: written
   ids, logits and probabilities. Nothing is accepted; a sampler that draws has drawn. matcher and dtype as for
   logitree_chain_draw. LOGITREE_ERROR_BUFFER if they do not fit: count elements always do. */
logitree_status logitree_chain_apply(
    logitree_chain *chain,
    const void *logits,
    uint32_t dtype,
    size_t count,
    logitree_matcher *matcher,
    uint32_t *ids,
    float *left,
    float *probabilities,
    size_t capacity,
    size_t *written);

/* Adds to the logits of count tokens at every step from the next one on, before the first sampler; -inf vetoes a
   token. In place of former additions; with a count of 0 none is left. */
logitree_status logitree_chain_steer(logitree_chain *chain, const uint32_t *ids, const float *additions, size_t count);

/* The state as bytes, without samplers and parameters: generators, histories, running means. */
logitree_status logitree_chain_snapshot(const logitree_chain *chain, uint8_t *out, size_t capacity, size_t *length);

/* Takes the state that a chain of the same samplers and parameters gave. */
logitree_status logitree_chain_restore(logitree_chain *chain, const uint8_t *snapshot, size_t length);

/* Changes a numeric parameter from the next step on. "parity" is one: 1 computes as llama.cpp does, rounding and
   ties included, 0 as fast as possible.

   Pointers: parameter is NULL or ends in a byte of 0. */
logitree_status logitree_chain_set(logitree_chain *chain, const char *parameter, double value);

/* Measures the distribution of count logits, in nats or bits. What is not asked for is NULL.

   entropy: infinite without a finite logit. surprisal: minus the logarithm of the probability of token; infinite for
   one that is not there, and where its logit is not finite. ids: NULL, or the token of each logit, for the
   candidates that a chain left. dtype: LOGITREE_F32, LOGITREE_F16 or LOGITREE_BF16.

   Pointers: count logits may be read at logits and, if it is not NULL, count ids at ids; a number may be written at
   entropy and at surprisal, if they are not NULL. */
logitree_status logitree_metrics_measure(
    const void *logits,
    uint32_t dtype,
    const uint32_t *ids,
    size_t count,
    uint32_t token,
    bool bits,
    double *entropy,
    double *surprisal);

/* The capacity best finite logits, descending, equal ones by id: their tokens and their probabilities under all
   logits. */
logitree_status logitree_metrics_top(
    const void *logits,
    uint32_t dtype,
    size_t count,
    uint32_t *ids,
    double *probabilities,
    size_t capacity,
    size_t *written);

/* Why decoding is over: LOGITREE_RUNNING while it is not. */
#define LOGITREE_RUNNING 0u

/* The constraint is over. */
#define LOGITREE_FINISH_CONSTRAINT 1u

/* The model ended its turn. */
#define LOGITREE_FINISH_END_OF_GENERATION 2u

/* A stop string appeared. */
#define LOGITREE_FINISH_STOP_STRING 3u

/* The greatest number of tokens was reached. */
#define LOGITREE_FINISH_MAX_TOKENS 4u

/* A decoder over vocabulary, with copies of chain and matcher. matcher: NULL, or the constraint of the whole output.

   options: NULL, or a JSON object that says when it stops, apart from its constraint: {"max_tokens": 100, "stop":
   ["\n"], "ignore_end": true}. "stop" are texts that end the output where they appear; with "ignore_end" an end-of-
   generation token does not end it.

   Pointers: length bytes may be read at options, if it is not NULL. */
logitree_status logitree_decoder_new(
    const logitree_vocabulary *vocabulary,
    const logitree_chain *chain,
    const logitree_matcher *matcher,
    const char *options,
    size_t length,
    logitree_decoder **out);

/* An independent copy in the same state. */
logitree_status logitree_decoder_fork(const logitree_decoder *decoder, logitree_decoder **out);

/* Counts a prompt's tokens in the chain's history, which the penalties read. Before the first token only. */
logitree_status logitree_decoder_prime(logitree_decoder *decoder, const uint32_t *tokens, size_t count);

/* One step: the allowed tokens, the chain, the pick, and its acceptance. Logits are read, never written; count: at
   least the vocabulary's size. dtype: LOGITREE_F32, LOGITREE_F16 or LOGITREE_BF16. */
logitree_status logitree_decoder_step(
    logitree_decoder *decoder,
    const void *logits,
    uint32_t dtype,
    size_t count,
    uint32_t *token);

/* Constrains what comes next by a copy of matcher, until logitree_decoder_clear. stops: whether decoding is over
   when the constraint is; else what follows is free. */
logitree_status logitree_decoder_activate(logitree_decoder *decoder, const logitree_matcher *matcher, bool stops);

/* Ends whatever was activated: what comes next is under the constraint that the decoder was made with, or free
   without one. LOGITREE_ERROR_TOKEN if that constraint does not allow what was written; the activated one stays
   then. */
logitree_status logitree_decoder_clear(logitree_decoder *decoder);

/* Why decoding is over (LOGITREE_FINISH_...; LOGITREE_RUNNING while it is not), and which stop text appeared.
   stop_index may be NULL.

   Pointers: a number may be written at reason and, if it is not NULL, at stop_index. */
logitree_status logitree_decoder_finish(const logitree_decoder *decoder, uint32_t *reason, size_t *stop_index);

/* The tokens so far, without a primed prompt. */
logitree_status logitree_decoder_tokens(const logitree_decoder *decoder, uint32_t *out, size_t capacity, size_t *count);

/* A copy of the decoder's chain in its present state. */
logitree_status logitree_decoder_chain(const logitree_decoder *decoder, logitree_chain **chain);

/* A copy of the decoder's running constraint in its present state. LOGITREE_ERROR_STATE if there is none. */
logitree_status logitree_decoder_matcher(const logitree_decoder *decoder, logitree_matcher **matcher);

/* Steps each decoder with its row of logits, in up to threads threads (0: one for each core).

   Row i of the logits begins at logits + i * stride and has width of them, of the type dtype. Each decoder's token
   is written to tokens[i]; one that is finished gets end_token, and its logits are not read. statuses: NULL, then
   all rows take their token or none; or an array in which each row's own status is written: a row with an error is
   as it was and its token is LOGITREE_NO_TOKEN. The first row's error is returned in both cases.

   Pointers: count handles may be read at decoders, the rows at logits; count ids may be written at tokens and, if it
   is not NULL, count statuses at statuses. */
logitree_status logitree_batch_step(
    logitree_decoder *const *decoders,
    size_t count,
    const void *logits,
    uint32_t dtype,
    size_t width,
    size_t stride,
    uint32_t end_token,
    size_t threads,
    uint32_t *tokens,
    logitree_status *statuses);

/* Writes what each decoder may take next as a mask over its row of words; where it is finished, end_token alone.
   After an error all rows are 0. */
logitree_status logitree_batch_masks(
    logitree_decoder *const *decoders,
    size_t count,
    uint32_t *words,
    size_t width,
    size_t stride,
    uint32_t end_token);

/* Accepts each decoder's forced tokens, all decoders or none: evaluate them in one batch with the token before them.
   Row i's tokens are written at tokens + i * stride, and their number to counts[i]. With too little room nothing is
   accepted and counts says how much is needed. */
logitree_status logitree_batch_take_forced(
    logitree_decoder *const *decoders,
    size_t count,
    uint32_t *tokens,
    size_t stride,
    size_t *counts);

/* A continuation of a beam. */
typedef struct logitree_beam {
    /* The row that continues. */
    uint32_t row;
    /* Its token. */
    uint32_t token;
    /* The state after the token. */
    int64_t state;
    /* The row's score, the token's logit and its weight together. */
    double score;
} logitree_beam;

/* A walk over the catalogue in an index file as it is now; the file stays mapped into memory. end_token: the token
   that ends every item; LOGITREE_NO_TOKEN: an item ends by itself.

   Pointers: file is NULL or ends in a byte of 0. */
logitree_status logitree_walk_open(const char *file, uint32_t end_token, logitree_walk **out);

/* The state where every item begins. -1 is a finished sequence, -2 one that took a token that is not allowed. */
logitree_status logitree_walk_start(const logitree_walk *walk, int64_t *state);

/* Replaces each of count states by the one after its token. */
logitree_status logitree_walk_advance(const logitree_walk *walk, int64_t *states, const uint32_t *tokens, size_t count);

/* The allowed tokens of a state, ascending. */
logitree_status logitree_walk_allowed(
    const logitree_walk *walk,
    int64_t state,
    uint32_t *out,
    size_t capacity,
    size_t *count);

/* The best width continuations of each group's rows: by group, descending score, row, token.

   states: the state of each row. logits: row i begins at logits + i * stride and has row_width of them, of the type
   dtype. scores: the score of each row so far, minus infinity for one that ends; NULL: 0. groups: numbers that do
   not decrease; NULL: one group. At most width times the number of groups are written. */
logitree_status logitree_walk_top(
    const logitree_walk *walk,
    const int64_t *states,
    size_t count,
    const void *logits,
    uint32_t dtype,
    size_t row_width,
    size_t stride,
    const double *scores,
    const uint32_t *groups,
    size_t width,
    logitree_beam *out,
    size_t capacity,
    size_t *found);

/* Numbers of the items that are exactly what leads to a state, ascending. */
logitree_status logitree_walk_items(
    const logitree_walk *walk,
    int64_t state,
    uint64_t *out,
    size_t capacity,
    size_t *count);

/* The functions of the libllama that the program has loaded: their addresses, as dlsym gives them. All are needed. */
typedef struct logitree_llama_library {
    /* sizeof(logitree_llama_library). */
    size_t struct_size;
    /* sizeof(llama_token_data) of its llama.h: 12. */
    size_t token_data_size;
    /* sizeof(llama_token_data_array) of its llama.h: 32 on a 64-bit machine. */
    size_t token_data_array_size;
    /* llama_sampler_init. */
    const void *sampler_init;
    /* llama_sampler_name. */
    const void *sampler_name;
    /* llama_sampler_accept. */
    const void *sampler_accept;
    /* llama_sampler_apply. */
    const void *sampler_apply;
    /* llama_sampler_reset. */
    const void *sampler_reset;
    /* llama_sampler_clone. */
    const void *sampler_clone;
    /* llama_sampler_free. */
    const void *sampler_free;
} logitree_llama_library;
#define LOGITREE_LLAMA_LIBRARY_INIT {sizeof(logitree_llama_library), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* Makes a llama_sampler for any chain of the loaded libllama: a constraint, a whole logitree chain that selects, or
   both.

   matcher: NULL, or the constraint, from its present state on; it is copied. chain: NULL, or the chain; it is
   copied. The pointer at sampler is a struct llama_sampler * that belongs to the caller, until
   llama_sampler_chain_add gives it to a chain or llama_sampler_free frees it. Place it after penalties and before
   everything that cuts candidates. record: NULL, or where a handle is written that says what went wrong.

   options: NULL, or a JSON object {"mode": "sample", "then": "continue", "counts_first": true}. "mode", without a
   chain: "greedy" (the default) selects the likeliest of the allowed tokens, with "sample" the samplers that follow
   choose. "then": after a constraint that is over only end-of-generation tokens follow ("stop", the default), or
   anything ("continue"). "counts_first": tokens that are accepted before the first apply are the beginning of the
   output, and not a prompt.

   A sampler fails closed: after an error an end-of-generation token is the only candidate, until a reset.

   Pointers: the functions are those of one libllama, which stays loaded while a sampler lives; length bytes may be
   read at options, if it is not NULL; a pointer may be written at sampler and, if it is not NULL, a handle at
   record. libllama uses a sampler in one thread at a time. */
logitree_status logitree_llama_sampler(
    const logitree_llama_library *library,
    const logitree_vocabulary *vocabulary,
    const logitree_matcher *matcher,
    const logitree_chain *chain,
    const char *options,
    size_t length,
    void **sampler,
    logitree_llama_record **record);

/* The first error of the sampler and its clones since the last call: its status, and this thread's last error.
   LOGITREE_OK if there was none. logitree_describe of the record has the sums of its steps. */
logitree_status logitree_llama_record_check(const logitree_llama_record *record);

#ifdef __cplusplus
}
#endif

#endif /* LOGITREE_H */
