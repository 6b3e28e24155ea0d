/* The design's own names of the token-trie sampler, called as its callers call them: libllama is loaded for all, its header is
   not needed. What the design's own tests ask comes first. */

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eliza_token_trie_sampler.h"
#include "logitree.h"

typedef struct {
    int32_t id;
    float logit, p;
} token_data;

typedef struct {
    token_data *data;
    size_t size;
    int64_t selected;
    bool sorted;
} token_data_array;

/* Longer than the parameters of any version: libllama fills and reads its own length. */
typedef struct {
    uint32_t words[256];
} parameters;

typedef struct {
    bool no_perf;
} chain_parameters;

static struct {
    parameters (*model_default_params)(void);
    void *(*model_load_from_file)(const char *, parameters);
    const struct llama_vocab *(*model_get_vocab)(const void *);
    void (*model_free)(void *);
    void (*log_set)(void *, void *);
    chain_parameters (*chain_default_params)(void);
    struct llama_sampler *(*chain_init)(chain_parameters);
    void (*chain_add)(struct llama_sampler *, struct llama_sampler *);
    struct llama_sampler *(*init_dist)(uint32_t);
    void (*apply)(struct llama_sampler *, token_data_array *);
    void (*accept)(struct llama_sampler *, int32_t);
    void (*reset)(struct llama_sampler *);
    struct llama_sampler *(*clone)(const struct llama_sampler *);
    void (*free)(struct llama_sampler *);
} lib;

static int checks = 0;

static void fail(int line, const char *what) {
    fprintf(stderr, "%d: %s\n  last error: %s (at %s)\n", line, what, logitree_error_message(), logitree_error_place());
    exit(1);
}

#define CHECK(condition) ((condition) ? (void)++checks : fail(__LINE__, #condition))
/* No sampler is made, and the last error holds this word. */
#define REFUSED(word, call) \
    do { \
        logitree_error_clear(); \
        CHECK((call) == NULL); \
        CHECK(strstr(logitree_error_message(), word) != NULL); \
    } while (0)

static void silent(int level, const char *text, void *data) {
    (void)level, (void)text, (void)data;
}

static void load(const char *path) {
    void *opened = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (opened == NULL) fail(__LINE__, dlerror());
    void *found;
#define LOAD(field, name) \
    found = dlsym(opened, name); \
    CHECK(found != NULL); \
    memcpy(&lib.field, &found, sizeof found);
    LOAD(model_default_params, "llama_model_default_params")
    LOAD(model_load_from_file, "llama_model_load_from_file")
    LOAD(model_get_vocab, "llama_model_get_vocab")
    LOAD(model_free, "llama_model_free")
    LOAD(log_set, "llama_log_set")
    LOAD(chain_default_params, "llama_sampler_chain_default_params")
    LOAD(chain_init, "llama_sampler_chain_init")
    LOAD(chain_add, "llama_sampler_chain_add")
    LOAD(init_dist, "llama_sampler_init_dist")
    LOAD(apply, "llama_sampler_apply")
    LOAD(accept, "llama_sampler_accept")
    LOAD(reset, "llama_sampler_reset")
    LOAD(clone, "llama_sampler_clone")
    LOAD(free, "llama_sampler_free")
    void (*writer)(int, const char *, void *) = silent;
    void *address;
    memcpy(&address, &writer, sizeof address);
    lib.log_set(address, NULL);
}

#define PAYLOAD(leaves) "{\"modelId\": \"test\", \"descriptors\": [{\"path\": \"action\", \"leaves\": [" leaves "]}]}"
#define THINK "{\"name\": \"THINK\", \"tokens\": [100, 101]}"
#define EXECUTE "{\"name\": \"EXECUTE\", \"tokens\": [200]}"

static token_data candidates[3];

static token_data_array three(void) {
    const token_data fresh[3] = {{100, 5.0f, 0.0f}, {200, 4.0f, 0.0f}, {999, 6.0f, 0.0f}};
    memcpy(candidates, fresh, sizeof fresh);
    token_data_array made = {candidates, 3, -1, false};
    return made;
}

/* The logit of a candidate after an apply with another one; both have logit 1 before. */
static float beside(struct llama_sampler *sampler, int32_t other, int32_t id) {
    token_data pair[2] = {{id, 1.0f, 0.0f}, {other, 1.0f, 0.0f}};
    token_data_array array = {pair, 2, -1, false};
    lib.apply(sampler, &array);
    return pair[0].logit;
}

static void the_designs_tests(const struct llama_vocab *vocab) {
    const char *empty = "{\"modelId\": \"test\", \"descriptors\": []}";
    REFUSED("no descriptors", llama_sampler_init_token_trie(vocab, empty, 0));
    for (int mode = 0; mode < 2; mode++) {
        struct llama_sampler *sampler = llama_sampler_init_token_trie(vocab, PAYLOAD(THINK "," EXECUTE), mode);
        CHECK(sampler != NULL);
        token_data_array logits = three();
        lib.apply(sampler, &logits);
        CHECK(candidates[0].logit == 5.0f && candidates[1].logit == 4.0f);
        CHECK(isinf(candidates[2].logit) && candidates[2].logit < 0);
        CHECK(mode == 1 ? logits.size == 3 : logits.size == 1 && logits.selected == 0);
        lib.free(sampler);
    }
    struct llama_sampler *walk = llama_sampler_init_token_trie(vocab, PAYLOAD(THINK), 1);
    CHECK(beside(walk, 777, 100) == 1.0f);
    lib.accept(walk, 100);
    struct llama_sampler *copy = lib.clone(walk);
    CHECK(beside(walk, 777, 101) == 1.0f && isinf(beside(copy, 101, 777)));
    lib.accept(walk, 101);
    CHECK(beside(walk, 101, 777) == 1.0f && beside(copy, 777, 101) == 1.0f);
    lib.reset(walk);
    CHECK(beside(walk, 777, 100) == 1.0f);
    lib.free(copy);
    lib.free(walk);
}

static void what_is_refused(const struct llama_vocab *vocab) {
    REFUSED("cannot be read", llama_sampler_init_token_trie(vocab, "{", 0));
    REFUSED("NULL", llama_sampler_init_token_trie(vocab, NULL, 0));
    REFUSED("NULL", llama_sampler_init_token_trie(NULL, PAYLOAD(THINK), 0));
    REFUSED("no leaves", llama_sampler_init_token_trie(vocab, PAYLOAD(""), 0));
    REFUSED("no tokens", llama_sampler_init_token_trie(vocab, PAYLOAD(THINK ",{\"name\": \"X\", \"tokens\": []}"), 0));
    REFUSED("no mode 2", llama_sampler_init_token_trie(vocab, PAYLOAD(THINK), 2));
    REFUSED("1999999999", llama_sampler_init_token_trie(vocab, PAYLOAD("{\"name\": \"X\", \"tokens\": [1999999999]}"), 0));
}

static void set_and_clear(const struct llama_vocab *vocab) {
    int session = 0, other = 0;
    struct llama_sampler *sampler = NULL;
    CHECK(eliza_inference_token_trie_sampler(&session, vocab, &sampler) == 0 && sampler == NULL);
    const char *first = PAYLOAD(THINK), *second = PAYLOAD(EXECUTE);
    eliza_inference_set_token_trie(&session, first, strlen(first), 0);
    eliza_inference_set_token_trie(&session, second, strlen(second), 1);
    CHECK(eliza_inference_token_trie_sampler(&other, vocab, &sampler) == 0 && sampler == NULL);
    CHECK(eliza_inference_token_trie_sampler(&session, vocab, &sampler) == 0 && sampler != NULL);
    struct llama_sampler *chain = lib.chain_init(lib.chain_default_params());
    lib.chain_add(chain, sampler);
    lib.chain_add(chain, lib.init_dist(1));
    token_data_array logits = three();
    lib.apply(chain, &logits);
    CHECK(logits.data[logits.selected].id == 200);
    lib.free(chain);
    /* Cleared, no tree is left: the former one does not come back. */
    eliza_inference_clear_token_trie(&session);
    CHECK(eliza_inference_token_trie_sampler(&session, vocab, &sampler) == 0 && sampler == NULL);
    /* A payload that cannot be read replaces the former one too, and what would generate is told. */
    eliza_inference_set_token_trie(&session, first, strlen(first), 0);
    eliza_inference_set_token_trie(&session, first, strlen(first) - 1, 0);
    CHECK(strcmp(logitree_error_kind(), "payload") == 0);
    CHECK(eliza_inference_token_trie_sampler(&session, vocab, &sampler) == LOGITREE_ERROR_PAYLOAD && sampler == NULL);
    eliza_inference_clear_token_trie(&session);
    eliza_inference_clear_token_trie(&session);
    CHECK(eliza_inference_token_trie_sampler(&session, vocab, &sampler) == 0);
    CHECK(eliza_inference_token_trie_sampler(&session, vocab, NULL) == LOGITREE_ERROR_ARGUMENT);
}

int main(int argc, char **argv) {
    if (argc != 3) fail(__LINE__, "LIBRARY MODEL");
    REFUSED("llama_sampler_init", llama_sampler_init_token_trie((const struct llama_vocab *)&checks, PAYLOAD(THINK), 0));
    load(argv[1]);
    parameters given = lib.model_default_params();
    void *model = lib.model_load_from_file(argv[2], given);
    CHECK(model != NULL);
    const struct llama_vocab *vocab = lib.model_get_vocab(model);
    the_designs_tests(vocab);
    what_is_refused(vocab);
    set_and_clear(vocab);
    lib.model_free(model);
    CHECK(logitree_live_handles() == 0);
    printf("%d checks\n", checks);
    return 0;
}
