/* The C interface from C: what it gives, and that misuse is an error code with a message and never more. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logitree.h"

static int checks = 0;

static void fail(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: %s\n  last error: %s: %s (at %s); %s\n", file, line, what, logitree_error_kind(),
            logitree_error_message(), logitree_error_place(), logitree_error_help());
    exit(1);
}

#define CHECK(condition) ((condition) ? (void)++checks : fail(__FILE__, __LINE__, #condition))
#define OK(call) CHECK((call) == LOGITREE_OK)
/* The call fails with this status, and the thread's last error says so in words. */
#define FAILS(status, call) \
    do { \
        logitree_error_clear(); \
        CHECK((call) == (status)); \
        CHECK(strlen(logitree_error_kind()) > 0 && strlen(logitree_error_message()) > 0); \
    } while (0)

enum { A, B, AB, C, END, SIZE };

static const char *TOKENS[SIZE] = {"A", "B", "AB", "C", "</s>"};

static logitree_text text(const char *data) {
    logitree_text made = {data, LOGITREE_NUL_TERMINATED};
    return made;
}

static logitree_vocabulary *vocabulary(void) {
    logitree_text tokens[SIZE];
    for (int i = 0; i < SIZE; i++) tokens[i] = text(TOKENS[i]);
    uint32_t end = END;
    logitree_vocabulary *made = NULL;
    OK(logitree_vocabulary_from_tokens(tokens, SIZE, NULL, &end, 1, &made));
    return made;
}

static logitree_constraint *choices(const char *first, const char *second) {
    char json[200];
    snprintf(json, sizeof json, "{\"type\": \"choices\", \"texts\": [\"%s\", \"%s\"]}", first, second);
    logitree_constraint *made = NULL;
    OK(logitree_constraint_from_json(json, LOGITREE_NUL_TERMINATED, NULL, &made));
    return made;
}

static logitree_status accept(void *handle, uint32_t token) { return logitree_accept(handle, &token, 1); }

static logitree_matcher *matcher(logitree_constraint *constraint, logitree_vocabulary *known) {
    logitree_matcher *made = NULL;
    OK(logitree_matcher_new(constraint, known, &made));
    OK(logitree_free(constraint));
    return made;
}

/* Whether the JSON that describes a handle has this text. */
static char DESCRIBED[2048];

static int has(const void *handle, const char *part) {
    size_t n = 0;
    OK(logitree_describe(handle, (uint8_t *)DESCRIBED, sizeof DESCRIBED - 1, &n));
    DESCRIBED[n] = 0;
    return strstr(DESCRIBED, part) != NULL;
}

static void library(void) {
    CHECK(logitree_abi_version() == LOGITREE_ABI_VERSION);
    CHECK(strlen(logitree_version()) >= 5 && has(NULL, logitree_version()));
    CHECK(logitree_has_feature("token_tree") && logitree_has_feature("llama_sampler"));
    CHECK(!logitree_has_feature("telepathy") && !logitree_has_feature(NULL));
    CHECK(has(NULL, "\"logitree_beam\":24") && has(NULL, "\"live_handles\":0"));
    for (const char *name = strchr(DESCRIBED, '['); *name != ']';) {
        char feature[40];
        CHECK(sscanf(name, "%*[[,]\"%39[a-z_]", feature) == 1 && logitree_has_feature(feature));
        name = strchr(name + 2, '"') + 1;
    }
}

static void vocabularies(void) {
    logitree_vocabulary *known = vocabulary(), *other = NULL;
    size_t n = 0;
    OK(logitree_vocabulary_size(known, &n));
    CHECK(n == SIZE);
    uint8_t bytes[8];
    uint32_t ids[3] = {AB, SIZE, END};
    OK(logitree_vocabulary_decode(known, ids, 1, true, bytes, sizeof bytes, &n));
    CHECK(n == 2 && memcmp(bytes, "AB", 2) == 0);
    FAILS(LOGITREE_ERROR_BUFFER, logitree_vocabulary_decode(known, ids, 1, true, bytes, 1, &n));
    CHECK(n == 2);
    FAILS(LOGITREE_ERROR_BUFFER, logitree_vocabulary_decode(known, ids, 1, true, NULL, 0, &n));
    OK(logitree_vocabulary_decode(known, ids + 2, 1, true, bytes, sizeof bytes, &n));
    CHECK(n == 4 && memcmp(bytes, "</s>", 4) == 0);
    ids[0] = A, ids[1] = AB;
    OK(logitree_vocabulary_decode(known, ids, 3, false, bytes, sizeof bytes, &n));
    CHECK(n == 3 && memcmp(bytes, "AAB", 3) == 0);
    ids[0] = UINT32_MAX;
    FAILS(LOGITREE_ERROR_TOKEN, logitree_vocabulary_decode(known, ids, 3, false, bytes, sizeof bytes, &n));
    uint32_t ends[2] = {C, END};
    OK(logitree_vocabulary_with_end_tokens(known, ends, 2, &other));
    OK(logitree_vocabulary_end_tokens(other, ids, 3, &n));
    CHECK(n == 2 && ids[0] == C && ids[1] == END);
    CHECK(has(other, "\"size\":5,\"end_tokens\":[3,4]"));
    char fingerprint[60];
    snprintf(fingerprint, sizeof fingerprint, "%.48s", strstr(DESCRIBED, "\"fingerprint\""));
    CHECK(strlen(fingerprint) == 48 && !has(known, fingerprint));
    OK(logitree_vocabulary_prepare(known));
    OK(logitree_free(other));
    ends[0] = 99;
    FAILS(LOGITREE_ERROR_VOCABULARY, logitree_vocabulary_with_end_tokens(known, ends, 2, &other));
    CHECK(other == NULL);
    uint8_t kinds[SIZE] = {0, 0, 0, 0, 77};
    logitree_text tokens[SIZE] = {{0}};
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_vocabulary_from_tokens(tokens, SIZE, kinds, NULL, 0, &other));
    CHECK(strcmp(logitree_error_place(), "kinds[4]") == 0);
    FAILS(LOGITREE_ERROR_VOCABULARY, logitree_vocabulary_from_tokens(NULL, 0, NULL, NULL, 0, &other));
    static const char *FORMATS[] = {"gguf", "tokenizer_json", "tekken", "sentencepiece"};
    for (int i = 0; i < 4; i++) {
        FAILS(LOGITREE_ERROR_IO, logitree_vocabulary_from_file(FORMATS[i], "/nowhere/at/all", &other));
        FAILS(LOGITREE_ERROR_VOCABULARY, logitree_vocabulary_from_bytes(FORMATS[i], (const uint8_t *)"[1,2]", 5, &other));
    }
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_vocabulary_from_file("gguf", NULL, &other));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_vocabulary_from_file("gguf", "x", NULL));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_vocabulary_from_file("GGUF", "x", &other));
    CHECK(strcmp(logitree_error_place(), "format") == 0 && strcmp(logitree_error_kind(), "argument") == 0);
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_vocabulary_from_bytes(NULL, NULL, 0, &other));
    FAILS(LOGITREE_ERROR_VOCABULARY, logitree_vocabulary_from_bytes("gguf", NULL, 0, &other));
    OK(logitree_free(known));
}

static void constraints(void) {
    static const struct {
        logitree_status status;
        const char *json;
    } FORMS[] = {
        {LOGITREE_OK, "{\"type\": \"choices\", \"texts\": [\"A\", \"B\"], \"following\": \"C\"}"},
        {LOGITREE_OK, "{\"type\": \"regex\", \"pattern\": \"[AB]+\"}"},
        {LOGITREE_OK, "{\"type\": \"gbnf\", \"text\": \"root ::= \\\"A\\\"\"}"},
        {LOGITREE_OK, "{\"type\": \"lark\", \"text\": \"start: \\\"A\\\"\"}"},
        {LOGITREE_OK, "{\"type\": \"json_schema\", \"schema\": {\"type\": \"string\"}, \"whitespace\": \"compact\"}"},
        {LOGITREE_OK, "{\"type\": \"json\"}"},
        {LOGITREE_OK, "{\"type\": \"json\", \"numbers\": \"plain\"}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": \"json\", \"numbers\": \"few\"}"},
        {LOGITREE_OK, "{\"type\": \"text\"}"},
        {LOGITREE_OK, "{\"type\": \"sequence\", \"of\": [{\"type\": \"literal\", \"text\": \"A\"}, {\"type\": \"either\", "
                      "\"of\": [{\"type\": \"literal\", \"text\": \"B\"}, {\"type\": \"regex\", \"pattern\": \"C\"}]}]}"},
        {LOGITREE_OK, "{\"type\": \"repeat\", \"of\": {\"type\": \"literal\", \"text\": \"A\"}, \"min\": 1, \"max\": 3}"},
        {LOGITREE_OK, "{\"type\": \"token_tree\", \"payload\": {\"descriptors\": [{\"path\": \"a\", \"leaves\": "
                      "[{\"name\": \"A\", \"tokens\": [0, 1]}]}]}}"},
        {LOGITREE_OK, "{\"type\": \"reasoning_budget\", \"begin\": [[0]], \"end\": [[1]], \"budget\": 2, \"then\": "
                      "{\"type\": \"choices\", \"texts\": [\"C\"]}}"},
        {LOGITREE_OK, "{\"type\": \"skeleton\", \"skeleton\": {\"spans\": [{\"kind\": \"literal\", \"value\": \"A\"}]}}"},
        {LOGITREE_ERROR_PAYLOAD, "{\"type\": \"skeleton\", \"skeleton\": {\"spans\": 5}}"},
        {LOGITREE_ERROR_CONSTRAINT, ""},
        {LOGITREE_ERROR_CONSTRAINT, "[]"},
        {LOGITREE_ERROR_CONSTRAINT, "{}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": 7}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": \"magic\"}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": \"regex\"}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": \"regex\", \"pattern\": \"(\"}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": \"regex\", \"pattern\": \"A\", \"flags\": \"i\"}"},
        {LOGITREE_OK, "{\"type\": \"sequence\", \"of\": [{\"type\": \"choices\", \"texts\": [\"A\"]}]}"},
        {LOGITREE_OK, "{\"type\": \"both\", \"of\": [{\"type\": \"choices\", \"texts\": [\"A\"]}, {\"type\": \"text\"}]}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": \"both\", \"of\": []}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": \"token_tree\"}"},
        {LOGITREE_ERROR_PAYLOAD, "{\"type\": \"token_tree\", \"payload\": {\"descriptors\": 5}}"},
        {LOGITREE_ERROR_CONSTRAINT, "{\"type\": \"token_tree\", \"binary\": \"***\"}"},
        {LOGITREE_ERROR_IO, "{\"type\": \"catalogue\", \"index\": \"/nowhere/at/all.index\"}"},
    };
    logitree_vocabulary *known = vocabulary();
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        logitree_constraint *made = (logitree_constraint *)1;
        logitree_status status = logitree_constraint_from_json(FORMS[i].json, LOGITREE_NUL_TERMINATED, NULL, &made);
        if (status != FORMS[i].status) fprintf(stderr, "%s gives %d\n", FORMS[i].json, (int)status);
        CHECK(status == FORMS[i].status);
        CHECK((made == NULL) == (status != LOGITREE_OK));
        if (made != NULL) {
            logitree_matcher *bound = NULL;
            /* Whether this vocabulary can spell it is another matter. */
            logitree_status fits = logitree_matcher_new(made, known, &bound);
            CHECK(fits == LOGITREE_OK || fits == LOGITREE_ERROR_CONSTRAINT);
            OK(logitree_free(bound));
            OK(logitree_free(made));
        }
    }
    logitree_constraint *made = NULL;
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_constraint_from_json(NULL, 3, NULL, &made));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_constraint_from_json("{", SIZE_MAX - 1, NULL, &made));
    FAILS(LOGITREE_ERROR_CONSTRAINT, logitree_constraint_from_json("{\"type\": \"\xff\"}", 13, NULL, &made));
    logitree_matcher *none = NULL;
    static const char EMPTY[] = "{\"type\": \"choices\", \"texts\": []}";
    OK(logitree_constraint_from_json(EMPTY, sizeof EMPTY - 1, NULL, &made));
    FAILS(LOGITREE_ERROR_CONSTRAINT, logitree_matcher_new(made, known, &none));
    uint8_t written[64];
    size_t n = 0;
    OK(logitree_describe(made, written, sizeof written, &n));
    CHECK(n == 29 && memcmp(written, "{\"type\":\"choices\",\"texts\":[]}", n) == 0);
    FAILS(LOGITREE_ERROR_BUFFER, logitree_describe(made, written, 3, &n));
    OK(logitree_free(made));
    OK(logitree_free(known));
}

/* Equal constraints are bound to a vocabulary once; the second matcher has what the first one found. */
static void bindings(void) {
    static const char PATTERN[] = "{\"type\": \"regex\", \"pattern\": \"A+B\"}";
    logitree_vocabulary *known = vocabulary();
    CHECK(has(known, "\"bindings\":0"));
    for (int round = 0; round < 2; round++) {
        logitree_constraint *made = NULL;
        OK(logitree_constraint_from_json(PATTERN, LOGITREE_NUL_TERMINATED, NULL, &made));
        logitree_matcher *bound = matcher(made, known);
        OK(logitree_free(bound));
    }
    CHECK(has(known, "\"bindings\":1"));
    OK(logitree_clear_caches(NULL));
    CHECK(has(known, "\"bindings\":1"));
    OK(logitree_clear_caches(known));
    CHECK(has(known, "\"bindings\":0"));
    OK(logitree_free(known));
}

#define PAYLOAD(path, name) \
    "{\"modelId\": \"m\", \"descriptors\": [{\"path\": \"" path "\", \"leaves\": [{\"name\": \"" name "\", \"tokens\": [0, 1]}, " \
    "{\"name\": \"C\", \"tokens\": [3]}]}]}"
#define TREE(fields) "{\"type\": \"token_tree\", " fields "}"

/* The base64 of bytes. */
static void base64(const uint8_t *bytes, size_t n, char *out) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t at = 0; at < n; at += 3) {
        uint32_t three = (uint32_t)bytes[at] << 16;
        if (at + 1 < n) three |= (uint32_t)bytes[at + 1] << 8;
        if (at + 2 < n) three |= bytes[at + 2];
        for (int i = 0; i < 4; i++) *out++ = at + (size_t)i <= n ? DIGITS[three >> (18 - 6 * i) & 63] : '=';
    }
    *out = 0;
}

static logitree_status tree(const char *form, const logitree_vocabulary *known, logitree_constraint **out) {
    return logitree_constraint_from_json(form, LOGITREE_NUL_TERMINATED, known, out);
}

static logitree_status binary_tree(const uint8_t *bytes, size_t n, logitree_vocabulary *known, logitree_constraint **out) {
    char text[400], form[500];
    base64(bytes, n, text);
    snprintf(form, sizeof form, TREE("\"binary\": \"%s\""), text);
    return tree(form, known, out);
}

static void token_trees(void) {
    logitree_vocabulary *known = vocabulary();
    logitree_constraint *whole = NULL, *again = NULL;
    OK(tree(TREE("\"path\": \"action\", \"payload\": " PAYLOAD("action", "AB")), known, &whole));
    FAILS(LOGITREE_ERROR_CONSTRAINT,
          tree(TREE("\"path\": \"thought\", \"payload\": " PAYLOAD("action", "AB")), NULL, &again));
    /* Names are compared with what their tokens spell where a vocabulary is given. */
    OK(tree(TREE("\"payload\": " PAYLOAD("action", "BA")), NULL, &again));
    OK(logitree_free(again));
    FAILS(LOGITREE_ERROR_PAYLOAD, tree(TREE("\"payload\": " PAYLOAD("action", "BA")), known, &again));
    CHECK(strcmp(logitree_error_place(), "/payload/descriptors/0/leaves/0") == 0);
    uint8_t binary[256];
    size_t n = 0;
    OK(logitree_token_tree_to_binary(PAYLOAD("action", "AB"), LOGITREE_NUL_TERMINATED, NULL, binary, sizeof binary, &n));
    OK(binary_tree(binary, n, known, &again));
    CHECK(has(again, "\"binary\"") && has(whole, "\"name\":\"AB\""));
    for (size_t cut = 0; cut < n; cut++) {
        logitree_constraint *none = NULL;
        FAILS(LOGITREE_ERROR_PAYLOAD, binary_tree(binary, cut, NULL, &none));
    }
    /* Its ids are looked up where a vocabulary is given. */
    uint8_t outside[256];
    size_t length = 0;
    const char *large = "{\"modelId\": \"m\", \"descriptors\": [{\"path\": \"p\", \"leaves\": [{\"name\": \"X\", \"tokens\": [4000]}]}]}";
    OK(logitree_token_tree_to_binary(large, LOGITREE_NUL_TERMINATED, NULL, outside, sizeof outside, &length));
    logitree_constraint *beyond = NULL;
    FAILS(LOGITREE_ERROR_PAYLOAD, binary_tree(outside, length, known, &beyond));
    OK(binary_tree(outside, length, NULL, &beyond));
    OK(logitree_free(beyond));
    logitree_matcher *one = matcher(whole, known), *two = matcher(again, known);
    uint32_t ids[SIZE];
    for (int i = 0; i < 2; i++) {
        OK(logitree_matcher_allowed(i ? two : one, ids, SIZE, &n));
        CHECK(n == 2 && ids[0] == A && ids[1] == C);
    }
    OK(logitree_free(one));
    OK(logitree_free(two));
    OK(logitree_free(known));
}

static void matchers(void) {
    logitree_vocabulary *known = vocabulary();
    logitree_matcher *one = matcher(choices("AB", "C"), known), *two = NULL;
    uint32_t ids[SIZE], words[2];
    size_t n = 0;
    bool yes = false;
    uint32_t state = 9;
    CHECK(has(one, "\"vocabulary_size\":5,\"accepted\":0,\"accepting\":false"));
    OK(logitree_matcher_allowed(one, ids, SIZE, &n));
    CHECK(n == 3 && ids[0] == A && ids[1] == AB && ids[2] == C);
    FAILS(LOGITREE_ERROR_BUFFER, logitree_matcher_allowed(one, ids, 2, &n));
    CHECK(n == 3);
    OK(logitree_matcher_mask(one, words, 1));
    CHECK(words[0] == (1u << A | 1u << AB | 1u << C));
    FAILS(LOGITREE_ERROR_MASK, logitree_matcher_mask(one, words, 0));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_matcher_mask(one, NULL, 1));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_matcher_mask(one, (uint32_t *)((char *)words + 1), 1));
    float logits[SIZE] = {1, 2, 3, 4, 5};
    OK(logitree_matcher_apply(one, logits, LOGITREE_F32, SIZE));
    CHECK(logits[A] == 1 && logits[B] < -1e30f && logits[END] < -1e30f);
    FAILS(LOGITREE_ERROR_LOGITS, logitree_matcher_apply(one, logits, LOGITREE_F32, 2));
    uint16_t halves[2][SIZE] = {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}};
    OK(logitree_matcher_apply(one, halves[0], LOGITREE_F16, SIZE));
    OK(logitree_matcher_apply(one, halves[1], LOGITREE_BF16, SIZE));
    CHECK(halves[0][A] == 1 && halves[0][B] == 0xfc00 && halves[1][AB] == 3 && halves[1][END] == 0xff80);
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_matcher_apply(one, logits, 3, SIZE));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_matcher_apply(one, (char *)logits + 2, LOGITREE_F32, SIZE - 1));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_matcher_apply(one, logits, LOGITREE_F32, SIZE_MAX / 4));
    OK(accept(one, A));
    OK(logitree_matcher_fork(one, &two));
    OK(logitree_matcher_forced(one, ids, SIZE, &n));
    CHECK(n == 1 && ids[0] == B);
    FAILS(LOGITREE_ERROR_TOKEN, accept(one, C));
    FAILS(LOGITREE_ERROR_TOKEN, accept(one, UINT32_MAX));
    OK(logitree_matcher_is_allowed(one, B, &yes));
    CHECK(yes);
    ids[0] = C;
    FAILS(LOGITREE_ERROR_TOKEN, logitree_accept(two, ids, 1));
    ids[0] = B, ids[1] = B;
    FAILS(LOGITREE_ERROR_TOKEN, logitree_accept(two, ids, 2));
    CHECK(strncmp(logitree_error_place(), "tokens[1]", 9) == 0);
    OK(logitree_accept(two, ids, 1));
    OK(logitree_matcher_state(two, &state, &n));
    CHECK(state == (LOGITREE_ACCEPTING | LOGITREE_FINISHED) && n == 2);
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_matcher_state(two, NULL, &n));
    /* At the end the end token alone, and after it too. */
    for (int padded = 0; padded < 2; padded++) {
        OK(logitree_matcher_mask(two, words, 1));
        CHECK(words[0] == 1u << END);
        FAILS(LOGITREE_ERROR_TOKEN, accept(two, A));
        OK(accept(two, END));
    }
    OK(logitree_rollback(two, 2));
    OK(logitree_matcher_state(one, &state, NULL));
    CHECK(state == 0);
    OK(logitree_rollback(two, 2));
    FAILS(LOGITREE_ERROR_STATE, logitree_rollback(two, 1));
    OK(logitree_reset(one));
    OK(logitree_matcher_state(one, &state, &n));
    CHECK(state == 0 && n == 0);
    OK(logitree_free(two));
    FAILS(LOGITREE_ERROR_HANDLE, logitree_free(two));
    FAILS(LOGITREE_ERROR_HANDLE, accept(two, A));
    FAILS(LOGITREE_ERROR_HANDLE, accept(NULL, A));
    FAILS(LOGITREE_ERROR_HANDLE, accept(known, A));
    FAILS(LOGITREE_ERROR_HANDLE, accept(&n, A));
    OK(logitree_free(NULL));
    OK(logitree_free(one));
    OK(logitree_free(known));
}

/* Draws a token and accepts it in the chain. */
static logitree_status sample(logitree_chain *chain, const float *logits, logitree_matcher *allowed, uint32_t *token) {
    logitree_status status = logitree_chain_draw(chain, logits, LOGITREE_F32, SIZE, allowed, token);
    return status == LOGITREE_OK ? logitree_accept(chain, token, 1) : status;
}

/* Functions of any handle, and every kind of what is none. */
static void handles(void) {
    logitree_vocabulary *known = vocabulary();
    size_t n = 0;
    uint8_t out[8];
    void *strange[] = {known, NULL, &n, (void *)1, (void *)SIZE_MAX};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        FAILS(LOGITREE_ERROR_HANDLE, accept(strange[i], A));
        FAILS(LOGITREE_ERROR_HANDLE, logitree_rollback(strange[i], 0));
        FAILS(LOGITREE_ERROR_HANDLE, logitree_reset(strange[i]));
        if (i > 1) FAILS(LOGITREE_ERROR_HANDLE, logitree_free(strange[i]));
        if (i > 1) FAILS(LOGITREE_ERROR_HANDLE, logitree_describe(strange[i], out, sizeof out, &n));
    }
    FAILS(LOGITREE_ERROR_BUFFER, logitree_describe(known, out, sizeof out, &n));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_describe(known, out, sizeof out, NULL));
    FAILS(LOGITREE_ERROR_HANDLE, logitree_clear_caches((logitree_vocabulary *)&n));
    logitree_matcher *bound = matcher(choices("A", "B"), known);
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_accept(bound, NULL, 1));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_accept(bound, (uint32_t *)&n, SIZE_MAX / 2));
    OK(logitree_accept(bound, NULL, 0));
    FAILS(LOGITREE_ERROR_STATE, logitree_rollback(bound, SIZE_MAX));
    OK(logitree_free(bound));
    OK(logitree_free(known));
    FAILS(LOGITREE_ERROR_HANDLE, logitree_describe(known, out, sizeof out, &n));
    FAILS(LOGITREE_ERROR_HANDLE, logitree_free(known));
}

static void chains(void) {
    logitree_vocabulary *known = vocabulary();
    logitree_matcher *bound = matcher(choices("A", "B"), known);
    logitree_chain *chain = NULL, *other = NULL;
    float logits[SIZE] = {1, 2, 3, 4, 5};
    uint32_t token = 0, again = 0;
    OK(logitree_chain_new("greedy", NULL, 0, &chain));
    OK(sample(chain, logits, bound, &token));
    CHECK(token == B);
    OK(logitree_chain_draw(chain, logits, LOGITREE_F32, SIZE, NULL, &token));
    CHECK(token == END);
    FAILS(LOGITREE_ERROR_MASK, logitree_chain_draw(chain, logits, LOGITREE_F32, 1, bound, &token));
    OK(logitree_free(chain));
    const char *parameters = "{\"temp\": 1.5, \"top_k\": 3, \"seed\": 7, \"logit_bias\": {\"0\": 2.5}}";
    OK(logitree_chain_new("top_k;temperature", parameters, LOGITREE_NUL_TERMINATED, &chain));
    size_t n = 0;
    CHECK(has(chain, "{\"samplers\":[\"logit_bias(") && has(chain, "\"parity\":false,\"accepted\":0"));
    OK(sample(chain, logits, NULL, &token));
    OK(logitree_chain_snapshot(chain, NULL, 0, &n) == LOGITREE_ERROR_BUFFER ? LOGITREE_OK : LOGITREE_ERROR_STATE);
    uint8_t *state = malloc(n);
    CHECK(state != NULL);
    OK(logitree_chain_snapshot(chain, state, n, &n));
    OK(logitree_chain_clone(chain, &other));
    OK(logitree_reset(other));
    OK(logitree_chain_restore(other, state, n));
    for (int i = 0; i < 20; i++) {
        OK(sample(chain, logits, NULL, &token));
        OK(sample(other, logits, NULL, &again));
        CHECK(token == again);
    }
    state[n / 2] ^= 1;
    FAILS(LOGITREE_ERROR_STATE, logitree_chain_restore(other, state, n));
    free(state);
    OK(logitree_rollback(chain, 20));
    FAILS(LOGITREE_ERROR_STATE, logitree_rollback(chain, 20));
    OK(logitree_chain_set(chain, "temp", 0.5));
    FAILS(LOGITREE_ERROR_SAMPLING, logitree_chain_set(chain, "tempo", 0.5));
    OK(logitree_chain_set(chain, "parity", 1));
    CHECK(has(chain, "\"parity\":true"));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_chain_set(chain, "te\xffmp", 1));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_chain_set(chain, NULL, 1));
    OK(accept(chain, A));
    OK(logitree_free(chain));
    OK(logitree_free(other));
    static const char *WRONG[] = {"[]", "{\"tempo\": 1}", "{\"temp\": \"hot\"}", "{\"seed\": -1}", "{\"top_k\": 1.5}",
                                  "{\"logit_bias\": {\"x\": 1}}", "{\"dry_breakers\": [[]]}", "{\"preset\": \"best\"}",
                                  "{\"samplers\": 5}", "{\"samplers\": [{\"name\": \"top_q\"}]}", "{\"samplers\": [], \"temp\": 1}",
                                  "{\"samplers\": [{\"name\": \"top_k\", \"n\": 1}]}",
                                  "{\"samplers\": [{\"name\": \"dist\", \"seed\": 4294967296}]}"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        FAILS(LOGITREE_ERROR_SAMPLING, logitree_chain_new(NULL, WRONG[i], LOGITREE_NUL_TERMINATED, &chain));
        CHECK(chain == NULL);
    }
    FAILS(LOGITREE_ERROR_SAMPLING, logitree_chain_new("top_q", NULL, 0, &chain));
    FAILS(LOGITREE_ERROR_SAMPLING, logitree_chain_new("top_k", "{\"samplers\": []}", LOGITREE_NUL_TERMINATED, &chain));
    OK(logitree_free(bound));
    OK(logitree_free(known));
}

static void candidates(void) {
    const char *two = "{\"samplers\": [{\"name\": \"top_k\", \"k\": 2}, {\"name\": \"temp\", \"t\": 0.5}]}";
    logitree_chain *chain = NULL;
    OK(logitree_chain_new(NULL, two, LOGITREE_NUL_TERMINATED, &chain));
    float logits[SIZE] = {1, 2, 0, 9, 5}, left[SIZE], shares[SIZE];
    uint32_t ids[SIZE], token = 0;
    size_t n = 0;
    FAILS(LOGITREE_ERROR_BUFFER, logitree_chain_apply(chain, logits, LOGITREE_F32, SIZE, NULL, ids, left, shares, 1, &n));
    CHECK(n == 2);
    OK(logitree_chain_apply(chain, logits, LOGITREE_F32, SIZE, NULL, ids, left, shares, SIZE, &n));
    CHECK(n == 2 && ids[0] == C && ids[1] == END && left[0] == 18 && left[1] == 10 && shares[0] > 0.99f);
    FAILS(LOGITREE_ERROR_SAMPLING, logitree_chain_draw(chain, logits, LOGITREE_F32, SIZE, NULL, &token));
    FAILS(LOGITREE_ERROR_LOGITS, logitree_chain_apply(chain, logits, LOGITREE_F32, 0, NULL, ids, left, shares, SIZE, &n));
    uint32_t banned[] = {C, A};
    float additions[] = {-HUGE_VALF, 8};
    OK(logitree_chain_steer(chain, banned, additions, 2));
    OK(logitree_chain_apply(chain, logits, LOGITREE_F32, SIZE, NULL, ids, left, shares, SIZE, &n));
    CHECK(n == 2 && ids[0] == A && ids[1] == END);
    additions[1] = HUGE_VALF;
    FAILS(LOGITREE_ERROR_SAMPLING, logitree_chain_steer(chain, banned, additions, 2));
    OK(logitree_chain_steer(chain, NULL, NULL, 0));
    logitree_vocabulary *known = vocabulary();
    logitree_matcher *bound = matcher(choices("A", "B"), known);
    OK(logitree_chain_apply(chain, logits, LOGITREE_F32, SIZE, bound, ids, left, shares, SIZE, &n));
    CHECK(n == 2 && ids[0] == B && ids[1] == A);
    OK(logitree_free(bound));
    OK(logitree_free(known));
    OK(logitree_free(chain));

    const float even[4] = {2, 2, 2, 2};
    double value = 0, tops[4];
    OK(logitree_metrics_measure(even, LOGITREE_F32, NULL, 4, 0, true, &value, NULL));
    CHECK(fabs(value - 2) < 1e-9);
    OK(logitree_metrics_measure(even, LOGITREE_F32, NULL, 4, 3, false, &tops[0], &value));
    CHECK(fabs(value - log(4)) < 1e-9 && fabs(tops[0] - log(4)) < 1e-9);
    const uint32_t others[] = {7, 9, 11, 13};
    OK(logitree_metrics_measure(even, LOGITREE_F32, others, 4, 3, false, NULL, &value));
    CHECK(isinf(value));
    OK(logitree_metrics_measure(NULL, LOGITREE_F32, NULL, 0, 0, false, &value, NULL));
    CHECK(isinf(value));
    OK(logitree_metrics_top(logits, LOGITREE_F32, SIZE, ids, tops, 2, &n));
    CHECK(n == 2 && ids[0] == C && ids[1] == END && tops[0] > tops[1]);
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_metrics_top(logits, LOGITREE_F32, SIZE, NULL, tops, 2, &n));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_metrics_measure(NULL, LOGITREE_F32, NULL, 4, 0, false, &value, NULL));
}

static logitree_decoder *decoder(logitree_vocabulary *known, const char *options) {
    logitree_matcher *bound = matcher(choices("AB", "CCC"), known);
    logitree_chain *chain = NULL;
    logitree_decoder *made = NULL;
    OK(logitree_chain_new("greedy", NULL, 0, &chain));
    OK(logitree_decoder_new(known, chain, bound, options, LOGITREE_NUL_TERMINATED, &made));
    OK(logitree_free(chain));
    OK(logitree_free(bound));
    return made;
}

static void decoders(void) {
    logitree_vocabulary *known = vocabulary();
    logitree_decoder *one = decoder(known, NULL), *two = NULL;
    float logits[SIZE] = {1, 2, 0, 9, 5};
    uint32_t token = 0, ids[8], words[1], reason = 9;
    size_t n = 0, at = 0;
    OK(logitree_decoder_prime(one, ids, 0));
    OK(logitree_decoder_step(one, logits, LOGITREE_F32, SIZE, &token));
    CHECK(token == C);
    FAILS(LOGITREE_ERROR_BUFFER, logitree_batch_take_forced(&one, 1, ids, 1, &n));
    CHECK(n == 2);
    OK(logitree_decoder_fork(one, &two));
    OK(logitree_batch_take_forced(&one, 1, ids, 8, &n));
    CHECK(n == 2 && ids[0] == C && ids[1] == C);
    OK(logitree_decoder_finish(one, &reason, &at));
    CHECK(reason == LOGITREE_FINISH_CONSTRAINT);
    FAILS(LOGITREE_ERROR_STATE, logitree_decoder_step(one, logits, LOGITREE_F32, SIZE, &token));
    OK(logitree_decoder_tokens(one, ids, 8, &n));
    CHECK(n == 3);
    FAILS(LOGITREE_ERROR_LOGITS, logitree_decoder_step(two, logits, LOGITREE_F32, 2, &token));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_decoder_step(two, NULL, LOGITREE_F32, SIZE, &token));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_decoder_step(two, logits, LOGITREE_F32, SIZE, NULL));
    FAILS(LOGITREE_ERROR_TOKEN, accept(two, A));
    OK(accept(two, C));
    OK(logitree_rollback(two, 2));
    OK(logitree_batch_masks(&two, 1, words, 1, 1, END));
    CHECK(words[0] == (1u << A | 1u << AB | 1u << C));
    /* Nothing is activated: the constraint that it was made with stays. What is activated is cleared down to it. */
    OK(logitree_decoder_clear(two));
    OK(logitree_batch_masks(&two, 1, words, 1, 1, END));
    CHECK(words[0] == (1u << A | 1u << AB | 1u << C));
    logitree_matcher *other = matcher(choices("C", "CC"), known);
    OK(logitree_decoder_activate(two, other, false));
    OK(logitree_decoder_activate(two, other, false));
    OK(logitree_free(other));
    OK(logitree_batch_masks(&two, 1, words, 1, 1, END));
    CHECK(words[0] == 1u << C);
    OK(logitree_decoder_clear(two));
    OK(logitree_batch_masks(&two, 1, words, 1, 1, END));
    CHECK(words[0] == (1u << A | 1u << AB | 1u << C));
    const uint16_t halves[] = {0, 0, 0, 0x3f80, 0};
    for (uint32_t dtype = LOGITREE_F16; dtype <= LOGITREE_BF16; dtype++) {
        OK(logitree_decoder_step(two, halves, dtype, SIZE, &token));
        CHECK(token == C);
        OK(logitree_rollback(two, 1));
    }
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_decoder_step(two, halves, 7, SIZE, &token));
    CHECK(strcmp(logitree_error_place(), "dtype") == 0);
    ids[0] = C, ids[1] = A;
    FAILS(LOGITREE_ERROR_TOKEN, logitree_accept(two, ids, 2));
    CHECK(has(two, "{\"accepted\":0,\"finish\":null}"));
    OK(accept(two, C));
    logitree_matcher *bound = matcher(choices("A", "B"), known), *running = NULL;
    OK(logitree_decoder_activate(two, bound, true));
    OK(logitree_decoder_matcher(two, &running));
    OK(logitree_reset(two));
    OK(logitree_free(running));
    OK(logitree_free(bound));
    logitree_chain *chain = NULL;
    OK(logitree_decoder_chain(two, &chain));
    OK(logitree_free(chain));
    OK(logitree_free(two));

    two = decoder(known, "{\"max_tokens\": 1}");
    OK(logitree_decoder_step(two, logits, LOGITREE_F32, SIZE, &token));
    OK(logitree_decoder_finish(two, &reason, NULL));
    CHECK(reason == LOGITREE_FINISH_MAX_TOKENS && has(two, "\"finish\":\"max_tokens\""));
    OK(logitree_free(two));
    OK(logitree_chain_new("greedy", NULL, 0, &chain));
    static const char *WRONG[] = {"[]", "{", "{\"max_token\": 1}", "{\"max_tokens\": 0}", "{\"stop\": \"a\"}",
                                  "{\"stop\": [\"\"]}", "{\"ignore_end\": 1}", "{\"stop\": [\"\xff\"]}"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        FAILS(LOGITREE_ERROR_ARGUMENT, logitree_decoder_new(known, chain, NULL, WRONG[i], LOGITREE_NUL_TERMINATED, &two));
        CHECK(two == NULL);
    }
    static const char STOP[] = "{\"stop\": [\"AB\"], \"ignore_end\": true}";
    OK(logitree_decoder_new(known, chain, NULL, STOP, sizeof STOP - 1, &two));
    /* A decoder without a constraint has no matcher; nothing is made then. */
    FAILS(LOGITREE_ERROR_STATE, logitree_decoder_matcher(two, &running));
    CHECK(running == NULL);
    OK(accept(two, END));
    OK(accept(two, A));
    OK(accept(two, B));
    OK(logitree_decoder_finish(two, &reason, &at));
    CHECK(reason == LOGITREE_FINISH_STOP_STRING && at == 0);
    OK(logitree_free(two));
    OK(logitree_free(chain));
    OK(logitree_free(one));
    OK(logitree_free(known));
}

static void batches(void) {
    logitree_vocabulary *known = vocabulary();
    logitree_decoder *rows[3];
    for (int i = 0; i < 3; i++) rows[i] = decoder(known, NULL);
    float logits[3][SIZE + 1] = {{9, 0, 0, 0, 0, 0}, {0, 0, 9, 0, 0, 0}, {0, 0, 0, 9, 0, 0}};
    uint32_t tokens[3], words[3] = {0, 0, 0}, forced[3][4];
    size_t counts[3];
    logitree_status statuses[3];
    OK(logitree_batch_step(rows, 3, logits[0], LOGITREE_F32, SIZE, SIZE + 1, END, 1, tokens, NULL));
    CHECK(tokens[0] == A && tokens[1] == AB && tokens[2] == C);
    OK(logitree_batch_masks(rows, 3, words, 1, 1, END));
    CHECK(words[0] == 1u << B && words[1] == 1u << END && words[2] == 1u << C);
    FAILS(LOGITREE_ERROR_BUFFER, logitree_batch_take_forced(rows, 3, forced[0], 1, counts));
    CHECK(counts[0] == 1 && counts[1] == 0 && counts[2] == 2);
    OK(logitree_batch_take_forced(rows, 3, forced[0], 4, counts));
    CHECK(counts[2] == 2 && forced[2][1] == C);
    OK(logitree_rollback(rows[2], 3));
    logits[2][0] = logits[2][2] = logits[2][3] = 0.0f / (logits[0][1] + 0.0f);
    FAILS(LOGITREE_ERROR_LOGITS, logitree_batch_step(rows, 3, logits[0], LOGITREE_F32, SIZE, SIZE + 1, END, 0, tokens, statuses));
    CHECK(statuses[0] == LOGITREE_OK && tokens[0] == END && statuses[2] == LOGITREE_ERROR_LOGITS);
    CHECK(tokens[2] == LOGITREE_NO_TOKEN && strncmp(logitree_error_place(), "row 2", 5) == 0);
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_batch_step(rows, 3, logits[0], 5, SIZE, SIZE, END, 1, tokens, NULL));
    logitree_decoder *strange[2] = {rows[0], (logitree_decoder *)known};
    FAILS(LOGITREE_ERROR_HANDLE, logitree_batch_masks(strange, 2, words, 1, 1, END));
    CHECK(strcmp(logitree_error_place(), "row 1") == 0);
    logitree_decoder *twice[2] = {rows[0], rows[0]};
    FAILS(LOGITREE_ERROR_BUSY, logitree_batch_step(twice, 2, logits[0], LOGITREE_F32, SIZE, SIZE, END, 1, tokens, NULL));
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_batch_step(rows, 3, logits[0], LOGITREE_F32, SIZE, 2, END, 1, tokens, NULL));
    FAILS(LOGITREE_ERROR_ARGUMENT,
          logitree_batch_step(rows, 3, logits[0], LOGITREE_F32, SIZE_MAX / 2, SIZE_MAX / 2, END, 1, tokens, NULL));
    OK(logitree_batch_step(rows, 0, NULL, LOGITREE_F32, 0, 0, END, 1, NULL, NULL));
    for (int i = 0; i < 3; i++) OK(logitree_free(rows[i]));
    OK(logitree_free(known));
}

static void catalogues(const char *index) {
    logitree_walk *walk = NULL;
    FAILS(LOGITREE_ERROR_IO, logitree_walk_open("/nowhere/at/all.index", END, &walk));
    if (index == NULL) return;
    /* [0, 1], [0, 3], [3] */
    OK(logitree_walk_open(index, END, &walk));
    CHECK(has(walk, "{\"items\":3,\"start\":") && has(walk, "\"end_token\":4}"));
    logitree_vocabulary *known = vocabulary();
    logitree_constraint *items = NULL;
    char form[600];
    snprintf(form, sizeof form, "{\"type\": \"catalogue\", \"index\": \"%.400s\", \"end\": %d}", index, END);
    OK(logitree_constraint_from_json(form, LOGITREE_NUL_TERMINATED, NULL, &items));
    CHECK(has(items, "\"catalogue\""));
    logitree_matcher *bound = matcher(items, known);
    uint32_t ids[SIZE];
    size_t n = 0;
    OK(logitree_matcher_allowed(bound, ids, SIZE, &n));
    CHECK(n == 2 && ids[0] == A && ids[1] == C);
    OK(logitree_free(bound));
    int64_t start = 0, states[2];
    OK(logitree_walk_start(walk, &start));
    logitree_beam beams[4];
    float logits[2][SIZE] = {{1, 9, 9, 2, 0}, {0, 5, 9, 4, 0}};
    OK(logitree_walk_top(walk, &start, 1, logits[0], LOGITREE_F32, SIZE, SIZE, NULL, NULL, 2, beams, 4, &n));
    CHECK(n == 2 && beams[0].token == C && beams[1].token == A && beams[1].score == 1);
    FAILS(LOGITREE_ERROR_BUFFER, logitree_walk_top(walk, &start, 1, logits[0], LOGITREE_F32, SIZE, SIZE, NULL, NULL, 2, beams, 1, &n));
    states[0] = states[1] = start;
    ids[0] = A;
    ids[1] = B;
    OK(logitree_walk_advance(walk, states, ids, 2));
    CHECK(states[0] == beams[1].state && states[1] == -2);
    OK(logitree_walk_allowed(walk, states[0], ids, SIZE, &n));
    CHECK(n == 2 && ids[0] == B && ids[1] == C);
    uint64_t item = 0;
    ids[0] = B;
    OK(logitree_walk_advance(walk, states, ids, 1));
    OK(logitree_walk_items(walk, states[0], &item, 1, &n));
    CHECK(n == 1);
    states[0] = 123456789;
    FAILS(LOGITREE_ERROR_STATE, logitree_walk_allowed(walk, states[0], ids, SIZE, &n));
    OK(logitree_free(walk));
    OK(logitree_free(known));
}

static void llama_samplers(void) {
    logitree_vocabulary *known = vocabulary();
    logitree_matcher *bound = matcher(choices("A", "B"), known);
    logitree_llama_library lib = LOGITREE_LLAMA_LIBRARY_INIT;
    void *sampler = &lib;
    logitree_llama_record *record = NULL;
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_llama_sampler(NULL, known, bound, NULL, NULL, 0, &sampler, &record));
    CHECK(sampler == NULL);
    FAILS(LOGITREE_ERROR_CONSTRAINT, logitree_llama_sampler(&lib, known, bound, NULL, NULL, 0, &sampler, &record));
    CHECK(strstr(logitree_error_message(), "llama_sampler_init") != NULL);
    static const char *WRONG[] = {"{\"mode\": \"fast\"}", "{\"then\": 1}", "{\"counts\": true}", "sample"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        size_t length = strlen(WRONG[i]);
        FAILS(LOGITREE_ERROR_ARGUMENT, logitree_llama_sampler(&lib, known, bound, NULL, WRONG[i], length, &sampler, &record));
    }
    lib.struct_size = 3;
    FAILS(LOGITREE_ERROR_ARGUMENT, logitree_llama_sampler(&lib, known, bound, NULL, NULL, 0, &sampler, &record));
    CHECK(sampler == NULL && record == NULL);
    OK(logitree_free(bound));
    OK(logitree_free(known));
}

int main(int argc, char **argv) {
    library();
    vocabularies();
    constraints();
    bindings();
    token_trees();
    matchers();
    handles();
    chains();
    candidates();
    decoders();
    batches();
    catalogues(argc > 1 ? argv[1] : NULL);
    llama_samplers();
    OK(logitree_clear_caches(NULL));
    CHECK(logitree_live_handles() == 0);
    printf("%d checks\n", checks);
    return 0;
}
