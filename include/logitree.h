/* logitree's C interface. Written by scripts/c_header.py from crates/logitree-c; docs/c.md has the guide.

   Results. A function returns a status: 0 is success, and results are written through pointers. After an error
   nothing has changed, a handle that would have been made is NULL, and logitree_error_message(), _place() and
   _help() of the same thread say more. No panic and no exception leaves a function.

   Handles. A handle is a number in the form of a pointer: do not look at what it points to. What was freed, is of
   another kind, or was never a handle is LOGITREE_ERROR_HANDLE. Every handle that a function makes is freed by
   the function of its kind, once, in any order: a function copies what it is given, and what was made of a handle
   lives on without it.

   Threads. Vocabularies, constraints, catalogues, walks and records never change, and any number of threads may
   use them at once. A matcher, a chain and a decoder are for one thread at a time, which need not be the one that
   made it; a call on one that another call uses is LOGITREE_ERROR_BUSY. Freeing a handle that a call uses is
   LOGITREE_ERROR_BUSY too.

   Memory. Pointers are read and written during the call only, and only as far as their lengths say. A pointer
   with a length of 0 may be NULL. Lists and buffers do not overlap. Texts are UTF-8, `length` bytes of them or
   LOGITREE_NUL_TERMINATED.

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

/* A catalogue of items in an index file. Any number of threads may use it at once. */
typedef struct logitree_catalogue logitree_catalogue;

/* A catalogue at one moment, whose states are numbers. Any number of threads may use it at once. */
typedef struct logitree_walk logitree_walk;

/* What a program may ask of a sampler that a chain of llama.cpp owns. Any number of threads may use it at once. */
typedef struct logitree_llama_record logitree_llama_record;

/* What a function returns: LOGITREE_OK, or what went wrong. logitree_error_message() says more. */
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
#define LOGITREE_ABI_VERSION 1u

/* A length that means: up to the first byte of 0. */
#define LOGITREE_NUL_TERMINATED SIZE_MAX

/* No limit of tokens. */
#define LOGITREE_NO_LIMIT SIZE_MAX

/* No token. */
#define LOGITREE_NO_TOKEN UINT32_MAX

/* The version of the interface that the library has; compare it with LOGITREE_ABI_VERSION of the header. */
uint32_t logitree_abi_version(void);

/* The version of logitree, such as "0.1.0". It lives forever. */
const char *logitree_version(void);

/* Whether the library has a feature: a type of constraint ("regex", "json_schema", "token_tree", ...), a format of
   vocabularies ("gguf", ...), "chain", "decoder", "batch", "walk", "llama_sampler". NULL is no feature.

   Pointers: feature is NULL or a text that ends in a byte of 0. */
bool logitree_has_feature(const char *feature);

/* The name of the feature with this number, from 0 on; NULL past the last. It lives forever. */
const char *logitree_feature(size_t number);

/* The library's size of a struct of the header, such as "logitree_text"; 0 for an unknown name.

   Pointers: name is NULL or a text that ends in a byte of 0. */
size_t logitree_struct_size(const char *name);

/* Number of handles that were made and not freed, of all threads: what a test of a program compares. */
size_t logitree_live_handles(void);

/* A text or bytes of the caller: length bytes at data. */
typedef struct logitree_text {
    /* The first byte; NULL only with a length of 0. */
    const char *data;
    /* Number of bytes; LOGITREE_NUL_TERMINATED: up to the first byte of 0. */
    size_t length;
} logitree_text;

/* The status of this thread's last error; LOGITREE_OK if there was none. A success does not change it. */
logitree_status logitree_error_status(void);

/* What is wrong, in one sentence: this thread's last error. UTF-8; "" if there was none. It belongs to logitree and
   is valid until the thread's next call that fails. */
const char *logitree_error_message(void);

/* Where it is wrong: the name of an argument, a line and a column, a JSON pointer, a row. As logitree_error_message. */
const char *logitree_error_place(void);

/* The way out; "" if none is known. As logitree_error_message. */
const char *logitree_error_help(void);

/* Forgets this thread's last error. */
void logitree_error_clear(void);

/* The name of a status, such as "ERROR_TOKEN"; "UNKNOWN" for another number. It lives forever. */
const char *logitree_status_name(int32_t status);

/* The vocabulary of a GGUF file, a whole model or vocabulary-only. path ends in a byte of 0. */
logitree_status logitree_vocabulary_from_gguf(const char *path, logitree_vocabulary **out);

/* The vocabulary of a Hugging Face tokenizer.json. Ends of generation are the added tokens with well-known texts:
   logitree_vocabulary_with_end_tokens names others. */
logitree_status logitree_vocabulary_from_tokenizer_json(const char *path, logitree_vocabulary **out);

/* The same from the content of such a file. */
logitree_status logitree_vocabulary_from_tokenizer_json_bytes(
    const uint8_t *data,
    size_t length,
    logitree_vocabulary **out);

/* The vocabulary of a Mistral tekken JSON file. */
logitree_status logitree_vocabulary_from_tekken(const char *path, logitree_vocabulary **out);

/* The vocabulary of a SentencePiece model file. */
logitree_status logitree_vocabulary_from_sentencepiece(const char *path, logitree_vocabulary **out);

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

/* Forgets what the vocabulary keeps of constraints, so that equal ones share their masks: the 256 last used at most.
   Matchers live on. count, unless it is NULL, gets how many there were.

   Pointers: count is NULL, or a number may be written at it. */
logitree_status logitree_vocabulary_clear_bindings(const logitree_vocabulary *vocabulary, size_t *count);

/* Frees a vocabulary. What was made with it lives on. NULL is no error. */
logitree_status logitree_vocabulary_free(logitree_vocabulary *vocabulary);

/* The number of tokens. */
logitree_status logitree_vocabulary_size(const logitree_vocabulary *vocabulary, size_t *size);

/* The bytes that a token stands for; for a token that is not text, its name. There is no byte of 0 after them. */
logitree_status logitree_vocabulary_token(
    const logitree_vocabulary *vocabulary,
    uint32_t token,
    uint8_t *out,
    size_t capacity,
    size_t *length);

/* The end-of-generation ids, ascending. */
logitree_status logitree_vocabulary_end_tokens(
    const logitree_vocabulary *vocabulary,
    uint32_t *out,
    size_t capacity,
    size_t *count);

/* The bytes of count tokens, one after the other; of tokens that are not text, nothing. */
logitree_status logitree_vocabulary_decode(
    const logitree_vocabulary *vocabulary,
    const uint32_t *tokens,
    size_t count,
    uint8_t *out,
    size_t capacity,
    size_t *length);

/* 16 bytes that are equal for vocabularies with equal tokens, kinds and end ids, whatever they were read from. */
logitree_status logitree_vocabulary_fingerprint(const logitree_vocabulary *vocabulary, uint8_t *out);

/* Finds ahead what grammars need of this vocabulary, some 20 to 60 ms. Without it the first masks of the first
   grammar take that time. */
logitree_status logitree_vocabulary_prepare(const logitree_vocabulary *vocabulary);

/* The constraint that a JSON text describes: {"type": "json_schema", "schema": {...}} and so on; docs/c.md has all
   types. */
logitree_status logitree_constraint_from_json(const char *json, size_t length, logitree_constraint **out);

/* A leaf of a token-tree payload {"modelId": ..., "descriptors": [{"path": ..., "leaves": [{"name": ..., "tokens":
   [...]}]}]}.

   path: which descriptor; NULL where there is one. vocabulary: NULL, or the one that the ids and names must fit.
   following: NULL, or a text that comes after the leaf. Built trees are cached by content.

   Pointers: length bytes may be read at payload; path is NULL or ends in a byte of 0; a text may be read at
   following, if it is not NULL. */
logitree_status logitree_constraint_token_tree(
    const char *payload,
    size_t length,
    const char *path,
    const logitree_vocabulary *vocabulary,
    const logitree_text *following,
    logitree_constraint **out);

/* A leaf of a descriptor in its binary form. */
logitree_status logitree_constraint_token_tree_binary(const uint8_t *data, size_t length, logitree_constraint **out);

/* The binary form of a descriptor of a payload. Names of leaves are not part of it.

   Pointers: length bytes may be read at payload; path is NULL or ends in a byte of 0; capacity bytes may be written
   at out, and a number at written. */
logitree_status logitree_token_tree_to_binary(
    const char *payload,
    size_t length,
    const char *path,
    uint8_t *out,
    size_t capacity,
    size_t *written);

/* Forgets the built token trees that are cached by content, 128 at most. Those in use live on. */
void logitree_token_tree_cache_clear(void);

/* The constraint as JSON, which logitree_constraint_from_json reads. LOGITREE_ERROR_CONSTRAINT for one that a
   program makes, such as a catalogue's handle. */
logitree_status logitree_constraint_to_json(
    const logitree_constraint *constraint,
    uint8_t *out,
    size_t capacity,
    size_t *written);

/* Frees a constraint. Matchers of it live on. NULL is no error. */
logitree_status logitree_constraint_free(logitree_constraint *constraint);

/* A matcher at the beginning of a sequence. Constraint and vocabulary may be freed while it lives. */
logitree_status logitree_matcher_new(
    const logitree_constraint *constraint,
    const logitree_vocabulary *vocabulary,
    logitree_matcher **out);

/* An independent copy in the same state. */
logitree_status logitree_matcher_fork(const logitree_matcher *matcher, logitree_matcher **out);

/* Frees a matcher. NULL is no error. */
logitree_status logitree_matcher_free(logitree_matcher *matcher);

/* Number of token ids that masks cover. */
logitree_status logitree_matcher_vocabulary_size(const logitree_matcher *matcher, size_t *size);

/* Writes the allowed tokens as a mask over words: bit id % 32 of word id / 32. count: at least the vocabulary's size
   divided by 32, rounded up; words past that are 0, or all ones where nothing is masked. */
logitree_status logitree_matcher_mask(logitree_matcher *matcher, uint32_t *words, size_t count);

/* Sets the logits of all tokens that are not allowed to minus infinity, in place; the others are not written. */
logitree_status logitree_matcher_apply(logitree_matcher *matcher, float *logits, size_t count);

/* The allowed tokens, ascending; where nothing is masked, every id. */
logitree_status logitree_matcher_allowed(logitree_matcher *matcher, uint32_t *out, size_t capacity, size_t *count);

/* Whether a token is allowed here. */
logitree_status logitree_matcher_is_allowed(logitree_matcher *matcher, uint32_t token, bool *allowed);

/* Accepts a token. LOGITREE_ERROR_TOKEN, and nothing changes, if it is not allowed here. */
logitree_status logitree_matcher_accept(logitree_matcher *matcher, uint32_t token);

/* Accepts all of count tokens or none. */
logitree_status logitree_matcher_accept_all(logitree_matcher *matcher, const uint32_t *tokens, size_t count);

/* Forgets the last count tokens. LOGITREE_ERROR_STATE, and nothing changes, if fewer were accepted. */
logitree_status logitree_matcher_rollback(logitree_matcher *matcher, size_t count);

/* Back to the state it was made with. */
logitree_status logitree_matcher_reset(logitree_matcher *matcher);

/* The forced tokens: the run of tokens from here that are each the only one allowed. They need no forward pass.
   Changes nothing. */
logitree_status logitree_matcher_forced(logitree_matcher *matcher, uint32_t *out, size_t capacity, size_t *count);

/* Whether the constraint is over: complete, with no continuation. Then the end tokens alone are allowed, unless it
   is open-ended; without end tokens, asking for the allowed tokens is an error. */
logitree_status logitree_matcher_is_finished(const logitree_matcher *matcher, bool *finished);

/* Whether anything may follow the end of the constraint: nothing is masked there. So it is with token trees. */
logitree_status logitree_matcher_is_open_ended(const logitree_matcher *matcher, bool *open_ended);

/* Whether what was accepted is complete; more may still be allowed. */
logitree_status logitree_matcher_is_accepting(const logitree_matcher *matcher, bool *accepting);

/* Number of tokens accepted, less those rolled back. */
logitree_status logitree_matcher_accepted(const logitree_matcher *matcher, size_t *count);

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

/* Frees a chain. NULL is no error. */
logitree_status logitree_chain_free(logitree_chain *chain);

/* Computes as llama.cpp does from the next step on, rounding and ties included, or as fast as possible. */
logitree_status logitree_chain_set_parity(logitree_chain *chain, bool parity);

/* Picks a token and accepts it in the chain (not in the matcher). matcher: NULL, or what allows tokens. */
logitree_status logitree_chain_sample(
    logitree_chain *chain,
    const float *logits,
    size_t count,
    logitree_matcher *matcher,
    uint32_t *token);

/* As logitree_chain_sample, without accepting the token. */
logitree_status logitree_chain_draw(
    logitree_chain *chain,
    const float *logits,
    size_t count,
    logitree_matcher *matcher,
    uint32_t *token);

/* Applies the chain, which need not select, and writes the candidates that are left, in the chain's order: written
   ids, logits and probabilities. Nothing is accepted; a sampler that draws has drawn. matcher: NULL, or what allows
   tokens. LOGITREE_ERROR_BUFFER if they do not fit: count elements always do. */
logitree_status logitree_chain_apply(
    logitree_chain *chain,
    const float *logits,
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

/* Records an accepted token, of the output or of the prompt. */
logitree_status logitree_chain_accept(logitree_chain *chain, uint32_t token);

/* Forgets the last count accepted tokens and all that was drawn for them. */
logitree_status logitree_chain_rollback(logitree_chain *chain, size_t count);

/* Back to the initial state: same seed, nothing accepted. */
logitree_status logitree_chain_reset(logitree_chain *chain);

/* The state as bytes, without samplers and parameters: generators, histories, running means. */
logitree_status logitree_chain_snapshot(const logitree_chain *chain, uint8_t *out, size_t capacity, size_t *length);

/* Takes the state that a chain of the same samplers and parameters gave. */
logitree_status logitree_chain_restore(logitree_chain *chain, const uint8_t *snapshot, size_t length);

/* The samplers with their parameters, "->" between them: UTF-8 without a byte of 0 after it. */
logitree_status logitree_chain_describe(const logitree_chain *chain, uint8_t *out, size_t capacity, size_t *length);

/* Changes a numeric parameter from the next step on.

   Pointers: parameter is NULL or ends in a byte of 0. */
logitree_status logitree_chain_set(logitree_chain *chain, const char *parameter, double value);

/* The entropy of the distribution of count logits, in nats or bits; infinite without a finite logit. */
logitree_status logitree_metrics_entropy(const float *logits, size_t count, bool bits, double *out);

/* The surprisal of a token: minus the logarithm of its probability, in nats or bits. ids: NULL, or the token of each
   logit, for the candidates that a chain left. Infinite for a token that is not there, and where its logit is not
   finite.

   Pointers: count floats may be read at logits and, if it is not NULL, count ids at ids. */
logitree_status logitree_metrics_surprisal(
    const float *logits,
    const uint32_t *ids,
    size_t count,
    uint32_t token,
    bool bits,
    double *out);

/* The capacity best finite logits, descending, equal ones by id: their tokens and their probabilities under all
   logits. */
logitree_status logitree_metrics_top(
    const float *logits,
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

/* When a decoder stops, apart from its constraint. Begin with LOGITREE_DECODER_OPTIONS_INIT. */
typedef struct logitree_decoder_options {
    /* sizeof(logitree_decoder_options). */
    size_t struct_size;
    /* The most tokens; 0: no limit. */
    size_t max_tokens;
    /* Texts that end the output where they appear. */
    const logitree_text *stop;
    /* Number of these texts. */
    size_t stop_count;
    /* Not 0: an end-of-generation token does not end decoding. */
    uint32_t ignores_end;
} logitree_decoder_options;
#define LOGITREE_DECODER_OPTIONS_INIT {sizeof(logitree_decoder_options), 0, NULL, 0, 0}

/* A decoder over vocabulary, with copies of chain and matcher. matcher: NULL, or the constraint of the whole output.
   options: NULL for none.

   Pointers: options is NULL or may be read, its texts too. */
logitree_status logitree_decoder_new(
    const logitree_vocabulary *vocabulary,
    const logitree_chain *chain,
    const logitree_matcher *matcher,
    const logitree_decoder_options *options,
    logitree_decoder **out);

/* An independent copy in the same state. */
logitree_status logitree_decoder_fork(const logitree_decoder *decoder, logitree_decoder **out);

/* Frees a decoder. NULL is no error. */
logitree_status logitree_decoder_free(logitree_decoder *decoder);

/* Counts a prompt's tokens in the chain's history, which the penalties read. Before the first token only. */
logitree_status logitree_decoder_prime(logitree_decoder *decoder, const uint32_t *tokens, size_t count);

/* One step: the allowed tokens, the chain, the pick, and its acceptance. Logits are read, never written; count: at
   least the vocabulary's size. */
logitree_status logitree_decoder_step(logitree_decoder *decoder, const float *logits, size_t count, uint32_t *token);

/* As logitree_decoder_step with logits of 16 bits: bfloat16 or IEEE binary16. */
logitree_status logitree_decoder_step_half(
    logitree_decoder *decoder,
    const uint16_t *logits,
    size_t count,
    bool bfloat16,
    uint32_t *token);

/* Accepts a token from outside. */
logitree_status logitree_decoder_accept(logitree_decoder *decoder, uint32_t token);

/* Accepts the forced tokens and writes them: evaluate them in one batch with the token before them. With too little
   room nothing is accepted. */
logitree_status logitree_decoder_take_forced(logitree_decoder *decoder, uint32_t *out, size_t capacity, size_t *count);

/* Forgets the last count tokens: matcher, chain and history are as before them. */
logitree_status logitree_decoder_rollback(logitree_decoder *decoder, size_t count);

/* Back to the state it was made with. */
logitree_status logitree_decoder_reset(logitree_decoder *decoder);

/* Constrains what comes next by a copy of matcher, until logitree_decoder_clear. stops: whether decoding is over
   when the constraint is; else what follows is free. */
logitree_status logitree_decoder_activate(logitree_decoder *decoder, const logitree_matcher *matcher, bool stops);

/* Ends whatever was activated: what comes next is under the constraint that the decoder was made with, or free
   without one. LOGITREE_ERROR_TOKEN if that constraint does not allow what was written; the activated one stays
   then. */
logitree_status logitree_decoder_clear(logitree_decoder *decoder);

/* The allowed tokens, ascending. */
logitree_status logitree_decoder_allowed(logitree_decoder *decoder, uint32_t *out, size_t capacity, size_t *count);

/* Why decoding is over (LOGITREE_FINISH_...; LOGITREE_RUNNING while it is not), and which stop text appeared.
   stop_index may be NULL.

   Pointers: a number may be written at reason and, if it is not NULL, at stop_index. */
logitree_status logitree_decoder_finish(const logitree_decoder *decoder, uint32_t *reason, size_t *stop_index);

/* The tokens so far, without a primed prompt. */
logitree_status logitree_decoder_tokens(const logitree_decoder *decoder, uint32_t *out, size_t capacity, size_t *count);

/* A copy of the decoder's chain in its present state. */
logitree_status logitree_decoder_chain(const logitree_decoder *decoder, logitree_chain **out);

/* A copy of the running constraint in its present state; LOGITREE_ERROR_STATE if there is none. */
logitree_status logitree_decoder_matcher(const logitree_decoder *decoder, logitree_matcher **out);

/* Steps each decoder with its row of logits, in up to threads threads (0: one for each core).

   Row i of the logits begins at logits + i * stride and has width floats. Each decoder's token is written to
   tokens[i]; one that is finished gets end_token, and its logits are not read. statuses: NULL, then all rows take
   their token or none; or an array in which each row's own status is written: a row with an error is as it was and
   its token is LOGITREE_NO_TOKEN. The first row's error is returned in both cases.

   Pointers: count handles may be read at decoders, the rows at logits; count ids may be written at tokens and, if it
   is not NULL, count statuses at statuses. */
logitree_status logitree_batch_step(
    logitree_decoder *const *decoders,
    size_t count,
    const float *logits,
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

/* Accepts each decoder's forced tokens, all decoders or none: row i's tokens are written at tokens + i * stride, and
   their number to counts[i]. With too little room nothing is accepted and counts says how much is needed. */
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

/* Opens an index file for reading; it stays mapped into memory.

   Pointers: file is NULL or ends in a byte of 0. */
logitree_status logitree_catalogue_open(const char *file, logitree_catalogue **out);

/* Frees a catalogue. Walks and constraints of it live on. NULL is no error. */
logitree_status logitree_catalogue_free(logitree_catalogue *catalogue);

/* Number of items. */
logitree_status logitree_catalogue_size(const logitree_catalogue *catalogue, uint64_t *size);

/* The constraint that the output is an item; also, unless it is NULL, must allow it too.

   end_token: the token that ends every item; LOGITREE_NO_TOKEN: an item ends by itself. */
logitree_status logitree_catalogue_constraint(
    const logitree_catalogue *catalogue,
    uint32_t end_token,
    const logitree_constraint *also,
    logitree_constraint **out);

/* A walk over the catalogue as it is now. */
logitree_status logitree_walk_new(const logitree_catalogue *catalogue, uint32_t end_token, logitree_walk **out);

/* Frees a walk. NULL is no error. */
logitree_status logitree_walk_free(logitree_walk *walk);

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

   states: the state of each row. logits: row i begins at logits + i * stride and has row_width floats. scores: the
   score of each row so far, minus infinity for one that ends; NULL: 0. groups: numbers that do not decrease; NULL:
   one group. At most width times the number of groups are written. */
logitree_status logitree_walk_top(
    const logitree_walk *walk,
    const int64_t *states,
    size_t count,
    const float *logits,
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

/* Mode 0: the likeliest of the allowed tokens is selected. */
#define LOGITREE_LLAMA_GREEDY 0u

/* Mode 1: the samplers that follow choose among the allowed tokens. */
#define LOGITREE_LLAMA_SAMPLE 1u

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

/* How a sampler behaves. Begin with LOGITREE_LLAMA_OPTIONS_INIT. */
typedef struct logitree_llama_options {
    /* sizeof(logitree_llama_options). */
    size_t struct_size;
    /* LOGITREE_LLAMA_GREEDY or LOGITREE_LLAMA_SAMPLE; not looked at with a chain. */
    uint32_t mode;
    /* 0: only end-of-generation tokens follow a constraint that is over; not 0: anything. */
    uint32_t continues;
    /* 0: tokens that are accepted before the first apply are a prompt; not 0: they are the beginning of the output. */
    uint32_t counts_first;
} logitree_llama_options;
#define LOGITREE_LLAMA_OPTIONS_INIT {sizeof(logitree_llama_options), 0, 0, 0}

/* Sums over the steps of a sampler and its clones. A skip ratio is (candidates - allowed candidates) / candidates. */
typedef struct logitree_llama_counts {
    /* sizeof(logitree_llama_counts). */
    size_t struct_size;
    /* Steps in which the constraint decided what is allowed. */
    uint64_t steps;
    /* Of those, steps with one allowed candidate. */
    uint64_t sole;
    /* Candidates before the constraint. */
    uint64_t candidates;
    /* Candidates that were allowed. */
    uint64_t kept;
    /* Sum of the steps' skip ratios. */
    double skip_ratio;
    /* Sum of their squares. */
    double skip_ratio_squared;
} logitree_llama_counts;
#define LOGITREE_LLAMA_COUNTS_INIT {sizeof(logitree_llama_counts), 0, 0, 0, 0, 0, 0}

/* Makes a llama_sampler for any chain of the loaded libllama: a constraint, a whole logitree chain that selects, or
   both.

   matcher: NULL, or the constraint, from its present state on; it is copied. chain: NULL, or the chain; it is
   copied. options: NULL for greedy. The pointer at sampler is a struct llama_sampler * that belongs to the caller,
   until llama_sampler_chain_add gives it to a chain or llama_sampler_free frees it. Place it after penalties and
   before everything that cuts candidates. record: NULL, or where a handle is written that says what went wrong.

   A sampler fails closed: after an error an end-of-generation token is the only candidate, until a reset.

   Pointers: the functions are those of one libllama, which stays loaded while a sampler lives; the structs may be
   read; a pointer may be written at sampler and, if it is not NULL, a handle at record. libllama uses a sampler in
   one thread at a time. */
logitree_status logitree_llama_sampler(
    const logitree_llama_library *library,
    const logitree_vocabulary *vocabulary,
    const logitree_matcher *matcher,
    const logitree_chain *chain,
    const logitree_llama_options *options,
    void **sampler,
    logitree_llama_record **record);

/* The first error of the sampler and its clones since the last call: its status, and this thread's last error.
   LOGITREE_OK if there was none. */
logitree_status logitree_llama_record_check(const logitree_llama_record *record);

/* The sums so far. counts->struct_size is set by the caller: LOGITREE_LLAMA_COUNTS_INIT.

   Pointers: counts is NULL or may be read and written. */
logitree_status logitree_llama_record_counts(const logitree_llama_record *record, logitree_llama_counts *counts);

/* Frees a record. The sampler lives on. NULL is no error. */
logitree_status logitree_llama_record_free(logitree_llama_record *record);

#ifdef __cplusplus
}
#endif

#endif /* LOGITREE_H */
